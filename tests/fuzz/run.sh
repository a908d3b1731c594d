#!/usr/bin/env bash
# run.sh BUILD [--quick] [-max_total_time=SECONDS] [UNIT...]: search with the
# fuzzers of BUILD, an hour each or as long as it is told, one on each core.
# What each comes to is a line; ends non-zero when something was found.
set -euo pipefail
seconds=3600
units=()
here=$(cd "$(dirname "$0")" && pwd)
programs=$1/tests/fuzz
shift

fail() {
    printf '%s\n' "fuzz: $*" >&2
    exit 2
}

all() {
    local program
    for program in "$here"/fuzz_*.c; do
        program=${program##*/fuzz_}
        printf '%s\n' "${program%.c}"
    done
}

for word in "$@"; do
    case $word in
    --quick) seconds=30 ;;
    -max_total_time=[1-9]*) seconds=${word#*=} ;;
    -*) fail "there is no option $word: --quick, -max_total_time=SECONDS" ;;
    *)
        [ -e "$here/fuzz_$word.c" ] ||
            fail "there is no fuzzer $word: $(all | paste -sd ' ')"
        units+=("$word")
        ;;
    esac
done
[ ${#units[@]} -gt 0 ] || mapfile -t units < <(all)
programs=$(cd "$programs" && pwd)

# Some write files: not to a disk.
scratch=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
export TMPDIR=$scratch
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
# libfyaml 0.7.12 loses a kilobyte over some malformed texts.
export LSAN_OPTIONS=suppressions=$here/lsan.supp:print_suppressions=0

# Without address randomisation where the kernel does more of it than the
# sanitizers of clang 14 can bear.
steady=()
! setarch -R true 2>/dev/null || steady=(setarch -R)

# The last number behind a word of libFuzzer's log; 0: there is none.
figure() {
    grep -oE "$2 *[0-9]+" "$1" | tail -n 1 | grep -oE '[0-9]+$' || echo 0
}

search() {
    local unit=$1 corpus=$programs/corpus/$1 found=$programs/found
    local log=$programs/$1.log status=0 child
    mkdir -p "$corpus" "$found"
    "${steady[@]}" "$programs/fuzz_$unit" -max_total_time="$seconds" \
        -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64 \
        -print_final_stats=1 -artifact_prefix="$found/$unit-" \
        "$corpus" "$here/seeds/$unit" >"$log" 2>&1 &
    child=$!
    # shellcheck disable=SC2064 # the child of now
    trap "kill $child; exit 130" INT TERM
    wait $child || status=$?
    printf '%-14s %10s runs %6s edges %6s inputs  ' "$unit" \
        "$(figure "$log" number_of_executed_units:)" \
        "$(figure "$log" cov:)" "$(find "$corpus" -type f | wc -l)"
    if [ $status -eq 0 ]; then
        printf 'nothing found\n'
        return
    fi
    : >"$scratch/failed"
    printf 'FOUND, see %s\n' "$log"
    grep -E 'not so:|runtime error|ERROR: |written to' "$log" |
        sed 's/^/    /' || true
}

printf '%d s each; what is found goes to %s\n' "$seconds" "$programs/found"
for unit in "${units[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
        wait -n
    done
    search "$unit" &
done
wait
[ ! -e "$scratch/failed" ]
