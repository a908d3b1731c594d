# A service job whose learners do one work together: whoever dies, it goes on.
load helpers
load service

setup() {
    enter_scratch
    export LOCKSTEP_PLUGIN_PATH=$plugins
    service_job
    sed -i 's/count: 2, on_loss: go_on/count: 2, on_loss: restart, backoff_ms: 1/' \
        job.yaml
    echo 'learner: {driver: bus}' >>job.yaml
}

teardown() {
    end_started
}

# begin: a run that has learned.
begin() {
    start run run job.yaml --json --timeout 100
    nodes_of run "${n_nodes:-6}"
    learns
}

# learns: more than what the last progress line told.
learns() {
    local before
    event run '"progress"' || return
    before=$(field train_iter)
    while event run '"progress"'; do
        [ "$(field train_iter)" -le "$before" ] || return 0
    done
    return 1
}

# stderr_has TEXT: waits for it.
stderr_has() {
    local text
    while IFS= read -r text; do
        [[ $text != *"$1"* ]] || return 0
    done < <(timeout 60 tail -f --pid="${pid_of[run]}" -n +1 run.err 3>&-)
    echo "it never said: $1" >&2
    cat run.err >&2
    return 1
}

@test "it is solved as processes, threads and in a simulation" {
    local as
    touch solved
    for as in processes threads sim; do
        run --separate-stderr "$LOCKSTEP" run job.yaml --as $as --timeout 100 \
            --json --out "$as"
        [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
        last_line "$output"
        [ "$(field solved)" = true ]
        [ "$(field losses)" = 0 ]
        [ "$(field requeued)" = 0 ]
        [ "$(field ranks)" = 2 ]
    done
}

@test "kill -9 of each rank: the work goes on when it has come back" {
    begin
    local killed before
    for killed in 2 1 2; do
        before=$(field train_iter)
        kill -9 "${nodes[$killed]}"
        comes_back $killed
        learns
        [ "$(field train_iter)" -ge "$before" ]
    done
    ends_solved
    [ "$(field requeued)" -ge 3 ]
}

@test "kill -9 of either rank: one in reserve takes its place" {
    sed -i 's/count: 2, on_loss: restart, backoff_ms: 1/count: 4, on_loss: go_on/
            s/driver: bus/driver: bus, ranks: 2/' job.yaml
    LS_LOG=info n_nodes=8 begin
    local killed
    for killed in 1 2; do
        kill -9 "${nodes[$killed]}"
        event run '"let_go"' "\"node\":$killed,"
        learns
    done
    ends_solved
    [[ $(cat run.err) == *"learn_1, attempt "*", goes to node 3, the first of its 2 ranks"* ]]
}

@test "a rank that stands still is declared lost, and does no harm when it goes on" {
    sed -i 's/transport: ipc/&, silence_ms: 500, heartbeat_ms: 100/
            s/count: 2, on_loss: restart, backoff_ms: 1/count: 3, on_loss: restart/
            s/driver: bus/driver: bus, ranks: 2/' job.yaml
    n_nodes=7 begin
    local stopped
    for stopped in 1 2 3; do
        kill -STOP "${nodes[$stopped]}"
        learns
        learns
        kill -CONT "${nodes[$stopped]}"
        learns
    done
    ends_solved
}

@test "with one learner alone it waits, and says for how many" {
    sed -i 's/backoff_ms: 1}/backoff_ms: 1500}/' job.yaml
    begin
    kill -9 "${nodes[2]}"
    stderr_has "learn_1 waits for 1 more learner: it has 2 ranks, and of learners there is node 1"
    comes_back 2
    learns
    ends_solved
}

@test "kill -9 of the coordinator: the ranks go on" {
    begin
    kill -9 "${nodes[0]}"
    comes_back 0
    learns
    ends_solved
}

@test "SIGTERM ends all" {
    begin
    kill -TERM "${pid_of[run]}"
    finish run
    [ "$code" -eq 143 ]
    all_gone
}

@test "ranks with other weights are named, and nothing of them is committed" {
    run --separate-stderr "$LOCKSTEP" run job.yaml --timeout 100 \
        --set policy.apart=true
    [ "$status" -ne 0 ]
    [[ $stderr == *"rank 1, node 2, has other weights than rank 0, node 1"* ]]
    [[ $stderr == *"learner works have failed 10 times in a row"* ]]
}

@test "check shows the ranks" {
    run -0 "$LOCKSTEP" check job.yaml
    says "by 2 ranks of 2 learners within 600 s"
    run -0 "$LOCKSTEP" check job.yaml --json
    says '"ranks":2'
}
