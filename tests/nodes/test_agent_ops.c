/* agent_ops.h: a plugin's environments and policy at work for services. */
#include "agent_ops.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

/* An environment that counts its steps; an episode has five, each worth 1. The
 * policy's weights are one number, which learning raises by the rewards. */
struct counting {
    int64_t step;
};

static int env_init(void *env, ls_config_section *config, uint64_t seed)
{
    (void)env;
    (void)config;
    (void)seed;
    return LS_OK;
}

static void nothing(void *state)
{
    (void)state;
}

static void env_spec(const void *env, struct ls_env_spec *out)
{
    (void)env;
    *out = (struct ls_env_spec){
        .n_observation = 1, .n_action = 1, .n_choices = 2, .max_steps = 5};
}

static int env_reset(void *env, float *observation)
{
    struct counting *counting = env;
    counting->step = 0;
    observation[0] = 0.0f;
    return LS_OK;
}

static int env_step(void *env, const float *action, float *observation,
                    float *reward, bool *terminated, bool *truncated)
{
    struct counting *counting = env;
    (void)action;
    counting->step++;
    observation[0] = (float)counting->step;
    *reward = 1.0f;
    *terminated = counting->step == 5;
    *truncated = false;
    return LS_OK;
}

static int policy_init(void *policy, ls_config_section *config,
                       const struct ls_env_spec *spec, uint64_t seed)
{
    (void)config;
    (void)spec;
    (void)seed;
    *(int64_t *)policy = 1000;
    return LS_OK;
}

static int act(void *policy, const float *observation, bool explore,
               uint64_t noise, float *action, float *extras)
{
    (void)policy;
    (void)observation;
    (void)noise;
    (void)extras;
    action[0] = explore ? 1.0f : 0.0f;
    return LS_OK;
}

static int learn(void *policy, const struct ls_trajectory *trajectories,
                 size_t n, struct ls_learn_info *info)
{
    for (size_t i = 0; i < n; i++)
        *(int64_t *)policy += (int64_t)trajectories[i].n;
    info->n = 2;
    info->items[0].name = "loss/policy";
    info->items[0].value = (double)n;
    info->items[1].name = "..";
    info->items[1].value = (double)trajectories[0].observations[0];
    assert_true(info->priorities[0] == 0.5 && info->priorities[1] == 0.25);
    info->priorities[1] = 7.0;
    return LS_OK;
}

static int save(const void *policy, ls_writer *out)
{
    ls_write_int(out, *(const int64_t *)policy);
    return LS_OK;
}

static int load(void *policy, const ls_value *in)
{
    return ls_value_int(in, policy);
}

static const struct ls_env_ops env_ops = {.state_bytes =
                                              sizeof(struct counting),
                                          .init = env_init,
                                          .fini = nothing,
                                          .spec = env_spec,
                                          .reset = env_reset,
                                          .step = env_step};
static const struct ls_policy_ops policy_ops = {.state_bytes = sizeof(int64_t),
                                                .init = policy_init,
                                                .fini = nothing,
                                                .act = act,
                                                .learn = learn,
                                                .save = save,
                                                .load = load};
static const struct ls_plugin plugin = {.abi = LS_PLUGIN_ABI,
                                        .name = "counting",
                                        .version = "1",
                                        .env = &env_ops,
                                        .policy = &policy_ops};

struct both {
    struct plan plan;
    struct agent_learner *learner;
    struct agent_collector *collector;
    struct ls_bytes data;
};

static int set_up(void **state)
{
    static struct both both;
    memset(&both, 0, sizeof both);
    both.plan.envs = 2;
    *state = &both;
    return agent_learner_create(&both.learner, &plugin, &both.plan, 1, 0, 8,
                                2) ||
           agent_collector_create(&both.collector, &plugin, &both.plan, 2, 0);
}

static int tear_down(void **state)
{
    struct both *both = *state;
    agent_learner_destroy(&both->learner);
    agent_collector_destroy(&both->collector);
    ls_bytes_clear(&both->data);
    return 0;
}

EACH_TEST(set_up, tear_down)

