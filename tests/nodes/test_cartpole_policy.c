/* The policy of the plugin cartpole, through its table. */
#include "test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitized.h"
#include "cartpole.h"
#include "ppo.h"

#define FLOATS(n)                                                              \
    {                                                                          \
        LS_F32, 1,                                                             \
        {                                                                      \
            n                                                                  \
        }                                                                      \
    }
static const struct ls_env_spec cart = {FLOATS(4), FLOATS(1), 2, 500};

static int try_open(struct ppo *policy, const char *yaml,
                    const struct ls_env_spec *spec, uint64_t seed)
{
    ls_config *config = NULL;
    memset(policy, 0, sizeof *policy);
    assert_ok(ls_config_parse(&config, "test.yaml", yaml));
    ls_config_section *section =
        ls_config_section_at(ls_config_root(config), "policy");
    const int err = cartpole_policy.init(policy, section, spec, seed);
    if (err == LS_OK)
        assert_ok(ls_config_finish(config));
    ls_config_destroy(&config);
    return err;
}

static void open_policy(struct ppo *policy, const char *yaml, uint64_t seed)
{
    assert_ok(try_open(policy, yaml, &cart, seed));
}

static void close_policy(struct ppo *policy)
{
    cartpole_policy.fini(policy);
    cartpole_policy.fini(policy); /* a second one finds nothing */
}

static size_t saved(const struct ppo *policy, uint8_t *bytes, size_t room)
{
    ls_writer *writer = NULL;
    const void *data = NULL;
    size_t size = 0;
    assert_ok(ls_writer_create(&writer));
    assert_ok(cartpole_policy.save(policy, writer));
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_true(size <= room);
    memcpy(bytes, data, size);
    ls_writer_destroy(&writer);
    return size;
}

static int load(struct ppo *policy, const void *data, size_t size)
{
    ls_document *document = NULL;
    assert_ok(ls_document_read(&document, data, size, NULL));
    const int err = cartpole_policy.load(policy, ls_document_root(document));
    ls_document_destroy(&document);
    return err;
}

static float act(struct ppo *policy, const float *observation, bool explore,
                 uint64_t noise, float *extra)
{
    float action = -1.0f;
    const struct ls_act rows = {.n = 1,
                                .observations = observation,
                                .explore = explore,
                                .noise = &noise,
                                .actions = &action,
                                .extras = extra};
    assert_ok(cartpole_policy.act(policy, &rows));
    return action;
}

TEST(takes_environments_with_choices_only)
{
    struct ppo policy;
    const struct ls_env_spec specs[] = {
        {FLOATS(4), FLOATS(1), 0, 0}, {FLOATS(4), FLOATS(1), 1, 0},
        {FLOATS(4), FLOATS(2), 2, 0}, {FLOATS(4), FLOATS(1), 4097, 0},
        {{LS_U8, 0, {0}}, {0}, 2, 0}, {FLOATS(4), {LS_I32, 0, {0}}, 2, 0}};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_fails(try_open(&policy, "policy: {}", &specs[i], 1), LS_ECONFIG);
    close_policy(&policy);
}

TEST(explores_as_likely_as_it_notes)
{
    struct ppo policy;
    open_policy(&policy, "policy: {}", 31);
    /* Far out, so that the first weights prefer one choice a little. */
    const float observation[4] = {90.0f, -70.0f, 40.0f, 10.0f};
    enum { n = 4096 };
    double likely[2] = {0.0, 0.0};
    int count[2] = {0, 0};
    for (uint64_t i = 0; i < n; i++) {
        float extra = 1.0f;
        const float action =
            act(&policy, observation, true, i * (UINT64_MAX / n), &extra);
        assert_true(action == 0.0f || action == 1.0f);
        count[(int)action]++;
        likely[(int)action] = exp((double)extra);
    }
    assert_true(fabs(likely[0] + likely[1] - 1.0) < 1e-6);
    assert_true(fabs(likely[1] - (double)count[1] / n) < 1e-3);
    assert_true(likely[0] != likely[1]);

    float extra = 1.0f;
    const float best = likely[1] > likely[0] ? 1.0f : 0.0f;
    for (uint64_t i = 0; i < 64; i++)
        assert_true(act(&policy, observation, false, i << 58, &extra) == best);
    close_policy(&policy);
}

