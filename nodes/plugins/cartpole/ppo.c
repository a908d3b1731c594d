/* ppo.c - the policy's table: two small networks, and choosing by one.
 * What makes them better is in ppo_learn.c. */
#include "ppo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICES_MAX 4096

static void read_settings(struct ppo_settings *out, ls_config_section *config)
{
    *out = (struct ppo_settings){
        .hidden = (size_t)ls_config_int(config, "hidden", 32, 1, 4096),
        .hidden_layers = (size_t)ls_config_int(config, "hidden_layers", 2, 1,
                                               MLP_LAYERS_MAX - 1),
        .epochs = (size_t)ls_config_int(config, "epochs", 10, 1, 1000),
        .minibatch =
            (size_t)ls_config_int(config, "minibatch", 128, 1, 1 << 20),
        .learning_rate =
            ls_config_double(config, "learning_rate", 2e-3, 0.0, 1.0),
        .learning_rate_decay =
            ls_config_double(config, "learning_rate_decay", 1.0, 0.0, 1.0),
        .gamma = ls_config_double(config, "gamma", 0.99, 0.0, 1.0),
        .lambda = ls_config_double(config, "lambda", 0.99, 0.0, 1.0),
        .clip = ls_config_double(config, "clip", 0.25, 0.0, 10.0),
        .entropy = ls_config_double(config, "entropy", 0.0, 0.0, 10.0),
        .max_gradient_norm =
            ls_config_double(config, "max_gradient_norm", 0.5, 0.0, 1e6),
    };
}

static int init_network(struct mlp *net, const struct ppo *self, size_t n_out,
                        double output_gain, struct ls_rng *rng)
{
    size_t widths[MLP_LAYERS_MAX + 1];
    const size_t n_hidden = self->settings.hidden_layers;
    widths[0] = self->n_observation;
    for (size_t i = 1; i <= n_hidden; i++)
        widths[i] = self->settings.hidden;
    widths[n_hidden + 1] = n_out;
    const int err = mlp_init(net, widths, n_hidden + 1, output_gain, rng);
    return err != LS_OK ? err : mlp_reserve(net, 1);
}

static void ppo_fini(void *policy)
{
    struct ppo *self = policy;
    mlp_fini(&self->actor);
    mlp_fini(&self->critic);
    ppo_batch_fini(&self->batch);
    free(self->probabilities);
    self->probabilities = NULL;
}

static int ppo_init(void *policy, ls_config_section *config,
                    const struct ls_env_spec *spec, uint64_t seed)
{
    struct ppo *self = policy;
    if (spec->observation.type != LS_F32 || spec->action.type != LS_F32)
        return ls_error(LS_ECONFIG, "policy cartpole takes observations and "
                                    "actions of floats: take another policy");
    if (ls_space_count(&spec->action) != 1 || spec->n_choices < 2 ||
        spec->n_choices > CHOICES_MAX)
        return ls_error(LS_ECONFIG,
                        "policy cartpole takes one action of 2 to %d choices; "
                        "this environment has %zu of %u: take another policy",
                        CHOICES_MAX, ls_space_count(&spec->action),
                        spec->n_choices);
    read_settings(&self->settings, config);
    self->spec = *spec;
    self->n_observation = ls_space_count(&spec->observation);

    struct ls_rng rng;
    ls_rng_seed(&rng, seed, 0);
    ls_rng_seed(&self->rng, seed, 1);
    /* A small output gain: every choice is about as likely at first. */
    int err = init_network(&self->actor, self, spec->n_choices, 0.01, &rng);
    if (err == LS_OK)
        err = init_network(&self->critic, self, 1, 1.0, &rng);
    if (err == LS_OK) {
        self->probabilities =
            calloc(spec->n_choices, sizeof *self->probabilities);
        if (self->probabilities == NULL)
            err = ls_error(LS_ENOMEM, "%u choices", spec->n_choices);
    }
    if (err != LS_OK)
        ppo_fini(self);
    return err;
}

float ppo_softmax(const float *logits, float *probabilities, size_t n)
{
    float top = logits[0];
    for (size_t i = 1; i < n; i++)
        top = logits[i] > top ? logits[i] : top;
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) {
        probabilities[i] = expf(logits[i] - top);
        sum += probabilities[i];
    }
    for (size_t i = 0; i < n; i++)
        probabilities[i] /= sum;
    return top + logf(sum);
}

