# Replicas: nodes without an id, which ask for one.
load helpers

setup() {
    enter_scratch
    export XDG_STATE_HOME=$PWD/state
    cat >job.yaml <<END
job: job
world: {transport: ipc, dir: $BATS_TEST_TMPDIR, start_timeout_s: 30}
nodes: [{role: member}, {role: member, replicas: 2}]
barrier: {epochs: 1000000, failures: 1000000}
END
}

teardown() {
    end_started
}

with_keys() {
    echo 'security: {mode: curve, keys: keys}' >>job.yaml
    "$LOCKSTEP" keygen keys job.yaml >keygen.out
}

# replica NAME ARGUMENT...: its id is $id once it listens.
replica() {
    local name=$1
    shift
    start "$name" node job.yaml --role member --json "$@"
    event "$name" '"bound"'
    id=$(field node)
}

# ready NAME...
ready() {
    local name
    for name; do
        event "$name" '"started"'
    done
}

# kill_it NAME: and its stdout is not read any more.
kill_it() {
    kill -9 "${pid_of[$1]}"
    finish "$1"
    rm "$1.out"
    unset "pid_of[$1]" "fd_of[$1]"
}

giver() {
    start giver node job.yaml --id 0 --json
    event giver '"bound"'
}

@test "keys: each replica has an id, and the same one after it was killed" {
    with_keys
    [ ! -e keys/node-1.cert ]
    [ -e keys/enrolment.cert_secret ]
    giver
    replica one
    [ "$id" -eq 1 ]
    replica two
    [ "$id" -eq 2 ]
    ready giver one two
    run --separate-stderr "$LOCKSTEP" node job.yaml --role member
    [ "$status" -eq 75 ]
    [[ $stderr == *"asking node 0 for an id of a member"*"all ids are given out: 2, of which 0 are kept"* ]]
    kill_it one
    replica again
    [ "$id" -eq 1 ]
    ready again
    [ "$(cut -d' ' -f1,3 out/job/leases)" = $'1 lasting\n2 lasting' ]
}

@test "keys: the ids outlive the node that gives them out" {
    with_keys
    giver
    replica one --identity first
    replica two --identity second
    ready giver one two
    kill_it two
    kill_it one
    kill_it giver
    giver
    replica two --identity second
    [ "$id" -eq 2 ]
    replica one --identity first
    [ "$id" -eq 1 ]
    ready giver one two
}

@test "keys: one key is of one node, wherever a copy of it lies" {
    with_keys
    giver
    replica one --identity first
    replica two --identity second
    ready giver one two
    cp -r first copy
    run --separate-stderr "$LOCKSTEP" node job.yaml --role member --identity copy
    [ "$status" -eq 75 ]
    [[ $stderr == *"node 1 has this key, and is there: end it first"* ]]
}

@test "keys: another enrolment key, one that is revoked, a client's: refused" {
    with_keys
    giver
    mkdir other
    cp keys/node-0.cert other
    "$LOCKSTEP" keygen other --enrolment >/dev/null
    run --separate-stderr "$LOCKSTEP" node job.yaml --role member \
        --set security.keys=other --set world.start_timeout_s=5
    [ "$status" -eq 78 ]
    [[ $stderr == *"asking node 0 for an id of a member, at ipc://"*"another job, or has another secret or other keys"* ]]
    replica one --identity first
    kill_it one
    cut -d' ' -f2 out/job/leases >keys/revoked
    run --separate-stderr "$LOCKSTEP" node job.yaml --role member --identity first
    [ "$status" -eq 78 ]
    [[ $stderr == *"its key $(cat keys/revoked) is revoked: "*"keys/revoked names it"* ]]
    replica two --identity second
    [ "$id" -eq 1 ]
    kill "${pid_of[giver]}"
    finish giver
    said "refused"
    said "is not that of "
    said "a node is refused an id: its key"
}

@test "keys: the id of one that is revoked is free, also if it never asks again" {
    with_keys
    giver
    replica one --identity first
    replica two --identity second
    ready giver one two
    kill_it one
    kill_it two
    printf '%s\r\n' "$(grep '^1 ' out/job/leases | cut -d' ' -f2)" >keys/revoked
    replica three --identity third
    [ "$id" -eq 1 ]
    kill_it three
    kill_it giver
    cut -d' ' -f2 out/job/leases >keys/revoked
    rm giver.err
    LS_LOG=info giver
    stderr_has giver "leases: ids are given out"
    kill "${pid_of[giver]}"
    finish giver
    [ -e out/job/leases ]
    [ ! -s out/job/leases ]
}

