#!/usr/bin/env bats
# `lockstep checkpoint`: what was saved, seen and kept in order by a user.
load helpers

setup() {
    enter_scratch
    example=$BUILD_DIR/docs/example_checkpoint
    reader=$BUILD_DIR/tests/e2e/reader/reader
}

checkpoint() {
    run --separate-stderr "$LOCKSTEP" checkpoint "$@"
}

# refused CODE TEXT ARGUMENT...
refused() {
    local code=$1 text=$2
    shift 2
    checkpoint "$@"
    [ "$status" -eq "$code" ]
    [[ $stderr == *"$text"* ]] || { echo "$stderr"; false; }
}

# Three nodes save epochs 0 to 4 in the folder saved.
save_three() {
    local id pids=()
    for id in 1 2 3; do
        "$reader" $id saved scratch >$id.out 2>$id.err 3>&- &
        pids+=($!)
    done
    wait "${pids[@]}"
}

@test "ls: a line for each, and whether it is whole" {
    save_three
    checkpoint ls saved
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 6 ]
    [[ ${lines[0]} == "  epoch  saved (UTC)          nodes        size  state" ]]
    for epoch in 0 1 2 3 4; do
        [[ ${lines[1 + epoch]} =~ ^\ +$epoch\ +20[0-9-]+\ [0-9:]+\ +3\ +[0-9.]+\ [kM]?B\ +whole$ ]]
    done
    checkpoint ls saved --json
    line=${lines[4]}
    [ "$(field epoch) $(field nodes) $(field state)" = "4 3 whole" ]
    mkdir empty
    checkpoint ls empty
    [ "$output" = "no checkpoint in empty" ]
}

@test "show: nodes, blobs, types and shapes" {
    "$example" >out.txt
    checkpoint show checkpoints
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "epoch 3 of a run without a name, saved 20"*" UTC" ]]
    [ "${lines[1]}" = "1 node, 124 B" ]
    [ "${lines[2]}" = "trainer_1  124 B, whole" ]
    [ "${lines[3]}" = "  epoch    i64                  8 B" ]
    [ "${lines[4]}" = "  weights  f32[2,3]            24 B" ]
    checkpoint show checkpoints 2 --json
    [[ $output == '{"event":"show","epoch":2,'*'"blobs":[{"name":"epoch","type":"i64","shape":[]},{"name":"weights","type":"f32","shape":[2,3]}]}]}' ]]
}

@test "diff: which blobs differ, and numbers by how much" {
    "$example" >out.txt
    checkpoint diff checkpoints 2 3
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "trainer_1  epoch  i64  1 of 1 differ, by 1 at most, 1 on average" ]
    [ "${lines[1]}" = "trainer_1  weights  f32[2,3]  1 of 6 differ, by 0.5 at most, 0.5 on average" ]
    checkpoint diff checkpoints 3 3
    [ "$output" = "the same" ]
    checkpoint diff checkpoints 2 3 --json
    [ "${lines[1]}" = '{"event":"differs","node":"trainer_1","blob":"weights","type":"f32","what":"differs","n":6,"n_differ":1,"n_nan":0,"most":0.5,"mean":0.5}' ]
    [ "${lines[2]}" = '{"event":"diff","first":2,"second":3,"differ":2}' ]
}

@test "what is not a number is counted apart, and integers differ exactly" {
    "$BUILD_DIR/tests/e2e/strange/strange"
    checkpoint diff strange 1 2
    [ "${lines[0]}" = "node  floats  f32[3]  2 of 3 differ, by 2 at most, 2 on average, 1 by what is not a number" ]
    [ "${lines[1]}" = "node  one  f64  1 of 1 differ, 1 by what is not a number" ]
    [ "${lines[2]}" = "node  far  i64  1 of 1 differ, by 1 at most, 1 on average" ]
    checkpoint diff strange 1 2 --json
    [[ ${lines[0]} == *'"n_differ":2,"n_nan":1,"most":2.0,"mean":2.0}' ]]
    [[ ${lines[1]} == *'"n_differ":1,"n_nan":1}' ]]
}

@test "names that steer a terminal are shown without that" {
    "$BUILD_DIR/tests/e2e/strange/strange"
    checkpoint ls strange
    [[ ${lines[1]} == *"  whole  a?b?[31m 1" ]]
    checkpoint show strange 1
    [[ ${lines[0]} == "epoch 1 of run?name, saved "* ]]
    [ "${lines[2]}" = "a?b?[31m 1" ]
    [ "${lines[3]}" = "why: ?]0;mine? and ? more" ]
    checkpoint show strange best
    [ "$status" -eq 78 ]
    [[ $stderr == *"--metric a?b?[31m" ]]
    refused 78 "there is no such folder" ls $'new\e[31m'
    [[ $stderr == *"new?[31m: "* ]]
}

@test "export: blobs for other programs" {
    "$example" >out.txt
    checkpoint export checkpoints 2 --out a.safetensors
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "a.safetensors, of epoch 2 in checkpoints" ]
    python3 - <<'END'
