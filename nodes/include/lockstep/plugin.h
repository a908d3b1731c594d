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
 * Arrays between the framework and a plugin are in C order, row after row, each
 * aligned for its numbers. */
#ifndef LOCKSTEP_PLUGIN_H
#define LOCKSTEP_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/codec.h"
#include "lockstep/config.h"
#include "lockstep/device.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a table below changes its layout or its meaning. */
#define LS_PLUGIN_ABI 4

enum ls_element { LS_F32, LS_F64, LS_I32, LS_U8 }; /* float, double, … */

/* What one observation, or one action, is: an array of numbers. */
#define LS_SHAPE_MAX 4
struct ls_space {
    enum ls_element type;
    size_t n_dims; /* 0 … LS_SHAPE_MAX; 0: one number */
    size_t shape[LS_SHAPE_MAX];
};

/* How many numbers, and how many bytes. */
static inline size_t ls_space_count(const struct ls_space *space)
{
    size_t n = 1;
    for (size_t i = 0; i < space->n_dims && i < LS_SHAPE_MAX; i++)
        n *= space->shape[i];
    return n;
}
static inline size_t ls_space_bytes(const struct ls_space *space)
{
    static const size_t sizes[] = {sizeof(float), sizeof(double),
                                   sizeof(int32_t), sizeof(uint8_t)};
    return ls_space_count(space) * sizes[space->type];
}

/* What an environment shows and takes. */
struct ls_env_spec {
    struct ls_space observation; /* 1 … 1,048,576 numbers */
    struct ls_space action;      /* 1 … 65,536 numbers */
    uint32_t n_choices;          /* discrete: the action's first number is 0 …
                                  * n_choices-1; 0: all are free */
    uint32_t max_steps;          /* longest episode; 0: no limit */
};

/* A named part of a state, for who saves all of it to go on elsewhere as if
 * nothing had been: an optimiser, a generator, a counter. */
struct ls_state_part {
    const char *name; /* static text; unlike the others of its table */
    /* Write it as exactly one value. */
    int (*save)(const void *state, ls_writer *out);
    /* Read it back. Errors: LS_EPROTO or LS_EMISMATCH: not such a value, or
     * another shape; the state is then given up. */
    int (*load)(void *state, const ls_value *in);
};

struct ls_env_ops {
    size_t state_bytes;
    /* config: the section `env:`; borrow until init returns.
     * seed:   everything random in this state follows from it. */
    int (*init)(void *env, ls_config_section *config, uint64_t seed);
    void (*fini)(void *env);
    void (*spec)(const void *env, struct ls_env_spec *out);
    /* Start an episode; the observation is written. */
    int (*reset)(void *env, void *observation);
    /* Apply an action. All outputs are written. `terminated`: the task ended
     * here, nothing follows it; `truncated`: only the time was up. After
     * either, reset comes next. Several environments of a node may be stepped
     * at the same time, each on a thread (collector.threads). */
    int (*step)(void *env, const void *action, void *observation, float *reward,
                bool *terminated, bool *truncated);
    /* All of its state: with it an episode goes on where it was saved. n_parts
     * 0: it cannot be saved, and who goes on begins an episode. */
    const struct ls_state_part *parts;
    size_t n_parts;
};

/* `n` steps in the order in which one environment took them. Row i of
 * next_observations is what followed step i, also where an episode ended.
 * Borrow: for the call. */
struct ls_trajectory {
    size_t n;
    void *observations;      /* n observations */
    void *next_observations; /* n observations */
    void *actions;           /* n actions */
    float *rewards;          /* n */
    float *extras;           /* n × n_extras: what act() noted */
    uint8_t *terminated;     /* n, 0 or 1 */
    uint8_t *truncated;      /* n, 0 or 1 */
};

/* What is to be chosen for. Borrow: for the call. */
struct ls_act {
    size_t n;                 /* rows, >= 1 */
    const void *observations; /* n observations */
    bool explore;             /* as when collecting; else the best known */
    const uint64_t *noise;    /* n: 64 even random bits for each choice; the
                               * policy draws all its randomness from them, so
                               * that a run repeats whatever acts where */
    void *actions;            /* n actions: to be written */
    float *extras;            /* n × n_extras: to be written */
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

/* What is learned from. Borrow: for the call. */
struct ls_learn_batch {
    const struct ls_trajectory *trajectories;
    size_t n;      /* of them */
    unsigned pass; /* 0: the first one over this batch */
    /* Of the device that this state learns on. Every array of the trajectories
     * lies in its host buffer, and at the same offset in the device's memory,
     * where it is on its way: what runs on the stack's stream finds it there.
     * NULL: there is no device, as in a plugin's own tests. */
    ls_device_stack *stack;
    /* NULL: this state learns alone. */
    const struct ls_learn_group *group;
};

/* What learn() and the hooks say. */
#define LS_LEARN_INFO_MAX 16
struct ls_learn_info {
    /* Named numbers, shown in progress and summaries. */
    size_t n;
    struct {
        const char *name; /* static text */
        double value;
    } items[LS_LEARN_INFO_MAX];
    /* For each step of the batch, trajectory after trajectory, how wrong the
     * policy was about it. The mean of |td_error| over a sample is the priority
     * with which it may be drawn again, and that over the batch is the figure
     * "td_error". They are NaN where nothing was written, which says nothing.
     * Finite otherwise. Borrow: for the call; NULL in hooks. */
    float *td_errors;
};

/* What a policy does beside learning. No hook is called while the policy acts
 * or learns; one that fails ends what learn() would have ended. */
enum ls_hook_position {
    LS_BEFORE_RUN,  /* the weights are there; nothing was learned since */
    LS_BEFORE_ITER, /* learn() comes next */
    LS_AFTER_ITER,  /* the last pass over a batch is over */
    LS_AFTER_RUN    /* nothing is learned any more */
};
struct ls_policy_hook {
    const char *name; /* static text, for messages */
    enum ls_hook_position position;
    int64_t every; /* of *_iter: in each iteration whose number, from 0, it
                    * divides; 0: in each. Usual for what only tells: 100 */
    /* last_iter: iterations that were over before this one. info: empty; what
     * it says is said as learn()'s is. */
    int (*fn)(void *policy, int64_t last_iter, struct ls_learn_info *info);
};

struct ls_policy_ops {
    size_t state_bytes;
    /* Floats that act() notes for learn() with each step, 0 … 64. */
    size_t n_extras;
    /* Whether several states can learn together: ls_learn_batch.group. */
    bool learns_in_group;
    /* config: the section `policy:`. spec: the environment's.
     * The first weights follow from `seed` alone. */
    int (*init)(void *policy, ls_config_section *config,
                const struct ls_env_spec *spec, uint64_t seed);
    void (*fini)(void *policy);
    /* Choose. What is chosen in a row follows from that row alone, so it does
     * not matter how many there are. */
    int (*act)(void *policy, const struct ls_act *rows);
    /* Improve the weights. In a group gradients are means over it, and each
     * state is on a thread of its own. info: empty. */
    int (*learn)(void *policy, const struct ls_learn_batch *batch,
                 struct ls_learn_info *info);
    /* Write what act() needs as exactly one value, and read it back.
     * Errors of load: LS_EPROTO or LS_EMISMATCH: not such a value, or another
     * shape; what act() needs is then as it was. */
    int (*save)(const void *policy, ls_writer *out);
    int (*load)(void *policy, const ls_value *in);
    /* All else that decides what is learned from here on. */
    const struct ls_state_part *parts;
    size_t n_parts;
    const struct ls_policy_hook *hooks;
    size_t n_hooks;
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
