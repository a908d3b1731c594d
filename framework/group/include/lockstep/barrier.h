/* barrier.h - nobody leaves an epoch before everyone has entered it.
 *
 * The members are this node and all nodes that are ready when the epoch begins,
 * in any topology and with any ids. Lost, duplicate, late and reordered
 * messages do no harm. All or none: a deadline, a lost member or an abort ends
 * the epoch for everyone. The first cause is passed on, so that all return the
 * same status, and name the member that gave up and those that are missing; the
 * barrier is usable again in the next epoch. A member that joins late, or comes
 * back, enters with the others in the epoch after the current one. How, and why
 * it is correct: docs/barrier.md.
 * Thread: any, one waiter at a time per barrier. */
#ifndef LOCKSTEP_BARRIER_H
#define LOCKSTEP_BARRIER_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_barrier ls_barrier;

/* For `expected`: any number of members. */
#define LS_BARRIER_ANY UINT32_MAX

/* What the loss of a member does to a wait. */
enum ls_on_loss {
    LS_ON_LOSS_FAIL, /* it fails, with LS_ELOST */
    LS_ON_LOSS_GO_ON /* it continues without the lost, in the next epoch */
};

/* One epoch, as this node saw it. */
struct ls_barrier_epoch_info {
    uint64_t epoch;
    int64_t entered_at; /* ls_now() */
    int64_t left_at;
    uint32_t last;    /* the member that entered last, as far as known here */
    uint32_t flags;   /* the flags of all members, or-ed: the same in all */
    uint64_t view;    /* the epoch since which these are the members: grows when
                       * one joins, leaves or comes back; the same in all */
    uint32_t members; /* how many took part; the same in all */
    uint32_t lost;    /* members lost since the last epoch that succeeded */
};

/* All options but the times and `left` must be the same in all members, or
 * their waits fail with LS_EMISMATCH. */
struct ls_barrier_options {
    const char *name;    /* default "step" */
    const char *group;   /* only nodes with this word in their role or labels
                          * ("learner" in "learner,evaluator"); NULL: all nodes */
    const uint32_t *ids; /* only these nodes; this one is among them; not with
                          * a group. NULL: any */
    size_t n_ids;

    /* Optional check: the required number of members, this node included. With
     * more, the wait fails with LS_EMISMATCH. With fewer, it fails with
     * LS_ELOST if one was lost. Otherwise, in an elastic world (world_max) with
     * room for this many, it waits for them, with grace_ms no longer than that;
     * else it fails with LS_EMISMATCH. Under LS_ON_LOSS_GO_ON it is the least
     * number: set it to more than half of them and only one side of a cut goes
     * on. 0: the world_size of the node, in an elastic world at least that;
     * with ids as many as those; for a group, and under LS_ON_LOSS_GO_ON, any
     * number. LS_BARRIER_ANY: any number. Where any number will do, members
     * that do not yet all see the same members wait until they do. */
    uint32_t expected;

    /* Whom members talk to. 1: the member with the lowest id; n: their parent
     * in a tree in which each has up to n children on its host and, the first
     * of a host, n on others; 0: as 1 for up to 32 members of one host, or of
     * as many hosts, else a tree of 16. Hosts are those of ls_node_host():
     * docs/barrier.md#through-a-tree. */
    uint32_t fanout;

    enum ls_on_loss on_loss;
    int timeout_ms; /* of each wait of ls_mw_barrier(); 0: 60000.
                     * ls_barrier_wait() takes its own */
    int grace_ms;   /* when a member is lost, wait this long for its next life,
                     * and as long as this node stands still meanwhile; then
                     * act as on_loss says; default 0 */

    /* Called for each epoch that succeeded, by the waiting thread, before the
     * wait returns: the epochs of ls_mw_barrier() too, which uses bits 0 to
     * 3 and 28 to 31 of its flags itself. NULL: not called. */
    void (*left)(void *self, const struct ls_barrier_epoch_info *info);
    /* For ls_mw_barrier(): what this node adds to its flags in each of its
     * waits, of bits 4 to 27. Called by the waiting thread. NULL: nothing. */
    uint32_t (*flags)(void *self);
    void *self;
};

