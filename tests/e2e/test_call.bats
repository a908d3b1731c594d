# lockstep call: a node of a run that goes on is asked, from outside.
load helpers

setup() {
    enter_scratch
    four_nodes "world: {transport: ipc}"
}

teardown() {
    end_started
}

# ends_solved [HOW]: and nobody has noticed the callers. Over tcp, a node of
# another job may look for one of its own at a port that is this job's by now.
ends_solved() {
    touch solved
    finish run
    [ "$code" -eq 0 ] || { echo "exit $code: $err" >&2; return 1; }
    last_line "$rest"
    [ "$(field solved)" = true ]
    [ "$(field losses)" = 0 ]
    [[ ${1-} == *tcp ]] || [ "$(field refused)" = 0 ] ||
        { echo "$line" >&2; return 1; }
    only_policy_is_left
}

@test "every node answers ping and stats" {
    begin
    local id
    for id in 0 1 2 3; do
        call $id ping
        [ "$status" -eq 0 ]
        [ "${lines[0]}" = completed ]
        [[ ${lines[1]} =~ ^\ \ pong\ +$id$ ]]
    done
    call 1 stats --json
    [ "$status" -eq 0 ]
    line=$output
    [ "$(field state)" = completed ]
    [ "$(field emitted)" -gt 0 ]
    [ "$(field dropped)" = 0 ]
    [ "$(field calls_served)" -ge 1 ]
    ends_solved
}

@test "an unknown name fails, and the next call completes" {
    begin
    call 2 bogus
    [ "$status" -eq 1 ]
    [ "$output" = failed ]
    [[ $stderr == *"node 2 (collector)"*"bogus"*"task name error"* ]]
    call 2 bogus --json
    [ "$status" -eq 1 ]
    [ "$output" = '{"state":"failed","code":0,"message":"task name error"}' ]
    call 2 ping --json
    [ "$status" -eq 0 ]
    [ "$output" = '{"state":"completed","code":0,"data":{"pong":2}}' ]
    ends_solved
}

@test "a role names the one node that has it" {
    begin
    call evaluator ping --json
    [ "$status" -eq 0 ]
    [[ $output == *'{"pong":3}'* ]]
    call collector ping
    [ "$status" -eq 2 ]
    [[ $stderr == *"2 nodes are a collector"*"lockstep check job.yaml"* ]]
    call evaluatro ping
    [ "$status" -eq 2 ]
    [[ $stderr == *'did you mean "evaluator"'* ]]
    call 7 ping
    [ "$status" -eq 2 ]
    [[ $stderr == *"has no node 7; it has 0, 1, 2, 3"* ]]
    ends_solved
}

@test "what is asked is JSON, and what is wrong in it is shown" {
    begin
    call 0 ping '{"a": [1, 2.5, "x", null], "b": {"c": true}}'
    [ "$status" -eq 0 ]
    call 0 ping '{"a": [1, 2}'
    [ "$status" -eq 2 ]
    [[ $stderr == *"argument:1:"*"^"* ]]
    call 0 ping '[1]'
    [ "$status" -eq 2 ]
    [[ $stderr == *"the top must be a mapping"* ]]
    call 0 'pi ng'
    [ "$status" -ne 0 ]
    ends_solved
}

@test "many clients at once disturb nobody, nor does one that is killed" {
    begin
    local n
    for n in 1 2 3 4 5 6; do
        start "client$n" call job.yaml $((n % 4)) ping --json
    done
    kill -9 "${pid_of[client6]}"
    for n in 1 2 3 4 5; do
        finish "client$n"
        [ "$code" -eq 0 ] || { echo "$err" >&2; return 1; }
    done
    event run '"evaluation"'
    event run '"evaluation"'
    touch solved
    finish run
    [ "$code" -eq 0 ]
}

@test "a star, tcp and threads" {
    local how
    for how in "--set world.topology=star" "--set world.transport=tcp" \
        "--as threads"; do
        rm -f solved run.out
        # shellcheck disable=SC2086
        start run run job.yaml --json --timeout 100 $how
        event run '"evaluation"'
        # shellcheck disable=SC2086
        call 2 ping --json ${how/--as threads/}
        [ "$status" -eq 0 ]
        [[ $output == *'{"pong":2}'* ]]
        ends_solved "$how"
    done
}

@test "nodes that were started one by one" {
    local folder=$PWD/sockets id
    mkdir "$folder"
    for id in 0 1 2 3; do
        start "n$id" node job.yaml --id $id --json --set "world.dir=$folder"
    done
    event n3 '"evaluation"'
    call 0 ping --json --set "world.dir=$folder"
    [ "$status" -eq 0 ]
    call 2 ping --json --set "world.dir=$folder" \
        --attach "ipc://$folder/job-1.ipc"
    [ "$status" -eq 0 ]
    touch solved
    for id in 0 1 2 3; do
        finish "n$id"
        [ "$code" -eq 0 ]
    done
}

@test "no run: exit 69 or 78, and what to do" {
    call 0 ping --set world.transport=tcp
    [ "$status" -eq 78 ]
    [[ $stderr == *"no run of this job is in progress here"*"--attach"* ]]
    call 0 ping --attach ipc://nobody.ipc --wait-ms 300
    [ "$status" -eq 69 ]
    begin --set world.transport=tcp
    kill -9 "${pid_of[run]}"
    all_go
    [ -e out/job/latest/run.yaml ]
    call 0 ping --set world.transport=tcp
    [ "$status" -eq 78 ]
}

@test "a node that stands still is not reached: exit 69" {
    begin --set world.silence_ms=60000
    kill -STOP "${nodes[2]}"
    call 2 ping --wait-ms 500 --set world.silence_ms=60000
    [ "$status" -eq 69 ] || [ "$status" -eq 124 ]
    kill -CONT "${nodes[2]}"
    ends_solved
}

@test "help call teaches it" {
    run "$LOCKSTEP" help call
    [ "$status" -eq 0 ]
    says "--wait-ms"
    run "$LOCKSTEP" call --help
    says "lockstep call CONFIG NODE NAME"
}