@test "a secret in place of keys: the same, on one host" {
    giver
    replica one
    [ "$id" -eq 1 ]
    replica two
    [ "$id" -eq 2 ]
    ready giver one two
    run --separate-stderr "$LOCKSTEP" node job.yaml --role member
    [ "$status" -eq 75 ]
    kill_it two
    replica again
    [ "$id" -eq 2 ]
    ready again
}

@test "a key that cannot be kept is of one life, and its id is free again" {
    with_keys
    export XDG_STATE_HOME=/dev/null/state
    giver
    replica one
    replica two
    ready giver one two
    [ "$(cut -d' ' -f1,3 out/job/leases)" = $'1 passing\n2 passing' ]
    kill "${pid_of[one]}"
    finish one
    said "this node's key is not kept"
    replica three
    [ "$id" -eq 1 ]
    ready three
    run --separate-stderr "$LOCKSTEP" node job.yaml --role member \
        --identity /dev/null/here
    [ "$status" -eq 1 ]
    [[ $stderr == *"/dev/null/here"* ]]
}

@test "who asks for what nobody gives is told" {
    run "$LOCKSTEP" node job.yaml --role learner
    [ "$status" -eq 78 ]
    says "no item of nodes says replicas for the role learner"
    run "$LOCKSTEP" node job.yaml --role membr
    [ "$status" -eq 2 ]
    says 'did you mean "member"?'
    run "$LOCKSTEP" node job.yaml --id 1 --role member
    [ "$status" -eq 2 ]
    says "--role is for a node that is given its id"
    run "$LOCKSTEP" node job.yaml --id 1 --identity here
    [ "$status" -eq 2 ]
    says "--identity is for a node that is given its id"
    run "$LOCKSTEP" node job.yaml --role member \
        --set world.leases=ipc:///nowhere/x --set world.start_timeout_s=1
    [ "$status" -eq 69 ]
    says "asking node 0 for an id of a member, at ipc:///nowhere/x"
    says "raise world.start_timeout_s"
    with_keys
    run "$LOCKSTEP" node job.yaml --role member \
        --set world.leases=tcp://box:21400
    [ "$status" -eq 78 ]
    says "tcp://box:21400 is on another host: say where"
}

@test "a table that cannot be read is told of, with what to do" {
    mkdir -p out/job
    echo 'one two three' >out/job/leases
    run "$LOCKSTEP" node job.yaml --id 0
    [ "$status" -eq 78 ]
    says "out/job/leases: repair it, or remove it"
    says "line 1"
}

@test "an id that has a certificate is given to nobody" {
    with_keys
    "$LOCKSTEP" keygen keys job.yaml --id 1 >/dev/null
    giver
    replica two
    [ "$id" -eq 2 ]
    run --separate-stderr "$LOCKSTEP" node job.yaml --role member
    [ "$status" -eq 75 ]
    [[ $stderr == *"all ids are given out"* ]]
    start one node job.yaml --id 1 --json
    ready giver two one
}

# bats test_tags=slow
@test "a service job: the coordinator gives out the ids" {
    cat >job.yaml <<END
job: job
plugin: faulty
world: {transport: ipc, dir: $BATS_TEST_TMPDIR, start_timeout_s: 30}
nodes:
  - {role: coordinator}
  - {role: learner}
  - {role: collector, replicas: 2}
collector: {steps: 20}
coordinator: {eval_interval_s: 0}
evaluator: {episodes: 2, solved: 1000}
env: {prize: solved}
END
    export LOCKSTEP_PLUGIN_PATH=$plugins
    with_keys
    giver
    start learner node job.yaml --id 1 --json
    start one node job.yaml --role collector --json
    event one '"bound"'
    [ "$(field node)" -eq 2 ]
    start two node job.yaml --role collector --json
    event two '"bound"'
    [ "$(field node)" -eq 3 ]
    ready one two # who comes when it is solved finds nobody
    touch solved
    local name
    for name in giver learner one two; do
        finish "$name"
        [ "$code" -eq 0 ]
    done
}
