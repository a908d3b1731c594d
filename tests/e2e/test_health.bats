# lockstep health: whether the nodes on this host are ready and moving.
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

# health ARGUMENT...: of job.yaml.
health() {
    run --separate-stderr "$LOCKSTEP" health job.yaml "$@"
}

# becomes STATE ARGUMENT...: asked again and again, a node says so.
becomes() {
    local state=$1 n
    shift
    for ((n = 0; n < 3000; n++)); do
        health --json "$@"
        line=$output
        [ "$(field state)" != "$state" ] || return 0
    done
    echo "never $state: $output $stderr" >&2
    return 1
}

@test "the nodes of a run move; one that is stopped is silent, the rest is stuck" {
    four_nodes "world: {transport: ipc, silence_ms: 60000}"
    begin
    health
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 4 ]
    [[ ${lines[0]} =~ ^"node 0 (learner): moving, iteration "[0-9]+ ]]
    [[ ${lines[3]} == "node 3 (evaluator): moving"* ]]
    health --id 2 --json
    [ "$status" -eq 0 ]
    line=$output
    [ "$(field node)" = 2 ]
    [ "$(field role)" = collector ]
    [ "$(field healthy)" = true ]
    [ "$(field iteration)" -ge 1 ]

    kill -STOP "${nodes[1]}"
    health --id 1
    [ "$status" -eq 1 ]
    [[ $output == "node 1 (collector): silent"*"does not answer" ]]
    becomes stuck --id 0 --within 0.05
    [ "$status" -eq 1 ]
    [ "$(field healthy)" = false ]
    [ "$(field unmoved_ms)" -ge 50 ]
    [[ $line == *'"at":"in step '* ]]
    health
    [ "$status" -eq 1 ]
    kill -CONT "${nodes[1]}"
    becomes moving --id 0 --within 0.05
    ends_solved
    health
    [ "$status" -eq 69 ]
    [[ $stderr == *"no node of it runs on this host"*"out/job"* ]]
}

@test "a node that waits for its world is starting" {
    by_hand
    start n0 node job.yaml --id 0 --json
    event n0 '"bound"'
    health
    [ "$status" -eq 1 ]
    [ "$output" = "node 0 (learner): starting, iteration 0, joining its world" ]
    health --id 1
    [ "$status" -eq 69 ]
    [[ $stderr == *"node 1 does not run on this host"* ]]
    health --id 9
    [ "$status" -eq 2 ]
    health --out elsewhere
    [ "$status" -eq 69 ]
}

@test "threads answer each for itself, and the plugin is not asked" {
    four_nodes
    start run run job.yaml --json --timeout 100 --as threads
    event run '"evaluation"'
    LOCKSTEP_PLUGIN_PATH=nowhere health
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 4 ]
    touch solved
    finish run
    [ "$code" -eq 0 ]
}

@test "a coordinator that awaits news is idle, and well" {
    sed -e 's/^job: .*/job: job/' "$SOURCE_DIR/configs/cartpole-service.yaml" \
        >job.yaml
    start run run job.yaml --json --timeout 100 "${endless[@]}"
    event run '"progress"'
    becomes idle --id 0
    [ "$status" -eq 0 ]
    local n
    for ((n = 0; n < 3000; n++)); do # some may be starting yet
        health
        [ "$status" -ne 0 ] || break
    done
    [ "$status" -eq 0 ]
}
