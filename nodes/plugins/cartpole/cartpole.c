/* cartpole.c - the cart and pole, as CartPole-v1 publishes it.
 *
 * Source: Barto, Sutton and Anderson, "Neuronlike adaptive elements that can
 * solve difficult learning control problems", IEEE Transactions on Systems,
 * Man, and Cybernetics SMC-13(5), 1983, appendix, without friction; constants,
 * limits, the start and the explicit Euler step as in CartPole-v1 of OpenAI
 * Gym (Brockman et al., arXiv:1606.01540).
 *
 * The state is kept in doubles and shown in floats, and the sums are written
 * in the order in which Gym has them, so that both give the same bits. */
#include "cartpole.h"

#include <math.h>

#define GRAVITY     9.8
#define MASS_CART   1.0
#define MASS_POLE   0.1
#define MASS_TOTAL  (MASS_CART + MASS_POLE)
#define HALF_LENGTH 0.5 /* of the pole, metres */
#define FORCE       10.0
#define TAU         0.02 /* seconds in a step */
#define LIMIT_X     2.4
#define LIMIT_THETA (12.0 * 2.0 * 3.14159265358979323846 / 360.0)
#define START       0.05 /* every variable starts evenly in ± this */

struct cartpole {
    double x, x_dot, theta, theta_dot;
    uint32_t max_steps;
    uint32_t n_steps; /* taken in this episode */
    bool running;     /* an episode is under way */
    struct ls_rng rng;
};

static int cartpole_init(void *env, ls_config_section *config, uint64_t seed)
{
    struct cartpole *self = env;
    self->max_steps =
        (uint32_t)ls_config_int(config, "max_steps", 500, 1, 1000000);
    ls_rng_seed(&self->rng, seed, 0);
    return LS_OK;
}

static void cartpole_fini(void *env)
{
    (void)env; /* it holds nothing */
}

static void cartpole_spec(const void *env, struct ls_env_spec *out)
{
    const struct cartpole *self = env;
    *out = (struct ls_env_spec){
        .observation = {.type = LS_F32, .n_dims = 1, .shape = {4}},
        .action = {.type = LS_F32},
        .n_choices = 2,
        .max_steps = self->max_steps,
    };
}

static void observe(const struct cartpole *self, float observation[4])
{
    observation[0] = (float)self->x;
    observation[1] = (float)self->x_dot;
    observation[2] = (float)self->theta;
    observation[3] = (float)self->theta_dot;
}

static double start_value(struct ls_rng *rng)
{
    return START * (2.0 * ls_rng_double(rng) - 1.0);
}

static int cartpole_reset(void *env, void *observation)
{
    struct cartpole *self = env;
    self->x = start_value(&self->rng);
    self->x_dot = start_value(&self->rng);
    self->theta = start_value(&self->rng);
    self->theta_dot = start_value(&self->rng);
    self->n_steps = 0;
    self->running = true;
    observe(self, observation);
    return LS_OK;
}

static void advance(struct cartpole *self, double force)
{
    const double sine = sin(self->theta);
    const double cosine = cos(self->theta);
    const double moment = MASS_POLE * HALF_LENGTH;
    const double push =
        (force + moment * (self->theta_dot * self->theta_dot) * sine) /
        MASS_TOTAL;
    const double theta_acc =
        (GRAVITY * sine - cosine * push) /
        (HALF_LENGTH *
         (4.0 / 3.0 - MASS_POLE * (cosine * cosine) / MASS_TOTAL));
    const double x_acc = push - moment * theta_acc * cosine / MASS_TOTAL;

    /* Positions move by the speeds from before the step. */
    self->x += TAU * self->x_dot;
    self->x_dot += TAU * x_acc;
    self->theta += TAU * self->theta_dot;
    self->theta_dot += TAU * theta_acc;
}

static int cartpole_step(void *env, const void *action, void *observation,
                         float *reward, bool *terminated, bool *truncated)
{
    struct cartpole *self = env;
    const float push = *(const float *)action;
    if (!self->running)
        return ls_error(LS_ESTATE, "cartpole: no episode is under way; "
                                   "call reset before step");
    if (push != 0.0f && push != 1.0f)
        return ls_error(LS_EINVAL,
                        "cartpole: action %g; 0 pushes left, 1 pushes right",
                        (double)push);
    advance(self, push == 1.0f ? FORCE : -FORCE);
    self->n_steps++;
    const bool fallen =
        fabs(self->x) > LIMIT_X || fabs(self->theta) > LIMIT_THETA;
    observe(self, observation);
    *reward = 1.0f; /* for the step that fails too */
    *terminated = fallen;
    *truncated = !fallen && self->n_steps >= self->max_steps;
    self->running = !*terminated && !*truncated;
    return LS_OK;
}

/* Parts of the state ------------------------------------------------------- */

static int save_cart(const void *env, ls_writer *out)
{
    const struct cartpole *self = env;
    const double values[] = {self->x, self->x_dot, self->theta,
                             self->theta_dot};
    ls_write_map(out, 3);
    ls_write_string(out, "cart");
    ls_write_doubles(out, values, 4);
    ls_write_string(out, "steps");
    ls_write_uint(out, self->n_steps);
    ls_write_string(out, "running");
    ls_write_bool(out, self->running);
    return LS_OK;
}

static int load_cart(void *env, const ls_value *in)
{
    struct cartpole *self = env;
    double values[4];
    uint64_t n_steps;
    bool running;
    int status = ls_value_doubles(ls_value_get(in, "cart"), values, 4);
    if (status == LS_OK)
        status = ls_value_uint(ls_value_get(in, "steps"), &n_steps);
    if (status == LS_OK)
        status = ls_value_bool(ls_value_get(in, "running"), &running);
    if (status == LS_OK && n_steps > self->max_steps)
        status = ls_error(LS_EMISMATCH, "cartpole: step %llu of %u",
                          (unsigned long long)n_steps, self->max_steps);
    if (status != LS_OK)
        return status == LS_ENOENT ? LS_EPROTO : status;
    self->x = values[0];
    self->x_dot = values[1];
    self->theta = values[2];
    self->theta_dot = values[3];
    self->n_steps = (uint32_t)n_steps;
    self->running = running;
    return LS_OK;
}

static int save_generator(const void *env, ls_writer *out)
{
    const struct cartpole *self = env;
    ls_write_rng(out, &self->rng);
    return LS_OK;
}

static int load_generator(void *env, const ls_value *in)
{
    struct cartpole *self = env;
    return ls_value_rng(in, &self->rng);
}

static const struct ls_state_part parts[] = {
    {"cart", save_cart, load_cart},
    {"generator", save_generator, load_generator},
};

const struct ls_env_ops cartpole_env = {
    .state_bytes = sizeof(struct cartpole),
    .init = cartpole_init,
    .fini = cartpole_fini,
    .spec = cartpole_spec,
    .reset = cartpole_reset,
    .step = cartpole_step,
    .parts = parts,
    .n_parts = sizeof parts / sizeof parts[0],
};
