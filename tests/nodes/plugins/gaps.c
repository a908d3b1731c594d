/* A plugin that lacks what the variable GAP names; without it, nothing. */
#include <stdlib.h>
#include <string.h>

#include "lockstep/plugin.h"

static bool lacks(const char *what)
{
    const char *gap = getenv("GAP");
    return gap != NULL && strcmp(gap, what) == 0;
}

static int env_init(void *env, ls_config_section *config, uint64_t seed)
{
    (void)env;
    (void)config;
    (void)seed;
    return LS_OK;
}

static void fini(void *state)
{
    (void)state;
}

static void env_spec(const void *env, struct ls_env_spec *out)
{
    (void)env;
    *out = (struct ls_env_spec){.observation = {.type = LS_F32},
                                .action = {.type = LS_F32}};
}

static int env_reset(void *env, void *observation)
{
    (void)env;
    *(float *)observation = 0.0f;
    return LS_OK;
}

static int env_step(void *env, const void *action, void *observation,
                    float *reward, bool *terminated, bool *truncated)
{
    (void)action;
    *reward = 0.0f;
    *terminated = true;
    *truncated = false;
    return env_reset(env, observation);
}

static int policy_init(void *policy, ls_config_section *config,
                       const struct ls_env_spec *spec, uint64_t seed)
{
    (void)policy;
    (void)config;
    (void)spec;
    (void)seed;
    return LS_OK;
}

static int policy_act(void *policy, const struct ls_act *rows)
{
    (void)policy;
    memset(rows->actions, 0, rows->n * sizeof(float));
    return LS_OK;
}

static int policy_learn(void *policy, const struct ls_learn_batch *batch,
                        struct ls_learn_info *info)
{
    (void)policy;
    (void)batch;
    (void)info;
    return LS_OK;
}

static int save(const void *state, ls_writer *out)
{
    (void)state;
    ls_write_nil(out);
    return LS_OK;
}

static int load(void *state, const ls_value *in)
{
    (void)state;
    (void)in;
    return LS_OK;
}

static int hook_fn(void *policy, int64_t last_iter, struct ls_learn_info *info)
{
    (void)policy;
    (void)last_iter;
    (void)info;
    return LS_OK;
}

static struct ls_state_part parts[] = {{"a", save, load}, {"b", save, load}};
static struct ls_policy_hook hooks[] = {{"h", LS_AFTER_RUN, 0, hook_fn}};

static struct ls_env_ops make_env(void)
{
    const struct ls_env_ops env = {.init = lacks("env.init") ? NULL : env_init,
                                   .fini = lacks("env.fini") ? NULL : fini,
                                   .spec = lacks("env.spec") ? NULL : env_spec,
                                   .reset =
                                       lacks("env.reset") ? NULL : env_reset,
                                   .step = lacks("env.step") ? NULL : env_step,
                                   .parts = lacks("env.parts") ? NULL : parts,
                                   .n_parts = 2};
    return env;
}

static struct ls_policy_ops make_policy(void)
{
    const struct ls_policy_ops policy = {
        .init = lacks("policy.init") ? NULL : policy_init,
        .fini = lacks("policy.fini") ? NULL : fini,
        .act = lacks("policy.act") ? NULL : policy_act,
        .learn = lacks("policy.learn") ? NULL : policy_learn,
        .save = lacks("policy.save") ? NULL : save,
        .load = lacks("policy.load") ? NULL : load,
        .parts = lacks("policy.parts") ? NULL : parts,
        .n_parts = 2,
        .hooks = lacks("policy.hooks") ? NULL : hooks,
        .n_hooks = 1};
    return policy;
}

LS_API const struct ls_plugin *ls_plugin(void)
{
    static struct ls_env_ops env;
    static struct ls_policy_ops policy;
    static const struct ls_plugin table = {.abi = LS_PLUGIN_ABI,
                                           .name = "gaps",
                                           .version = "1",
                                           .env = &env,
                                           .policy = &policy};
    env = make_env();
    policy = make_policy();
    parts[0].load = lacks("a part's load") ? NULL : load;
    parts[1].name = lacks("a name of its own") ? "a" : "b";
    hooks[0].fn = lacks("a hook's fn") ? NULL : hook_fn;
    hooks[0].position =
        lacks("a position") ? (enum ls_hook_position)9 : LS_AFTER_RUN;
    return &table;
}
