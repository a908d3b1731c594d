/* plan_sizes.h - how many bytes a job moves and keeps, as its plugin and its
 * plan say, and whether there is room for them.
 *
 * A job that could not work is refused before it begins: by `check`, and by all
 * that starts nodes.
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_SIZES_H
#define LOCKSTEP_PLAN_SIZES_H

#include <stdint.h>

#include "lockstep/status.h"

struct agent;
struct plan;

struct plan_sizes {
    uint64_t sample; /* a trajectory, as it is sent: of a service job the data
                      * of a sample, before it is split */
    uint64_t policy; /* as it is before it has learned */
    uint64_t replay; /* what all samples of a replay buffer may take in the
                      * store; 0: no limit */
};

/* Find them with this agent of the plan's plugin, and note for
 * ls_config_finish() what there is no room for, with the key to change.
 * Errors: those of agent_save(). */
LS_MUST_USE int plan_read_sizes(struct plan *plan, struct agent *agent);

/* The most samples that are kept at a time. */
int64_t plan_samples_kept(const struct plan *plan);

#endif
