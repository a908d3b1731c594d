/* ppo_learn.c - proximal policy optimisation with clipped steps.
 *
 * Source: Schulman et al., "Proximal Policy Optimization Algorithms",
 * arXiv:1707.06347, equation 7 and algorithm 1; advantages by Schulman et
 * al., "High-Dimensional Continuous Control Using Generalized Advantage
 * Estimation", arXiv:1506.02438, equation 16.
 *
 * The critic predicts the return times (1 - gamma), which is a mean reward:
 * of order 1 whatever the horizon, so that one learning rate fits many tasks.
 * Actor and critic are two networks with an optimiser each, so no coefficient
 * weighs their losses against each other.
 * Sums over a batch are taken in one order, in one thread: a seed gives the
 * same weights to the bit. */
#include "ppo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums over every minibatch of a learn(). */
struct tally {
    double policy_loss, value_loss, entropy, divergence, clipped;
    size_t n; /* samples */
};

void ppo_batch_fini(struct ppo_batch *batch)
{
    free(batch->observations);
    free(batch->choices);
    *batch = (struct ppo_batch){0};
}

/* Two blocks, floats and integers, kept for the next learn(). */
static int reserve(struct ppo *self, size_t n)
{
    struct ppo_batch *batch = &self->batch;
    const size_t most = self->settings.minibatch;
    const size_t minibatch = n < most ? n : most;
    const size_t width = self->n_observation;
    if (n > UINT32_MAX)
        return ls_error(LS_ELIMIT, "policy cartpole: %zu steps at once", n);
    if (n > batch->n_max) {
        const size_t n_floats =
            n * (width + 4) + minibatch * (width + self->spec.n_choices + 1);
        float *floats = calloc(n_floats, sizeof *floats);
        uint32_t *integers = calloc(n, 2 * sizeof *integers);
        if (floats == NULL || integers == NULL) {
            free(floats);
            free(integers);
            return ls_error(LS_ENOMEM, "policy cartpole: %zu steps", n);
        }
        ppo_batch_fini(batch);
        batch->n_max = n;
        batch->observations = floats;
        batch->advantages = floats + n * width;
        batch->returns = batch->advantages + n;
        batch->log_probabilities = batch->returns + n;
        batch->values = batch->log_probabilities + n;
        batch->rows = batch->values + n;
        batch->actor_slope = batch->rows + minibatch * width;
        batch->critic_slope =
            batch->actor_slope + minibatch * self->spec.n_choices;
        batch->choices = integers;
        batch->order = integers + n;
    }
    batch->n = n;
    const int err = mlp_reserve(&self->actor, minibatch);
    return err != LS_OK ? err : mlp_reserve(&self->critic, minibatch);
}

/* Copy a trajectory's steps to `at` in the batch. */
static int take(struct ppo *self, const struct ls_trajectory *from, size_t at)
{
    struct ppo_batch *batch = &self->batch;
    const size_t width = self->n_observation;
    memcpy(batch->observations + at * width, from->observations,
           from->n * width * sizeof(float));
    memcpy(batch->log_probabilities + at, from->extras,
           from->n * sizeof(float));
    const float *choices = from->actions;
    for (size_t i = 0; i < from->n; i++) {
        const float choice = choices[i];
        if (!(choice >= 0.0f && choice < (float)self->spec.n_choices) ||
            choice != truncf(choice))
            return ls_error(LS_EINVAL,
                            "policy cartpole: action %g in step %zu of a "
                            "trajectory; it knows 0 to %u",
                            (double)choice, i, self->spec.n_choices - 1);
        batch->choices[at + i] = (uint32_t)choice;
    }
    return LS_OK;
}

/* values[n] of observations[n × width], a minibatch at a time. */
static void predict(struct ppo *self, const float *observations, size_t n,
                    float *values)
{
    const size_t width = self->n_observation;
    for (size_t i = 0; i < n;) {
        const size_t left = n - i;
        const size_t chunk =
            left < self->settings.minibatch ? left : self->settings.minibatch;
        memcpy(values + i,
               mlp_forward(&self->critic, observations + i * width, chunk),
               chunk * sizeof *values);
        i += chunk;
    }
}

/* Advantages and returns of the steps from `at`. `values` holds the values of
 * what followed; where an episode was only cut short they still count. */
