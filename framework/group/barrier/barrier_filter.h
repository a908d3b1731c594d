/* barrier_filter.h - the hook by which a simulation spoils a barrier's
 * messages. Thread: any. */
#ifndef BARRIER_FILTER_H
#define BARRIER_FILTER_H

#include "barrier_epoch.h"
#include "lockstep/barrier.h"

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
