#!/usr/bin/env bash
# sampler_reader.sh PROGRAM SCRIPT: docs/examples/sampler.c and the program that
# was written from docs/samplers.md alone, docs/examples/sampler.py, take the
# same samples. 77: it cannot run here.
set -euo pipefail
command -v python3 >/dev/null || { echo "no python3" && exit 77; }
cases() {
    for spread in dist cut unrepeatdist; do
        for shape in '0 1' '1 2' '2 3' '4 5'; do
            echo "23 7 3 $spread $shape"
            echo "17 18446744073709551615 1 $spread $shape 6"
        done
    done
    echo 1000 1 18446744073709551615 dist 0 1
    echo 2 0 0 dist 4 5
}
diff <(cases | while read -r -a words; do
    "$1" "${words[@]}"
done) <(cases | python3 -B -c '
import runpy, sys
for line in sys.stdin.readlines():
    sys.argv[1:] = line.split()
    runpy.run_path("'"$2"'", run_name="__main__")')
[ "$(cases | wc -l)" -eq 26 ]
