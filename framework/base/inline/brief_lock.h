/* brief_lock.h - a lock that is held for a few instructions, around what the
 * nodes of a process share: it belongs to no runtime, and is there before the
 * first of them. Begins as ATOMIC_FLAG_INIT. */
#ifndef LOCKSTEP_BRIEF_LOCK_H
#define LOCKSTEP_BRIEF_LOCK_H

#include <stdatomic.h>

static inline void ls_brief_lock(atomic_flag *lock)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
        ;
}

static inline void ls_brief_unlock(atomic_flag *lock)
{
    atomic_flag_clear_explicit(lock, memory_order_release);
}

#endif
