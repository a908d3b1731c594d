/* plugin.h - what a task brings: an environment, a policy, or both.
 *
 * A plugin is a shared object that exports one function, ls_plugin(), which
 * returns a static table. The program `lockstep` finds it by the name or path
 * that the configuration gives, checks the ABI number, and hands its sections
 * `env:` and `policy:` to it. The framework allocates the state (state_bytes,
 * zeroed, aligned for anything) and calls init once before and fini once after
 * everything else. One state is used by one thread at a time; a process may
 * hold many. nodes/plugins/cartpole is the example to copy.
 *
 * Functions that return int: LS_OK, or a negative status with its sentence
 * left by ls_error(); the node then fails with both.
 * Numbers between the framework and a plugin are floats, in C order. */
#ifndef LOCKSTEP_PLUGIN_H
#define LOCKSTEP_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/codec.h"
#include "lockstep/config.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a table below changes its layout or its meaning. */
#define LS_PLUGIN_ABI 3

/* What an environment shows and takes. */
struct ls_env_spec {
    size_t n_observation; /* floats in one observation, 1 … 1,048,576 */
    size_t n_action;      /* floats in one action, 1 … 65,536 */
    uint32_t n_choices;   /* discrete: action[0] is 0 … n_choices-1;
                           * 0: every float of the action is free */
    uint32_t max_steps;   /* longest episode; 0: no limit */
};

struct ls_env_ops {
    size_t state_bytes;
    /* config: the section `env:`; borrow until init returns.
     * seed:   everything random in this state follows from it. */
    int (*init)(void *env, ls_config_section *config, uint64_t seed);
    void (*fini)(void *env);
    void (*spec)(const void *env, struct ls_env_spec *out);
    /* Start an episode; observation[n_observation] is written. */
    int (*reset)(void *env, float *observation);
    /* Apply action[n_action]. All outputs are written. `terminated`: the task
     * ended here, nothing follows it; `truncated`: only the time was up. After
     * either, reset comes next. */
    int (*step)(void *env, const float *action, float *observation,
                float *reward, bool *terminated, bool *truncated);
};

/* `n` steps in the order in which one environment took them. Row i of
 * next_observations is what followed step i, also where an episode ended.
 * Borrow: for the call. */
struct ls_trajectory {
    size_t n;
    float *observations;      /* n × n_observation */
    float *next_observations; /* n × n_observation */
    float *actions;           /* n × n_action */
    float *rewards;           /* n */
    float *extras;            /* n × n_extras: what act() noted */
    uint8_t *terminated;      /* n, 0 or 1 */
    uint8_t *truncated;       /* n, 0 or 1 */
};

/* Named numbers that learn() reports; shown in progress and summaries. */
#define LS_LEARN_INFO_MAX 16
struct ls_learn_info {
    size_t n;
    struct {
        const char *name; /* static text */
        double value;
    } items[LS_LEARN_INFO_MAX];
    /* For each trajectory of the batch the priority with which it may be drawn
     * again, finite and not negative: how wrong the policy was about it, as the
     * mean of its |td_error|. They hold what they were, and stay that where
     * learn() writes nothing. Borrow: for the call; NULL: nobody draws by
     * them. */
    double *priorities;
};

/* The states of a policy that learn at the same time, a device each, from equal
 * shares of a batch. They begin alike, and stay so if each changes its weights
 * only by what it has shared. */
struct ls_learn_group {
    size_t n; /* states */
    /* Replace values[n] with the means over all states; they are the same
     * everywhere, to the bit. Waits until every state has called it as often,
     * with as many values.
     * Errors: LS_EABORTED another state failed, or shares something else;
     *         return it. */
    int (*mean)(void *self, float *values, size_t n);
    void *self;
};

struct ls_policy_ops {
    size_t state_bytes;
    /* Floats that act() notes for learn() with each step, 0 … 64. */
    size_t n_extras;
    /* config: the section `policy:`. spec: the environment's.
     * The first weights follow from `seed` alone. */
    int (*init)(void *policy, ls_config_section *config,
                const struct ls_env_spec *spec, uint64_t seed);
    void (*fini)(void *policy);
    /* Choose action[n_action] for observation[n_observation] and note
     * extras[n_extras]. explore: as when collecting; else the best known.
     * noise: 64 even random bits for this choice; the policy draws all its
     * randomness from them, so that a run repeats whatever acts where. */
    int (*act)(void *policy, const float *observation, bool explore,
               uint64_t noise, float *action, float *extras);
    /* Improve the weights from n trajectories. info: filled. */
    int (*learn)(void *policy, const struct ls_trajectory *trajectories,
                 size_t n, struct ls_learn_info *info);
    /* Write what act() needs as exactly one value. */
    int (*save)(const void *policy, ls_writer *out);
    /* Read it back. Errors: LS_EPROTO or LS_EMISMATCH: not such a value, or
     * another shape; the weights are then as they were. */
    int (*load)(void *policy, const ls_value *in);
    /* As learn(), for one of several states; its gradients are means over the
     * group. On a thread of its own. NULL: the policy learns on one device. */
    int (*learn_in_group)(void *policy,
                          const struct ls_trajectory *trajectories, size_t n,
                          const struct ls_learn_group *group,
                          struct ls_learn_info *info);
};

struct ls_plugin {
    uint32_t abi;                       /* LS_PLUGIN_ABI */
    const char *name;                   /* as the configuration names it */
    const char *version;                /* the plugin's own */
    const struct ls_env_ops *env;       /* NULL: brings none */
    const struct ls_policy_ops *policy; /* NULL: brings none */
};

/* The one exported function. Borrow: the table lives as long as the plugin is
 * loaded. Define it as
 *   LS_API const struct ls_plugin *ls_plugin(void) { return &table; } */
LS_API const struct ls_plugin *ls_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
