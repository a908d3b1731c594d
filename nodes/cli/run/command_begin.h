/* command_begin.h - what comes before the nodes of a plan start.
 *
 * Thread: owner. */
#ifndef LOCKSTEP_COMMAND_BEGIN_H
#define LOCKSTEP_COMMAND_BEGIN_H

#include <stdbool.h>
#include <stdio.h>

#include "faults.h"
#include "plan.h"
#include "render.h"
#include "run_folder.h"

/* Say on stderr what the user should know of the plan. */
void command_warn(const struct plan *plan);

/* Begin the run of a plan, or go on with it, as its owner; its folder is the
 * plan's then. Members learn nothing: they get a folder where one can be made,
 * for those who want to call them.
 * resume: as run_folder_begin() has it.
 * Errors: those of run_folder_begin(); LS_ECONFIG members have nothing to
 *         resume. */
LS_MUST_USE int command_begin(struct run_folder *out, struct plan *plan,
                              bool fresh, bool aside, const char *resume);
/* The folder of a run that the launcher has begun. */
LS_MUST_USE int command_join(struct run_folder *out, struct plan *plan,
                             const char *name, bool keeps);
/* Say where it is. */
void command_show_run(render *shown, const struct run_folder *folder,
                      const struct plan *plan);

/* faults_load() for a command: on failure everything has been said. */
LS_MUST_USE int command_faults(struct faults *out, const char *name,
                               const struct plan *plan);

/* Open the file of --event-log, in the same way. out: own:
 * command_end_event_log(); NULL when path is. */
LS_MUST_USE int command_event_log(FILE **out, const char *path);
/* Close it. Returns exit_code; of a log that lacks lines, which is said, 1 in
 * place of 0. log: moved; NULL: there is none. */
LS_MUST_USE int command_end_event_log(FILE *log, const char *path,
                                      int exit_code);

#endif
