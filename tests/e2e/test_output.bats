# What is written to stdout and does not get there: a disk that is full, a pipe
# that nobody reads.
load helpers

setup() {
    enter_scratch
    members=(run "$SOURCE_DIR/configs/barrier.yaml" --nodes 2
        --set barrier.epochs=3 --out o)
    commands=(
        "help"
        "help config"
        "--version"
        "check $cartpole"
        "check $cartpole --json"
        "keygen DIR --id 1"
        "keygen DIR --id 1 --json"
        "bench learner --seconds 0.05 --load-us 10 --train-us 10"
        "bench learner --seconds 0.05 --load-us 10 --train-us 10 --json"
        "sim $SOURCE_DIR/configs/barrier.yaml --seeds 1"
        "sim $SOURCE_DIR/configs/barrier.yaml --seeds 1 --json"
        "${members[*]} --as threads"
        "${members[*]}"
        "${members[*]} --as sim"
        "${members[*]} --as sim --json"
    )
}

teardown() {
    end_started
}

# to FD COMMAND: its exit code is $code, its stderr $err.
to() {
    code=0
    # shellcheck disable=SC2086 # words
    { "$LOCKSTEP" ${2/DIR/keys.$RANDOM} 2>err || code=$?; } >&"$1"
    err=$(cat err)
}

# nobody: $fd is a pipe that nobody reads.
nobody() {
    local reader
    mkfifo pipe
    exec {reader}<>pipe {fd}>pipe {reader}<&-
}

# abandon NAME: read no further; its exit code is $code, its stderr $err.
abandon() {
    local reader=${fd_of[$1]} pid=${pid_of[$1]}
    unset "fd_of[$1]" "pid_of[$1]"
    exec {reader}<&-
    code=0
    wait "$pid" || code=$?
    err=$(cat "$1.err")
}

@test "a full disk: exit 1, with a line that says so" {
    local fd command
    exec {fd}>/dev/full
    for command in "${commands[@]}"; do
        to "$fd" "$command"
        [ "$code" -eq 1 ] || { echo "$command: exit $code, $err" >&2; false; }
        said "stdout: not all could be written: No space left on device"
    done
}

# bats test_tags=simulated
@test "an event log that lacks lines: exit 1, with a line that says why" {
    local command barrier=$SOURCE_DIR/configs/barrier.yaml
    for command in "sim $barrier --seeds 1" "${members[*]} --as sim"; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr "$LOCKSTEP" $command --event-log /dev/full
        [ "$status" -eq 1 ]
        [[ $stderr == *"/dev/full was not written in full: No space left on device"* ]]
    done
}

@test "a pipe that nobody reads: ended quietly, as by SIGPIPE" {
    local command
    nobody
    for command in "${commands[@]}"; do
        to "$fd" "$command"
        [ "$code" -eq 141 ] || { echo "$command: exit $code, $err" >&2; false; }
        [[ $err != *stdout* ]]
    done
}

@test "a call and a status say so as well" {
    local fd full command
    local status="status job.yaml --every 0.1"
    exec {full}>/dev/full
    nobody
    four_nodes
    begin
    for command in "call job.yaml 0 ping" "call job.yaml 0 ping --json" \
        "$status" "$status --json" "$status --watch" "$status --watch --json"; do
        to "$full" "$command"
        [ "$code" -eq 1 ]
        said "stdout: not all could be written: No space left on device"
        to "$fd" "$command"
        [ "$code" -eq 141 ] || { echo "$command: exit $code, $err" >&2; false; }
        [ -z "$err" ]
    done
    ends_solved
}

@test "what is closed from the beginning: nothing is said into files of the run" {
    code=0
    "$LOCKSTEP" run "$cartpole" --out o >&- 2>err || code=$?
    err=$(cat err)
    [ "$code" -eq 1 ]
    said "stdout: not all could be written: Bad file descriptor"
    [ "$(head -1 o/1/record)" = "lockstep run 1" ]
    "$LOCKSTEP" run "$cartpole" --out o 2>&- >out
    [[ $(<out) == "solved: "* ]]
    [ "$(head -1 o/2/record)" = "lockstep run 1" ]
    "$LOCKSTEP" run "$cartpole" --out o --json <&- >out
    [ "$(head -1 o/3/record)" = "lockstep run 1" ]
}

@test "a limit of files fails what is too large, and nothing is killed by it" {
    ulimit -S -f 16 # KiB
    run --separate-stderr "$LOCKSTEP" "${members[@]}"
    [ "$status" -eq 0 ]
    run --separate-stderr "$LOCKSTEP" run "$cartpole" --set checkpoint.on_fail=go_on
    [ "$status" -eq 1 ]
    [[ $stderr == *"writing out/"*": File too large"* ]]
    [[ $stderr == *"the weights after "*" are not saved: "* ]]
}

@test "a run goes on when the disk is full: its weights are there, exit 1" {
    local fd
    exec {fd}>/dev/full
    to "$fd" "run $cartpole --json --out o"
    [ "$code" -eq 1 ]
    said "stdout: not all could be written: No space left on device; the run continues"
    [ "$(ls -A o/1)" = $'checkpoints\npolicy.msgpack\nrecord' ]
}

