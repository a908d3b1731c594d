/* learner_service.h, as a specification: what a learner does with its works. */
#include "learner_bench.h"
#include "test.h"

TEST(a_hundred_iterations_make_a_hundred_and_one_infos)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 100);
    start(bench, &work);
    for (int64_t i = 0; i < 100; i++) {
        const struct learner_demand demand = demanded(bench, work.key);
        assert_int_equal(demand.cur_learner_iter, i);
        assert_int_equal(demand.policy_version, i);
        assert_int_equal(demand.batch_size, 2);
        const struct learner_result result =
            learned(bench, begin_learn(bench, work.key));
        assert_int_equal(result.info.learner_step, i + 1);
        assert_int_equal(result.info.policy_version, i + 1);
        assert_false(result.info.learner_done);
        assert_string_equal(result.info.values[0].name, "loss");
    }
    expect_done(bench, work.key);
    assert_int_equal(bench->infos, 101);
    assert_int_equal(bench->dones, 1);
    assert_int_equal(bench->last_step, 100);
    const struct toy_store *store = bench->bench->store;
    assert_int_equal(store->n_policies, 101);
    assert_int_equal(store->iters[0], 0);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(store->iters[i + 1], i);
    assert_int_equal(store->last_version, 100);
    closes(bench, work.key);
    const struct learner_figures figures = figures_of(bench);
    assert_int_equal(figures.iterations, 100);
    assert_int_equal(figures.infos, 101);
    assert_int_equal(figures.commits, 101);
    assert_int_equal(figures.common.refused, 0);
    learner_stop(bench);
}

TEST(priorities_come_back_with_the_place_of_each_sample)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 1);
    start(bench, &work);
    const struct learner_result result = iterate(bench, work.key);
    assert_int_equal(result.n, 2);
    assert_true(result.priorities[1] == 1.5);
    assert_string_equal(result.buffer_id, "buffer_1");
    learner_stop(bench);
}

TEST(the_next_batch_is_asked_for_and_fetched_while_one_trains)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 2);
    start(bench, &work);
    gate_turn(&bench->toy.gate, true);
    (void)demanded(bench, work.key);
    ls_call *first = begin_learn(bench, work.key);
    gate_await(&bench->toy.gate, 1, 0);
    /* It trains; the next demand is answered, its data is got. */
    (void)demanded(bench, work.key);
    const int64_t gets = bench->bench->store->n_gets;
    ls_call *second = begin_learn(bench, work.key);
    toy_await(bench->bench->store, n_gets, gets + 1);
    assert_int_equal(ls_call_state(first), LS_CALL_STARTED);
    gate_turn(&bench->toy.gate, false);
    (void)learned(bench, first);
    (void)learned(bench, second);
    expect_done(bench, work.key);
    const struct learner_figures figures = figures_of(bench);
    assert_true(figures.wait_ns > 0 && figures.train_ns > 0);
    assert_true(figures.overlap_ns > 0);
    assert_true(figures.overlap_ns < figures.load_ns);
    learner_stop(bench);
}

/* A work has begun, and its first batch trains until the gate is open. */
static ls_call *begin_training(struct learner_bench *bench,
                               const struct learner_work *work)
{
    start(bench, work);
    gate_turn(&bench->toy.gate, true);
    (void)demanded(bench, work->key);
    ls_call *first = begin_learn(bench, work->key);
    gate_await(&bench->toy.gate, 1, 0);
    return first;
}

TEST(at_most_one_batch_waits_while_one_trains)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 9);
    ls_call *first = begin_training(bench, &work);
    (void)demanded(bench, work.key);
    ls_call *second = begin_learn(bench, work.key);
    ls_call *third = begin_demand(bench, work.key);
    is_refused(begin_learn(bench, work.key), LS_CALL_REFUSED,
               "no batch was asked for");
    assert_false(ls_call_state_is_end(ls_call_state(third)));
    gate_turn(&bench->toy.gate, false);
    (void)learned(bench, first);
    assert_false(demand_of(third).done);
    (void)learned(bench, second);
    learner_stop(bench);
}

