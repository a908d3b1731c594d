/* The plugin counter: nothing to learn, but all there is to do around it.
 *
 * The policy counts how often it has learned, and acts by that number; the
 * return of an episode is the number that was acted by. So an evaluation says
 * which policy it was of, and a job is solved after as many updates as it asks
 * for. What it has learned from gets the priority that its section says, and is
 * counted, so that there is something that others do not act by. Learners that
 * share a batch count what all of them have learned from. What takes its time
 * is the cluster alone: for simulations, and for measuring. */
#include <inttypes.h>

#include "lockstep/plugin.h"

struct counter_env {
    uint32_t length, done; /* steps of an episode */
};

static int env_init(void *state, ls_config_section *config, uint64_t seed)
{
    struct counter_env *env = state;
    (void)seed;
    env->length = (uint32_t)ls_config_int(config, "steps", 8, 1, 1 << 20);
    return LS_OK;
}

static void env_fini(void *state)
{
    (void)state;
}

static void env_spec(const void *state, struct ls_env_spec *out)
{
    const struct counter_env *env = state;
    *out = (struct ls_env_spec){.observation = {.type = LS_F32},
                                .action = {.type = LS_F32},
                                .max_steps = env->length};
}

static int env_reset(void *state, void *observation)
{
    struct counter_env *env = state;
    env->done = 0;
    *(float *)observation = 0.0f;
    return LS_OK;
}

static int env_step(void *state, const void *action, void *observation,
                    float *reward, bool *terminated, bool *truncated)
{
    struct counter_env *env = state;
    env->done++;
    *(float *)observation = (float)env->done;
    *terminated = env->done == env->length;
    *truncated = false;
    *reward = *terminated ? *(const float *)action : 0.0f;
    return LS_OK;
}

struct counter_policy {
    int64_t updates, steps; /* that it has learned from */
    double priority;        /* of what was learned from; below 0: what it had */
};

static int policy_init(void *state, ls_config_section *config,
                       const struct ls_env_spec *spec, uint64_t seed)
{
    struct counter_policy *policy = state;
    (void)seed;
    policy->priority = ls_config_double(config, "priority", -1.0, 0.0, 1e6);
    if (ls_space_count(&spec->action) != 1 || spec->action.type != LS_F32)
        return ls_error(LS_EMISMATCH,
                        "counter acts by 1 float, not %zu of "
                        "any type",
                        ls_space_count(&spec->action));
    return LS_OK;
}

static void policy_fini(void *state)
{
    (void)state;
}

static int policy_act(void *state, const struct ls_act *rows)
{
    const struct counter_policy *policy = state;
    float *actions = rows->actions;
    for (size_t i = 0; i < rows->n; i++)
        actions[i] = (float)policy->updates;
    return LS_OK;
}

static int policy_learn(void *state, const struct ls_learn_batch *batch,
                        struct ls_learn_info *info)
{
    struct counter_policy *policy = state;
    size_t steps = 0;
    for (size_t i = 0; i < batch->n; i++)
        steps += batch->trajectories[i].n;
    int64_t counted = (int64_t)steps;
    if (batch->group != NULL) {
        const int status =
            ls_group_all_reduce(batch->group, &counted, 1, LS_GROUP_I64,
                                LS_GROUP_SUM, LS_WAIT_DEFAULT);
        if (status != LS_OK)
            return status;
    }
    policy->updates++;
    policy->steps += counted;
    for (size_t i = 0; i < steps && policy->priority >= 0.0; i++)
        info->td_errors[i] = (float)policy->priority;
    info->n = 2;
    info->items[0].name = "updates";
    info->items[0].value = (double)policy->updates;
    info->items[1].name = "trajectories";
    info->items[1].value = (double)batch->n;
    return LS_OK;
}

static int policy_save(const void *state, ls_writer *out)
{
    const struct counter_policy *policy = state;
    ls_write_int(out, policy->updates);
    return LS_OK;
}

static int policy_load(void *state, const ls_value *in)
{
    struct counter_policy *policy = state;
    int64_t updates;
    const int status = ls_value_int(in, &updates);
    if (status != LS_OK)
        return status;
    if (updates < 0)
        return ls_error(LS_EPROTO, "%" PRId64 " updates are not a count",
                        updates);
    policy->updates = updates;
    return LS_OK;
}

static int steps_save(const void *state, ls_writer *out)
{
    const struct counter_policy *policy = state;
    ls_write_int(out, policy->steps);
    return LS_OK;
}

static int steps_load(void *state, const ls_value *in)
{
    struct counter_policy *policy = state;
    return ls_value_int(in, &policy->steps);
}

static const struct ls_state_part policy_parts[] = {
    {"steps", steps_save, steps_load}};

static int env_save(const void *state, ls_writer *out)
{
    const struct counter_env *env = state;
    ls_write_uint(out, env->done);
    return LS_OK;
}

static int env_load(void *state, const ls_value *in)
{
    struct counter_env *env = state;
    uint64_t done;
    const int status = ls_value_uint(in, &done);
    if (status != LS_OK)
        return status;
    if (done > env->length)
        return ls_error(LS_EMISMATCH, "step %" PRIu64 " of %u", done,
                        (unsigned)env->length);
    env->done = (uint32_t)done;
    return LS_OK;
}

static const struct ls_state_part env_parts[] = {{"step", env_save, env_load}};

static const struct ls_env_ops env = {
    .state_bytes = sizeof(struct counter_env),
    .init = env_init,
    .fini = env_fini,
    .spec = env_spec,
    .reset = env_reset,
    .step = env_step,
    .parts = env_parts,
    .n_parts = 1,
};

static const struct ls_policy_ops policy = {
    .state_bytes = sizeof(struct counter_policy),
    .learns_in_group = true,
    .init = policy_init,
    .fini = policy_fini,
    .act = policy_act,
    .learn = policy_learn,
    .save = policy_save,
    .load = policy_load,
    .parts = policy_parts,
    .n_parts = 1,
};

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_plugin table = {
        .abi = LS_PLUGIN_ABI,
        .name = "counter",
        .version = "1",
        .env = &env,
        .policy = &policy,
    };
    return &table;
}
