/* agent.h - what a node has of its plugin: environments, and a policy.
 *
 * Every node of a run starts with the same weights, since they follow from the
 * run's seed alone; environments and choices draw from streams of the node's
 * own, so that no number depends on which node runs where, or when. A node that
 * was started again has other streams than before, so that it does not bring
 * the same again.
 * Thread: serial. */
#ifndef LOCKSTEP_AGENT_H
#define LOCKSTEP_AGENT_H

#include "lockstep/context.h"
#include "lockstep/plugin.h"
#include "lockstep/random.h"

#include "plan.h"
#include "trajectory_codec.h"

/* One environment, where it stands, and its share of chance. */
struct agent_env {
    void *state;        /* own */
    float *observation; /* own; what the next action is for */
    struct ls_rng noise;
    bool begun;            /* an episode is under way */
    double episode_return; /* of it so far */
};

struct agent {
    const struct ls_plugin *plugin; /* borrow */
    struct ls_env_spec spec;
    struct agent_env *envs; /* own; n_envs */
    size_t n_envs;
    void *policy;                  /* own */
    ls_writer *writer;             /* own */
    float *action, *next, *extras; /* own; of the step that is being taken */
};

/* Make n_envs environments (>= 1) and the policy from the plan's sections.
 * generation: how often the node was started before.
 * Problems that the plugin notes about them are in the configuration's report.
 * out:    own; written on success only; give it to agent_fini().
 * Errors: what the plugin's init returns, with its name; LS_EHANDLER it names
 *         shapes outside the limits of plugin.h; LS_ENOMEM. */
LS_MUST_USE int agent_init(struct agent *out, const struct ls_plugin *plugin,
                           const struct plan *plan, uint32_t node_id,
                           unsigned generation, size_t n_envs);
void agent_fini(struct agent *agent);

/* The shape of what this agent brings or takes. */
struct trajectory_shape agent_shape(const struct agent *agent, size_t n_max);

/* What one step did; the floats are in agent->action, next and extras. */
struct agent_step {
    float reward;
    bool terminated, truncated;
    double episode_return; /* when it ended: of the whole episode */
};

/* Take one step in an environment, beginning an episode when none is under
 * way. env->observation must not be needed after: it becomes the next one.
 * before: NULL, or a copy of the observation that was acted on goes there. */
LS_MUST_USE int agent_step(struct agent *agent, struct agent_env *env,
                           bool explore, float *before, struct agent_step *out);

/* The policy's weights as one value, and back. */
LS_MUST_USE int agent_save(struct agent *agent, struct ls_bytes *out);
LS_MUST_USE int agent_load(struct agent *agent, const struct ls_bytes *in);

#endif
