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

@test "a pipe that nobody reads: ended quietly, as by SIGPIPE" {
    local command
    nobody
    for command in "${commands[@]}"; do
        to "$fd" "$command"
        [ "$code" -eq 141 ] || { echo "$command: exit $code, $err" >&2; false; }
        [[ $err != *stdout* ]]
    done
}

@test "a call says so as well" {
    local fd full command
    exec {full}>/dev/full
    nobody
    four_nodes
    begin
    for command in "call job.yaml 0 ping" "call job.yaml 0 ping --json"; do
        to "$full" "$command"
        [ "$code" -eq 1 ]
        said "stdout: not all could be written: No space left on device"
        to "$fd" "$command"
        [ "$code" -eq 141 ]
        [ -z "$err" ]
    done
    ends_solved
}

@test "a run goes on when the disk is full: its weights are there, exit 1" {
    local fd
    exec {fd}>/dev/full
    to "$fd" "run $cartpole --json --out o"
    [ "$code" -eq 1 ]
    said "stdout: not all could be written: No space left on device; the run continues"
    [ "$(ls -A o/1)" = $'policy.msgpack\nrecord' ]
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
        [ "$(ls -A -I trace out/cartpole/latest)" = $'policy.msgpack\nrecord' ]
        rm run.out
    done
}

@test "so does a node that runs alone" {
    cat >alone.yaml <<END
job: alone
nodes: [{role: member}]
barrier: {epochs: 100000000}
END
    start node node alone.yaml --id 0 --json
    event node '"progress"'
    abandon node
    [ "$code" -eq 141 ]
    said "the node ends, since nobody reads its output"
}