TEST(loads_what_another_saved)
{
    struct ppo first, second;
    uint8_t bytes[16384], again[16384];
    struct ls_rng rng;
    open_policy(&first, "policy: {}", 41);
    open_policy(&second, "policy: {}", 42);
    const size_t size = saved(&first, bytes, sizeof bytes);
    assert_int_equal(saved(&second, again, sizeof again), size);
    assert_memory_not_equal(bytes, again, size);
    assert_ok(load(&second, bytes, size));
    saved(&second, again, sizeof again);
    assert_memory_equal(bytes, again, size);
    ls_rng_seed(&rng, 41, 0);
    for (int i = 0; i < 100; i++) {
        float observation[4], extras[2] = {1.0f, 2.0f};
        for (int j = 0; j < 4; j++)
            observation[j] = (float)ls_rng_normal(&rng);
        const uint64_t noise = ls_rng_next(&rng);
        assert_true(act(&first, observation, true, noise, &extras[0]) ==
                    act(&second, observation, true, noise, &extras[1]));
        assert_true(extras[0] == extras[1]);
    }
    close_policy(&first);
    close_policy(&second);
}

static void refuse_load(struct ppo *policy, const void *data, size_t size,
                        int expected)
{
    uint8_t before[16384], after[16384];
    const size_t n = saved(policy, before, sizeof before);
    assert_int_equal(load(policy, data, size), expected);
    assert_int_equal(saved(policy, after, sizeof after), n);
    assert_memory_equal(before, after, n);
}

TEST(load_refuses_another_shape)
{
    struct ppo policy, other;
    uint8_t bytes[16384];
    const char *const shapes[] = {"policy: {hidden: 31}",
                                  "policy: {hidden_layers: 1}",
                                  "policy: {hidden_layers: 3}"};
    open_policy(&policy, "policy: {}", 51);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        open_policy(&other, shapes[i], 51);
        const size_t size = saved(&other, bytes, sizeof bytes);
        refuse_load(&policy, bytes, size, LS_EMISMATCH);
        close_policy(&other);
    }
    close_policy(&policy);
}

/* {"layers": [4, 32, 32, 2], "actor": n floats}, or less. */
static void refuse_made(struct ppo *policy, bool with_layers, size_t n)
{
    static const float numbers[2000];
    const uint64_t layers[] = {4, 32, 32, 2};
    ls_writer *writer = NULL;
    const void *data = NULL;
    size_t size = 0;
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, (with_layers ? 1u : 0u) + (n > 0 ? 1u : 0u));
    if (with_layers) {
        ls_write_string(writer, "layers");
        ls_write_array(writer, 4);
        for (int i = 0; i < 4; i++)
            ls_write_uint(writer, layers[i]);
    }
    if (n > 0) {
        ls_write_string(writer, "actor");
        ls_write_floats(writer, numbers, n);
    }
    assert_ok(ls_writer_bytes(writer, &data, &size));
    refuse_load(policy, data, size, LS_EPROTO);
    ls_writer_destroy(&writer);
}

TEST(load_refuses_what_are_no_weights)
{
    struct ppo policy;
    open_policy(&policy, "policy: {}", 61);
    refuse_load(&policy, "\xc0", 1, LS_EPROTO); /* nil */
    refuse_made(&policy, false, 0);
    refuse_made(&policy, false, 1282);
    refuse_made(&policy, true, 0);
    refuse_made(&policy, true, 1281); /* one short */
    close_policy(&policy);
}

static int load_numbers(struct ppo *policy, const uint64_t *numbers)
{
    const struct ls_state_part *part = &ppo_parts[2];
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    const void *data = NULL;
    size_t size = 0;
    assert_string_equal(part->name, "generator");
    assert_ok(ls_writer_create(&writer));
    ls_write_array(writer, 4);
    for (int i = 0; i < 4; i++)
        ls_write_uint(writer, numbers[i]);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_document_read(&document, data, size, NULL));
    const int err = part->load(policy, ls_document_root(document));
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    return err;
}

/* It would draw 0 for ever, and a shuffle waits for something else. */
TEST(load_refuses_a_generator_of_zeros)
{
    struct ppo policy;
    const uint64_t zeros[4] = {0}, numbers[4] = {0, 0, 0, 1};
    open_policy(&policy, "policy: {}", 71);
    const struct ls_rng before = policy.rng;
    assert_fails(load_numbers(&policy, zeros), LS_EPROTO);
    assert_memory_equal(&policy.rng, &before, sizeof before);
    assert_ok(load_numbers(&policy, numbers));
    assert_memory_equal(policy.rng.state, numbers, sizeof numbers);
    close_policy(&policy);
}

