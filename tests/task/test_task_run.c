/* Runs: how they count, how they end, and what is due when they do. */
#include "task_help.h"
#include "test.h"

static int adds_item(ls_step *step, void *self)
{
    struct ls_online_context *context = ls_step_context(step);
    (void)self;
    context->env_step++;
    return ls_items_append(&context->train_data, "x", 1);
}

/* The steps' view of an iteration, in numbers. */
struct view {
    int64_t total_step[4];
    size_t items[4];
    int n;
};

static int views(ls_step *step, void *self)
{
    struct view *view = self;
    const struct ls_online_context *context = ls_step_context(step);
    const int status = ls_yield(step);
    view->total_step[view->n] = context->total_step;
    view->items[view->n++] = context->train_data.n;
    return status;
}

TEST(every_iteration_begins_afresh)
{
    struct view view = {0};
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, views, &view));
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    assert_ok(ls_task_run(task, 3));
    assert_int_equal(view.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(view.total_step[i], i);
        assert_int_equal(view.items[i], 1);
    }
    ls_task_destroy(&task);
}

TEST(run_leaves_a_counted_and_renewed_context)
{
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(online(task)->total_step, 1);
    assert_int_equal(online(task)->env_step, 1);
    assert_int_equal(online(task)->train_data.n, 0);
    assert_ok(ls_task_run(task, 4));
    assert_int_equal(online(task)->total_step, 5);
    assert_int_equal(ls_task_iterations(task), 5);
    ls_task_destroy(&task);
}

TEST(nothing_runs_without_iterations_or_middleware)
{
    ls_task *task = task_with((struct ls_task_options){.roles = "learner"});
    assert_ok(ls_task_run(task, UINT64_MAX));
    struct ls_middleware other = {.fn = adds_item, .roles = "collector"};
    assert_ok(ls_task_use(task, other));
    assert_ok(ls_task_use(task, (struct ls_middleware){0}));
    assert_ok(ls_task_run(task, UINT64_MAX));
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    assert_ok(ls_task_run(task, 0));
    assert_int_equal(ls_task_iterations(task), 0);
    assert_int_equal(online(task)->total_step, 0);
    ls_task_destroy(&task);
}

static int runs_again(ls_step *step, void *self)
{
    (void)self;
    return ls_task_run(ls_step_task(step), 1) == LS_ESTATE ? LS_OK : LS_EIO;
}

TEST(a_running_task_does_not_run_again)
{
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, runs_again, NULL));
    assert_ok(ls_task_run(task, 1));
    ls_task_destroy(&task);
}

static int finishes_third(ls_step *step, void *self)
{
    const struct ls_online_context *context = ls_step_context(step);
    (void)self;
    if (context->total_step == 2)
        ls_task_finish(ls_step_task(step));
    return LS_OK;
}

TEST(finish_ends_the_run_after_its_iteration)
{
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, finishes_third, NULL));
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    assert_ok(ls_task_run(task, UINT64_MAX));
    assert_int_equal(online(task)->total_step, 3);
    assert_int_equal(online(task)->env_step, 3);

    /* It was for that run only. */
    assert_false(ls_task_finishing(task));
    assert_ok(ls_task_run(task, 2));
    assert_int_equal(ls_task_iterations(task), 5);
    ls_task_destroy(&task);
}

TEST(finish_before_the_run_ends_it_before_any_step)
{
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    ls_task_finish_here(task);
    assert_true(ls_task_finishing(task));
    assert_ok(ls_task_run(task, 5));
    assert_int_equal(ls_task_iterations(task), 0);
    assert_ok(ls_task_run(task, 5));
    assert_int_equal(ls_task_iterations(task), 5);
    ls_task_destroy(&task);
}

static int cancels(ls_step *step, void *self)
{
    ls_task *task = ls_step_task(step);
    (void)self;
    ls_task_cancel(task, LS_ELOST, "node 4 is gone");
    ls_task_cancel(task, LS_EIO, "too late");
    return ls_task_cancelled(task) == LS_ELOST ? LS_OK : LS_EIO;
}

