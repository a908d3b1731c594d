# bats file_tags=slow
# Every seed must do.
load helpers

setup() {
    enter_scratch
}

@test "seeds 0 to 9 are all solved, alike as processes and as threads" {
    local seed first
    for seed in 0 1 2 3 4 5 6 7 8 9; do
        last_line "$("$LOCKSTEP" run "$cartpole" --seed $seed --json \
            --out p$seed 2>/dev/null)"
        [ "$(field solved)" = true ]
        [ "$(field losses)" = 0 ]
        first=$(figures)
        last_line "$("$LOCKSTEP" run "$cartpole" --seed $seed --json \
            --out t$seed --as threads 2>/dev/null)"
        [ "$(figures)" = "$first" ]
        cmp p$seed/latest/policy.msgpack t$seed/latest/policy.msgpack
    done
}
