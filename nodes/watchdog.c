#include "watchdog.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lockstep/runtime.h"

struct watchdog {
    ls_runtime *runtime;
    ls_mutex mutex;
    ls_cond cond;
    ls_thread *thread; /* own */
    bool called_off;
    int64_t deadline;
    int exit_code;
    const char *text;
};

static void watch(void *arg)
{
    watchdog *self = arg;
    ls_mutex_lock(&self->mutex);
    while (!self->called_off) {
        const int status =
            ls_cond_wait(&self->cond, &self->mutex, self->deadline);
        if (status == LS_OK || self->called_off)
            continue;
        /* Not exit(): its handlers would wait for who hangs. */
        (void)fprintf(stderr, "lockstep: %s\n", self->text);
        _exit(self->exit_code);
    }
    ls_mutex_unlock(&self->mutex);
}

static int init(watchdog *self)
{
    self->runtime = ls_runtime_threads();
    self->deadline = LS_FOREVER;
    int status = ls_mutex_init(&self->mutex, self->runtime);
    if (status != LS_OK)
        return status;
    status = ls_cond_init(&self->cond, self->runtime);
    if (status == LS_OK) {
        status = ls_thread_spawn(self->runtime, &self->thread, "watchdog",
                                 watch, self);
        if (status != LS_OK)
            ls_cond_fini(&self->cond);
    }
    if (status != LS_OK)
        ls_mutex_fini(&self->mutex);
    return status;
}

int watchdog_create(watchdog **out)
{
    watchdog *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the watchdog");
    const int status = init(self);
    if (status != LS_OK) {
        free(self);
        return status;
    }
    *out = self;
    return LS_OK;
}

void watchdog_destroy(watchdog **self)
{
    if (self == NULL || *self == NULL)
        return;
    ls_mutex_lock(&(*self)->mutex);
    (*self)->called_off = true;
    ls_cond_broadcast(&(*self)->cond);
    ls_mutex_unlock(&(*self)->mutex);
    const int status = ls_thread_join(&(*self)->thread, LS_FOREVER);
    assert(status == LS_OK); /* there is no deadline to pass */
    (void)status;
    ls_cond_fini(&(*self)->cond);
    ls_mutex_fini(&(*self)->mutex);
    free(*self);
    *self = NULL;
}

void watchdog_set(watchdog *self, int wait_ms, int exit_code, const char *text)
{
    const int64_t deadline = ls_deadline(self->runtime, wait_ms);
    ls_mutex_lock(&self->mutex);
    if (deadline < self->deadline) {
        self->deadline = deadline;
        self->exit_code = exit_code;
        self->text = text;
        ls_cond_broadcast(&self->cond);
    }
    ls_mutex_unlock(&self->mutex);
}