TEST(the_next_batch_is_loaded_while_one_trains)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 2);
    ls_call *first = begin_training(bench, &work);
    (void)demanded(bench, work.key);
    ls_call *second = begin_learn(bench, work.key);
    toy_await(bench->bench->store, n_gets, 2);
    gate_turn(&bench->toy.gate, false);
    (void)learned(bench, first);
    (void)learned(bench, second);
    learner_stop(bench);
}

TEST(without_loaders_it_is_loaded_after_that)
{
    struct learner_bench *bench = learner_prepare_with(0, 1, 0);
    const struct learner_work work = work_of("l1", 1, 2);
    bench_start(bench->bench);
    ls_call *first = begin_training(bench, &work);
    ls_call *demand = begin_demand(bench, work.key); /* there is no room */
    (void)figures_of(bench);
    assert_false(ls_call_state_is_end(ls_call_state(demand)));
    gate_turn(&bench->toy.gate, false);
    (void)learned(bench, first);
    assert_false(demand_of(demand).done);
    (void)learned(bench, begin_learn(bench, work.key));
    learner_stop(bench);
}

/* Hooks -------------------------------------------------------------------- */

struct trail {
    struct learner_bench *bench;
    char text[512];
    int64_t infos_at_end[2];
};

static void leave(struct trail *trail, const char *what, int64_t iter)
{
    const size_t used = strlen(trail->text);
    (void)snprintf(trail->text + used, sizeof trail->text - used, "%s%lld/%zu ",
                   what, (long long)iter,
                   trail->bench->bench->store->n_policies);
}

static int on_before_run(void *self, int64_t iter)
{
    leave(self, "R", iter);
    return LS_OK;
}

static int on_before_iter(void *self, int64_t iter)
{
    leave(self, "b", iter);
    return LS_OK;
}

static int on_after_iter(void *self, int64_t iter)
{
    leave(self, "a", iter);
    return LS_OK;
}

static int on_late_after_iter(void *self, int64_t iter)
{
    leave(self, "z", iter);
    return LS_OK;
}

/* Before the last info is sent, and after it. */
static int on_after_run(void *self, int64_t iter)
{
    struct trail *trail = self;
    leave(trail, "E", iter);
    trail->infos_at_end[0] = figures_of(trail->bench).infos;
    return LS_OK;
}

static int on_late_after_run(void *self, int64_t iter)
{
    struct trail *trail = self;
    (void)iter;
    trail->infos_at_end[1] = figures_of(trail->bench).infos;
    return LS_OK;
}

TEST(hooks_run_in_order_and_see_iterations_from_0)
{
    struct learner_bench *bench = learner_prepare(0);
    struct trail trail = {.bench = bench};
    const struct learner_work work = work_of("l1", 1, 2);
    const struct hook hooks[] = {
        {"r", HOOK_BEFORE_RUN, 10, 0, on_before_run, &trail},
        {"b", HOOK_BEFORE_ITER, 10, 0, on_before_iter, &trail},
        {"z", HOOK_AFTER_ITER, 101, 0, on_late_after_iter, &trail},
        {"a", HOOK_AFTER_ITER, 20, 0, on_after_iter, &trail},
        {"l", HOOK_AFTER_RUN, 2, 0, on_late_after_run, &trail},
        {"e", HOOK_AFTER_RUN, 0, 0, on_after_run, &trail}};
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++)
        assert_ok(learner_service_hook(bench->service, &hooks[i]));
    assert_fails(learner_service_hook(bench->service, &hooks[0]), LS_EEXIST);
    bench_start(bench->bench);
    start(bench, &work);
    (void)iterate(bench, work.key);
    (void)iterate(bench, work.key);
    expect_done(bench, work.key);
    /* Each with how many policies there are: it is sent between a and z. */
    assert_string_equal(trail.text, "R0/0 b0/1 a0/1 z0/2 b1/2 a1/2 z1/3 E2/3 ");
    learner_stop(bench);
    assert_int_equal(trail.infos_at_end[0], 2);
    assert_int_equal(trail.infos_at_end[1], 3);
}

