# lockstep run --record, and lockstep replay: docs/debugging.md.
load helpers

setup() {
    enter_scratch
}

teardown() {
    end_started
}

lockstep() {
    run --separate-stderr timeout 100 "$LOCKSTEP" "$@"
}

# record ARGUMENT...: a short run, into run.lsrec.
record() {
    lockstep run "$cartpole" --record run.lsrec "$@"
}

# bats test_tags=slow
@test "a run of processes is replayed without a difference, to the same weights" {
    record
    [ "$status" -eq 0 ]
    [[ $output =~ "recorded    run.lsrec, "[0-9]+" KiB: lockstep replay run.lsrec" ]]
    [ "$(echo run.lsrec*)" = run.lsrec ]
    lockstep replay run.lsrec
    [ "$status" -eq 0 ]
    [[ ${lines[-1]} =~ ^"replay is the same: 47 events emitted as recorded, "[0-9]+" handled in the recorded order"$ ]]
    cmp out/cartpole/1/policy.msgpack out/cartpole/2/policy.msgpack
    # As often as one wants, also by a program.
    lockstep replay run.lsrec --json
    [ "$status" -eq 0 ]
    jq -e 'select(.event == "replay") | .difference == null and .compared == 47' \
        <<<"${lines[-1]}"
}

@test "the first difference is named: node, step, event, both payloads" {
    record --set stop.env_step=3000 --set evaluator.solved=501
    [ "$status" -eq 1 ] # not solved
    lockstep replay run.lsrec
    [ "$status" -eq 0 ] # as then
    lockstep replay run.lsrec --seed 1
    [ "$status" -eq 1 ]
    [[ $stderr =~ "the replay differs: node 0 (learner), in step welcome, iteration 0: event \"ls.exchange.welcome\" number 1: expected "[0-9]+" bytes to all, XXH3 "[0-9a-f]{16}"; came "[0-9]+" bytes to all, XXH3 "[0-9a-f]{16}"; they differ from byte "[0-9]+" on" ]]
    lockstep replay run.lsrec --set policy.learning_rate=0.1
    [ "$status" -eq 1 ]
    [[ $stderr == *'in step policy, iteration 0: event "ls.exchange.policy" number 1'* ]]
    # Alone: a collector acts by what the learner said then.
    lockstep replay run.lsrec --set policy.learning_rate=0.1 --node 2
    [ "$status" -eq 0 ]
    says "2 differed, and what was recorded took their place"
}

@test "members handle events in the order of a run of threads" {
    lockstep run "$SOURCE_DIR/configs/barrier.yaml" --record run.lsrec \
        --as threads --set barrier.events=3 --set barrier.epochs=20
    [ "$status" -eq 0 ]
    lockstep replay run.lsrec
    [ "$status" -eq 0 ]
    says "replay is the same: 300 events emitted as recorded, 1200 handled"
}

@test "a run that was killed is replayed up to there" {
    start long run "$cartpole" "${endless[@]}" --record run.lsrec --json
    event long evaluation
    kill -9 "$(pgrep -P "${pid_of[long]}" -f -- '--id 2 ')"
    finish long
    [[ $err == *'the recording of node 2 (collector) ends early'* ]]
    pid_of=()
    lockstep replay run.lsrec
    [ "$status" -eq 0 ]
    [[ $output == *"replay is the same: "* ]]
    [[ $stderr == *"the recording ends here: up to here the replay is the same"* ]]
}

@test "a run whose own process was killed is put together, and replayed up to there" {
    start long run "$cartpole" "${endless[@]}" --record run.lsrec --json
    nodes_of long 5
    event long evaluation
    kill -9 "${pid_of[long]}"
    all_go
    pid_of=()
    lockstep replay run.lsrec
    [ "$status" -eq 0 ]
    [[ $output == *"replay is the same: "* ]]
    [[ $stderr == *"run.lsrec: its run had not put the recording together (it was killed, or had no room): that is done now"* ]]
    [ "$(echo run.lsrec*)" = run.lsrec ]
    lockstep replay run.lsrec
    [ "$status" -eq 0 ]
    [[ $stderr != *"that is done now"* ]]
}

