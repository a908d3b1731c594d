#!/usr/bin/env bash
# exports.sh LIBRARY: every symbol that the shared library gives to others has
# the prefix, and there are some.
set -euo pipefail
symbols=$(nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//')
[ -n "$symbols" ] || { echo "$1 exports nothing" && exit 1; }
if strangers=$(grep -v '^ls_' <<<"$symbols"); then
    printf 'exported without the prefix ls_:\n%s\n' "$strangers"
    exit 1
fi
printf '%d symbols, all ls_*\n' "$(wc -l <<<"$symbols")"
