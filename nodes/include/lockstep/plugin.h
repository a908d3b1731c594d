/* plugin.h - what a task brings: an environment, a policy, or both.
 *
 * A plugin is a shared object that exports one function, ls_plugin(), which
 * returns a static table. The program `lockstep` finds the plugin by the name
 * or path in the configuration, checks the ABI number, and passes it the
 * sections `env:` and `policy:`. The framework allocates the state
 * (state_bytes, zeroed, aligned for any type) and calls init once before and
 * fini once after everything else. One thread at a time uses a state; a process
 * may hold many states. nodes/plugins/cartpole is the example to copy; where
 * several policies are learned, docs/examples/plugins/nim.c.
 *
 * Functions that return int return LS_OK, or a negative status with a sentence
 * left by ls_error(); the node then fails with both. All functions of a table
 * must be there, but for tensor().
 * The current folder is the whole node's, and what a run reads and writes is
 * found from it. init may change it, and it is changed back when that returns;
 * no other function may.
 * Arrays between the framework and a plugin are in C order, row after row, each
 * aligned for its element type. */
#ifndef LOCKSTEP_PLUGIN_H
#define LOCKSTEP_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/codec.h"
#include "lockstep/config.h"
#include "lockstep/device.h"
#include "lockstep/group.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a table below changes its layout or its meaning. */
#define LS_PLUGIN_ABI 6

enum ls_element { LS_F32, LS_F64, LS_I32, LS_U8 }; /* float, double, … */

/* The form of one observation or one action: an array of numbers. */
#define LS_SHAPE_MAX 4
struct ls_space {
    enum ls_element type;
    size_t n_dims; /* 0 … LS_SHAPE_MAX; 0: one number */
    size_t shape[LS_SHAPE_MAX];
};

/* Its size, in numbers and in bytes. */
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

/* What an environment returns and accepts. */
struct ls_env_spec {
    struct ls_space observation; /* 1 … 1,048,576 numbers */
    struct ls_space action;      /* 1 … 65,536 numbers */
    uint32_t n_choices;          /* discrete: the action's first number is 0 …
                                  * n_choices-1; 0: unrestricted */
    uint32_t max_steps;          /* longest episode; 0: no limit */
};

/* A named part of a state: an optimiser, a generator, a counter. All parts
 * saved and loaded elsewhere resume exactly where they left off. */
struct ls_state_part {
    const char *name; /* static text; unique in its table */
    /* Write it as exactly one value. */
    int (*save)(const void *state, ls_writer *out);
    /* Read it back. Errors: LS_EPROTO or LS_EMISMATCH: not such a value, or
     * another shape; the state is then discarded. */
    int (*load)(void *state, const ls_value *in);
};

struct ls_env_ops {
    size_t state_bytes;
    /* config: the section `env:`; borrow until init returns.
     * seed:   everything random in this state follows from it. */
    int (*init)(void *env, ls_config_section *config, uint64_t seed);
    void (*fini)(void *env);
    void (*spec)(const void *env, struct ls_env_spec *out);
    /* Start an episode and write the first observation. */
    int (*reset)(void *env, void *observation);
    /* Apply an action. Write all outputs. `terminated`: the task ended here,
     * nothing follows; `truncated`: only the time ran out. After either, reset
     * comes next. Several environments of a node may be stepped at the same
     * time, each on its own thread (collector.threads). */
    int (*step)(void *env, const void *action, void *observation, float *reward,
                bool *terminated, bool *truncated);
    /* All of its state: with it an episode resumes where it was saved, and an
     * evaluator plays the same episodes in each evaluation. n_parts 0: it
     * cannot be saved: a resumed run begins a new episode, and each evaluation
     * has other ones. */
    const struct ls_state_part *parts;
    size_t n_parts;
};

/* `n` steps in the order in which one environment took them. Row i of
 * next_observations is the observation after step i, even where an episode
 * ended. Borrow: for the call. */
struct ls_trajectory {
    size_t n;
    void *observations;      /* n observations */
    void *next_observations; /* n observations */
    void *actions;           /* n actions */
    float *rewards;          /* n */
    float *extras;           /* n × n_extras: written by act() */
    uint8_t *terminated;     /* n, 0 or 1 */
    uint8_t *truncated;      /* n, 0 or 1 */
};

/* The rows to choose actions for. Borrow: for the call. */
struct ls_act {
    size_t n;                 /* rows, >= 1 */
    const void *observations; /* n observations */
    bool explore;             /* true: as when collecting; false: the best known
                               * action */
    const uint64_t *noise;    /* n: 64 uniform random bits for each choice; the
                               * policy draws all its randomness from them, so
                               * that a run repeats whichever node acts */
    void *actions;            /* n actions: to be written */
    float *extras;            /* n × n_extras: to be written */
};

