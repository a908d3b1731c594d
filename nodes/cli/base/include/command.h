/* command.h - what the words after `lockstep` do. Each returns the exit code.
 */
#ifndef LOCKSTEP_COMMAND_H
#define LOCKSTEP_COMMAND_H

#include "options.h"
#include "setup.h"

#define COMMAND_DO(NAME, name, takes_job)                                      \
    int command_##name(const struct options *options);
COMMAND_MAP(COMMAND_DO)
#undef COMMAND_DO

/* Say on stderr why the program ends: the last error. Returns its exit code. */
int command_failed(int status);

/* Say on stderr every problem of a configuration. report: not "". */
void command_print_report(const char *report);

/* setup_load() for a command: on failure everything has been said. */
LS_MUST_USE int command_setup(struct setup *out, const struct options *options);

#endif
