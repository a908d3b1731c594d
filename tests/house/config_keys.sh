#!/usr/bin/env bash
# config_keys.sh SOURCE: each key of a configuration, as tests/nodes/test_plan_keys.c
# lists them, is in the test that is said there to show what it does, in
# `lockstep help config` or another help, and in the table of docs/configuration.md;
# and that has no other.
set -euo pipefail
cd "$1"
rows=$(tr '\n' ' ' <tests/nodes/test_plan_keys.c |
    grep -oE '\{"[a-z_.0-9]+", "[^"]*", [^{}]*("\{[^}]*\}",[^{}]*)?"tests/[^"]+"\}' |
    sed -E 's/^\{"([^"]+)".*"(tests\/[^"]+)"\}$/\1 \2/')
[ "$(wc -l <<<"$rows")" -ge 70 ]
bad=0
keys=
while read -r path file; do
    key=${path##*.}
    keys+=${path/nodes.[01]/nodes}$'\n'
    grep -qw -- "$key" "$file" || { echo "$file says nothing of $path" && bad=1; }
    grep -qw -- "$key" nodes/cli/help.c || [ "$key" = labels ] ||
        { echo "no help has $path" && bad=1; }
done <<<"$rows"
listed=$(sed -nE 's/^\| `([a-z_.]+)` .*/\1/p' docs/configuration.md | sort)
other=$(comm -3 <(sort <<<"${keys%$'\n'}") <(echo "$listed"))
[ -z "$other" ] || {
    echo "in one of docs/configuration.md and tests/nodes/test_plan_keys.c:"
    echo "$other"
    bad=1
}
exit $bad
