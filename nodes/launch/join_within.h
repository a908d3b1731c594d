/* join_within.h - waiting for a thread that is about to end.
 * Thread: any, for one that is its own. */
#ifndef LOCKSTEP_JOIN_WITHIN_H
#define LOCKSTEP_JOIN_WITHIN_H

#include <stdbool.h>

#include "lockstep/runtime.h"

/* False: it still runs after `ms`, and *thread is still yours. In slices, of
 * which it costs one to stand still, as a process does that is stopped: what
 * such a thread is about to say must not be lost by that. */
static inline bool join_within(ls_thread **thread, int ms)
{
    enum { SLICES = 10 };
    bool ended = false;
    for (int i = 0; i < SLICES && !ended; i++)
        ended = ls_thread_join(thread, ls_deadline(ls_runtime_threads(),
                                                   ms / SLICES)) == LS_OK;
    return ended;
}

#endif
