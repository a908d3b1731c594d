#!/usr/bin/env bash
# umbrella.sh SOURCE: lockstep.h includes every other public header, and does
# nothing else.
set -euo pipefail
cd "$1"
umbrella=nodes/include/lockstep/lockstep.h
want=$(find framework/*/include middleware/include nodes/include -name '*.h' \
    ! -path $umbrella | sed 's|.*/include/||' | sort)
have=$(sed -n 's/^#include "\(.*\)"$/\1/p' $umbrella | sort)
diff <(printf '%s\n' "$want") <(printf '%s\n' "$have") ||
    { echo "< public header that $umbrella lacks, > what there is not" && exit 1; }
if grep -vE '^(#(include|ifndef|define|endif)\b.*|/\*.*\*/|)$' $umbrella; then
    echo "$umbrella declares something" && exit 1
fi
