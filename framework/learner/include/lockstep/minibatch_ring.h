/* minibatch_ring.h - chooses which loaded batch is trained next, and how often.
 *
 * A ring has `size` slots, which take turns in order. An empty slot takes a new
 * item, which is then returned once per round until its passes are used up; so
 * up to `size` items take turns, and each is trained `passes` times without two
 * passes in a row. With first_passes < passes the first items get fewer passes,
 * one more for each new item: otherwise all slots would run out at the same
 * time, and the learner would wait for `size` loads at once.
 *
 * If it is an empty slot's turn and there is no new item, the next held item is
 * returned instead, and the turn continues from there: a learner that has
 * something to train never waits for a load.
 *
 * Pure: no clock, no lock, no waiting. Thread: serial. */
#ifndef LOCKSTEP_MINIBATCH_RING_H
#define LOCKSTEP_MINIBATCH_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_minibatch_ring ls_minibatch_ring;

struct ls_minibatch_ring_options {
    size_t size;           /* slots, >= 1 */
    unsigned passes;       /* over each item, >= 1 */
    unsigned first_passes; /* over the first item, 1 … passes; 0: passes */
};

/* One pass over one item. */
struct ls_minibatch_turn {
    void *item;    /* as given to ls_minibatch_ring_next() */
    bool released; /* it was the last pass: the ring has dropped the item */
};

/* out:    own; NULL after an error; give it to
 *         ls_minibatch_ring_destroy().
 * Errors: LS_EINVAL size or passes 0, first_passes over passes; LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_minibatch_ring_create(ls_minibatch_ring **out,
                         const struct ls_minibatch_ring_options *options);

/* Whether it is an empty slot's turn, so that the next one takes an item. */
LS_API bool ls_minibatch_ring_wants_item(const ls_minibatch_ring *ring);

/* The number of items it holds: those with passes left. */
LS_API size_t ls_minibatch_ring_held(const ls_minibatch_ring *ring);

/* Take the next turn.
 * item:   for the empty slot whose turn it is; borrow until it is released.
 *         NULL: there is none.
 * Errors: LS_EAGAIN no item was given and none is held; LS_ESTATE an item was
 *         given when none was wanted. The ring is unchanged. */
LS_MUST_USE LS_API int ls_minibatch_ring_next(ls_minibatch_ring *ring,
                                              void *item,
                                              struct ls_minibatch_turn *out);

/* NULL and a pointer to NULL are fine. */
LS_API void ls_minibatch_ring_destroy(ls_minibatch_ring **ring);

#ifdef __cplusplus
}
#endif

#endif
