#!/usr/bin/env bash
# docs_errors.sh SOURCE [write]: the table of docs/errors.md is LS_STATUS_MAP of
# status.h; with `write`, put it there.
set -euo pipefail
cd "$1"
page=docs/errors.md
header=framework/base/include/lockstep/status.h
table=$(sed -n 's/^ *X(\(LS_[A-Z]*\), *\(-\{0,1\}[0-9]*\), *\([0-9]*\), *"\(.*\)").*/| `\1` | \2 | \3 | \4 |/p' $header)
[ -n "$table" ] || { echo "no LS_STATUS_MAP in $header" && exit 1; }
if [ "${2-}" = write ]; then
    rest=$(grep -v '^| `LS_' $page)
    awk -v table="$table" '{ print } /^\|-/ { print table }' \
        <<<"$rest" >$page.new
    mv $page.new $page
fi
diff <(printf '%s\n' "$table") <(grep '^| `LS_' $page) || {
    echo "< status.h, > $page: run tests/house/docs_errors.sh . write"
    exit 1
}