/* ---- learning ---- */

enum { n_trajectories = 6, n_steps = 128 };

struct collected {
    struct ls_trajectory trajectories[n_trajectories];
    float observations[n_trajectories][n_steps][4];
    float next_observations[n_trajectories][n_steps][4];
    float actions[n_trajectories][n_steps];
    float rewards[n_trajectories][n_steps];
    float extras[n_trajectories][n_steps];
    uint8_t terminated[n_trajectories][n_steps];
    uint8_t truncated[n_trajectories][n_steps];
};

static struct collected *make_room(void)
{
    struct collected *room = calloc(1, sizeof *room);
    assert_non_null(room);
    for (size_t i = 0; i < n_trajectories; i++)
        room->trajectories[i] =
            (struct ls_trajectory){n_steps,
                                   room->observations[i][0],
                                   room->next_observations[i][0],
                                   room->actions[i],
                                   room->rewards[i],
                                   room->extras[i],
                                   room->terminated[i],
                                   room->truncated[i]};
    return room;
}

/* Every trajectory from a fresh environment; returns the mean steps of the
 * episodes that ended. */
static double collect(struct ppo *policy, struct collected *room, uint64_t seed)
{
    void *env = calloc(1, cartpole_env.state_bytes);
    ls_config *config = NULL;
    struct ls_rng rng;
    assert_ok(ls_config_parse(&config, "test.yaml", "a: 1"));
    assert_ok(cartpole_env.init(env, ls_config_root(config), seed));
    ls_rng_seed(&rng, seed, 7);
    int n_ended = 0;
    for (size_t i = 0; i < n_trajectories; i++) {
        float now[4];
        assert_ok(cartpole_env.reset(env, now));
        for (size_t j = 0; j < n_steps; j++) {
            bool terminated, truncated;
            memcpy(room->observations[i][j], now, sizeof now);
            room->actions[i][j] =
                act(policy, now, true, ls_rng_next(&rng), &room->extras[i][j]);
            assert_ok(cartpole_env.step(env, &room->actions[i][j], now,
                                        &room->rewards[i][j], &terminated,
                                        &truncated));
            memcpy(room->next_observations[i][j], now, sizeof now);
            room->terminated[i][j] = terminated;
            room->truncated[i][j] = truncated;
            if (terminated || truncated) {
                n_ended++;
                assert_ok(cartpole_env.reset(env, now));
            }
        }
    }
    cartpole_env.fini(env);
    free(env);
    ls_config_destroy(&config);
    return (double)n_trajectories * n_steps / (n_ended + 1);
}

static void learn(struct ppo *policy, struct collected *room)
{
    float td_errors[n_trajectories * n_steps];
    struct ls_learn_info info = {.td_errors = td_errors};
    for (size_t i = 0; i < sizeof td_errors / sizeof td_errors[0]; i++)
        td_errors[i] = NAN;
    assert_ok(cartpole_policy.learn(
        policy,
        &(struct ls_learn_batch){.trajectories = room->trajectories,
                                 .n = n_trajectories},
        &info));
    for (size_t i = 0; i < sizeof td_errors / sizeof td_errors[0]; i++)
        assert_true(isfinite(td_errors[i]));
    assert_in_range(info.n, 1, LS_LEARN_INFO_MAX);
    for (size_t i = 0; i < info.n; i++) {
        assert_non_null(info.items[i].name);
        assert_true(isfinite(info.items[i].value));
    }
}

TEST(learning_makes_episodes_longer)
{
    if (SANITIZED) /* it takes one so long, and shows it nothing new */
        skip();
    struct ppo policy;
    struct collected *room = make_room();
    open_policy(&policy, "policy: {}", 71);
    const double before = collect(&policy, room, 1);
    for (uint64_t i = 1; i <= 10; i++) {
        learn(&policy, room);
        collect(&policy, room, i + 1);
    }
    assert_true(before < 30.0);
    assert_true(collect(&policy, room, 1) > 3.0 * before);
    close_policy(&policy);
    free(room);
}

