/* The environment of the plugin cartpole, through its table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cartpole.h"
#include "lockstep/random.h"
#include "test.h"

/* What CartPole-v1 publishes, written here once more. */
static const double limit_theta = 12.0 * 3.14159265358979323846 / 180.0;
static const double limit_x = 2.4;

struct fixture {
    ls_config *config;
    void *env;
};

struct outcome {
    float observation[4];
    float reward;
    bool terminated, truncated;
};

static void open_env(struct fixture *fixture, const char *yaml, uint64_t seed)
{
    assert_ok(ls_config_parse(&fixture->config, "test.yaml", yaml));
    fixture->env = calloc(1, cartpole_env.state_bytes);
    assert_non_null(fixture->env);
    ls_config_section *section =
        ls_config_section_at(ls_config_root(fixture->config), "env");
    assert_ok(cartpole_env.init(fixture->env, section, seed));
    assert_ok(ls_config_finish(fixture->config));
}

static void close_env(struct fixture *fixture)
{
    cartpole_env.fini(fixture->env);
    free(fixture->env);
    ls_config_destroy(&fixture->config);
}

static struct outcome start(struct fixture *fixture)
{
    struct outcome out = {.observation = {NAN, NAN, NAN, NAN}};
    assert_ok(cartpole_env.reset(fixture->env, out.observation));
    return out;
}

static struct outcome push(struct fixture *fixture, float action)
{
    struct outcome out;
    assert_ok(cartpole_env.step(fixture->env, &action, out.observation,
                                &out.reward, &out.terminated, &out.truncated));
    return out;
}

static bool ended(const struct outcome *out)
{
    return out->terminated || out->truncated;
}

/* Keep the pole up and the cart near `target`. */
static float balance(const float *observation, float target)
{
    const float x = observation[0] - target;
    return 0.05f * x + 0.15f * observation[1] + observation[2] +
                       0.5f * observation[3] >
                   0.0f
               ? 1.0f
               : 0.0f;
}

/* One explicit Euler step from the equations of motion themselves, solved for
 * the two accelerations by Cramer's rule:
 *     (M + m) x''   + m l cos(t) t''  =  F + m l t'^2 sin(t)
 *     cos(t) x''    + 4/3 l t''       =  g sin(t)                          */
static void expect_next(const float *from, float action, double *next)
{
    const double g = 9.8, cart = 1.0, m = 0.1, l = 0.5, tau = 0.02;
    const double t = (double)from[2], speed = (double)from[3];
    const double force = action > 0.5f ? 10.0 : -10.0;
    const double a = cart + m, b = m * l * cos(t);
    const double c = cos(t), d = 4.0 / 3.0 * l;
    const double right1 = force + m * l * speed * speed * sin(t);
    const double right2 = g * sin(t);
    const double determinant = a * d - b * c;
    const double x_acc = (right1 * d - b * right2) / determinant;
    const double t_acc = (a * right2 - c * right1) / determinant;
    next[0] = (double)from[0] + tau * (double)from[1];
    next[1] = (double)from[1] + tau * x_acc;
    next[2] = t + tau * speed;
    next[3] = speed + tau * t_acc;
}

TEST(tells_its_shapes)
{
    struct fixture fixture;
    struct ls_env_spec spec;
    open_env(&fixture, "env: {}", 1);
    cartpole_env.spec(fixture.env, &spec);
    assert_int_equal(ls_space_bytes(&spec.observation), 4 * sizeof(float));
    assert_int_equal(spec.observation.type, LS_F32);
    assert_int_equal(ls_space_count(&spec.action), 1);
    assert_int_equal(spec.n_choices, 2);
    assert_int_equal(spec.max_steps, 500);
    close_env(&fixture);
}

TEST(steps_follow_the_equations_of_motion)
{
    struct fixture fixture;
    struct ls_rng rng;
    open_env(&fixture, "env: {}", 3);
    ls_rng_seed(&rng, 3, 0);
    struct outcome at = start(&fixture);
    for (int i = 0; i < 2000; i++) {
        const float action = (float)ls_rng_below(&rng, 2);
        double expected[4];
        expect_next(at.observation, action, expected);
        at = push(&fixture, action);
        for (int j = 0; j < 4; j++)
            assert_true(fabs((double)at.observation[j] - expected[j]) < 2e-6);
        if (ended(&at))
            at = start(&fixture);
    }
    close_env(&fixture);
}

TEST(first_push_has_the_published_effect)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 5);
    const struct outcome before = start(&fixture);
    const struct outcome after = push(&fixture, 1.0f);
    /* From rest, upright: 0.02 · 9.756 m/s² and -0.02 · 14.634 rad/s². */
    assert_true(fabsf(after.observation[1] - before.observation[1] - 0.195f) <
                0.005f);
    assert_true(fabsf(after.observation[3] - before.observation[3] + 0.293f) <
                0.025f);
    close_env(&fixture);
}

TEST(terminates_when_and_only_when_the_pole_falls)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 7);
    for (int episode = 0; episode < 20; episode++) {
        struct outcome at = start(&fixture);
        int n = 0;
        while (!ended(&at)) {
            at = push(&fixture, (float)(episode % 2));
            assert_true(at.reward == 1.0f);
            assert_int_equal(at.terminated,
                             fabs((double)at.observation[2]) > limit_theta);
            n++;
        }
        assert_true(at.terminated);
        assert_false(at.truncated);
        assert_in_range(n, 7, 12);
    }
    close_env(&fixture);
}