static int fails_in_third(void *self, int64_t iter)
{
    (void)self;
    return iter == 2 ? ls_error(LS_EIO, "the disk is full") : LS_OK;
}

TEST(a_hook_that_fails_gives_the_work_back)
{
    struct learner_bench *bench = learner_prepare(0);
    const struct learner_work work = work_of("l1", 1, 9);
    const struct hook hook = {"write", HOOK_AFTER_ITER, 20,
                              0,       fails_in_third,  NULL};
    assert_ok(learner_service_hook(bench->service, &hook));
    bench_start(bench->bench);
    start(bench, &work);
    (void)iterate(bench, work.key);
    (void)iterate(bench, work.key);
    (void)demanded(bench, work.key);
    fails_with(begin_learn(bench, work.key), "the disk is full");
    /* Sending comes after it. */
    assert_int_equal(bench->bench->store->n_policies, 3);
    learner_stop(bench);
}

TEST(policies_and_infos_are_sent_at_their_frequencies)
{
    struct learner_bench *bench = learner_start();
    struct learner_work work = work_of("l1", 1, 7);
    static const int64_t iters[] = {0, 0, 3, 6};
    work.send_policy_freq = 3;
    work.send_info_freq = 2;
    start(bench, &work);
    for (int64_t i = 0; i < 7; i++)
        assert_int_equal(iterate(bench, work.key).has_info, i % 2 == 0);
    expect_done(bench, work.key);
    assert_int_equal(bench->infos, 5);
    assert_int_equal(bench->bench->store->n_policies, 4);
    assert_memory_equal(bench->bench->store->iters, iters, sizeof iters);
    learner_stop(bench);
}

/* One after the other -------------------------------------------------------
 */

TEST(a_second_work_begins_with_nothing_of_the_first)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work first = work_of("l1", 1, 2);
    const struct learner_work second = work_of("l2", 1, 2);
    for (int round = 0; round < 3; round++) {
        start(bench, &first);
        (void)iterate(bench, first.key);
        (void)iterate(bench, first.key);
        expect_done(bench, first.key);
        closes(bench, first.key);
        start(bench, &second);
        const struct learner_demand demand = demanded(bench, second.key);
        assert_int_equal(demand.cur_learner_iter, 0);
        assert_int_equal(demand.policy_version, 0);
        /* The weights are the first ones. */
        assert_true(learned(bench, begin_learn(bench, second.key))
                        .info.values[0]
                        .value == 1.0);
        closes(bench, second.key);
    }
    learner_stop(bench);
}

TEST(a_close_answers_what_waits)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work first = work_of("l1", 1, 9);
    const struct learner_work second = work_of("l2", 1, 2);
    start(bench, &first);
    (void)demanded(bench, first.key);
    ls_call *waiting = begin_demand(bench, first.key);
    closes(bench, first.key);
    fails_with(waiting, "work l1 is closed");
    is_refused(begin_learn(bench, first.key), LS_CALL_REFUSED, "holds none");
    start(bench, &second);
    is_refused(begin_learn(bench, first.key), LS_CALL_REFUSED,
               "it is for work l1, attempt 1, and the learner holds work l2, "
               "attempt 1");
    is_refused(begin_learn(bench, second.key), LS_CALL_REFUSED,
               "no batch was asked for");
    assert_int_equal(demanded(bench, second.key).cur_learner_iter, 0);
    (void)learned(bench, begin_learn(bench, second.key));
    learner_stop(bench);
}

/* With nothing of the one before. */
static void next_work_is_served(struct learner_bench *bench)
{
    const struct learner_work work = work_of("l2", 1, 1);
    start(bench, &work);
    (void)iterate(bench, work.key);
    expect_done(bench, work.key);
}

