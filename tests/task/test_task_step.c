/* The halves of steps: their order, their errors, and how they are given up. */
#include "task_help.h"
#include "test.h"

TEST(serial_pipeline_runs_in_order)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words first = {&trace, "0", NULL, 0, 0, 0};
    struct words second = {&trace, "1", NULL, 0, 0, 0};
    assert_ok(ls_task_use(task, saying("first", &first)));
    assert_ok(ls_task_use(task, saying("second", &second)));
    assert_ok(ls_task_run(task, 2));
    assert_string_equal(trace.text, "0 1 0 1");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(serial_yield_comes_back_in_reverse)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words a = {&trace, "a", "A", 0, 0, 0};
    struct words b = {&trace, "b", NULL, 0, 0, 0};
    struct words c = {&trace, "c", "C", 0, 0, 0};
    assert_ok(ls_task_use(task, saying("a", &a)));
    assert_ok(ls_task_use(task, saying("b", &b)));
    assert_ok(ls_task_use(task, saying("c", &c)));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "a b c C A");
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "a b c C A a b c C A");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static int counts_in_locals(ls_step *step, void *self)
{
    int64_t values[8];
    for (int i = 0; i < 8; i++)
        values[i] = *(int64_t *)self + i;
    const int status = ls_yield(step);
    for (int i = 0; i < 8; i++)
        *(int64_t *)self += values[i];
    return status;
}

TEST(locals_survive_the_yield)
{
    int64_t sums[3] = {0, 100, 200};
    ls_task *task = task_plain();
    for (int i = 0; i < 3; i++)
        assert_ok(ls_task_use_fn(task, counts_in_locals, &sums[i]));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(sums[0], 28);
    assert_int_equal(sums[1], 100 + 828);
    assert_int_equal(sums[2], 200 + 1628);
    ls_task_destroy(&task);
}

TEST(a_failing_step_ends_the_iteration)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words a = {&trace, "a", "A", 0, 0, 1};
    struct words b = {&trace, "b", "B", 0, 0, 1};
    struct words c = {&trace, "c", NULL, LS_EIO, 0, 0};
    struct words d = {&trace, "d", "D", 0, 0, 0};
    assert_ok(ls_task_use(task, saying("a", &a)));
    assert_ok(ls_task_use(task, saying("b", &b)));
    assert_ok(ls_task_use(task, saying("reader", &c)));
    assert_ok(ls_task_use(task, saying("d", &d)));
    assert_fails(ls_task_run(task, 5), LS_EIO);
    assert_string_equal(ls_error_text(), "step reader: c went wrong");
    assert_string_equal(trace.text, "a b c B A");
    assert_int_equal(a.given, LS_EIO);
    assert_int_equal(b.given, LS_EIO);
    assert_int_equal(online(task)->total_step, 0);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(a_failing_backward_half_unwinds_the_rest)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words a = {&trace, "a", "A", 0, 0, 1};
    struct words b = {&trace, "b", "B", 0, LS_EPROTO, 1};
    struct words c = {&trace, "c", "C", 0, 0, 1};
    assert_ok(ls_task_use(task, saying("a", &a)));
    assert_ok(ls_task_use(task, saying("b", &b)));
    assert_ok(ls_task_use(task, saying("c", &c)));
    assert_fails(ls_task_run(task, 1), LS_EPROTO);
    assert_string_equal(ls_error_text(), "step b: B went wrong");
    assert_string_equal(trace.text, "a b c C B A");
    assert_int_equal(c.given, LS_OK);
    assert_int_equal(b.given, LS_OK);
    assert_int_equal(a.given, LS_EPROTO);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(the_first_error_wins)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words a = {&trace, "a", "A", 0, LS_ENOMEM, 0};
    struct words b = {&trace, "b", NULL, LS_EIO, 0, 0};
    assert_ok(ls_task_use(task, saying("a", &a)));
    assert_ok(ls_task_use(task, saying("b", &b)));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_string_equal(ls_error_text(), "step b: b went wrong");
    assert_string_equal(trace.text, "a b A");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static int reads_the_error(ls_step *step, void *self)
{
    const int status = ls_yield(step);
    if (status < 0)
        (void)snprintf(self, 64, "%s", ls_error_text());
    return status;
}

