/* A pipeline that is driven by hand: forward, backward, end. */
#include "task_help.h"
#include "test.h"

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
    assert_ok(ls_task_create(&task, &options));
    assert_ok(ls_task_use(
        task, (struct ls_middleware){.name = "a", .fn = notes, .self = a}));
    assert_ok(ls_task_use(
        task, (struct ls_middleware){.name = "b", .fn = notes, .self = b}));
    return task;
}

TEST(each_half_runs_when_it_is_asked_for)
{
    for (int async = 0; async < 2; async++) {
        struct trace trace;
        trace_init(&trace);
        struct named a = {&trace, "a1", "a2", LS_OK};
        struct named b = {&trace, "b1", "b2", LS_OK};
        ls_task *task = task_of(&a, &b, async != 0);
        assert_ok(ls_task_forward(task));
        note(&trace, "|");
        assert_fails(ls_task_forward(task), LS_ESTATE);
        assert_fails(ls_task_run(task, 1), LS_ESTATE);
        assert_fails(ls_task_destroy(&task), LS_ESTATE);
        assert_int_equal(ls_task_iterations(task), 0);
        assert_ok(ls_task_backward(task));
        assert_int_equal(ls_task_iterations(task), 1);
        assert_fails(ls_task_backward(task), LS_ESTATE);
        assert_ok(ls_task_forward(task));
        assert_ok(ls_task_backward(task));
        assert_ok(ls_task_end(task));
        assert_fails(ls_task_end(task), LS_ESTATE);
        const struct ls_online_context *context =
            ls_context_data(ls_task_context(task));
        assert_int_equal(context->total_step, 2);
        assert_string_equal(trace.text, "a1 b1 | b2 a2 a1 b1 b2 a2");
        assert_ok(ls_task_run(task, 1));
        assert_int_equal(ls_task_iterations(task), 3);
        assert_ok(ls_task_destroy(&task));
        trace_fini(&trace);
    }
}

/* Whom each half works for, as it logs. */
static int64_t nodes[3];

static int looks(ls_step *step, void *self)
{
    (void)self;
    nodes[0] = ls_log_node();
    const int status = ls_yield(step);
    nodes[1] = ls_log_node();
    return status;
}

static int looks_at_end(void *self, ls_task *task, int status)
{
    (void)self, (void)task;
    nodes[2] = ls_log_node();
    return status;
}

TEST(its_steps_log_as_their_node)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_task *task = NULL;
    ls_node_options_init(&options);
    options.bind = "inproc://by-hand";
    options.id = 7;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_start(node));
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.node = node}));
    assert_ok(ls_task_use(
        task, (struct ls_middleware){.fn = looks, .finish = looks_at_end}));
    ls_log_set_node(-1);
    assert_ok(ls_task_forward(task));
    assert_int_equal(ls_log_node(), -1);
    assert_ok(ls_task_backward(task));
    assert_int_equal(ls_log_node(), -1);
    assert_ok(ls_task_end(task));
    assert_int_equal(ls_log_node(), -1);
    assert_null(ls_log_step());
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(nodes[i], 7);
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_node_destroy(&node));
}

TEST(an_error_resumes_all_and_end_returns_it)
{
    struct trace trace;
    trace_init(&trace);
    struct named a = {&trace, "a1", "a2", LS_OK};
    struct named b = {&trace, "b1", "b2", LS_EPROTO};
    ls_task *task = task_of(&a, &b, false);
    assert_fails(ls_task_forward(task), LS_EPROTO);
    assert_string_equal(trace.text, "a1 b1 EPROTO");
    assert_fails(ls_task_backward(task), LS_ESTATE);
    assert_fails(ls_task_forward(task), LS_EPROTO);
    assert_string_equal(trace.text, "a1 b1 EPROTO");
    assert_fails(ls_task_end(task), LS_EPROTO);
    assert_error_has("as asked");
    assert_int_equal(ls_task_iterations(task), 0);
    b.status = LS_OK;
    assert_ok(ls_task_run(task, 1));
    assert_ok(ls_task_destroy(&task));
    trace_fini(&trace);
}

TEST(an_end_in_between_leaves_nothing_suspended)
{
    struct trace trace;
    trace_init(&trace);
    struct named a = {&trace, "a1", "a2", LS_OK};
    struct named b = {&trace, "b1", "b2", LS_OK};
    ls_task *task = task_of(&a, &b, false);
    assert_ok(ls_task_forward(task));
    assert_fails(ls_task_end(task), LS_ECANCELED);
    assert_string_equal(trace.text, "a1 b1 ECANCELED ECANCELED");
    assert_ok(ls_task_forward(task));
    assert_ok(ls_task_backward(task));
    assert_ok(ls_task_end(task));
    assert_ok(ls_task_destroy(&task));
    trace_fini(&trace);
}

TEST(what_keeps_a_run_from_beginning_is_told_by_forward)
{
    ls_task *task = NULL;
    assert_ok(ls_task_create(&task, &(struct ls_task_options){0}));
    assert_fails(ls_task_end(task), LS_ESTATE);
    ls_task_cancel(task, LS_ETIMEDOUT, "enough");
    assert_fails(ls_task_forward(task), LS_ETIMEDOUT);
    assert_fails(ls_task_end(task), LS_ETIMEDOUT);
    assert_ok(ls_task_forward(task));
    assert_ok(ls_task_backward(task));
    assert_ok(ls_task_end(task));
    assert_ok(ls_task_destroy(&task));
}

TEST(a_lock_outlives_the_task_that_takes_it)
{
    struct trace trace;
    trace_init(&trace);
    struct named a = {&trace, "a1", "a2", LS_OK};
    ls_task *task = NULL;
    ls_step_lock *lock = NULL;
    assert_ok(ls_task_create(&task, &(struct ls_task_options){0}));
    assert_ok(ls_step_lock_create(&lock, task));
    assert_ok(ls_task_use(
        task, (struct ls_middleware){
                  .name = "a", .fn = notes, .self = &a, .lock = lock}));
    assert_fails(ls_step_lock_destroy(&lock), LS_ESTATE);
    assert_ok(ls_task_run(task, 1));
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_step_lock_destroy(&lock));
    assert_null(lock);
    trace_fini(&trace);
}
