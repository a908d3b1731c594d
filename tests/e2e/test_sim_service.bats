# A service cluster in one thread: no work is done twice, none is lost, and no
# call is left open, whatever goes wrong.
# bats file_tags=simulated
load helpers
load sweeps

setup() {
    enter_scratch
    job=$SOURCE_DIR/configs/service.yaml
}

# above FIELD...: each is greater than zero.
above() {
    local name
    for name; do
        ((10#$(field "$name") > 0)) || { echo "no $name" >&2; return 1; }
    done
}

@test "without faults each work is done in its first attempt" {
    holds 20 --faults none
    above works calls samples batches
    [ "$(field retried)" = 0 ]
    [ "$(field takeovers)" = 0 ]
    # version 0, and one of each iteration
    [ "$(field versions)" = $((21 * $(seeds 20))) ]
}

@test "everything at once" {
    holds 100
    above kill pause cut lost doubled
    above retried takeovers unanswered
}

@test "everything at once, with bodies in shared memory, which they fill" {
    holds 20 --set world.shared_mib=1 --set collector.steps=2048
    above kill retried
    LS_LOG=info run "$LOCKSTEP" sim "$job" --seeds 1 --faults none \
        --set world.shared_mib=1 --set collector.steps=2048
    [[ $output == *"share memory"* ]]
}

@test "everything at once, with samples by priority" {
    holds 20 --set coordinator.replay.mode=priority \
        --set coordinator.replay.max_times_sampled=2
}

@test "everything at once, until a value is reached" {
    holds 20 --set coordinator.iterations=0 --set evaluator.solved=12
}

@test "everything at once, in a star" {
    holds 20 --set world.topology=star
}

@test "everything at once, with files in place of the bus" {
    holds 20 --set coordinator.data.store=files
}

@test "everything at once, with a buffer that is kept" {
    local kept=(--set coordinator.data.store=files --set checkpoint.replay=true)
    holds 60 "${kept[@]}" # enough of them with a sanitizer, too
    above takeovers carried power full
    holds 10 "${kept[@]}" --set coordinator.replay.mode=priority \
        --set coordinator.replay.max_times_sampled=2 \
        --set coordinator.split=2
    above takeovers carried
}

@test "a coordinator that comes back takes over what is held" {
    printf 'script: [{at: 1, kill: 0, for_ms: 300}]\n' >k.yaml
    holds 20 --faults k.yaml
    [ "$(field takeovers)" = "$(seeds 20)" ]
    [ "$(field retried)" = 0 ]
    [ "$(field versions)" = $((21 * $(seeds 20))) ]
}

@test "when learners are killed no iteration is committed twice" {
    printf 'script:\n  - {at: 1, kill: 1, for_ms: 300}\n' >k.yaml
    printf '  - {at: 1.5, kill: 2, for_ms: 300}\n' >>k.yaml
    holds 20 --faults k.yaml
    above retried
    [ "$(field versions)" = $((21 * $(seeds 20))) ]
}

@test "a learner that takes over goes on with all that the one before knew" {
    local seed
    printf 'script:\n  - {at: 0.5, kill: 1, for_ms: 300}\n' >k.yaml
    printf '  - {at: 1, kill: 2, for_ms: 300}\n' >>k.yaml
    for seed in {1..6}; do
        "$LOCKSTEP" sim "$job" --seed $seed --faults k.yaml --event-log log
        [ "$(grep -c 'node [12]/.* loads .*, and its training$' log)" = 2 ]
    done
}

@test "each kind of fault by itself" {
    local faults
    for faults in lossy cuts pauses crashes; do
        holds 15 --faults "$faults"
    done
}

@test "power goes again and again, and disks are full" {
    local store
    for store in bus files; do
        holds 15 --faults "$SOURCE_DIR/configs/faults/power.yaml" \
            --set coordinator.data.store=$store
        above power full takeovers
    done
}

@test "the same seed is the same run" {
    "$LOCKSTEP" sim "$job" --seed 7 --event-log a.log
    "$LOCKSTEP" sim "$job" --seed 7 --event-log b.log
    cmp a.log b.log
    grep -q 'fault: ' a.log
    grep -q 'begins work ' a.log
    grep -q 'commits version ' a.log
}

@test "a sweep touches nothing of the disk" {
    mkdir -p tmp out/service/policy out/service/data
    echo mine | tee out/service/journal out/service/policy/policy_1 \
        >out/service/data/data_1
    local before
    before=$(find . -type f -exec md5sum {} +)
    TMPDIR=$PWD/tmp "$LOCKSTEP" sim "$job" --seeds 2
    TMPDIR=$PWD/tmp "$LOCKSTEP" sim "$job" --seeds 2 \
        --set coordinator.data.store=files
    [ "$(find . -type f -exec md5sum {} +)" = "$before" ]
    [ -z "$(ls tmp)" ]
}

# bats test_tags=slow
@test "a work that is given out again as if it were the same is found out" {
    found same-attempt
}

# A collector has some ready only where there is room for more than is drawn next.
# bats test_tags=slow
# bats test_tags=slow
@test "samples of the work before are found out" {
    sed 's/samples_per_insert: 1/&, error_buffer: 8/' "$job" >room.yaml
    grep -q error_buffer room.yaml
    job=room.yaml
    found stale-samples
}

# bats test_tags=slow
# bats test_tags=slow
@test "a learner that begins anew is found out" {
    found from-scratch
}

# bats test_tags=slow
# bats test_tags=slow
@test "a learner that was replaced and still commits is found out" {
    found no-fencing "$SOURCE_DIR/configs/faults/storm.yaml" 150
}

# bats test_tags=slow
@test "a sabotage of something else is none" {
    run --separate-stderr "$LOCKSTEP" sim "$job" --sabotage eager
    [ "$status" -eq 2 ]
    [[ $stderr == *"--sabotage eager: "* ]]
}
