#!/usr/bin/env bash
# lint.sh BUILD: formatting, clang-tidy and the rules of the tree; lengths are
# only reported. BUILD is a configured folder (its compile_commands.json).
# Ends non-zero when a check failed, after all have run.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$1
folders=(framework middleware nodes tests docs)
mapfile -t sources < <(find "${folders[@]}" -name '*.[ch]' | sort)
failed=()

check() {
    local name=$1 from=$SECONDS
    shift
    if "$@"; then
        printf 'lint: %-12s ok (%d s)\n' "$name" $((SECONDS - from))
    else
        printf 'lint: %-12s FAILED\n' "$name"
        failed+=("$name")
    fi
}

formatting() {
    printf '%s\0' "${sources[@]}" |
        xargs -0 -n 100 -P "$(nproc)" clang-format --dry-run -Werror
}

# bats sets and reads variables that shellcheck knows nothing of.
shell() {
    {
        printf '%s\0' dev .ci/run
        find tests docs docker -name '*.sh' -print0
    } | xargs -0 -n 5 -P "$(nproc)" shellcheck &&
        find tests \( -name '*.bats' -o -name '*.bash' \) -print0 |
        xargs -0 -n 5 -P "$(nproc)" shellcheck -S warning -e SC2034,SC2154
}

# Only what changed since it was last clean: a clean file leaves a stamp, which
# any newer header makes void.
tidy_one() {
    local file=$1 build=$2 stamp=$2/tidy/${1//\//_} said status=0
    if [ -e "$stamp" ] && [ -z "$(find .clang-tidy framework middleware nodes \
        -newer "$stamp" \( -path "$file" -o -name '*.h' \
        -o -name .clang-tidy \) -print -quit)" ]; then
        return 0
    fi
    local known=(--extra-arg=-include
        --extra-arg="$PWD/tests/house/analyzer.h") bounded=() word
    [ "$file" != framework/base/status/status.c ] || known=() # defines them
    # A fiftieth of what the analyzer would look at, in a fifth of the time.
    for word in -Xclang -analyzer-config -Xclang max-nodes=4000; do
        bounded+=("--extra-arg=$word")
    done
    said=$(clang-tidy --quiet -p "$build" "${known[@]}" "${bounded[@]}" \
        "$file" 2>&1) ||
        status=$?
    local findings
    findings=$(grep -E ': (warning|error): ' <<<"$said")
    if [ -n "$findings" ]; then
        echo "${findings//$PWD\//}"
    elif [ $status -ne 0 ]; then
        echo "$said"
    else
        touch "$stamp"
    fi
    return $status
}
export -f tidy_one

tidy() {
    mkdir -p "$build/tidy"
    find framework middleware nodes -name '*.c' -print0 |
        xargs -0 -P "$(nproc)" -I{} bash -c 'tidy_one "$@"' _ {} "$build"
}

lengths() {
    awk '/^\{$/ { open = FNR }
         /^\}/ && open {
             if (FNR - open > 60)
                 print "  function of " FNR - open " lines: " \
                       FILENAME ":" open
             open = 0
         }' "${sources[@]}"
}

check format formatting
check shell shell
check rules tests/house/rules.sh
check tidy tidy
long=$(lengths)
[ -z "$long" ] || printf 'lint: over 60 lines (a report)\n%s\n' "$long"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'lint: failed: %s\n' "${failed[*]}" >&2
    exit 1
fi
