/* A pipeline that is driven by hand: forward, backward, end. */
#include "task_help.h"

struct named {
    struct trace *trace;
    const char *forward, *back;
    int status; /* of the forward half */
};

static int notes(ls_step *step, void *self)
{
    const struct named *named = self;
    note(named->trace, named->forward);
    if (named->status != LS_OK)
        return ls_error(named->status, "as asked");
    const int status = ls_yield(step);
    note(named->trace,
         status == LS_OK ? named->back : ls_status_name(status) + 3);
    return status;
}

static ls_task *task_of(struct named *a, struct named *b, bool async)
{
    ls_task *task = NULL;
    const struct ls_task_options options = {.async = async, .n_workers = 1};
    assert_int_equal(ls_task_create(&task, &options), LS_OK);
    assert_int_equal(
        ls_task_use(
            task, (struct ls_middleware){.name = "a", .fn = notes, .self = a}),
        LS_OK);
    assert_int_equal(
        ls_task_use(
            task, (struct ls_middleware){.name = "b", .fn = notes, .self = b}),
        LS_OK);
    return task;
}

static void test_each_half_runs_when_it_is_asked_for(void **state)
{
    (void)state;
    for (int async = 0; async < 2; async++) {
        struct trace trace;
        trace_init(&trace);
        struct named a = {&trace, "a1", "a2", LS_OK};
        struct named b = {&trace, "b1", "b2", LS_OK};
        ls_task *task = task_of(&a, &b, async != 0);
        assert_int_equal(ls_task_forward(task), LS_OK);
        note(&trace, "|");
        assert_int_equal(ls_task_forward(task), LS_ESTATE);
        assert_int_equal(ls_task_run(task, 1), LS_ESTATE);
        assert_int_equal(ls_task_destroy(&task), LS_ESTATE);
        assert_int_equal(ls_task_iterations(task), 0);
        assert_int_equal(ls_task_backward(task), LS_OK);
        assert_int_equal(ls_task_iterations(task), 1);
        assert_int_equal(ls_task_backward(task), LS_ESTATE);
        assert_int_equal(ls_task_forward(task), LS_OK);
        assert_int_equal(ls_task_backward(task), LS_OK);
        assert_int_equal(ls_task_end(task), LS_OK);
        assert_int_equal(ls_task_end(task), LS_ESTATE);
        const struct ls_online_context *context =
            ls_context_data(ls_task_context(task));
        assert_int_equal(context->total_step, 2);
        assert_string_equal(trace.text, "a1 b1 | b2 a2 a1 b1 b2 a2");
        assert_int_equal(ls_task_run(task, 1), LS_OK);
        assert_int_equal(ls_task_iterations(task), 3);
        assert_int_equal(ls_task_destroy(&task), LS_OK);
        trace_fini(&trace);
    }
}

static void test_an_error_resumes_all_and_end_returns_it(void **state)
{
    (void)state;
    struct trace trace;
    trace_init(&trace);
    struct named a = {&trace, "a1", "a2", LS_OK};
    struct named b = {&trace, "b1", "b2", LS_EPROTO};
    ls_task *task = task_of(&a, &b, false);
    assert_int_equal(ls_task_forward(task), LS_EPROTO);
    assert_string_equal(trace.text, "a1 b1 EPROTO");
    assert_int_equal(ls_task_backward(task), LS_ESTATE);
    assert_int_equal(ls_task_forward(task), LS_EPROTO);
    assert_string_equal(trace.text, "a1 b1 EPROTO");
    assert_int_equal(ls_task_end(task), LS_EPROTO);
    assert_non_null(strstr(ls_error_text(), "as asked"));
    assert_int_equal(ls_task_iterations(task), 0);
    b.status = LS_OK;
    assert_int_equal(ls_task_run(task, 1), LS_OK);
    assert_int_equal(ls_task_destroy(&task), LS_OK);
    trace_fini(&trace);
}

static void test_an_end_in_between_leaves_nothing_suspended(void **state)
{
    (void)state;
    struct trace trace;
    trace_init(&trace);
    struct named a = {&trace, "a1", "a2", LS_OK};
    struct named b = {&trace, "b1", "b2", LS_OK};
    ls_task *task = task_of(&a, &b, false);
    assert_int_equal(ls_task_forward(task), LS_OK);
    assert_int_equal(ls_task_end(task), LS_ECANCELED);
    assert_string_equal(trace.text, "a1 b1 ECANCELED ECANCELED");
    assert_int_equal(ls_task_forward(task), LS_OK);
    assert_int_equal(ls_task_backward(task), LS_OK);
    assert_int_equal(ls_task_end(task), LS_OK);
    assert_int_equal(ls_task_destroy(&task), LS_OK);
    trace_fini(&trace);
}

static void
test_what_keeps_a_run_from_beginning_is_told_by_forward(void **state)
{
    (void)state;
    ls_task *task = NULL;
    assert_int_equal(ls_task_create(&task, &(struct ls_task_options){0}),
                     LS_OK);
    assert_int_equal(ls_task_end(task), LS_ESTATE);
    ls_task_cancel(task, LS_ETIMEDOUT, "enough");
    assert_int_equal(ls_task_forward(task), LS_ETIMEDOUT);
    assert_int_equal(ls_task_end(task), LS_ETIMEDOUT);
    assert_int_equal(ls_task_forward(task), LS_OK);
    assert_int_equal(ls_task_backward(task), LS_OK);
    assert_int_equal(ls_task_end(task), LS_OK);
    assert_int_equal(ls_task_destroy(&task), LS_OK);
}

static void test_a_lock_outlives_the_task_that_takes_it(void **state)
{
    (void)state;
    struct trace trace;
    trace_init(&trace);
    struct named a = {&trace, "a1", "a2", LS_OK};
    ls_task *task = NULL;
    ls_step_lock *lock = NULL;
    assert_int_equal(ls_task_create(&task, &(struct ls_task_options){0}),
                     LS_OK);
    assert_int_equal(ls_step_lock_create(&lock, task), LS_OK);
    assert_int_equal(ls_task_use(task, (struct ls_middleware){.name = "a",
                                                              .fn = notes,
                                                              .self = &a,
                                                              .lock = lock}),
                     LS_OK);
    assert_int_equal(ls_step_lock_destroy(&lock), LS_ESTATE);
    assert_int_equal(ls_task_run(task, 1), LS_OK);
    assert_int_equal(ls_task_destroy(&task), LS_OK);
    assert_int_equal(ls_step_lock_destroy(&lock), LS_OK);
    assert_null(lock);
    trace_fini(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_half_runs_when_it_is_asked_for),
        cmocka_unit_test(test_an_error_resumes_all_and_end_returns_it),
        cmocka_unit_test(test_an_end_in_between_leaves_nothing_suspended),
        cmocka_unit_test(
            test_what_keeps_a_run_from_beginning_is_told_by_forward),
        cmocka_unit_test(test_a_lock_outlives_the_task_that_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