@test "two runs are not recorded in one file at once" {
    start long run "$cartpole" "${endless[@]}" --record run.lsrec --json
    event long evaluation
    record --fresh
    [ "$status" -eq 75 ]
    [[ $stderr == *"--record: run.lsrec: another run is being recorded there: wait for its end, or name another file"* ]]
    kill -INT "${pid_of[long]}"
    finish long
    pid_of=()
    lockstep replay run.lsrec
    [ "$status" -eq 0 ]
    [[ $output == *"replay is the same: "* ]]
}

@test "what cannot be replayed is not recorded" {
    lockstep run "$SOURCE_DIR/configs/service.yaml" --record run.lsrec
    [ "$status" -eq 78 ]
    [[ $stderr == *"a coordinator decides by the clock"* ]]
    lockstep run "$SOURCE_DIR/configs/cartpole-restart.yaml" --record run.lsrec
    [ "$status" -eq 78 ]
    [[ $stderr == *"Set on_loss: fail"* ]]
    record --as compose
    [ "$status" -eq 2 ]
    record --set nodes.0.nonsense=1
    [ "$status" -eq 78 ]
    [ -z "$(ls)" ]
    mkdir folder
    lockstep run "$cartpole" --record folder
    [ "$status" -eq 1 ]
    [[ $stderr == *"--record: opening folder: Is a directory"* ]]
    cp "$cartpole" mine.yaml
    lockstep run mine.yaml --record mine.yaml
    [ "$status" -eq 78 ]
    [[ $stderr == *"--record: mine.yaml exists, and is not a recording: name another file" ]]
    cmp mine.yaml "$cartpole"
    echo mine > run.lsrec.head
    record
    [ "$status" -eq 78 ]
    [[ $stderr == *"--record: run.lsrec.head exists, and is not a recording: name another file" ]]
    [ ! -e run.lsrec ]
    touch run.lsrec # of the user
    record
    [ "$status" -eq 78 ]
    [ -e run.lsrec ]
}

@test "a file that is not a recording, or not a whole one, is refused so" {
    lockstep replay
    [ "$status" -eq 2 ]
    [[ $stderr == *"which recording?"* ]]
    lockstep replay "$cartpole"
    [ "$status" -eq 1 ]
    [[ $stderr == *"it is not a recording of lockstep run --record" ]]
    record --set stop.env_step=1600
    head -c 5000 run.lsrec >short.lsrec
    lockstep replay short.lsrec
    [ "$status" -eq 1 ]
    [[ $stderr == *"short.lsrec: it is cut short: it has 5000 bytes, and had "* ]]
    lockstep replay run.lsrec --node 9
    [ "$status" -eq 2 ]
    # What could not begin is not the same.
    lockstep replay run.lsrec --out run.lsrec/out
    [ "$status" -eq 1 ]
    [[ $stderr == *"making the folder run.lsrec"* ]]
    [ -z "$output" ]
    # A flight recorder's ring.
    "$LOCKSTEP" run "$cartpole" --fresh --set trace.all=true >/dev/null
    lockstep replay out/cartpole/latest/trace/node-0.lstrace
    [ "$status" -eq 1 ]
    [[ $stderr == *"it is a flight recorder's: a ring that has only the last"* ]]
}

@test "gdb stops at the emit that differs" {
    command -v gdb >/dev/null || skip "gdb is not installed"
    [ -z "$LOCKSTEP_SANITIZE" ] || skip "a sanitizer traces the program itself"
    record --set stop.env_step=1600
    run timeout 60 gdb -q -nx -batch -iex 'set debuginfod enabled off' \
        -x "$SOURCE_DIR/framework/lockstep-gdb.py" \
        -ex 'break tape_diverged' -ex run -ex backtrace \
        --args "$LOCKSTEP" replay run.lsrec --set policy.gamma=0.9
    says "Breakpoint 1, tape_diverged (tape="
    says "in step policy of node 0, iteration 0"
}
