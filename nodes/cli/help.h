/* help.h - what the program says about itself. */
#ifndef LOCKSTEP_HELP_H
#define LOCKSTEP_HELP_H

#include <stdio.h>

#include "lockstep/status.h"

/* The text on a topic: a command's name, "config", or NULL for the overview.
 * Errors: LS_EINVAL: nothing is known of it, with the nearest topic. */
LS_MUST_USE int help_print(FILE *to, const char *topic);

/* Three lines for someone who typed nothing. */
void help_print_short(FILE *to);

#endif
