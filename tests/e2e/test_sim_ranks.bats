# Learners that do one work together, in one thread: no work is done twice, none is
# lost, and all have the same weights, whatever goes wrong.
# bats file_tags=simulated
load helpers
load sweeps

setup() {
    enter_scratch
    sed 's/count: 2, on_loss: restart}/count: 3, on_loss: restart}/' \
        "$SOURCE_DIR/configs/service.yaml" >ranks.yaml
    echo 'learner: {driver: bus, ranks: 2}' >>ranks.yaml
    job=$PWD/ranks.yaml
}

# above FIELD...: each is greater than zero.
above() {
    local name
    for name; do
        ((10#$(field "$name") > 0)) || { echo "no $name" >&2; return 1; }
    done
}

@test "without faults one attempt does it all" {
    holds 5 --faults none
    [ "$(field retried)" = 0 ]
    [ "$(field joined)" = "$(seeds 5)" ]
    [ "$(field versions)" = $((21 * $(seeds 5))) ]
}

@test "everything at once" {
    holds 20
    above kill pause cut lost doubled retried takeovers unanswered
    (($(field joined) > $(seeds 20)))
}

@test "everything at once, with three ranks and a buffer that is kept" {
    holds 20 --set learner.ranks=3 --set coordinator.batch=3 \
        --set coordinator.data.store=files --set checkpoint.replay=true
    above takeovers
    [ -n "$LOCKSTEP_SANITIZE" ] || above carried # few seeds need not
}

@test "each rank is killed in turn, and no iteration is committed twice" {
    printf 'script:\n  - {at: 1, kill: 1, for_ms: 300}\n' >k.yaml
    printf '  - {at: 2, kill: 2, for_ms: 300}\n' >>k.yaml
    printf '  - {at: 3, kill: 3, for_ms: 300}\n' >>k.yaml
    holds 10 --faults k.yaml
    above retried
    [ "$(field versions)" = $((21 * $(seeds 10))) ]
}

@test "a coordinator that comes back takes over what the ranks do" {
    printf 'script: [{at: 1, kill: 0, for_ms: 300}]\n' >k.yaml
    holds 10 --faults k.yaml
    [ "$(field takeovers)" = "$(seeds 10)" ]
    [ "$(field retried)" = 0 ]
    [ "$(field joined)" = "$(seeds 10)" ]
}

@test "the shipped job" {
    job=$SOURCE_DIR/configs/cartpole-service-dp.yaml
    holds "${SEEDS:-1}"
}

@test "the same seed is the same run" {
    "$LOCKSTEP" sim "$job" --seed 7 --event-log a.log
    "$LOCKSTEP" sim "$job" --seed 7 --event-log b.log
    cmp a.log b.log
    grep -q 'joins work learn_1' a.log
}

# bats test_tags=slow
# bats test_tags=slow
@test "a rank that learns on from other weights is found out" {
    found own-weights
}
