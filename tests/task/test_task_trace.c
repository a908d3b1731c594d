/* What a task's steps leave in a recording. */
#include <stdio.h>

#include "lockstep/task.h"
#include "test.h"
#include "trace_gate.h"

static ls_trace *new_trace(bool all)
{
    const struct ls_trace_options options = {.all = all};
    ls_trace *trace = NULL;
    assert_ok(ls_trace_create(&trace, &options));
    return trace;
}

static ls_task *new_task(ls_trace *trace, bool async)
{
    ls_task *task = NULL;
    assert_ok(ls_task_create(
        &task, &(struct ls_task_options){.trace = trace, .async = async}));
    return task;
}

/* "F0:collect", one word for each record, in their order. */
static void assert_story(ls_trace *trace, const char *wanted)
{
    static const char letters[] = "?FBIxxxxx";
    char story[1024] = "";
    size_t n = 0;
    struct ls_trace_file file;
    assert_ok(ls_trace_take(trace, 1, "a test", &file));
    for (size_t i = 0; i < file.n_records; i++) {
        const struct ls_trace_record *at = &file.records[i];
        n += (size_t)snprintf(story + n, sizeof story - n, "%s%c%d:%s%.*s%s",
                              i > 0 ? " " : "", letters[at->kind],
                              (int)at->number, file.names[at->name], at->depth,
                              "++++", at->end_ns == LS_TRACE_OPEN ? "..." : "");
    }
    assert_string_equal(story, wanted);
    ls_trace_clear(&file);
}

static int yields(ls_step *step, void *self)
{
    (void)self;
    return ls_yield(step);
}

static int once(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return LS_OK;
}

static int fails(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return ls_error(LS_EIO, "a test");
}

TEST(each_half_and_each_iteration_is_recorded)
{
    ls_trace *trace = new_trace(true);
    ls_task *task = new_task(trace, false);
    assert_ok(ls_task_use_fn(task, yields, NULL));
    assert_ok(ls_task_use_fn(task, once, NULL));
    assert_ok(ls_task_run(task, 2));
    assert_story(trace, "F0:yields F0:once B0:yields I0:? "
                        "F1:yields F1:once B1:yields I1:?");
    assert_ok(ls_task_destroy(&task));
    ls_trace_destroy(&trace);
}

TEST(an_iteration_that_failed_is_recorded_too)
{
    ls_trace *trace = new_trace(true);
    ls_task *task = new_task(trace, false);
    assert_ok(ls_task_use_fn(task, yields, NULL));
    assert_ok(ls_task_use_fn(task, fails, NULL));
    assert_fails(ls_task_run(task, 2), LS_EIO);
    assert_story(trace, "F0:yields F0:fails B0:yields I0:?");
    assert_ok(ls_task_destroy(&task));
    ls_trace_destroy(&trace);
}

static int wraps(ls_step *step, void *self)
{
    (void)self;
    const int status = ls_around_forward(step);
    return status < 0 ? status : ls_yield(step);
}

/* Its backward half runs when the wrapper's is over: inside of nothing. */
TEST(what_runs_inside_another_step_says_how_deep)
{
    ls_trace *trace = new_trace(true);
    ls_task *task = new_task(trace, false);
    assert_ok(ls_task_use_fn(task, yields, NULL));
    assert_ok(
        ls_task_use(task, (struct ls_middleware){.fn = wraps, .wraps = true}));
    assert_ok(ls_task_run(task, 1));
    assert_story(trace, "F0:yields+ F0:yields B0:yields B0:yields I0:?");
    assert_ok(ls_task_destroy(&task));
    ls_trace_destroy(&trace);
}

static int looks(ls_step *step, void *self)
{
    (void)step;
    assert_story(self, "F0:yields F0:looks...");
    return LS_OK;
}

TEST(a_step_that_has_not_ended_is_open)
{
    ls_trace *trace = new_trace(true);
    ls_task *task = new_task(trace, false);
    assert_ok(ls_task_use_fn(task, yields, NULL));
    assert_ok(ls_task_use_fn(task, looks, trace));
    assert_ok(ls_task_run(task, 1));
    assert_ok(ls_task_destroy(&task));
    ls_trace_destroy(&trace);
}

TEST(steps_on_workers_are_recorded_where_they_run)
{
    ls_trace *trace = new_trace(true);
    ls_task *task = new_task(trace, true);
    assert_ok(ls_task_use_fn(task, yields, NULL));
    assert_ok(ls_task_use_fn(task, once, NULL));
    assert_ok(ls_task_run(task, 10));
    struct ls_trace_file file;
    assert_ok(ls_trace_take(trace, 1, "a test", &file));
    assert_int_equal(file.n_records, 10 * 4);
    for (size_t i = 0; i < file.n_records; i++)
        assert_string_equal(
            file.names[file.records[i].thread],
            file.records[i].kind == LS_TRACE_ITERATION ? "main" : "ls-worker");
    ls_trace_clear(&file);
    assert_ok(ls_task_destroy(&task));
    ls_trace_destroy(&trace);
}

TEST(of_short_iterations_some_are_recorded_and_those_whole)
{
    ls_trace *trace = new_trace(false);
    ls_task *task = new_task(trace, false);
    assert_ok(ls_task_use_fn(task, yields, NULL));
    assert_ok(ls_task_run(task, 20000));
    struct ls_trace_file file;
    assert_ok(ls_trace_take(trace, 1, "a test", &file));
    assert_in_range(file.n_records, 3, 3 * 20000 - 1);
    assert_int_equal(file.n_records % 3, 0);
    assert_int_equal(file.lost, 0);
    for (size_t i = 0; i < file.n_records; i++)
        assert_int_equal(file.records[i].number,
                         file.records[i / 3 * 3].number);
    ls_trace_clear(&file);
    assert_ok(ls_task_destroy(&task));
    ls_trace_destroy(&trace);
}
