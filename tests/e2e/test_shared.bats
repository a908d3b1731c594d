# Several learners that share each batch.
load helpers

setup() {
    enter_scratch
    dp=$SOURCE_DIR/configs/cartpole-dp.yaml
}

# solves NAME ARGUMENT...: out in NAME
solves() {
    local name=$1
    shift
    last_line "$("$LOCKSTEP" run "$@" --json --out "$name" 2>/dev/null)"
    [ "$(field solved)" = true ]
    [ "$(field losses)" = 0 ]
}

# bats test_tags=slow
@test "as processes, threads and a simulation, and as one learner with two devices" {
    local as
    for as in processes threads sim; do
        solves $as "$dp" --as $as
        cmp processes/1/policy.msgpack $as/1/policy.msgpack
    done
    sed -e 's/{role: learner, count: 2}/role: learner/' \
        -e 's/role: collector,/role: collector, id: 2,/' \
        -e 's/driver: bus/device: [cpu, cpu]/' "$dp" >one.yaml
    solves one one.yaml
    cmp processes/1/policy.msgpack one/1/policy.msgpack
}

# bats test_tags=slow
@test "seeds 1 to 4 are solved" {
    local seed
    for seed in 1 2 3 4; do
        solves s$seed "$dp" --seed $seed
    done
}

@test "kill -9 of a learner fails the run, and names it; the same command goes on" {
    local killed
    for killed in 0 1; do
        rm -rf run.out run.err out
        start run run "$dp" --json --out out "${endless[@]}"
        nodes_of run 7
        event run '"progress"'
        event run '"progress"'
        kill -9 "${nodes[$killed]}"
        finish run
        [ "$code" -eq 1 ]
        said "node $killed (learner, pid ${nodes[$killed]}) was killed"
        all_gone
        solves out "$dp"
    done
}

# bats test_tags=slow
@test "whoever is killed, a run whose nodes are restarted goes on" {
    local killed
    sed 's/role: [a-z]*,\? \?/&/; s/{role: \([a-z]*\),/{role: \1, on_loss: restart, backoff_ms: 1,/
         s/- role: evaluator/- {role: evaluator, on_loss: restart, backoff_ms: 1}/' \
        "$dp" >job.yaml
    start run run job.yaml --json --out out "${endless[@]}"
    nodes_of run 7
    event run '"evaluation"'
    for killed in 3 1 6 0; do
        kill -9 "${nodes[$killed]}"
        event run '"restarting"' "\"node\":$killed,"
        event run '"started"' "\"node\":$killed,"
        nodes[killed]=$(field pid)
        event run '"evaluation"'
        event run '"evaluation"'
    done
    kill -INT "${pid_of[run]}"
    finish run
    [ "$code" -eq 130 ]
    all_gone
}

@test "learners with other weights are named" {
    cat >job.yaml <<'END'
job: job
plugin: faulty
nodes:
  - {role: learner, count: 2}
  - {role: collector, count: 2}
  - role: evaluator
learner: {driver: bus}
collector: {steps: 20}
evaluator: {episodes: 2, solved: 1000}
policy: {apart: true}
END
    LOCKSTEP_PLUGIN_PATH=$plugins run -78 "$LOCKSTEP" run job.yaml
    # Whoever says it first: the others hear the status alone.
    [[ $output == *"learner 1 has other weights than learner 0"* ||
        $output == *"gave up with LS_EMISMATCH"* ]]
}

# bats test_tags=slow
@test "sweeps find nothing" {
    local faults
    for faults in all crashes pauses; do
        run -0 "$LOCKSTEP" sim "$dp" --seeds "${SEEDS:-5}" --faults $faults
        says "0 violations"
    done
}
