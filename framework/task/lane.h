/* lane.h - where steps run: the thread of ls_task_run(), and the workers.
 *
 * All state here is under the pool's one mutex. A waiting lane (a worker
 * without work; a lane that waits for its group) sleeps on its own condition.
 * A lane that waits for a group still runs the backward halves that are sent
 * to it: they can run nowhere else, and their sender may be what it waits for.
 * A worker that waits for the parts of an ls_parallel() also begins those that
 * nobody has begun, so that nested ones cannot use up all workers. */
#ifndef LANE_H
#define LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lockstep/runtime.h"
#include "step.h"

struct lane {
    ls_task *task;
    ls_thread *thread; /* own; NULL: that of ls_task_run() */
    ls_fiber_pool *fibers;
    ls_wrapped *spare;
    ls_cond wake;
    bool idle;         /* a worker that waits for work */
    struct part *sent; /* backward halves to run here, first first */
    /* Borrow: of the middleware of which a half runs here; NULL: of none. For
     * those who look from other threads. */
    _Atomic(const char *) doing;
    ls_trace_mark *mark; /* own; NULL: nothing is recorded */
    struct lane_name {   /* numbers of names that were looked up lately */
        const char *at;
        uint16_t number;
    } names[16];
};

struct pool {
    ls_mutex mutex;
    struct lane *lanes; /* own; lanes[0] is that of ls_task_run() */
    unsigned n_workers;
    bool started; /* the workers run */
    bool stopping;
    struct part *ready; /* forward halves that any worker may take */
};

/* Parts that run at the same time, and who waits for them. */
struct group {
    struct lane *waiter;
    ls_step *parent;
    size_t pending;
    struct ls_failure outcome; /* the first error */
    /* Backward halves that are to run one after the other, each in its lane:
     * the parts, of which those below `left` have not run yet. NULL: at the
     * same time. */
    struct part **chain;
    size_t left;
};

LS_MUST_USE int ls_pool_init(ls_task *task, unsigned n_workers,
                             size_t stack_bytes);
/* Join the workers. */
void ls_pool_fini(ls_task *task);
/* Start the workers if they do not run. */
LS_MUST_USE int ls_pool_start(ls_task *task);

/* The number of a step's name in the recording. The trace is not NULL. */
uint16_t ls_lane_name(struct lane *lane, const char *name);

ls_wrapped *ls_lane_take_step(struct lane *lane);
void ls_lane_give_step(struct lane *lane, ls_wrapped *wrapped);

/* Run the forward halves of parts[n], those that are active, on the workers
 * and wait for them all; help: and on this thread. Whoever fails first ends
 * the run. The group's outcome tells the first error. */
void ls_group_forward(struct group *group, struct lane *lane, ls_step *parent,
                      struct part **parts, size_t n, bool help);

/* Run what the parts have left suspended: at the same time, or one after the
 * other in reverse order. */
void ls_group_back(struct group *group, struct lane *lane, struct part **parts,
                   size_t n, bool in_turn);

#endif
