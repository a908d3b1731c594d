/* The policy of the plugin cartpole on two devices at the same time. */
#include <string.h>

#include "cartpole.h"
#include "ppo.h"
#include "test.h"

enum { N_STEPS = 64, N_LEARNS = 4 };

static const struct ls_env_spec cart = {
    {LS_F32, 1, {4}}, {LS_F32, 0, {0}}, 2, 500};

struct share {
    float observations[N_STEPS][4], next_observations[N_STEPS][4];
    float actions[N_STEPS], rewards[N_STEPS], extras[N_STEPS];
    uint8_t terminated[N_STEPS], truncated[N_STEPS];
};

/* One device: its policy, what it learns from, and what came of it. */
struct device {
    struct ppo policy;
    struct share share;
    ls_group *group; /* NULL: alone */
    int status;
};

static void open_policy(struct ppo *policy, const char *yaml)
{
    ls_config *config = NULL;
    memset(policy, 0, sizeof *policy);
    assert_ok(ls_config_parse(&config, "test.yaml", yaml));
    ls_config_section *section =
        ls_config_section_at(ls_config_root(config), "policy");
    assert_ok(cartpole_policy.init(policy, section, &cart, 5));
    assert_ok(ls_config_finish(config));
    ls_config_destroy(&config);
}

static void fill(struct share *share, uint64_t seed)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, seed, 0);
    memset(share, 0, sizeof *share);
    for (size_t i = 0; i < N_STEPS; i++) {
        for (size_t k = 0; k < 4; k++) {
            share->observations[i][k] = (float)ls_rng_normal(&rng);
            share->next_observations[i][k] = (float)ls_rng_normal(&rng);
        }
        share->actions[i] = (float)ls_rng_below(&rng, 2);
        share->rewards[i] = share->actions[i];
        share->extras[i] = -0.6931472f;
    }
}

static void learn(void *arg)
{
    struct device *const device = arg;
    struct share *const share = &device->share;
    const struct ls_trajectory trajectory = {
        N_STEPS,           share->observations[0], share->next_observations[0],
        share->actions,    share->rewards,         share->extras,
        share->terminated, share->truncated};
    const struct ls_learn_batch batch = {
        .trajectories = &trajectory, .n = 1, .group = device->group};
    struct ls_learn_info info = {.n = 0};
    if (device->group != NULL)
        device->status = ls_group_form(device->group, LS_WAIT_DEFAULT);
    device->status = cartpole_policy.learn(&device->policy, &batch, &info);
    if (device->group != NULL)
        ls_group_leave(device->group, device->status);
}

static void learn_together(struct device *devices)
{
    ls_thread *threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "device",
                                  learn, &devices[i]));
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
}

static void open_devices(struct device *devices, const char *yaml)
{
    ls_group *groups[2];
    assert_ok(ls_group_threads(groups, ls_runtime_threads(), 2));
    for (size_t i = 0; i < 2; i++) {
        open_policy(&devices[i].policy, yaml);
        fill(&devices[i].share, i);
        devices[i].group = groups[i];
    }
}

static void assert_alike(const struct mlp *one, const struct mlp *other)
{
    assert_int_equal(one->n_parameters, other->n_parameters);
    assert_memory_equal(one->parameters, other->parameters,
                        one->n_parameters * sizeof(float));
}

static void close_devices(struct device *devices)
{
    for (size_t i = 0; i < 2; i++) {
        cartpole_policy.fini(&devices[i].policy);
        assert_ok(ls_group_destroy(&devices[i].group));
    }
}

TEST(devices_with_other_shares_stay_alike)
{
    static struct device devices[2];
    open_devices(devices, "policy: {}");
    for (uint64_t i = 0; i < N_LEARNS; i++) {
        learn_together(devices);
        assert_int_equal(devices[0].status, LS_OK);
        assert_int_equal(devices[1].status, LS_OK);
        assert_alike(&devices[0].policy.actor, &devices[1].policy.actor);
        assert_alike(&devices[0].policy.critic, &devices[1].policy.critic);
        fill(&devices[0].share, 10 + i);
        fill(&devices[1].share, 20 + i);
    }
    close_devices(devices);
}

TEST(equal_shares_learn_as_one_alone)
{
    static struct device devices[2], alone;
    open_devices(devices, "policy: {minibatch: 32}");
    open_policy(&alone.policy, "policy: {minibatch: 16}");
    for (uint64_t i = 0; i < N_LEARNS; i++) {
        fill(&devices[0].share, i);
        fill(&devices[1].share, i);
        fill(&alone.share, i);
        learn_together(devices);
        learn(&alone);
    }
    assert_alike(&devices[0].policy.actor, &alone.policy.actor);
    assert_alike(&devices[1].policy.critic, &alone.policy.critic);
    cartpole_policy.fini(&alone.policy);
    close_devices(devices);
}

TEST(one_that_fails_ends_the_other)
{
    static struct device devices[2];
    open_devices(devices, "policy: {}");
    devices[1].share.actions[3] = 7.0f;
    learn_together(devices);
    assert_int_equal(devices[0].status, LS_EABORTED);
    assert_int_equal(devices[1].status, LS_EINVAL);
    close_devices(devices);
}