TEST(a_close_while_it_trains_is_answered_when_it_is_over)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work first = work_of("l1", 1, 9);
    const struct learner_work second = work_of("l2", 1, 1);
    start(bench, &first);
    gate_turn(&bench->toy.gate, true);
    (void)demanded(bench, first.key);
    ls_call *learn = begin_learn(bench, first.key);
    gate_await(&bench->toy.gate, 1, 0);
    (void)demanded(bench, first.key);
    ls_call *next = begin_learn(bench, first.key);
    ls_call *close = begin_close(bench, first.key);
    fails_with(learn, "work l1 is closed");
    fails_with(next, "work l1 is closed");
    is_refused(begin_start(bench, &second), LS_CALL_BUSY,
               "the learner holds work l1, attempt 1");
    assert_false(ls_call_state_is_end(ls_call_state(close)));
    gate_turn(&bench->toy.gate, false);
    (void)completes(close);
    ls_call_destroy(&close);
    /* What it learned then was not committed. */
    assert_int_equal(bench->bench->store->n_policies, 1);
    next_work_is_served(bench);
    learner_stop(bench);
}

TEST(a_close_while_data_is_fetched_leaves_nothing)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work first = work_of("l1", 1, 9);
    start(bench, &first);
    (void)demanded(bench, first.key);
    toy_set(bench->bench->store, get_waits, true);
    ls_call *learn = begin_learn(bench, first.key);
    toy_await(bench->bench->store, n_gets, 1);
    ls_call *close = begin_close(bench, first.key);
    fails_with(learn, "work l1 is closed");
    assert_false(ls_call_state_is_end(ls_call_state(close)));
    toy_set(bench->bench->store, get_waits, false);
    (void)completes(close);
    ls_call_destroy(&close);
    next_work_is_served(bench);
    learner_stop(bench);
}

TEST(a_work_without_an_end_goes_on_until_it_is_closed)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 0);
    start(bench, &work);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(iterate(bench, work.key).info.learner_step, i + 1);
    closes(bench, work.key);
    assert_int_equal(bench->dones, 0);
    learner_stop(bench);
}

/* Attempts ------------------------------------------------------------------
 */

TEST(a_later_attempt_goes_on_from_the_last_policy)
{
    struct learner_bench *bench = learner_start();
    struct learner_work work = work_of("l1", 1, 5);
    start(bench, &work);
    (void)iterate(bench, work.key);
    (void)iterate(bench, work.key);
    closes(bench, work.key);
    work.key.attempt = 2;
    work.done = 2;
    start(bench, &work);
    const struct learner_demand demand = demanded(bench, work.key);
    assert_int_equal(demand.cur_learner_iter, 2);
    assert_int_equal(demand.policy_version, 2);
    /* Nothing was committed in before_run. */
    assert_int_equal(bench->bench->store->n_policies, 3);
    assert_int_equal(bench->toy.loads, 1);
    const struct learner_result result =
        learned(bench, begin_learn(bench, work.key));
    assert_int_equal(result.info.learner_step, 3);
    assert_int_equal(result.info.policy_version, 3);
    assert_true(result.info.values[0].value == 3.0);
    (void)iterate(bench, work.key);
    (void)iterate(bench, work.key);
    expect_done(bench, work.key);
    assert_int_equal(bench->last_step, 5);
    learner_stop(bench);
}

/* Three iterations, then an attempt of another learner. */
static struct learner_bench *take_over(struct learner_work *work)
{
    struct learner_bench *bench = learner_start();
    *work = work_of("l1", 1, 5);
    start(bench, work);
    for (int i = 0; i < 3; i++)
        (void)iterate(bench, work->key);
    closes(bench, work->key);
    work->key.attempt++;
    return bench;
}

