/* barrier.h - nobody leaves an epoch before everyone has entered it.
 *
 * The members are this node and all that are ready when the epoch begins, in
 * whatever topology and with whatever ids; a message that is lost, doubled,
 * late or out of order does no harm. All or none: a deadline, a lost member or
 * an abort ends the epoch for everyone with the same kind of error, which names
 * who is missing; the barrier is usable again in the next epoch. A member that
 * comes late, or comes back, enters with the others in the epoch after the one
 * they are in. How, and why it is right: docs/barrier.md.
 * Thread: any, one waiter at a time per barrier. */
#ifndef LOCKSTEP_BARRIER_H
#define LOCKSTEP_BARRIER_H

#include "lockstep/node.h"
#include "lockstep/task.h"

typedef struct ls_barrier ls_barrier;

struct ls_barrier_options {
    const char *name;  /* the same in all members; default "step" */
    uint32_t expected; /* members, this node included, that there must be, or
                        * LS_EMISMATCH; 0: the world_size of the node */
};

/* What one epoch was like, seen from here. */
struct ls_barrier_epoch_info {
    uint64_t epoch;
    int64_t entered_at; /* ls_now() */
    int64_t left_at;
    uint32_t last;  /* who was the last to enter, as far as known here */
    uint32_t flags; /* the flags of all members, or-ed: the same in all */
};

/* Create before ls_node_start(), so that no peer's first request comes before
 * there is someone to answer it (it would be repeated after 20 ms).
 * out:    own; written on success only; destroy it before the node.
 * options: NULL: defaults. Copied.
 * Errors: LS_EINVAL name: no bytes or over 117, or not one for an event;
 * LS_EEXIST the node has a barrier of this name; LS_ENOMEM; LS_ECLOSED. */
LS_MUST_USE LS_API int
ls_barrier_create(ls_barrier **out, ls_node *node,
                  const struct ls_barrier_options *options);
/* Nobody may be waiting. The others are not told: stop the node, or abort.
 * NULL and a pointer to NULL are fine. */
LS_API void ls_barrier_destroy(ls_barrier **barrier);

/* Enter the next epoch, and leave when all have entered.
 * flags:  bits that every member gets to see or-ed together with all others'.
 * info:   written on success; NULL: not wanted.
 * Errors: LS_ETIMEDOUT the text names each missing node, its last epoch and
 *         when it was heard last; LS_ELOST a member was lost before it
 *         entered: named; LS_EABORTED another member gave up this epoch: it
 *         and its reason are named; LS_EMISMATCH the world is not as expected;
 *         LS_ECLOSED the node stops; what ls_barrier_abort() was given.
 *         Each ends the epoch; the next wait enters the one after it, or the
 *         one that the others are in by then.
 *         LS_ESTATE somebody waits already, or the node was not started: no
 *         epoch is entered. */
LS_MUST_USE LS_API int ls_barrier_wait(ls_barrier *barrier, uint32_t flags,
                                       int wait_ms,
                                       struct ls_barrier_epoch_info *info);

/* Wake the waiter with `status`, and tell the others that this node gives the
 * epoch up. When nobody waits here, it is the next epoch that is given up: the
 * next wait returns `status` at once. Again before that: nothing. */
LS_API void ls_barrier_abort(ls_barrier *barrier, int status);

struct ls_barrier_stats {
    uint64_t epochs;   /* left */
    uint64_t failed;   /* ended with an error */
    uint64_t sent;     /* messages */
    uint64_t repeated; /* of those, sent again for want of an answer */
    int64_t waited_ns; /* in all */
};
LS_API void ls_barrier_stats(ls_barrier *barrier, struct ls_barrier_stats *out);

/* As a step: wait, let the rest of the pipeline run, wait again. A member that
 * is finishing when it waits again makes all finish at the end of the same
 * iteration; one whose run ends otherwise, having done its iterations, ends
 * the others one iteration later. When a step fails or a run is cancelled, the
 * others' runs end with LS_EABORTED, which names the node. Void in a task
 * without a node.
 * options: NULL: defaults. timeout_ms: of each wait; <= 0: 60000. */
LS_API struct ls_middleware
ls_mw_barrier(ls_task *task, const struct ls_barrier_options *options,
              int timeout_ms);

#endif
