# A run in lock step saves all its nodes, and goes on from what it saved as if it
# had never ended: docs/runs.md, docs/checkpoints.md.
load helpers

setup() {
    enter_scratch
    exit=0
    all=(--set checkpoint.every=1 --set checkpoint.keep_last=100)
}

teardown() {
    end_started
}

# learn FOLDER ARGUMENT...: a run of cartpole there, or the rest of one, to its
# end, which is $exit.
learn() {
    local folder=$1
    shift
    run "$LOCKSTEP" run "$cartpole" --out "$folder" --timeout 100 "$@"
    [ "$status" -eq $exit ] || { echo "exit $status: $output" >&2; return 1; }
}

# saved FOLDER: the epochs of its first run, in one line.
saved() {
    "$LOCKSTEP" checkpoint ls "$1/1" --json |
        sed 's/.*"epoch":\([0-9]*\).*/\1/' | xargs
}

# judged FOLDER: these, each with what it is worth: "0:- 1:15.5".
judged() {
    "$LOCKSTEP" checkpoint ls "$1/1" --json |
        sed 's/.*"epoch":\([0-9]*\).*"return":\([0-9.]*\).*/\1:\2/
             s/.*"epoch":\([0-9]*\).*/\1:-/' | xargs
}

# cut FOLDER COPY: a copy of it, of a run that nobody ended.
cut() {
    rm -rf "$2"
    cp -a "$1" "$2"
    sed -i '/^ended/d' "$2/1/record"
    rm "$2/1/policy.msgpack"
}

# same FOLDER OTHER: what was learned there, bit for bit.
same() {
    cmp "$1/1/policy.msgpack" "$2/1/policy.msgpack"
}

# killed_at N ARGUMENT...: a run in `cut` that does not end, killed with all its
# nodes after N evaluations, or more on a busy machine; $stop has it end when it
# is gone on with.
killed_at() {
    local n=$1 i
    shift
    rm -rf cut run.out
    start run run "$cartpole" --out cut --json --timeout 100 "$@" "${endless[@]}"
    nodes_of run 5
    for ((i = 0; i < n; i++)); do
        event run '"evaluation"'
    done
    kill -9 "${pid_of[run]}"
    wait "${pid_of[run]}" || true
    [ "${nodes[0]}" = 0 ] || all_go # or they were threads
    local epochs
    read -ra epochs <<<"$(saved cut)"
    stops_after $((${epochs[-1]} + 4))
}

# stops_after N: iterations of cartpole, not solved; $stop are the words for it.
stops_after() {
    stop=(--set evaluator.solved=501 --set stop.env_step=$(($1 * 1536)))
}

# told LOG NODE: what the learner told it between the iterations, in order.
told() {
    awk -v path="127.0.0.1:21500 -> 127.0.0.1:2150$2 comes" '
        index($0, path) && /ls.exchange/ && !/welcome/ {
            print $9, $(NF - 1)
        }' "$1"
}

# bats test_tags=simulated,slow
@test "it goes on from each of its epochs to the same weights, and the same is said" {
    local seed epoch node
    # By a limit: a verdict comes when it comes, in what is discarded.
    all+=(--set evaluator.solved=501 --set stop.env_step=9216)
    exit=1
    for seed in ${SEEDS:-1}; do
        learn whole --as sim --seed "$seed" --event-log whole.log "${all[@]}"
        for epoch in $(saved whole); do
            cut whole cut
            [ ! -e "cut/1/checkpoints/manifest.$(printf %06d $((epoch + 1)))" ] &&
                continue # the end
            learn cut --as sim --seed "$seed" --event-log cut.log "${all[@]}" \
                --epoch "$epoch"
            says "resuming the interrupted run in cut/1"
            same whole cut
            for node in 1 2 3 4; do
                told cut.log $node >rest
                told whole.log $node | tail -n "$(wc -l <rest)" | cmp - rest
                [ -s rest ]
            done
            # All that the nodes have, after each iteration.
            for node in cut/1/checkpoints/node-*; do
                cmp "$node" "whole/${node#cut/}"
            done
        done
        rm -rf whole
    done
}

# bats test_tags=slow
@test "killed at any moment, the same command comes to the same weights" {
    local as_seed n=1 args
    exit=1
    for as_seed in "sim 0" "threads 3" "processes 3"; do
        args=(--as "${as_seed% *}" --seed "${as_seed#* }" "${all[@]}")
        killed_at $((n += 1)) "${args[@]}"
        rm -rf whole
        learn whole "${args[@]}" "${stop[@]}"
        learn cut "${args[@]}" "${stop[@]}"
        says "resuming the interrupted run in cut/1"
        same whole cut
        [ "$(judged whole)" = "$(judged cut)" ]
    done
}

