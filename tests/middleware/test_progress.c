/* Reports of what a run has come to. */
#include <math.h>

#include "lockstep/middleware.h"
#include "still_clock.h"
#include "test.h"

enum { MOST = 16 };

struct world {
    ls_task *task;
    struct ls_progress_report reports[MOST];
    size_t n;
};

static void note(void *self, const struct ls_progress_report *report)
{
    struct world *world = self;
    assert_true(world->n < MOST);
    world->reports[world->n++] = *report;
}

static int world_open(struct world *world,
                      const struct ls_context_type *context, int interval_ms)
{
    stop_clock();
    *world = (struct world){.n = 0};
    const struct ls_task_options options = {.runtime = &runtime,
                                            .context = context};
    assert_ok(ls_task_create(&world->task, &options));
    return ls_task_use(
        world->task, ls_mw_progress(world->task, &(struct ls_progress_options){
                                                     .interval_ms = interval_ms,
                                                     .sink = note,
                                                     .self = world}));
}

/* Half a second, 10 steps, an update; an evaluation in the second. */
static int work(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    clock_ns += LS_NS_PER_S / 2;
    context->env_step += 10;
    context->train_iter++;
    if (context->total_step == 1) {
        context->eval_value = 7;
        context->last_eval_value = 7;
    }
    return LS_OK;
}

static int failing(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return ls_error(LS_EIO, "as it should");
}

TEST(every_iteration_is_reported_and_the_end)
{
    struct world world;
    assert_ok(world_open(&world, NULL, 0));
    ls_task_use_fn(world.task, work, NULL);
    assert_ok(ls_task_run(world.task, 3));
    assert_int_equal(world.n, 4);
    for (size_t i = 0; i < 3; i++) {
        const struct ls_progress_report *report = &world.reports[i];
        assert_int_equal(report->iteration, i + 1);
        assert_int_equal(report->env_step, 10 * (i + 1));
        assert_int_equal(report->train_iter, i + 1);
        assert_true(report->env_steps_per_s == 20);
        assert_true(report->elapsed_s == 0.5 * (double)(i + 1));
        assert_int_equal(report->node, 0);
        assert_string_equal(report->role, "");
        assert_false(report->last);
    }
    assert_true(isnan(world.reports[0].eval_value));
    assert_true(world.reports[1].eval_value == 7);
    assert_true(world.reports[2].eval_value == 7);
    assert_true(world.reports[3].last);
    assert_int_equal(world.reports[3].iteration, 3);
    assert_int_equal(world.reports[3].env_step, 30);
    ls_task_destroy(&world.task);
}

TEST(reports_keep_the_interval)
{
    struct world world;
    assert_ok(world_open(&world, NULL, 1000));
    ls_task_use_fn(world.task, work, NULL);
    assert_ok(ls_task_run(world.task, 5));
    assert_int_equal(world.n, 3);
    assert_int_equal(world.reports[0].iteration, 2);
    assert_int_equal(world.reports[1].iteration, 4);
    assert_true(world.reports[1].env_steps_per_s == 20);
    assert_int_equal(world.reports[2].iteration, 5);
    assert_true(world.reports[2].last);
    assert_true(world.reports[2].env_steps_per_s == 20);
    ls_task_destroy(&world.task);
}

TEST(a_run_that_fails_reports_its_end)
{
    struct world world;
    assert_ok(world_open(&world, NULL, 0));
    ls_task_use_fn(world.task, work, NULL);
    ls_task_use_fn(world.task, failing, NULL);
    assert_fails(ls_task_run(world.task, 3), LS_EIO);
    assert_int_equal(world.n, 1);
    assert_true(world.reports[0].last);
    assert_int_equal(world.reports[0].iteration, 0);
    assert_int_equal(world.reports[0].env_step, 10);
    ls_task_destroy(&world.task);
}

TEST(the_next_run_begins_its_time_anew)
{
    struct world world;
    assert_ok(world_open(&world, NULL, 0));
    ls_task_use_fn(world.task, work, NULL);
    assert_ok(ls_task_run(world.task, 1));
    assert_ok(ls_task_run(world.task, 1));
    assert_int_equal(world.n, 4);
    assert_int_equal(world.reports[2].iteration, 2);
    assert_true(world.reports[2].elapsed_s == 0.5);
    assert_true(world.reports[2].env_steps_per_s == 20);
    ls_task_destroy(&world.task);
}

TEST(a_context_without_the_fields_reports_what_it_can)
{
    static const struct ls_field fields[] = {
        {"total_step", LS_FIELD_INT, .offset = 0, .keep = true}};
    static const struct ls_context_type bare = {"bare", sizeof(int64_t), fields,
                                                1};
    struct world world;
    assert_ok(world_open(&world, &bare, 0));
    assert_ok(ls_task_run(world.task, 1));
    assert_int_equal(world.n, 2);
    assert_int_equal(world.reports[0].env_step, 0);
    assert_true(isnan(world.reports[0].eval_value));
    ls_task_destroy(&world.task);
}

TEST(it_needs_an_interval_and_a_sink)
{
    struct world world;
    assert_fails(world_open(&world, NULL, -1), LS_EINVAL);
    assert_int_equal(
        ls_task_use(world.task, ls_mw_progress(world.task,
                                               &(struct ls_progress_options){
                                                   .interval_ms = 0})),
        LS_EINVAL);
    ls_task_destroy(&world.task);
}
