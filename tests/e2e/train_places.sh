#!/usr/bin/env bash
# train_places.sh PROGRAM: docs/examples/train.c on one rank, on threads and on
# nodes. Ranks of one run have the same weights, bit for bit, threads and nodes
# too; and the loss is the same for any number of ranks.
set -euo pipefail
train=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$train" single >"$folder/single"
"$train" threads 2 >"$folder/threads2"
"$train" threads 3 >"$folder/threads3"
pids=()
for rank in 0 1 2; do
    "$train" bus $rank 3 "$folder" >"$folder/bus$rank" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
cat "$folder"/bus? >"$folder/bus3"

# epochs and weights, without the words that differ by place
losses() { grep -h '^epoch' "$1"; }
weights() { sed -n 's/.*weights //p' "$1" | sort -u; }
for run in threads2 threads3 bus3; do
    diff <(losses "$folder/single") <(losses "$folder/$run")
    [ "$(weights "$folder/$run" | wc -l)" -eq 1 ]
done
[ "$(weights "$folder/bus3")" = "$(weights "$folder/threads3")" ]
[ "$(losses "$folder/single" | wc -l)" -eq 5 ]
[ "$(grep -c '^rank' "$folder/bus3")" -eq 3 ]
cat "$folder/bus3"

# A word that it does not know.
if "$train" other 2>"$folder/why"; then exit 1; fi
grep -q 'usage: train' "$folder/why"
