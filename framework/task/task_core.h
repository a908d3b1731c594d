/* task_core.h - the task; what its files share. */
#ifndef TASK_CORE_H
#define TASK_CORE_H

#include <stdatomic.h>

#include "forked.h"
#include "lane.h"
#include "pipeline.h"
#include "step.h"

struct around {
    ls_step_fn *fn;
    void *self;
    void (*release)(void *self);
};

/* Why the run must end now, known to all threads. Those who wait are woken
 * under `waking`, so that nobody is woken for a run that is over, and outside
 * of `mutex`, which they may take while they hold locks of their own. */
struct ending {
    ls_mutex waking; /* taken before mutex */
    ls_mutex mutex;
    ls_cond begun;             /* the status is no longer LS_OK */
    atomic_int status;         /* written with mutex held */
    struct ls_failure failure; /* under mutex; with that status */
    struct watcher *watchers;  /* own; under waking */
    size_t n_watchers;
    int interrupted; /* under waking; what its node was interrupted with for
                      * this; LS_OK: it was not, or somebody else had */
};

/* What nodes agree upon: task_agree.c. */
struct agreement {
    struct wisher *wishers; /* own */
    size_t n_wishers;
    bool there; /* in this iteration */
    struct ls_agreement what;
    uint32_t *ids; /* own; a buffer */
    size_t room;
};

struct ls_task {
    ls_node *node;       /* borrow; or NULL */
    ls_runtime *runtime; /* borrow */
    ls_context *context; /* own */
    char *roles;         /* own; NULL: every role */
    char *labels;        /* own */
    bool async;
    ls_step_lock lock; /* LS_TASK_LOCK */

    struct pipeline pipeline;
    struct group forwards;  /* in async mode: the pipeline's parts */
    struct around *arounds; /* own; the last one is the outermost */
    unsigned n_arounds;
    struct ls_failure built; /* what ls_task_use() kept */

    ls_trace *trace;     /* borrow; NULL: nothing is recorded */
    bool recording;      /* this iteration is; changes between iterations */
    unsigned unrecorded; /* so many of the next ones are not */
    unsigned left_out;   /* so many were not, since the last that was: */
    int64_t began_at, ended_at; /* of that one */

    struct pool pool;
    struct ending ending;
    struct agreement agreement;

    unsigned forks; /* ls_forks_now(), when it was made */
    enum { HAND_NONE, HAND_BEGUN, HAND_FORWARD } hand; /* a run by hand */
    atomic_bool running;
    atomic_uint_fast64_t iterations;
    atomic_uint_fast64_t round;
    /* Runs are numbered from 1: the one that runs now, or the next one; the
     * last one that was finished, here or elsewhere; and the last one of which
     * the others need not be told (any more). */
    atomic_uint_fast64_t run;
    atomic_uint_fast64_t finished;
    atomic_uint_fast64_t told;
};

/* Errors: LS_ESTATE it is that of a process that forked this one. */
static inline int ls_task_check_forks(const ls_task *task)
{
    return ls_forked_since(task->forks) ? ls_forked_error("this task") : LS_OK;
}

/* task_use.c */

/* Make a part of a middleware, which is moved, also on failure. */
LS_MUST_USE int ls_part_create(struct part **out, ls_task *task,
                               struct ls_middleware what);
void ls_part_destroy(struct part **part);
/* Whether a middleware of these roles runs here. NULL: everywhere. */
bool ls_task_takes_part(const ls_task *task, const char *roles);
/* Set the outermost wrapper, if any, before every part. */
void ls_task_decorate(ls_task *task);
/* The errors that are found before a run's first step. */
LS_MUST_USE int ls_task_check(ls_task *task);

/* task_run.c: run the finish hooks, in reverse; returns the first error. */
LS_MUST_USE int ls_pipeline_finish(const struct pipeline *pipeline,
                                   ls_task *task, int status);

/* task_end.c */

LS_MUST_USE int ls_ending_init(ls_task *task);
void ls_ending_fini(ls_task *task);
/* End the run with this and the calling thread's last error, unless something
 * else ends it already. */
void ls_task_fail(ls_task *task, int status);
/* What the run ended with, if anything, replaces the outcome; the next run
 * begins anew. */
void ls_task_settle(ls_task *task, struct ls_failure *outcome);

/* task_agree.c */

void ls_agreement_fini(ls_task *task);

/* task_finish.c */

LS_MUST_USE int ls_finish_listen(ls_task *task);
void ls_finish_unlisten(ls_task *task);
/* At the end of a run that went well: tell the others, unless they know. */
LS_MUST_USE int ls_finish_tell_at_end(ls_task *task);

#endif
