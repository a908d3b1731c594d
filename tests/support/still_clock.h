/* still_clock.h - a runtime of threads whose clock stands still, unless a test
 * moves it. */
#ifndef LOCKSTEP_TESTS_STILL_CLOCK_H
#define LOCKSTEP_TESTS_STILL_CLOCK_H

#include "lockstep/runtime.h"
#include "runtime_ops.h"

static int64_t clock_ns;
static struct ls_runtime_ops ops;
static ls_runtime runtime = {.ops = &ops};

static inline int64_t clock_now(ls_runtime *of)
{
    (void)of;
    return clock_ns;
}

/* Before the runtime is used. */
static inline void stop_clock(void)
{
    ops = *ls_runtime_threads()->ops;
    ops.now = clock_now;
}

#endif