static size_t weights_after(uint64_t seed, uint8_t *bytes, size_t size)
{
    struct ppo policy;
    struct collected *room = make_room();
    open_policy(&policy, "policy: {}", seed);
    for (uint64_t i = 0; i < 3; i++) {
        collect(&policy, room, i);
        learn(&policy, room);
    }
    const size_t n = saved(&policy, bytes, size);
    close_policy(&policy);
    free(room);
    return n;
}

TEST(a_seed_gives_the_same_weights_to_the_bit)
{
    uint8_t first[16384], again[16384], other[16384];
    const size_t n = weights_after(81, first, sizeof first);
    assert_int_equal(weights_after(81, again, sizeof again), n);
    assert_int_equal(weights_after(82, other, sizeof other), n);
    assert_memory_equal(first, again, n);
    assert_memory_not_equal(first, other, n);
}

/* The second time it is asked. */
static bool asked_twice(const void *self)
{
    int *const asked = *(int *const *)self;
    return ++*asked == 2;
}

TEST(it_stops_learning_once_nobody_needs_it)
{
    struct ppo policy;
    struct collected *room = make_room();
    struct ls_learn_info info = {.n = 0};
    int n_asked = 0;
    int *asked = &n_asked;
    open_policy(&policy, "policy: {minibatch: 8}", 83);
    collect(&policy, room, 0);
    assert_ok(cartpole_policy.learn(
        &policy,
        &(struct ls_learn_batch){.trajectories = room->trajectories,
                                 .n = n_trajectories,
                                 .is_given_up = asked_twice,
                                 .self = &asked},
        &info));
    assert_int_equal(n_asked, 2);
    assert_int_equal(info.n, 0);
    close_policy(&policy);
    free(room);
}

/* What the critic comes to think of a state in which every step pays 1, comes
 * back to it, and ends the episode in the given way. */
static float learned_value(uint8_t terminated, uint8_t truncated)
{
    struct ppo policy;
    struct collected *room = make_room();
    const float nowhere[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    open_policy(&policy, "policy: {gamma: 0.5, learning_rate: 0.005}", 91);
    for (size_t i = 0; i < n_trajectories; i++)
        for (size_t j = 0; j < n_steps; j++) {
            memcpy(room->observations[i][j], nowhere, sizeof nowhere);
            memcpy(room->next_observations[i][j], nowhere, sizeof nowhere);
            room->rewards[i][j] = 1.0f;
            room->extras[i][j] = -0.693f;
            room->terminated[i][j] = terminated;
            room->truncated[i][j] = truncated;
        }
    for (int i = 0; i < 30; i++)
        learn(&policy, room);
    const float value = mlp_forward(&policy.critic, nowhere, 1)[0];
    close_policy(&policy);
    free(room);
    return value;
}

/* Returns are in units of 1 / (1 - gamma). */
TEST(only_a_terminated_end_is_worth_nothing)
{
    assert_true(fabsf(learned_value(1, 0) - 0.5f) < 0.02f);
    assert_true(fabsf(learned_value(0, 1) - 1.0f) < 0.02f);
    assert_true(fabsf(learned_value(0, 0) - 1.0f) < 0.02f);
}

static void refuse_learn(struct ppo *policy, struct collected *room, size_t n,
                         int expected)
{
    struct ls_learn_info info = {0};
    const struct ls_learn_batch batch = {.trajectories = room->trajectories,
                                         .n = n};
    assert_int_equal(cartpole_policy.learn(policy, &batch, &info), expected);
    assert_int_equal(info.n, 0);
}

TEST(learn_refuses_what_it_cannot_learn_from)
{
    struct ppo policy;
    struct collected *room = make_room();
    open_policy(&policy, "policy: {}", 95);
    refuse_learn(&policy, room, 0, LS_EINVAL);
    collect(&policy, room, 1);
    room->actions[0][3] = 2.0f;
    refuse_learn(&policy, room, n_trajectories, LS_EINVAL);
    room->actions[0][3] = 0.5f;
    refuse_learn(&policy, room, n_trajectories, LS_EINVAL);
    room->actions[0][3] = NAN;
    refuse_learn(&policy, room, n_trajectories, LS_EINVAL);
    room->actions[0][3] = 1.0f;
    learn(&policy, room);
    room->rewards[1][5] = NAN;
    refuse_learn(&policy, room, n_trajectories, LS_EHANDLER);
    close_policy(&policy);
    free(room);
}
