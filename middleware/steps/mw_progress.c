/* The middleware that shows figures of the run, at intervals. */
#include "lockstep/middleware.h"

#include <math.h>
#include <stdlib.h>

#include "factory.h"
#include "fields.h"

struct progress {
    ls_task *task; /* borrow */
    int64_t interval_ns;
    void (*sink)(void *self, const struct ls_progress_report *report);
    void *self;
    bool begun; /* in this run */
    int64_t began_at;
    int64_t reported_at;
    int64_t reported_env_step;
};

static void begin(struct progress *progress, int64_t now)
{
    ls_context *context = ls_task_context(progress->task);
    progress->begun = true;
    progress->began_at = now;
    progress->reported_at = now;
    progress->reported_env_step = ls_field_int(context, "env_step", 0);
}

/* This iteration's, if it had an evaluation, else the one before it. */
static double eval_value(ls_context *context)
{
    const double now = ls_field_double(context, "eval_value", NAN);
    const double last = ls_field_double(context, "last_eval_value", NAN);
    return isfinite(now) ? now : isfinite(last) ? last : NAN;
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)LS_NS_PER_S;
}

static void report(struct progress *progress, int64_t now, bool last)
{
    ls_context *context = ls_task_context(progress->task);
    const ls_node *node = ls_task_node(progress->task);
    const int64_t env_step = ls_field_int(context, "env_step", 0);
    const int64_t ns = now - progress->reported_at;
    const double done = (double)env_step - (double)progress->reported_env_step;
    const struct ls_progress_report what = {
        .node = node != NULL ? ls_node_id(node) : 0,
        .role = node != NULL ? ls_node_role(node) : "",
        /* In a backward half, the one that is ending counts. */
        .iteration = ls_task_iterations(progress->task) + (last ? 0 : 1),
        .env_step = env_step,
        .env_steps_per_s = ns > 0 ? done / seconds(ns) : 0,
        .train_iter = ls_field_int(context, "train_iter", 0),
        .eval_value = eval_value(context),
        .elapsed_s = seconds(now - progress->began_at),
        .last = last,
    };
    progress->reported_at = now;
    progress->reported_env_step = env_step;
    progress->sink(progress->self, &what);
}

static int progress_step(ls_step *step, void *self)
{
    struct progress *progress = self;
    if (!progress->begun)
        begin(progress, ls_step_now(step));
    const int status = ls_yield(step);
    const int64_t now = ls_step_now(step);
    if (status == LS_OK && now - progress->reported_at >= progress->interval_ns)
        report(progress, now, false);
    return status;
}

static int finish(void *self, ls_task *task, int status)
{
    (void)status; /* a run that failed shows how far it came */
    struct progress *progress = self;
    const int64_t now = ls_now(ls_task_runtime(task));
    if (!progress->begun)
        begin(progress, now);
    report(progress, now, true);
    progress->begun = false;
    return LS_OK;
}

struct ls_middleware ls_mw_progress(ls_task *task,
                                    const struct ls_progress_options *options)
{
    static const char name[] = "progress";
    if (options->interval_ms < 0 || options->sink == NULL)
        return middleware_failed(
            name, ls_error(LS_EINVAL, "it needs an interval of 0 or more "
                                      "milliseconds, and a sink"));
    struct progress *progress = calloc(1, sizeof *progress);
    if (progress == NULL)
        return middleware_failed(name, ls_error(LS_ENOMEM, "no memory"));
    progress->task = task;
    progress->interval_ns = options->interval_ms * LS_NS_PER_MS;
    progress->sink = options->sink;
    progress->self = options->self;
    return (struct ls_middleware){.name = name,
                                  .fn = progress_step,
                                  .self = progress,
                                  .release = free,
                                  .finish = finish};
}
