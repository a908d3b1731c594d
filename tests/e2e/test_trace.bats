# The flight recorder: when it is written, and who is named by it.
load helpers

setup() {
    enter_scratch
    cat >faulty.yaml <<'END'
job: faulty
plugin: faulty
nodes: [{role: learner}, {role: collector, count: 2}, {role: evaluator}]
collector: {steps: 20}
env: {at: 41} # the evaluator's first evaluation has it first
world: {step_timeout_s: 2}
END
    export LOCKSTEP_PLUGIN_PATH=$plugins
}

teardown() {
    end_started
}

@test "a node that hangs is the first cause, with its step; each node's recording is kept" {
    start run run faulty.yaml --json --set env.fault=hang
    nodes_of run 4
    finish run
    [ "$code" -eq 124 ]
    said "node 3 (evaluator, pid ${nodes[3]}) hangs: it is in step evaluate for "
    last_line "$rest"
    [ "$(field event)" = summary ]
    for id in 0 1 2 3; do
        [ -s "out/faulty/1/trace/node-$id.lstrace" ]
    done
    grep -q evaluate out/faulty/1/trace/node-3.lstrace
    all_gone
}

@test "a collector that hangs in a step of its environment is named, with the step" {
    start run run faulty.yaml --json --set env.fault=hang --set env.at=5 \
        --set nodes.1.count=1
    nodes_of run 3
    finish run
    [ "$code" -eq 124 ]
    said "node 1 (collector, pid ${nodes[1]}) hangs: it is in step collect for "
    grep -q collect out/faulty/1/trace/node-1.lstrace
    all_gone
}

@test "a node that is stopped is the first cause of what the others say" {
    start run run "$cartpole" "${endless[@]}" --json
    nodes_of run 5
    event run '"evaluation"'
    kill -STOP "${nodes[2]}"
    finish run
    [ "$code" -eq 124 ]
    said "node 2 (collector, pid ${nodes[2]}) hangs: it does not answer"
    all_gone
}

@test "SIGUSR1 writes what a node did last, as often as it comes" {
    start run run "$cartpole" "${endless[@]}" --json
    nodes_of run 5
    event run '"evaluation"'
    local file=out/cartpole/1/trace/node-1.lstrace _
    for _ in 1 2; do
        kill -USR1 "${nodes[1]}"
        until [ -s $file ]; do
            event run '"evaluation"'
        done
        rm $file
    done
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
}

@test "trace.all writes recordings at the end too; trace.records: 0 keeps none" {
    run "$LOCKSTEP" run "$cartpole" --set stop.env_step=2000 --set trace.all=true
    [ "$(ls out/*/1/trace | wc -l)" -eq 5 ]
    run "$LOCKSTEP" run "$cartpole" --set stop.env_step=2000 --fresh \
        --set trace.all=true --set trace.records=0
    [ ! -e out/cartpole/2/trace ]
    run "$LOCKSTEP" run "$cartpole" --set stop.env_step=2000 --fresh
    [ ! -e out/cartpole/3/trace ]
    run "$LOCKSTEP" run "$cartpole" --set trace.records=100
    [ "$status" -eq 78 ]
    says "100 is not a power of two"
}
