/* outside.c - the smallest plugin: ten throws of a coin that pays for heads,
 * and a policy that learns which side does. */
#include <lockstep/plugin.h>

struct coin {
    unsigned n_thrown;
    unsigned per_episode;
};

static int coin_init(void *env, ls_config_section *config, uint64_t seed)
{
    (void)seed;
    struct coin *coin = env;
    coin->per_episode = (unsigned)ls_config_int(config, "throws", 10, 1, 1000);
    return LS_OK;
}

static void coin_fini(void *env)
{
    (void)env;
}

static void coin_spec(const void *env, struct ls_env_spec *out)
{
    const struct coin *coin = env;
    *out = (struct ls_env_spec){.observation = {.type = LS_I32},
                                .action = {.type = LS_U8},
                                .n_choices = 2,
                                .max_steps = coin->per_episode};
}

static int coin_reset(void *env, void *observation)
{
    ((struct coin *)env)->n_thrown = 0;
    *(int32_t *)observation = 0;
    return LS_OK;
}

static int coin_step(void *env, const void *action, void *observation,
                     float *reward, bool *terminated, bool *truncated)
{
    struct coin *coin = env;
    coin->n_thrown++;
    *(int32_t *)observation = (int32_t)coin->n_thrown;
    *reward = (float)*(const uint8_t *)action;
    *terminated = false;
    *truncated = coin->n_thrown == coin->per_episode;
    return LS_OK;
}

struct guess {
    double heads; /* what heads paid more than tails, so far */
};

static int guess_init(void *policy, ls_config_section *config,
                      const struct ls_env_spec *spec, uint64_t seed)
{
    (void)policy;
    (void)config;
    (void)seed;
    if (spec->n_choices != 2)
        return ls_error(LS_EMISMATCH, "guess: it knows two choices, not %u",
                        (unsigned)spec->n_choices);
    return LS_OK;
}

static void guess_fini(void *policy)
{
    (void)policy;
}

static int guess_act(void *policy, const struct ls_act *rows)
{
    const struct guess *guess = policy;
    uint8_t *actions = rows->actions;
    for (size_t i = 0; i < rows->n; i++)
        actions[i] =
            rows->explore ? rows->noise[i] & 1 : (guess->heads > 0.0 ? 1 : 0);
    return LS_OK;
}

static int guess_learn(void *policy, const struct ls_learn_batch *batch,
                       struct ls_learn_info *info)
{
    struct guess *guess = policy;
    for (size_t i = 0; i < batch->n; i++) {
        const struct ls_trajectory *trajectory = &batch->trajectories[i];
        const uint8_t *actions = trajectory->actions;
        for (size_t j = 0; j < trajectory->n; j++) {
            const double reward = (double)trajectory->rewards[j];
            guess->heads += actions[j] == 1 ? reward : -reward;
        }
    }
    info->n = 1;
    info->items[0].name = "heads";
    info->items[0].value = guess->heads;
    return LS_OK;
}

static int guess_save(const void *policy, ls_writer *out)
{
    ls_write_double(out, ((const struct guess *)policy)->heads);
    return LS_OK;
}

static int guess_load(void *policy, const ls_value *in)
{
    return ls_value_double(in, &((struct guess *)policy)->heads);
}

static const struct ls_env_ops coin_ops = {
    .state_bytes = sizeof(struct coin),
    .init = coin_init,
    .fini = coin_fini,
    .spec = coin_spec,
    .reset = coin_reset,
    .step = coin_step,
};

static const struct ls_policy_ops guess_ops = {
    .state_bytes = sizeof(struct guess),
    .init = guess_init,
    .fini = guess_fini,
    .act = guess_act,
    .learn = guess_learn,
    .save = guess_save,
    .load = guess_load,
};

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_plugin table = {
        .abi = LS_PLUGIN_ABI,
        .name = "outside",
        .version = "1",
        .env = &coin_ops,
        .policy = &guess_ops,
    };
    return &table;
}
