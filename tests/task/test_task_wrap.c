/* Steps inside steps: ls_wrap(), and wrappers around every step. */
#include "task_help.h"
#include "test.h"

/* A step that runs another one inside itself. */
struct wrapper {
    struct trace *trace;
    struct ls_middleware child;
    const char *words[4];
    bool yields;
    bool calls_back;
    int status;
    int child_status; /* what the child's forward half came to */
    int back_status;
};

static int wraps(ls_step *step, void *self)
{
    struct wrapper *w = self;
    ls_wrapped *wrapped = (ls_wrapped *)(void *)&wrapped;
    note(w->trace, w->words[0]);
    w->child_status = ls_wrap(step, &w->child, &wrapped);
    if (w->child_status < 0)
        return wrapped == NULL ? w->child_status : LS_EINVARIANT;
    note(w->trace, w->words[1]);
    if (w->status < 0)
        return ls_error(w->status, "the wrapper went wrong");
    const int status = w->yields ? ls_yield(step) : LS_OK;
    if (w->calls_back) {
        note(w->trace, w->words[2]);
        w->back_status = ls_wrap_back(wrapped);
        if (ls_wrap_back(wrapped) != LS_OK)
            return LS_EIO;
    }
    note(w->trace, w->words[3]);
    return status;
}

static struct ls_middleware wrapping(struct wrapper *wrapper)
{
    return (struct ls_middleware){
        .name = "outer", .fn = wraps, .self = wrapper};
}

TEST(nested_middleware_runs_inside_out)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words child = {&trace, "1", "4", 0, 0, 0};
    struct wrapper outer = {.trace = &trace,
                            .child = saying("child", &child),
                            .words = {"0", "2", "3", "5"},
                            .yields = true,
                            .calls_back = true};
    assert_ok(ls_task_use(task, wrapping(&outer)));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "0 1 2 3 4 5");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(a_child_that_is_not_called_back_has_its_usual_turn)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words before = {&trace, "x", "X", 0, 0, 0};
    struct words child = {&trace, "1", "-1", 0, 0, 0};
    struct words after = {&trace, "y", "Y", 0, 0, 0};
    struct wrapper outer = {.trace = &trace,
                            .child = saying("child", &child),
                            .words = {"0", "2", "", "-0"},
                            .yields = true};
    assert_ok(ls_task_use(task, saying("before", &before)));
    assert_ok(ls_task_use(task, wrapping(&outer)));
    assert_ok(ls_task_use(task, saying("after", &after)));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "x 0 1 2 y Y -0 -1 X");

    /* Also when its parent does not yield at all. */
    outer.yields = false;
    outer.words[3] = "3";
    trace.text[0] = '\0';
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "x 0 1 2 3 y Y -1 X");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(a_child_without_a_backward_half_may_be_called_back)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words child = {&trace, "1", NULL, 0, 0, 0};
    struct wrapper outer = {.trace = &trace,
                            .child = saying("child", &child),
                            .words = {"0", "2", "3", "4"},
                            .calls_back = true,
                            .back_status = -99};
    assert_ok(ls_task_use(task, wrapping(&outer)));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "0 1 2 3 4");
    assert_int_equal(outer.back_status, LS_OK);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(void_and_other_roles_children_do_nothing)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_with((struct ls_task_options){.roles = "learner"});
    struct words child = {&trace, "1", "-1", 0, 0, 0};
    struct wrapper outers[2];
    for (int i = 0; i < 2; i++) {
        outers[i] = (struct wrapper){
            .trace = &trace, .words = {"0", "2", "3", "4"}, .calls_back = true};
        assert_ok(ls_task_use(task, wrapping(&outers[i])));
    }
    outers[1].child = saying("child", &child);
    outers[1].child.roles = "collector";
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "0 2 3 4 0 2 3 4");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(a_failing_child_fails_wrap)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words child = {&trace, "1", NULL, LS_EIO, 0, 0};
    struct wrapper outer = {.trace = &trace,
                            .child = saying("child", &child),
                            .words = {"0", "", "", ""}};
    assert_ok(ls_task_use(task, wrapping(&outer)));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_string_equal(ls_error_text(),
                        "step outer: step child: 1 went wrong");

    outer.child =
        (struct ls_middleware){.status = LS_ENOENT, .error = "no such file"};
    assert_fails(ls_task_run(task, 1), LS_ENOENT);
    assert_error_has("no such file");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(a_suspended_child_is_unwound)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words child = {&trace, "1", "-1", 0, 0, 0};
    struct wrapper outer = {.trace = &trace,
                            .child = saying("child", &child),
                            .words = {"0", "2", "3", "4"},
                            .status = LS_EPROTO};
    assert_ok(ls_task_use(task, wrapping(&outer)));
    assert_fails(ls_task_run(task, 1), LS_EPROTO);
    assert_string_equal(trace.text, "0 1 2 -1");
    assert_int_equal(child.given, LS_EPROTO);

    /* And one that is called back knows why. */
    struct words late = {&trace, "f", NULL, LS_EIO, 0, 0};
    outer.status = LS_OK;
    outer.yields = true;
    outer.calls_back = true;
    trace.text[0] = '\0';
    assert_ok(ls_task_use(task, saying("late", &late)));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_string_equal(trace.text, "0 1 2 f 3 -1 4");
    assert_int_equal(child.given, LS_EIO);
    assert_int_equal(outer.back_status, LS_EIO);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(wraps_nest)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words child = {&trace, "2", "7", 0, 0, 0};
    struct wrapper middle = {.trace = &trace,
                             .child = saying("child", &child),
                             .words = {"1", "3", "6", "8"},
                             .yields = true,
                             .calls_back = true};
    struct wrapper outer = {.trace = &trace,
                            .child = wrapping(&middle),
                            .words = {"0", "4", "5", "9"},
                            .yields = true,
                            .calls_back = true};
    assert_ok(ls_task_use(task, wrapping(&outer)));
    for (int i = 0; i < 3; i++) {
        trace.text[0] = '\0';
        assert_ok(ls_task_run(task, 1));
        assert_string_equal(trace.text, "0 1 2 3 4 5 6 7 8 9");
    }
    ls_task_destroy(&task);
    trace_fini(&trace);
}