TEST(cancel_ends_the_run_now)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task = task_plain();
    struct words before = {&trace, "a", "A", 0, 0, 0};
    struct words after = {&trace, "b", "B", 0, 0, 0};
    assert_ok(ls_task_use(task, saying("before", &before)));
    assert_ok(ls_task_use_fn(task, cancels, NULL));
    assert_ok(ls_task_use(task, saying("after", &after)));
    assert_fails(ls_task_run(task, 9), LS_ELOST);
    assert_string_equal(ls_error_text(), "node 4 is gone");
    assert_string_equal(trace.text, "a A");
    assert_int_equal(before.given, LS_ELOST);
    assert_ok(ls_task_cancelled(task));
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(cancel_before_the_run_ends_it_before_any_step)
{
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    ls_task_cancel(task, LS_OK, NULL);
    assert_fails(ls_task_cancelled(task), LS_ECANCELED);
    assert_string_equal(ls_error_text(), ls_status_sentence(LS_ECANCELED));
    assert_fails(ls_task_run(task, 1), LS_ECANCELED);
    assert_int_equal(ls_task_iterations(task), 0);
    assert_ok(ls_task_run(task, 1));
    ls_task_destroy(&task);
}

static void notes_status(void *self, int status)
{
    *(int *)self = status;
}

TEST(on_cancel_tells_those_who_wait)
{
    int told[3] = {0};
    ls_task *task = task_plain();
    assert_ok(ls_task_on_cancel(task, notes_status, &told[0]));
    assert_ok(ls_task_on_cancel(task, notes_status, &told[1]));
    assert_ok(ls_task_on_cancel(task, notes_status, &told[1]));
    assert_ok(ls_task_on_cancel(task, NULL, &told[0]));
    assert_ok(ls_task_on_cancel(task, NULL, &told[2]));
    ls_task_cancel(task, LS_ELOST, "gone");
    assert_int_equal(told[0], LS_OK);
    assert_int_equal(told[1], LS_ELOST);
    assert_ok(ls_task_on_cancel(task, notes_status, &told[2]));
    assert_int_equal(told[2], LS_ELOST);
    ls_task_destroy(&task);
}

/* A middleware that counts its ends. */
struct ends {
    struct trace *trace;
    const char *name;
    int n;
    int status;
    int fails;
    size_t items; /* of the context, as its end sees them */
    int64_t total_step;
};

static int notes_end(void *self, ls_task *task, int status)
{
    struct ends *ends = self;
    ends->n++;
    ends->status = status;
    ends->items = online(task)->train_data.n;
    ends->total_step = online(task)->total_step;
    note(ends->trace, ends->name);
    if (ends->fails < 0)
        return ls_error(ends->fails, "disk full");
    (void)ls_error(LS_EAGAIN, "nothing to write"); /* which is fine */
    return LS_OK;
}

static int does_nothing(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return LS_OK;
}

static struct ls_middleware ending(struct ends *ends)
{
    return (struct ls_middleware){.name = ends->name,
                                  .fn = does_nothing,
                                  .self = ends,
                                  .finish = notes_end};
}

