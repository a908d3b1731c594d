# A service job: whoever dies, its work goes on.
load helpers
load service

setup() {
    enter_scratch
    export LOCKSTEP_PLUGIN_PATH=$plugins
    service_job
}

teardown() {
    end_started
}

# begin ARGUMENT...: a run that has learned and evaluated.
begin() {
    start run run job.yaml --json --timeout 100 "$@"
    nodes_of run "${n_nodes:-6}"
    event run '"evaluation"'
}

# busy_learner: its id is $busy, that of the other one $idle.
busy_learner() {
    call 1 resource --json
    [ "$status" -eq 0 ]
    busy=2 idle=1
    [[ $output != *'"task_id":"learn_'* ]] || busy=1 idle=2
    call $busy resource --json
    [[ $output == *'"task_id":"learn_'* ]]
}

@test "a service job is solved, as processes, threads and in a simulation" {
    local as
    touch solved
    for as in processes threads sim; do
        solved_as $as
        [ "$(ls -A "$as/latest")" = $'policy.msgpack\nrecord' ]
    done
}

@test "in a simulation a seed gives the same run again" {
    local seed
    for seed in 3 3 4; do
        run --separate-stderr "$LOCKSTEP" run job.yaml --as sim --seed $seed \
            --event-log "log.$((++n))" --set coordinator.iterations=20
        [ "$status" -eq 1 ] # it is not solved
    done
    cmp log.1 log.2
    ! cmp -s log.1 log.3
}

@test "a job that ends as an evaluation is due has nothing to warn of" {
    run --separate-stderr "$LOCKSTEP" run "$SOURCE_DIR/configs/service.yaml" \
        --as sim --set coordinator.iterations=1
    [ "$status" -eq 0 ]
    [[ $stderr != *"is not kept as"* ]]
}

@test "data and policies in files" {
    begin --set coordinator.data.store=files
    [ -n "$(ls -A out/job/latest/policy)" ]
    touch solved
    finish run
    [ "$code" -eq 0 ]
    [ -s out/job/latest/policy.msgpack ]
}