static void estimate(struct ppo *self, const struct ls_trajectory *from,
                     size_t at)
{
    struct ppo_batch *batch = &self->batch;
    const float gamma = (float)self->settings.gamma;
    const float trace = (float)(self->settings.gamma * self->settings.lambda);
    const float scale = gamma < 1.0f ? 1.0f - gamma : 1.0f;
    float *values = batch->values + at;
    float *returns = batch->returns + at;
    predict(self, from->observations, from->n, returns);
    predict(self, from->next_observations, from->n, values);
    float advantage = 0.0f;
    for (size_t i = from->n; i-- > 0;) {
        const float next = from->terminated[i] ? 0.0f : values[i];
        const bool ended = from->terminated[i] || from->truncated[i];
        const float delta =
            scale * from->rewards[i] + gamma * next - returns[i];
        advantage = delta + (ended ? 0.0f : trace * advantage);
        batch->advantages[at + i] = advantage;
        returns[i] += advantage;
    }
}

static void normalise(float *values, size_t n)
{
    double sum = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (double)values[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    const double deviation = sqrt(squares / (double)n) + 1e-8;
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(((double)values[i] - mean) / deviation);
}

static int fill_batch(struct ppo *self,
                      const struct ls_trajectory *trajectories, size_t n)
{
    size_t n_steps = 0;
    for (size_t i = 0; i < n; i++)
        n_steps += trajectories[i].n;
    if (n_steps == 0)
        return ls_error(LS_EINVAL, "policy cartpole: no steps to learn from");
    int err = reserve(self, n_steps);
    if (err != LS_OK)
        return err;
    for (size_t i = 0, at = 0; i < n; i++) {
        if ((err = take(self, &trajectories[i], at)) != LS_OK)
            return err;
        estimate(self, &trajectories[i], at);
        at += trajectories[i].n;
    }
    for (size_t i = 0; i < n_steps; i++)
        self->batch.order[i] = (uint32_t)i;
    return LS_OK;
}

/* Fisher and Yates. */
static void shuffle(uint32_t *order, size_t n, struct ls_rng *rng)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)ls_rng_below(rng, i);
        const uint32_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

/* The slope of one sample's loss by its logits:
 *   -min(r A, clip(r) A) - entropy · H,   r = p / p_old. */
static void actor_sample(struct ppo *self, const float *logits, uint32_t sample,
                         float *slope, struct tally *tally)
{
    const struct ppo_batch *batch = &self->batch;
    const size_t n = self->spec.n_choices;
    const float clip = (float)self->settings.clip;
    const float bonus = (float)self->settings.entropy;
    const uint32_t choice = batch->choices[sample];
    const float advantage = batch->advantages[sample];
    float *p = self->probabilities;
    const float log_sum = ppo_softmax(logits, p, n);
    const float step =
        logits[choice] - log_sum - batch->log_probabilities[sample];
    const float ratio = expf(step);
    const bool clipped =
        advantage >= 0.0f ? ratio > 1.0f + clip : ratio < 1.0f - clip;
    const float bounded =
        !clipped ? ratio : (advantage >= 0.0f ? 1.0f + clip : 1.0f - clip);
    const float pull = clipped ? 0.0f : -ratio * advantage;
    float entropy = 0.0f;
    for (size_t j = 0; j < n; j++)
        entropy -= p[j] * (logits[j] - log_sum);
    for (size_t j = 0; j < n; j++) {
        const float log_p = logits[j] - log_sum;
        slope[j] = pull * ((j == choice ? 1.0f : 0.0f) - p[j]) +
                   bonus * p[j] * (log_p + entropy);
    }
    tally->policy_loss -= (double)(bounded * advantage);
    tally->entropy += (double)entropy;
    /* Schulman's estimate of the divergence: never below 0. */
    tally->divergence += (double)(ratio - 1.0f - step);
    tally->clipped += clipped ? 1.0 : 0.0;
}

