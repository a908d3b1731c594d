#!/usr/bin/env bash
# docs_snippets.sh SOURCE: each fenced block of README.md and docs/ whose info
# string names a file (```c docs/examples/hello.c) is that file to the byte, and
# each that has a main() names one.
set -euo pipefail
cd "$1"
bad=0 n=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each such block into a file of its own, with a line "page:line file block".
mapfile -t pages < <(find README.md docs -name '*.md' | sort)
awk -v work="$work" '
    FNR == 1 { open = 0 }
    /^```/ && !open {
        open = 1
        if (NF == 2 && $1 != "```") {
            block = work "/" ++n
            printf "" > block
            print FILENAME ":" FNR "\t" $2 "\t" block
        }
        next
    }
    /^```$/ && open { open = 0; block = ""; next }
    open && block != "" { print > block }
    open && block == "" && /^int main\(/ {
        print FILENAME ":" FNR "\t\t"
    }' "${pages[@]}" >"$work/list"

while IFS=$'\t' read -r place file block; do
    n=$((n + 1))
    if [ -z "$file" ]; then
        echo "$place: a whole program; name its file behind the \`\`\`c"
        bad=1
    elif [ ! -f "$file" ]; then
        echo "$place: there is no $file"
        bad=1
    elif ! diff -u --label "$file" --label "$place" "$file" "$block"; then
        echo "$place: is not what $file has; copy the file into the page"
        bad=1
    fi
done <"$work/list"
[ "$n" -gt 0 ] || { echo "no snippet found" && bad=1; }
[ $bad -ne 0 ] || echo "$n snippets are what their files have"
exit $bad
