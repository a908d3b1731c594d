# Nodes that a launcher numbers by their environment.
load helpers

setup() {
    enter_scratch
    cat >three.yaml <<'END'
job: three
plugin: cartpole
nodes: [{role: learner}, {role: collector}, {role: evaluator}]
evaluator: {solved: 475}
stop: {env_step: 400000}
END
}

teardown() {
    end_started
}

@test "RANK and WORLD_SIZE by hand: they meet, and nothing is left" {
    local id
    for id in 2 0 1; do
        RANK=$id WORLD_SIZE=3 start n$id node three.yaml --json
    done
    for id in 0 1 2; do
        event n$id '"bound"'
        [ "$(field node)" = $id ]
        [[ $(field endpoint) == ipc://"$XDG_RUNTIME_DIR"/lockstep-* ]]
    done
    for id in 0 1 2; do
        finish n$id
        [ "$code" -eq 0 ] || { echo "$err" >&2; return 1; }
    done
    [ -s out/three/latest/policy.msgpack ]
    [ -z "$(find "$XDG_RUNTIME_DIR" -name 'lockstep-*')" ]
}

@test "--id goes before the environment, and an address before the folder" {
    export RANK=9 WORLD_SIZE=1
    start zero node three.yaml --id 0 --json --set world.start_timeout_s=0.3
    event zero '"bound"'
    [[ $(field endpoint) == tcp://127.0.0.1:* ]]
    finish zero
    [ "$code" -eq 69 ]
    RANK=1 WORLD_SIZE=3 start one node three.yaml --json \
        --attach "ipc://$PWD/nobody.ipc" --set world.start_timeout_s=0.3
    event one '"bound"'
    [ "$(field node)" = 1 ]
    [[ $(field endpoint) == tcp://127.0.0.1:* ]]
    finish one
    [ "$code" -eq 69 ]
}

@test "a wrong size, two that disagree, hosts apart without an address" {
    RANK=1 WORLD_SIZE=2 run "$LOCKSTEP" node three.yaml
    [ "$status" -eq 2 ]
    says "WORLD_SIZE=2: three.yaml has 3 nodes"
    RANK=1 WORLD_SIZE=3 LOCKSTEP_NODE_ID=2 run "$LOCKSTEP" node three.yaml
    [ "$status" -eq 2 ]
    says "LOCKSTEP_NODE_ID=2 is node 2, and RANK=1 is node 1"
    JOB_COMPLETION_INDEX=1 run "$LOCKSTEP" node three.yaml
    [ "$status" -eq 78 ]
    says "node 1 does not know where to find the others"
    run "$LOCKSTEP" node three.yaml
    [ "$status" -eq 2 ]
    says "which node?"
    RANK=1 WORLD_SIZE=3 start one node three.yaml --json
    event one '"bound"'
    chmod 755 "$XDG_RUNTIME_DIR"/lockstep-*-*/
    RANK=2 WORLD_SIZE=3 run "$LOCKSTEP" node three.yaml
    [ "$status" -eq 1 ]
    says "is not a folder of this user alone"
}

@test "mpirun starts a job without a wrapper" {
    command -v mpirun >/dev/null || skip "no mpirun: Debian's openmpi-bin"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run timeout 120 mpirun --oversubscribe --mca oob_tcp_if_include lo \
        --mca plm isolated -n 5 "$LOCKSTEP" node "$cartpole" --json
    [ "$status" -eq 0 ] || { echo "$output" >&2; return 1; }
    [ "$(grep -o '"event":"summary"' <<<"$output" | wc -l)" -eq 5 ]
    [[ $output == *'"solved":true'* ]]
    run timeout 120 mpirun --oversubscribe --mca oob_tcp_if_include lo \
        --mca plm isolated -n 4 "$LOCKSTEP" node "$cartpole"
    [ "$status" -eq 2 ]
    says "OMPI_COMM_WORLD_SIZE=4: "
}
