# Nodes that are started one by one, as in containers and on hosts.
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

# first ARGUMENT...: node 0; where it listens is $first.
first() {
    start zero node three.yaml --id 0 --json "$@"
    event zero '"bound"'
    first=$(field endpoint)
}

@test "three nodes find each other and end together" {
    first
    start one node three.yaml --id 1 --json --attach "$first"
    start two node three.yaml --id 2 --json --attach "$first"
    local name iterations=
    for name in zero one two; do
        finish $name
        [ "$code" -eq 0 ]
        last_line "$rest"
        [ "$(field event)" = summary ]
        [ "${iterations:=$(field iteration)}" = "$(field iteration)" ]
    done
    [ -s out/three/latest/policy.msgpack ]
}

@test "they may start in any order" {
    local folder=$PWD/sockets
    mkdir "$folder"
    cat >>three.yaml <<END
world: {transport: ipc, dir: $folder}
END
    start two node three.yaml --id 2 --json
    event two '"bound"'
    start one node three.yaml --id 1 --json
    event one '"bound"'
    start zero node three.yaml --id 0 --json
    local name
    for name in zero one two; do
        finish $name
        [ "$code" -eq 0 ]
    done
    [ -z "$(ls -A "$folder")" ]
}

@test "Ctrl-C ends a node with 130, and the others lose it" {
    first --set evaluator.solved=501
    start one node three.yaml --id 1 --json --attach "$first" \
        --set evaluator.solved=501
    start two node three.yaml --id 2 --json --attach "$first" \
        --set evaluator.solved=501
    event two '"evaluation"'
    kill -INT "${pid_of[one]}"
    finish one
    [ "$code" -eq 130 ]
    # or by force, on a machine where a second does not do for it
    [[ $err == *"did not end when told to"* ]] || said "told to end by SIGINT"
    finish zero
    [ "$code" -ne 0 ]
    finish two
    [ "$code" -ne 0 ]
}

@test "a world that is never complete: exit 69, the missing are named" {
    # By a file of its own: nobody else dials that.
    run "$LOCKSTEP" node three.yaml --id 0 --set world.start_timeout_s=0.3 \
        --bind "ipc://$PWD/zero.ipc"
    [ "$status" -eq 69 ]
    says "missing: node 1, 2"
    says "if all is right and only slow, raise world.start_timeout_s"
}

@test "a peer of another job has another secret: exit 78, at once" {
    first --set world.start_timeout_s=30
    run "$LOCKSTEP" node three.yaml --id 1 --attach "$first" \
        --set job=other --set world.start_timeout_s=30
    [ "$status" -eq 78 ]
    says "it does not let this node in: it is of another job, or has another"
}

@test "a peer with other settings: exit 78" {
    first --set world.start_timeout_s=30
    run "$LOCKSTEP" node three.yaml --id 1 --attach "$first" --seed 5 \
        --set world.start_timeout_s=60
    [ "$status" -eq 78 ]
    says "another configuration"
}

@test "a peer with another version of the plugin: exit 78" {
    first --set plugin="$plugins/faulty.so" --set world.start_timeout_s=30
    FAULTY_VERSION=2 run "$LOCKSTEP" node three.yaml --id 1 --attach "$first" \
        --set plugin="$plugins/faulty.so" --set world.start_timeout_s=60
    [ "$status" -eq 78 ]
    says "start all with the same file, and version of its plugin"
}

@test "an id that lives already: exit 78, both places are named" {
    first
    start one node three.yaml --id 1 --json --attach "$first"
    event one '"bound"'
    local taken
    taken=$(field endpoint)
    run "$LOCKSTEP" node three.yaml --id 1 --attach "$first"
    [ "$status" -eq 78 ]
    says "node id 1 is taken"
    says "$taken"
}

@test "a peer that speaks garbage does no harm" {
    first
    local port=${first##*:}
    exec 8<>"/dev/tcp/127.0.0.1/$port"
    head -c 100000 /dev/urandom >&8 || true
    exec 9<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET / HTTP/1.1\r\n\r\n' >&9 || true # it is cut off early
    start one node three.yaml --id 1 --json --attach "$first"
    start two node three.yaml --id 2 --json --attach "$first"
    local name
    for name in zero one two; do
        finish $name
        [ "$code" -eq 0 ]
    done
    exec 8>&- 9>&-
}

@test "a port in use: exit 75, the address is named" {
    first
    run "$LOCKSTEP" node three.yaml --id 1 --bind "$first"
    [ "$status" -eq 75 ]
    says "$first"
    run "$LOCKSTEP" run three.yaml --set "nodes.0.bind=$first"
    [ "$status" -eq 75 ]
    says "run 1 of this job is in progress"
    run "$LOCKSTEP" run three.yaml --fresh --set "nodes.0.bind=$first"
    [ "$status" -eq 75 ]
    says "node 0 (learner, pid"
    says "$first"
    run "$LOCKSTEP" run three.yaml --fresh --set "nodes.2.bind=$first"
    [ "$status" -eq 75 ]
    says "node 2 (evaluator, pid"
}

@test "a host that does not resolve: exit 69, it is named" {
    run "$LOCKSTEP" node three.yaml --id 1 --set world.insecure=true \
        --attach tcp://no-such-host.invalid:21500 \
        --set world.start_timeout_s=1
    [ "$status" -eq 69 ]
    says '"no-such-host.invalid" cannot be resolved'
}
