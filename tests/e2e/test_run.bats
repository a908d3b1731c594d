# The main job: one command trains CartPole with five nodes.
load helpers

setup() {
    enter_scratch
}

# summary ARGUMENT...: run the job; its last line is $line.
summary() {
    run --separate-stderr "$LOCKSTEP" run "$cartpole" --json "$@"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    last_line "$output"
    [ "$(field event)" = summary ]
}

@test "run solves CartPole and prints the summary" {
    run --separate-stderr "$LOCKSTEP" run "$cartpole"
    [ "$status" -eq 0 ]
    says "solved: mean return"
    says "of 20 episodes, 475 needed"
    for row in "wall time" iterations "env steps" "env steps/s" learner messages \
        "losses         0" "peak memory" "weights        out/cartpole/"; do
        says "  $row"
    done
    [[ $stderr == *"cartpole  5 nodes"*"iteration"* ]]
    [[ $stderr$output != *$'\033'* ]] # no colours: this is no terminal
}

@test "the weights are one whole file, and nothing else is left" {
    summary
    [ "$(field weights)" = out/cartpole/1/policy.msgpack ]
    [ "$(ls -A out/cartpole)" = $'1\nlatest' ]
    [ "$(ls -A out/cartpole/1)" = $'checkpoints\npolicy.msgpack\nrecord' ]
    grep -q lockstep.policy.1 out/cartpole/1/policy.msgpack
    [ "$(ls -A)" = out ]
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import msgpack' 2>/dev/null || continue
        run "$python" "$SOURCE_DIR/docs/examples/entry.py" \
            out/cartpole/latest/policy.msgpack
        [ "$status" -eq 0 ]
        says "  format: lockstep.policy.1"
        says "  plugin: cartpole"
        break
    done
}

# bats test_tags=slow
@test "a seed gives the same figures and weights again, also as threads" {
    summary --out a
    local first
    first=$(figures)
    summary --out b
    [ "$(figures)" = "$first" ]
    summary --out c --as threads
    [ "$(figures)" = "$first" ]
    cmp a/latest/policy.msgpack b/latest/policy.msgpack
    cmp a/latest/policy.msgpack c/latest/policy.msgpack
}

# discards ARGUMENT...: what a solved run comes to is what it has come to when it
# ends after the same steps, and has nothing to discard.
discards() {
    summary --out solved "$@"
    [ "$(field discarded_env_step)" = 1536 ]
    local had steps
    had=$(figures)
    steps=$(field env_step)
    run --separate-stderr "$LOCKSTEP" run "$cartpole" --json --out stopped "$@" \
        --set evaluator.solved=501 --set stop.env_step="$steps"
    [ "$status" -eq 1 ]
    last_line "$output"
    [ "$(field discarded_env_step)" = 0 ]
    [ "$(figures)" = "${had/true/false}" ]
    cmp solved/latest/policy.msgpack stopped/latest/policy.msgpack
}

# bats test_tags=slow
@test "what is learned while a verdict is awaited is discarded" {
    discards
    run "$LOCKSTEP" run "$cartpole"
    says "  discarded      1,536 env steps, of the iteration in which it ended"
}

# bats test_tags=slow
@test "so it is with all that decides what is evaluated, and when" {
    discards --as threads --set evaluator.every=2
    discards --set learner.queue=1
    discards --record run.lsrec # learn() is not told to give up
    discards --as sim --set nodes.2.count=2
    discards --as threads --set "learner.device=[cpu, cpu, cpu]"
    discards --set learner.passes=2 --set checkpoint.every=1
    [ "$(ls -A solved/latest/)" = $'checkpoints\npolicy.msgpack\nrecord' ]
}

# bats test_tags=slow
@test "stacks and loaders change nothing of the result" {
    summary --out a --set learner.passes=2
    summary --out b --set learner.passes=2 --set learner.stacks=3 \
        --set learner.loaders=2
    cmp a/latest/policy.msgpack b/latest/policy.msgpack
}

# bats test_tags=slow
@test "with a queue the result follows from the seed and the queue alone" {
    summary --out a --set learner.queue=1
    summary --out b --set learner.queue=1 --set learner.stacks=2 \
        --set learner.loaders=1 --as threads
    cmp a/latest/policy.msgpack b/latest/policy.msgpack
    summary --out c
    run cmp -s a/latest/policy.msgpack c/latest/policy.msgpack
    [ "$status" -eq 1 ]
}

