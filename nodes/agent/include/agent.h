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

/* One environment, where it stands, and its share of chance. What its next
 * action is for is its row of agent->observations. */
struct agent_env {
    void *state; /* own */
    struct ls_rng noise;
    bool begun;            /* an episode is under way */
    double episode_return; /* of it so far */
    struct agent_played {
        int64_t steps;
        int64_t episodes;  /* that ended in it */
        double return_sum; /* of those, each as a whole */
    } played;              /* since the call that is under way began */
};

struct agent {
    const struct ls_plugin *plugin;                        /* borrow */
    const ls_config_section *env_section, *policy_section; /* borrow: plan */
    struct ls_env_spec spec;
    size_t observation_bytes, action_bytes; /* of one */
    struct agent_env *envs;                 /* own; n_envs */
    size_t n_envs;
    void *policy;    /* own */
    void **replicas; /* own; n_replicas more policies */
    size_t n_replicas;
    ls_writer *writer; /* own */
    /* own; a row for each environment */
    unsigned char *observations, *next, *actions;
    float *extras;
    uint64_t *noise;
    struct agent_threads *threads; /* own; NULL: there is the caller's alone */
};

/* What a function of the plugin returned, with its name and `where` in front of
 * the text. ls_error_clear() before the call: one that left no text is told by
 * its status, and not by what went wrong before. */
int agent_plugin_error(const struct ls_plugin *plugin, int status,
                       const char *where);

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

/* As node_id, with generation 0: the streams of evaluations, so that those of a
 * policy are the same whichever node plays them, in whichever life. The second
 * evaluator of a job has the id before this one, and so on. */
#define AGENT_EVALUATOR UINT32_MAX

/* Step environments on n threads from now on, the caller's included; it does
 * not change what comes of them. No more than environments are used.
 * Errors: LS_ENOMEM; LS_EAGAIN no room for a thread. */
LS_MUST_USE int agent_use_threads(struct agent *agent, ls_runtime *runtime,
                                  size_t n);
/* And on the caller's alone again. */
void agent_end_threads(struct agent *agent);

/* Make n more policies from the plan's section, for devices that learn at the
 * same time. Errors: as agent_init(). */
LS_MUST_USE int agent_add_replicas(struct agent *agent, const struct plan *plan,
                                   size_t n);
/* Give them the state of the policy, all of it. */
LS_MUST_USE int agent_align_replicas(struct agent *agent);

/* The shape of what this agent brings or takes. */
struct trajectory_shape agent_shape(const struct agent *agent, size_t n_max);

/* Take the next `steps` steps in each of `n` environments from `first` on,
 * exploring; an episode that is under way goes on, and the next begins when one
 * ends.
 * trajectories: n of this agent's shape, each with room for as many steps.
 * task:   looked at before each step; NULL: none.
 * out:    added to.
 * Errors: the plugin's; what the task is cancelled with. */
LS_MUST_USE int agent_collect(struct agent *agent, size_t first, size_t n,
                              struct ls_trajectory *trajectories, size_t steps,
                              ls_task *task, struct agent_played *out);

/* Act as best it can in one environment until an episode has ended: the one
 * that is under way, or a new one. The rest as above. */
LS_MUST_USE int agent_episode(struct agent *agent, size_t index, ls_task *task,
                              struct agent_played *out);

/* Back to the first weights, and to nothing learned. Errors: what the plugin's
 * init returns, and the policy is as it was; LS_ENOMEM. */
LS_MUST_USE int agent_renew_policy(struct agent *agent,
                                   const struct plan *plan);

/* Keep an environment as it is now, and bring it back to that, with its share
 * of chance: what is played from there is the same each time. One that cannot
 * be saved goes on instead.
 * Errors: the plugin's; LS_ENOMEM. */
LS_MUST_USE int agent_keep_env(struct agent *agent, size_t index,
                               struct ls_bytes *out);
LS_MUST_USE int agent_restore_env(struct agent *agent, size_t index,
                                  const struct ls_bytes *kept);

/* Of a value that holds what a plugin writes: as deep as a writer goes, and as
 * many numbers, one by one, as are of use. */
extern const struct ls_codec_limits agent_limits;

/* What the policy acts by as one value, and back. */
LS_MUST_USE int agent_save(struct agent *agent, struct ls_bytes *out);
LS_MUST_USE int agent_load(struct agent *agent, const struct ls_bytes *in);

/* All else that decides what is learned from here on, as a map of the policy's
 * parts, and back; as bytes too. Errors: the plugin's, with the part's name;
 * LS_EPROTO a part is missing. */
LS_MUST_USE int agent_save_training(struct agent *agent, struct ls_bytes *out);
LS_MUST_USE int agent_load_training(struct agent *agent,
                                    const struct ls_bytes *in);
LS_MUST_USE int agent_write_training(const struct agent *agent, ls_writer *out);
LS_MUST_USE int agent_read_training(struct agent *agent, const ls_value *in);

/* The environments, as a value, and back into an agent of the same plugin and
 * sections with as many: with the policy and the training it goes on as this
 * one would, to the bit. An environment that cannot be saved begins a new
 * episode.
 * Errors: the plugin's; LS_EPROTO; LS_EMISMATCH as many as others have. After
 * an error of the second the agent is of no use. */
LS_MUST_USE int agent_write_envs(const struct agent *agent, ls_writer *out);
LS_MUST_USE int agent_read_envs(struct agent *agent, const ls_value *in);

#endif
