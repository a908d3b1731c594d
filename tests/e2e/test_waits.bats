# Nodes that are started by hand, with nobody to watch them: whatever they wait
# for, they come to an end by themselves, or when they are told to.
load helpers

setup() {
    enter_scratch
    by_hand
}

teardown() {
    end_started
}

@test "SIGTERM ends a node whose step does not return, which names the step" {
    # By force: it waits for none of its threads.
    export TSAN_OPTIONS=${TSAN_OPTIONS-}:report_thread_leaks=0
    three --set env.fault=hang --set env.at=50
    stderr_has n1 "about to hang"
    kill -TERM "${pid_of[n1]}"
    finish n1
    [ "$code" -eq 143 ]
    said "node 1 (collector) did not end when told to: it is in step collect"
}

@test "SIGTERM ends a node that waits for a lost one" {
    three
    event n2 '"evaluation"'
    kill -9 "${pid_of[n1]}"
    local name
    for name in n0 n2; do
        stderr_has $name "node 1 (collector) is lost"
        kill -TERM "${pid_of[$name]}"
    done
    for name in n0 n2; do
        finish $name
        [ "$code" -eq 143 ]
        said "told to end by SIGTERM"
    done
}

# bats test_tags=slow
@test "who waits for a lost node gives up once, and is quiet meanwhile" {
    LS_LOG=info three --set world.start_timeout_s=2
    event n2 '"evaluation"'
    kill -9 "${pid_of[n1]}"
    local name
    for name in n0 n2; do
        finish $name
        [ "$code" -eq 69 ]
        said "node 1 (collector) did not come back"
        [ "$(grep -c "waits for all to be there" $name.err)" -lt 10 ]
    done
}

# bats test_tags=slow
@test "stop.minutes ends a node whose step does not return" {
    three --set env.fault=hang --set env.at=50 --set stop.minutes=0.01 \
        --set world.step_timeout_s=0.5 --set world.start_timeout_s=2
    finish n1
    [ "$code" -eq 124 ]
    said "node 1 (collector) did not end in time (stop.minutes): it is in step collect"
}

# bats test_tags=slow
@test "a node that has done its work and hangs then is ended" {
    three --set env.fault=stay --set env.at=10 --set stop.env_step=100
    finish n1
    [ "$code" -eq 124 ]
    said "node 1 (collector) did not end though its work was over: it is freeing what it had"
}

# bats test_tags=slow
@test "run: a collector that stands still for good ends the run" {
    sed -i 's/, dir: [^}]*//' job.yaml # whose sockets the run removes
    start run run job.yaml --json --set world.start_timeout_s=2 \
        --set nodes.0.max_restarts=1 --set nodes.1.max_restarts=1 \
        --set nodes.2.max_restarts=1
    nodes_of run 3
    event run '"evaluation"'
    kill -STOP "${nodes[1]}"
    finish run
    [ "$code" -eq 124 ]
    said "node 1 (collector) did not come back"
    said "node 1 (collector, pid ${nodes[1]}) hangs: it does not answer"
    all_gone
}
