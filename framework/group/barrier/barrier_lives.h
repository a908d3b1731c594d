/* barrier_lives.h - whom a barrier's last epoch was among, for a group, which
 * begins a generation with them. Thread: any. */
#ifndef BARRIER_LIVES_H
#define BARRIER_LIVES_H

#include "lockstep/barrier.h"

/* As ls_barrier_members(), with the incarnation of each. */
size_t ls_barrier_lives(ls_barrier *barrier, uint32_t *ids, uint64_t *lives,
                        size_t capacity);

#endif
