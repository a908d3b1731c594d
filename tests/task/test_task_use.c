/* What a task is built of: options, middleware, roles, labels, fields. */
#include "task_help.h"
#include "test.h"

static int does_nothing(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return LS_OK;
}

static void counts_release(void *self)
{
    ++*(int *)self;
}

static struct ls_middleware counted(int *releases)
{
    return (struct ls_middleware){.name = "counted",
                                  .fn = does_nothing,
                                  .self = releases,
                                  .release = counts_release};
}

TEST(create_refuses_bad_options)
{
    static const struct ls_field none[] = {
        {"other", LS_FIELD_INT, .offset = 0, .keep = true}};
    static const struct ls_context_type bad = {"bad", 8, none, 1};
    const struct ls_task_options options[] = {
        {.n_workers = 1025}, {.stack_bytes = 100}, {.context = &bad}};
    ls_task *task = (ls_task *)(void *)&task;
    assert_fails(ls_task_create(&task, NULL), LS_EINVAL);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        assert_fails(ls_task_create(&task, &options[i]), LS_EINVAL);
    assert_null(task);
}

TEST(destroy_takes_null)
{
    ls_task *task = NULL;
    ls_step_lock *lock = NULL;
    ls_task_destroy(NULL);
    ls_task_destroy(&task);
    ls_step_lock_destroy(NULL);
    ls_step_lock_destroy(&lock);
}

TEST(defaults)
{
    ls_task *task = task_plain();
    assert_null(ls_task_node(task));
    assert_ptr_equal(ls_task_runtime(task), ls_runtime_threads());
    assert_ptr_equal(ls_context_type_of(ls_task_context(task)),
                     &ls_online_context_type);
    assert_true(ls_task_has_role(task, "learner"));
    assert_false(ls_task_finishing(task));
    assert_ok(ls_task_cancelled(task));
    assert_int_equal(ls_task_iterations(task), 0);
    assert_true(ls_task_round(task) == 0);
    ls_task_destroy(&task);
}

/* By whoever brings nodes together otherwise than ls_mw_barrier() does. */
TEST(a_round_is_what_it_was_set_to)
{
    ls_task *task = task_plain();
    ls_task_set_round(task, UINT64_MAX - 1);
    assert_true(ls_task_round(task) == UINT64_MAX - 1);
    ls_task_destroy(&task);
}

static int counts_calls(ls_step *step, void *self)
{
    (void)step;
    ++*(int *)self;
    return LS_OK;
}

TEST(a_function_is_a_step_under_its_name)
{
    char name[] = "a name of its own";
    int calls[2] = {0};
    ls_task *task = task_plain();
    assert_ok(ls_task_use_step(task, name, counts_calls, &calls[0]));
    name[0] = '?'; /* copied */
    assert_ok(ls_task_use_fn(task, counts_calls, &calls[1]));
    ls_task_destroy(&task);
    task = task_plain();
    assert_ok(ls_task_use_step(task, "one", counts_calls, &calls[0]));
    assert_ok(ls_task_use_fn(task, counts_calls, &calls[1]));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(calls[0], 1);
    assert_int_equal(calls[1], 1);
    ls_task_destroy(&task);
}

TEST(middleware_is_released_once)
{
    int releases[4] = {0};
    ls_task *task = task_with((struct ls_task_options){.roles = "learner"});
    struct ls_middleware void_one = counted(&releases[1]);
    struct ls_middleware other_role = counted(&releases[2]);
    struct ls_middleware failed = counted(&releases[3]);
    void_one.fn = NULL;
    other_role.roles = "collector";
    failed.status = LS_EINVAL;
    assert_ok(ls_task_use(task, counted(&releases[0])));
    assert_ok(ls_task_use(task, void_one));
    assert_ok(ls_task_use(task, other_role));
    assert_fails(ls_task_use(task, failed), LS_EINVAL);
    assert_int_equal(releases[0] + releases[1] + releases[2], 0);
    ls_task_destroy(&task);
    for (int i = 0; i < 4; i++)
        assert_int_equal(releases[i], 1);
}

TEST(a_failed_factory_fails_the_run)
{
    ls_task *task = task_plain();
    struct ls_middleware first = {.status = LS_ENOENT, .error = "no such file"};
    struct ls_middleware second = {.status = LS_EIO, .error = "no disk"};
    int releases = 0;
    assert_fails(ls_task_use(task, first), LS_ENOENT);
    assert_string_equal(ls_error_text(), "no such file");
    assert_fails(ls_task_use(task, second), LS_EIO);
    assert_ok(ls_task_use(task, counted(&releases)));
    assert_fails(ls_task_run(task, 1), LS_ENOENT);
    assert_string_equal(ls_error_text(), "no such file");
    assert_int_equal(ls_task_iterations(task), 0);
    ls_task_destroy(&task);
}

static int uses_more(ls_step *step, void *self)
{
    ls_task *task = ls_step_task(step);
    if (ls_task_use(task, counted(self)) != LS_ESTATE ||
        ls_task_use(task, (struct ls_middleware){.fn = does_nothing,
                                                 .self = self,
                                                 .release = counts_release,
                                                 .wraps = true}) != LS_ESTATE)
        return LS_EIO;
    return LS_OK;
}

TEST(use_is_refused_while_the_task_runs)
{
    int releases = 0;
    ls_task *task = task_plain();
    assert_ok(ls_task_use_fn(task, uses_more, &releases));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(releases, 2);
    assert_fails(ls_task_run(task, 1), LS_ESTATE);
    ls_task_destroy(&task);
}

