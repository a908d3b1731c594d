/* node_arguments.h - the command line of a node that a run starts, wherever. */
#ifndef LOCKSTEP_NODE_ARGUMENTS_H
#define LOCKSTEP_NODE_ARGUMENTS_H

#include "options.h"
#include "spawn_self.h"
#include "supervise.h"

/* All but where it reports, and the configuration, which comes last. launch:
 * endpoints and what else is of this life. out: the folder of the job's runs;
 * NULL: as the configuration says. */
void node_arguments(struct arguments *to, const struct plan *plan, size_t index,
                    const struct options *options, const struct launch *launch,
                    const char *out);

#endif
