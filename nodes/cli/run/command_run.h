/* command_run.h - one run, as the commands that make one need it.
 *
 * Thread: owner. */
#ifndef LOCKSTEP_COMMAND_RUN_H
#define LOCKSTEP_COMMAND_RUN_H

#include <stdbool.h>

#include "lockstep/file.h"

#include "options.h"

/* How a run has ended, beside its exit code. */
struct run_end {
    char folder[LS_PATH_MAX]; /* of the run; "": it did not begin */
    bool done; /* by itself, solved or not: nothing is left to do */
};
/* The whole of `lockstep run`. Returns the exit code. */
int command_run_once(const struct options *options, struct run_end *end);

#endif
