# Who may speak to the nodes of a run, and who may end it.
load helpers

setup() {
    enter_scratch
    intruder=$BUILD_DIR/tests/e2e/intruder/intruder
    four_nodes
}

teardown() {
    end_started
}

# a_key ID...: for each node of the job, and for these.
a_key() {
    local id
    "$LOCKSTEP" keygen keys job.yaml >/dev/null
    for id; do
        "$LOCKSTEP" keygen keys --id "$id" >/dev/null
    done
    echo 'security: {mode: curve, keys: keys}' >>job.yaml
}

# kept_out ARGUMENT...: a caller that is not let in. (Where it listens itself
# is another reason not to come in, so it is given.)
kept_out() {
    call 0 ping --wait-ms 1500 "$@"
    [ "$status" -eq 69 ] || [ "$status" -eq 78 ]
    [[ $stderr == *"node 0 (learner) was not reached"* ]]
    [[ -z $output ]]
}

@test "a run has a secret of its own, which no command line and no log has" {
    LS_LOG=debug begin
    local secret=out/job/latest/run.secret pid
    [ "$(stat -c '%a %s' $secret)" = "600 32" ]
    secret=$(od -An -v -tx1 $secret | tr -d ' \n')
    for pid in "${nodes[@]}"; do
        grep -qz -- --secret-fd "/proc/$pid/cmdline"
        ! cat "/proc/$pid/cmdline" "/proc/$pid/environ" |
            od -An -v -tx1 | tr -d ' \n' | grep -q "$secret"
        [ ! -e "/proc/$pid/fd/4" ] ||
            [[ $(readlink "/proc/$pid/fd/4") != pipe:* ]]
    done
    [ -z "$(find "$XDG_RUNTIME_DIR" -type f)" ]
    ends_solved
    [[ $err != *"$secret"* ]]
}

@test "who has the secret comes in, who has another does not" {
    local how
    for how in processes threads; do
        rm -rf solved run.out elsewhere
        start run run job.yaml --json --timeout 100 --as $how
        event run '"bound"' '"node":0,'
        local first
        first=$(field endpoint)
        event run '"evaluation"'
        call 0 ping --json
        [ "$output" = '{"state":"completed","code":0,"data":{"pong":0}}' ]
        kept_out --out elsewhere --attach "$first"
        mkdir -p elsewhere/latest
        cp out/job/latest/run.yaml elsewhere/latest
        (umask 077 && head -c 32 /dev/urandom >elsewhere/latest/run.secret)
        kept_out --out elsewhere
        chmod 644 elsewhere/latest/run.secret
        call 0 ping --out elsewhere
        [ "$status" -eq 78 ]
        [[ $stderr == *"chmod go-rwx elsewhere/latest/run.secret"* ]]
        call 0 ping
        [ "$status" -eq 0 ]
        touch solved
        finish run
        [ "$code" -eq 0 ]
        last_line "$rest"
        [ "$(field refused)" -ge 2 ]
        [[ $line == *'"refusal":"127.0.0.1: node '*' does not know the secret '* ]]
    done
}

@test "a node that is killed comes back with the secret" {
    begin --set nodes.1.on_loss=restart
    kill -9 "${nodes[1]}"
    comes_back 1
    call 1 ping
    [ "$status" -eq 0 ]
    ends_solved
}

@test "another user cannot come in" {
    local there=/tmp/lockstep-test-$BASHPID other first
    [ "$(id -u)" -eq 0 ] || skip "needs root, to be somebody else"
    other=(setpriv --reuid=65534 --regid=65534 --clear-groups
        env XDG_RUNTIME_DIR="$there/other")
    "${other[@]}" "$LOCKSTEP" --version || skip "others cannot run the program"
    mkdir -m 755 "$there"
    mkdir -m 700 "$there/other"
    chown 65534:65534 "$there/other"
    cp job.yaml "$there"
    cd "$there"
    begin
    first=${endpoints[0]}
    run "${other[@]}" "$LOCKSTEP" call job.yaml 0 ping --wait-ms 1500
    [ "$status" -ne 0 ]
    says out/job/latest/run.secret
    run "${other[@]}" "$LOCKSTEP" call job.yaml 0 ping --wait-ms 1500 \
        --out elsewhere --attach "$first"
    [ "$status" -eq 69 ] || [ "$status" -eq 78 ]
    says "node 0 (learner) was not reached"
    ends_solved
    cd /
    rm -r "$there"
}

# By files of its own: a node of another job may look for one of its own at a port
# that was its, and is refused.
@test "a client cannot end a run: only its nodes say that it is finished" {
    begin --set world.transport=ipc
    for _ in 1 2 3; do # more often than anything else is refused
        [ "$("$intruder" out/job/latest/run.secret "${endpoints[0]}")" = said ]
    done
    event run '"evaluation"'
    event run '"evaluation"'
    touch solved
    finish run
    [ "$code" -eq 0 ]
    last_line "$rest"
    [ "$(field solved)" = true ]
    [ "$(field refused)" -ge 1 ]
    output=$line
    says '"refusal":"node 77: node 77 may not emit event '
}

