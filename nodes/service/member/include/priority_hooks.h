/* priority_hooks.h - what a service does besides its work, before and after a
 * run and each of its iterations.
 *
 * At a position hooks run in ascending order of priority, and in the order in
 * which they were added where that is equal. Usual: 10 to gather figures, 20 to
 * log and to write checkpoints, 100 to send.
 *
 * An iteration counts after its after_iter hooks: all hooks of the first one
 * see last_iter 0.
 * Thread: serial. */
#ifndef LOCKSTEP_PRIORITY_HOOKS_H
#define LOCKSTEP_PRIORITY_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

enum hook_position {
    HOOK_BEFORE_RUN,
    HOOK_BEFORE_ITER,
    HOOK_AFTER_ITER,
    HOOK_AFTER_RUN,
    HOOK_N_POSITIONS
};

typedef int hook_fn(void *self, int64_t last_iter);

struct hook {
    const char *name; /* borrow: static text, or outlives the list */
    enum hook_position position;
    int priority;
    int64_t every; /* before_iter, after_iter: only when last_iter is a multiple
                    * of it; 0: default 1. The others: 0 */
    hook_fn *fn;
    void *self;
};

#define HOOKS_MAX 64

/* Zero-initialised: empty. */
struct priority_hooks {
    struct hook hooks[HOOKS_MAX]; /* by position, priority, time of adding */
    size_t n;
};

const char *hook_position_name(enum hook_position position); /* "after_iter" */

/* hook: copied. Not from inside a hook of the list.
 * Errors: LS_EINVAL no name or fn, no such position, or `every`; LS_EEXIST the
 *         name is there at that position; LS_ELIMIT more than HOOKS_MAX. */
LS_MUST_USE int priority_hooks_add(struct priority_hooks *hooks,
                                   const struct hook *hook);

/* Run those that are due at this position, until one fails.
 * Errors: what that hook returned; the text names hook, position and
 *         iteration. */
LS_MUST_USE int priority_hooks_run(const struct priority_hooks *hooks,
                                   enum hook_position position,
                                   int64_t last_iter);

#endif