static size_t most_likely(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static size_t draw(const float *probabilities, size_t n, uint64_t noise)
{
    const double point = (double)(noise >> 11) * 0x1p-53;
    double sum = 0.0;
    size_t last = 0;
    for (size_t i = 0; i < n; i++) {
        if (probabilities[i] <= 0.0f)
            continue;
        sum += (double)probabilities[i];
        last = i;
        if (point < sum)
            break;
    }
    return last; /* the sum may end a little below 1 */
}

static int ppo_act(void *policy, const struct ls_act *rows)
{
    struct ppo *self = policy;
    const size_t n = self->spec.n_choices;
    const int err = mlp_reserve(&self->actor, rows->n);
    if (err != LS_OK)
        return err;
    const float *logits =
        mlp_forward(&self->actor, rows->observations, rows->n);
    float *actions = rows->actions;
    for (size_t i = 0; i < rows->n; i++, logits += n) {
        const float log_sum = ppo_softmax(logits, self->probabilities, n);
        const size_t choice = rows->explore
                                  ? draw(self->probabilities, n, rows->noise[i])
                                  : most_likely(logits, n);
        actions[i] = (float)choice;
        rows->extras[i] = logits[choice] - log_sum; /* its log probability */
    }
    return LS_OK;
}

/* {"layers": [widths …], "actor": floats}. */
static int ppo_save(const void *policy, ls_writer *out)
{
    const struct ppo *self = policy;
    const struct mlp *net = &self->actor;
    ls_write_map(out, 2);
    ls_write_string(out, "layers");
    ls_write_array(out, (uint32_t)net->n_layers + 1);
    for (size_t i = 0; i <= net->n_layers; i++)
        ls_write_uint(out, net->widths[i]);
    ls_write_string(out, "actor");
    ls_write_floats(out, net->parameters, net->n_parameters);
    return LS_OK;
}

static int check_layers(const struct mlp *net, const ls_value *layers)
{
    if (ls_value_type(layers) != LS_VALUE_ARRAY)
        return ls_error(LS_EPROTO, "weights of cartpole: no list \"layers\"");
    if (ls_value_size(layers) != net->n_layers + 1)
        return ls_error(LS_EMISMATCH,
                        "weights of cartpole: %zu layers, here %zu; give both "
                        "nodes the same hidden_layers",
                        ls_value_size(layers), net->n_layers + 1);
    for (size_t i = 0; i <= net->n_layers; i++) {
        uint64_t width = 0;
        const int err = ls_value_uint(ls_value_at(layers, i), &width);
        if (err != LS_OK)
            return ls_error_at(err, "weights of cartpole: layer %zu", i);
        if (width != net->widths[i])
            return ls_error(LS_EMISMATCH,
                            "weights of cartpole: layer %zu is %llu wide, "
                            "here %zu; give both nodes the same hidden and "
                            "the same environment",
                            i, (unsigned long long)width, net->widths[i]);
    }
    return LS_OK;
}

static int ppo_load(void *policy, const ls_value *in)
{
    struct ppo *self = policy;
    struct mlp *net = &self->actor;
    if (ls_value_type(in) != LS_VALUE_MAP)
        return ls_error(LS_EPROTO, "weights of cartpole: not a map");
    const int err = check_layers(net, ls_value_get(in, "layers"));
    if (err != LS_OK)
        return err;
    const ls_value *actor = ls_value_get(in, "actor");
    if (actor == NULL)
        return ls_error(LS_EPROTO, "weights of cartpole: no \"actor\"");
    return ls_value_floats(actor, net->parameters, net->n_parameters);
}

/* Of each layer the weights, [input][output], and the biases. */
static bool ppo_tensor(const void *policy, size_t at, struct ls_tensor *out)
{
    const struct mlp *net = &((const struct ppo *)policy)->actor;
    const float *values = net->parameters;
    const size_t layer = at / 2;
    if (layer >= net->n_layers)
        return false;
    for (size_t i = 0; i < layer; i++)
        values += (net->widths[i] + 1) * net->widths[i + 1];
    const size_t n_in = net->widths[layer], n_out = net->widths[layer + 1];
    const bool is_bias = at % 2 == 1;
    *out = is_bias ? (struct ls_tensor){.space = {LS_F32, 1, {n_out}},
                                        .data = values + n_in * n_out}
                   : (struct ls_tensor){.space = {LS_F32, 2, {n_in, n_out}},
                                        .data = values};
    (void)snprintf(out->name, sizeof out->name, "actor.%zu.%s", layer,
                   is_bias ? "bias" : "weight");
    return true;
}

const struct ls_policy_ops cartpole_policy = {
    .state_bytes = sizeof(struct ppo),
    .n_extras = 1,
    .init = ppo_init,
    .fini = ppo_fini,
    .act = ppo_act,
    .learns_in_group = true,
    .learn = ppo_learn,
    .save = ppo_save,
    .load = ppo_load,
    .parts = ppo_parts,
    .n_parts = PPO_N_PARTS,
    .tensor = ppo_tensor,
};
