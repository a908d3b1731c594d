# bats file_tags=slow
# CartPole through a coordinator, for several seeds.
load helpers

setup() {
    enter_scratch
}

@test "seeds 0 to 4 are solved" {
    local seed
    for seed in 0 1 2 3 4; do
        run --separate-stderr "$LOCKSTEP" run --json --seed $seed --timeout 60 \
            "$SOURCE_DIR/configs/cartpole-service.yaml"
        [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
        last_line "$output"
        [ "$(field solved)" = true ]
    done
}

@test "two learners together solve it, too" {
    run --separate-stderr "$LOCKSTEP" run --json --timeout 60 \
        "$SOURCE_DIR/configs/cartpole-service-dp.yaml"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    last_line "$output"
    [ "$(field solved)" = true ]
    [ "$(field requeued)" = 0 ] # all weights were equal at each commit
}

@test "in a simulation too" {
    local seed
    for seed in 0 1; do
        run --separate-stderr "$LOCKSTEP" run --json --seed $seed --timeout 600 \
            --as sim "$SOURCE_DIR/configs/cartpole-service.yaml"
        [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
        last_line "$output"
        [ "$(field solved)" = true ]
    done
}