/* A step timer: what it saw, by name. */
struct timer {
    struct trace *trace;
    const char *mark;
    int n_records;
    int64_t spent;
    bool calls_back;
};

static int times(ls_step *step, void *self)
{
    struct timer *timer = self;
    const int64_t start = ls_step_now(step);
    note(timer->trace, timer->mark);
    int status = ls_around_forward(step);
    if (status < 0)
        return status;
    note(timer->trace, ls_around_name(step));
    status = ls_yield(step);
    if (timer->calls_back) {
        const int back = ls_around_back(step);
        status = status < 0 ? status : back;
    }
    timer->n_records++;
    timer->spent += ls_step_now(step) - start;
    note(timer->trace, timer->mark);
    return status;
}

TEST(step_timer_records_every_step)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct timer timer = {.trace = &trace, .mark = "t", .calls_back = true};
    struct words words[3] = {{&trace, "a", "A", 0, 0, 0},
                             {&trace, "b", NULL, 0, 0, 0},
                             {&trace, "c", "C", 0, 0, 0}};
    assert_ok(ls_task_use(task, saying("1st", &words[0])));
    assert_ok(ls_task_use(
        task,
        (struct ls_middleware){.fn = times, .self = &timer, .wraps = true}));
    assert_ok(ls_task_use(task, saying("2nd", &words[1])));
    assert_ok(ls_task_use(task, saying("3rd", &words[2])));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "t a 1st t b 2nd t c 3rd C t t A t");
    assert_ok(ls_task_run(task, 2));
    assert_int_equal(timer.n_records, 9);
    assert_true(timer.spent >= 0);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(two_wrappers_both_record)
{
    struct trace trace;
    trace_init(&trace);
    for (int calls_back = 0; calls_back < 2; calls_back++) {
        ls_task *task = task_plain();
        struct timer timers[2] = {
            {.trace = &trace, .mark = "i", .calls_back = calls_back == 1},
            {.trace = &trace, .mark = "o", .calls_back = calls_back == 1}};
        struct words words = {&trace, "a", "A", 0, 0, 0};
        trace.text[0] = '\0';
        assert_ok(ls_task_use(task, (struct ls_middleware){.fn = times,
                                                           .self = &timers[0],
                                                           .wraps = true}));
        assert_ok(ls_task_use(task, (struct ls_middleware){.fn = times,
                                                           .self = &timers[1],
                                                           .wraps = true}));
        assert_ok(ls_task_use(task, saying("s", &words)));
        assert_ok(ls_task_run(task, 1));
        assert_string_equal(trace.text, calls_back == 1 ? "o i a s s A i o"
                                                        : "o i a s s o i A");
        assert_int_equal(timers[0].n_records, 1);
        assert_int_equal(timers[1].n_records, 1);
        ls_task_destroy(&task);
    }
    trace_fini(&trace);
}

static int tries_thrice(ls_step *step, void *self)
{
    struct words *words = self;
    int status = LS_EAGAIN;
    for (int i = 0; i < 3 && status == LS_EAGAIN; i++) {
        words->fail_forward = i < 2 ? LS_EAGAIN : LS_OK;
        status = ls_around_forward(step);
    }
    return status;
}

TEST(a_wrapper_may_run_a_failed_step_again)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words words = {&trace, "a", "A", 0, 0, 0};
    assert_ok(ls_task_use(task, saying("a", &words)));
    assert_ok(ls_task_use(task, (struct ls_middleware){.fn = tries_thrice,
                                                       .self = &words,
                                                       .wraps = true}));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "a a a A");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

static int skips(ls_step *step, void *self)
{
    (void)self;
    return ls_around_back(step);
}

static int is_no_wrapper(ls_step *step, void *self)
{
    *(int *)self = ls_around_forward(step);
    return ls_around_back(step);
}

TEST(a_wrapper_may_leave_a_step_out)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words words = {&trace, "a", "A", 0, 0, 0};
    assert_ok(ls_task_use(task, saying("a", &words)));
    assert_ok(ls_task_use(task, (struct ls_middleware){
                                    .fn = skips, .self = NULL, .wraps = true}));
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(a_step_that_is_no_wrapper_stands_around_nothing)
{
    int status = LS_OK;
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, is_no_wrapper, &status));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(status, LS_ESTATE);
    ls_task_destroy(&task);
}
