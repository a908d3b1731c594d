/* barrier_discard.h - what the barrier's step needs besides barrier.h. */
#ifndef BARRIER_DISCARD_H
#define BARRIER_DISCARD_H

#include "lockstep/barrier.h"

/* Forget an abort that no wait has returned yet: the epoch that it ended stays
 * ended, and the next wait enters the one after it. */
void ls_barrier_discard(ls_barrier *barrier);

/* Whether this node is in a group. */
bool ls_barrier_is_in(const ls_node *node, const char *group);

#endif
