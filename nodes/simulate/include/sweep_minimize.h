/* sweep_minimize.h - what of a seed's faults a violation needs.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_SWEEP_MINIMIZE_H
#define LOCKSTEP_SWEEP_MINIMIZE_H

#include "sweep.h"

struct sweep_minimized {
    struct faults faults; /* config NULL; own: faults_fini() */
    size_t n_before;      /* faults of the seed; n_script are left */
    uint64_t runs;        /* that it took */
    bool in_time;         /* else more may be taken away */
};

/* Take away what the violation does not need, as long as the same promise is
 * broken in the same seed, for so long at most. options->progress is called
 * after each run with their number; false: end with what there is.
 * out:    written on success.
 * Errors: LS_ESTATE: with these faults written down the promise is kept, or the
 *         seed crashes the program; LS_ENOMEM. */
LS_MUST_USE int sweep_minimize(struct sweep_minimized *out,
                               const struct sweep_options *options,
                               const struct sweep_result *result,
                               int64_t wait_ns);

#endif