@test "killed before anything was saved, the same command comes to the same weights" {
    exit=1
    local args=(--as sim --set evaluator.solved=501 --set stop.env_step=3000)
    learn whole "${args[@]}"
    cut whole cut
    rm -r cut/1/checkpoints
    learn cut "${args[@]}"
    says "resuming the interrupted run in cut/1"
    same whole cut
}

# bats test_tags=slow
@test "batches that were under way are learned first" {
    local epoch queue=(--as sim --seed 3 --set learner.queue=2 "${all[@]}")
    learn whole "${queue[@]}"
    for epoch in 1 5; do
        cut whole cut
        learn cut "${queue[@]}" --epoch $epoch
        same whole cut
    done
}

@test "it is saved before the first iteration, and at its end; two are kept" {
    learn out --as sim
    local last
    last=$("$LOCKSTEP" checkpoint show out/1 --json |
        sed 's/.*"epoch":\([0-9]*\).*/\1/')
    [ "$(saved out)" = "0 $last" ]
    learn most --as sim --set checkpoint.every=1
    [ "$(saved most)" = "$((last - 1)) $last" ]
    run "$LOCKSTEP" checkpoint verify out/1
    [ "$status" -eq 0 ]
    same out most
}

# bats test_tags=slow
@test "when it is saved, and what is kept, is told by the file" {
    local keep=(--as sim --seed 3 --set checkpoint.every=1)
    learn every --as sim --seed 3 --set checkpoint.every=3 \
        --set checkpoint.keep_last=100
    [ "$(saved every)" = "0 3 6 9 10" ]
    # By the clock of the simulation.
    learn seconds --as sim --seed 3 --set checkpoint.seconds=0.002 \
        --set checkpoint.keep_last=100
    [[ $(saved seconds) == "0 "*" "*" 10" ]]
    learn never --as sim --seed 3 --set checkpoint.seconds=0
    [ "$(saved never)" = "0 10" ]
    learn last "${keep[@]}" --set checkpoint.keep_last=3
    [ "$(saved last)" = "8 9 10" ]
    learn kept "${keep[@]}" --set checkpoint.keep_last=1 \
        --set checkpoint.keep_every=4
    [ "$(saved kept)" = "0 4 8 10" ]
    same every seconds
    same every kept
}

# bats test_tags=slow
@test "the best by evaluation are kept, and can be played and gone on from" {
    local -a best=(--as sim --seed 3 --set checkpoint.keep_last=1
        --set checkpoint.best=3 --set evaluator.every=2) kept
    local solved
    learn out "${best[@]}"
    read -ra kept <<<"$(judged out)"
    # Only what is evaluated is saved for it; of the newest nothing is known.
    [[ ${kept[*]} =~ ^([0-9]?[02468]:[0-9.]+\ ){3}[0-9]+:-$ ]]
    solved=${kept[2]}
    run "$LOCKSTEP" eval out/1 --epoch best --json
    [ "$status" -eq 0 ]
    says "node-0.$(printf %06d "${solved%:*}")"
    says "\"return\":${solved#*:}"
    "$LOCKSTEP" export out/1 --epoch best --out best
    "$LOCKSTEP" export out/1 --epoch "${solved%:*}" --out solved
    cmp best solved
    cut out cut
    learn cut "${best[@]}" --epoch best
    says "resuming the interrupted run in cut/1"
    same out cut
    [ "$(judged cut)" = "${kept[*]}" ]
    exit=1
    learn none --as sim --set stop.env_step=1 --set evaluator.every=1000
    run "$LOCKSTEP" eval none/1 --epoch best
    [ "$status" -ne 0 ]
    says "was evaluated"
}

@test "a save that fails ends the run, or it goes on" {
    local args=(run "$cartpole" --as threads --json --timeout 100
        --set checkpoint.every=1 "${endless[@]}")
    start fails "${args[@]}" --out fails
    event fails '"evaluation"'
    mv fails/1/checkpoints fails/1/gone
    finish fails
    [ "$code" -eq 1 ]
    said "was not saved"
    said "fails/1/checkpoints"
    said "the weights after "
    start goes "${args[@]}" --out goes --set checkpoint.on_fail=go_on
    event goes '"evaluation"'
    mv goes/1/checkpoints goes/1/gone
    event goes '"evaluation"'
    event goes '"evaluation"'
    event goes '"evaluation"'
    kill -INT "${pid_of[goes]}"
    finish goes
    [ "$code" -eq 130 ]
    said "was not saved"
    said "the run goes on"
    [ -s goes/1/policy.msgpack ]
    last_line "$rest"
    [ "$(field event)" = summary ]
    [ "$(field failed_saves)" -gt 0 ]
}

