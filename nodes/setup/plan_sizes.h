/* plan_sizes.h - how many bytes a job moves and keeps, as its plugin and its
 * plan say, and whether there is room for them.
 *
 * A job that could not work is refused before it begins: by `check`, and by all
 * that starts nodes.
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_SIZES_H
#define LOCKSTEP_PLAN_SIZES_H

#include "agent.h"

/* Find them with this agent of the plan's plugin, and note for
 * ls_config_finish() what there is no room for, with the key to change.
 * Errors: those of agent_save(). */
LS_MUST_USE int plan_read_sizes(struct plan *plan, struct agent *agent);

#endif
