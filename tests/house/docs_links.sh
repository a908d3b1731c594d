#!/usr/bin/env bash
# docs_links.sh SOURCE: every relative link of a page leads to a file of the tree, and
# docs/index.md leads to every page of docs/.
set -euo pipefail
cd "$1"
bad=0
mapfile -t pages < <(find ./*.md docs docker -name '*.md' | sort)
for page in "${pages[@]}"; do
    while read -r link; do
        target=$(dirname "$page")/${link%%#*}
        [[ -e $target && $(realpath "$target")/ == "$PWD"/* ]] ||
            { echo "$page: $link leads nowhere" && bad=1; }
    done < <(sed '/^```/,/^```$/d' "$page" | grep -oE '\]\([^)]+\)' |
        sed -e 's/^](//' -e 's/)$//' | grep -vE '^(https?:|mailto:|#)')
done
for page in docs/*.md; do
    name=${page#docs/}
    [ "$name" = index.md ] || grep -qF "]($name)" docs/index.md ||
        { echo "docs/index.md does not lead to $page" && bad=1; }
done
exit $bad
