#!/usr/bin/env bash
# One check: [MODEL=barrier|shared|ring] check.sh NAME holds|fails safety|ends FLAG...
# Prints a line; exits 0 when the result is the expected one.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=$1 expected=$2 kind=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# Most checks are compiled longer than they run; clang takes half as long.
compiler=$(command -v clang || printf gcc)
compile=("${OPTIMIZE:--O0}" -w -DCOLLAPSE "-DMEMLIM=${MEMORY_MIB:-4000}")
run=(-m1000000 -w22)
if [ "$kind" = ends ]; then
    set -- "$@" -DLIVE_CHECK
    compile+=(-DNFAIR=8)
    run+=(-a -f)
else
    compile+=(-DSAFETY)
fi
if ! { spin -a "$@" "$here/${MODEL:-barrier}.pml" &&
    "$compiler" "${compile[@]}" -o pan pan.c; } >spin.log 2>&1; then
    printf '%s\n' "models: $name: it does not compile" >&2
    cat spin.log >&2
    exit 1
fi
timeout -s INT "${SECONDS_EACH:-600}" ./pan "${run[@]}" >pan.log 2>&1
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log | tail -n 1)
states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log | tail -n 1)
if grep -qE 'Interrupted|out of memory|max search depth too small' pan.log &&
    [ "${errors:-0}" -eq 0 ]; then
    result=unfinished
elif [ "${errors:-}" = 0 ]; then
    result=holds
elif [ -n "${errors:-}" ]; then
    result=fails
else
    result=broken
fi
printf '%-10s %-44s %s, %s states\n' \
    "$([ "$result" = "$expected" ] && echo ok || echo WRONG)" \
    "$name" "$result" "${states:-?}"
if [ "$result" != "$expected" ]; then
    grep -E '^pan' pan.log | head -n 3
    ./pan -r 2>/dev/null | sed -n 's/^ *\([0-9] .*\)/    \1/p'
    exit 1
fi
