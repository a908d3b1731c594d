#!/usr/bin/env bats
# Members that are stopped, killed, started again, and started twice.

load helpers

setup() {
    enter_scratch
    member=$BUILD_DIR/tests/e2e/member/member
}

teardown() {
    local name
    for name in "${!pid_of[@]}"; do
        kill -CONT "${pid_of[$name]}" 2>/dev/null || true
        kill -KILL "${pid_of[$name]}" 2>/dev/null || true
    done
}

# live NAME ID WORLD TOPOLOGY: a member that tells what it sees; it ends when
# end_of is called.
live() {
    local name=$1 id=$2 world=$3 topology=$4 fd
    mkfifo "$name.out" "$name.in"
    "$member" "$id" "$world" "$topology" "ipc://$PWD/$name.ipc" \
        "ipc://$PWD/a.ipc" watch <"$name.in" >"$name.out" 2>"$name.err" 3>&- &
    pid_of[$name]=$!
    exec {fd}>"$name.in"
    in_of[$name]=$fd
    exec {fd}<"$name.out"
    fd_of[$name]=$fd
}

# life NAME: its incarnation, as $life.
life() {
    event "$1" "is "
    life=${line#is }
}

# all NAME TEXT...: a line with each of these, in whatever order; two threads
# write them. Its incarnation, if that was said, as $life.
all() {
    untraced read_all "$@"
}

read_all() {
    local name=$1 i
    shift
    local -a missing=("$@")
    while [ ${#missing[@]} -gt 0 ]; do
        IFS= read -r -t 60 line <&"${fd_of[$name]}" ||
            { echo "$name never said: ${missing[*]}" >&2; return 1; }
        [[ $line != "is "* ]] || life=${line#is }
        for i in "${!missing[@]}"; do
            [[ $line != *"${missing[i]}"* ]] || { unset "missing[i]"; break; }
        done
    done
}

world() {
    declare -gA in_of=()
    live a 1 3 "$1"
    live b 2 3 "$1"
    live c 3 3 "$1"
    all a "is " "ready 2 " "ready 3 "
    all b "is " "ready 1 " "ready 3 "
    all c "is " "ready 1 " "ready 2 "
}

end_all() {
    local name fd
    # All at first: those that started later hold the inputs of the earlier.
    for name; do
        fd=${in_of[$name]}
        exec {fd}>&-
    done
    for name; do
        finish "$name"
        [ "$code" -eq 0 ]
    done
}

@test "who was stopped for too long rejoins as a new member" {
    world mesh
    old=$life
    kill -STOP "${pid_of[c]}"
    event a "lost 3 LS_ETIMEDOUT"
    event b "lost 3 LS_ETIMEDOUT"
    kill -CONT "${pid_of[c]}"
    all c "error node 3 was declared lost by node" "is " "ready 1 " "ready 2 "
    [ "$life" != "$old" ]
    event a "ready 3 $life"
    event b "ready 3 $life"
    end_all a b c
}

@test "who is killed is lost, and is let in again at once" {
    world mesh
    old=$life
    kill -KILL "${pid_of[c]}"
    event a "lost 3 LS_ELOST"
    event b "lost 3 LS_ELOST"
    wait "${pid_of[c]}" || true
    rm c.in c.out
    live c 3 3 mesh
    life c
    [ "$life" != "$old" ]
    event a "ready 3 $life"
    event b "ready 3 $life"
    end_all a b c
}

@test "who is killed is let in again at another address" {
    world mesh
    kill -KILL "${pid_of[c]}"
    wait "${pid_of[c]}" || true
    live d 3 3 mesh
    life d
    event a "ready 3 $life"
    event b "ready 3 $life"
    end_all a b d
}

@test "a second node of an id is refused, and both addresses are named" {
    world mesh
    live d 3 3 mesh
    finish d
    [ "$code" -eq 1 ]
    [[ $err == *"node id 3 is taken"* ]]
    [[ $err == *"$PWD/c.ipc"* ]]
    [[ $err == *"$PWD/d.ipc"* ]]
    end_all a b c
    [[ $rest != *lost* ]]
}

@test "a second node of an id is refused in a star too" {
    world star
    live d 3 3 star
    finish d
    [ "$code" -eq 1 ]
    [[ $err == *"node id 3 is taken"* ]]
    [[ $err == *"$PWD/c.ipc"* ]]
    end_all a b c
}

@test "when the hub is killed its leaves name all that are out of reach" {
    world star
    kill -KILL "${pid_of[a]}"
    event b "lost "
    event b "lost "
    event c "lost "
    event c "lost "
    wait "${pid_of[a]}" || true
    rm a.in a.out
    live a 1 3 star
    life a
    # One of the leaves rejoins, or both, so that all agree on who is there.
    event b "ready "
    event b "ready "
    event c "ready "
    event c "ready "
    end_all b c a
}