/* What learn() learns from. Borrow: for the call. */
struct ls_learn_batch {
    const struct ls_trajectory *trajectories;
    size_t n;      /* of them */
    unsigned pass; /* 0: the first one over this batch */
    /* Of the device that this state learns on. Every array of the trajectories
     * lies in its host buffer, and is being copied to the same offset in the
     * device's memory; work on the stack's stream finds it there.
     * NULL: there is no device, as in a plugin's own tests. */
    ls_device_stack *stack;
    /* The states of the policy that learn at the same time, each on a device of
     * its own, from equal shares of the batch: each is a rank. They begin
     * alike, and stay so if each changes its weights only by what is the same
     * in all, such as the mean of their gradients (ls_group_all_reduce()). What
     * an operation of the group returns, learn() returns. NULL: this state
     * learns alone. */
    ls_group *group;
    /* True once nobody needs what comes of this call, as when a run ends while
     * it goes on: return soon then, with any status, and everything is put back
     * as it was before the iteration. Where that takes long, ask now and then;
     * it costs some nanoseconds. NULL: it is needed. */
    bool (*is_given_up)(const void *self);
    const void *self;
};

/* What learn() and the hooks report. */
#define LS_LEARN_INFO_MAX 16
struct ls_learn_info {
    /* Named numbers, shown in progress and summaries. */
    size_t n;
    struct {
        const char *name; /* static text */
        double value;
    } items[LS_LEARN_INFO_MAX];
    /* For each step of the batch, trajectory after trajectory, the error of the
     * policy's estimate. The mean of |td_error| over a sample is the sample's
     * priority in the replay buffer; the mean over the batch is the figure
     * "td_error". Initially NaN, which means unknown; otherwise finite.
     * Borrow: for the call; NULL in hooks. */
    float *td_errors;
};

/* What a policy does besides learning. No hook runs while the policy acts or
 * learns; a hook that fails ends what a failing learn() would end. */
enum ls_hook_position {
    LS_BEFORE_RUN,  /* the weights are set; nothing has been learned since */
    LS_BEFORE_ITER, /* learn() comes next */
    LS_AFTER_ITER,  /* the last pass over a batch is done */
    LS_AFTER_RUN    /* nothing more will be learned */
};
struct ls_policy_hook {
    const char *name; /* static text, for messages */
    enum ls_hook_position position;
    int64_t every; /* of *_iter: runs in each iteration whose number, from 0, is
                    * a multiple of this; 0: in each. Usual for hooks that only
                    * report: 100 */
    /* last_iter: iterations completed before this one. info: empty; what it
     * reports is shown as learn()'s is. */
    int (*fn)(void *policy, int64_t last_iter, struct ls_learn_info *info);
};

/* An array of numbers that a policy acts by. */
#define LS_TENSOR_NAME_MAX 63
struct ls_tensor {
    char name[LS_TENSOR_NAME_MAX + 1]; /* UTF-8; unique in the policy */
    struct ls_space space;
    const void *data; /* borrow: until the policy learns, loads or ends */
};

struct ls_policy_ops {
    size_t state_bytes;
    /* Floats that act() writes for learn() with each step, 0 … 64. */
    size_t n_extras;
    /* Whether several states can learn together: ls_learn_batch.group. */
    bool learns_in_group;
    /* config: the section `policy:`. spec: the environment's.
     * The first weights follow from `seed` alone. */
    int (*init)(void *policy, ls_config_section *config,
                const struct ls_env_spec *spec, uint64_t seed);
    void (*fini)(void *policy);
    /* Choose actions. Each row's action must depend on that row alone, not on
     * the number of rows. */
    int (*act)(void *policy, const struct ls_act *rows);
    /* Improve the weights. In a group gradients are means over it, and each
     * state has its own thread. info: empty. */
    int (*learn)(void *policy, const struct ls_learn_batch *batch,
                 struct ls_learn_info *info);
    /* Write what act() needs as exactly one value, and read it back.
     * Errors of load: LS_EPROTO or LS_EMISMATCH: not such a value, or another
     * shape; what act() needs is then unchanged. */
    int (*save)(const void *policy, ls_writer *out);
    int (*load)(void *policy, const ls_value *in);
    /* All other state that affects what is learned from here on. */
    const struct ls_state_part *parts;
    size_t n_parts;
    const struct ls_policy_hook *hooks;
    size_t n_hooks;
    /* For `lockstep export`: the array of number `at`, from 0, of those that
     * act() uses; false: there are not so many. NULL: what save() writes is
     * exported as bytes. */
    bool (*tensor)(const void *policy, size_t at, struct ls_tensor *out);
};

struct ls_plugin {
    uint32_t abi;                       /* LS_PLUGIN_ABI */
    const char *name;                   /* as the configuration names it */
    const char *version;                /* the plugin's own: the same in all
                                         * nodes of a job, or they refuse each
                                         * other; and in weights, to be read */
    const struct ls_env_ops *env;       /* NULL: brings none */
    const struct ls_policy_ops *policy; /* NULL: brings none */
};

/* The only exported function. Borrow: the table lives as long as the plugin is
 * loaded. Define it as
 *   LS_API const struct ls_plugin *ls_plugin(void) { return &table; } */
LS_API const struct ls_plugin *ls_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
