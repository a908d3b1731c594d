/* collector_service.h, as a specification: what fails, and who is lost. */
#include "collector_bench.h"
#include "test.h"

/* What fails ----------------------------------------------------------------
 */

TEST(a_collector_that_fails_gives_its_work_back)
{
    struct collector_bench *bench = collector_start(0);
    struct collector_work work = work_of("c1", 0);
    bench->toy.fails = 1;
    start(bench, &work);
    fails_with(begin_ask(bench, work.key, 3), "the pole broke");
    assert_string_equal(
        resource_of(bench->bench, bench->bench->coordinator.calls).task_id, "");
    work.key.attempt = 2;
    start(bench, &work);
    (void)sample_of(begin_ask(bench, work.key, 3));
    assert_int_equal(figures_of(bench).common.given_back, 1);
    collector_stop(bench);
}

TEST(weights_of_another_shape_give_the_work_back)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    struct store_put put = {.name = "policy_1", .data = "x", .size = 1};
    assert_ok(store_put(&bench->bench->store->base, &put));
    start(bench, &work);
    fails_with(begin_ask(bench, work.key, 3), "policy policy_1");
    collector_stop(bench);
}

TEST(without_a_policy_the_call_fails_and_the_next_one_may_succeed)
{
    struct collector_bench *bench = collector_start(0);
    struct collector_work work = work_of("c1", 0);
    strcpy(work.policy_id, "policy_2");
    start(bench, &work);
    fails_with(begin_ask(bench, work.key, -1), "policy policy_2");
    commit(bench, "policy_2", 0);
    assert_int_equal(sample_of(begin_ask(bench, work.key, 0)).policy_version,
                     0);
    assert_int_equal(figures_of(bench).common.failed, 1);
    collector_stop(bench);
}

TEST(a_store_that_fails_fails_the_call_alone)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    start(bench, &work);
    toy_set(bench->bench->store, put_status, LS_EAGAIN);
    fails_with(begin_ask(bench, work.key, 3), "the toy is broken");
    toy_set(bench->bench->store, put_status, LS_OK);
    const struct sample sample = sample_of(begin_ask(bench, work.key, 3));
    has_data(bench, &sample, "1/3");
    assert_int_equal(figures_of(bench).dropped, 1);
    collector_stop(bench);
}

TEST(what_nobody_waits_for_goes_to_the_next_call)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    gate_turn(&bench->toy.gate, true);
    start(bench, &work);
    ls_call *given_up = begin_ask(bench, work.key, 3);
    gate_await(&bench->toy.gate, 1, 0);
    ls_call_cancel(given_up);
    ls_call_destroy(&given_up);
    /* Calls come in order: this one was served after the cancel. */
    (void)resource_of(bench->bench, bench->bench->coordinator.calls);
    gate_turn(&bench->toy.gate, false);
    const struct collector_data data = data_of(begin_ask(bench, work.key, 3));
    assert_true(data.n >= 1);
    has_data(bench, &data.samples[0], "0/3");
    free(data.samples);
    collector_stop(bench);
}

/* Masters -------------------------------------------------------------------
 */

TEST(the_master_alone_gives_works)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    const struct service_resource resource =
        resource_of(bench->bench, bench->bench->successor.calls);
    assert_true(resource.gpu == 1.0 && resource.cpu == 2.0);
    assert_string_equal(resource.task_id, "");
    collector_work_write(&work, bench->bench->writer);
    is_refused(begin_call(bench->bench, bench->bench->successor.calls,
                          CALL_COLLECTOR_START),
               LS_CALL_NOT_CONNECTED, "master");
    collector_stop(bench);
}

TEST(a_lost_coordinator_ends_the_run_that_has_no_patience)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    start(bench, &work);
    bench_kill(&bench->bench->coordinator, LS_EHANDLER);
    bench_ends(bench->bench, LS_ELOST);
    assert_non_null(
        strstr(bench->bench->run_text, "the coordinator, node 2, was lost"));
    /* What it held is given up. */
    assert_ok(
        ls_rpc_connect(bench->bench->successor.calls, MEMBER, 0, BENCH_MS));
    assert_string_equal(
        resource_of(bench->bench, bench->bench->successor.calls).task_id, "");
    collector_stop(bench);
}

/* Who was no member yet when the others were told is told by the farewell. */
TEST(a_coordinator_that_leaves_when_all_is_done_ends_the_run)
{
    struct collector_bench *bench = collector_start(BENCH_MS);
    const struct collector_work work = work_of("c1", 0);
    start(bench, &work);
    bench_kill(&bench->bench->coordinator, LS_OK);
    bench_ends(bench->bench, LS_OK);
    collector_stop(bench);
}

TEST(patience_has_an_end)
{
    struct collector_bench *bench = collector_start(1);
    (void)resource_of(bench->bench, bench->bench->coordinator.calls);
    bench_kill(&bench->bench->coordinator, LS_EHANDLER);
    bench_ends(bench->bench, LS_ELOST);
    assert_non_null(
        strstr(bench->bench->run_text, "none came in its place within 1 ms"));
    collector_stop(bench);
}