@test "and it cannot pass for one of them, whose loss would end the run" {
    begin --set world.transport=ipc
    run --separate-stderr "$intruder" out/job/latest/run.secret \
        "${endpoints[0]}" learner
    [ "$status" -eq 1 ]
    [[ $stderr == *'node 77: node 0 does not let it in with role "learner"'* ]]
    event run '"evaluation"'
    touch solved
    finish run
    [ "$code" -eq 0 ]
    last_line "$rest"
    output=$line
    says '"refusal":"node 77: node 77 gives itself role \"learner\" and labels '
}

@test "what was refused is a line of the summary, if there is any" {
    start run run job.yaml --timeout 100 --set world.transport=ipc
    until [ -s out/job/latest/run.yaml ] && call 0 ping && [ "$status" -eq 0 ]; do
        [ -d "/proc/${pid_of[run]}" ]
    done
    local first
    first=$(grep -m1 -o 'ipc://[^"]*' out/job/latest/run.yaml)
    [ "$("$intruder" out/job/latest/run.secret "$first")" = said ]
    touch solved
    finish run
    [ "$code" -eq 0 ]
    output=$rest
    says "refused "
    says "may not emit event"
    rm run.out
    start run run job.yaml --timeout 100 --set world.transport=ipc
    finish run
    [ "$code" -eq 0 ]
    [[ $rest != *refused* ]] || { echo "$rest" >&2; false; }
}

@test "insecure: nobody is asked, and one line says so" {
    begin --set world.insecure=true
    [ ! -e out/job/latest/run.secret ]
    call 0 ping --set world.insecure=true
    [ "$status" -eq 0 ]
    ends_solved
    said "insecure: true: anyone who can reach the nodes of this job may speak"
}

@test "keys: a run over tcp, and a client that has one" {
    a_key 100
    begin
    [ ! -e out/job/latest/run.secret ]
    call 1 ping --id 100 --json
    [ "$status" -eq 0 ]
    [[ $output == *'{"pong":1}'* ]]
    call 1 ping
    [ "$status" -eq 2 ]
    [[ $stderr == *"keys --id N"* ]]
    call 1 ping --id 2
    [ "$status" -eq 2 ]
    [[ $stderr == *"needs its own id"* ]]
    call 1 ping --id 200
    [ "$status" -eq 78 ]
    [[ $stderr == *"lockstep keygen"*"--id 200"* ]]
    ends_solved
}

@test "keys: threads, a star, and a node that comes back" {
    a_key 100
    start run run job.yaml --json --timeout 100 --as threads
    event run '"evaluation"'
    call 3 ping --id 100
    [ "$status" -eq 0 ]
    touch solved
    finish run
    [ "$code" -eq 0 ]
    rm solved run.out
    begin --set world.topology=star --set nodes.1.on_loss=restart
    kill -9 "${nodes[2]}"
    comes_back 2
    ends_solved
}

@test "keys: nodes one by one, and one whose key is not theirs" {
    a_key
    start n0 node job.yaml --id 0 --json
    event n0 '"bound"'
    local first id
    first=$(field endpoint)
    run "$LOCKSTEP" node job.yaml --id 1 --attach "$first"
    [ "$status" -eq 78 ]
    says "say which node is at $first"
    mkdir other
    mv keys/node-1.cert_secret other
    cp keys/*.cert other
    rm other/node-1.cert other/node-1.cert_secret
    "$LOCKSTEP" keygen other --id 1 >/dev/null
    sed s/keys:\ keys/keys:\ other/ job.yaml >away.yaml
    run "$LOCKSTEP" node away.yaml --id 1 --attach "0@$first" \
        --set world.start_timeout_s=2
    [ "$status" -eq 69 ] || [ "$status" -eq 78 ]
    rm keys/node-1.cert
    "$LOCKSTEP" keygen keys --id 1 >/dev/null
    for id in 1 2 3; do
        start "n$id" node job.yaml --id $id --json --attach "0@$first"
    done
    event n3 '"evaluation"'
    touch solved
    for id in 0 1 2 3; do
        finish "n$id"
        [ "$code" -eq 0 ]
    done
}

@test "IPv6 addresses: with a secret, with keys, and one that is denied" {
    grep -qs '^0\{31\}1 ' /proc/net/if_inet6 || skip "there is no [::1] here"
    printf '%s\n' 'job: six' 'barrier: {epochs: 20}' \
        "nodes: [{role: member, count: 3, bind: 'tcp://[::1]:21500-21999'}]" >job.yaml
    run "$LOCKSTEP" run job.yaml --json
    [ "$status" -eq 0 ]
    last_line "$output"
    [ "$(field epochs)" = 20 ]
    run "$LOCKSTEP" run job.yaml --set 'security.deny=["::1"]' \
        --set world.start_timeout_s=60
    [ "$status" -eq 78 ]
    says "its address is not allowed"
    a_key
    run "$LOCKSTEP" run job.yaml
    [ "$status" -eq 0 ]
}
