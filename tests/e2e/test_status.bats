# lockstep status and top: a running job, asked live; and orderly stops.
load helpers

setup() {
    enter_scratch
}

teardown() {
    local pid
    for pid in "${nodes[@]}"; do
        kill -CONT "$pid" 2>/dev/null || true
    done
    end_started
}

# status ARGUMENT...: briefly.
status() {
    run --separate-stderr "$LOCKSTEP" status --every 0.1 "$@"
}

# node_line ID: what the JSON of status says of it, as $line.
node_line() {
    line=${output#*"{\"node\":$1,"}
    [ "$line" != "$output" ]
    line="{\"node\":$1,${line%%\}*}}"
}

# becomes ID KEY VALUE ARGUMENT...: asked again and again.
becomes() {
    local id=$1 key=$2 value=$3 n
    shift 3
    for ((n = 0; n < 60; n++)); do
        status --json "$@"
        if [ "$status" -eq 0 ] && node_line "$id" &&
            [ "$(field "$key")" = "$value" ]; then return 0; fi
    done
    echo "node $id never has $key $value: $output $stderr" >&2
    return 1
}

@test "a run in step: each node with its step; one that is stopped, and whom all wait for" {
    four_nodes "world: {transport: ipc, silence_ms: 60000}"
    begin
    status out/job/latest
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "job, in $PWD/out/job/1: 4 of 4 nodes answer, "* ]]
    [[ ${lines[2]} =~ ^" "+0" "+learner" "+[^\ ]+" ${nodes[0]} " ]]
    [[ ${lines[5]} =~ ^" "+3" "+evaluator" "+[^\ ]+" ${nodes[3]} " ]]

    kill -STOP "${nodes[1]}"
    becomes 1 state silent out/job
    [ "$(field role)" = collector ]
    [[ $(field heard_s) =~ ^[0-9] ]]
    becomes 0 iterations_per_s 0.0 out/job/1
    [[ $output == *'"n_answer":3,'* ]]
    status out/job/1
    [ "$status" -eq 0 ]
    says "1  collector    does not answer, last heard by others "
    kill -STOP "${nodes[@]}"
    status out/job/1
    [ "$status" -eq 75 ]
    [[ ${lines[0]} == *": 0 of 4 nodes answer, "* ]]
    [[ $stderr == *"none of the nodes has answered"* ]]
    kill -CONT "${nodes[@]}"
    becomes 1 state running job.yaml
    ends_solved
    status out/job/1
    [ "$status" -eq 69 ]
    [[ $stderr == *"out/job/1 has ended"* ]]
}

@test "threads, and a watch to the end of the run" {
    four_nodes
    start run run job.yaml --json --timeout 100 --as threads
    event run '"evaluation"'
    start watch status out/job/1 --watch --json --every 0.1
    event watch '"n_answer":4,' "\"pid\":${pid_of[run]},"
    event watch '"n_answer":4,'
    touch solved
    finish run
    finish watch
    [ "$code" -eq 0 ]
    said "out/job/1 has ended"
}

@test "a coordinator and its members; one that is killed is gone" {
    sed -e 's/^job: .*/job: job/' "$SOURCE_DIR/configs/cartpole-service.yaml" \
        >job.yaml
    start run run job.yaml --json --timeout 100 "${endless[@]}"
    event run '"progress"'
    becomes 0 role coordinator out/job/1
    becomes 0 state idle out/job/1
    node_line 1
    [ "$(field role)" = learner ]
}

@test "nodes that were started by hand: found without a file; one that is gone" {
    by_hand 'every: 1000' # nobody reads what it says
    three
    event n0 '"progress"'
    status --json out/job/1
    [ "$status" -eq 0 ]
    [[ $output == *'"n_answer":3,'* ]]
    kill -KILL "${pid_of[n1]}"
    becomes 1 state gone out/job/1
    [ "$(field role)" = collector ]
    becomes 1 seen_as lost out/job/1
    [[ $(field heard_s) =~ ^[0-9] ]]
    status out/job/1
    says "1  collector    gone, last heard by others "
    status job.yaml
    says "1  collector    gone, last heard by others "
}

