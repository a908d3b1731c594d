/* barrier_sabotage.h - the barrier's messages, spoilt on purpose.
 *
 * A sweep over fault schedules proves something only if it would notice a
 * protocol that is wrong. So tests, and the job that sweeps, may have a
 * barrier play a wrong protocol: its messages are changed between the state
 * machine and the network, as if a line of the protocol were missing. Each of
 * these must be found. Nothing else sets one.
 * Thread: as the state machine whose messages they are. */
#ifndef BARRIER_SABOTAGE_H
#define BARRIER_SABOTAGE_H

#include "lockstep/barrier.h"

enum ls_sabotage {
    LS_SABOTAGE_NONE,
    LS_SABOTAGE_NO_REPEAT, /* nothing is asked a second time */
    LS_SABOTAGE_NO_EPOCH,  /* what was said of one epoch counts in another */
    LS_SABOTAGE_COUNT,     /* messages are counted, not senders: who says a
                            * thing twice is taken for one who is missing */
    LS_SABOTAGE_ONE_PHASE, /* who hears that all have entered leaves at once */
    LS_SABOTAGE_EAGER,     /* one who has entered is taken for all */
    LS_SABOTAGE_HASTY      /* who is stuck does not ask whether others are */
};

/* Have this barrier play the wrong protocol from now on. */
LS_API void ls_barrier_sabotage(ls_barrier *barrier, enum ls_sabotage what);

/* What does it; filtered: an enum ls_sabotage. */
extern const struct ls_barrier_filter ls_sabotage;

#endif
