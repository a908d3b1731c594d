#!/usr/bin/env bash
# packages.sh SOURCE: `./dev run` installs what building and running need, no more:
# what the container is built with. `./dev setup` installs all of packages.txt.
# Nothing is installed here: what asks for packages, and installs, is stood in for.
set -euo pipefail
source=$1
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

stand_in() { # NAME: what it does is on standard input
    { echo '#!/bin/sh' && cat; } >"$scratch/$1"
    chmod +x "$scratch/$1"
}
: | stand_in dpkg-query # nothing is installed
: | stand_in apt-cache
echo 'echo 0' | stand_in id
printf 'echo "$@" >>%s/asked\nexit 1\n' "$scratch" | stand_in apt-get

# installed COMMAND...: what this ./dev COMMAND asks for, sorted
installed() {
    : >"$scratch/asked"
    ! PATH="$scratch:$PATH" "$source/dev" "$@" >"$scratch/said" 2>&1 ||
        { cat "$scratch/said" >&2 && echo "./dev $* needs no packages?" >&2; }
    sed -n 's/.* install -y --no-install-recommends //p' "$scratch/asked" |
        head -n 1 | tr ' ' '\n' | sort
}

same() { # WHAT EXPECTED FOUND
    diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") ||
        { echo "packages: $1 (expected <, found >)" && exit 1; }
}

in_container=$(sed -n '1,/^COPY/p' "$source/docker/Dockerfile" | tr '\n' ' ' |
    sed -E 's/.*--no-install-recommends//; s/COPY.*//; s/\\//g' |
    tr -s ' ' '\n' | sed '/^$/d' | sort)
all=$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$source/packages.txt" | sort)
[ "$(wc -l <<<"$in_container")" -gt 5 ] || { echo "no packages in the Dockerfile" && exit 1; }

same "./dev run" "$in_container" "$(installed run)"
same "./dev setup run" "$in_container" "$(installed setup run)"
same "./dev setup" "$all" "$(installed setup)"