import json, struct
data = open("a.safetensors", "rb").read()
(size,) = struct.unpack_from("<Q", data)
header = json.loads(data[8 : 8 + size])
assert header["__metadata__"]["epoch"] == "2"
begin, end = header["epoch"]["data_offsets"]
assert header["epoch"]["dtype"] == "I64" and header["epoch"]["shape"] == []
assert struct.unpack("<q", data[8 + size + begin : 8 + size + end]) == (2,)
begin, end = header["weights"]["data_offsets"]
assert header["weights"]["shape"] == [2, 3]
assert struct.unpack("<6f", data[8 + size + begin : 8 + size + end])[5] == 1
END
    refused 78 "a.safetensors exists: name another file" export checkpoints --out a.safetensors
    checkpoint export checkpoints --out a.safetensors --force --blob weights --json
    [ "$output" = '{"event":"export","epoch":3,"file":"a.safetensors","tensors":1}' ]
    save_three
    checkpoint export saved --out b.safetensors
    [ "$status" -eq 0 ]
    [[ $output == *"  node-1/total"* && $output == *"  node-3/total"* ]]
    checkpoint export saved --out b.safetensors --force --node node-2
    [[ $output == *"  total"* && $output != *node-1* ]]
    refused 78 "epoch 4 has no such node" export saved --out c --node node-9
    refused 78 "epoch 4 has no blob none to export" export saved --out c --blob none
    [ ! -e c ]
}

@test "export replaces no device, no pipe and no link" {
    "$example" >out.txt
    mkfifo pipe
    ln -s pipe link
    refused 1 "pipe: it is not a regular file" export checkpoints --out pipe --force
    refused 78 "link is a link, which is not replaced" export checkpoints --out link --force
    [ -p pipe ]
    [ -L link ]
    refused 1 "writing none/file: the folder of" export checkpoints --out none/file
    [ "$(find . -name '*.part@*')" = "" ]
}

@test "verify names the file and the blob that are damaged" {
    save_three
    checkpoint verify saved
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 5 ]
    shard=$(find saved -name 'node-2.000003*' -size +100k)
    printf x | dd of="$shard" bs=1 seek=70000 conv=notrunc status=none
    checkpoint verify saved
    [ "$status" -eq 1 ]
    [ "${lines[3]}" = "epoch 3  damaged" ]
    [ "${lines[4]}" = "epoch 4  whole" ]
    [[ $stderr == *"${shard#saved/}"* && $stderr == *"of node-2"* ]]
    [[ $stderr == *"saved: 1 of 5 checkpoints are damaged, or cannot be read" ]]
    checkpoint verify saved 4 2
    [ "$status" -eq 0 ]
    [ "$output" = $'epoch 4  whole\nepoch 2  whole' ]
    checkpoint verify saved 3 --json
    [ "$status" -eq 1 ]
    [[ $output == '{"event":"verify","epoch":3,"state":"damaged","damaged":1,"why":"'* ]]
    checkpoint ls saved
    [[ ${lines[4]} == *" damaged" ]]
    checkpoint show saved 3
    [[ $output == *"node-2  "*", damaged"* ]]
    printf x >>saved/manifest.000001
    checkpoint ls saved
    [[ ${lines[2]} == *"  1"*" damaged" ]]
}

@test "what cannot be read is named, and the others are looked at" {
    "$example" >out.txt
    rm checkpoints/trainer_1.000002
    ln -s trainer_1.000002 checkpoints/trainer_1.000002
    checkpoint ls checkpoints
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == *" 2 "*"unreadable" ]]
    [[ ${lines[2]} == *" 3 "*"whole" ]]
    checkpoint show checkpoints 2
    [[ ${lines[2]} == "trainer_1  124 B, unreadable" ]]
    [[ ${lines[3]} == *"trainer_1.000002: "*"Too many levels of symbolic links"* ]]
    refused 1 "1 of 2 checkpoints are damaged, or cannot be read" verify checkpoints
    [ "${lines[1]}" = "epoch 3  whole" ]
    rm checkpoints/manifest.000002
    ln -s manifest.000002 checkpoints/manifest.000002
    checkpoint ls checkpoints
    [[ ${lines[1]} == *" 2 "*"unreadable" ]]
    rm checkpoints/manifest.000002
    mkdir checkpoints/manifest.000002 # which is no manifest, whatever it was
    checkpoint ls checkpoints
    [[ ${lines[1]} == *" 2 "*"damaged" ]]
    [[ ${lines[2]} == *" 3 "*"whole" ]]
}

