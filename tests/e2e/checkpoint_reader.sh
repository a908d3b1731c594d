#!/usr/bin/env bash
# checkpoint_reader.sh PROGRAM SCRIPT: what docs/examples/checkpoint.c saves,
# docs/examples/checkpoint.py reads; and it sees damage. 77: it cannot run here.
set -euo pipefail
python=
for one in python3 /usr/bin/python3; do
    "$one" -c 'import msgpack' 2>/dev/null && python=$one && break
done
[ -n "$python" ] || { echo "no python3 with msgpack" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder" | grep -qx 'epoch 3, weight 1.5'
"$1" "$folder" | grep -qx 'resumed from epoch 3'
read_it() { "$python" "$2" "$folder" "${@:3}"; }
diff <(read_it "$@") - <<<$'epoch 5 trainer_1\nepoch 6 trainer_1'
diff <(read_it "$@" 6) - <<'END'
epoch 6 trainer_1
 trainer_1 epoch [] [6]
 trainer_1 weights [2, 3] [0.0, 0.0, 0.0, 0.0, 0.0, 3.0]
END
printf x | dd of="$folder/trainer_1.000006" bs=1 seek=$(($(stat -c %s "$folder/trainer_1.000006") - 20)) conv=notrunc status=none
if read_it "$@" 6 2>"$folder/why" >/dev/null; then exit 1; fi
grep -qx 'trainer_1.000006 is damaged' "$folder/why"
