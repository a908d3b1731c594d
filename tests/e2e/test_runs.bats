# Each run has a folder of its own, and what the same command does when it comes
# again: docs/runs.md.
load helpers

setup() {
    enter_scratch
    four_nodes "world: {transport: ipc}"
}

teardown() {
    end_started
}

# again ARGUMENT...: the same command, to its end, which is solved; its summary
# is $line.
again() {
    touch solved
    rm -f again.out
    start again run job.yaml --json --timeout 100 "$@"
    finish again
    [ "$code" -eq 0 ] || { echo "exit $code: $err" >&2; return 1; }
    last_line "$rest"
}

# interrupted: a run that has learned something, ended by Ctrl-C; it came so far
# as $before.
interrupted() {
    rm -f solved run.out
    begin
    event run '"evaluation"'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    last_line "$rest"
    before=$(field train_iter)
    [ "$before" -gt 0 ]
}

@test "a run that was interrupted goes on" {
    interrupted
    again
    said "resuming the interrupted run in out/job/1"
    # It evaluates first what it goes on from; by now that is good enough.
    [ "$(field train_iter)" -eq "$before" ]
    [ "$(field weights)" = out/job/1/policy.msgpack ]
    only_policy_is_left
}

@test "one that was killed goes on from its checkpoint" {
    begin --set checkpoint.every=1
    evaluated run 5
    kill -9 "${pid_of[run]}"
    wait "${pid_of[run]}" || true
    local pid
    for pid in "${nodes[@]}"; do
        timeout 30 tail -s 0.05 --pid="$pid" -f /dev/null
    done
    [ "$("$LOCKSTEP" checkpoint ls out/job/1 --json | wc -l)" -gt 0 ]
    again --set checkpoint.every=1
    said "resuming"
    [ "$(field train_iter)" -gt 1 ]
    only_policy_is_left
}

@test "one that has ended stays as it is, and another begins" {
    again
    local sum
    sum=$(cksum <out/job/1/policy.msgpack)
    again
    [[ $err != *"resuming"* ]]
    [ "$(field weights)" = out/job/2/policy.msgpack ]
    [ "$(readlink out/job/latest)" = 2 ]
    [ "$(cksum <out/job/1/policy.msgpack)" = "$sum" ]
}

@test "Ctrl-C before anything was learned takes nothing away" {
    again
    rm solved
    start run run job.yaml --json --timeout 100
    event run '"bound"'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    [ "$(readlink out/job/latest)" = 1 ]
    [ -s out/job/1/policy.msgpack ]
    [ "$(ls -A out/job)" = $'1\nlatest' ]
}

@test "when it ends, and where its nodes are, is no matter; what it learns is" {
    interrupted
    again --set evaluator.episodes=1 --set world.transport=tcp --set stop.minutes=50
    said "resuming"
    interrupted
    [[ $err != *"resuming"* ]]
    again --seed 7
    [[ $err != *"resuming"* ]]
    [ "$(readlink out/job/latest)" = 3 ]
    again
    said "resuming the interrupted run in out/job/2"
}

@test "--fresh begins another, and says what it leaves" {
    interrupted
    again --fresh
    said "a new run, in out/job/2; the one in out/job/1 stays as it is"
    [ "$(ls -A out/job)" = $'1\n2\nlatest' ]
    [ -s out/job/1/policy.msgpack ]
}

@test "a replay or a profile does not stand between it and its command" {
    begin --record run.lsrec
    event run '"evaluation"'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    "$LOCKSTEP" replay run.lsrec --timeout 100
    "$LOCKSTEP" profile job.yaml --steps 2 --timeout 100 --set evaluator.solved=0
    [ "$(readlink out/job/latest)" = 3 ]
    again
    said "resuming the interrupted run in out/job/1"
}

# refused CODE TEXT ARGUMENT...
refused() {
    local code=$1 text=$2
    shift 2
    run "$LOCKSTEP" run job.yaml --timeout 100 "$@"
    [ "$status" -eq "$code" ]
    says "$text"
}

@test "--resume goes on with an interrupted run, also one that was left behind" {
    interrupted
    local first=$before
    again --resume
    said "resuming the interrupted run in out/job/1"
    [ "$(field train_iter)" -eq "$first" ]
    rm -rf out
    interrupted
    again --fresh
    again --resume 1
    said "resuming the interrupted run in out/job/1"
    [ "$(field weights)" = out/job/1/policy.msgpack ]
    [ "$(readlink out/job/latest)" = 1 ]
    [ "$(ls -A out/job)" = $'1\n2\nlatest' ]
}