TEST(environments_take_turns)
{
    struct both *both = *state;
    struct collected what;
    for (int64_t i = 0; i < 4; i++) {
        assert_ok(agent_collector_ops.collect(both->collector, 8, &both->data,
                                              &what));
        assert_int_equal(what.env_id, i % 2);
        assert_int_equal(what.steps, 8);
        /* Episodes of five steps go on from one trajectory to the next. */
        assert_int_equal(what.episodes, i < 2 ? 1 : 2);
        assert_true(what.return_sum == (i < 2 ? 5.0 : 10.0));
    }
}

TEST(a_reset_gives_up_episodes_that_are_under_way)
{
    struct both *both = *state;
    struct collected what;
    for (int i = 0; i < 3; i++) {
        assert_ok(agent_collector_ops.reset(both->collector));
        assert_ok(agent_collector_ops.collect(both->collector, 4, &both->data,
                                              &what));
        assert_int_equal(what.env_id, 0);
        assert_int_equal(what.episodes, 0);
    }
}

TEST(an_evaluation_leaves_what_is_collected_alone)
{
    struct both *both = *state;
    struct collected what;
    double episode_return;
    int64_t steps;
    for (int i = 0; i < 2; i++) {
        assert_ok(agent_collector_ops.collect(both->collector, 3, &both->data,
                                              &what));
        assert_int_equal(what.episodes, 0);
        assert_ok(agent_collector_ops.evaluate(both->collector, &episode_return,
                                               &steps));
        assert_true(episode_return == 5.0);
        assert_int_equal(steps, 5);
    }
    assert_ok(
        agent_collector_ops.collect(both->collector, 3, &both->data, &what));
    assert_int_equal(what.episodes, 1);
}

static int learn_from(struct both *both, const struct sample *sample,
                      struct learner_info *values)
{
    const struct learner_sample samples[] = {
        {sample, both->data.data, both->data.size},
        {sample, both->data.data, both->data.size}};
    double priorities[] = {0.5, 0.25};
    int status = agent_learner_ops.read(both->learner, 1, samples, 2);
    if (status == LS_OK)
        status = agent_learner_ops.learn(both->learner, 1, samples, 2, values,
                                         priorities);
    if (status == LS_OK)
        assert_true(priorities[0] == 0.5 && priorities[1] == 7.0);
    return status;
}

TEST(it_learns_from_the_steps_that_are_meant)
{
    struct both *both = *state;
    struct collected what;
    struct learner_info values = {.n_values = 0};
    struct ls_bytes weights = {NULL, 0};
    const struct sample part = {
        .data_id = "d.1", .unroll_len = 2, .split = true, .split_begin = 3};
    assert_ok(
        agent_collector_ops.collect(both->collector, 8, &both->data, &what));
    assert_ok(learn_from(both, &part, &values));
    assert_int_equal(values.n_values, 2);
    assert_string_equal(values.values[0].name, "loss_policy");
    assert_true(values.values[0].value == 2.0);
    assert_string_equal(values.values[1].name, "__");
    assert_true(values.values[1].value == 3.0);
    assert_ok(agent_learner_ops.save(both->learner, &weights));
    assert_int_equal(weights.size, 3); /* 1004 */
    assert_memory_equal(weights.data, "\xcd\x03\xec", 3);
    assert_ok(agent_collector_ops.load(both->collector, &weights));
    assert_ok(agent_learner_ops.reset(both->learner));
    assert_ok(agent_learner_ops.save(both->learner, &weights));
    assert_memory_equal(weights.data, "\xcd\x03\xe8", 3); /* 1000 */
    assert_ok(agent_learner_ops.load(both->learner, &weights));
    ls_bytes_clear(&weights);
}

TEST(data_that_is_no_trajectory_is_named)
{
    struct both *both = *state;
    struct learner_info values = {.n_values = 0};
    const struct sample sample = {.data_id = "d.1", .unroll_len = 8};
    assert_ok(ls_bytes_set(&both->data, "junk", 4));
    assert_fails(learn_from(both, &sample, &values), LS_EPROTO);
    assert_error_has("data d.1");
    assert_int_equal(values.n_values, 0);
}

TEST(data_longer_than_expected_is_refused)
{
    struct both *both = *state;
    struct collected what;
    struct learner_info values = {.n_values = 0};
    const struct sample sample = {.data_id = "d.1", .unroll_len = 9};
    assert_ok(
        agent_collector_ops.collect(both->collector, 9, &both->data, &what));
    assert_fails(learn_from(both, &sample, &values), LS_EPROTO);
}
