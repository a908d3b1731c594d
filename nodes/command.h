/* command.h - what the words after `lockstep` do. Each returns the exit code.
 */
#ifndef LOCKSTEP_COMMAND_H
#define LOCKSTEP_COMMAND_H

#include <stdio.h>

#include "faults.h"
#include "options.h"
#include "setup.h"

int command_run(const struct options *options);
int command_node(const struct options *options);
int command_check(const struct options *options);
int command_sim(const struct options *options);
int command_call(const struct options *options);
int command_bench(const struct options *options);
int command_keygen(const struct options *options);

/* Say on stderr what the user should know before the nodes of this plan start.
 */
void command_warn(const struct plan *plan);

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
