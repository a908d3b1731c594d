# A service job with a member that lies: what it says is refused, counted and
# named, nobody dies, and the job is solved by the others. tests/e2e/liar tells
# what the liar can say.
load helpers
load service

setup() {
    enter_scratch
    export LOCKSTEP_PLUGIN_PATH=$plugins
    liar=$BUILD_DIR/tests/e2e/liar/liar
    sockets=$PWD/sockets
    mkdir "$sockets"
    service_job
}

teardown() {
    local pid
    for pid in "${pid_of[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" || true
    done
}

# node ID ARGUMENT...: of the job, as n<ID>.
node() {
    local id=$1
    shift
    start "n$id" node job.yaml --id "$id" --json --set "world.dir=$sockets" "$@"
}

# lie ID ROLE HOW: the liar as that node.
lie() {
    local fd
    mkfifo liar.out liar.in
    "$liar" "$sockets" "$@" <liar.in >liar.out 2>liar.err 3>&- &
    pid_of[liar]=$!
    exec {in}>liar.in
    exec {fd}<liar.out
    fd_of[liar]=$fd
}

# call ARGUMENT...: of that job.
call() {
    run --separate-stderr "$LOCKSTEP" call job.yaml "$@" \
        --set "world.dir=$sockets"
}

# truthful ID...: these and the coordinator, which has been started before, end
# well; nothing is left of the job. Its summary is $line.
truthful() {
    local id
    touch solved
    finish n0
    [ "$code" -eq 0 ] || { echo "node 0: exit $code: $err" >&2; return 1; }
    last_line "$rest"
    [ "$(field solved)" = true ]
    local summary=$line
    for id; do
        finish "n$id"
        [ "$code" -eq 0 ] || { echo "node $id: $code: $err" >&2; return 1; }
    done
    kill -0 "${pid_of[liar]}" || { cat liar.err >&2; return 1; }
    exec {in}>&-
    finish liar
    [ "$code" -eq 0 ] || { echo "liar: $err" >&2; return 1; }
    line=$summary
    only_policy_is_left
}

# a_lying_collector HOW TEXT: beside two that do not lie; the coordinator says
# the text of it.
a_lying_collector() {
    local id
    for id in 0 1 2 3 4; do
        node $id
    done
    lie 5 collector "$1"
    event liar "asked ${3:-collector_data_task}"
    stderr_has n0 "$2"
    for id in 1 2 3 4; do # on a slow machine the job may else be over before
        event "n$id" '"started"'
    done
    learns n0
}

