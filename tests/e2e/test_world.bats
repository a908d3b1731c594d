#!/usr/bin/env bats
# Worlds of processes: members that start in any order, from one address, and
# barriers between them. RUNS and EPOCHS make a longer test of it.

load helpers

setup() {
    enter_scratch
    member=$BUILD_DIR/tests/e2e/member/member
    few=${LOCKSTEP_SANITIZE:+1}
    runs=${RUNS:-${few:+5}}
    epochs=${EPOCHS:-${few:+100}}
}

# members N TOPOLOGY MODE...: start N members, the one with the address in a
# place of its own, and wait for all; what each says is in ID.out.
members() {
    local n=$1 topology=$2 first=$3 i id pids=() code=0
    shift 3
    rm -f -- *.ipc *.out
    for ((i = 0; i < n; i++)); do
        # ids that are no 0..n-1, and in no order
        id=$((1000000007 * (i + 1) % 4294967291))
        "$member" $id "$n" "$topology" "ipc://$PWD/$(((i + first) % n)).ipc" \
            "ipc://$PWD/0.ipc" "$@" >$id.out 3>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || code=$?
    done
    return $code
}

@test "eight nodes, one address, any order: each hears the first of all" {
    for ((run = 0; run < ${runs:-10}; run++)); do
        members 8 mesh $((run % 8)) greet
        [ "$(cat ./*.out | sort | uniq -c | xargs)" = "8 heard 8" ]
    done
}

@test "a star relays the first event of each to all" {
    for ((run = 0; run < ${runs:-10}; run++)); do
        members 8 star $((run % 8)) greet
        [ "$(cat ./*.out | sort | uniq -c | xargs)" = "8 heard 8" ]
    done
}

barriers() {
    members "$1" "$2" 0 barrier "${epochs:-500}"
    nobody_early "$1" "${epochs:-500}" ./*.out
}

@test "nobody leaves an epoch before all have entered: 2 processes" {
    barriers 2 mesh
    barriers 2 star
}

@test "nobody leaves an epoch before all have entered: 5 processes" {
    barriers 5 mesh
    barriers 5 star
}

@test "nobody leaves an epoch before all have entered: 8 processes" {
    barriers 8 mesh
    barriers 8 star
}

@test "nobody leaves an epoch before all have entered: 16 processes" {
    barriers 16 mesh
    barriers 16 star
}

@test "the check of epochs finds one that was left too early" {
    printf '0 10 30\n1 40 50\n' >1.out
    printf '0 20 31\n1 51 60\n' >2.out
    run nobody_early 2 2 ./*.out
    [ "$status" -eq 1 ]
    [ "$output" = "epoch 1 early" ]
}

# What the members of a world say, one descriptor each; and their processes.
heard=()
endless=()

teardown() {
    [ ${#endless[@]} -eq 0 ] || kill -9 "${endless[@]}" 2>/dev/null || true
}

# Five members that wait for each other without end.
start_endless() {
    local i out
    rm -f -- *.ipc stdin
    mkfifo stdin
    exec {stdin}<>stdin
    for ((i = 0; i < 5; i++)); do
        exec {out}< <(exec "$member" $((i + 1)) 5 mesh \
            "ipc://$PWD/$i.ipc" "ipc://$PWD/0.ipc" endless <&"$stdin" 3>&-)
        endless[i]=$!
        heard[i]=$out
    done
    for ((i = 0; i < 5; i++)); do
        read -r line <&"${heard[i]}"
        [ "$line" = first ]
    done
}

# All are gone when this returns, so that others can have their ids.
stop_endless() {
    local i out
    for ((i = 0; i < 5; i++)); do
        out=${heard[i]}
        kill -9 "${endless[i]}" 2>/dev/null || true
        cat <&"$out" >/dev/null
        exec {out}<&-
    done
    exec {stdin}<&-
}

@test "kill -9 inside a barrier: the other four name it, all alike" {
    for ((gone = 0; gone < 5; gone++)); do
        start_endless
        kill -9 "${endless[gone]}"
        for ((i = 0; i < 5; i++)); do
            [ $i -ne $gone ] || continue
            read -r status _ text <&"${heard[i]}"
            echo "member $((i + 1)): $status $text"
            [ "$status" = LS_ELOST ]
            [[ $text == *"node $((gone + 1)) was lost"* ]]
        done
        stop_endless
    done
}