TEST(a_later_attempt_goes_on_with_all_that_was_known)
{
    struct learner_work work;
    struct learner_bench *bench = take_over(&work);
    for (int64_t n = 3; n < 5; n++) { /* by the one name, and by the other */
        memset(&bench->toy.training, 0xff, sizeof bench->toy.training);
        start(bench, &work);
        (void)demanded(bench, work.key);
        assert_int_equal(bench->toy.weights, n);
        assert_int_equal(bench->toy.training.n, n);
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(bench->toy.training.was[i], i);
        (void)learned(bench, begin_learn(bench, work.key));
        closes(bench, work.key);
        work.key.attempt++;
    }
    assert_int_equal(bench->toy.training_loads, 2);
    /* It was there before the first policy was. */
    const struct toy_item *items = bench->bench->store->items;
    assert_string_equal(items[0].name, "policy_1.training0");
    assert_string_equal(items[1].name, "policy_1");
    assert_int_equal(figures_of(bench).policy_only, 0);
    learner_stop(bench);
}

/* Of an attempt that was given up, or an iteration later; of another shape;
 * damaged; lost. */
TEST(without_it_the_policy_goes_on_alone)
{
    static const struct policy_value other[] = {
        {.iter = 2, .version = 3, .attempt = 7, .weights = {(void *)"x", 1}},
        {.iter = 4, .version = 5, .attempt = 1, .weights = {(void *)"x", 1}},
        {.iter = 2, .version = 3, .attempt = 1, .weights = {(void *)"x", 1}}};
    for (size_t i = 0; i < 5; i++) {
        struct learner_work work;
        struct learner_bench *bench = take_over(&work);
        struct store *store = &bench->bench->store->base;
        struct store_put put = {
            .name = "policy_1.training1", .data = "x", .size = 1};
        ls_writer *writer;
        assert_ok(ls_writer_create(&writer));
        if (i < 3) {
            policy_value_write(&other[i], writer);
            assert_ok(ls_writer_bytes(writer, &put.data, &put.size));
        }
        if (i < 4)
            assert_ok(store_put(store, &put));
        else
            assert_ok(store_drop(store, put.name, 0));
        ls_writer_destroy(&writer);
        const int64_t resets = bench->toy.resets;
        start(bench, &work);
        assert_int_equal(demanded(bench, work.key).cur_learner_iter, 3);
        assert_int_equal(bench->toy.resets, resets + 2);
        assert_int_equal(bench->toy.weights, 3);
        assert_int_equal(bench->toy.training.n, 0);
        assert_int_equal(figures_of(bench).policy_only, 1);
        learner_stop(bench);
    }
}

TEST(a_later_attempt_takes_the_place_of_the_one_that_is_held)
{
    struct learner_bench *bench = learner_start();
    struct learner_work work = work_of("l1", 1, 5);
    const struct work_key old = work.key;
    start(bench, &work);
    (void)iterate(bench, work.key);
    gate_turn(&bench->toy.gate, true);
    (void)demanded(bench, old);
    ls_call *learn = begin_learn(bench, old);
    gate_await(&bench->toy.gate, 1, 0);
    work.key.attempt = 2;
    ls_call *call = begin_start(bench, &work);
    fails_with(learn, "a later attempt than 1");
    gate_turn(&bench->toy.gate, false);
    (void)completes(call);
    ls_call_destroy(&call);
    is_refused(begin_demand(bench, old), LS_CALL_REFUSED, "attempt 1");
    assert_int_equal(demanded(bench, work.key).cur_learner_iter, 1);
    is_refused(begin_start(bench, &work), LS_CALL_BUSY, "attempt 2");
    learner_stop(bench);
}

TEST(a_work_that_was_all_done_before_is_done_at_once)
{
    struct learner_bench *bench = learner_start();
    struct learner_work work = work_of("l1", 1, 1);
    start(bench, &work);
    (void)iterate(bench, work.key);
    closes(bench, work.key);
    work.key.attempt = 2;
    start(bench, &work);
    expect_done(bench, work.key);
    assert_int_equal(bench->last_step, 1);
    learner_stop(bench);
}
