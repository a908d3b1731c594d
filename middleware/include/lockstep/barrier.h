/* barrier.h - nobody leaves an epoch before everyone has entered it.
 *
 * The members are this node and all that are ready when the epoch begins, in
 * whatever topology and with whatever ids; a message that is lost, doubled,
 * late or out of order does no harm. All or none: a deadline, a lost member or
 * an abort ends the epoch for everyone. The first cause is handed on, so that
 * all return the same status, and name who gave up and who is missing; the
 * barrier is usable again in the next epoch. A member that
 * comes late, or comes back, enters with the others in the epoch after the one
 * they are in. How, and why it is right: docs/barrier.md.
 * Thread: any, one waiter at a time per barrier. */
#ifndef LOCKSTEP_BARRIER_H
#define LOCKSTEP_BARRIER_H

#include "lockstep/node.h"
#include "lockstep/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_barrier ls_barrier;

/* For `expected`: with whoever is there. */
#define LS_BARRIER_ANY UINT32_MAX

/* What the loss of a member means for a wait. */
enum ls_on_loss {
    LS_ON_LOSS_FAIL, /* it fails, with LS_ELOST */
    LS_ON_LOSS_GO_ON /* it goes on without the lost, in the next epoch */
};

/* What one epoch was like, seen from here. */
struct ls_barrier_epoch_info {
    uint64_t epoch;
    int64_t entered_at; /* ls_now() */
    int64_t left_at;
    uint32_t last;    /* who was the last to enter, as far as known here */
    uint32_t flags;   /* the flags of all members, or-ed: the same in all */
    uint64_t view;    /* the epoch since which these are the members: grows when
                       * one joins, leaves or comes back; the same in all */
    uint32_t members; /* how many took part; the same in all */
    uint32_t lost;    /* members lost since the last epoch that ended well */
};

/* All but the times and `left` must be the same in all members, or their waits
 * fail with LS_EMISMATCH. */
struct ls_barrier_options {
    const char *name;  /* default "step" */
    const char *group; /* only nodes with this word in their role or labels
                        * ("learner" in "learner,evaluator"); NULL: all nodes */

    /* An optional check: so many members, this node included, there must be.
     * If there are more, the wait fails with LS_EMISMATCH. If there are fewer,
     * it fails with LS_ELOST when one was lost; in an elastic world (world_max)
     * that has room for so many it waits for them, with grace_ms no longer than
     * that; else LS_EMISMATCH. Under LS_ON_LOSS_GO_ON: at least so many; set it
     * to more than half of them and only one side of a cut goes on.
     * 0: the world_size of the node, in an elastic world at least that; for a
     * group, and under LS_ON_LOSS_GO_ON, any number.
     * LS_BARRIER_ANY: any number. Where any will do, members that do not all
     * see the same ones yet wait until they do. */
    uint32_t expected;

    /* How members talk. 1: to the one with the lowest id; n: to the one above
     * them in a tree in which up to n stand below each; 0: the first up to 32
     * members, from there on a tree of 16. */
    uint32_t fanout;

    enum ls_on_loss on_loss;
    int timeout_ms; /* of each wait of ls_mw_barrier(); 0: 60000.
                     * ls_barrier_wait() takes its own */
    int grace_ms; /* when a member is lost, wait so long for its next life, then
                   * do as on_loss says; default 0 */

    /* Told of each epoch that was left well, by whoever waited, before the wait
     * returns: what ls_mw_barrier() sees, too. Of its flags bits 0 to 3 are its
     * own. NULL: nobody is told. */
    void (*left)(void *self, const struct ls_barrier_epoch_info *info);
    void *self;
};

/* Create before ls_node_start(), so that no peer's first request comes before
 * there is someone to answer it (it would be repeated after 20 ms).
 * out:    own; NULL after an error; destroy it before the node.
 * options: NULL: defaults. Copied.
 * Errors: LS_EINVAL name: no bytes or over 117, or not one for an event; group:
 * this node is not in it; timeout_ms or grace_ms is negative; LS_EEXIST the
 * node has a barrier of this name; LS_ENOMEM; LS_ECLOSED. */
LS_MUST_USE LS_API int
ls_barrier_create(ls_barrier **out, ls_node *node,
                  const struct ls_barrier_options *options);
/* The others are told: who waits for this node there, or will, fails with
 * LS_EMISMATCH, or goes on without it, as on_loss says. NULL and a pointer to
 * NULL are fine.
 * Errors: LS_ESTATE somebody waits in it, or fork(2) has brought it here:
 *         nothing was done. */
LS_API int ls_barrier_destroy(ls_barrier **barrier);

/* Enter the next epoch, and leave when all have entered.
 * flags:  bits that every member gets to see or-ed together with all others'.
 * info:   written on success; NULL: not wanted.
 * Errors: in all members of the epoch alike, by what came first:
 *         LS_ETIMEDOUT the time of one is up: it is named, as is each missing
 *         node, its last epoch and when it was heard last; or, of one that has
 *         no barrier of this name, in which barrier it is instead; LS_ELOST a
 *         member was lost before it entered: named; LS_EMISMATCH the world is
 *         not as expected, or a member's options differ, or it has taken its
 *         barrier down: named.
 *         In the one that gave up: LS_ECLOSED the node stops; what
 *         ls_barrier_abort() or ls_node_interrupt() was given. In all others
 *         then LS_EABORTED, which names it and its status, ls_error_cause();
 *         after one of the three above, that.
 *         LS_ESTATE somebody waits already, or the node was not started: no
 *         epoch is entered.
 * Each of the others ends the epoch; the next wait enters the one after it, or
 * the one that the others are in by then. Under LS_ON_LOSS_GO_ON, and while
 * grace_ms runs, this wait does so itself when a member is lost or not all see
 * the same members yet: then epochs are left out in `epoch`, in all members
 * alike. */
LS_MUST_USE LS_API int ls_barrier_wait(ls_barrier *barrier, uint32_t flags,
                                       int wait_ms,
                                       struct ls_barrier_epoch_info *info);

/* Wake the waiter with `status`, and tell the others that this node gives the
 * epoch up. When nobody waits here, it is the next epoch that is given up: the
 * next wait returns `status` at once. Again before that: nothing. */
LS_API void ls_barrier_abort(ls_barrier *barrier, int status);

/* Copy up to `capacity` ids, in order, of who took part in the last epoch that
 * ended well, this node among them. Returns how many there were. */
LS_API size_t ls_barrier_members(ls_barrier *barrier, uint32_t *ids,
                                 size_t capacity);

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
 * others' runs end as after ls_barrier_abort() with that status: mostly with
 * LS_EABORTED, which names the node. Void in a task
 * without a node, and in a node that is not in the group.
 * options: NULL: defaults. */
LS_API struct ls_middleware
ls_mw_barrier(ls_task *task, const struct ls_barrier_options *options);

#ifdef __cplusplus
}
#endif

#endif
