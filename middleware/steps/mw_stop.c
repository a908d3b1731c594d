/* The middleware that says when to finish. */
#include "lockstep/middleware.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "factory.h"
#include "fields.h"
#include "lockstep/log.h"
#include "lockstep/signal.h"

struct stop {
    ls_task *task; /* borrow */
    struct ls_stop_options options;
    ls_signals *signals; /* own */
};

static bool wants_value(const struct ls_stop_options *options)
{
    return !isnan(options->eval_value) && options->eval_value != 0;
}

static bool reached(const char *name, double value, double limit)
{
    if (!(value >= limit)) /* NaN is not there yet */
        return false;
    ls_log_info("stop: %s is %.10g, the run was to end at %.10g", name, value,
                limit);
    return true;
}

static int stop_step(ls_step *step, void *self)
{
    const struct stop *stop = self;
    const struct ls_stop_options *options = &stop->options;
    const int status = ls_yield(step);
    if (status != LS_OK)
        return status;
    ls_context *context = ls_task_context(stop->task);
    if ((options->env_step > 0 &&
         reached("env_step", ls_field_double(context, "env_step", NAN),
                 (double)options->env_step)) ||
        (options->train_iter > 0 &&
         reached("train_iter", ls_field_double(context, "train_iter", NAN),
                 (double)options->train_iter)) ||
        (wants_value(options) &&
         reached("eval_value", ls_field_double(context, "eval_value", NAN),
                 options->eval_value)))
        ls_task_finish(stop->task);
    return LS_OK;
}

static void on_signal(void *self, int number)
{
    struct stop *stop = self;
    ls_task_cancel(stop->task, LS_ECANCELED,
                   number == SIGINT ? "interrupted (SIGINT)"
                                    : "asked to end (SIGTERM)");
}

static void stop_destroy(void *self)
{
    struct stop *stop = self;
    ls_signal_unwatch(&stop->signals);
    free(stop);
}

static int check(ls_task *task, const struct ls_stop_options *options)
{
    const struct {
        const char *name;
        bool wanted;
    } fields[] = {{"env_step", options->env_step > 0},
                  {"train_iter", options->train_iter > 0},
                  {"eval_value", wants_value(options)}};
    if (options->env_step < 0 || options->train_iter < 0)
        return ls_error(LS_EINVAL, "a limit is negative; 0 is for none");
    const struct ls_context_type *type =
        ls_context_type_of(ls_task_context(task));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct ls_field *field = ls_context_field(type, fields[i].name);
        if (fields[i].wanted &&
            (field == NULL ||
             (field->type != LS_FIELD_INT && field->type != LS_FIELD_DOUBLE)))
            return ls_error(LS_EINVAL, "context %s has no number %s to stop by",
                            type->name, fields[i].name);
    }
    return LS_OK;
}

struct ls_middleware ls_mw_stop(ls_task *task,
                                const struct ls_stop_options *options)
{
    static const char name[] = "stop";
    int status = check(task, options);
    if (status != LS_OK)
        return middleware_failed(name, status);
    struct stop *stop = calloc(1, sizeof *stop);
    if (stop == NULL)
        return middleware_failed(name, ls_error(LS_ENOMEM, "no memory"));
    stop->task = task;
    stop->options = *options;
    /* The signal thread is none of a simulation's: it must not wake it. */
    if (options->on_signal && ls_task_runtime(task) == ls_runtime_threads()) {
        const int signals[] = {SIGINT, SIGTERM};
        status = ls_signal_watch(&stop->signals, signals, 2, on_signal, stop);
    }
    if (status != LS_OK) {
        free(stop);
        return middleware_failed(name, status);
    }
    return (struct ls_middleware){
        .name = name, .fn = stop_step, .self = stop, .release = stop_destroy};
}