@test "best is the one that was evaluated best, of those that are whole" {
    local run=out/job/latest best
    cat >job.yaml <<'END'
job: job
plugin: counter
nodes: [{role: learner}, {role: collector}, {role: evaluator}]
collector: {envs: 2, steps: 8}
evaluator: {solved: 5, every: 1} # its return is the number of updates
checkpoint: {every: 1, keep_last: 20}
END
    "$LOCKSTEP" run job.yaml --as sim --json >run.out
    checkpoint show "$run" best --json
    [ "$status" -eq 0 ]
    line=$output
    best=$(field epoch)
    [[ $line == *'"metrics":{"return":5.0}'* ]]
    checkpoint show "$run" best --least --json
    [[ $output == *'"epoch":1,'*'"metrics":{"return":1.0}'* ]]
    checkpoint verify "$run" best 2
    [ "$output" = "epoch $best  whole"$'\n'"epoch 2  whole" ]
    checkpoint diff "$run" 2 best --json
    [[ ${lines[-1]} == '{"event":"diff","first":2,"second":'"$best"',"differ":'* ]]
    checkpoint export "$run" best --out best.safetensors
    [[ ${lines[0]} == "best.safetensors, of epoch $best in "* ]]
    refused 78 "there is no best checkpoint: none has the metric loss; there are epochs 0, 1, 2, 3, 4, 5, $best; by another metric: --metric return" \
        show "$run" best --metric loss

    printf x >>"$run/checkpoints/manifest.$(printf %06d "$best")"
    printf x >>"$run/checkpoints/node-0.000005"
    checkpoint show "$run" best
    [ "${lines[0]%% of*}" = "epoch 4" ]
    [[ $stderr == "lockstep: epoch 5 is passed over: "*node-0.000005* ]]
    rm "$run"/checkpoints/manifest.00000[1-4]
    refused 1 "all checkpoints with the metric return are damaged" show "$run" best
    checkpoint rm "$run" 5 "$best"
    refused 78 "there is no best checkpoint: none was evaluated, so none has the metric return; there are epochs 0" \
        show "$run" best
}

@test "an entry that lies elsewhere is not damage" {
    save_three
    mkdir other
    mv saved/node-3.* other
    checkpoint verify saved 4
    [ "$status" -eq 0 ]
    [ "$output" = "epoch 4  2 of 3 here" ]
    checkpoint show saved
    [[ $output == *"node-3  "*", elsewhere"* ]]
    refused 78 "the entry of node-3 does not lie in saved" export saved --out c
}

@test "rm removes epochs, or what a rule does not keep, and nothing else" {
    save_three
    echo mine >saved/mine
    echo mine >saved/notes.000001
    checkpoint rm saved 1 3
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "removed epoch 1  "* && ${lines[1]} == "removed epoch 3  "* ]]
    [ "$(find saved -name '*.00000[13]*')" = saved/notes.000001 ]
    checkpoint rm saved --keep-last 1 --every 4
    [[ $output == "removed epoch 2  "* ]]
    [ "$("$LOCKSTEP" checkpoint ls saved --json | grep -c whole)" -eq 2 ]
    checkpoint rm saved --keep-last 1 --json
    [[ $output == '{"event":"removed","epoch":0,"bytes":'* ]]
    checkpoint rm saved --keep-last 1
    [ "$output" = "nothing to remove of 1" ]
    [ "$(cat saved/mine saved/notes.000001)" = $'mine\nmine' ]
    refused 78 "saved has no checkpoint of epoch 7; there are 4" rm saved 7
    checkpoint rm saved 4
    [ "$status" -eq 0 ]
    refused 78 "saved has no checkpoint" show saved
}

@test "rm refuses a folder in which somebody writes" {
    "$example" >out.txt
    for lock in .lock .lock@trainer_1; do
        exec {held}<>checkpoints/$lock
        flock -x "$held"
        refused 75 "checkpoints is in use: another run writes checkpoints there" rm checkpoints 2
        exec {held}<&-
    done
    checkpoint ls checkpoints
    [ "${#lines[@]}" -eq 3 ]
}

@test "what is asked wrongly is answered with what to write" {
    refused 2 "do what with checkpoints? As in: lockstep checkpoint ls out/cartpole/latest"
    refused 2 'checkpoint shwo: did you mean "show"?' shwo
    refused 2 "which folder, or run? As in: lockstep checkpoint show out/cartpole/latest" show
    refused 2 "--out does nothing here" ls x --out y
    refused 2 "two, as in: checkpoint diff RUN 3 7" diff x 1
    refused 2 "it takes none" ls x 1
    refused 2 "to which file? As in: lockstep checkpoint export x --out" export x
    refused 2 "name epochs, or what to keep" rm x
    refused 2 "not both" rm x 1 --keep-last 2
    refused 2 "--metric or --least without --best does nothing here" rm x --keep-last 2 --least
    refused 2 "epoch three: expected best, or the whole number of an epoch" show x three
    refused 2 "--metric or --least without the epoch best does nothing here" show x 3 --least
    refused 2 "name epochs by their numbers; --best K removes all but the best K" rm x best
    refused 78 "nothing: there is no such folder" ls nothing
    "$LOCKSTEP" run "$SOURCE_DIR/configs/service.yaml" \
        --set coordinator.iterations=1 >out.txt
    refused 78 "one with a coordinator has a journal instead" ls out/service/1
    run "$LOCKSTEP" help checkpoint
    [ "$status" -eq 0 ]
    says "lockstep checkpoint rm out/cartpole/latest --keep-last 3 --best 1"
}
