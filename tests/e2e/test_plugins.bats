# Plugins written outside (docs/examples/plugins): whole jobs with them, of both
# kinds, whose nodes are processes, threads and in a simulation.
load helpers

setup() {
    enter_scratch
    export LOCKSTEP_PLUGIN_PATH=$BUILD_DIR/docs/plugins
    cat >in_step.yaml <<END
job: outside
nodes: [{role: learner}, {role: collector, count: 2}, {role: evaluator}]
collector: {envs: 2, steps: 60, threads: 2}
stop: {env_step: 100000}
END
    cat >service.yaml <<END
job: outside-service
nodes: [{role: coordinator}, {role: learner}, {role: collector, count: 2}]
collector: {envs: 2, steps: 60}
coordinator: {batch: 4, eval_interval_s: 0}
stop: {env_step: 100000}
END
}

teardown() {
    end_started
}

# solves PLUGIN RETURN: both kinds of job, run in all ways.
solves() {
    local job as
    for job in in_step service; do
        for as in processes threads sim; do
            run --separate-stderr "$LOCKSTEP" run $job.yaml --as $as --json \
                --fresh --set plugin="$1" --set "evaluator.solved=$2"
            [ "$status" -eq 0 ] ||
                { echo "$job $as $status: $stderr" >&2; return 1; }
            last_line "$output"
            [ "$(field solved)" = true ]
        done
    done
}

@test "a grid world with a table of values" {
    solves grid 0.92
}

@test "images of u8" {
    solves dots 9.9
    # An image is a byte for each pixel, before and after each of 60 steps.
    run "$LOCKSTEP" check in_step.yaml --set plugin=dots --json
    [ "$status" -eq 0 ]
}

@test "two policies in one learner, each from what it has done itself" {
    local job as
    for job in in_step service; do
        for as in processes threads sim; do
            run --separate-stderr "$LOCKSTEP" run $job.yaml --as $as --json \
                --fresh --set plugin=nim --set stop.env_step=60000 \
                --set evaluator.solved=2
            [ "$status" -eq 1 ] # no return is more than 1
            last_line "$output"
            [ "$(field return)" = 1.0 ]
            # At first it is a third; from all, or all but one of six.
            [[ $(field first) == @(1.0|0.83*) ]]
            [[ $(field second) == @(1.0|0.83*) ]]
        done
    done
    "$LOCKSTEP" export out/outside/latest --out both.safetensors
    grep -q '"first"' both.safetensors
    grep -q '"second"' both.safetensors
}

@test "what a plugin does not take is said, with the key" {
    run --separate-stderr "$LOCKSTEP" run in_step.yaml --set plugin=grid \
        --set env.size=9 --as threads
    [ "$status" -ne 0 ]
    [[ $stderr == *"raise policy.cells"* ]]
    run --separate-stderr "$LOCKSTEP" check in_step.yaml --set plugin=dots \
        --set env.size=9
    [ "$status" -eq 78 ]
}

@test "one that changes the folder changes nothing of where a run reads and writes" {
    local as
    mkdir elsewhere
    export LOCKSTEP_PLUGIN_PATH=$plugins
    for as in processes threads sim; do
        run "$LOCKSTEP" run in_step.yaml --as $as --out $as --set plugin=faulty \
            --set "env.cd=$PWD/elsewhere" --set stop.env_step=240
        [ "$status" -eq 0 ]
        [ -e "$as/1/policy.msgpack" ]
        [ -e "$as/1/checkpoints/manifest.000000" ]
    done
    [ -z "$(ls elsewhere)" ]
}

@test "nor while it is there, for the nodes that are threads of its process" {
    python3 -c 'import ctypes; exit(ctypes.CDLL(None).unshare(0x200) != 0)' ||
        skip "a thread may not have a folder of its own here"
    mkdir elsewhere
    LOCKSTEP_PLUGIN_PATH=$plugins start run run in_step.yaml --as threads \
        --set plugin=faulty --set "env.fault=hang in init" \
        --set env.spared=4 \
        --set "env.cd=$PWD/elsewhere"
    stderr_has run "about to hang"
    [ "$(readlink "/proc/${pid_of[run]}/cwd")" = "$PWD/elsewhere" ]
    local task
    for task in "/proc/${pid_of[run]}"/task/*; do
        [[ $(<"$task/comm") != *learner ]] ||
            [ "$(readlink "$task/cwd")" = "$PWD" ]
    done
}
