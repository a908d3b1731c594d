/* ppo.h - the policy's state, shared by ppo.c (act, save, load), ppo_learn.c
 * (learn) and ppo_parts.c (all else of its state). */
#ifndef CARTPOLE_PPO_H
#define CARTPOLE_PPO_H

#include "cartpole.h"
#include "mlp.h"

/* The section `policy:`; README.md has the table. */
struct ppo_settings {
    size_t hidden, hidden_layers;
    size_t epochs, minibatch;
    double learning_rate, learning_rate_decay;
    double gamma, lambda;
    double clip, entropy, max_gradient_norm;
};

/* What one learn() works on: every step of every trajectory, end to end. */
struct ppo_batch {
    size_t n, n_max;
    float *observations; /* n × n_observation */
    float *advantages, *returns, *log_probabilities, *values;
    uint32_t *choices;
    uint32_t *order; /* shuffled anew in every epoch */
    /* One minibatch, gathered. */
    float *rows;         /* minibatch × n_observation */
    float *actor_slope;  /* minibatch × n_choices */
    float *critic_slope; /* minibatch */
};

struct ppo {
    struct ppo_settings settings;
    struct ls_env_spec spec;
    struct mlp actor;  /* observation -> one logit per choice */
    struct mlp critic; /* observation -> value, see ppo_learn.c */
    struct ls_rng rng; /* shuffles */
    uint64_t n_learned;
    size_t n_observation; /* floats */
    float *probabilities; /* n_choices */
    struct ppo_batch batch;
};

/* probabilities[n] from logits[n]; returns the logarithm of the sum of their
 * exponentials, so that log p_i = logits[i] - that. */
float ppo_softmax(const float *logits, float *probabilities, size_t n);

/* The table's learn(). */
int ppo_learn(void *policy, const struct ls_learn_batch *batch,
              struct ls_learn_info *info);

/* The table's parts. */
extern const struct ls_state_part ppo_parts[];
#define PPO_N_PARTS 4

/* Free what ppo_learn() reserved; a zeroed batch is fine. */
void ppo_batch_fini(struct ppo_batch *batch);

#endif
