# How a run ends when it does not end well: who is named, which exit code, and
# that nothing is left behind.
load helpers

setup() {
    enter_scratch
    cat >faulty.yaml <<'END'
job: faulty
plugin: faulty
nodes: [{role: learner}, {role: collector, count: 2}, {role: evaluator}]
collector: {steps: 20}
env: {at: 41} # the evaluator's first evaluation has it first
END
    export LOCKSTEP_PLUGIN_PATH=$plugins
}

# begin ARGUMENT...: a run that goes on; it has begun to learn.
begin() {
    start run run "$cartpole" "${endless[@]}" --json "$@"
    nodes_of run 5
    event run '"evaluation"'
}

@test "kill -9 of a collector: it is named, and all others end" {
    begin
    kill -9 "${nodes[2]}"
    event run '"failed"'
    [ "$(field node)" = 2 ]
    [ "$(field signal)" = 9 ]
    finish run
    [ "$code" -eq 1 ]
    said "node 2 (collector, pid ${nodes[2]}) was killed by signal 9 (SIGKILL)"
    last_line "$rest"
    [ "$(field event)" = summary ]
    [ "$(field exit_code)" = 1 ]
    all_gone
}

@test "how a node ended is known also where SIGCHLD is ignored" {
    [ -z "$LOCKSTEP_SANITIZE" ] || skip "a sanitizer takes the signal"
    run env --ignore-signal=CHLD "$LOCKSTEP" run faulty.yaml \
        --set env.fault=crash --timeout 60
    [ "$status" -eq 1 ]
    says "was killed by signal 11 (SIGSEGV)"
}

@test "kill -9 of any node, in a star over ipc: no file is left" {
    mkdir run
    export XDG_RUNTIME_DIR=$PWD/run
    local node
    for node in 0 4; do
        begin --set world.transport=ipc --set world.topology=star
        kill -9 "${nodes[$node]}"
        finish run
        [ "$code" -eq 1 ]
        said "node $node ("
        said "was killed by signal 9 (SIGKILL)"
        all_gone
        [ -z "$(ls -A run)" ]
        rm run.out
    done
}

@test "Ctrl-C: everything is gone, exit 130" {
    begin
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    said "interrupted by SIGINT"
    all_gone
}

@test "Ctrl-C where the weights cannot be saved: it is said" {
    local kind
    for kind in cartpole cartpole-service; do
        start run run "$SOURCE_DIR/configs/$kind.yaml" "${endless[@]}" --json \
            --out o
        event run '"evaluation"'
        mkdir o/1/policy.msgpack
        kill -INT "${pid_of[run]}"
        finish run
        [ "$code" -eq 130 ]
        said " are not saved: renaming to o/1/policy.msgpack: "
        rm -r o run.out
    done
}

@test "Ctrl-C as threads: exit 130" {
    start run run "$cartpole" "${endless[@]}" --json --as threads
    event run '"evaluation"'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    said "interrupted by SIGINT"
}

@test "SIGTERM: everything is gone, exit 143" {
    begin
    kill -TERM "${pid_of[run]}"
    finish run
    [ "$code" -eq 143 ]
    all_gone
}

@test "Ctrl-C while nodes attach: exit 130" {
    start run run "$cartpole" --json --set world.start_timeout_s=600 \
        --set 'nodes.1.attach=ipc:///nonexistent/a.ipc'
    event run '"bound"' '"node":4'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
}

# Its stdin is not that of the run.
@test "what is wrong where a node runs only is told by the run, with its exit code" {
    run --separate-stderr "$LOCKSTEP" run /dev/stdin --json --timeout 60 \
        <"$cartpole"
    [ "$status" -eq 78 ]
    [[ $stderr == *'(learner, pid '*' failed: /dev/stdin:1:1: missing key "'* ]]
    last_line "$output"
    [ "$(field exit_code)" = 78 ]
}

@test "a plugin that hangs before any node runs is bounded by --timeout" {
    local fault
    for fault in 'hang in init' 'hang in fini'; do
        run "$LOCKSTEP" run faulty.yaml --timeout 1 --set "env.fault=$fault"
        [ "$status" -eq 124 ]
        says "the plugin did not return in time (--timeout) from its init or fini"
    done
}

# The same one at once would not be a second.
@test "a second signal does not wait for a node that hangs" {
    start run run faulty.yaml --json --set env.fault=hang
    nodes_of run 4
    kill -INT "${pid_of[run]}"
    stderr_has run interrupted
    kill -TERM "${pid_of[run]}" || true # it may be over
    finish run
    [ "$code" -eq 143 ] || [ "$code" -eq 130 ]
    all_go
}

