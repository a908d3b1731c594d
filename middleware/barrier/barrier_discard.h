/* barrier_discard.h - what the barrier's step, and a simulation, need besides
 * barrier.h. */
#ifndef BARRIER_DISCARD_H
#define BARRIER_DISCARD_H

#include "barrier_epoch.h"
#include "lockstep/barrier.h"

/* Forget an abort that no wait has returned yet: the epoch that it ended stays
 * ended, and the next wait enters the one after it. */
void ls_barrier_discard(ls_barrier *barrier);

/* Whether this node is in a group. */
bool ls_barrier_is_in(const ls_node *node, const char *group);

/* Between the state machine and the network a simulation may spoil messages, to
 * see that it would be noticed: the one hook for that. */
struct ls_barrier_filter {
    /* Whether a message is swallowed instead of sent. */
    bool (*swallows)(int filtered, const struct ls_barrier_message *message);
    /* Change a message that came, and who sent it. */
    void (*received)(int filtered, const struct ls_epoch *epoch, uint32_t *from,
                     uint64_t *incarnation, struct ls_barrier_message *message);
};
void ls_barrier_filter(ls_barrier *barrier,
                       const struct ls_barrier_filter *filter, int filtered);

#endif
