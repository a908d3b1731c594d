# A sweep over several processes: what comes out is what one process says.
# bats file_tags=simulated
load helpers
load sweeps

setup() {
    enter_scratch
    job=$SOURCE_DIR/configs/barrier.yaml
}

teardown() {
    end_started
}

# alike ARGUMENT...: whatever the number of processes.
alike() {
    local n
    for n in 1 2 5; do
        "$LOCKSTEP" sim "$@" --jobs "$n" >"$n.out" 2>"$n.err" || true
        sed -i '/real time/d' "$n.out"
        sed -i '/ nodes  faults .* of .* seeds /d' "$n.err"
    done
    cmp 1.out 2.out
    cmp 1.out 5.out
    cmp 1.err 2.err
    cmp 1.err 5.err
}

@test "the figures do not depend on the number of processes" {
    alike "$job" --nodes 3 --seeds "$(seeds 40)" --set sim.epochs=4
    grep -q "0 violations" 5.out
    alike "$SOURCE_DIR/configs/service.yaml" --seeds "$(seeds 10)" --first 7 \
        --set coordinator.iterations=3
    grep -q "seeds from 7 on, 6 nodes" 5.out
}

@test "what a sweep has covered is shown: what was taken, and what never" {
    alike "$job" --nodes 3 --seeds "$(seeds 40)" --set sim.epochs=4 --coverage
    grep -qE "^  member +[1-9][0-9]* of [0-9]+ transitions taken$" 5.out
    grep -qE "^ +[1-9][0-9,]*  seen -> ready$" 5.out
    grep -qE "^ +[1-9][0-9,]*  received: deliver$" 5.out
    grep -qE "^ +never  entered: through a tree$" 5.out
    grep -qE "^  call +0 of [0-9]+ transitions taken$" 5.out
    [[ $(<5.out) != *"starting -> started"* ]]
    run "$LOCKSTEP" sim "$job" --nodes 3 --seeds 2 --set sim.epochs=2 \
        --faults none --coverage --json
    [[ $output == *'"coverage":{"member":{'*'"ready -> lost":0,'* ]]
    [[ $output != *'"none -> entered":0,'* ]]
    [[ $output != *'"ready -> left":0,'* ]]
    run "$LOCKSTEP" sim "$SOURCE_DIR/configs/service.yaml" --seeds 1 \
        --faults none --set coordinator.iterations=3 --coverage
    grep -qE "^ +[1-9][0-9,]*  starting -> completed$" <<<"$output"
    grep -qE "^ +[1-9][0-9,]*  a member: none -> held$" <<<"$output"
    run "$LOCKSTEP" sim "$job" --nodes 3 --seeds 1 --set sim.epochs=2
    [[ $output != *transitions* ]]
}

@test "of all failures the one of the lowest seed is shown" {
    alike "$job" --nodes 3 --seeds 1000 --sabotage ack-without-epoch
    grep -q "1 violation" 5.out
    grep -q "^lockstep: seed " 5.err
    grep -q " net: " 5.err
}

@test "there are at most as many processes as seeds" {
    alike "$job" --nodes 3 --seeds 2 --set sim.epochs=2
}

# interrupted SIGNAL CODE JOBS: it ends, all of it, and says what it had swept.
interrupted() {
    mkdir -p tmp
    TMPDIR=$PWD/tmp start sim sim "$SOURCE_DIR/configs/service.yaml" \
        --seeds 1000000 --jobs "$3" --set coordinator.iterations=2
    [ "$3" = 1 ] || until pgrep -P "${pid_of[sim]}" >/dev/null; do :; done
    workers=$(pgrep -P "${pid_of[sim]}" || true)
    stderr_has sim "of 1,000,000 seeds"
    kill -"$1" "${pid_of[sim]}"
    finish sim
    [ "$code" -eq "$2" ]
    [[ $rest == *" from 0 on"*": 0 violations"*"real time"* ]]
    [ -z "$(ls tmp)" ]
    local worker
    for worker in $workers; do
        run ! kill -0 "$worker"
    done
}

@test "Ctrl-C ends a sweep of one process, and shows what was swept" {
    interrupted INT 130 1
}

@test "SIGTERM ends a sweep of several, and shows what was swept" {
    interrupted TERM 143 3
}

@test "a seed that crashes the program is named" {
    cat >crash.yaml <<END
job: crash
plugin: $plugins/faulty.so
env: {fault: crash}
nodes:
  - {role: coordinator, on_loss: restart}
  - {role: learner, on_loss: restart}
  - {role: collector, on_loss: restart}
END
    run --separate-stderr "$LOCKSTEP" sim crash.yaml --seeds 4 --jobs 2 \
        --faults none
    [ "$status" -eq 1 ]
    [[ $stderr == *"lockstep: seed 0: crash: "* ]]
    [[ $stderr == *"lockstep sim crash.yaml --seed 0 --faults none"* ]]
}

@test "an event log is of one process" {
    run --separate-stderr "$LOCKSTEP" sim "$job" --event-log a.log --jobs 2
    [ "$status" -eq 2 ]
    [[ $stderr == *"leave out --jobs 2"* ]]
    "$LOCKSTEP" sim "$job" --nodes 3 --seeds 2 --set sim.epochs=2 \
        --event-log a.log --jobs 1
    [ -s a.log ]
}
