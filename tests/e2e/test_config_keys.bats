# What keys of a service job change, each by itself, in a simulation: the same
# job with one value more. tests/nodes/test_plan_keys.c has the list of all keys.
load helpers

setup() {
    enter_scratch
    job=$SOURCE_DIR/configs/service.yaml
}

# sum KEY=VALUE...: the summary of the job with these of the coordinator, and
# with $key and $faults, is $line.
sum() {
    local each
    local -a sets=()
    [ -z "${key:-}" ] || sets=(--set "$key")
    [ -z "${faults:-}" ] || sets=(--faults "$faults")
    for each; do
        sets+=(--set "coordinator.$each")
    done
    run --separate-stderr "$LOCKSTEP" run "$job" --as sim --json --fresh \
        "${sets[@]}"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    last_line "$output"
}

# is KEY OPERATOR VALUE...: of $line; numbers may have a point.
is() {
    local key
    while [ $# -gt 0 ]; do
        key=$(field "$1")
        awk "BEGIN { exit !($key $2 $3) }" || {
            echo "expected $1 $2 $3, and it is $key" >&2
            return 1
        }
        shift 3
    done
}

@test "without them: 20 iterations of 2 new samples each" {
    sum
    is iteration == 20 samples '<' 50 infos == 21 evicted_stale == 0
    is evicted_full == 0 staleness '<' 1 env_step == '8*'"$(field samples)"
    is batches == 20 works '>' 1 commits == 21 staleness_max '<' 2
    is given_back == 0 refused_calls == 0 store_refused == 0 dropped_samples == 0
}

# bats test_tags=slow
@test "samples_per_work: 0, and a collector is there to evaluate" {
    run --separate-stderr "$LOCKSTEP" run "$job" --as sim --json --timeout 200 \
        --set coordinator.samples_per_work=0 --set coordinator.iterations=0 \
        --set coordinator.eval_interval_s=0 \
        --set evaluator.solved=12
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; false; }
    last_line "$output"
    [ "$(field solved)" = true ]
}

@test "batch, iterations, unroll, split, ahead" {
    sum batch=4
    is iteration == 20 samples '>' 80
    sum iterations=5
    is iteration == 5 samples '<' 20
    sum unroll=16
    is env_step == '16*'"$(field samples)"
    sum split=2
    is env_step == '4*'"$(field samples)"
    sum replay.error_buffer=40 # so what is collected waits, and is older
    local behind
    behind=$(field staleness)
    sum replay.error_buffer=40 ahead=9
    is staleness '>' "$behind+1"
}

@test "send_info_freq, send_policy_freq" {
    sum send_info_freq=5
    is infos == 5
    sed '/send_info_freq/d' "$job" >quiet.yaml
    job=quiet.yaml sum
    is infos == 2
    sum send_policy_freq=20 # one version
    is staleness '<=' 1
}

@test "threads: of what a collector may make, as many at a time" {
    local alone
    sum ahead=4 replay.error_buffer=16
    alone=$(field wall_s)
    key=collector.threads=2 sum ahead=4 replay.error_buffer=16
    is iteration == 20 samples '<' 80 evicted_stale == 0
    is env_step == '8*'"$(field samples)" wall_s '!=' "$alone"
}

@test "threads: the environments are stepped at the same time" {
    local threads
    cat >job.yaml <<'END'
job: job
plugin: faulty
world: {transport: ipc}
nodes: [{role: coordinator}, {role: learner}, {role: collector}]
collector: {envs: 2, steps: 8}
coordinator:
  iterations: 10
  batch: 2
  ahead: 4
  retry_s: 0.01
  replay: {mode: fifo, capacity: 64, samples_per_insert: 1, error_buffer: 16}
env: {together: 2, at: 40}
END
    for threads in 2 1; do
        LOCKSTEP_PLUGIN_PATH=$plugins run --separate-stderr "$LOCKSTEP" run \
            job.yaml --json --timeout 60 --set collector.threads=$threads
        [ "$status" -eq $((2 - threads)) ] || { echo "$stderr" >&2; return 1; }
    done
    output=$stderr
    says "1 of 2 environments were stepped at once"
}

@test "collector_expiry_s: of works that nobody is there for" {
    local id
    echo "script:" >kills.yaml
    for id in 3 4 5; do
        echo "  - {at: 0.008, kill: $id, for_ms: 60}" >>kills.yaml
    done
    for id in "30 0" "0.01 3"; do
        run --separate-stderr "$LOCKSTEP" run "$job" --as sim --json --fresh \
            --faults kills.yaml --set "coordinator.collector_expiry_s=${id% *}"
        [ "$status" -eq 0 ]
        last_line "$output"
        is requeued == 3 expired == "${id#* }" iteration == 20
    done
}

