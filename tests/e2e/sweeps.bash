# What sweeps of `lockstep sim` over the configuration $job have in common.

# A sanitizer makes a run many times slower.
seeds() {
    if [ -n "$LOCKSTEP_SANITIZE" ]; then
        echo $(($1 / 20 + 2))
    else
        echo "$1"
    fi
}

# sweep SEEDS ARGUMENT...: its figures are $line.
sweep() {
    local n
    n=$(seeds "$1")
    shift
    run --separate-stderr "$LOCKSTEP" sim "$job" --json --seeds "$n" "$@"
    last_line "$output"
    [ "$(field event)" = sweep ]
}

# holds SEEDS ARGUMENT...: nothing was found.
holds() {
    sweep "$@"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    [ "$(field violated)" = false ]
    ((10#$(field messages) > 0))
}

# found WHAT [FAULTS [FIRST]]: what is broken so is found out, and the seed that is
# named shows it again.
found() {
    local faults=${2:-all}
    run --separate-stderr "$LOCKSTEP" sim "$job" --seeds 1000 \
        --first "${3:-0}" --faults "$faults" --sabotage "$1"
    [ "$status" -eq 1 ]
    says "1 violation"
    local seed said
    seed=$(sed -n 's/^lockstep: seed \([0-9]*\): .*/\1/p' <<<"$stderr")
    said=$(grep '^lockstep: seed ' <<<"$stderr")
    [ -n "$seed" ]
    [[ $stderr == *"--seed $seed --faults $faults --sabotage $1 --event-log"* ]]
    [[ $stderr == *" net: "* ]] # the last events
    run --separate-stderr "$LOCKSTEP" sim "$job" --seed "$seed" \
        --faults "$faults" --sabotage "$1" --event-log again.log
    [ "$status" -eq 1 ]
    [ "$(grep '^lockstep: seed ' <<<"$stderr")" = "$said" ]
    grep -qF "${said#*: seed "$seed": }" again.log
}
