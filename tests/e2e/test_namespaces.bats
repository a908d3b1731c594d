#!/usr/bin/env bats
# bats file_tags=slow
# Worlds of processes on five hosts, on networks as bad as they get. EPOCHS,
# CUT_MS and FLAPS make a longer test of it, SEED another one.

load helpers
load namespaces

setup() {
    enter_scratch
    need_namespaces
    make_hosts
    epochs=${EPOCHS:-6}
    cut_ms=${CUT_MS:-3200}
    flaps=${FLAPS:-2}
}

teardown() {
    remove_hosts
}

# all_judged: after a world in which nobody failed.
all_judged() {
    nobody_early $hosts any ./*.out
    ! grep -H '^failed' ./*.out
}

# through TOPOLOGY: a bad network, and `epochs` epochs.
through() {
    topology=$1
    tell delay 20 5
    tell loss 0.05
    tell duplicate 0.02
    tell reorder 0.02
    begin_all 10000
    lines 1 is_epoch "$((epochs - 1))"
    end 3 1 2 4 5
    report "20 ms, 5 % loss, $1"
    # all of it has been, and the switch was not the bottleneck
    [[ ! $answer =~ (lost|duplicated|reordered)\ 0\  ]]
    [[ $answer == *"overflowed 0 refused 0"* ]]
    all_judged
}

@test "epochs under delay, loss, duplication and reordering: mesh" {
    through mesh
}

@test "epochs under delay, loss, duplication and reordering: star" {
    through star
}

# over_cut COMMAND...: epochs before the cuts, cuts shorter than the time of
# silence, though longer than connections last, and epochs after they have
# healed.
over_cut() {
    tell delay 5 1
    begin_all $((cut_ms + 20000))
    lines 5 is_epoch 10
    local cut
    for cut; do
        tell "$cut"
    done
    tell heal "$cut_ms"
    answer healed
    local healed=$answer entered
    lines 1 is_entered_after "$healed"
    read -r _ entered _ <<<"$line"
    lines 5 is_epoch $((${line%% *} + 10))
    end 2 1 3 4 5
    report "$*, $cut_ms ms"
    echo "# next epoch $(((entered - healed) / 1000000)) ms after that" >&3
    [[ ! $answer =~ cut\ 0\  ]]
    all_judged
}

@test "pairs, single directions and a host are cut, and go on when healed" {
    over_cut 'cut 1 3' 'oneway 1 5' 'oneway 4 1' 'cut 2 *'
}

@test "the leader's host is cut from all others, and goes on when healed" {
    over_cut 'cut 1 *'
}

@test "cuts come and go on a bad network, and nobody is lost" {
    local cuts=('cut 1 *' 'oneway 2 *' 'cut 4 5' 'oneway * 3' 'cut 1 3') i
    tell delay 20 5
    begin_all 30000
    lines 5 is_epoch 1
    tell loss 0.05
    for ((i = 0; i < flaps; i++)); do
        tell "${cuts[i % 5]}"
        tell "${cuts[i * 7 % 3]}"
        tell heal $((300 + i * 777 % 2000))
        answer healed
    done
    lines 1 is_entered_after "$answer"
    lines 5 is_epoch $((${line%% *} + 3))
    end 2 1 3 4 5
    report "$flaps times cut and healed"
    all_judged
}

# all_name N SINCE MEMBER...: each of these has failed, said so long before an
# epoch gives up or the silence of `killed` is over, named node N, and ended.
all_name() {
    local n=$1 since=$2 ms=30000 name at last=0
    shift 2
    for name; do
        lines "$name" begins_with failed
        [[ $line == *"node $n "* || $line == *"node $n:"* ||
            $line == *"node $n,"* || $line == *"node $n" ]] || {
            echo "member $name does not name node $n: $line" >&2
            return 1
        }
        read -r _ at _ <<<"$line"
        [ "$at" -lt $last ] || last=$at
        [ "$at" -le $((since + ms * 1000000)) ] || {
            echo "member $name was late: $since, $line" >&2
            return 1
        }
        run ! wait "${pid_of[$name]}"
    done
    echo "# node $n was named by all $(((last - since) / 1000000)) ms later" >&3
    nobody_early $# any "${@/%/.out}"
    nobody_early any any ./*.out
}

# now_ns: on the clock that members use, by a command that changes nothing.
now_ns() {
    tell loss 0 1 1
    now=$answer
}

dead() {
    tell delay 20 5
    begin_all 1500
    lines 5 is_epoch 5
    tell dead "$1"
    since=$answer
    shift
    all_name "$dead" "$since" "$@"
}

@test "a dead host: all others name it when its silence has lasted" {
    dead=4
    dead 4 1 2 3 5
}

@test "the leader's host is dead: all others name it" {
    dead=1
    dead 1 2 3 4 5
}

# killed N MEMBER...: its end is known by its connections, not by its silence.
killed() {
    local n=$1
    shift
    tell delay 20 5
    begin_all 60000
    lines 5 is_epoch 5
    now_ns
    kill -KILL "${pid_of[$n]}"
    all_name "$n" "$now" "$@"
}

@test "kill -9 of a process: the others name it at once" {
    killed 4 1 2 3 5
}

@test "kill -9 of the leader: the others name it at once" {
    killed 1 2 3 4 5
}

# comes_back N FILE...: all go on in one world after the time $now, N in it; as
# the FILEs say, with another incarnation each time.
comes_back() {
    local name
    for name in 1 2 3 4 5; do
        lines $name is_after whole "$now"
    done
    lines "$1" is_entered_after "$now"
    shift
    lines 5 is_epoch $((${line%% *} + 10))
    end 2 1 3 4 5
    nobody_early any any ./*.out
    cat "$@" | awk '/^whole/ { if (known[$3]++) exit 1; n++ } END { exit n < 2 }'
}

all_fail() {
    local name
    for name; do
        lines "$name" begins_with failed
    done
}

@test "a process is stopped until it is lost, goes on, and joins as new" {
    tell delay 5 1
    begin_all 1500 again
    lines 5 is_epoch 5
    kill -STOP "${pid_of[3]}"
    all_fail 1 2 4 5
    now_ns
    kill -CONT "${pid_of[3]}"
    comes_back 3 3.out
    grep -q 'node 3 was declared lost' 3.err
}

@test "a host is cut off until it is lost, and joins as new when healed" {
    tell delay 5 1
    begin_all 1500 again
    lines 5 is_epoch 5
    tell cut 3 '*'
    all_fail 1 2 3 4 5
    tell heal
    answer healed
    now=$answer
    comes_back 3 3.out
}

@test "a process is killed and started again with the same id" {
    tell delay 5 1
    begin_all 60000 again
    lines 5 is_epoch 5
    kill -KILL "${pid_of[3]}"
    all_fail 1 2 4 5
    now_ns
    begin_again 3 60000 again
    comes_back 3 3.1.out 3.out
}

# Of eight members the odd are on one host, the even on another. A message goes
# through shared memory where both share a folder; so the others went from host
# to host, but for those before that memory was made.
@test "of two hosts one member each speaks for the others there" {
    local i n=8 last=300
    mkdir -m 700 "$XDG_RUNTIME_DIR/0" "$XDG_RUNTIME_DIR/1"
    for ((i = 1; i <= n; i++)); do
        XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR/$((i % 2)) \
            nsenter --net="/run/netns/$(namespace $((2 - i % 2)))" "$member" $i \
            $n mesh "tcp://$subnet.$((2 - i % 2)):$((21500 + i))" \
            "tcp://$subnet.1:21501" barrier $last near \
            >$i.out 2>$i.err 3>&- {switch_in}>&- &
        pid_of[$i]=$!
    done
    for ((i = 1; i <= n; i++)); do
        wait "${pid_of[$i]}" || { cat $i.err && return 1; }
    done
    nobody_early $n $last ./*.out
    # Through the leader alone there would be 16 an epoch.
    cat ./*.out | awk -v epochs=$last '
        $1 == "sent" { sent += $2; near += $4; again += $6 }
        END {
            print "# between hosts " (sent - near) / epochs " an epoch, of " \
                sent / epochs ", " again " repeated"
            exit sent - near - again > 12 * epochs
        }' >&3
}

@test "five nodes of the program train over a bad network" {
    local i iterations=
    tell delay 5 2
    tell loss 0.02
    cat >five.yaml <<END
job: five
plugin: cartpole
nodes: [{role: learner}, {role: collector, count: 3}, {role: evaluator}]
world: {insecure: true, shared_mib: 0}
stop: {env_step: 2000}
END
    for ((i = 1; i <= hosts; i++)); do
        nsenter --net="/run/netns/$(namespace $i)" "$LOCKSTEP" node five.yaml \
            --id $((i - 1)) --bind "tcp://$subnet.$i:21500" --json \
            --attach "tcp://$subnet.1:21500" \
            >$i.out 2>$i.err 3>&- {switch_in}>&- &
        pid_of[$i]=$!
    done
    for ((i = 1; i <= hosts; i++)); do
        wait "${pid_of[$i]}"
        last_line "$(cat $i.out)"
        [ "$(field event)" = summary ]
        [ "${iterations:=$(field iteration)}" = "$(field iteration)" ]
    done
}

@test "the switch refuses what is not a command" {
    for line in nonsense 'delay 20' 'loss 1.5' 'cut 1' 'cut 1 6' 'dead 0' \
        'loss 0.1 1' 'heal x'; do
        echo "$line" >&"$switch_in"
        answer error
    done
}
