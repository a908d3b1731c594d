#!/usr/bin/env bash
# docs_index.sh SOURCE: docs/index.md names every .c, .h and .S of the code once, as
# `path/from/the/root.c`, and no file that there is not.
set -euo pipefail
cd "$1"
have=$(grep -oE '`(framework|middleware|nodes)/[A-Za-z0-9_./-]+\.[chS]`' \
    docs/index.md | tr -d '\`' | sort)
want=$(find framework middleware nodes -name '*.[chS]' | sort)
bad=0
report() {
    [ -z "$2" ] || { printf '%s\n%s\n' "$1" "$2" && bad=1; }
}
report "docs/index.md lacks" \
    "$(comm -13 <(sort -u <<<"$have") - <<<"$want")"
report "docs/index.md names what there is not" \
    "$(comm -23 <(sort -u <<<"$have") - <<<"$want")"
report "docs/index.md names twice" "$(uniq -d <<<"$have")"
exit $bad