/* Create it before ls_node_start(), so that it can answer the first request of
 * every peer (an unanswered one is repeated after 20 ms).
 * out:     own; NULL after an error; destroy it before the node.
 * options: NULL: defaults. Copied.
 * Errors:  LS_EINVAL name: empty, over 117 bytes, or not valid for an event;
 *          group, ids: this node is not in it, or both are given; an id is
 *          there twice; timeout_ms or grace_ms is negative;
 *          LS_EEXIST the node has a barrier of this name; LS_ENOMEM;
 *          LS_ECLOSED. */
LS_MUST_USE LS_API int
ls_barrier_create(ls_barrier **out, ls_node *node,
                  const struct ls_barrier_options *options);
/* Tells the other members: a wait for this node there, current or future, fails
 * with LS_EMISMATCH, or continues without it, as on_loss says. NULL and a
 * pointer to NULL are fine.
 * Errors: LS_ESTATE a thread waits in it, or it came here by fork(2): nothing
 *         was done. */
LS_API int ls_barrier_destroy(ls_barrier **barrier);

/* Enter the next epoch, and leave when all have entered.
 * flags:  bits; every member gets those of all members or-ed together.
 * info:   written on success; NULL: not wanted.
 * Errors: in all members of the epoch alike, by whichever came first:
 *         LS_ETIMEDOUT a member's time is up: the text names it and each
 *         missing node, with its last epoch and when it was last heard; or,
 *         for a node without a barrier of this name, the barrier it is in;
 *         LS_ELOST a member was lost before it entered: named; LS_EMISMATCH the
 *         world is not as expected, or a member's options differ, or it has
 *         destroyed its barrier: named.
 *         In the member that gave up: LS_ECLOSED the node stops; the status
 *         given to ls_barrier_abort() or ls_node_interrupt(). All others then
 *         return LS_EABORTED, which names that member and its status,
 *         ls_error_cause(); if that was one of the three above, they return it.
 *         LS_ESTATE a thread waits already, or the node was not started: no
 *         epoch is entered.
 * All errors but the last end the epoch; the next wait enters the one after it,
 * or the one that the others are in by then. Under LS_ON_LOSS_GO_ON, and while
 * grace_ms runs, this wait moves on to the next epoch itself when a member is
 * lost or not all see the same members yet: `epoch` then skips numbers, in all
 * members alike. */
LS_MUST_USE LS_API int ls_barrier_wait(ls_barrier *barrier, uint32_t flags,
                                       int wait_ms,
                                       struct ls_barrier_epoch_info *info);

/* Wake the waiter with `status`, LS_ECANCELED for LS_OK, and tell the others
 * that this node gives up the epoch. If nobody waits here, this gives up the
 * next epoch: the next wait returns `status` at once. Repeating it before then
 * has no effect. */
LS_API void ls_barrier_abort(ls_barrier *barrier, int status);

/* Forget an abort that no wait has returned yet: the epoch that it ended stays
 * ended, and the next wait enters the one after it. */
LS_API void ls_barrier_discard(ls_barrier *barrier);

/* Copy up to `capacity` ids, in order, of the members of the last epoch that
 * succeeded, this node included. Returns how many there were. */
LS_API size_t ls_barrier_members(ls_barrier *barrier, uint32_t *ids,
                                 size_t capacity);

struct ls_barrier_stats {
    uint64_t epochs;   /* that succeeded */
    uint64_t failed;   /* that ended with an error */
    uint64_t sent;     /* messages */
    uint64_t repeated; /* of these, sent again for lack of an answer */
    int64_t waited_ns; /* in total */
};
LS_API void ls_barrier_stats(ls_barrier *barrier, struct ls_barrier_stats *out);

#ifdef __cplusplus
}
#endif

#endif
