/* places.h - where the ranks of a run are. */
#ifndef LOCKSTEP_DRIVER_PLACES_H
#define LOCKSTEP_DRIVER_PLACES_H

#include "driver_inside.h"

struct place_ops {
    const char *name;
    /* Errors: LS_EINVAL the options lack what this place needs. */
    int (*check)(const struct ls_driver_options *options);
    /* Make the groups of the ranks that are here, call driver_run_rank() for
     * each, and destroy what was made. The status says whether it could. */
    int (*run)(struct driver_run *run);
};

/* NULL: there is no such kind. */
const struct place_ops *place_of(enum ls_driver_kind kind);

/* Be rank number `at` of those that are here, from beginning to end. */
void driver_run_rank(struct driver_run *run, size_t at);

#endif