@test "a run whose checkpoints are gone is not resumed, and its weights stay" {
    local args=(run "$cartpole" --as threads --json --timeout 100 "${endless[@]}")
    start run "${args[@]}"
    event run '"evaluation"'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    cp out/cartpole/1/policy.msgpack before
    mv out/cartpole/1/checkpoints gone
    run "$LOCKSTEP" "${args[@]}"
    [ "$status" -eq 78 ]
    says "out/cartpole/1/checkpoints has no checkpoint, and policy.msgpack beside it is of "
    says "put the checkpoints back, or begin anew with --fresh"
    cmp before out/cartpole/1/policy.msgpack
    mv gone out/cartpole/1/checkpoints
    start again "${args[@]}"
    event again '"evaluation"'
    kill -INT "${pid_of[again]}"
    finish again
    said "resuming the interrupted run in out/cartpole/1"
    [ "$code" -eq 130 ]
}

@test "a first save that fails ends the run before it has learned anything" {
    run --separate-stderr bash -c 'ulimit -S -f 16 && exec "$@"' of-16-KiB \
        "$LOCKSTEP" run "$cartpole" --json --timeout 30 \
        --set checkpoint.seconds=0 "${endless[@]}"
    [ "$status" -eq 1 ]
    [[ $output != *'"evaluation"'* ]]
    [[ $stderr == *"epoch 0 was not saved"*"File too large"* ]]
}

@test "SIGUSR2 has it save, as processes and as threads" {
    local as before
    for as in processes threads; do
        rm -f run.out
        start run run "$cartpole" --as $as --out $as --json --timeout 100 \
            --set checkpoint.seconds=0 --set checkpoint.keep_last=100 \
            "${endless[@]}"
        event run '"evaluation"'
        kill -USR2 "${pid_of[run]}"
        until [[ $(saved $as) == "0 "* ]]; do
            event run '"evaluation"'
        done
        kill -INT "${pid_of[run]}"
        finish run
        [ "$code" -eq 130 ]
    done
}

# interrupted ARGUMENT...: a run in `cut` that Ctrl-C alone ends, after two
# evaluations or more, and $stop as above; false: it took longer than the second
# that it has for the iteration under way.
interrupted() {
    rm -rf cut run.out
    start run run "$cartpole" --out cut --json "$@" "${endless[@]}"
    event run '"evaluation"'
    event run '"evaluation"'
    kill -INT "${pid_of[run]}"
    finish run
    last_line "$rest"
    stops_after $(($(field train_iter) + 4))
    [ "$(saved cut)" = "0 $(field train_iter)" ]
}

# bats test_tags=slow
@test "Ctrl-C loses nothing: the rest is that of a run nobody ended" {
    local as try=0
    exit=1
    for as in threads processes; do
        until interrupted --as $as --seed 3; do
            [ "$code" -eq 130 ]
            ((++try < 5)) # on a machine that is busy
        done
        [ "$code" -eq 130 ]
        rm -rf whole
        learn whole --as $as --seed 3 "${stop[@]}"
        learn cut --as $as --seed 3 "${stop[@]}"
        says "resuming the interrupted run in cut/1"
        same whole cut
    done
}

# bats test_tags=slow
@test "what was saved can be played, and given to others" {
    learn out --as sim --seed 3 "${all[@]}"
    run "$LOCKSTEP" eval out/1 --epoch 4
    [ "$status" -eq 0 ]
    says "in 4 updates"
    says "out/1/checkpoints"
    run "$LOCKSTEP" eval out/1
    says "in 9 updates"
    "$LOCKSTEP" export out/1 --epoch 4 --out four
    "$LOCKSTEP" export out/1 --epoch 5 --out five
    run ! cmp -s four five
    run "$LOCKSTEP" eval out/1 --epoch 40
    [ "$status" -ne 0 ]
    says "out/1/checkpoints has no checkpoint of epoch 40; there are "
    cut out cut
    run "$LOCKSTEP" eval cut/1
    [ "$status" -eq 0 ]
    says "in 9 updates"
}

# bats test_tags=slow
@test "an epoch that is not there is refused, and so is one of a run that ended" {
    learn out --as sim --seed 3
    run "$LOCKSTEP" run "$cartpole" --as sim --seed 3 --out out --epoch 0
    [ "$status" -eq 78 ]
    says "has ended"
    cut out cut
    run "$LOCKSTEP" run "$cartpole" --as sim --seed 3 --out cut --epoch 4
    [ "$status" -eq 78 ]
    says "there is no cut/1/checkpoints/manifest.000004"
    run "$LOCKSTEP" run "$cartpole" --fresh --epoch 4
    [ "$status" -eq 2 ]
}

@test "a damaged checkpoint is passed over, and named" {
    learn whole --as sim --seed 3 "${all[@]}"
    cut whole cut
    rm cut/1/checkpoints/*.000009
    printf X | dd of=cut/1/checkpoints/node-2.000008 bs=1 seek=200 \
        conv=notrunc status=none
    learn cut --as sim --seed 3 "${all[@]}"
    says "node-2.000008"
    same whole cut
}
