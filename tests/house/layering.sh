#!/usr/bin/env bash
# layering.sh SOURCE CC [LAYER INCLUDES]...: layers lowest first, INCLUDES the
# folders that the layer's files are compiled with, joined by colons. A file of
# a layer can include the public headers of this layer and of those below it;
# with one from above it does not compile.
set -euo pipefail
source=$1 cc=$2
shift 2
layers=() includes=()
while [ $# -gt 0 ]; do
    layers+=("$1") includes+=("$2")
    shift 2
done

headers_of() {
    local folder=$source/framework/$1
    [ -d "$folder" ] || folder=$source/$1
    (cd "$folder/include" && printf '%s\n' lockstep/*.h)
}

# compiles INCLUDES HEADER
compiles() {
    local flags=()
    mapfile -t -d : flags < <(printf '%s' "$1")
    printf '#include "%s"\n' "$2" |
        "$cc" -std=c11 -D_POSIX_C_SOURCE=200809L "${flags[@]/#/-I}" \
            -fsyntax-only -x c - 2>&1
}

bad=0
for i in "${!layers[@]}"; do
    for j in "${!layers[@]}"; do
        for header in $(headers_of "${layers[j]}"); do
            if said=$(compiles "${includes[i]}" "$header"); then
                if [ "$j" -gt "$i" ]; then
                    printf 'a file of %s can include %s, of %s above it\n' \
                        "${layers[i]}" "$header" "${layers[j]}"
                    bad=1
                fi
            elif [ "$j" -eq "$i" ]; then
                printf 'a file of %s cannot include %s:\n%s\n' \
                    "${layers[i]}" "$header" "$said"
                bad=1
            fi
        done
    done
done
exit $bad
