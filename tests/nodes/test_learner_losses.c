/* learner_service.h, as a specification: a learner whose coordinator, or store,
 * is lost. */
#include "learner_bench.h"
#include "test.h"

static struct learner_bench *patient_start(void)
{
    struct learner_bench *bench = learner_prepare(BENCH_MS);
    bench_start(bench->bench);
    return bench;
}

/* The coordinator dies; the other one takes its place. */
static void succeed(struct learner_bench *bench)
{
    struct bench *all = bench->bench;
    bench_kill(&all->coordinator, LS_EHANDLER);
    assert_ok(ls_rpc_connect(all->successor.calls, MEMBER, 0, BENCH_MS));
    all->coordinator = all->successor;
    memset(&all->successor, 0, sizeof all->successor);
}

TEST(the_master_alone_gives_works)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 5);
    struct bench *all = bench->bench;
    start(bench, &work);
    (void)iterate(bench, work.key);
    const struct service_resource resource =
        resource_of(all, all->successor.calls);
    assert_true(resource.gpu == 1.0 && resource.cpu == 2.0);
    assert_string_equal(resource.task_id, "l1");
    assert_int_equal(resource.attempt, 1);
    assert_int_equal(resource.progress, 1);
    is_refused(
        begin_keyed(bench, all->successor.calls, CALL_LEARNER_DEMAND, work.key),
        LS_CALL_NOT_CONNECTED, "master");
    learner_stop(bench);
}

TEST(a_lost_coordinator_ends_the_run_that_has_no_patience)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 5);
    start(bench, &work);
    (void)demanded(bench, work.key);
    bench_kill(&bench->bench->coordinator, LS_EHANDLER);
    bench_ends(bench->bench, LS_ELOST);
    assert_non_null(
        strstr(bench->bench->run_text, "the coordinator, node 2, was lost"));
    learner_stop(bench);
}

TEST(the_next_coordinator_takes_the_work_over)
{
    struct learner_bench *bench = patient_start();
    const struct learner_work work = work_of("l1", 1, 3);
    start(bench, &work);
    (void)iterate(bench, work.key);
    (void)demanded(bench, work.key); /* whose batch never comes */
    succeed(bench);
    const struct service_resource resource =
        resource_of(bench->bench, bench->bench->coordinator.calls);
    assert_string_equal(resource.task_id, "l1");
    assert_int_equal(resource.progress, 1);
    assert_int_equal(iterate(bench, work.key).info.learner_step, 2);
    (void)iterate(bench, work.key);
    expect_done(bench, work.key);
    assert_int_equal(bench->bench->store->n_policies, 4);
    learner_stop(bench);
}

TEST(the_iteration_that_is_under_way_is_finished_and_committed)
{
    struct learner_bench *bench = patient_start();
    const struct learner_work work = work_of("l1", 1, 9);
    start(bench, &work);
    gate_turn(&bench->toy.gate, true);
    (void)demanded(bench, work.key);
    ls_call *learn = begin_learn(bench, work.key);
    gate_await(&bench->toy.gate, 1, 0);
    ls_call_destroy(&learn);
    (void)demanded(bench, work.key);
    ls_call *dropped = begin_learn(bench, work.key);
    assert_int_equal(ls_call_state(dropped) == LS_CALL_COMPLETED, false);
    ls_call_destroy(&dropped);
    succeed(bench);
    gate_turn(&bench->toy.gate, false);
    const struct learner_demand demand = demanded(bench, work.key);
    /* It trains still, or has: the batch behind it is forgotten. */
    assert_true(demand.cur_learner_iter <= 1);
    assert_int_equal(
        learned(bench, begin_learn(bench, work.key)).info.learner_step, 2);
    assert_int_equal(bench->bench->store->n_policies, 3);
    learner_stop(bench);
}

TEST(the_end_is_told_to_the_next_coordinator_too)
{
    struct learner_bench *bench = patient_start();
    const struct learner_work work = work_of("l1", 1, 1);
    start(bench, &work);
    (void)iterate(bench, work.key);
    expect_done(bench, work.key);
    succeed(bench);
    expect_done(bench, work.key);
    assert_int_equal(figures_of(bench).infos, 2);
    closes(bench, work.key);
    learner_stop(bench);
}