# bats test_tags=slow
@test "several devices learn, and the same from the same seed" {
    summary --out a --set "learner.device=[cpu, cpu, cpu]"
    [ "$(field solved)" = true ]
    summary --out b --set "learner.device=[cpu, cpu, cpu]" --as threads
    cmp a/latest/policy.msgpack b/latest/policy.msgpack
    run --separate-stderr "$LOCKSTEP" run "$cartpole" \
        --set "learner.device=[cpu, cpu, cpu, cpu, cpu]"
    [ "$status" -eq 78 ]
    [[ $stderr == *"12 trajectories in a batch cannot be shared evenly"* ]]
}

# bats test_tags=slow
@test "threads that play change nothing of the result, in a simulation too" {
    summary --out a
    summary --out b --set collector.threads=3
    cmp a/latest/policy.msgpack b/latest/policy.msgpack
    summary --out c --set collector.threads=2 --as sim
    cmp a/latest/policy.msgpack c/latest/policy.msgpack
}

@test "a learner of a coordinator learns on several devices" {
    run --separate-stderr "$LOCKSTEP" run \
        "$SOURCE_DIR/configs/cartpole-service.yaml" \
        --set "learner.device=[cpu, cpu]" --as threads
    [ "$status" -eq 0 ]
    [[ $output == *"solved: "* ]]
}

@test "the summary has the metrics of the learner, under their keys" {
    summary
    local number='-?[0-9][-+.e0-9]*' queue times
    queue="\"size_count\":[1-9][0-9]*,\"size_mean\":$number"
    queue+=",\"size_std\":$number,\"size_quantiles\":\[($number,){4}$number\]"
    times="\"learner_grad_time_ms\":$number,\"learner_load_time_ms\":$number"
    times+=",\"learner_load_wait_time_ms\":$number"
    times+=",\"learner_dequeue_time_ms\":$number"
    grep -Eq "\"learner\":\{\"info\":\{\"learner_queue\":\{$queue\}" <<<"$line"
    grep -Eq ",\"learner\":\{\"policy_loss\":$number,[^{}]+\}" <<<"$line"
    grep -Eq ",\"timing_breakdown\":\{$times\}\}\}," <<<"$line"
}

# bats test_tags=slow
@test "another seed gives other figures" {
    summary --seed 0
    local first
    first=$(figures)
    summary --seed 1
    [ "$(figures)" != "$first" ]
}

# bats test_tags=slow
@test "topology and transport change nothing of the result" {
    summary
    local first way
    first=$(figures)
    for way in "topology=star" "transport=ipc" "topology=star transport=ipc"; do
        local -a sets=()
        for word in $way; do
            sets+=(--set "world.$word")
        done
        summary "${sets[@]}"
        [ "$(figures)" = "$first" ]
    done
    summary --as threads --set world.transport=inproc
    [ "$(figures)" = "$first" ]
}

@test "a job may have a name of 64 letters, in each kind of job" {
    local job transport
    job=$(printf 'j%.0s' {1..64})
    for transport in tcp ipc; do
        "$LOCKSTEP" run "$SOURCE_DIR/configs/barrier.yaml" --set "job=$job" \
            --set "world.transport=$transport" --set barrier.epochs=2
        "$LOCKSTEP" run "$SOURCE_DIR/configs/service.yaml" --set "job=$job" \
            --set "world.transport=$transport" --set coordinator.iterations=2
        summary --set "job=$job" --set "world.transport=$transport"
    done
    "$LOCKSTEP" checkpoint show "out/$job/latest" | grep -q "of $job,"
}

@test "sockets do not go where they cannot have an address" {
    local odd="$PWD/run dir"
    mkdir -m 700 "$odd"
    XDG_RUNTIME_DIR=$odd summary --set world.transport=ipc
    [[ $output == *"ipc:///tmp/lockstep-"* ]]
}

# Over sockets of its own: a node of another job may look for one of its own at
# a port that is this job's by now, and be refused.
@test "nothing is lost and nothing refused" {
    summary --set world.transport=ipc
    [ "$(field losses)" = 0 ]
    [ "$(field refused)" = 0 ] || { echo "$line" >&2; return 1; }
}

@test "each process stays under 32 MiB" {
    [ -z "$LOCKSTEP_SANITIZE" ] || skip "a sanitizer needs more"
    summary
    local kib
    for kib in $(grep -o '"peak_kib":[0-9]*' <<<"$line" | cut -d: -f2); do
        ((kib > 0 && kib < 32 * 1024))
    done
}