@test "replay: max_staleness and capacity evict, and the summary tells" {
    sum replay.max_staleness=1 # nothing is collected that would be too old
    is samples '<' 44 evicted_stale '<' 4 staleness == 0
    sum replay.mode=priority replay.max_staleness=1
    is evicted_stale '>' 20 staleness == 0
    sum replay.mode=priority replay.capacity=8
    is evicted_full '>' 20 evicted_stale == 0
    run --separate-stderr "$LOCKSTEP" run "$job" --as sim --fresh \
        --set coordinator.replay.mode=priority \
        --set coordinator.replay.max_staleness=1
    says "not learned    stale "
    run --separate-stderr "$LOCKSTEP" run "$job" --as sim --fresh \
        --set coordinator.replay.mode=priority \
        --set coordinator.replay.capacity=8
    says "not learned    pushed out by newer "
}

@test "replay: what comes when the work is over is refused, and counted" {
    sum replay.samples_per_insert=0
    is late_samples '>' 0
    run --separate-stderr "$LOCKSTEP" run "$job" --as sim --fresh \
        --set coordinator.replay.samples_per_insert=0
    [[ $output =~ "too late for their work "[1-9] ]]
}

@test "data: home keeps what a collector that dies has made" {
    local id
    local -a waits=(replay.samples_per_insert=0 ahead=9 batch=4)
    echo "script:" >kills.yaml
    for id in 3 4 5; do
        echo "  - {at: 0.004, kill: $id, for_ms: 60}" >>kills.yaml
    done
    faults=kills.yaml sum "${waits[@]}"
    is evicted_lost '>' 0 iteration == 20
    faults=kills.yaml sum "${waits[@]}" data.home=0
    is evicted_lost == 0 iteration == 20
    run "$LOCKSTEP" check "$job" --set coordinator.data.home=9
    [ "$status" -eq 78 ]
    [[ $output == *"there is no node 9"* ]]
    run "$LOCKSTEP" check "$job" --set coordinator.data.home=1
    [ "$status" -eq 78 ]
    [[ $output == *"node 1 may be started again"* ]]
}

@test "replay: mode, max_times_sampled" {
    sum replay.mode=priority # any again, so older ones as well
    is staleness '>' 4
    sum replay.mode=priority replay.max_times_sampled=1
    is staleness '<' 3
    sum replay.max_times_sampled=2 replay.samples_per_insert=2
    is samples '<' 30
}

# bats test_tags=slow
@test "replay: with mode priority what learn() says decides what is drawn" {
    local -a by_priority=(iterations=100 replay.mode=priority
        replay.capacity=1000)
    sum "${by_priority[@]}" # all alike
    is staleness '>' 20 staleness '<' 32
    key=policy.priority=0 sum "${by_priority[@]}" # what is new comes first
    is staleness '<' 13
    key=policy.priority=1000 sum "${by_priority[@]}" # what was had before
    is staleness '>' 34
}

@test "replay: samples_per_insert, error_buffer, min_size, valid_ratio" {
    sum replay.mode=priority replay.samples_per_insert=4
    is samples '<' 20
    sum replay.error_buffer=20
    is samples '>' 55
    sum replay.min_size=20
    is samples '>' 55
    sum replay.valid_ratio=10
    is samples '>' 55
}

@test "the summary tells how the learner spent its time" {
    sum
    is iterations == 20 train_ms '>' 0 load_ms '>' 0 wait_ms '>' 0
    run --separate-stderr "$LOCKSTEP" run "$job" --as sim --fresh
    says "  learner        trains 0.000 ms, loads 0."
}

@test "a key that does nothing is refused: its name, the job, what to do" {
    local text command
    for text in \
        "configs/cartpole.yaml barrier.epochs=3 \
barrier does nothing in a job in lock step: it is for jobs of {role: member}" \
        "configs/cartpole.yaml sim.pace_ms=3 \
sim.pace_ms does nothing in a job in lock step: " \
        "configs/cartpole.yaml nodes.0.labels=fast \
labels does nothing: no job chooses nodes by them" \
        "configs/service.yaml checkpoint.replay=true \
with coordinator.data.store: bus the samples stay with the collectors" \
        "configs/cartpole.yaml checkpoint.replay=true \
checkpoint.replay does nothing in a job in lock step: it is for jobs" \
        "configs/service.yaml checkpoint.best=3 \
checkpoint.best does nothing in a service job: a coordinator has its journal" \
        "configs/service.yaml coordinator.replay.error_buffer=99 \
error_buffer goes with samples_per_insert" \
        "configs/barrier.yaml stop.env_step=3 \
stop.env_step does nothing in a job of members: they end after barrier.epochs"; do
        read -r file key words <<<"$text"
        [[ $key != *error_buffer* ]] ||
            key+=" --set coordinator.replay.samples_per_insert=0"
        for command in check run; do
            # shellcheck disable=SC2086 # words
            run --separate-stderr "$LOCKSTEP" $command "$SOURCE_DIR/$file" \
                --set $key
            [ "$status" -eq 78 ]
            output=$stderr
            says "$words"
        done
    done
}