TEST(what_yield_returns_has_its_text)
{
    struct trace trace;
    trace_init(&trace);
    char text[64] = "";
    ls_task *task = task_plain();
    struct words b = {&trace, "b", "B", 0, LS_ENOMEM, 0};
    struct words c = {&trace, "c", NULL, LS_EIO, 0, 0};
    assert_ok(ls_task_use_fn(task, reads_the_error, text));
    assert_ok(ls_task_use(task, saying("b", &b)));
    assert_ok(ls_task_use(task, saying("c", &c)));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_string_equal(text, "step c: c went wrong");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static int swallows(ls_step *step, void *self)
{
    *(int *)self = ls_yield(step);
    return LS_OK;
}

TEST(an_error_is_not_lost_by_a_step_that_ignores_it)
{
    struct trace trace;
    trace_init(&trace);
    int given = 0;
    ls_task *task = task_plain();
    struct words b = {&trace, "b", NULL, LS_EIO, 0, 0};
    assert_ok(ls_task_use_fn(task, swallows, &given));
    assert_ok(ls_task_use(task, saying("b", &b)));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_int_equal(given, LS_EIO);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static int yields_twice(ls_step *step, void *self)
{
    int status = ls_yield(step);
    *(int *)self = ls_yield(step);
    return status;
}

TEST(a_second_yield_is_an_error)
{
    int second = 0;
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, yields_twice, &second));
    assert_fails(ls_task_run(task, 1), LS_ESTATE);
    assert_int_equal(second, LS_ESTATE);
    assert_error_has("yields_twice");
    ls_task_destroy(&task);
}

static int lends_its_handle(ls_step *step, void *self)
{
    *(ls_step **)self = step;
    return ls_yield(step);
}

static int yields_for_another(ls_step *step, void *self)
{
    (void)step;
    return ls_yield(*(ls_step **)self);
}

TEST(a_step_yields_only_for_itself)
{
    ls_step *other = NULL;
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, lends_its_handle, &other));
    struct ls_middleware wrong = {
        .name = "wrong", .fn = yields_for_another, .self = &other};
    assert_ok(ls_task_use(task, wrong));
    assert_fails(ls_task_run(task, 1), LS_ESTATE);
    assert_error_has("step wrong");
    ls_task_destroy(&task);
}

static int returns_three(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return 3;
}

TEST(a_positive_result_is_no_status)
{
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, returns_three, NULL));
    assert_fails(ls_task_run(task, 1), LS_EINVAL);
    assert_error_has("returns_three returned 3");
    ls_task_destroy(&task);
}

struct seen {
    const char *name;
    void *context;
    ls_task *task;
    int64_t now;
    char log_step[16];
};

static int looks_around(ls_step *step, void *self)
{
    struct seen *seen = self;
    seen->name = ls_step_name(step);
    seen->context = ls_step_context(step);
    seen->task = ls_step_task(step);
    seen->now = ls_step_now(step);
    (void)snprintf(seen->log_step, sizeof seen->log_step, "%s", ls_log_step());
    return LS_OK;
}

TEST(a_step_finds_its_surroundings)
{
    struct seen seen = {0};
    ls_task *task = task_plain();
    struct ls_middleware look = {
        .name = "look", .fn = looks_around, .self = &seen};
    assert_ok(ls_task_use(task, look));
    const int64_t before = ls_now(ls_runtime_threads());
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(seen.name, "look");
    assert_string_equal(seen.log_step, "look");
    assert_ptr_equal(seen.context, online(task));
    assert_ptr_equal(seen.task, task);
    assert_true(seen.now >= before);
    assert_null(ls_log_step());
    ls_task_destroy(&task);
}
