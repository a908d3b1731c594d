/* How a run is ended before its time. */
#include <stdio.h>
#include <stdlib.h>

#include "task_core.h"

struct watcher {
    ls_cancel_fn *fn;
    void *self;
};

int ls_ending_init(ls_task *task)
{
    struct ending *ending = &task->ending;
    int status = ls_mutex_init(&ending->waking, task->runtime);
    if (status < 0)
        return status;
    status = ls_mutex_init(&ending->mutex, task->runtime);
    if (status < 0)
        ls_mutex_fini(&ending->waking);
    return status;
}

void ls_ending_fini(ls_task *task)
{
    free(task->ending.watchers);
    ls_mutex_fini(&task->ending.mutex);
    ls_mutex_fini(&task->ending.waking);
}

/* The first one counts. */
static bool set_ending(struct ending *ending, int status, const char *text)
{
    ls_mutex_lock(&ending->mutex);
    const bool first = atomic_load(&ending->status) == LS_OK;
    if (first) {
        (void)snprintf(ending->text, sizeof ending->text, "%s", text);
        atomic_store(&ending->status, status);
    }
    ls_mutex_unlock(&ending->mutex);
    return first;
}

static void end_with(ls_task *task, int status, const char *text)
{
    struct ending *ending = &task->ending;
    ls_mutex_lock(&ending->waking);
    if (set_ending(ending, status, text)) {
        if (task->node != NULL)
            ls_node_interrupt(task->node, status);
        for (size_t i = 0; i < ending->n_watchers; i++)
            ending->watchers[i].fn(ending->watchers[i].self, status);
    }
    ls_mutex_unlock(&ending->waking);
}

void ls_task_fail(ls_task *task, int status)
{
    char text[LS_ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    end_with(task, status, text);
}

void ls_task_cancel(ls_task *task, int status, const char *text)
{
    if (status >= 0)
        status = LS_ECANCELED;
    end_with(task, status, text != NULL ? text : ls_status_sentence(status));
}

int ls_task_cancelled(ls_task *task)
{
    struct ending *ending = &task->ending;
    if (atomic_load_explicit(&ending->status, memory_order_relaxed) == LS_OK)
        return LS_OK;
    char text[LS_ERROR_TEXT_MAX];
    ls_mutex_lock(&ending->mutex);
    const int status = atomic_load(&ending->status);
    (void)snprintf(text, sizeof text, "%s", ending->text);
    ls_mutex_unlock(&ending->mutex);
    return status < 0 ? ls_error(status, "%s", text) : LS_OK;
}

void ls_task_settle(ls_task *task, struct outcome *outcome)
{
    struct ending *ending = &task->ending;
    ls_mutex_lock(&ending->waking);
    ls_mutex_lock(&ending->mutex);
    const int status = atomic_load(&ending->status);
    if (status < 0) {
        outcome->status = status;
        (void)snprintf(outcome->text, sizeof outcome->text, "%s", ending->text);
        atomic_store(&ending->status, LS_OK);
    }
    ls_mutex_unlock(&ending->mutex);
    if (status < 0 && task->node != NULL)
        ls_node_interrupt(task->node, LS_OK);
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