@test "a run that ends before it is solved: exit 1, and what to change" {
    local json
    for json in '' --json; do
        run --separate-stderr "$LOCKSTEP" run "$cartpole" $json \
            --set evaluator.solved=501 --set stop.env_step=3000
        [ "$status" -eq 1 ]
        [[ $stderr == *"lockstep: not solved: mean return "*" of 20 episodes \
when stop.env_step (3000) ended the run: raise that, or lower evaluator.solved \
(501)" ]] || { echo "$stderr" >&2; false; }
        [ -z "$json" ] || break
        says "not solved: mean return"
        says "iterations     2"
    done
    last_line "$output"
    [ "$(field exit_code)" = 1 ]
    [ "$(field solved)" = false ]
    [[ $output != *'"event":"failed"'* ]]
}

@test "nor is a run solved that never evaluates" {
    run --separate-stderr "$LOCKSTEP" run "$cartpole" \
        --set evaluator.every=100 --set stop.env_step=1
    [ "$status" -eq 1 ]
    [[ $stderr == *"not solved: nothing was evaluated when stop.env_step"* ]]
}

# By sockets of its own: a warning of another job's node is on stderr.
@test "json has an event per line, the summary last" {
    run --separate-stderr "$LOCKSTEP" run "$cartpole" --json \
        --set world.transport=ipc
    [ "$status" -eq 0 ]
    local event
    for event in bound started evaluation progress ended summary; do
        says "{\"event\":\"$event\","
    done
    for line in "${lines[@]}"; do
        [[ $line == '{"event":'*'}' ]]
    done
    last_line "$output"
    [ "$(field event)" = summary ]
    [ "$(field exit_code)" = 0 ]
    [ -z "$stderr" ]
}

@test "ipc sockets lie in a folder of their own, which goes" {
    mkdir run
    XDG_RUNTIME_DIR=$PWD/run summary --set world.transport=ipc
    [[ $output == *"ipc://$PWD/run/lockstep-"* ]]
    # Sockets of shared memory come and go in run/lockstep, which stays.
    [ -z "$(find run -mindepth 1 ! -path run/lockstep)" ]
}

@test "check prints the plan and starts nothing" {
    run --separate-stderr "$LOCKSTEP" check "$cartpole"
    [ "$status" -eq 0 ]
    says "is right: job cartpole, seed 0, plugin cartpole"
    says "5 nodes, mesh over tcp"
    [ "$(grep -c collector <<<"$output")" -eq 3 ]
    [ -z "$(ls -A)" ]
    run --separate-stderr "$LOCKSTEP" check "$cartpole" --json
    [ "$status" -eq 0 ]
    [[ $output == '{"job":"cartpole"'*'"role":"evaluator"'* ]]
}

@test "check warns of a node that nobody on another host could dial" {
    cat >job.yaml <<END
job: j
plugin: cartpole
world: {insecure: true}
nodes:
  - {role: learner, host: 198.18.77.1}
  - {role: collector, count: 2}
  - {role: evaluator, host: 198.18.77.2}
END
    run -0 --separate-stderr "$LOCKSTEP" check job.yaml
    says "beware: node 1, 2 listen to their own host only"
    says "write \`host: ADDRESS\`"
    run -0 --separate-stderr "$LOCKSTEP" check job.yaml --set nodes.1.host=box
    [[ $output != *beware* ]]
    run -0 --separate-stderr "$LOCKSTEP" check "$cartpole"
    [[ $output != *beware* ]]
}

@test "help teaches, version tells" {
    run "$LOCKSTEP" --help
    [ "$status" -eq 0 ]
    says "lockstep run configs/cartpole.yaml"
    local topic
    for topic in run node check config; do
        run "$LOCKSTEP" help "$topic"
        [ "$status" -eq 0 ]
        ((${#output} > 300))
    done
    # What changes the plan is to be said to whoever asks its nodes, too.
    for topic in run node check sim call health status top profile; do
        run "$LOCKSTEP" help "$topic"
        says "--nodes"
        ! grep -E '.{81}' <<<"$output" || false
    done
    run "$LOCKSTEP" --version
    [ "$status" -eq 0 ]
    [[ $output =~ ^lockstep\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    run "$LOCKSTEP"
    [ "$status" -eq 2 ]
}
