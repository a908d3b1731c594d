/* task_help.h - what the tests of the task share. */
#ifndef TASK_HELP_H
#define TASK_HELP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latch.h"
#include "lockstep/log.h"
#include "lockstep/runtime.h"
#include "lockstep/task.h"
#include "test.h"

/* Words that steps leave behind, in the order in which they did. */
struct trace {
    ls_mutex mutex;
    char text[512];
};

static inline void trace_init(struct trace *trace)
{
    trace->text[0] = '\0';
    assert_int_equal(ls_mutex_init(&trace->mutex, ls_runtime_threads()), LS_OK);
}

static inline void trace_fini(struct trace *trace)
{
    ls_mutex_fini(&trace->mutex);
}

static inline void note(struct trace *trace, const char *word)
{
    ls_mutex_lock(&trace->mutex);
    const size_t used = strlen(trace->text);
    (void)snprintf(trace->text + used, sizeof trace->text - used, "%s%s",
                   used > 0 ? " " : "", word);
    ls_mutex_unlock(&trace->mutex);
}

/* A step that leaves words, and fails where it is told to. */
struct words {
    struct trace *trace;
    const char *forward;
    const char *back; /* NULL: it does not yield */
    int fail_forward;
    int fail_back;
    int given; /* what its yield returned */
};

static inline int say(ls_step *step, void *self)
{
    struct words *words = self;
    note(words->trace, words->forward);
    if (words->fail_forward < 0)
        return ls_error(words->fail_forward, "%s went wrong", words->forward);
    if (words->back == NULL)
        return LS_OK;
    words->given = ls_yield(step);
    note(words->trace, words->back);
    if (words->fail_back < 0)
        return ls_error(words->fail_back, "%s went wrong", words->back);
    return words->given;
}

static inline struct ls_middleware saying(const char *name, struct words *words)
{
    return (struct ls_middleware){.name = name, .fn = say, .self = words};
}

static inline ls_task *task_with(struct ls_task_options options)
{
    ls_task *task = NULL;
    assert_int_equal(ls_task_create(&task, &options), LS_OK);
    return task;
}

static inline ls_task *task_plain(void)
{
    return task_with((struct ls_task_options){0});
}

static inline ls_task *task_async(unsigned n_workers)
{
    return task_with(
        (struct ls_task_options){.async = true, .n_workers = n_workers});
}

static inline struct ls_online_context *online(ls_task *task)
{
    return ls_context_data(ls_task_context(task));
}

static inline int raises(ls_step *step, void *self)
{
    (void)step;
    const int status = ls_error(LS_EHANDLER, "KeyError");
    ls_error_set_cause(LS_EIO);
    ls_error_set_cookie(*(const uint64_t *)self);
    return status;
}

/* Cause and cookie of a step's error come out of the run. */
static inline void assert_raises(ls_task *task)
{
    uint64_t cookie = 4711;
    assert_ok(ls_task_use_fn(task, raises, &cookie));
    assert_fails(ls_task_run(task, 1), LS_EHANDLER);
    assert_string_equal(ls_error_text(), "step raises: KeyError");
    assert_true(ls_error_cookie() == cookie);
    assert_int_equal(ls_error_cause(), LS_EIO);
}

/* A finish hook: the status that it was given. */
static inline int keeps_status(void *self, ls_task *task, int status)
{
    (void)task;
    *(int *)self = status;
    return LS_OK;
}

#endif
