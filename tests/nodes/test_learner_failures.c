/* learner_service.h, as a specification: what fails, and whom it fails. */
#include "learner_bench.h"
#include "test.h"

TEST(a_learner_that_fails_gives_its_work_back)
{
    struct learner_bench *bench = learner_start();
    struct learner_work work = work_of("l1", 1, 5);
    start(bench, &work);
    bench->toy.fails = 1;
    (void)demanded(bench, work.key);
    fails_with(begin_learn(bench, work.key), "the weights are NaN");
    fails_with(begin_demand(bench, work.key), "the weights are NaN");
    assert_string_equal(
        resource_of(bench->bench, bench->bench->coordinator.calls).task_id, "");
    assert_int_equal(bench->bench->store->n_policies, 1);
    work.key.attempt = 2;
    start(bench, &work);
    (void)iterate(bench, work.key);
    assert_int_equal(figures_of(bench).common.given_back, 1);
    learner_stop(bench);
}

TEST(a_policy_that_cannot_be_written_gives_the_work_back)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 5);
    toy_set(bench->bench->store, put_status, LS_EIO);
    start(bench, &work);
    fails_with(begin_demand(bench, work.key), "policy policy_1");
    learner_stop(bench);
}

TEST(data_that_cannot_be_got_fails_the_call_alone)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 1);
    start(bench, &work);
    (void)demanded(bench, work.key);
    toy_set(bench->bench->store, get_status, LS_ENOENT);
    fails_with(begin_learn(bench, work.key), "the toy has no d.0");
    toy_set(bench->bench->store, get_status, LS_OK);
    /* The iteration is not done: a batch is asked for again. */
    assert_int_equal(demanded(bench, work.key).cur_learner_iter, 0);
    (void)learned(bench, begin_learn(bench, work.key));
    expect_done(bench, work.key);
    assert_int_equal(figures_of(bench).common.failed, 1);
    learner_stop(bench);
}

TEST(a_batch_of_another_size_is_refused)
{
    struct learner_bench *bench = learner_start();
    const struct learner_work work = work_of("l1", 1, 1);
    start(bench, &work);
    (void)demanded(bench, work.key);
    is_refused(begin_learn_of(bench, work.key, 3), LS_CALL_REFUSED,
               "3 samples, and a batch has 2");
    (void)learned(bench, begin_learn(bench, work.key));
    assert_int_equal(figures_of(bench).common.refused, 1);
    learner_stop(bench);
}

TEST(bytes_that_are_no_message_fail_by_name)
{
    static const char *const names[] = {CALL_LEARNER_START, CALL_LEARNER_DEMAND,
                                        CALL_LEARNER_LEARN, CALL_LEARNER_CLOSE,
                                        CALL_RESOURCE};
    struct learner_bench *bench = learner_start();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ls_write_string(bench->bench->writer, "nonsense");
        ls_call *call =
            begin_call(bench->bench, bench->bench->coordinator.calls, names[i]);
        const struct ls_call_result *result = end_of(call);
        assert_int_equal(result->state, LS_CALL_FAILED);
        assert_non_null(strstr(result->text, names[i]));
        ls_call_destroy(&call);
    }
    assert_int_equal(figures_of(bench).common.refused, 5);
    learner_stop(bench);
}

TEST(a_node_has_one_service)
{
    struct learner_bench *bench = learner_prepare(0);
    learner_service *second = NULL;
    const struct learner_service_options options = {
        .common = bench_options(bench->bench, 0)};
    assert_fails(learner_service_create(&second, &options), LS_EEXIST);
    assert_null(second);
    learner_service_destroy(&second);
    learner_stop(bench);
}
