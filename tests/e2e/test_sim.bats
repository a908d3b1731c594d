# The whole cluster in one thread: the same from the same seed, right under every
# fault, and a sweep that finds what is wrong.
# bats file_tags=simulated
load helpers
load sweeps

setup() {
    enter_scratch
    barrier=$SOURCE_DIR/configs/barrier.yaml
    job=$barrier
}

@test "members go through the same epochs as processes, threads, and simulated" {
    local as
    for as in processes threads sim; do
        run --separate-stderr "$LOCKSTEP" run "$barrier" --as "$as" --nodes 3 \
            --set barrier.epochs=20 --json
        [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
        last_line "$output"
        [ "$(field event)" = summary ]
        [ "$(field epochs)" = 20 ]
        [ "$(field failures)" = 0 ]
    done
}

@test "the summary of members tells how long they waited" {
    run --separate-stderr "$LOCKSTEP" run "$barrier" --as sim
    [ "$status" -eq 0 ]
    says "done: 100 epochs of 5 members"
    for row in "virtual time" "waited         median" "barrier        1,600"; do
        says "  $row"
    done
}

# bats test_tags=slow
@test "cartpole is solved in a simulation, with the weights of any other run" {
    local i
    for i in a b; do
        run --separate-stderr "$LOCKSTEP" run "$cartpole" --as sim --json \
            --out "$i" --event-log "$i.log"
        [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
        last_line "$output"
        [ "$(field solved)" = true ]
    done
    cmp a.log b.log
    cmp a/latest/policy.msgpack b/latest/policy.msgpack
    "$LOCKSTEP" run "$cartpole" --as threads --out c
    cmp a/latest/policy.msgpack c/latest/policy.msgpack
}

@test "a job that is stopped as a whole, for longer than any wait, goes on" {
    local at id
    # while the world forms, all come to the beginning, and they keep step
    for at in 0.001 0.003 0.005; do
        echo "script:" >stop.yaml
        for id in 0 1 2 3 4; do
            echo "  - {at: $at, pause: $id, for_ms: 900000}" >>stop.yaml
        done
        run --separate-stderr "$LOCKSTEP" run "$cartpole" --as sim --fresh \
            --faults stop.yaml
        [ "$status" -eq 0 ] || { echo "$at: $stderr" >&2; return 1; }
        says "  virtual time   900."
    done
}

@test "the same seed is the same run, another one is not" {
    "$LOCKSTEP" sim "$barrier" --seed 7 --event-log a.log
    "$LOCKSTEP" sim "$barrier" --seed 7 --event-log b.log
    "$LOCKSTEP" sim "$barrier" --seed 8 --event-log c.log
    cmp a.log b.log
    run ! cmp -s a.log c.log
    grep -q 'fault: ' a.log
    # messages are named by their kind
    grep -q ' comes reliable ' a.log
    grep -q ' comes ack ' a.log
    run ! grep -E '(comes|again|loses) \? ' a.log c.log
    grep -q 'left epoch' a.log
}

@test "an event log replaces another one, and no other file" {
    echo mine >file
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --event-log file
    [ "$status" -eq 78 ]
    [[ $stderr == "lockstep: --event-log: file exists, and is not an event log: name another file" ]]
    run --separate-stderr "$LOCKSTEP" run "$barrier" --as sim --event-log file
    [ "$status" -eq 78 ]
    [ "$(<file)" = mine ]
    run ! "$LOCKSTEP" sim "$barrier" --event-log none/file
    "$LOCKSTEP" sim "$barrier" --event-log log
    "$LOCKSTEP" run "$barrier" --as sim --event-log log
    "$LOCKSTEP" sim "$barrier" --event-log log
}

# third_begins: by the log of the sweep, the third of its runs.
third_begins() {
    local begun=0
    while IFS= read -r line; do
        [[ $line != *'-/- spawns -/main' ]] || ((++begun < 3)) || break
    done < <(tail -F --pid="${pid_of[sim]}" -n +1 log 2>/dev/null 3>&-)
}

@test "Ctrl-C shows what was swept so far, exit 130" {
    local json
    for json in '' --json; do
        start sim sim "$barrier" --nodes 2 --seeds 1000000 $json --event-log log
        untraced third_begins
        kill -INT "${pid_of[sim]}"
        finish sim
        [ "$code" -eq 130 ]
        said "interrupted by SIGINT after "
        said " of 1,000,000 seeds"
        rm sim.out log
        [[ -n $json || $rest == "barrier: "*" seeds from 0 on, 2 nodes, faults \
all: 0 violations"* ]]
    done
    last_line "$rest"
    [ "$(field event)" = sweep ]
    [ "$(field signal)" = 2 ]
    (($(field runs) > 0))
}

@test "everything at once, 3 nodes" {
    holds 100 --nodes 3
}

@test "everything at once, 5 nodes" {
    holds 120 --nodes 5
    ((10#$(field kill) > 0 && 10#$(field pause) > 0 && 10#$(field cut) > 0))
    ((10#$(field lost) > 0 && 10#$(field doubled) > 0))
}

@test "everything at once, 9 nodes" {
    holds 20 --nodes 9
}

@test "everything at once, in a star" {
    holds 50 --nodes 3 --set world.topology=star
    holds 50 --nodes 5 --set world.topology=star
    holds 20 --nodes 9 --set world.topology=star
    holds 1 --nodes 5 --set world.topology=star --first 517
}

@test "each kind of fault by itself" {
    local faults
    for faults in none lossy cuts pauses crashes; do
        holds 15 --faults "$faults"
    done
    holds 10 --faults "$SOURCE_DIR/configs/faults/storm.yaml"
}

# Nobody honest fails, or is held for lost, because of them.
unharmed() {
    holds "$@"
    [ "$(field failures)" = 0 ]
    [ "$(field mistakes)" = 0 ]
    [ "$(field failed)" = 0 ]
    [ "$(field epochs)" = $((15 * $(seeds "$1"))) ]
    ((10#$(field stranger) > 0 && 10#$(field refused) > 10#$(field stranger)))
}

@test "strangers harm nobody who is a member" {
    unharmed 100 --faults stranger --nodes 3
    unharmed 20 --faults stranger --nodes 9
}

@test "strangers harm nobody in a star, and where nobody is asked who he is" {
    unharmed 30 --faults stranger --set world.topology=star
    unharmed 30 --faults stranger --set world.insecure=true
}

@test "strangers are not believed about nodes that come back" {
    local faults=$SOURCE_DIR/configs/faults/strangers.yaml
    holds 30 --faults "$faults"
    holds 1 --faults "$faults" --first 58 # whose address was said to be another's
    "$LOCKSTEP" sim "$barrier" --seed 58 --faults "$faults" --event-log a.log
    "$LOCKSTEP" sim "$barrier" --seed 58 --faults "$faults" --event-log b.log
    cmp a.log b.log
    grep -Eq 'fault: [0-9.]+ s: stranger [0-4], for_ms: [0-9]+$' a.log
}

@test "what strangers did, and what was refused, is in the summary" {
    printf 'script: [{at: 0.01, stranger: 2, for_ms: 1000}]\n' >one.yaml
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --seed 1 --faults one.yaml
    [ "$status" -eq 0 ]
    says "  faults         1 stranger"
    [[ $output =~ "  strangers      1 did "[0-9]+" things; "[0-9]+" were refused" ]]
}

@test "without faults every epoch goes well" {
    holds 20 --faults none
    [ "$(field failures)" = 0 ]
    [ "$(field mistakes)" = 0 ]
    [ "$(field epochs)" = $((15 * $(seeds 20))) ]
}

# bats test_tags=slow
@test "a barrier that never asks again is found out" {
    found no-retransmit
}

@test "members of one host hold in shared memory, too" {
    job=$barrier
    holds 20 --set world.shared_mib=1
    holds 20 --nodes 9 --set world.shared_mib=1
}

@test "members of two hosts hold, in shared memory and between hosts" {
    job=$barrier
    holds 20 --set sim.hosts=2
    holds 20 --nodes 9 --set sim.hosts=3
}

# bats test_tags=slow
@test "a barrier whose answers count in any epoch is found out" {
    found ack-without-epoch
}

# bats test_tags=slow
@test "a barrier that counts answers, and not who gave them, is found out" {
    found count-instead-of-set
}

# bats test_tags=slow
@test "a barrier that is left too soon is found out" {
    found eager
    [ -z "$LOCKSTEP_SANITIZE" ] || return 0
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --nodes 9 --seeds 200 \
        --faults "$SOURCE_DIR/configs/faults/storm.yaml" --sabotage one-phase
    [ "$status" -eq 1 ]
    [[ $stderr == *": all: "* ]]
}

# bats test_tags=slow
@test "events that are not there for all, or not counted, are found out" {
    local what
    for what in first-event later-events no-oldest untold-loss events-once; do
        found "$what"
    done
}

# bats test_tags=slow
@test "members that do not come back, or are held for silent, are found out" {
    found no-excuse
    found shut-out
}

# bats test_tags=slow
@test "room that is lost with a message is found out" {
    job=$barrier
    local faults=$SOURCE_DIR/configs/faults/drops.yaml
    holds 20 --nodes 3 --faults "$faults" --set sim.blocking=40
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --nodes 3 --seeds 20 \
        --faults "$faults" --set sim.blocking=40 --sabotage lost-credit
    [ "$status" -eq 1 ]
    [[ $stderr == *": bound: "* ]]
}

@test "what is doubled or comes late breaks no window" {
    local topology
    job=$barrier
    for topology in mesh star; do
        holds 20 --nodes 3 --faults lossy --set sim.blocking=20 \
            --set world.topology=$topology
        [ "$(field failures)" = 0 ] # who is cut off fails in an epoch
    done
}

@test "a job in lock step is swept, and writes where it may" {
    job=$cartpole
    holds 4 --faults lossy --set evaluator.solved=30
    [ "$(field alike)" -eq "$(seeds 4)" ]
    holds 6 --set evaluator.solved=30
    ((10#$(field kill) > 0))
    [ ! -e out ]
}

# bats test_tags=slow
@test "nodes that do not all end well are found out" {
    run --separate-stderr "$LOCKSTEP" sim "$cartpole" --faults lossy \
        --set evaluator.solved=30 --sabotage events-once
    [ "$status" -eq 1 ]
    [[ $stderr == *"done: "*" of 5 nodes ended well"* ]]
    [ ! -e out ]
}

@test "a job that a slow network holds up goes on, or fails by its own limit" {
    local delay
    for delay in 50 80 120; do # 120: a step takes 77 s, and its limit is 60 s
        echo "network: {delay_ms: $delay}" >slow.yaml
        "$LOCKSTEP" sim "$SOURCE_DIR/configs/cartpole-dp.yaml" --seeds 1 \
            --faults slow.yaml --set evaluator.solved=30
    done
}

# bats test_tags=slow
@test "the other jobs that come with it are swept too" {
    job=$SOURCE_DIR/configs/cartpole-restart.yaml
    holds 6 --set evaluator.solved=30
    ((10#$(field kill) > 0))
    job=$SOURCE_DIR/configs/cartpole-service.yaml
    holds 6 --set evaluator.solved=30
    ((10#$(field kill) > 0))
    ((10#$(field works) > 0))
    [ ! -e out ]
}

@test "every event is accounted for when windows are full" {
    job=$barrier
    holds 30 --nodes 3 --set sim.events=20 --coverage
    [[ $line != *'"no room in the window":0,'* ]]
}

@test "a node that is killed in a simulated run is named" {
    printf 'script: [{at: 0.01, kill: 2}]\n' >kill.yaml
    run --separate-stderr "$LOCKSTEP" run "$barrier" --as sim \
        --faults kill.yaml --set barrier.pace_ms=5
    [ "$status" -eq 1 ]
    [[ $stderr == *"node 2 (member) was killed by signal 9 (SIGKILL)"* ]]
}

@test "a cut lasts over the life of a node" {
    printf 'script:\n  - {at: 0.5, cut: 1 - 0, for_ms: 5000}\n' >cut.yaml
    printf '  - {at: 1, kill: 1, for_ms: 200}\n' >>cut.yaml
    "$LOCKSTEP" sim "$barrier" --nodes 2 --seed 1 --faults cut.yaml \
        --event-log a.log
    grep -q 'fault: 1.200 s: restart 1' a.log
    # something is sent, and comes when the cut is over
    awk '$1 > 1.3 && / comes / { print $1; exit }' a.log >first
    awk '{ exit !($1 >= 5.5) }' first
}

@test "what a violation needs of its faults is written down, and shows it again" {
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --nodes 3 --seeds 300 \
        --sabotage later-events --minimize needed.yaml
    [ "$status" -eq 1 ]
    [[ $stderr =~ "of "([0-9]+)" faults it needs the "([0-9]+)" in needed.yaml" ]]
    ((BASH_REMATCH[2] < BASH_REMATCH[1]))
    [ "$(grep -c '{at: ' needed.yaml)" -eq "${BASH_REMATCH[2]}" ]
    local seed
    seed=$(sed -n 's/^lockstep: seed \([0-9]*\): .*/\1/p' <<<"$stderr")
    [[ $stderr == *"--seed $seed --faults needed.yaml "* ]]
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --nodes 3 --seed "$seed" \
        --sabotage later-events --faults needed.yaml
    [ "$status" -eq 1 ]
    [[ $stderr == *"lockstep: seed $seed: events: "* ]]
}

@test "a file of needed faults replaces another one, and no other file" {
    local broken=(sim "$barrier" --nodes 3 --seed 0 --faults pause.yaml
        --sabotage later-events)
    printf 'script: [{at: 1, pause: 1, for_ms: 5000}]\n' >pause.yaml
    echo mine >file
    ln -s none link
    run --separate-stderr "$LOCKSTEP" "${broken[@]}" --minimize file
    [ "$status" -eq 78 ]
    [[ $stderr == "lockstep: --minimize: file exists, and is not what --minimize writes: name another file" ]]
    [ "$(<file)" = mine ]
    run --separate-stderr "$LOCKSTEP" "${broken[@]}" --minimize link
    [ "$status" -eq 78 ]
    run --separate-stderr "$LOCKSTEP" "${broken[@]}" --minimize none/file
    [ "$status" -eq 78 ]
    [[ $stderr == "lockstep: --minimize: writing none/file: its folder does not exist" ]]
    run ! "$LOCKSTEP" "${broken[@]}" --minimize needed.yaml
    cp needed.yaml first.yaml
    echo '# more' >>needed.yaml
    run ! "$LOCKSTEP" "${broken[@]}" --minimize needed.yaml
    cmp needed.yaml first.yaml
}

@test "a fault and what ends it are taken away together" {
    printf 'script:\n  - {at: 1, pause: 1}\n  - {at: 6, resume: 1}\n' >pause.yaml
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --nodes 3 --seed 0 \
        --faults pause.yaml --sabotage later-events --minimize needed.yaml
    [ "$status" -eq 1 ]
    # as it is, without the pause, and without each of six other traits
    [[ $stderr == *"of 2 faults it needs the 2 in needed.yaml; 8 runs"* ]]
    printf 'script: [{at: 1, power: 1, for_ms: 500}]\n' >power.yaml
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --nodes 3 --seed 0 \
        --faults power.yaml --sabotage later-events --minimize needed.yaml
    [ "$status" -eq 1 ]
    [[ $stderr == *"of 2 faults it needs the 2 in needed.yaml; 8 runs"* ]]
}

@test "faults that are wrong are shown with line and caret" {
    printf 'network:\n  los: 0.1\nscript:\n  - {at: 1, cut: 0 + 2}\n' >bad.yaml
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --faults bad.yaml
    [ "$status" -eq 78 ]
    [[ $stderr == *'bad.yaml:2:3: unknown key "los"; did you mean "loss"?'* ]]
    [[ $stderr == *'bad.yaml:4:18:'*'is not a link'* ]]
    [[ $stderr == *'|                  ^'* ]]
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --faults lossey
    [ "$status" -eq 78 ]
    [[ $stderr == *'did you mean "lossy"?'* ]]
    run --separate-stderr "$LOCKSTEP" sim "$barrier" --sabotage egaer
    [ "$status" -eq 2 ]
    [[ $stderr == *'did you mean "eager"?'* ]]
}

@test "help on sim and on faults teaches by example" {
    local topic
    for topic in sim faults; do
        run "$LOCKSTEP" help "$topic"
        [ "$status" -eq 0 ]
        says "  lockstep sim configs/barrier.yaml" || [ "$topic" = faults ]
        ((${#output} > 1000))
    done
}

# The run of a node is over for some of its steps when it fails in another.
@test "a learner that is cut off while its run ends learns on when all are back" {
    local at
    cat >small.yaml <<'END'
job: small
plugin: cartpole
seed: 3
world: {topology: star}
nodes:
  - role: learner
  - {role: collector, count: 2, on_loss: restart}
  - {role: evaluator, on_loss: restart}
collector: {steps: 64}
evaluator: {episodes: 1, solved: 12}
END
    # Later cuts leave a learner that is done, for which the others wait in vain.
    for at in 0.143 0.147 0.151 0.155 0.161 0.166; do
        printf '{network: {delay_ms: 5}, script: [%s]}\n' \
            "{at: $at, cut: 0 - all, for_ms: 2900}" >cut.yaml
        run --separate-stderr "$LOCKSTEP" sim small.yaml --seed 1 \
            --faults cut.yaml
        [ "$status" -eq 0 ] || { echo "at $at: $stderr" >&2; return 1; }
    done
}

# bats test_tags=slow
@test "a simulated run starts killed nodes again, the same way each time" {
    local i
    printf 'script:\n  - {at: 0.002, kill: 2}\n  - {at: 0.1, kill: 3}\n' >k.yaml
    for i in a b; do
        run --separate-stderr "$LOCKSTEP" run \
            "$SOURCE_DIR/configs/cartpole-restart.yaml" --as sim --json \
            --faults k.yaml --out "$i" --event-log "$i.log"
        [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
        last_line "$output"
        [ "$(field solved)" = true ]
        [[ $stderr == *"node 2 (collector) was killed by signal 9"* ]]
    done
    cmp a.log b.log
    cmp a/latest/policy.msgpack b/latest/policy.msgpack
}
