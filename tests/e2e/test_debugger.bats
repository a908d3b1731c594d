# As docs/debugging.md has it, line by line.
load helpers

setup() {
    command -v gdb >/dev/null || skip "gdb is not installed"
    [ -z "$LOCKSTEP_SANITIZE" ] || skip "a sanitizer traces the program itself"
    enter_scratch
}

teardown() {
    end_started
}

# debug COMMAND... -- ARGUMENT...: gdb does all of these, and ends.
debug() {
    local words=()
    while [ "$1" != -- ]; do
        words+=(-ex "$1")
        shift
    done
    shift
    run timeout 60 gdb -q -nx -batch -iex 'set debuginfod enabled off' \
        -x "$SOURCE_DIR/framework/lockstep-gdb.py" "${words[@]}" "$@"
}

@test "a simulation stops at a step of one node, and comes there again" {
    debug 'lockstep break 2 collect 3' run 'step 2' backtrace \
        'print *$this_step()' 'print *$this_step()->task' \
        'print *$this_step()->task->node' \
        'print $this_step()->task->node->world' run backtrace \
        -- --args "$LOCKSTEP" run "$cartpole" --as sim --fresh
    [ "$status" -eq 0 ]
    says "step collect of node 2, iteration 3"
    says "#0  role_collect (step="
    [[ $output =~ "#1  "[^$'\n']*"in step collect of node 2, iteration 3" ]]
    [[ $output != *"#2  "* ]] # nothing is below it
    says '$1 = step collect of node 2, iteration 3'
    says '$2 = task of node 2, running, iteration 3'
    says 'context of type "online" = {total_step = 3, env_step = 1536,'
    says '[0] = checkpoint: yielded'
    says '[1] = barrier: yielded'
    says 'exchange: for another role'
    says 'collect: runs'
    says '$3 = node 2 (collector) of job "cartpole", joined, at tcp://127.0.0.1:'
    says 'node 0 = learner ready at tcp://127.0.0.1:'
    says '$4 = 4 known, formed'
    # The same address in both runs.
    local stops
    stops=$(grep -o 'Breakpoint 1, step_main (point=0x[0-9a-f]*)' <<<"$output")
    [ "$(wc -l <<<"$stops")" -eq 2 ]
    [ "$(sort -u <<<"$stops" | wc -l)" -eq 1 ]
}

@test "any condition stops a simulation: a member after seven epochs" {
    local who='((struct member *)state)'
    debug "break keep_step if $who->id == 2 && $who->epochs == 7" run \
        "print $who->epochs" "print $who->id" 'backtrace 2' \
        -- --args "$LOCKSTEP" run "$SOURCE_DIR/configs/barrier.yaml" --as sim
    [ "$status" -eq 0 ]
    says "Breakpoint 1, keep_step"
    says '$1 = 7'
    says '$2 = 2'
    says "in step keep step of node 2, iteration 7"
}

@test "all nodes as threads: only the wanted one stops" {
    debug 'lockstep break 2 collect 1' run 'info threads' 'step 2' backtrace \
        'lockstep break' 'lockstep break two collect' \
        -- --args "$LOCKSTEP" run "$cartpole" --as threads --patience 3600
    says "step collect of node 2, iteration 1"
    [[ $output =~ 'Thread '[0-9]+' "2 collector" hit Breakpoint 1' ]]
    says '"3 ls-bus"'
    [[ $output =~ "#1  "[^$'\n']*"in step collect of node 2, iteration 1" ]]
    says "as in: lockstep break 2 collect 7"
}

# attached: gdb holds node 1, and does `waits` meanwhile.
attached() {
    { echo '#!/bin/bash'; cat; } >waits
    chmod +x waits
    debug 'shell ./waits' "$@" -- -p "${nodes[1]}"
    [[ $output != *"not permitted"* ]] || skip "this user may not attach"
}

@test "a process that a debugger has stopped is not lost" {
    four_nodes "world: {transport: ipc, heartbeat_ms: 20, silence_ms: 500}"
    begin --patience 3600 --set evaluator.every=20
    attached 'lockstep break 1 collect' continue detach <<'END'
until [[ $("$LOCKSTEP" health job.yaml --id 0 --within 1.5 --json) == *stuck* ]]; do :; done
END
    says "step collect of node 1, iteration "
    ends_solved
    [[ $rest != *'"lost"'* ]]
    [[ $rest == *'"restarts":0'* && $rest != *'"restarts":1'* ]]
}

@test "without patience it is lost, and the run says that a debugger holds it" {
    four_nodes "world: {transport: ipc}"
    # Seldom: what it says must not fill the pipe while nobody reads.
    begin --set evaluator.every=100
    export RUN=${pid_of[run]}
    attached <<'END'
until grep -q "is held by a debugger" run.err; do
    kill -0 "$RUN" || exit
done
END
    finish run
    [ "$code" -ne 0 ]
    said "node 1 (collector, pid ${nodes[1]}) is held by a debugger, pid "
    said "; with --patience S the others wait for it"
}