@test "members have a run too, and leave their recordings" {
    printf '%s\n' 'job: job' 'nodes: [{role: member, count: 3}]' \
        'barrier: {epochs: 1000000}' >job.yaml
    start run run job.yaml --json --timeout 100
    nodes_of run 3
    becomes 2 role member out/job/1
    [[ $output == *'"n_answer":3,'* ]]
    kill -USR1 "${pid_of[run]}"
    local id
    for id in 0 1 2; do
        until [ -s out/job/1/trace/node-$id.lstrace ]; do
            status out/job/1
            [ "$status" -eq 0 ]
        done
    done
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
}

@test "SIGUSR1 to a run of threads writes what all its nodes did last" {
    four_nodes
    start run run job.yaml --json --timeout 100 --as threads
    event run '"evaluation"'
    kill -USR1 "${pid_of[run]}"
    local id
    for id in 0 1 2 3; do
        until [ -s out/job/1/trace/node-$id.lstrace ]; do
            event run '"evaluation"'
        done
    done
    touch solved
    finish run
    [ "$code" -eq 0 ]
}

@test "what is not a run, or does not run: each with its exit code" {
    status
    [ "$status" -eq 2 ]
    [[ $stderr == *"lockstep status out/cartpole/latest"* ]]
    status nowhere
    [ "$status" -eq 78 ]
    [[ $stderr == *"nowhere: there is no such run"* ]]
    mkdir empty
    status empty
    [ "$status" -eq 78 ]
    [[ $stderr == *"empty is not the folder of a run"* ]]
    status --every 0 empty
    [ "$status" -eq 2 ]

    four_nodes
    status job.yaml
    [ "$status" -eq 69 ]
    [[ $stderr == *"job.yaml: no node of it runs on this host"* ]]
    begin
    status out/job/1 --set a=b
    [ "$status" -eq 2 ]
    cp out/job/1/run.yaml whole.yaml
    echo 'pid: many' >out/job/1/run.yaml
    status out/job/1
    [ "$status" -eq 78 ]
    [[ $stderr == *"run.yaml:1:"* ]]
    mv whole.yaml out/job/1/run.yaml
    kill -KILL "${pid_of[run]}"
    all_go
    status out/job/1
    [ "$status" -eq 69 ]
    [[ $stderr == *"out/job/1 was interrupted"* ]]
    # Somebody has just begun with it.
    exec 7<>out/job/1/record
    flock 7
    status out/job/1
    exec 7>&-
    [ "$status" -eq 75 ]
    [[ $stderr == *"try again"* ]]
    echo x >out/job/1/record
    status out/job/1
    [ "$status" -eq 1 ]
    [[ $stderr == *"out/job/1/record is not a record of a run"* ]]
}

@test "top draws on a terminal, follows its size, and leaves it as it was" {
    run --separate-stderr "$LOCKSTEP" top nowhere </dev/null
    [ "$status" -eq 2 ]
    [[ $stderr == *"needs a terminal"*"lockstep status --watch" ]]
    four_nodes
    begin
    python3 "$SOURCE_DIR/tests/e2e/terminal.py" "$LOCKSTEP" top out/job/1
    ends_solved
}

@test "an orderly stop is no failure where that is asked for, and the run goes on later" {
    by_hand 'every: 1000' # nobody reads what it says
    three --stop-is-done
    event n0 '"progress"'
    kill -TERM "${pid_of[n1]}"
    finish n1
    [ "$code" -eq 0 ] || { echo "n1: $code: $err" >&2; false; }
    kill -TERM "${pid_of[n0]}" "${pid_of[n2]}"
    local name
    for name in n0 n2; do
        finish $name
        [ "$code" -eq 0 ] || { echo "$name: $code: $err" >&2; false; }
    done
    [ "$(grep -c ended out/job/1/record)" -eq 0 ]
    rm n?.out
    three
    event n0 '"progress"'
    [ "$(cd out/job && echo *)" = "1 latest" ]
    kill -TERM "${pid_of[n0]}"
    finish n0
    [ "$code" -eq 143 ]
}