@test "an answer that is none is refused, counted, and named" {
    a_lying_collector garbage "node 5 sends a malformed answer to collector_data_task"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "an answer that is not a map" {
    a_lying_collector nil "node 5 sends a malformed answer to collector_data_task"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "a field that nobody knows" {
    a_lying_collector unknown "surprise"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "a field that is missing" {
    a_lying_collector missing "cur_step"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "data for a work that there is not" {
    a_lying_collector work "task_id collect_9999"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "data for another attempt" {
    a_lying_collector attempt "node 5 sends a malformed answer to collector_data_task"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "data for a buffer that there is not" {
    a_lying_collector buffer "buffer_id: nowhere"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "three such answers take its work away, and another does it" {
    a_lying_collector unknown "three of its answers in a row were malformed"
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 3 ]
    [ "$(field requeued)" -ge 1 ]
}

@test "an answer that is larger than one may be" {
    a_lying_collector large "it was too large"
    call 0 stats --json
    line=$output
    [ "$(field calls_malformed)" -ge 1 ]
    truthful 1 2 3 4
}

@test "messages that are none" {
    a_lying_collector broken "it is broken"
    call 0 stats --json
    line=$output
    [ "$(field calls_malformed)" -ge 1 ]
    truthful 1 2 3 4
}

@test "who cannot tell what it has to offer gets no work" {
    a_lying_collector resource "node 5 sends a malformed answer to resource" resource
    truthful 1 2 3 4
    [ "$(field refused_data)" -ge 1 ]
}

@test "an answer that comes 100 times counts once, and later calls complete" {
    node 0
    node 1
    node 2
    node 3
    lie 5 collector replay
    local n
    for n in 1 2 3 4 5 6 7 8 9 10; do
        event liar "asked collector_data_task"
    done
    learns n0
    call 0 stats --json
    line=$output
    [ "$(field calls_stale)" -ge 891 ]
    [ "$(field calls_malformed)" = 0 ]
    until [ "$(field calls_started)" -ge 1000 ]; do
        learns n0
        call 0 stats --json
        line=$output
    done
    truthful 1 2 3
    [ "$(field refused_data)" = 0 ]
    # One close for each work that it has begun: none was done twice. The last
    # line that was read above is of a work that is open.
    [ "$(grep -c collector_close_task <<<"$rest")" = \
        $(($(grep -c collector_start_task <<<"$rest") + 1)) ]
}

@test "answers to calls that nobody made" {
    node 0
    node 1
    node 3
    lie 5 collector stranger
    event liar "asked collector_close_task"
    learns n0
    call 0 stats --json
    line=$output
    [ "$(field calls_stale)" -ge 100 ]
    truthful 1 3
    [ "$(field refused_data)" = 0 ]
}

@test "a learner that demands what is not a batch: another one learns" {
    node 0 --set coordinator.retry_s=3
    lie 2 learner missing
    stderr_has n0 "node 2 sends a malformed answer to learner_get_data_task"
    node 1 --set coordinator.retry_s=3
    node 3 --set coordinator.retry_s=3
    event n0 '"evaluation"'
    learns n0
    truthful 1 3
    [ "$(field refused_data)" -ge 1 ]
    [ "$(field requeued)" -ge 1 ]
}

@test "a caller from the shell may say much, and nothing unknown" {
    node 0
    node 1
    node 3
    event n0 '"evaluation"'
    # As large as the shell lets an argument be.
    call 1 ping "{a: \"$(printf '%0130000d' 0)\"}"
    [ "$status" -eq 0 ] || { echo "$status $stderr" >&2; return 1; }
    call 1 resource '{a: 1}' --json
    [ "$status" -eq 1 ]
    [[ $output == *'"failed"'*"no such field"* ]]
    learns n0
    lie 5 collector garbage
    event liar "asked collector_data_task"
    truthful 1 3
    grep -q "resource.*a: there is no such field" n1.err
}

# serve: a learner with a master of ours, who says what to do; policies are in
# files, since nobody keeps them on the bus.
serve() {
    local fd
    sed -i 's/^coordinator:/&\n  data: {store: files}/' job.yaml
    mkdir -p out/job/latest/data out/job/latest/policy # as a coordinator would
    node 1
    mkfifo master.out master.in
    "$BUILD_DIR/tests/e2e/master/master" "$sockets" 1 \
        <master.in >master.out 2>master.err 3>&- &
    pid_of[master]=$!
    exec {tell}>master.in
    exec {fd}<master.out
    fd_of[master]=$fd
    tell connect
    event master connected
}

tell() {
    echo "$*" >&$tell
}

# begin_work TASK: what is asked, to begin that one.
begin_work() {
    echo "learner_start_task {task_info: {task_id: $1, attempt: 1," \
        "policy_id: policy_$1, buffer_id: buffer_$1, learner_id: learner_1," \
        "learner_cfg: {batch_size: 4, iterations: 10, send_policy_freq: 1," \
        "send_info_freq: 1}, done: 0, resource_info: {gpu: 0, cpu: 1}," \
        "ranks: []}}"
}

# dismiss: the master leaves, with nothing wrong: so that was all.
dismiss() {
    exec {tell}>&-
    finish master
    [ "$code" -eq 0 ] || { echo "master: $err" >&2; return 1; }
    finish n1
    [ "$code" -eq 0 ] || { echo "node 1: $code $err" >&2; return 1; }
}

@test "a learner has one master, and one work at a time" {
    serve
    tell "ask $(begin_work one)"
    event master "learner_start_task completed"
    tell "ask $(begin_work two)"
    event master "learner_start_task start_failed 601"
    [[ $line == *one* ]]
    call 1 ls.connect --json
    [ "$status" -eq 1 ]
    [[ $output == *'"start_failed","code":501'* ]]
    call 1 ls.connect --json --channel 9
    [[ $output == *'"start_failed","code":202'* ]]
    call 1 learner_get_data_task '{task_id: one, attempt: 1}' --json
    [[ $output == *'"start_failed","code":502'* ]]
    tell "ask learner_get_data_task {task_id: one, attempt: 2}"
    event master "learner_get_data_task start_failed 602"
    tell "ask learner_close_task {task_id: two, attempt: 1}"
    event master "learner_close_task start_failed 602"
    tell "ask learner_close_task {task_id: one, attempt: 1}"
    event master "learner_close_task completed"
    dismiss
}

@test "a work that was closed leaves nothing to the one after it" {
    serve
    local n
    for n in 1 2 3; do
        tell "ask $(begin_work "w$n")"
        event master "learner_start_task completed"
        tell "ask learner_get_data_task {task_id: w$n, attempt: 1}"
        event master "learner_get_data_task completed"
        [[ $line == *"\"task_id\":\"w$n\""*"\"batch_size\":4"* ]]
        tell "open learner_get_data_task {task_id: w$n, attempt: 1}"
        event master opened
        tell "ask learner_close_task {task_id: w$n, attempt: 1}"
        event master "learner_close_task completed"
        tell wait
        event master "learner_get_data_task"
        [[ $line != *completed* || $line == *"\"w$n\""* ]]
        tell "ask learner_get_data_task {task_id: w$n, attempt: 1}"
        event master "learner_get_data_task start_failed 602"
    done
    tell "ask resource {}"
    event master "resource completed"
    [[ $line != *task_id* ]]
    dismiss
}

# bats test_tags=slow
@test "kill -9 of the busy learner: all iterations are done all the same" {
    local id busy=
    sed -i 's/^coordinator:/&\n  iterations: 400/
            s/prize: solved/&, gate: killed, at: 2000/' job.yaml
    for id in 0 1 2 3; do
        node $id
    done
    until [ -n "$busy" ]; do # then it stands still: nothing more is collected
        for id in 1 2; do
            call $id resource --json
            [[ $output != *'"learn_1"'*'"progress":'[1-9]* ]] || busy=$id
        done
    done
    kill -9 "${pid_of[n$busy]}"
    touch killed
    finish n0
    [ "$code" -eq 0 ] || { echo "node 0: exit $code: $err" >&2; return 1; }
    last_line "$rest"
    [ "$(field train_iter)" = 400 ]
    [ "$(field done_infos)" = 1 ]
    [ "$(field requeued)" -ge 1 ]
}

# bats test_tags=slow
@test "who stands still when the others are done is left behind" {
    start n0 run job.yaml --json --timeout 100
    nodes_of n0 6
    event n0 '"evaluation"'
    kill -STOP "${nodes[5]}"
    touch solved
    finish n0
    [ "$code" -eq 0 ] || { echo "exit $code: $err" >&2; return 1; }
    last_line "$rest"
    [ "$(field solved)" = true ]
    [[ $rest == *"node 5 (collector) did not end within"* ]]
    all_gone
    only_policy_is_left
}

@test "of a run that was ended is left what was learned, and what it goes on from" {
    local store left
    for store in bus files; do
        rm -f n0.out
        start n0 run job.yaml --json --timeout 100 --fresh \
            --set coordinator.data.store=$store
        nodes_of n0 6
        event n0 '"evaluation"'
        learns n0
        kill -9 "${nodes[0]}"
        event n0 '"started"' '"node":0,'
        nodes[0]=$(field pid)
        learns n0
        kill -INT "${pid_of[n0]}"
        finish n0
        [ "$code" -eq 130 ] || { echo "exit $code: $err" >&2; return 1; }
        all_gone
        left=$'journal\npolicy\npolicy.msgpack'
        [ $store = bus ] || left=$'data\n'$left
        [ "$(kept)" = "$left" ]
    done
}
