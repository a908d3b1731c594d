#!/bin/bash
# seeds.sh MAKE_SEEDS SEEDS: whether the seeds of the tree are what the program
# writes now. A fuzzer that begins with what its reader refuses finds little.
set -euo pipefail
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
"$1" "$made"
stale=0
while IFS= read -r name; do
    case $name in
        identity/key | trace/two) # a key is drawn, and a trace has its time
            [ "$(stat -c %s "$made/$name")" = "$(stat -c %s "$2/$name")" ] ;;
        *) cmp -s "$made/$name" "$2/$name" ;;
    esac || {
        echo "seeds/$name is not what the program writes now" >&2
        stale=1
    }
done < <(cd "$made" && find . -type f -printf '%P\n')
[ $stale -eq 0 ] || echo "write them anew: $1 $2" >&2
exit $stale
