/* bench_learner.h - a learner at work on batches that only take time.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_BENCH_LEARNER_H
#define LOCKSTEP_BENCH_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/learner.h"

#include "options.h"

struct bench_figures {
    struct ls_learner_counts counts;
    int64_t elapsed_ns;
    /* Parts of 1. With loaders, load + idle is their time and train + wait
     * that of the learner, but for its own work; without, all four are the
     * learner's. */
    double load, idle, train, wait;
    double load_ms, train_ms; /* of a batch, all passes; 0: none yet */
    double own_us;            /* of the learner, for a pass */
    double per_s;             /* batches trained */
    double ideal_per_s; /* of the slower stage, if it never waited; 0: none
                         * takes any time */
};

/* Called ten times a second or so, with the figures so far. Whether to go on.
 */
typedef bool bench_tick(void *self, const struct bench_figures *figures);

/* Run one for options->bench.seconds, or until tick says that it is enough.
 * Errors: those of ls_device_open() and ls_learner_create(). */
LS_MUST_USE int bench_learner(const struct options *options,
                              struct bench_figures *out, bench_tick *tick,
                              void *self);

#endif
