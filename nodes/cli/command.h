/* command.h - what the words after `lockstep` do. Each returns the exit code.
 */
#ifndef LOCKSTEP_COMMAND_H
#define LOCKSTEP_COMMAND_H

#include <stdio.h>

#include "faults.h"
#include "options.h"
#include "render.h"
#include "run_folder.h"
#include "setup.h"

#define COMMAND_DO(NAME, name, takes_job)                                      \
    int command_##name(const struct options *options);
COMMAND_MAP(COMMAND_DO)
#undef COMMAND_DO

/* How a run has ended, beside its exit code. */
struct run_end {
    char folder[LS_PATH_MAX]; /* of the run; "": it did not begin */
    bool done; /* by itself, solved or not: nothing is left to do */
};
/* The whole of `lockstep run`. Returns the exit code. */
int command_run_once(const struct options *options, struct run_end *end);

/* Say on stderr what the user should know before the nodes of this plan start.
 */
void command_warn(const struct plan *plan);

/* Begin the run of a plan, or go on with it, as its owner; its folder is the
 * plan's then. Members learn nothing: they get a folder where one can be made,
 * for those who want to call them.
 * resume: as run_folder_begin() has it.
 * Errors: those of run_folder_begin(); LS_ECONFIG members have nothing to
 *         resume. */
LS_MUST_USE int command_begin(struct run_folder *out, struct plan *plan,
                              bool fresh, const char *resume);
/* The folder of a run that the launcher has begun. */
LS_MUST_USE int command_join(struct run_folder *out, struct plan *plan,
                             const char *name, bool keeps);
/* Say where it is. */
void command_show_run(render *shown, const struct run_folder *folder,
                      const struct plan *plan);

/* Say on stderr why the program ends: the last error. Returns its exit code. */
int command_failed(int status);

/* setup_load() for a command: on failure everything has been said. */
LS_MUST_USE int command_setup(struct setup *out, const struct options *options);

/* faults_load() in the same way. */
LS_MUST_USE int command_faults(struct faults *out, const char *name,
                               const struct plan *plan);

/* Open the file of --event-log, in the same way. out: own: fclose(); NULL when
 * path is. */
LS_MUST_USE int command_event_log(FILE **out, const char *path);

#endif
