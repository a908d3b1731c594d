# `lockstep eval`: what was learned is played again, and comes to what the run
# has said.
load helpers

setup() {
    enter_scratch
}

# learned ARGUMENT...: a run of cartpole, to its end; its summary is $line.
learned() {
    run --separate-stderr "$LOCKSTEP" run "$cartpole" --json "$@"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    last_line "$output"
}

# eval ARGUMENT...: its line is $line.
eval_of() {
    run --separate-stderr "$LOCKSTEP" eval "$@" --json
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    line=$output
    [ "$(field event)" = eval ]
}

# refused CODE TEXT ARGUMENT...
refused() {
    local code=$1 text=$2
    shift 2
    run "$LOCKSTEP" eval "$@"
    [ "$status" -eq "$code" ]
    says "$text"
}

@test "the return is the one that the run printed" {
    learned
    local had
    had="$(field return) $(field train_iter) $(field env_step)"
    eval_of out/cartpole/latest
    [ "$(field return) $(field train_iter) $(field env_step)" = "$had" ]
    [ "$(field episodes)" -eq 20 ]
    [ "$(field weights)" = out/cartpole/latest/policy.msgpack ]
    run "$LOCKSTEP" eval out/cartpole/latest
    [ "$status" -eq 0 ]
    says "mean return ${had%% *} of 20 episodes, "
    says "by cartpole 1.0, in $(field train_iter) updates"
}

# bats test_tags=slow
@test "also of a run that was interrupted, and resumed" {
    start run run "$cartpole" --json "${endless[@]}"
    event run '"evaluation"'
    event run '"evaluation"'
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    learned
    local had
    had=$(field return)
    eval_of out/cartpole/1
    [ "$(field return)" = "$had" ]
}

# bats test_tags=slow
@test "a run, all runs of a job, and a file name the same" {
    learned
    local name first=
    for name in out/cartpole out/cartpole/1 out/cartpole/latest/ \
        out/cartpole/1/policy.msgpack; do
        eval_of "$name" --episodes 3
        first=${first:-$(field steps)}
        [ "$(field steps)" = "$first" ]
    done
    cd out/cartpole/1
    eval_of policy.msgpack --episodes 3
    [ "$(field steps)" = "$first" ]
    local mine="$BATS_TEST_TMPDIR/"$'mine \xff'
    mkdir "$mine"
    mv policy.msgpack "$mine"
    eval_of "$mine/policy.msgpack" "$cartpole" --episodes 3
    [ "$(field steps)" = "$first" ]
    [ "$(field weights)" = "${mine%?}?/policy.msgpack" ]
}

# bats test_tags=slow
@test "a seed draws other episodes, the same each time" {
    learned
    eval_of out/cartpole --episodes 40
    local first
    first=$(field steps)
    eval_of out/cartpole --episodes 40 --seed 7
    [ "$(field seed)" -eq 7 ]
    local other
    other=$(field steps)
    [ "$other" != "$first" ]
    eval_of out/cartpole --episodes 40 --seed 7
    [ "$(field steps)" = "$other" ]
}

@test "the file says what its plugin was set to; a configuration says otherwise" {
    learned --set policy.hidden=16 --set env.max_steps=50 --set evaluator.solved=45
    eval_of out/cartpole
    [ "$(field return_max)" = 50.0 ]
    eval_of out/cartpole --set env.max_steps=60
    [ "$(field return_max)" = 60.0 ]
    eval_of out/cartpole "$cartpole" --set policy.hidden=16 --set evaluator.episodes=4
    [ "$(field episodes)" -eq 4 ]
    refused 78 "out/cartpole/latest/policy.msgpack: " out/cartpole "$cartpole"
}

@test "of a run whose learner was killed it takes the checkpoint" {
    start run run "$cartpole" --json "${endless[@]}" \
        --set checkpoint.every=1
    nodes_of run 5
    until compgen -G 'out/cartpole/latest/checkpoints/manifest.*[1-9]*'; do
        event run '"evaluation"'
    done
    kill -9 "${nodes[0]}"
    finish run
    [ "$code" -eq 1 ]
    eval_of out/cartpole --episodes 2
    [[ $(field weights) == out/cartpole/latest/checkpoints/node-0.0* ]]
    [ "$(field train_iter)" -ge 1 ]
}

@test "of a service job" {
    cat >job.yaml <<'END'
job: job
plugin: counter
nodes: [{role: coordinator}, {role: learner}, {role: collector, count: 2}]
collector: {envs: 2, steps: 8}
coordinator: {iterations: 5, batch: 2}
END
    run --separate-stderr "$LOCKSTEP" run job.yaml
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    eval_of out/job --episodes 3 # its return is the number of updates
    [ "$(field return)" = "$(field train_iter).0" ]
}

@test "what cannot be evaluated is named" {
    learned
    local file=out/cartpole/1/policy.msgpack
    refused 78 "nothing: there is no such file or folder; name a run's folder" nothing
    mkdir folder
    refused 78 "folder is not the folder of a run" folder
    cp out/cartpole/1/record folder
    refused 78 "folder: the run has kept no weights yet" folder
    refused 78 "policy.msgpack: it is from plugin cartpole 1.0, and this is counter 1" \
        $file "$SOURCE_DIR/configs/cartpole.yaml" --set plugin=counter
    refused 78 "members, which have no policy" $file "$SOURCE_DIR/configs/barrier.yaml"
    cp $file short
    truncate -s -1 short
    refused 1 "short is damaged" short
    printf x | dd of=$file bs=1 seek=300 conv=notrunc status=none
    refused 1 "out/cartpole/latest/policy.msgpack is damaged" out/cartpole
}

@test "a plugin that is not found: say the configuration of its run" {
    four_nodes
    touch solved
    run "$LOCKSTEP" run job.yaml
    [ "$status" -eq 0 ]
    eval_of out/job --episodes 2
    unset LOCKSTEP_PLUGIN_PATH
    refused 78 "lockstep: or name the configuration of its run, as in: lockstep eval out/job job.yaml" out/job
    sed "s|plugin: faulty|plugin: $plugins/faulty.so|" job.yaml >here.yaml
    eval_of out/job here.yaml --episodes 2
    [ "$(field return)" = 1000.0 ]
}

@test "how it is called is taught" {
    refused 2 "which policy? As in: lockstep eval out/cartpole/latest"
    refused 2 "--episodes 0: expected a whole number from 1 to" p --episodes 0
    refused 2 "\"c\" is one word too many" a b c
    run "$LOCKSTEP" eval --help
    [ "$status" -eq 0 ]
    says "lockstep eval out/cartpole/latest"
}