/* group: whose gradients it goes by the mean of; NULL: alone. */
static int descend(struct mlp *net, const float *slope, size_t n,
                   ls_group *group, double max_norm, double rate)
{
    mlp_backward(net, slope, n);
    const int err =
        group == NULL
            ? LS_OK
            : ls_group_all_reduce(group, net->gradient, net->n_parameters,
                                  LS_GROUP_F32, LS_GROUP_MEAN, LS_WAIT_DEFAULT);
    if (err != LS_OK)
        return err;
    if (!isfinite(mlp_clip_gradient(net, max_norm)))
        return ls_error(LS_EHANDLER,
                        "policy cartpole: the gradient is not finite; look "
                        "for rewards or observations that are not, or lower "
                        "policy.learning_rate");
    mlp_adam(net, rate);
    return LS_OK;
}

/* One step of both networks on the samples order[n]. */
static int learn_minibatch(struct ppo *self, const uint32_t *order, size_t n,
                           ls_group *group, double rate, struct tally *tally)
{
    struct ppo_batch *batch = &self->batch;
    const size_t width = self->n_observation;
    const size_t n_choices = self->spec.n_choices;
    const float share = 1.0f / (float)n;
    for (size_t i = 0; i < n; i++)
        memcpy(batch->rows + i * width, batch->observations + order[i] * width,
               width * sizeof(float));

    const float *logits = mlp_forward(&self->actor, batch->rows, n);
    for (size_t i = 0; i < n; i++)
        actor_sample(self, logits + i * n_choices, order[i],
                     batch->actor_slope + i * n_choices, tally);
    for (size_t i = 0; i < n * n_choices; i++)
        batch->actor_slope[i] *= share;

    const float *values = mlp_forward(&self->critic, batch->rows, n);
    for (size_t i = 0; i < n; i++) {
        const float error = values[i] - batch->returns[order[i]];
        batch->critic_slope[i] = share * error;
        tally->value_loss += 0.5 * (double)error * (double)error;
    }
    tally->n += n;
    const double max_norm = self->settings.max_gradient_norm;
    const int err =
        descend(&self->actor, batch->actor_slope, n, group, max_norm, rate);
    return err != LS_OK ? err
                        : descend(&self->critic, batch->critic_slope, n, group,
                                  max_norm, rate);
}

static void add(struct ls_learn_info *info, const char *name, double value)
{
    info->items[info->n].name = name;
    info->items[info->n++].value = value;
}

static void report(struct ls_learn_info *info, const struct tally *tally,
                   double rate)
{
    const double n = (double)tally->n;
    info->n = 0;
    add(info, "policy_loss", tally->policy_loss / n);
    add(info, "value_loss", tally->value_loss / n);
    add(info, "entropy", tally->entropy / n);
    add(info, "divergence", tally->divergence / n);
    add(info, "clipped", tally->clipped / n);
    add(info, "learning_rate", rate);
}

static bool is_given_up(const struct ls_learn_batch *batch)
{
    return batch->is_given_up != NULL && batch->is_given_up(batch->self);
}

/* In a group a minibatch is shared, too: the steps are as many, and as large,
 * as alone. */
int ppo_learn(void *policy, const struct ls_learn_batch *learned,
              struct ls_learn_info *info)
{
    struct ppo *self = policy;
    const struct ppo_settings *settings = &self->settings;
    ls_group *group = learned->group;
    int err = fill_batch(self, learned->trajectories, learned->n);
    if (err != LS_OK)
        return err;
    const double rate =
        settings->learning_rate *
        pow(settings->learning_rate_decay, (double)self->n_learned);
    struct ppo_batch *batch = &self->batch;
    /* By how much an outcome was better than the critic expected. */
    if (info->td_errors != NULL)
        memcpy(info->td_errors, batch->advantages, batch->n * sizeof(float));
    normalise(batch->advantages, batch->n);
    const size_t shared = group == NULL
                              ? settings->minibatch
                              : settings->minibatch / ls_group_size(group);
    const size_t minibatch = shared > 0 ? shared : 1;
    struct tally tally = {0};
    for (size_t epoch = 0; epoch < settings->epochs; epoch++) {
        shuffle(batch->order, batch->n, &self->rng);
        for (size_t at = 0; at < batch->n; at += minibatch) {
            const size_t left = batch->n - at;
            err = learn_minibatch(self, batch->order + at,
                                  left < minibatch ? left : minibatch, group,
                                  rate, &tally);
            if (err != LS_OK || is_given_up(learned))
                return err;
        }
    }
    self->n_learned++;
    report(info, &tally, rate);
    return LS_OK;
}