TEST(middleware_of_other_roles_is_passed_over)
{
    struct trace trace;
    trace_init(&trace);
    ls_task *task =
        task_with((struct ls_task_options){.roles = "learner, evaluator"});
    struct words words[4] = {{.trace = &trace, .forward = "all"},
                             {.trace = &trace, .forward = "learner"},
                             {.trace = &trace, .forward = "collector"},
                             {.trace = &trace, .forward = "both"}};
    const char *const roles[] = {NULL, "learner", "collector",
                                 "collector,evaluator"};
    for (int i = 0; i < 4; i++) {
        struct ls_middleware what = saying(words[i].forward, &words[i]);
        what.roles = roles[i];
        assert_ok(ls_task_use(task, what));
    }
    assert_ok(ls_task_run(task, 1));
    assert_string_equal(trace.text, "all learner both");
    assert_true(ls_task_has_role(task, "evaluator"));
    assert_false(ls_task_has_role(task, "collector"));
    assert_false(ls_task_has_role(task, "learn"));
    ls_task_destroy(&task);
    trace_fini(&trace);
}

TEST(labels_are_matched_by_globs)
{
    ls_task *task = task_with(
        (struct ls_task_options){.labels = "gpu0, fast", .async = true});
    assert_true(ls_task_match_labels(task, "gpu*"));
    assert_true(ls_task_match_labels(task, "slow,fast"));
    assert_true(ls_task_match_labels(task, "gpu[0-3]"));
    assert_true(ls_task_match_labels(task, "standalone"));
    assert_true(ls_task_match_labels(task, "async"));
    assert_false(ls_task_match_labels(task, "gpu"));
    assert_false(ls_task_match_labels(task, "distributed"));
    assert_false(ls_task_match_labels(task, ""));
    ls_task_destroy(&task);
    task = task_plain();
    assert_false(ls_task_match_labels(task, "async"));
    ls_task_destroy(&task);
}

static struct ls_middleware with_fields(const char *name, const char *needs,
                                        const char *gives)
{
    return (struct ls_middleware){
        .name = name, .fn = does_nothing, .needs = needs, .gives = gives};
}

TEST(a_need_that_nobody_gives_is_an_error)
{
    ls_task *task = task_with((struct ls_task_options){.roles = "learner"});
    struct ls_middleware collector =
        with_fields("collect", NULL, "trajectories,train_data");
    collector.roles = "collector";
    assert_ok(ls_task_use(task, collector));
    assert_ok(ls_task_use(
        task, with_fields("train", "policy, train_data", "policy")));
    assert_fails(ls_task_run(task, 1), LS_EINVAL);
    assert_error_has("step train");
    assert_error_has("field train_data");
    assert_error_has("role learner");
    assert_int_equal(ls_task_iterations(task), 0);
    ls_task_destroy(&task);
}

TEST(needs_are_given_anywhere_or_kept)
{
    ls_task *task = task_plain();
    assert_ok(
        ls_task_use(task, with_fields("a", "env_step,policy,episodes", NULL)));
    assert_ok(ls_task_use(task, with_fields("b", NULL, "x,policy")));
    assert_fails(ls_task_run(task, 1), LS_EINVAL);
    assert_error_has("field episodes");
    assert_ok(ls_context_keep(ls_task_context(task), "episodes"));
    assert_ok(ls_task_run(task, 1));
    ls_task_destroy(&task);
}

static int calls_below(ls_step *step, void *self)
{
    (void)self;
    return ls_around_forward(step);
}

TEST(wrapper_needs_a_function)
{
    int releases = 0;
    ls_task *task = task_plain();
    assert_fails(
        ls_task_use(task, (struct ls_middleware){.fn = NULL,
                                                 .self = &releases,
                                                 .release = counts_release,
                                                 .wraps = true}),
        LS_EINVAL);
    assert_int_equal(releases, 1);
    assert_fails(ls_task_run(task, 1), LS_EINVAL);
    ls_task_destroy(&task);

    task = task_plain();
    assert_ok(
        ls_task_use(task, (struct ls_middleware){.fn = calls_below,
                                                 .self = &releases,
                                                 .release = counts_release,
                                                 .wraps = true}));
    ls_task_destroy(&task);
    assert_int_equal(releases, 2);
}

static int finishes(void *self, ls_task *task, int status)
{
    (void)self, (void)task;
    return status;
}

/* It would be passed over without a word. */
TEST(what_a_wrapper_cannot_have_is_refused)
{
    int releases = 0;
    const struct ls_middleware usual = {.fn = calls_below,
                                        .self = &releases,
                                        .release = counts_release,
                                        .wraps = true};
    struct ls_middleware bad[] = {usual, usual, usual};
    bad[0].finish = finishes;
    bad[1].roles = "learner";
    bad[2].lock = LS_TASK_LOCK;
    for (int i = 0; i < 3; i++) {
        ls_task *task = task_plain();
        assert_fails(ls_task_use(task, bad[i]), LS_EINVAL);
        assert_error_has("wrapper");
        assert_int_equal(releases, i + 1);
        ls_task_destroy(&task);
    }
}

TEST(a_wrapper_is_no_part_of_another_step)
{
    int releases = 0;
    ls_task *task = task_plain();
    const struct ls_middleware parts[] = {{.fn = calls_below,
                                           .self = &releases,
                                           .release = counts_release,
                                           .wraps = true}};
    assert_fails(ls_task_use(task, ls_serial(task, parts, 1)), LS_EINVAL);
    assert_has(ls_error_text(), "wrapper");
    assert_int_equal(releases, 1);
    ls_task_destroy(&task);
}
