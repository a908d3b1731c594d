#!/usr/bin/env bats
# Jobs of three processes: their epochs, and kill -9 inside saves, after which
# all go on. KILLS makes a longer test of it, SEED another one.

load helpers

setup() {
    enter_scratch
    reader=$BUILD_DIR/tests/e2e/reader/reader
}

# readers RESUME [WHO EPOCH US]: all three; node WHO dies in the save of EPOCH.
# Their output is in ID.out, their codes in $codes.
readers() {
    local id pids=() code
    codes=
    for id in 1 2 3; do
        if [ "${2:-}" = $id ]; then
            "$reader" $id saved "$1" "$3" "$4" >$id.out 2>$id.err 3>&- &
        else
            "$reader" $id saved "$1" >$id.out 2>$id.err 3>&- &
        fi
        pids+=($!)
    done
    for id in "${pids[@]}"; do
        code=0
        wait "$id" || code=$?
        codes+="$code "
    done
}

# ended EPOCH RAN: all three, with the total that is due.
ended() {
    [ "$codes" = "0 0 0 " ] || { cat ./*.err; return 1; }
    [ "$(sort -u ./?.out)" = "$1 $2 145" ]
}

@test "0 to 9 by three: 4 epochs, and going on from each" {
    readers scratch
    ended 4 4
    for id in 1 2 3; do
        for epoch in 0 1 2 3 4; do
            [ -e saved/node-$id.00000$epoch ]
        done
        cp $id.blobs $id.right
    done
    for epoch in 4 3 2 1; do
        rm ./*.blobs
        readers $epoch
        ended 4 $((4 - epoch))
        for id in 1 2 3; do
            cmp $id.blobs $id.right
        done
    done
    readers 5
    [ "$codes" = "1 1 1 " ]
    grep "epoch 5\|\.000005" 3.err
}

@test "kill -9 inside a save: the blobs are those of a run without" {
    readers scratch
    ended 4 4
    for id in 1 2 3; do
        mv $id.blobs $id.right
    done
    RANDOM=${SEED:-1}
    local few=${LOCKSTEP_SANITIZE:+2} killed=0
    for ((n = ${KILLS:-${few:-6}}; n > 0; n--)); do
        rm -rf saved ./*.blobs
        who=$((1 + RANDOM % 3)) epoch=$((RANDOM % 5)) us=$((RANDOM % 12000))
        readers newest $who $epoch $us
        if [ "$codes" != "0 0 0 " ]; then
            killed=$((killed + 1))
            [[ " $codes" == *" 137 "* ]]
            for id in 1 2 3; do # who is left says who is not
                [ $id = $who ] || [ ! -s $id.err ] || grep "node $who" $id.err
            done
        fi
        readers newest
        [ "$codes" = "0 0 0 " ] || { cat ./*.err; false; }
        for id in 1 2 3; do
            cmp $id.blobs $id.right
        done
    done
    echo "$killed of them were killed in time"
    [ $killed != 0 ]
}

change_byte() {
    printf x | dd of="$1" bs=1 seek=70000 conv=notrunc status=none
}

cut() {
    truncate -s 70000 "$1"
}

@test "a shard that is damaged, cut or gone: named, and the epoch before is used" {
    for spoil in change_byte cut rm; do
        rm -rf saved
        readers scratch
        ended 4 4
        shard=$(find saved -name 'node-2.000004*' -size +100k)
        $spoil "$shard"
        readers newest
        ended 4 1
        grep "epoch 4 is passed over.*${shard#saved/}" 1.err
    done
}
