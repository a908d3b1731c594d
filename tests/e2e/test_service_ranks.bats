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

@test "it is solved as processes, threads and in a simulation" {
    local as
    touch solved
    for as in processes threads sim; do
        solved_as $as
        [ "$(field requeued)" = 0 ]
        [ "$(field ranks)" = 2 ]
    done
}

@test "kill -9 of each rank, and of the coordinator: the work goes on" {
    begin
    local killed before
    for killed in 2 1 0; do
        before=$(field train_iter)
        kill -9 "${nodes[$killed]}"
        comes_back $killed
        learns
        [ "$(field train_iter)" -ge "$before" ]
    done
    ends_solved
    [ "$(field requeued)" -ge 2 ]
}

@test "a rank that stands still is replaced, and does no harm when it goes on" {
    sed -i 's/transport: ipc/&, silence_ms: 500, heartbeat_ms: 100/
            s/count: 2, on_loss: restart, backoff_ms: 1/count: 3, on_loss: restart/
            s/driver: bus/driver: bus, ranks: 2/' job.yaml
    local first lines
    LS_LOG=info n_nodes=7 begin
    lines=$(wc -l <run.err)
    first=$(sed -n 's/.*goes to node \([0-9]\), the first of its 2 .*/\1/p' run.err |
        tail -n 1)
    kill -STOP "${nodes[$first]}"
    stderr_has run "goes to node [!$first], the first of its 2 ranks" "$lines"
    learns
    kill -CONT "${nodes[$first]}"
    learns
    kill -TERM "${pid_of[run]}"
    finish run
    [ "$code" -eq 143 ]
    all_gone
}

@test "ranks with other weights are named, and nothing of them is committed" {
    run --separate-stderr "$LOCKSTEP" run job.yaml --as sim --timeout 100 \
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
