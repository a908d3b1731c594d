/* sweep_seed.h - one seed of a sweep, and the processes that run them. */
#ifndef LOCKSTEP_SWEEP_SEED_H
#define LOCKSTEP_SWEEP_SEED_H

#include "sweep.h"

/* What came of a seed; as it is, it goes through a pipe from a process to
 * another one of the same program. */
struct sweep_seed {
    bool violated;
    char text[LS_ERROR_TEXT_MAX]; /* of the violation */
    struct simulated_figures figures;
    uint64_t taken[LS_N_TRANSITIONS];
    size_t story_size; /* the last events before a violation */
    int signal; /* that told the process to end, instead of all this; 0: none */
};

/* Run one here. story: own: free(); NULL when there is none.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int sweep_one(struct sweep_seed *out, char **story,
                          const struct sweep_options *options, uint64_t seed);

typedef struct sweep_crew sweep_crew;

/* Start options->jobs processes. Errors: LS_EIO, LS_EAGAIN, LS_ENOMEM. */
LS_MUST_USE int sweep_crew_start(sweep_crew **out,
                                 const struct sweep_options *options);
/* What came of the next seed, in order; waits for it.
 * story: as above. Errors: LS_ENOMEM; LS_ECANCELED; LS_EIO. */
LS_MUST_USE int sweep_crew_next(sweep_crew *crew, struct sweep_seed *out,
                                char **story);
/* Each ends with the seed that it is at. Returns the worst of their exit codes,
 * of which nothing was said yet: one may fail at its very end. */
int sweep_crew_end(sweep_crew **crew);

#endif