TEST(finish_hooks_run_in_reverse_with_the_last_data)
{
    struct trace trace;
    trace_init(&trace);
    struct ends a = {.trace = &trace, .name = "a"};
    struct ends b = {.trace = &trace, .name = "b"};
    ls_task *task = task_plain();
    assert_ok(ls_task_use(task, ending(&a)));
    assert_ok(ls_task_use(task, ending(&b)));
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    assert_ok(ls_task_run(task, 3));
    assert_string_equal(trace.text, "b a");
    assert_int_equal(a.total_step, 3);
    assert_int_equal(a.items, 1);
    assert_int_equal(online(task)->train_data.n, 0);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(finish_hooks_run_once_on_every_way_out)
{
    struct trace trace;
    trace_init(&trace);
    struct ends ends = {.trace = &trace, .name = "e"};
    struct words words = {&trace, "w", NULL, 0, 0, 0};
    ls_task *task = task_plain();
    assert_ok(ls_task_use(task, ending(&ends)));
    assert_ok(ls_task_use(task, saying("w", &words)));

    assert_ok(ls_task_run(task, 0));
    assert_int_equal(ends.n, 1);
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(ends.n, 2);
    assert_int_equal(ends.status, LS_OK);
    words.fail_forward = LS_EIO;
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_int_equal(ends.n, 3);
    assert_int_equal(ends.status, LS_EIO);
    ls_task_cancel(task, LS_ELOST, "gone");
    assert_fails(ls_task_run(task, 1), LS_ELOST);
    assert_int_equal(ends.n, 4);
    assert_int_equal(ends.status, LS_ELOST);
    assert_fails(ls_task_use(task, (struct ls_middleware){.status = LS_EINVAL}),
                 LS_EINVAL);
    assert_fails(ls_task_run(task, 1), LS_EINVAL);
    assert_int_equal(ends.n, 5);
    ls_task_destroy(&task);
    assert_int_equal(ends.n, 5);
    trace_fini(&trace);
}

TEST(the_error_of_a_finish_hook_becomes_the_runs)
{
    struct trace trace;
    trace_init(&trace);
    struct ends a = {.trace = &trace, .name = "a"};
    struct ends b = {.trace = &trace, .name = "saver", .fails = LS_EIO};
    struct words words = {&trace, "w", NULL, 0, 0, 0};
    ls_task *task = task_plain();
    assert_ok(ls_task_use(task, ending(&a)));
    assert_ok(ls_task_use(task, ending(&b)));
    assert_ok(ls_task_use(task, saying("w", &words)));
    assert_fails(ls_task_run(task, 1), LS_EIO);
    assert_error_has("saver");
    assert_error_has("disk full");
    assert_int_equal(a.n, 1);
    assert_int_equal(a.status, LS_EIO);

    words.fail_forward = LS_EPROTO;
    assert_fails(ls_task_run(task, 1), LS_EPROTO);
    assert_error_has("w went wrong");
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(finish_hooks_of_other_roles_do_not_run)
{
    struct trace trace;
    trace_init(&trace);
    struct ends ends = {.trace = &trace, .name = "e"};
    ls_task *task = task_with((struct ls_task_options){.roles = "learner"});
    struct ls_middleware other = ending(&ends);
    other.roles = "collector";
    assert_ok(ls_task_use(task, other));
    assert_ok(ls_task_use_fn(task, adds_item, NULL));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(ends.n, 0);
    ls_task_destroy(&task);
    trace_fini(&trace);
}

/* What ls_task_steps_now() says in each half, and in the finish. */
struct sayings {
    char forward[32], inner[32], backward[32], finish[32];
};

static int says(ls_step *step, void *self)
{
    struct sayings *all = self;
    ls_task *task = ls_step_task(step);
    (void)ls_task_steps_now(task, all->forward, sizeof all->forward);
    const int status = ls_yield(step);
    (void)ls_task_steps_now(task, all->backward, sizeof all->backward);
    return status;
}

static int says_inside(ls_step *step, void *self)
{
    struct sayings *all = self;
    (void)ls_task_steps_now(ls_step_task(step), all->inner, sizeof all->inner);
    return LS_OK;
}

static int says_at_last(void *self, ls_task *task, int status)
{
    struct sayings *all = self;
    (void)ls_task_steps_now(task, all->finish, sizeof all->finish);
    return status;
}

TEST(who_asks_learns_which_step_runs)
{
    struct sayings all;
    char text[32] = "x", cut[3];
    ls_task *task = task_plain();
    assert_ok(
        ls_task_use(task, (struct ls_middleware){.name = "outer",
                                                 .fn = says,
                                                 .self = &all,
                                                 .finish = says_at_last}));
    assert_ok(ls_task_use_fn(task, says_inside, &all));
    assert_int_equal(ls_task_steps_now(task, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(all.forward, "outer");
    assert_string_equal(all.inner, "says_inside");
    assert_string_equal(all.backward, "outer");
    assert_string_equal(all.finish, "outer");
    assert_int_equal(ls_task_steps_now(task, text, sizeof text), 0);
    assert_int_equal(ls_task_steps_now(task, cut, 0), 0);
    ls_task_destroy(&task);
}

TEST(cause_and_cookie_of_a_step_come_out_of_the_run)
{
    ls_task *task = task_plain();
    assert_raises(task);
    ls_task_destroy(&task);
}