@test "a second signal leaves no node, not even one that is stopped" {
    local gone=0
    start run run "$cartpole" "${endless[@]}" --json
    nodes_of run 5
    kill -STOP "${nodes[2]}"
    kill -INT "${pid_of[run]}"
    stderr_has run interrupted
    kill -TERM "${pid_of[run]}"
    finish run
    all_go || gone=1
    kill -CONT "${nodes[2]}" 2>/dev/null || true
    [ "$gone" -eq 0 ]
    [ "$code" -eq 143 ]
}

@test "timeout(1), which signals the run and then its group, takes nothing away" {
    local program=$LOCKSTEP
    LOCKSTEP=setsid start run "$program" run "$cartpole" "${endless[@]}" --json
    nodes_of run 5
    event run '"progress"'
    local seen
    seen=$(field iteration)
    kill -TERM "${pid_of[run]}"
    kill -TERM -- "-${pid_of[run]}"
    finish run
    [ "$code" -eq 143 ]
    all_gone
    "$LOCKSTEP" checkpoint show out/cartpole/latest --json >shown
    read -r line <shown
    [ "$(field epoch)" -ge "$seen" ]
}

@test "kill -9 of the run itself: its nodes go too" {
    begin
    kill -9 "${pid_of[run]}"
    finish run
    [ "$code" -eq 137 ]
    all_go
}

@test "--timeout: exit 124" {
    start run run "$cartpole" "${endless[@]}" --json --timeout 1
    declare -gA nodes=() endpoints=()
    while event run '"event":"started"'; do
        nodes[$(field node)]=$(field pid)
    done 2>/dev/null # on a busy machine they may not have come so far
    finish run
    [ "$code" -eq 124 ]
    said "not done after 1 s (--timeout)"
    all_gone
}

@test "--timeout ends a node that hangs in its plugin, and names its step" {
    start run run faulty.yaml --json --set env.fault=hang --timeout 6
    nodes_of run 4
    finish run
    [ "$code" -eq 124 ]
    said "node 3 (evaluator, pid ${nodes[3]}) did not end when told to: it is in step evaluate"
    [[ $rest == *'"event":"stuck","node":3,'* ]]
    all_gone
    # Threads that hang are left to the end of the process, on purpose.
    TSAN_OPTIONS="$TSAN_OPTIONS:report_thread_leaks=0" \
        run "$LOCKSTEP" run faulty.yaml --set env.fault=hang --timeout 3 \
        --as threads
    [ "$status" -eq 124 ]
    says "node 3 (evaluator) did not end when told to: it is in step evaluate"
}

# bats test_tags=simulated
@test "--timeout ends a simulated run whose clock stands, since a step hangs" {
    run timeout -s KILL 60 "$LOCKSTEP" run faulty.yaml --set env.fault=hang \
        --as sim --timeout 2 --event-log events.log
    [ "$status" -eq 124 ]
    says "the run was not done after 2 s (--timeout); node 3 (evaluator) is in step evaluate"
    [ -s events.log ]
}

# bats test_tags=simulated
@test "stop.minutes ends a run that does not look at it" {
    run "$LOCKSTEP" run "$SOURCE_DIR/configs/barrier.yaml" --as sim \
        --set barrier.epochs=1000000 --set barrier.pace_ms=500 \
        --set stop.minutes=0.001 --set world.step_timeout_s=0.1
    [ "$status" -eq 124 ]
    says "the run did not end by itself after 0.001 minutes (stop.minutes)"
}

@test "a node that does not answer is killed by the run, which says so" {
    begin
    kill -STOP "${nodes[2]}"
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    said "node 2 (collector, pid ${nodes[2]}) did not end when told to, nor say why: it is killed"
    all_gone
}

@test "a step that fails is told with its own words and last lines" {
    run "$LOCKSTEP" run faulty.yaml --set env.fault=fail
    [ "$status" -eq 1 ]
    says "plugin faulty: env: step: the cart fell off the table"
    says "its last lines:"
    says "    faulty: about to fail"
    run "$LOCKSTEP" run faulty.yaml --set env.fault=fail --as threads
    [ "$status" -eq 1 ]
    says "plugin faulty: env: step: the cart fell off the table"
}

# reports KEY TEXT: one line of JSON in the folder of the run has this.
reports() {
    [ "$(wc -l <out/faulty/latest/failure.json)" -eq 1 ]
    output=$(<out/faulty/latest/failure.json)
    says "\"$1\":$2,"
}

