#include "watchdog.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lockstep/runtime.h"

#include "join_within.h"

/* What is said last, to pipes that may be full, has so long. */
#define SAY_MS 1000

struct watchdog {
    watchdog_say *say;
    void *self; /* borrow */
    ls_runtime *runtime;
    ls_mutex mutex;
    ls_cond cond;
    ls_thread *thread; /* own */
    bool called_off;
    int64_t deadline;
    int exit_code;
    const char *text;
};

static void say_on_stderr(void *self, const char *text)
{
    (void)self;
    (void)fprintf(stderr, "lockstep: %s\n", text);
}

struct words {
    watchdog *dog;    /* borrow */
    const char *text; /* borrow */
};

static void say(void *arg)
{
    const struct words *words = arg;
    words->dog->say(words->dog->self, words->text);
}

/* Not exit(): its handlers would wait for who hangs. Without the mutex: who
 * hangs may want it. */
static void end_process(watchdog *self)
{
    const int exit_code = self->exit_code;
    struct words words = {self, self->text};
    ls_thread *voice = NULL;
    ls_mutex_unlock(&self->mutex);
    if (ls_thread_spawn(self->runtime, &voice, "last words", say, &words) ==
        LS_OK)
        (void)join_within(&voice, SAY_MS);
    _exit(exit_code);
}

static void watch(void *arg)
{
    watchdog *self = arg;
    ls_mutex_lock(&self->mutex);
    while (!self->called_off) {
        const int status =
            ls_cond_wait(&self->cond, &self->mutex, self->deadline);
        if (status == LS_OK || self->called_off)
            continue;
        end_process(self);
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

int watchdog_create(watchdog **out, watchdog_say *said, void *arg)
{
    watchdog *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the watchdog");
    self->say = said != NULL ? said : say_on_stderr;
    self->self = arg;
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

void watchdog_set(watchdog *self, int64_t wait_ms, int exit_code,
                  const char *text)
{
    const int64_t now = ls_now(self->runtime);
    const int64_t deadline = wait_ms < (LS_FOREVER - now) / LS_NS_PER_MS
                                 ? now + wait_ms * LS_NS_PER_MS
                                 : LS_FOREVER;
    ls_mutex_lock(&self->mutex);
    if (deadline < self->deadline) {
        self->deadline = deadline;
        self->exit_code = exit_code;
        self->text = text;
        ls_cond_broadcast(&self->cond);
    }
    ls_mutex_unlock(&self->mutex);
}
