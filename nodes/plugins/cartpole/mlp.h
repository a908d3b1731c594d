/* mlp.h - a small fully connected network in floats, and Adam to train it.
 *
 * Hidden layers are tanh, the last one is linear. Rows of a batch are
 * computed one like the other, so a row's result does not depend on the batch
 * it came in: what act() computed for one observation is, bit for bit, what
 * learn() computes for it among a thousand.
 * Thread: serial. */
#ifndef CARTPOLE_MLP_H
#define CARTPOLE_MLP_H

#include <stddef.h>

#include "lockstep/random.h"

#define MLP_LAYERS_MAX 8

struct mlp {
    size_t n_layers;                   /* of weights: hidden ones + 1 */
    size_t widths[MLP_LAYERS_MAX + 1]; /* input, hidden …, output */
    size_t n_parameters;
    float *parameters; /* per layer: weights [input][output], biases */
    float *gradient;   /* the same places */
    float *mean;       /* Adam's two moments */
    float *square;
    float *transposed;               /* one layer's weights [output][input] */
    double beta1_power, beta2_power; /* Adam's beta^t */
    size_t batch_max;
    const float *input;                 /* of the last forward; borrow */
    float *activations[MLP_LAYERS_MAX]; /* [i]: what layer i gave */
    float *deltas[2];
};

/* widths: n_layers + 1 of them. output_gain scales the last layer's first
 * weights: small, and the network starts near 0 everywhere.
 * net:    written on success only; give it to mlp_fini().
 * Errors: LS_EINVAL: no layers or too many; LS_ENOMEM. */
LS_MUST_USE int mlp_init(struct mlp *net, const size_t *widths, size_t n_layers,
                         double output_gain, struct ls_rng *rng);
/* A zeroed one is fine, and one that was finished before. */
void mlp_fini(struct mlp *net);

/* Make room for batches of `batch` rows. Errors: LS_ENOMEM. */
LS_MUST_USE int mlp_reserve(struct mlp *net, size_t batch);

/* input:  batch × widths[0]; borrow: until the backward that follows.
 * Returns batch × the last width; borrow: until the next forward. */
const float *mlp_forward(struct mlp *net, const float *input, size_t batch);

/* Overwrite the gradient with that of a loss whose derivative by the last
 * forward's output is `slope` (batch × the last width). */
void mlp_backward(struct mlp *net, const float *slope, size_t batch);

/* Scale the gradient down to `max_norm` if it is longer; 0: leave it.
 * Returns its length before: not finite when the gradient is not. */
double mlp_clip_gradient(struct mlp *net, double max_norm);

/* One step against the gradient.
 * Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR
 * 2015, algorithm 1; epsilon 1e-5 as is usual for PPO. */
void mlp_adam(struct mlp *net, double learning_rate);

#endif
