# lockstep bench learner: what it shows, never how fast this machine is.
load helpers

setup() {
    enter_scratch
}

# bench ARGUMENT...: as short as this machine needs for one batch.
bench() {
    local seconds
    for seconds in 0.2 2 20; do
        run --separate-stderr "$LOCKSTEP" bench learner --seconds $seconds \
            --load-us 100 --train-us 100 --batch-bytes 4096 "$@"
        [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
        [[ $output == *'"trained":0,'* || $output == *" 0 trained in "* ]] ||
            return 0
    done
}

# shares: those of the JSON object $line are parts of 1.
shares() {
    local key
    for key in load idle train wait; do
        awk -v share="$(field "${key}_share")" \
            'BEGIN { exit !(share >= 0 && share < 1.05) }'
    done
}

@test "a bar for each stage, and the throughput beside the ideal" {
    bench --stacks 2 --loaders 1
    says "learner: 2 stacks, 1 loader, 1 pass, on cpu; batches of 4,096 bytes"
    local stage
    for stage in load idle train wait; do
        grep -Eq "^  $stage +[#.]{30}  +[0-9]+\.[0-9] %  of the " <<<"$output"
    done
    grep -Eq '^  throughput  [0-9.]+ batches/s, [0-9]+ % of [0-9.]+, ' \
        <<<"$output"
    grep -Eq '^  batches     [0-9,]+ trained in [0-9.]+ s$' <<<"$output"
}

@test "one line of JSON with the same figures" {
    bench --stacks 3 --loaders 2 --passes 2 --queue 5 --json
    [ "${#lines[@]}" -eq 1 ]
    last_line "$output"
    [ "$(field event)" = bench ]
    [ "$(field what)" = learner ]
    [ "$(field stacks)" = 3 ]
    [ "$(field loaders)" = 2 ]
    [ "$(field passes)" = 2 ]
    [ "$(field queue)" = 5 ]
    (($(field trained) > 0 && $(field steps) >= 2 * $(field trained)))
    shares
    awk -v ratio="$(field ratio)" 'BEGIN { exit !(ratio > 0) }'
}

@test "the learner loads by itself without loaders" {
    bench --loaders 0
    says "of the learner's: its own work"
    bench --loaders 0 --json
    last_line "$output"
    shares
}

@test "without loads and training there is no ideal" {
    bench --load-us 0 --train-us 0 --batch-bytes 1
    says "batches of 1 byte,"
    [[ $output != *"never waited"* ]]
    bench --load-us 0 --train-us 0 --json
    last_line "$output"
    [ "$(field ratio)" = null ]
}

@test "a batch is split over devices" {
    bench --devices cpu,cpu:0 --json
    [[ $output == *'"devices":"cpu,cpu:0"'* ]]
}

@test "GPUs, of a driver in host memory" {
    export LD_LIBRARY_PATH=$BUILD_DIR/tests/device/fake
    bench --devices cuda,cuda:1 --json
    last_line "$output"
    (($(field trained) > 0))
    run --separate-stderr "$LOCKSTEP" bench learner --devices cuda:2
    [ "$status" -eq 78 ]
    [[ $stderr == *'no GPU 2: this machine has 2, from 0 on'* ]]
    run --separate-stderr "$LOCKSTEP" bench learner --devices cuda \
        --batch-bytes 67108864
    [ "$status" -eq 1 ]
    [[ $stderr == *'host memory, cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY'* ]]
}

@test "a machine without a GPU says what to do" {
    run --separate-stderr "$LOCKSTEP" bench learner --devices cuda \
        --seconds 0.1
    [ "$status" -ne 0 ] || skip "there is a GPU"
    [ "$status" -eq 78 ]
    [[ $stderr == *'device "cuda": '*'use cpu'* ]]
}

@test "Ctrl-C is enough: the figures so far, exit 130" {
    local code=0 fd line
    mkfifo progress
    "$LOCKSTEP" bench learner --seconds 60 --load-us 100 --train-us 100 \
        --batch-bytes 4096 >shown 2>progress 3>&- &
    local pid=$!
    exec {fd}<progress
    IFS= read -r -t 60 line <&"$fd"
    [[ $line == "learner "*" batches "* ]]
    kill -INT "$pid"
    wait "$pid" || code=$?
    [ "$code" -eq 130 ]
    grep -Eq '^  batches     [0-9,]+ trained in [0-9.]+ s$' shown
}

@test "wrong values are refused, with what is right" {
    local wrong
    for wrong in "--stacks 0" "--loaders 1025" "--passes many" "--seconds -1" \
        "--queue 1e3" "--devices ," "--batch-bytes"; do
        # shellcheck disable=SC2086 # an option and its value
        run --separate-stderr "$LOCKSTEP" bench learner $wrong
        [ "$status" -eq 2 ]
        [[ $stderr == *"expected "* || $stderr == *"must follow it"* ]]
    done
    run --separate-stderr "$LOCKSTEP" bench barrier
    [ "$status" -eq 2 ]
    [[ $stderr == *'"barrier" is nothing to measure'* ]]
}

@test "help on bench teaches by example" {
    run "$LOCKSTEP" help bench
    [ "$status" -eq 0 ]
    says "  lockstep bench learner --stacks 1 --loaders 1   nothing overlaps"
    ((${#output} > 1000))
}
