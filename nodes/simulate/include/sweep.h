/* sweep.h - the same job under one schedule of faults after another.
 *
 * Seeds may be spread over processes; what comes out is the same as with one,
 * as what they say is read in the order of the seeds.
 * Thread: serial. */
#ifndef LOCKSTEP_SWEEP_H
#define LOCKSTEP_SWEEP_H

#include <stdio.h>

#include "coverage.h"
#include "faults.h"
#include "setup.h"
#include "simulated.h"
#include "spawn_self.h"

/* What a process that sweeps for another one writes to. */
#define SWEEP_REPORT_FD 3

struct sweep_options {
    const struct plan *plan;     /* borrow */
    const struct plugin *plugin; /* borrow; may be NULL */
    const struct faults *faults; /* borrow */
    uint64_t first, n;           /* seeds */
    uint64_t every;              /* only one in so many of these; 0: all */
    FILE *log;                   /* borrow; NULL: none */
    FILE *last_events;           /* borrow; where they go after a violation */
    /* After each seed; false: end here. */
    bool (*progress)(void *self, uint64_t n_done);
    void *self;

    uint64_t jobs; /* processes; 0, 1: this one alone */
    /* What a process is started with whose seeds are these. */
    void (*arguments)(void *self, struct arguments *out, uint64_t first,
                      uint64_t n, uint64_t every);
};

struct sweep_result {
    uint64_t runs;
    struct simulated_figures sum;     /* of all runs */
    uint64_t taken[LS_N_TRANSITIONS]; /* in all runs; inline/coverage.h */
    int64_t real_ns;
    uint64_t weights, weights_seed; /* of the first run that came to some */
    uint64_t n_weights;             /* runs that came to the same */
    int signal; /* that told one of the processes to end; 0: none */
    bool violated;
    uint64_t seed;                /* of the violation */
    char text[LS_ERROR_TEXT_MAX]; /* which promise it breaks, and how */
};

/* Run seed after seed, until one breaks a promise, or progress wants no more.
 * out: written on success; a violation is a result, and so is a process that
 *      crashes. Errors: LS_ENOMEM; LS_EIO, LS_EAGAIN: no process can be
 *      started. */
LS_MUST_USE int sweep_run(struct sweep_result *out,
                          const struct sweep_options *options);

/* Be one of the processes: write what comes of each seed to SWEEP_REPORT_FD,
 * until nobody reads it. Errors: LS_ENOMEM. */
LS_MUST_USE int sweep_serve(const struct sweep_options *options);

#endif
