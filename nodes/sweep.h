/* sweep.h - the same job under one schedule of faults after another.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_SWEEP_H
#define LOCKSTEP_SWEEP_H

#include <stdio.h>

#include "faults.h"
#include "setup.h"
#include "simulated.h"

struct sweep_options {
    const struct plan *plan;     /* borrow */
    const struct plugin *plugin; /* borrow; may be NULL */
    const struct faults *faults; /* borrow */
    uint64_t first, n;           /* seeds */
    FILE *log;                   /* borrow; NULL: none */
    FILE *last_events;           /* borrow; where they go after a violation */
    /* After each seed; false: that was the last. May be NULL. */
    bool (*progress)(void *self, uint64_t n_done);
    void *self;
};

struct sweep_result {
    uint64_t runs;
    struct simulated_figures sum; /* of all runs */
    int64_t real_ns;
    bool violated;
    uint64_t seed;                /* of the violation */
    char text[LS_ERROR_TEXT_MAX]; /* which promise it breaks, and how */
};

/* Run seed after seed, until one breaks a promise or progress has enough.
 * out: written on success; a violation is a result. Errors: LS_ENOMEM. */
LS_MUST_USE int sweep_run(struct sweep_result *out,
                          const struct sweep_options *options);

#endif
