/* The middleware that measures how long each step takes. */
#include "lockstep/middleware.h"

#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "lockstep/stats.h"

#include "factory.h"

enum { DEFAULT_WINDOW = 10 };

struct record {
    char *name;        /* own; stays in its place, since others borrow it */
    ls_window *window; /* own */
    double last_ms;
};

struct ls_step_times {
    ls_mutex mutex; /* guards what follows: steps may run on workers */
    bool in_use;    /* by a task */
    unsigned every;
    unsigned window;
    struct record *records; /* own; in the order of the first run */
    size_t n;
};

/* NULL: no memory. */
static struct record *record_add(ls_step_times *times, const char *name)
{
    struct record *records =
        realloc(times->records, (times->n + 1) * sizeof *records);
    if (records == NULL)
        return NULL;
    times->records = records;
    struct record record = {.name = strdup(name)};
    if (record.name == NULL ||
        ls_window_create(&record.window, times->window) != LS_OK) {
        free(record.name);
        return NULL;
    }
    records[times->n] = record;
    return &records[times->n++];
}

static struct record *record_of(ls_step_times *times, const char *name)
{
    for (size_t i = 0; i < times->n; i++)
        if (strcmp(times->records[i].name, name) == 0)
            return &times->records[i];
    return record_add(times, name);
}

static int note(ls_step_times *times, const char *name, int64_t ns)
{
    struct ls_window_summary summary = {.count = 0};
    const double ms = (double)ns / (double)LS_NS_PER_MS;
    ls_mutex_lock(&times->mutex);
    struct record *record = record_of(times, name);
    if (record != NULL) {
        record->last_ms = ms;
        ls_window_push(record->window, ms);
        ls_window_summary(record->window, &summary);
    }
    ls_mutex_unlock(&times->mutex);
    if (record == NULL)
        return ls_error(LS_ENOMEM, "timer: no memory for step %s", name);
    if (times->every > 0 && summary.count % times->every == 0)
        ls_log_info("timer: %s took %.3f ms, %.3f ms in the mean of %zu", name,
                    ms, summary.mean, summary.held);
    return LS_OK;
}

static int timed(ls_step *step, void *self)
{
    int64_t start = ls_step_now(step);
    int status = ls_around_forward(step);
    const int64_t forward = ls_step_now(step) - start;
    if (status != LS_OK)
        return status;
    const int ended = ls_yield(step);
    start = ls_step_now(step);
    status = ls_around_back(step);
    const int64_t back = ls_step_now(step) - start;
    if (ended != LS_OK)
        return ended;
    return status != LS_OK ? status
                           : note(self, ls_around_name(step), forward + back);
}

/* The task is destroyed. */
static void let_go(void *self)
{
    ls_step_times *times = self;
    times->in_use = false;
}

struct ls_middleware ls_mw_timer(ls_task *task,
                                 const struct ls_step_times_options *options)
{
    static const char name[] = "timer";
    *options->out = NULL;
    ls_step_times *times = calloc(1, sizeof *times);
    if (times == NULL)
        return middleware_failed(name, ls_error(LS_ENOMEM, "no memory"));
    times->every = options->every;
    times->window = options->window > 0 ? options->window : DEFAULT_WINDOW;
    const int status = ls_mutex_init(&times->mutex, ls_task_runtime(task));
    if (status != LS_OK) {
        free(times);
        return middleware_failed(name, status);
    }
    times->in_use = true;
    *options->out = times;
    return (struct ls_middleware){.name = name,
                                  .fn = timed,
                                  .self = times,
                                  .release = let_go,
                                  .wraps = true};
}

size_t ls_step_times_get(ls_step_times *times, struct ls_step_time *out,
                         size_t capacity)
{
    ls_mutex_lock(&times->mutex);
    const size_t n = times->n;
    for (size_t i = 0; i < n && i < capacity; i++) {
        const struct record *record = &times->records[i];
        struct ls_window_summary summary;
        ls_window_summary(record->window, &summary);
        out[i] = (struct ls_step_time){.name = record->name,
                                       .count = summary.count,
                                       .last_ms = record->last_ms,
                                       .mean_ms = summary.mean};
    }
    ls_mutex_unlock(&times->mutex);
    return n;
}

int ls_step_times_samples(ls_step_times *times, const char *name, double *ms,
                          size_t capacity)
{
    size_t n = 0, i = 0;
    ls_mutex_lock(&times->mutex);
    while (i < times->n && strcmp(times->records[i].name, name) != 0)
        i++;
    const bool known = i < times->n;
    if (known)
        n = ls_window_values(times->records[i].window, ms, capacity);
    ls_mutex_unlock(&times->mutex);
    return known ? (int)n
                 : ls_error(LS_ENOENT, "timer: no step %s has run", name);
}

int ls_step_times_destroy(ls_step_times **times)
{
    if (times == NULL || *times == NULL)
        return LS_OK;
    if ((*times)->in_use)
        return ls_error(LS_ESTATE,
                        "timer: it cannot be destroyed before its task");
    for (size_t i = 0; i < (*times)->n; i++) {
        free((*times)->records[i].name);
        ls_window_destroy(&(*times)->records[i].window);
    }
    free((*times)->records);
    ls_mutex_fini(&(*times)->mutex);
    free(*times);
    *times = NULL;
    return LS_OK;
}
