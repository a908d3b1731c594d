/* How a run is ended before its time. */
#include <stdio.h>
#include <stdlib.h>

#include "task_core.h"

struct watcher {
    ls_cancel_fn *fn;
    void *self;
};

static void on_interrupt(void *self)
{
    ls_task *task = self;
    ls_mutex_lock(&task->ending.mutex);
    ls_cond_broadcast(&task->ending.begun);
    ls_mutex_unlock(&task->ending.mutex);
}

int ls_ending_init(ls_task *task)
{
    struct ending *ending = &task->ending;
    int status = ls_mutex_init(&ending->waking, task->runtime);
    if (status == LS_OK)
        status = ls_mutex_init(&ending->mutex, task->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&ending->begun, task->runtime);
    if (status == LS_OK && task->node != NULL)
        status = ls_node_on_interrupt(task->node, on_interrupt, task);
    return status;
}

/* An interrupt that somebody else has made stays. */
static void interrupt_node(ls_task *task, int status)
{
    if (task->node == NULL || ls_node_interrupted(task->node) != LS_OK)
        return;
    task->ending.interrupted = status;
    ls_node_interrupt(task->node, status);
}

static void resume_node(ls_task *task)
{
    const int status = task->ending.interrupted;
    task->ending.interrupted = LS_OK;
    if (status != LS_OK && ls_node_interrupted(task->node) == status)
        ls_node_interrupt(task->node, LS_OK);
}

void ls_ending_fini(ls_task *task)
{
    resume_node(task); /* it was cancelled, and no run came */
    if (task->node != NULL)
        (void)ls_node_on_interrupt(task->node, NULL, task);
    free(task->ending.watchers);
    ls_cond_fini(&task->ending.begun);
    ls_mutex_fini(&task->ending.mutex);
    ls_mutex_fini(&task->ending.waking);
}

/* The first one counts. */
static bool set_ending(struct ending *ending, const struct ls_failure *failure)
{
    ls_mutex_lock(&ending->mutex);
    const bool first = atomic_load(&ending->status) == LS_OK;
    if (first) {
        ending->failure = *failure;
        atomic_store(&ending->status, failure->status);
        ls_cond_broadcast(&ending->begun);
    }
    ls_mutex_unlock(&ending->mutex);
    return first;
}

static void end_with(ls_task *task, const struct ls_failure *failure)
{
    struct ending *ending = &task->ending;
    const int status = failure->status;
    ls_mutex_lock(&ending->waking);
    if (set_ending(ending, failure)) {
        interrupt_node(task, status);
        for (size_t i = 0; i < ending->n_watchers; i++)
            ending->watchers[i].fn(ending->watchers[i].self, status);
    }
    ls_mutex_unlock(&ending->waking);
}

void ls_task_fail(ls_task *task, int status)
{
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    end_with(task, &failure);
}

void ls_task_cancel(ls_task *task, int status, const char *text)
{
    struct ls_failure failure = {.status = status < 0 ? status : LS_ECANCELED};
    if (ls_forked_since(task->forks))
        return;
    (void)snprintf(failure.text, sizeof failure.text, "%s",
                   text != NULL ? text : ls_status_sentence(failure.status));
    end_with(task, &failure);
}

int ls_task_cancelled(ls_task *task)
{
    struct ending *ending = &task->ending;
    if (atomic_load_explicit(&ending->status, memory_order_relaxed) == LS_OK)
        return LS_OK;
    ls_mutex_lock(&ending->mutex);
    const int status = atomic_load(&ending->status) < 0
                           ? ls_failure_return(&ending->failure)
                           : LS_OK;
    ls_mutex_unlock(&ending->mutex);
    return status;
}

static int interrupted(const ls_task *task)
{
    return task->node != NULL ? ls_node_interrupted(task->node) : LS_OK;
}

int ls_step_sleep(ls_step *step, int sleep_ms)
{
    ls_task *task = step->task;
    struct ending *ending = &task->ending;
    const int64_t until =
        ls_deadline(task->runtime, sleep_ms > 0 ? sleep_ms : 0);
    int status = LS_OK;
    ls_mutex_lock(&ending->mutex);
    while (atomic_load(&ending->status) == LS_OK && status == LS_OK &&
           interrupted(task) == LS_OK)
        status = ls_cond_wait(&ending->begun, &ending->mutex, until);
    ls_mutex_unlock(&ending->mutex);
    status = ls_task_cancelled(task);
    return status != LS_OK ? status : interrupted(task);
}

void ls_task_settle(ls_task *task, struct ls_failure *outcome)
{
    struct ending *ending = &task->ending;
    ls_mutex_lock(&ending->waking);
    ls_mutex_lock(&ending->mutex);
    const int status = atomic_load(&ending->status);
    if (status < 0) {
        *outcome = ending->failure;
        atomic_store(&ending->status, LS_OK);
    }
    ls_mutex_unlock(&ending->mutex);
    resume_node(task);
    ls_mutex_unlock(&ending->waking);
}

static struct watcher *watcher_of(struct ending *ending, const void *self)
{
    for (size_t i = 0; i < ending->n_watchers; i++)
        if (ending->watchers[i].self == self)
            return &ending->watchers[i];
    return NULL;
}

static int watch(struct ending *ending, ls_cancel_fn *fn, void *self)
{
    struct watcher *watcher = watcher_of(ending, self);
    if (watcher == NULL) {
        struct watcher *watchers = realloc(
            ending->watchers, (ending->n_watchers + 1) * sizeof *watchers);
        if (watchers == NULL)
            return ls_error(LS_ENOMEM, "task: no memory to watch for its end");
        ending->watchers = watchers;
        watcher = &watchers[ending->n_watchers++];
    }
    *watcher = (struct watcher){fn, self};
    const int status = atomic_load(&ending->status);
    if (status < 0)
        fn(self, status);
    return LS_OK;
}

int ls_task_on_cancel(ls_task *task, ls_cancel_fn *fn, void *self)
{
    struct ending *ending = &task->ending;
    int status = LS_OK;
    if (ls_task_check_forks(task) != LS_OK)
        return LS_ESTATE;
    ls_mutex_lock(&ending->waking);
    if (fn != NULL) {
        status = watch(ending, fn, self);
    } else {
        struct watcher *watcher = watcher_of(ending, self);
        if (watcher != NULL)
            *watcher = ending->watchers[--ending->n_watchers];
    }
    ls_mutex_unlock(&ending->waking);
    return status;
}
