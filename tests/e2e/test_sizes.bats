# What a job moves and keeps, in bytes: one that has no room for it is refused
# before it begins, and a store that fills up makes the replay buffer smaller.
load helpers

setup() {
    enter_scratch
    export LOCKSTEP_PLUGIN_PATH=$plugins
    cat >job.yaml <<'END'
job: job
plugin: faulty
world: {transport: ipc}
nodes: [{role: coordinator}, {role: learner}, {role: collector, count: 2}]
collector: {steps: 4}
coordinator:
  iterations: 60
  eval_interval_s: 0.2
  batch: 2
  samples_per_work: 0
  replay: {mode: priority, capacity: 1000, samples_per_insert: 1}
env: {observation: 16384}
evaluator: {episodes: 1}
END
    sed 's/{role: coordinator}, //; s/count: 2}/&, {role: evaluator}/
        /^coordinator/,/replay/d' job.yaml >in_step.yaml
}

# refused FILE TEXT ARGUMENT...: alike by all that would begin with it.
refused() {
    local file=$1 text=$2 command
    shift 2
    for command in check run "node --id 1"; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr "$LOCKSTEP" $command "$file" "$@"
        [ "$status" -eq 78 ]
        [ -z "$output" ]
        output=$stderr
        says "$text"
    done
}

@test "a sample, an iteration or a policy that no message takes" {
    local big='--set env.observation=1048576'
    refused job.yaml "a sample of 256 steps has 2147486464 bytes, and the store \
takes 1073741824 at most: lower collector.steps, or say coordinator.data" \
        $big --set collector.steps=256
    refused job.yaml "lower coordinator.unroll" $big --set coordinator.unroll=256
    refused in_step.yaml "in_step.yaml:5:20: a collector sends 4 steps of each of \
2 environments in one message: 67109456 bytes" $big --set collector.envs=2
    refused job.yaml "the store has room for 256 MiB, and 314 are needed" \
        --set policy.bytes=80000000
    refused in_step.yaml "the policy has 80000007 bytes" \
        --set policy.bytes=80000000
}

@test "a store that has no room for a batch" {
    refused job.yaml "coordinator.data.max_mib:1:1: the store has room for 8 MiB, \
and 9 are needed: 5 for what a learner has and waits for (8 of 524584 bytes), 5 \
for what collectors have ready, 1 for policies: raise coordinator.data.max_mib" \
        --set coordinator.data.max_mib=8
    "$LOCKSTEP" check job.yaml --set coordinator.data.store=files
    refused job.yaml "and 508 are needed: 504 for what a learner has" \
        --set coordinator.replay.min_size=1000
}

@test "check says how many samples there is room for" {
    run "$LOCKSTEP" check job.yaml
    [ "$status" -eq 0 ]
    says "replay: priority, up to 503 samples, all that data.max_mib takes"
    says "a trajectory has 524584 bytes, the policy 1"
    run "$LOCKSTEP" check job.yaml --json
    last_line "$output"
    [ "$(field samples_kept)" = 503 ]
    [ "$(field trajectory_bytes)" = 524584 ]
    run "$LOCKSTEP" check "$SOURCE_DIR/configs/cartpole-service.yaml"
    says "replay: fifo, up to 256 samples; data and policies: over the bus"
}

@test "a store that is full makes the replay buffer smaller" {
    run --separate-stderr "$LOCKSTEP" run job.yaml --json --timeout 100 \
        --set coordinator.data.max_mib=10
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; false; }
    last_line "$output"
    [ "$(field iteration)" = 60 ]
    # 60 iterations take 120 samples, and there is never room for 20.
    (($(field pushed_out) > 80 && $(field samples) > 100))
    [[ $stderr == *"buffer_1: the store has room for "*" samples, not for the \
1000 of coordinator.replay.capacity"* ]]
    [[ $stderr != *"no room for"* ]]
}
