# What a user can get wrong: each is told with its place and what to do, and
# has the exit code of its kind.
load helpers

setup() {
    enter_scratch
    cat >good.yaml <<'END'
job: good
plugin: cartpole
nodes: [{role: learner}, {role: collector}, {role: evaluator}]
evaluator: {solved: 475}
END
}

# refused CODE TEXT ARGUMENT...
refused() {
    local code=$1 text=$2
    shift 2
    run --separate-stderr "$LOCKSTEP" "$@"
    [ -z "$output" ]
    output=$stderr
    [ "$status" -eq "$code" ] || { echo "exit $status" >&2; false; }
    says "$text"
}

@test "an unknown key: place, line, caret, nearest" {
    echo 'colector: {steps: 3}' >>good.yaml
    local command
    for command in run check "node --id 0"; do
        refused 78 'good.yaml:5:1: unknown key "colector"' $command good.yaml
        says 'did you mean "collector"?'
        says '5 | colector: {steps: 3}'
        says '    | ^'
    done
}

@test "the first program of the README says why it cannot" {
    touch "$XDG_RUNTIME_DIR/lockstep"
    run --separate-stderr "$BUILD_DIR/docs/example_first"
    [ "$status" -eq 78 ]
    [[ $stderr == "first: "*"$XDG_RUNTIME_DIR/lockstep"* ]]
}

@test "an unknown key of the plugin's" {
    echo 'env: {max_step: 3}' >>good.yaml
    refused 78 'did you mean "max_steps"?' run good.yaml
}

@test "a key of another section" {
    refused 78 'did you mean "world.start_timeout_s"?' check good.yaml \
        --set start_timeout_s=3
}

@test "a wrong type, and a value out of range" {
    refused 78 'must be a whole number' run good.yaml \
        --set collector.steps=many
    refused 78 'must be a whole number' run good.yaml --set collector.steps=0
    refused 78 'must be one of' run good.yaml --set world.topology=ring
}

@test "a device that there is not" {
    refused 78 'device "gpu": expected cpu, cpu:CORE, cuda or cuda:NUMBER' \
        check good.yaml --set learner.device=gpu
    refused 78 'there is no core 9999' run good.yaml \
        --set learner.device=cpu:9999
}

@test "several problems are told at once" {
    refused 78 '"ring"' check good.yaml --set world.topology=ring \
        --set collector.steps=many --set sede=3
    says '"many"'
    says '"sede"'
}

@test "a duplicate id" {
    refused 78 'id 1 is given twice' run good.yaml --set nodes.0.id=1 \
        --set nodes.1.id=1
}

@test "no learner, and an unknown role" {
    refused 78 'exactly one learner; here are 0' run good.yaml \
        --set nodes.0.role=collector
    refused 78 'did you mean "collector"?' run good.yaml \
        --set nodes.1.role=colector
}

@test "nothing that a file says steers the terminal" {
    cat >bad.yaml <<'END'
job: job
plugin: "\e[31mp"
nodes: [{role: learner}, {role: collector}, {role: evaluator}]
END
    refused 78 'bad.yaml:2:9: there is no plugin "?[31mp"' check bad.yaml
    cp bad.yaml $'\e[2J.yaml'
    refused 78 '?[2J.yaml:2:9: ' check $'\e[2J.yaml'
    cat >keys.yaml <<'END'
job: job
plugin: cartpole
out: "\e[31m"
nodes: [{role: learner}, {role: collector}, {role: evaluator}]
stop: {env_step: 1}
END
    run "$LOCKSTEP" run keys.yaml --timeout 60
    says "/1/policy.msgpack"
    [[ $output != *$'\e'* ]]
}

@test "a missing plugin: where was looked" {
    refused 78 'there is no plugin "nothing"' run good.yaml \
        --set plugin=nothing
    says "plugins/nothing.so"
    says LOCKSTEP_PLUGIN_PATH
    refused 78 'did you mean "cartpole"?' run good.yaml --set plugin=cartpol
    refused 78 "$PWD/./mine.so" run "$PWD/good.yaml" --set plugin=./mine.so
}

@test "a plugin of the wrong version, and one that is none" {
    refused 78 'is built for plugin ABI 1006' run good.yaml \
        --set "plugin=$plugins/old.so"
    refused 78 'exports no ls_plugin()' run good.yaml \
        --set "plugin=$plugins/empty.so"
}

@test "a file that is not there, and one that is no YAML" {
    refused 78 'absent.yaml' run absent.yaml
    printf 'nodes: [\n' >bad.yaml
    refused 78 'bad.yaml:' run bad.yaml
}

@test "usage: exit 2, with what to write" {
    refused 2 'which configuration?' run
    refused 2 'did you mean "--seed"?' run good.yaml --sede 3
    refused 2 'did you mean "run"?' rnu good.yaml
    refused 2 'lockstep run good.yaml' good.yaml
    refused 2 'which node?' node good.yaml
    refused 2 'it has 0, 1, 2' node good.yaml --id 9
    refused 2 'key=value' run good.yaml --set x
    refused 2 '--set job.x=1' run good.yaml --set job.x=1
}

@test "who may speak: a wrong mode, an unknown key, no keys, no address" {
    refused 78 'did you mean "curve"?' run good.yaml --set security.mode=curv
    refused 78 'did you mean "deny"?' check good.yaml --set security.dney=x
    refused 78 'missing key "security.keys"' check good.yaml \
        --set security.mode=curve
    refused 78 'keys are for mode: curve' node good.yaml --id 0 \
        --set security.keys=keys
    refused 78 '"box7" is no IPv4 or IPv6 address' run good.yaml \
        --set security.allow=box7
    refused 78 'leave one of them out' run good.yaml \
        --set world.insecure=true --set security.mode=plain
    echo 'security: {mod: plain}' >>good.yaml
    refused 78 'good.yaml:5:12: unknown key "mod"' check good.yaml
    says 'did you mean "mode"?'
}

@test "keys that are not there: which, and how they are made" {
    refused 78 'keygen' node good.yaml --id 0 --set security.mode=curve \
        --set security.keys=absent
    says absent
}

@test "tcp beyond this machine needs a word" {
    refused 78 'insecure: true' run good.yaml \
        --set nodes.0.bind=tcp://0.0.0.0:21500
    refused 78 'insecure: true' node good.yaml --id 0 --set nodes.0.host=far
    refused 78 insecure node good.yaml --id 0 --bind tcp://0.0.0.0:21500
}

@test "a node alone must know somebody" {
    refused 78 'does not know where to find the others' node good.yaml --id 1
    says '--attach'
}

@test "inproc joins nobody beyond the process" {
    refused 78 '--as threads' run good.yaml --set world.transport=inproc
}
