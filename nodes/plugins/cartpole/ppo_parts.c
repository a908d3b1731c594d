/* ppo_parts.c - what the policy learns by beside what it acts by, as values:
 * with all of them another one goes on to the bit. */
#include <math.h>
#include <string.h>

#include "ppo.h"

static int read_finite(const ls_value *in, float *values, size_t n)
{
    const int err = ls_value_floats(in, values, n);
    for (size_t i = 0; i < n && err == LS_OK; i++)
        if (!isfinite(values[i]))
            return ls_error(LS_EPROTO, "number %zu is not finite", i);
    return err == LS_ENOENT ? LS_EPROTO : err;
}

static int save_critic(const void *policy, ls_writer *out)
{
    const struct mlp *net = &((const struct ppo *)policy)->critic;
    ls_write_floats(out, net->parameters, net->n_parameters);
    return LS_OK;
}

/* The gradient is free between two learn(): a place to read into. */
static int load_critic(void *policy, const ls_value *in)
{
    struct mlp *net = &((struct ppo *)policy)->critic;
    const int err = read_finite(in, net->gradient, net->n_parameters);
    if (err == LS_OK)
        memcpy(net->parameters, net->gradient,
               net->n_parameters * sizeof(float));
    return err;
}

static void write_moments(const struct mlp *net, const char *name,
                          ls_writer *out)
{
    ls_write_string(out, name);
    ls_write_map(out, 3);
    ls_write_string(out, "mean");
    ls_write_floats(out, net->mean, net->n_parameters);
    ls_write_string(out, "square");
    ls_write_floats(out, net->square, net->n_parameters);
    ls_write_string(out, "powers");
    ls_write_doubles(out, (const double[]){net->beta1_power, net->beta2_power},
                     2);
}

static int read_moments(struct mlp *net, const ls_value *in)
{
    double powers[2];
    int err = ls_value_doubles(ls_value_get(in, "powers"), powers, 2);
    if (err == LS_OK && !(powers[0] > 0.0 && powers[0] <= 1.0 &&
                          powers[1] > 0.0 && powers[1] <= 1.0))
        err = ls_error(LS_EPROTO, "powers");
    if (err == LS_OK)
        err =
            read_finite(ls_value_get(in, "mean"), net->mean, net->n_parameters);
    if (err == LS_OK)
        err = read_finite(ls_value_get(in, "square"), net->square,
                          net->n_parameters);
    if (err != LS_OK)
        return err == LS_ENOENT ? LS_EPROTO : err;
    net->beta1_power = powers[0];
    net->beta2_power = powers[1];
    return LS_OK;
}

static int save_optimiser(const void *policy, ls_writer *out)
{
    const struct ppo *self = policy;
    ls_write_map(out, 2);
    write_moments(&self->actor, "actor", out);
    write_moments(&self->critic, "critic", out);
    return LS_OK;
}

static int load_optimiser(void *policy, const ls_value *in)
{
    struct ppo *self = policy;
    const int err = read_moments(&self->actor, ls_value_get(in, "actor"));
    return err != LS_OK
               ? err
               : read_moments(&self->critic, ls_value_get(in, "critic"));
}

static int save_shuffles(const void *policy, ls_writer *out)
{
    ls_write_rng(out, &((const struct ppo *)policy)->rng);
    return LS_OK;
}

static int load_shuffles(void *policy, const ls_value *in)
{
    return ls_value_rng(in, &((struct ppo *)policy)->rng);
}

static int save_counter(const void *policy, ls_writer *out)
{
    ls_write_uint(out, ((const struct ppo *)policy)->n_learned);
    return LS_OK;
}

static int load_counter(void *policy, const ls_value *in)
{
    return ls_value_uint(in, &((struct ppo *)policy)->n_learned);
}

const struct ls_state_part ppo_parts[PPO_N_PARTS] = {
    {"critic", save_critic, load_critic},
    {"optimiser", save_optimiser, load_optimiser},
    {"generator", save_shuffles, load_shuffles},
    {"counter", save_counter, load_counter},
};