@test "--resume fails where there is nothing to resume" {
    refused 78 "there is no run in out/job that would learn the same; leave out --resume" --resume
    [ ! -e out ]
    again
    refused 78 "the run in out/job/1 has ended, and there is nothing left to do" --resume
    refused 78 "--resume 7: there is no run 7 in out/job" --resume 7
    interrupted
    refused 78 "--resume 2: the run in out/job/2 would learn something else" --resume 2 --seed 7
    refused 2 "--fresh begins a new run" --resume --fresh
    refused 2 "--resume=two: expected latest, or the number of a run" --resume=two
    [ "$(ls -A out/job)" = $'1\n2\nlatest' ]
    run "$LOCKSTEP" run "$SOURCE_DIR/configs/barrier.yaml" --resume
    [ "$status" -eq 78 ]
    says "is a job of members, who learn nothing and begin again each time"
}

@test "two at once: the second is told to wait, or to begin its own" {
    begin
    run --separate-stderr "$LOCKSTEP" run job.yaml --timeout 100
    [ "$status" -eq 75 ]
    [[ $stderr == *"run 1 of this job is in progress, in out/job/1"*--fresh* ]]
    rm -f other.out
    start other run job.yaml --json --timeout 100 --fresh
    event other '"evaluation"'
    touch solved
    finish other
    [ "$code" -eq 0 ]
    finish run
    [ "$code" -eq 0 ]
    [ -s out/job/1/policy.msgpack ]
    [ -s out/job/2/policy.msgpack ]
}

@test "where nothing can be written it is said before anything is done" {
    echo mine >file
    run --separate-stderr "$LOCKSTEP" check job.yaml --out file/out
    [ "$status" -eq 1 ]
    [[ $stderr == *"file"*"Not a directory"* ]]
    run --separate-stderr "$LOCKSTEP" run job.yaml --out file/out
    [ "$status" -eq 1 ]
    [[ $stderr == *"file/out"*"Not a directory"* ]]
    [[ $stderr != *iteration* ]]
    [ "$(cat file)" = mine ]
}

@test "nodes one by one: a learner that was killed goes on by the same command" {
    local id as=(--set checkpoint.every=1 --set env.prize=solved)
    by_hand
    three "${as[@]}"
    evaluated n2 5
    kill -9 "${pid_of[n0]}"
    wait "${pid_of[n0]}" || true
    touch solved
    start again node job.yaml --id 0 --json "${as[@]}"
    finish again
    [ "$code" -eq 0 ] || { echo "$err" >&2; return 1; }
    said "resuming the interrupted run in out/job/1"
    last_line "$rest"
    [ "$(field train_iter)" -gt 1 ]
    for id in 1 2; do
        finish "n$id"
        [ "$code" -eq 0 ] || { echo "node $id: $err" >&2; return 1; }
    done
    only_policy_is_left
}

@test "a service job takes nothing away that it did not write" {
    mkdir mydata mypol
    echo mine | tee mydata/d1.csv mypol/policy_best.msgpack >other
    cat >service.yaml <<'END'
job: job
plugin: counter
nodes:
  - {role: coordinator}
  - {role: learner}
  - {role: collector, count: 2}
collector: {envs: 2, steps: 8}
coordinator:
  iterations: 5
  batch: 2
  data: {store: files, path_data: mydata, path_policy: mypol}
evaluator: {episodes: 2}
END
    run --separate-stderr "$LOCKSTEP" run service.yaml --timeout 100
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    [ "$(ls -A mydata)" = d1.csv ]
    [ "$(ls -A mypol)" = policy_best.msgpack ]
    cmp mydata/d1.csv other
    cmp mypol/policy_best.msgpack other
}

@test "nodes one by one find the folders of the run that was begun last" {
    local id life
    cat >service.yaml <<END
job: job
plugin: counter
world: {transport: ipc, dir: $BATS_TEST_TMPDIR/runtime}
nodes:
  - {role: coordinator, on_loss: restart}
  - {role: learner, on_loss: restart}
  - {role: collector, count: 2, on_loss: restart}
collector: {envs: 2, steps: 8}
coordinator:
  iterations: 1000
  batch: 2
  data: {store: files, path_data: mydata}
evaluator: {episodes: 2}
END
    for life in 1 2; do
        rm -f n?.out
        for id in 3 2 1 0; do
            start "n$id" node service.yaml --id $id --json
        done
        for id in 0 1 2 3; do
            finish "n$id"
            [ "$code" -eq 0 ] || { echo "node $id: $err" >&2; return 1; }
        done
        [ "$(ls -A mydata)" = "" ]
        [ "$(readlink out/job/latest)" = $life ]
        only_policy_is_left
    done
}
