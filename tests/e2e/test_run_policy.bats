# Nodes that fail while the run goes on: they are started again, or done
# without, as the policy of each says. A run is solved when the test says so, by
# a file.
load helpers

setup() {
    enter_scratch
    export LOCKSTEP_PLUGIN_PATH=$plugins
    # By files of its own: nobody else can take the address that a node had.
    cat >job.yaml <<'END'
job: job
plugin: faulty
world: {transport: ipc}
nodes:
  - {role: learner, on_loss: restart}
  - {role: collector, count: 3, on_loss: restart}
  - {role: evaluator, on_loss: restart}
collector: {steps: 20}
checkpoint: {every: 10}
evaluator: {episodes: 2, solved: 1000}
env: {prize: solved}
END
}

# begin ARGUMENT...: a run that has evaluated some of its weights.
begin() {
    rm -rf run.out solved
    start run run job.yaml --json --timeout 200 "$@"
    nodes_of run 5
    event run '"evaluation"'
    event run '"evaluation"'
}

# restarts_of NODE: in the summary $line.
restarts_of() {
    [[ $line =~ \"node\":$1,[^}]*\"restarts\":([0-9]+) ]] &&
        echo "${BASH_REMATCH[1]}"
}

# kill_and_solve NODE ARGUMENT...
kill_and_solve() {
    local node=$1
    shift
    begin "$@"
    kill -9 "${nodes[$node]}"
    comes_back "$node"
    ends_solved
    [ "$(restarts_of "$node")" = 1 ]
    said "node $node ("
    said "was killed by signal 9 (SIGKILL); restart 1 of 3 in 100 ms"
}

@test "kill -9 of a collector: it is started again, and the run is solved" {
    kill_and_solve 2
}

@test "kill -9 of the evaluator" {
    kill_and_solve 4
}

@test "kill -9 of the learner: it goes on from its checkpoint" {
    LS_LOG=info begin
    evaluated run 22 # so that of 10 is there
    kill -9 "${nodes[0]}"
    comes_back 0
    event run '"evaluation"'
    [ "$(field train_iter)" -ge 10 ]
    ends_solved
    [ "$(restarts_of 0)" = 1 ]
    [[ $err =~ all\ nodes\ go\ on\ from\ epoch\ [1-9][0-9]*0$'\n' ]]
}

@test "one that is killed before the first of them begins anew" {
    LS_LOG=info begin --set checkpoint.every=0
    evaluated run 30
    kill -9 "${nodes[0]}"
    comes_back 0
    event run '"evaluation"'
    ends_solved
    said "all nodes go on from epoch 0"
}

@test "kill -9 of the hub of a star: no socket file is left" {
    mkdir run
    export XDG_RUNTIME_DIR=$PWD/run
    kill_and_solve 0 --set world.topology=star
    [ -z "$(ls -A run)" ]
}

@test "kill -9 of the learner, over tcp" {
    kill_and_solve 0 --set world.transport=tcp --set world.ports=24100-24199
}

@test "kill -9 of two at once, and of one that has just come back" {
    begin
    kill -9 "${nodes[0]}" "${nodes[3]}"
    event run '"restarting"'
    event run '"restarting"'
    event run '"started"'
    nodes[$(field node)]=$(field pid)
    event run '"started"'
    nodes[$(field node)]=$(field pid)
    kill -9 "${nodes[3]}"
    comes_back 3
    ends_solved
    [ "$(restarts_of 0)" = 1 ]
    [ "$(restarts_of 3)" = 2 ]
}

@test "a node that is killed too often fails the run, by its name" {
    begin --set nodes.1.max_restarts=1
    kill -9 "${nodes[1]}"
    comes_back 1
    kill -9 "${nodes[1]}"
    event run '"failed"'
    [ "$(field node)" = 1 ]
    finish run
    [ "$code" -eq 1 ]
    said "node 1 (collector, pid ${nodes[1]}) was killed by signal 9 (SIGKILL), after 1 restart; no restart is left: at most 1 (nodes.max_restarts)"
    all_gone
}

@test "restarts are counted within their window: all are old, or none is" {
    begin --set nodes.1.max_restarts=1 --set nodes.1.restart_window_s=0.001
    kill -9 "${nodes[1]}"
    comes_back 1
    kill -9 "${nodes[1]}"
    comes_back 1
    ends_solved
    [ "$(restarts_of 1)" = 2 ]
    said "; restart 1 of 1 within 0.001 s in 200 ms"
    begin --set nodes.1.max_restarts=1 --set nodes.1.restart_window_s=1000
    kill -9 "${nodes[1]}"
    comes_back 1
    kill -9 "${nodes[1]}"
    finish run
    [ "$code" -eq 1 ]
    said ", after 1 restart; no restart is left: at most 1 within 1000 s (nodes.max_restarts, restart_window_s)"
    all_gone
}

@test "go_on: the run goes on without a collector, and fails with the last" {
    sed -i 's/count: 3, on_loss: restart/count: 3, on_loss: go_on/' job.yaml
    begin
    kill -9 "${nodes[2]}"
    event run '"let_go"' '"node":2,'
    ends_solved
    [[ $line =~ \"node\":2,[^}]*\"let_go\":true ]]
    said "the run goes on without it"
    begin
    kill -9 "${nodes[1]}"
    event run '"let_go"'
    kill -9 "${nodes[2]}"
    event run '"let_go"'
    kill -9 "${nodes[3]}"
    event run '"failed"' '"node":3,'
    finish run
    [ "$code" -eq 1 ]
    all_gone
}

@test "who is started again does not wait for those that were let go" {
    sed -i 's/count: 3, on_loss: restart/count: 3, on_loss: go_on/' job.yaml
    begin
    kill -9 "${nodes[2]}"
    event run '"let_go"' '"node":2,'
    kill -9 "${nodes[4]}"
    comes_back 4
    kill -9 "${nodes[3]}"
    event run '"let_go"' '"node":3,'
    kill -9 "${nodes[0]}"
    comes_back 0
    ends_solved
    [ "$(restarts_of 0)" = 1 ]
    [ "$(restarts_of 4)" = 1 ]
}

@test "a node that fails by itself is started again, also as a thread" {
    cat >faulty.yaml <<'END'
job: faulty
plugin: faulty
nodes:
  - role: learner
  - {role: collector, on_loss: restart, max_restarts: 2, backoff_ms: 1}
collector: {steps: 20}
env: {at: 21, fault: fail}
END
    local as
    for as in processes threads; do
        run "$LOCKSTEP" run faulty.yaml --as "$as" --timeout 60
        [ "$status" -eq 1 ]
        says "the cart fell off the table; restart 1 of 2 in 1 ms"
        says "the cart fell off the table; restart 2 of 2 in 2 ms"
        says "the cart fell off the table, after 2 restarts"
    done
}

@test "who finds its port taken when it comes back gets another, uncounted" {
    # where no other run looks for a port
    begin --set world.transport=tcp --set world.ports=21900-21999 \
        --set nodes.1.max_restarts=1 --set nodes.1.backoff_ms=1
    local had=${endpoints[1]}
    # The other one comes while the run cannot see that node 1 is gone.
    kill -STOP "${pid_of[run]}"
    # Each of its threads stops for itself.
    while grep -L '^State:.T' "/proc/${pid_of[run]}/task/"*/status | grep -q .; do :; done
    kill -9 "${nodes[1]}"
    until grep -q '^State:.Z' "/proc/${nodes[1]}/status"; do :; done
    sed 's/job: job/job: other/' job.yaml >other.yaml
    start other node other.yaml --id 0 --bind "$had" --json
    event other '"bound"'
    kill -CONT "${pid_of[run]}"
    event run '"restarting"' '"node":1,' '"restart":1,'
    event run '"restarting"' '"node":1,' '"restart":1,' '"wait_ms":0'
    event run '"bound"' '"node":1,'
    [ "$(field endpoint)" != "$had" ]
    event run '"started"' '"node":1,'
    kill "${pid_of[other]}"
    finish other
    touch solved
    finish run
    [ "$code" -eq 0 ] || { echo "exit $code: $err" >&2; return 1; }
    [[ $err == *"started again at another address"* ]]
    last_line "$rest"
    [ "$(restarts_of 1)" = 1 ]
}

@test "Ctrl-C while a restart is awaited: exit 130, and nothing is left" {
    begin --set nodes.1.backoff_ms=10000
    kill -9 "${nodes[3]}"
    event run '"restarting"'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    all_gone
}

@test "a node that was frozen, and declared lost, is taken back" {
    begin --set world.heartbeat_ms=20 --set world.silence_ms=100
    kill -STOP "${nodes[4]}"
    stderr_has run "node 4 (evaluator) is lost"
    kill -CONT "${nodes[4]}"
    ends_solved
}

@test "check shows what becomes of the run" {
    run "$LOCKSTEP" check "$SOURCE_DIR/configs/cartpole-restart.yaml"
    [ "$status" -eq 0 ]
    says "restart, up to 3 times"
    run "$LOCKSTEP" check job.yaml --set nodes.0.restart_window_s=60
    says "restart, up to 3 times within 60 s"
    run "$LOCKSTEP" check job.yaml --set nodes.0.on_loss=go_on
    [ "$status" -eq 78 ]
    says "nothing is learned without the learner"
}