TEST(a_policy_waits_for_the_store_that_was_lost)
{
    struct learner_bench *bench = patient_start();
    const struct learner_work work = work_of("l1", 1, 2);
    start(bench, &work);
    (void)demanded(bench, work.key);
    gate_turn(&bench->toy.gate, true);
    ls_call *learn = begin_learn(bench, work.key);
    gate_await(&bench->toy.gate, 1, 0);
    const int64_t puts = bench->bench->store->n_puts;
    toy_set(bench->bench->store, put_status, LS_ELOST);
    gate_turn(&bench->toy.gate, false);
    toy_await(bench->bench->store, n_puts, puts + 1);
    ls_call_destroy(&learn);
    succeed(bench);
    toy_set(bench->bench->store, put_status, LS_OK);
    (void)resource_of(bench->bench, bench->bench->coordinator.calls);
    assert_int_equal(iterate(bench, work.key).info.learner_step, 2);
    expect_done(bench, work.key);
    /* None was left out, and none came twice. */
    assert_int_equal(bench->bench->store->n_policies, 3);
    assert_int_equal(bench->bench->store->last_version, 2);
    learner_stop(bench);
}

TEST(a_close_ends_the_wait_for_a_store)
{
    struct learner_bench *bench = patient_start();
    const struct learner_work work = work_of("l1", 1, 2);
    toy_set(bench->bench->store, put_status, LS_ELOST);
    start(bench, &work);
    toy_await(bench->bench->store, n_puts, 1);
    ls_call *demand = begin_demand(bench, work.key);
    closes(bench, work.key);
    fails_with(demand, "work l1 is closed");
    learner_stop(bench);
}

TEST(a_finished_task_ends_its_run)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 5);
    ls_task *task;
    start(bench, &work);
    (void)iterate(bench, work.key);
    (void)demanded(bench, work.key);
    ls_call *waiting = begin_demand(bench, work.key);
    assert_ok(ls_task_create(
        &task,
        &(struct ls_task_options){.node = bench->bench->coordinator.node}));
    ls_task_finish(task);
    bench_ends(bench->bench, LS_OK);
    fails_with(waiting, "the learner has ended: it is finished");
    ls_task_destroy(&task);
    is_refused(begin_start(bench, &work), LS_CALL_REFUSED,
               "its task has ended");
    learner_stop(bench);
}

/* The run begins on a thread of its own: until it has, works are refused. */
static void start_when_it_runs(struct learner_bench *bench,
                               const struct learner_work *work)
{
    enum ls_call_state state;
    do {
        ls_call *call = begin_start(bench, work);
        state = end_of(call)->state;
        ls_call_destroy(&call);
    } while (state == LS_CALL_START_FAILED);
    assert_int_equal(state, LS_CALL_COMPLETED);
}

TEST(a_task_that_runs_again_serves_again)
{
    struct learner_bench *bench = learner_start();
    struct learner_work work = work_of("l1", 1, 5);
    start(bench, &work);
    (void)iterate(bench, work.key);
    ls_task_cancel(bench->bench->task, LS_ECANCELED, "stop");
    bench_ends(bench->bench, LS_ECANCELED);
    is_refused(begin_demand(bench, work.key), LS_CALL_REFUSED, "holds none");
    bench_begin_run(bench->bench);
    work.key.attempt = 2;
    start_when_it_runs(bench, &work);
    assert_int_equal(iterate(bench, work.key).info.learner_step, 2);
    learner_stop(bench);
}

TEST(what_is_open_when_it_is_destroyed_is_answered)
{
    struct learner_bench *bench = learner_prepare(0);
    const struct learner_work work = work_of("l1", 1, 5);
    bench_start_idle(bench->bench);
    start(bench, &work);
    ls_call *waiting = begin_demand(bench, work.key);
    const struct service_resource resource =
        resource_of(bench->bench, bench->bench->coordinator.calls);
    assert_string_equal(resource.task_id, "l1");
    /* No task runs: the close is answered at once. */
    closes(bench, work.key);
    fails_with(waiting, "work l1 is closed");
    start(bench, &work);
    waiting = begin_demand(bench, work.key);
    (void)resource_of(bench->bench, bench->bench->coordinator.calls);
    learner_stop(bench);
    assert_true(ls_call_state_is_end(ls_call_state(waiting)));
    ls_call_destroy(&waiting);
}