TEST(the_next_coordinator_takes_the_work_over)
{
    struct collector_bench *bench = collector_start(BENCH_MS);
    const struct collector_work work = work_of("c1", 0);
    start(bench, &work);
    (void)sample_of(begin_ask(bench, work.key, 3));
    gate_await(&bench->toy.gate, 0, 2);
    bench_kill(&bench->bench->coordinator, LS_EHANDLER);
    ls_rpc *calls = bench->bench->successor.calls;
    assert_ok(ls_rpc_connect(calls, MEMBER, 0, BENCH_MS));
    const struct service_resource resource = resource_of(bench->bench, calls);
    assert_string_equal(resource.task_id, "c1");
    assert_int_equal(resource.attempt, 1);
    /* What nobody took is gone, and the work goes on. */
    const struct sample sample =
        sample_of(begin_ask_of(bench, calls, work.key, 3));
    assert_int_equal(sample.cur_sample, 3);
    has_data(bench, &sample, "2/3");
    assert_int_equal(figures_of(bench).dropped, 1);
    collector_stop(bench);
}

static ls_call *begin_ask_of_one(struct collector_bench *bench, ls_rpc *calls,
                                 struct work_key key)
{
    const struct collector_ask ask = {
        .key = key, .policy_version = 3, .want = 1};
    collector_ask_write(&ask, bench->bench->writer);
    return begin_call(bench->bench, calls, CALL_COLLECTOR_DATA);
}

/* A work's coordinator is killed while what it asked for is being made, and the
 * next one has asked for the same. lost: the call of the one that was killed.
 */
static ls_call *asked_by_the_next(struct collector_bench *bench, int64_t limit,
                                  ls_call **lost)
{
    const struct collector_work work = work_of("c1", limit);
    ls_rpc *calls = bench->bench->successor.calls;
    gate_turn(&bench->toy.gate, true);
    start(bench, &work);
    *lost = begin_ask_of_one(bench, bench->bench->coordinator.calls, work.key);
    gate_await(&bench->toy.gate, 1, 0);
    bench_kill(&bench->bench->coordinator, LS_EHANDLER);
    assert_ok(ls_rpc_connect(calls, MEMBER, 0, BENCH_MS));
    ls_call *call = begin_ask_of_one(bench, calls, work.key);
    /* Calls come in order: the one before was served. */
    (void)resource_of(bench->bench, calls);
    return call;
}

/* What was being made for the one before does not count. */
TEST(the_next_coordinator_gets_as_many_as_it_wants)
{
    struct collector_bench *bench = collector_start(BENCH_MS);
    ls_call *lost;
    ls_call *call = asked_by_the_next(bench, 0, &lost);
    gate_turn(&bench->toy.gate, false);
    const struct sample sample = sample_of(call);
    has_data(bench, &sample, "1/3");
    assert_int_equal(figures_of(bench).dropped, 1);
    ls_call_destroy(&lost);
    collector_stop(bench);
}

/* And is told that it was the last one. */
TEST(the_next_coordinator_is_told_that_all_was_made)
{
    struct collector_bench *bench = collector_start(BENCH_MS);
    ls_call *lost;
    ls_call *call = asked_by_the_next(bench, 1, &lost);
    gate_turn(&bench->toy.gate, false);
    const struct collector_data data = data_of(call);
    assert_true(data.is_info && data.info.collector_done);
    ls_call_destroy(&lost);
    collector_stop(bench);
}

TEST(a_finished_task_ends_its_run)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    ls_task *task;
    start(bench, &work);
    (void)sample_of(begin_ask(bench, work.key, 3));
    assert_ok(ls_task_create(
        &task,
        &(struct ls_task_options){.node = bench->bench->coordinator.node}));
    ls_task_finish(task);
    bench_ends(bench->bench, LS_OK);
    ls_task_destroy(&task);
    is_refused(begin_start(bench, &work), LS_CALL_REFUSED,
               "its task has ended");
    collector_stop(bench);
}

static void note_left(void *self, const struct ls_member *member)
{
    if (member->state == LS_MEMBER_LEFT)
        gate_pass(self);
}

/* A short job may end while a member still joins it. */
TEST(a_coordinator_that_has_left_before_it_was_met_ends_the_run)
{
    struct bench *bench = bench_create();
    struct gate left;
    gate_init(&left);
    assert_ok(ls_node_on_member(bench->member.node, note_left, &left));
    bench_start_idle(bench);
    bench_kill(&bench->coordinator, LS_OK);
    gate_await(&left, 0, 1);
    struct collector_bench *made = collector_make(bench, 0);
    bench_begin_run(bench);
    bench_ends(bench, LS_OK);
    collector_stop(made);
    gate_fini(&left);
}