@test "in a simulation the log waits for its reader, and has every line" {
    printf '%s\n' 'job: many' 'nodes: [{role: member, count: 24}]' 'barrier: {epochs: 5}' >many.yaml
    LS_LOG=debug "$SOURCE_DIR/tests/e2e/resting.py" "$LOCKSTEP" run many.yaml --as sim --json >log
    [ "$(grep -c ' has stopped$' log)" -eq 24 ]
    run ! grep 'left out' log
}

@test "a run whose output nobody reads any more ends, and leaves nothing" {
    local as
    for as in processes threads; do
        start run run "$cartpole" "${endless[@]}" --json --fresh --as $as
        nodes_of run 5
        event run '"evaluation"'
        abandon run
        [ "$code" -eq 141 ]
        said "the run ends, since nobody reads its output"
        [ $as = threads ] || all_gone
        # A node that saw another leave first has failed, and says what it did.
        [ "$(ls -A -I trace -I checkpoints out/cartpole/latest)" = \
            $'policy.msgpack\nrecord' ]
        rm run.out
    done
}

# alone: a node that has nobody to wait for, and no end.
alone() {
    cat >alone.yaml <<END
job: alone
nodes: [{role: member}]
barrier: {epochs: 100000000}
END
    start node node alone.yaml --id 0 --json
}

@test "so does a node that runs alone" {
    alone
    event node '"progress"'
    abandon node
    [ "$code" -eq 141 ]
    said "the node ends, since nobody reads its output"
}

@test "a node that runs alone goes on while nobody reads its output" {
    alone
    event node '"progress"'
    stop_reading node
    # Each looks for a second, in which it has something to write.
    for _ in 1 2; do
        run --separate-stderr "$LOCKSTEP" status --json alone.yaml
        [ "$status" -eq 0 ]
    done
    line=$output
    [ "$(field state)" = running ]
    [ "$(field iterations_per_s)" != 0.0 ]
    kill "${pid_of[node]}"
    finish node # which reads
    [ "$code" -eq 143 ]
    [[ $rest == *'"event":"progress"'* ]]
}

# talkative: job.yaml, whose collectors and evaluator write a line before they
# fail, which they do at step $1. The evaluator is the first at step 41.
talkative() {
    export LOCKSTEP_PLUGIN_PATH=$plugins
    cat >job.yaml <<END
job: job
plugin: faulty
nodes: [{role: learner}, {role: collector, count: 2}, {role: evaluator}]
collector: {steps: 20}
env: {at: $1, fault: fail}
END
}

@test "--output only_error: the last lines of the node that failed, no others" {
    talkative 41
    run "$LOCKSTEP" run job.yaml --output only_error
    [ "$status" -eq 1 ]
    says "    faulty: about to fail"
    [[ $output != *"node 3: faulty"* ]]
}

@test "--output all: every line, with the node's name" {
    talkative 41
    run "$LOCKSTEP" run job.yaml --set env.fault=say --set stop.env_step=2000 \
        --output all
    says "node 1: faulty: goes on"
    says "node 3: faulty: goes on"
}

@test "--output FOLDER: a file for each node, to which the same run adds" {
    talkative 41
    mkdir logs
    echo mine >logs/node-3.log
    export LS_LOG=error # strangers that look for others are told of otherwise
    run "$LOCKSTEP" run job.yaml --output logs
    [ "$status" -eq 1 ]
    [[ $output != *"node 3: faulty"* ]]
    says "    faulty: about to fail"
    local runs=(logs/job.1-*)
    [ "$(cd "${runs[0]}" && echo *)" = "node-0.log node-1.log node-2.log node-3.log" ]
    [ "$(<"${runs[0]}/node-3.log")" = "faulty: about to fail" ]
    run "$LOCKSTEP" run job.yaml --output logs
    says "resuming"
    [ "$(grep -c "about to fail" "${runs[0]}/node-3.log")" -eq 2 ]
    run "$LOCKSTEP" run job.yaml --output logs --fresh
    runs=(logs/job.*)
    [ ${#runs[@]} -eq 2 ]
    [ "$(<logs/node-3.log)" = mine ]
}

@test "--output FOLDER: lines that could not be written: exit 1 at the end" {
    talkative 1000000
    # shellcheck disable=SC2016 # for that shell
    run env LS_LOG=info bash -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' bash \
        "$LOCKSTEP" run job.yaml --set stop.env_step=2000 --output logs
    [ "$status" -eq 1 ]
    [[ $output =~ --output:\ [0-9]+\ lines\ of\ the\ nodes\ could\ not\ be\ written:\ .*node-0.log ]]
    says "policy.msgpack"
    [ "$(wc -c <logs/job.1-*/node-0.log)" -le 1024 ]
}

@test "--output FOLDER: one that cannot be made is told before any node starts" {
    talkative 41
    echo mine >logs
    run "$LOCKSTEP" run job.yaml --output logs
    [ "$status" -eq 1 ]
    [[ $output == *logs* && $output != *attach* ]]
    [ "$(<logs)" = mine ]
    [ ! -e out/job ]
}