@test "a run that failed leaves one report, of the first cause" {
    run "$LOCKSTEP" run faulty.yaml --set env.fault=fail
    [ "$status" -eq 1 ]
    reports exc_type '"LS_EIO"'
    reports exc_global_rank 3
    reports exc_local_rank 3
    reports node 3
    reports step '"evaluate"'
    [[ $output == *'the cart fell off the table"}' ]]
    [[ $output =~ \"exc_time\":\"20[0-9-]{9}[0-9:]+\" ]]
    run "$LOCKSTEP" run faulty.yaml --set env.fault=quit
    reports exc_type '"exit"'
    reports exc_value '"ended with exit code 3 and without a word"'
    reports step null
    run "$LOCKSTEP" run faulty.yaml --fresh --timeout 0.3
    [ "$status" -eq 124 ]
    reports exc_type '"LS_ETIMEDOUT"'
    reports node null
}

@test "a report of a node that was killed; none once its run goes on" {
    start run run faulty.yaml --json
    nodes_of run 4
    event run '"evaluation"'
    kill -9 "${nodes[1]}"
    finish run
    reports exc_type '"SIGKILL"'
    reports node 1
    local had
    had=$(readlink out/faulty/latest)
    rm run.out
    start run run faulty.yaml --json
    nodes_of run 4
    event run '"evaluation"'
    [ ! -e out/faulty/latest/failure.json ]
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    [ "$(readlink out/faulty/latest)" = "$had" ]
    [ ! -e out/faulty/latest/failure.json ]
}

@test "a crash is told with its signal" {
    [ -z "$LOCKSTEP_SANITIZE" ] || skip "a sanitizer takes the signal"
    run "$LOCKSTEP" run faulty.yaml --set env.fault=crash
    [ "$status" -eq 1 ]
    says "was killed by signal 11 (SIGSEGV)"
    says "    faulty: about to crash"
}

@test "a node that just ends is told" {
    run "$LOCKSTEP" run faulty.yaml --set env.fault=quit
    [ "$status" -eq 1 ]
    says "ended with exit code 3 and without a word"
}

@test "a plugin that calls exit(0) has not done what was to be done" {
    local as
    for as in processes threads sim; do
        run "$LOCKSTEP" run faulty.yaml --set env.fault=exit --as "$as"
        [ "$status" -eq 1 ]
        says "a plugin, or what it uses, called exit() before this was done"
    done
}

@test "a reward that is not a number is told with its step" {
    run "$LOCKSTEP" run faulty.yaml --set env.fault=nan --set env.at=7
    [ "$status" -eq 1 ]
    says "trajectory: rewards of step 6: a number that is not finite"
}

@test "what was learned before a failure is kept" {
    begin
    kill -9 "${nodes[1]}"
    finish run
    said "env steps, are in out/cartpole/1/policy.msgpack"
    [ -s out/cartpole/1/policy.msgpack ]
}

@test "while nobody reads what a run writes, it is watched over as ever" {
    begin
    stop_reading run
    kill -9 "${nodes[2]}"
    all_go
    stderr_has run "was killed by signal 9"
    [ -d "/proc/${pid_of[run]}" ]
    finish run # which reads
    [ "$code" -eq 1 ]
    [[ $rest == *'"event":"failed","node":2,'* ]]
    last_line "$rest"
    [ "$(field event)" = summary ]
    [ "$(field exit_code)" = 1 ]
}

# bats test_tags=slow
@test "nobody reads what a run writes: told to end, it does" {
    [ "$LOCKSTEP_SANITIZE" != thread ] ||
        skip "this sanitizer flushes stdout at _exit()"
    begin
    stop_reading run
    kill "${pid_of[run]}"
    code=0
    wait "${pid_of[run]}" || code=$?
    [ "$code" -eq 143 ]
    [[ $(<run.err) == *"is nobody reading its output?"* ]]
}

# Without recordings: a member that sees another leave first keeps one.
@test "a run that ends leaves what another beside it tells" {
    local name
    for name in a b; do
        start $name run "$SOURCE_DIR/configs/barrier.yaml" --json --out o \
            --nodes 2 --set barrier.epochs=100000000 --set trace.records=0
        nodes_of $name 2
        until grep -qx "pid: ${pid_of[$name]}" o/latest/run.yaml; do
            event $name '"progress"'
        done
    done
    kill -INT "${pid_of[a]}"
    finish a
    [ "$code" -eq 130 ]
    [ ! -e o/1 ]
    [ "$(readlink o/latest)" = 2 ]
    grep -qx "pid: ${pid_of[b]}" o/latest/run.yaml
    kill -INT "${pid_of[b]}"
    finish b
    [ -z "$(find o -type f)" ]
}
