/* trace_gate.h - which of many events a recorder keeps, so that it stays cheap.
 *
 * Those whose number is a multiple of a power of two, which grows where they
 * are closer together than NEAR_NS and shrinks where they are not: both sides
 * of an event then have kept every one that the sparser of them has. Thread:
 * any; two at a time may lose a step of that. */
#ifndef LOCKSTEP_TRACE_GATE_H
#define LOCKSTEP_TRACE_GATE_H

#include <stdatomic.h>

#include "lockstep/trace.h"

/* Apart so that a record is less than 1 % of it: 100 ns where records follow
 * each other, 300 where memory and code must come to the caches first. */
#define TRACE_NEAR_NS INT64_C(48000)
#define TRACE_FAR_NS  INT64_C(192000)
enum { TRACE_MASK_MAX = 65535 };

struct trace_gate { /* all 0: everything */
    atomic_uint_fast32_t mask;
    atomic_int_fast64_t last;
};

/* Whether it records everything: it was made to, or in a simulation, where time
 * is not that of the machine. */
bool ls_trace_all(const ls_trace *trace);

static inline bool trace_gate_keeps(struct trace_gate *gate, uint64_t number)
{
    return (number & atomic_load_explicit(&gate->mask, memory_order_relaxed)) ==
           0;
}

/* One is kept, at this time. */
static inline void trace_gate_kept(struct trace_gate *gate,
                                   const ls_trace *trace, int64_t now)
{
    if (ls_trace_all(trace))
        return;
    const int64_t apart =
        now - atomic_load_explicit(&gate->last, memory_order_relaxed);
    uint_fast32_t mask =
        atomic_load_explicit(&gate->mask, memory_order_relaxed);
    atomic_store_explicit(&gate->last, now, memory_order_relaxed);
    if (apart < TRACE_NEAR_NS && mask < TRACE_MASK_MAX)
        mask = 2 * mask + 1;
    else if (apart > TRACE_FAR_NS)
        mask /= 2;
    else
        return;
    atomic_store_explicit(&gate->mask, mask, memory_order_relaxed);
}

#endif
