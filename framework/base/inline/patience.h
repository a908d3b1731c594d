/* patience.h - how long to look at words of shared memory before one sleeps.
 *
 * A few looks while everybody who takes part can have a core; then a core is
 * yielded between looks, as long as that is cheap. A yield that took long says
 * that somebody else needs the core: then the next waits sleep at once, first
 * 32 of them, four times as many each time, until 256 waits went well. Many
 * that share a core bear a few such yields where they copy for long. Who only
 * looks for more gains less by each look than one that is dear costs, by a
 * factor of some hundreds: it begins with 1024.
 * Thread: owner.
 * Source: docs/shared-memory.md, "How members wait". */
#ifndef LOCKSTEP_PATIENCE_H
#define LOCKSTEP_PATIENCE_H

#include "shared_memory.h"

enum {
    PATIENCE_SPINS = 2000,
    PATIENCE_SPINS_PER_YIELD = 32, /* two that share a core by chance */
    PATIENCE_YIELDS = 64,
    PATIENCE_YIELDS_FOR_MORE = 4,
    PATIENCE_SULK_FIRST = 32,
    PATIENCE_SULK_FIRST_FOR_MORE = 1024,
    PATIENCE_SULK_MAX = 1 << 16,
    PATIENCE_SULK_MAX_LONG = 1 << 9, /* of longer waits: about as much time */
    PATIENCE_GOOD_WAITS = 256,
    PATIENCE_FEW = 4,
    PATIENCE_BEARS_AMONG_MANY = 3,
};
/* A yield is, for each of those who take part that share the core: they copy
 * meanwhile, and take a turn each before it comes back. At most, and where they
 * copy for long: what a scheduler gives to somebody who always wants to run. */
#define PATIENCE_YIELD_DEAR_NS     (300 * LS_NS_PER_US)
#define PATIENCE_YIELD_DEAR_MAX_NS (2 * LS_NS_PER_MS)

/* How somebody waits, and what it has found out about that. */
struct patience {
    int64_t dear_ns;        /* a yield that takes longer is */
    unsigned spins, yields; /* looks before it sleeps */
    unsigned sulk;          /* waits that are left to sleep at once in */
    unsigned first;         /* sulk, when all has gone well for long */
    unsigned most;          /* sulk */
    unsigned penalty, good; /* the next sulk; waits since the last */
    unsigned bears, borne;  /* waits in turn with a dear yield, before it gives
                             * up; and so far */
};

/* n: who take part; cores: that they share. */
static inline void patience_begin(struct patience *p, ls_runtime *runtime,
                                  unsigned n, double cores)
{
    const bool touched = ls_memory_touched(runtime);
    const double sharers = n > cores ? n / cores : 1;
    const double dear_ns = sharers * PATIENCE_YIELD_DEAR_NS;
    *p = (struct patience){.dear_ns = dear_ns < PATIENCE_YIELD_DEAR_MAX_NS
                                          ? (int64_t)dear_ns
                                          : PATIENCE_YIELD_DEAR_MAX_NS,
                           .spins = n <= cores && !touched ? PATIENCE_SPINS : 0,
                           .yields = touched ? 2 : PATIENCE_YIELDS,
                           .first = PATIENCE_SULK_FIRST,
                           .most = PATIENCE_SULK_MAX,
                           .penalty = PATIENCE_SULK_FIRST,
                           .bears = 1};
}

/* Of who only looks whether more follows what it has read. In simulations
 * nobody takes long to wake, so it never does. */
static inline void patience_begin_for_more(struct patience *p,
                                           ls_runtime *runtime)
{
    *p = (struct patience){
        .dear_ns = PATIENCE_YIELD_DEAR_NS,
        .yields = ls_memory_touched(runtime) ? 0 : PATIENCE_YIELDS_FOR_MORE,
        .first = PATIENCE_SULK_FIRST_FOR_MORE,
        .most = PATIENCE_SULK_MAX,
        .penalty = PATIENCE_SULK_FIRST_FOR_MORE,
        .bears = 1};
}

/* Of who waits for others that copy what is long. Many that share a core keep
 * it for as long as a stranger does, now and then; a stranger does so in one
 * wait after the other. */
static inline void patience_begin_long(struct patience *p, ls_runtime *runtime,
                                       unsigned n, double cores)
{
    patience_begin(p, runtime, n, cores);
    p->dear_ns = PATIENCE_YIELD_DEAR_MAX_NS;
    p->most = PATIENCE_SULK_MAX_LONG;
    if (n > PATIENCE_FEW * cores)
        p->bears = PATIENCE_BEARS_AMONG_MANY;
}

static inline void patience_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Give the core to others, and see what that costs. Returns whether to go on
 * like this.
 * since: when it was had again; 0: not given away yet. dear: whether this wait
 * has had a dear yield: one counts. */
static inline bool patience_yield(struct patience *p, ls_runtime *runtime,
                                  int64_t *since, bool *dear)
{
    const int64_t before = *since != 0 ? *since : ls_now(runtime);
    ls_yield_core(runtime);
    *since = ls_now(runtime);
    if (*dear || *since - before <= p->dear_ns)
        return true;
    *dear = true;
    if (++p->borne < p->bears)
        return true;
    p->borne = p->bears - 1; /* who keeps the core may still be there then */
    p->sulk = p->penalty;
    p->good = 0;
    p->penalty = p->penalty < p->most / 4 ? 4 * p->penalty : p->most;
    return false;
}

/* One look. If it has come before this one slept, the wait went well. */
static inline bool patience_sees(struct patience *p, bool dear,
                                 bool (*has_come)(void *self), void *self)
{
    if (!has_come(self))
        return false;
    if (!dear)
        p->borne = 0;
    if (++p->good > PATIENCE_GOOD_WAITS) {
        p->good = 0;
        p->penalty = p->first;
    }
    return true;
}

/* Look for a while. Returns whether what is waited for has come. */
static inline bool patience_look(struct patience *p, ls_runtime *runtime,
                                 bool (*has_come)(void *self), void *self)
{
    int64_t since = 0;
    bool dear = false;
    if (p->sulk > 0) {
        p->sulk--;
        return has_come(self);
    }
    for (unsigned i = 1; i <= p->spins; i++) {
        if (patience_sees(p, dear, has_come, self))
            return true;
        if (i % PATIENCE_SPINS_PER_YIELD != 0)
            patience_pause();
        else if (!patience_yield(p, runtime, &since, &dear))
            return false;
        since = 0;
    }
    for (unsigned i = 0; i < p->yields; i++) {
        if (patience_sees(p, dear, has_come, self))
            return true;
        if (!patience_yield(p, runtime, &since, &dear))
            return false;
    }
    return false;
}

#endif
