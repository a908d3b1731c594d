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
#include "lockstep/task.h"

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
    void *policy;    /* own */
    void **replicas; /* own; n_replicas more policies */
    size_t n_replicas;
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

/* Make n more policies from the plan's section, for devices that learn at the
 * same time. Errors: as agent_init(). */
LS_MUST_USE int agent_add_replicas(struct agent *agent, const struct plan *plan,
                                   size_t n);
/* Give them the weights of the policy. */
LS_MUST_USE int agent_align_replicas(struct agent *agent);

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

/* Take the trajectory's next n steps in an environment, exploring; an episode
 * that is under way goes on. trajectory: has room for n of this agent's shape.
 * episodes, return_sum: of those that ended in it, each as a whole; added. */
LS_MUST_USE int agent_collect(struct agent *agent, struct agent_env *env,
                              struct ls_trajectory *trajectory, size_t n,
                              int64_t *episodes, double *return_sum);

/* Act as best it can until the episode ends, or from its beginning when none is
 * under way.
 * task: looked at before each step; NULL: none.
 * Errors: the plugin's; what the task is cancelled with. */
LS_MUST_USE int agent_episode(struct agent *agent, struct agent_env *env,
                              ls_task *task, double *episode_return,
                              int64_t *steps);

/* Improve the weights from n trajectories. */
LS_MUST_USE int agent_learn(struct agent *agent,
                            const struct ls_trajectory *trajectories, size_t n,
                            struct ls_learn_info *info);

/* Back to the first weights, and to nothing learned. Errors: what the plugin's
 * init returns, and the policy is as it was; LS_ENOMEM. */
LS_MUST_USE int agent_renew_policy(struct agent *agent,
                                   const struct plan *plan);

/* The policy's weights as one value, and back. */
LS_MUST_USE int agent_save(struct agent *agent, struct ls_bytes *out);
LS_MUST_USE int agent_load(struct agent *agent, const struct ls_bytes *in);

#endif