@test "a run whose policies are gone or damaged is not resumed, and its weights stay" {
    begin
    learns
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    cp out/job/1/policy.msgpack before
    mv out/job/1/policy gone
    run "$LOCKSTEP" run job.yaml --timeout 100
    [ "$status" -eq 78 ]
    says "out/job/1/policy has no policy_1, of which out/job/1/journal says that "
    says "put it back, or begin anew with --fresh"
    [[ $output != *"restart"* ]]
    cmp before out/job/1/policy.msgpack
    rm -rf out/job/1/policy
    cp -r gone out/job/1/policy
    for file in out/job/1/policy/*; do
        printf X | dd of="$file" bs=1 seek=50 conv=notrunc status=none
    done
    run "$LOCKSTEP" run job.yaml --timeout 100
    [ "$status" -eq 1 ]
    says " failed: out/job/1/policy/policy_1"
    says " is damaged "
    [[ $output != *"restart"* ]]
    cmp before out/job/1/policy.msgpack
    rm -rf out/job/1/policy
    mv gone out/job/1/policy
    touch solved
    run "$LOCKSTEP" run job.yaml --timeout 100
    [ "$status" -eq 0 ]
    says "resuming the interrupted run in out/job/1"
}

@test "calls that nobody serves, or that are not for the caller" {
    begin
    call 1 bogus --json
    [ "$status" -eq 1 ]
    [ "$output" = '{"state":"failed","code":0,"message":"task name error"}' ]
    call 1 ping
    [ "$status" -eq 0 ]
    # What it may use of this machine.
    call 1 resource --json
    line=$output
    awk "BEGIN { exit !($(field cpu) > 0 && $(field cpu) <= $(nproc)) }"
    call 1 resource --channel 9 --json
    [ "$status" -eq 1 ]
    line=$output
    [ "$(field state)" = start_failed ]
    [ "$(field code)" = 202 ]
    call 1 ls.connect --json
    line=$output
    [ "$(field state)" = start_failed ]
    [ "$(field code)" = 501 ]
    call 1 learner_close_task '{task_id: learn_1, attempt: 1}' --json
    line=$output
    [ "$(field state)" = start_failed ]
    [ "$(field code)" = 502 ]
    ends_solved
}

@test "kill -9 of the busy learner: the one in reserve goes on" {
    begin
    busy_learner
    learns
    local before
    before=$(field train_iter)
    kill -9 "${nodes[$busy]}"
    event run '"let_go"' "\"node\":$busy,"
    learns
    [ "$(field train_iter)" -ge "$before" ]
    call $idle resource --json
    [[ $output == *'"task_id":"learn_1"'*'"attempt":2'* ]]
    ends_solved
    [ "$(field requeued)" -ge 1 ]
}

@test "kill -9 of the only learner: the next one gets the work" {
    sed -i 's/count: 2, on_loss: go_on/on_loss: restart, backoff_ms: 300/' job.yaml
    n_nodes=5 begin
    kill -9 "${nodes[1]}"
    comes_back 1
    learns
    ends_solved
    [ "$(field requeued)" -ge 1 ]
}

@test "kill -9 of the only learner: its work expires, and another is asked for" {
    sed -i 's/count: 2, on_loss: go_on/on_loss: restart, backoff_ms: 1500/' \
        job.yaml
    n_nodes=5 begin --set coordinator.learner_expiry_s=0.3
    kill -9 "${nodes[1]}"
    stderr_has run "learn_1 has waited for a learner too long: it is given up"
    comes_back 1
    learns
    ends_solved
    [ "$(field expired)" -ge 1 ]
}

@test "kill -9 of a collector: what it brought stays, and it comes back" {
    begin
    kill -9 "${nodes[4]}"
    comes_back 4
    learns
    ends_solved
}

@test "kill -9 of the coordinator: its next life takes over" {
    begin
    learns
    local before
    before=$(field train_iter)
    kill -9 "${nodes[0]}"
    comes_back 0
    learns
    [ "$(field train_iter)" -ge "$before" ]
    # Nobody holds what another holds.
    local id held=()
    for id in 1 2 3 4 5; do
        call $id resource --json
        [ "$status" -eq 0 ]
        [[ ! $output =~ \"task_id\":\"([^\"]*) ]] || held+=("${BASH_REMATCH[1]}")
    done
    [ -z "$(printf '%s\n' "${held[@]}" | grep learn_ | sort | uniq -d)" ]
    ends_solved
    [[ $line =~ \"node\":0,[^}]*\"restarts\":1 ]]
}

@test "Ctrl-C keeps what was learned; the same command goes on" {
    local store before
    for store in bus files; do
        rm -f run.out solved
        begin --set coordinator.data.store=$store --out $store
        learns
        kill -INT "${pid_of[run]}"
        finish run
        [ "$code" -eq 130 ]
        all_gone
        [ -s $store/1/policy.msgpack ]
        said "the weights after"
        last_line "$rest"
        before=$(field train_iter)
        rm run.out
        touch solved
        start run run job.yaml --json --timeout 100 --out $store \
            --set coordinator.data.store=$store
        finish run
        [ "$code" -eq 0 ]
        said "resuming the interrupted run in $store/1"
        last_line "$rest"
        [ "$(field train_iter)" -ge "$before" ]
        [ "$(ls -A $store/latest)" = $'policy.msgpack\nrecord' ]
    done
}

# bats test_tags=slow
@test "kill -9 of the whole run at any moment; the same command goes on" {
    local when store moment pid
    for when in "bus learns" "files evaluated" "files learns-on"; do
        store=${when% *} moment=${when#* }
        rm -rf run.out again.out solved "$store"
        begin --set coordinator.data.store=$store --out $store
        [ $moment = evaluated ] || learns
        [ $moment != learns-on ] || learns
        kill -STOP "${pid_of[run]}" # nor does it notice that they die
        kill -9 "${nodes[@]}" "${pid_of[run]}"
        wait "${pid_of[run]}" || true
        for pid in "${nodes[@]}"; do
            timeout 30 tail -s 0.05 --pid="$pid" -f /dev/null
        done
        [ ! -e $store/1/policy.msgpack ] # for which nobody had time
        touch solved
        start again run job.yaml --json --timeout 100 --out $store \
            --resume latest --set coordinator.data.store=$store
        finish again
        [ "$code" -eq 0 ] || { echo "exit $code: $err" >&2; return 1; }
        said "resuming the interrupted run in $store/1"
        last_line "$rest"
        [ "$(field solved)" = true ]
        [ "$(ls -A $store/latest)" = $'policy.msgpack\nrecord' ]
    done
}

# bats test_tags=slow
@test "checkpoint.replay: what is in the buffer outlives the run, if it is whole" {
    local pid file n=0 keep=(--set coordinator.data.store=files --out kept
        --set checkpoint.replay=true --set coordinator.replay.mode=priority)
    begin "${keep[@]}"
    learns
    kill -STOP "${pid_of[run]}"
    kill -9 "${nodes[@]}" "${pid_of[run]}"
    wait "${pid_of[run]}" || true
    for pid in "${nodes[@]}"; do
        timeout 30 tail -s 0.05 --pid="$pid" -f /dev/null
    done
    for file in kept/1/data/*; do
        ((n++ % 2)) ||
            printf X | dd of="$file" bs=1 seek=50 conv=notrunc status=none
    done
    [ $n -gt 8 ]
    LS_LOG=info start again run job.yaml --json --timeout 100 "${keep[@]}"
    stderr_has again "samples of an earlier life are there"
    grep -qE ': [1-9][0-9]* samples of an earlier .* [1-9][0-9]* are lost' \
        again.err
    grep -q 'a sample is lost: .*kept/1/data/d' again.err
    touch solved
    finish again
    [ "$code" -eq 0 ]
    last_line "$rest"
    [ "$(field evicted_lost)" -gt 0 ]
    [ "$(ls -A kept/latest)" = $'policy.msgpack\nrecord' ]
}

@test "who was frozen, and declared lost, rejoins as a new member and works on" {
    local id pid other
    begin --set world.heartbeat_ms=100 --set world.silence_ms=400
    busy_learner
    for id in 5 $busy; do
        pid=${nodes[$id]}
        kill -STOP "$pid"
        # By all: of fewer it would be they who rejoin.
        for other in 0 1 2 3 4 5; do
            [ "$other" = "$id" ] || stderr_has run "node $other bus: node $id ("
        done
        kill -CONT "$pid"
        stderr_has run "node $id it begins again"
        learns
        call $id ping
        [ "$status" -eq 0 ]
        kill -0 "$pid"
    done
    ends_solved
}

@test "100 iterations are 101 infos, of which one says done" {
    LS_LOG=debug run --separate-stderr "$LOCKSTEP" run job.yaml --json \
        --timeout 100 --set coordinator.iterations=100 \
        --set coordinator.send_info_freq=1
    [ "$status" -eq 1 ] || { echo "$stderr" >&2; return 1; }
    [[ $stderr == *"not solved: mean return"*" when coordinator.iterations \
(100) ended the run: raise that, or lower evaluator.solved (1000)"* ]]
    last_line "$output"
    [ "$(field train_iter)" = 100 ]
    [ "$(field infos)" = 101 ]
    [ "$(field done_infos)" = 1 ]
    # One policy before the first iteration, and one after each.
    [ "$(grep -o 'is of iteration [0-9]*' <<<"$stderr" | cut -d' ' -f4)" = \
        "$(echo 0 && seq 0 99)" ]
}

@test "a plugin that fails: the work is given out again, the node serves on" {
    begin --set env.fault=fail --set env.at=100
    stderr_has run "the cart fell off the table"
    call 3 ping
    [ "$status" -eq 0 ]
    touch solved
    finish run
    last_line "$rest"
    [ "$(field works)" -gt "$(field given_back)" ]
    [ "$(field given_back)" -gt 0 ]
}

@test "nodes that were started one by one, and a coordinator started again" {
    local folder=$PWD/sockets id
    mkdir "$folder"
    for id in 5 4 3 2 1 0; do
        start "n$id" node job.yaml --id $id --json --set "world.dir=$folder"
    done
    for id in 1 2 3 4 5; do
        event "n$id" '"started"'
    done
    event n0 '"evaluation"'
    kill -9 "${pid_of[n0]}"
    wait "${pid_of[n0]}" || true
    touch solved
    start again node job.yaml --id 0 --json --set "world.dir=$folder"
    finish again
    [ "$code" -eq 0 ] || { echo "$err" >&2; return 1; }
    last_line "$rest"
    [ "$(field train_iter)" -gt 0 ]
    for id in 1 2 3 4 5; do
        finish "n$id"
        [ "$code" -eq 0 ] || { echo "node $id: $err" >&2; return 1; }
    done
    only_policy_is_left
}

@test "a coordinator that does not come back: its members give up" {
    local folder=$PWD/sockets id
    mkdir "$folder"
    for id in 0 1 2 3 4 5; do
        start "n$id" node job.yaml --id $id --json --set "world.dir=$folder" \
            --set coordinator.patience_s=0.5
    done
    for id in 1 2 3 4 5; do
        event "n$id" '"started"'
    done
    event n0 '"evaluation"'
    kill -9 "${pid_of[n0]}"
    for id in 1 2 3 4 5; do
        finish "n$id"
        [ "$code" -eq 69 ] || { echo "node $id: $code $err" >&2; return 1; }
    done
}

@test "who was frozen, and declared lost, ends where no coordinator comes back" {
    local folder=$PWD/sockets id
    mkdir "$folder"
    sed -i 's/coordinator, on_loss: restart/coordinator, on_loss: fail/' job.yaml
    for id in 0 1 2 3 4 5; do
        start "n$id" node job.yaml --id $id --json --set "world.dir=$folder"
    done
    for id in 1 2 3 4 5; do
        event "n$id" '"started"'
    done
    event n0 '"evaluation"'
    kill -STOP "${pid_of[n5]}"
    for id in 0 1 2 3 4; do # none is left that has it as a member
        stderr_has "n$id" "bus: node 5 ("
    done
    kill -CONT "${pid_of[n5]}"
    finish n5
    [ "$code" -eq 69 ] || { echo "node 5: $code $err" >&2; return 1; }
    touch solved
    for id in 0 1 2 3 4; do
        finish "n$id"
        [ "$code" -eq 0 ] || { echo "node $id: $code $err" >&2; return 1; }
    done
}

@test "check shows the coordinator" {
    run "$LOCKSTEP" check "$SOURCE_DIR/configs/cartpole-service.yaml"
    [ "$status" -eq 0 ]
    says "coordinator"
    says "learner work: until it is solved"
    says "collector work: as long as somebody learns, trajectories of 128 steps; by a collector within 30 s"
    says "evaluation work: 20 episodes"
    says "by a collector within 30 s, before collector works"
    says "  epoch     learner_learn_task on node 1, 2 (role:learner), puts out policy"
    says "  exit      collector_close_task on node 3, 4, 5 (role:collector), puts out value"
    run "$LOCKSTEP" check "$SOURCE_DIR/configs/cartpole-service.yaml" --json \
        --set coordinator.learner_expiry_s=7
    says '{"work":"learner","role":"learner","ranks":1,"wait_s":7'
}