TEST(terminates_when_the_cart_leaves_the_track)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 9);
    for (int side = -1; side <= 1; side += 2) {
        struct outcome at = start(&fixture);
        while (!ended(&at)) {
            at = push(&fixture, balance(at.observation, 4.0f * (float)side));
            assert_true(fabs((double)at.observation[2]) < limit_theta);
            assert_int_equal(at.terminated,
                             fabs((double)at.observation[0]) > limit_x);
        }
        assert_true(at.terminated);
        assert_true(at.observation[0] * (float)side > 2.4f);
        assert_true(at.reward == 1.0f);
    }
    close_env(&fixture);
}

static int balanced_steps(struct fixture *fixture)
{
    struct outcome at = start(fixture);
    float sum = 0.0f;
    int n = 0;
    while (!ended(&at)) {
        at = push(fixture, balance(at.observation, 0.0f));
        sum += at.reward;
        n++;
    }
    assert_true(at.truncated);
    assert_false(at.terminated);
    assert_true(sum == (float)n);
    return n;
}

TEST(truncates_after_500_steps)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 11);
    assert_int_equal(balanced_steps(&fixture), 500);
    assert_int_equal(balanced_steps(&fixture), 500);
    close_env(&fixture);
}

TEST(max_steps_is_taken_from_the_configuration)
{
    struct fixture fixture;
    struct ls_env_spec spec;
    open_env(&fixture, "env: {max_steps: 37}", 11);
    cartpole_env.spec(fixture.env, &spec);
    assert_int_equal(spec.max_steps, 37);
    assert_int_equal(balanced_steps(&fixture), 37);
    close_env(&fixture);
}

TEST(a_fall_on_the_last_step_is_no_truncation)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 13);
    struct outcome at = start(&fixture);
    int n = 0;
    for (; !ended(&at); n++)
        at = push(&fixture, 0.0f);
    close_env(&fixture);

    char yaml[64];
    snprintf(yaml, sizeof yaml, "env: {max_steps: %d}", n);
    open_env(&fixture, yaml, 13);
    for (at = start(&fixture); !ended(&at);)
        at = push(&fixture, 0.0f);
    assert_true(at.terminated);
    assert_false(at.truncated);
    close_env(&fixture);
}

TEST(starts_are_even_within_a_twentieth)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 15);
    enum { n = 4000 };
    double sum[4] = {0}, squares[4] = {0};
    for (int i = 0; i < n; i++) {
        const struct outcome at = start(&fixture);
        for (int j = 0; j < 4; j++) {
            const double value = (double)at.observation[j];
            assert_true(fabs(value) <= 0.05);
            sum[j] += value;
            squares[j] += value * value;
        }
    }
    for (int j = 0; j < 4; j++) {
        assert_true(fabs(sum[j] / n) < 0.002);
        /* The variance of an even distribution of width 0.1. */
        assert_true(fabs(squares[j] / n - 0.01 / 12.0) < 0.00003);
    }
    close_env(&fixture);
}

static void run_episode(uint64_t seed, struct outcome *out, int n)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", seed);
    memset(out, 0, (size_t)n * sizeof *out);
    struct outcome at = start(&fixture);
    for (int i = 0; i < n; i++) {
        at = push(&fixture, (float)(i % 3 == 0));
        memcpy(out[i].observation, at.observation, sizeof at.observation);
        if (ended(&at))
            at = start(&fixture);
    }
    close_env(&fixture);
}

TEST(a_seed_repeats_and_another_differs)
{
    struct outcome first[100], again[100], other[100];
    run_episode(17, first, 100);
    run_episode(17, again, 100);
    run_episode(18, other, 100);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
}

static void refuse(struct fixture *fixture, float action, int expected)
{
    float observation[4] = {9.0f, 9.0f, 9.0f, 9.0f};
    float reward = 9.0f;
    bool terminated = false, truncated = false;
    assert_int_equal(cartpole_env.step(fixture->env, &action, observation,
                                       &reward, &terminated, &truncated),
                     expected);
    assert_true(observation[0] == 9.0f && reward == 9.0f);
}

TEST(step_refuses_where_no_episode_runs)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 19);
    refuse(&fixture, 0.0f, LS_ESTATE);
    struct outcome at = start(&fixture);
    while (!ended(&at))
        at = push(&fixture, 1.0f);
    refuse(&fixture, 1.0f, LS_ESTATE);
    start(&fixture);
    push(&fixture, 1.0f);
    close_env(&fixture);
}

TEST(step_refuses_what_is_no_choice)
{
    struct fixture fixture;
    open_env(&fixture, "env: {}", 21);
    const struct outcome at = start(&fixture);
    refuse(&fixture, 2.0f, LS_EINVAL);
    refuse(&fixture, 0.5f, LS_EINVAL);
    refuse(&fixture, -1.0f, LS_EINVAL);
    refuse(&fixture, NAN, LS_EINVAL);
    double expected[4];
    expect_next(at.observation, 1.0f, expected);
    const struct outcome next = push(&fixture, 1.0f); /* nothing had moved */
    assert_true(fabs((double)next.observation[3] - expected[3]) < 2e-6);
    close_env(&fixture);
}
