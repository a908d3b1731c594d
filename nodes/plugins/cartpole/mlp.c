/* mlp.c - see mlp.h. */
#include "mlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

/* Lambert's continued fraction, off by at most 1e-4 and without a branch, so
 * that a loop over it becomes vector code: a call of tanhf per unit would
 * cost more than the products do. Beyond the bound it would exceed 1.
 * Source: NIST Digital Library of Mathematical Functions, 4.39.1. */
static float fast_tanh(float value)
{
    const float bound = 4.97f;
    const float low = value > bound ? bound : value;
    const float x = low < -bound ? -bound : low;
    const float s = x * x;
    const float top = x * (135135.0f + s * (17325.0f + s * (378.0f + s)));
    const float bottom = 135135.0f + s * (62370.0f + s * (3150.0f + s * 28.0f));
    return top / bottom;
}

static size_t widest_hidden(const struct mlp *net)
{
    size_t widest = 0;
    for (size_t i = 1; i < net->n_layers; i++)
        widest = net->widths[i] > widest ? net->widths[i] : widest;
    return widest;
}

/* Weights of the largest layer whose slope goes on to a layer below. */
static size_t largest_passed(const struct mlp *net)
{
    size_t largest = 0;
    for (size_t i = 1; i < net->n_layers; i++) {
        const size_t n = net->widths[i] * net->widths[i + 1];
        largest = n > largest ? n : largest;
    }
    return largest;
}

static size_t count_parameters(const struct mlp *net)
{
    size_t n = 0;
    for (size_t i = 0; i < net->n_layers; i++)
        n += (net->widths[i] + 1) * net->widths[i + 1];
    return n;
}

/* Normal weights whose sums keep the variance of what comes in; biases 0. */
static void first_weights(struct mlp *net, double output_gain,
                          struct ls_rng *rng)
{
    float *at = net->parameters;
    for (size_t i = 0; i < net->n_layers; i++) {
        const size_t n_in = net->widths[i];
        const size_t n_out = net->widths[i + 1];
        const double gain = i + 1 == net->n_layers ? output_gain : 1.0;
        const double scale = gain / sqrt((double)n_in);
        for (size_t j = 0; j < n_in * n_out; j++)
            *at++ = (float)(scale * ls_rng_normal(rng));
        at += n_out;
    }
}

int mlp_init(struct mlp *net, const size_t *widths, size_t n_layers,
             double output_gain, struct ls_rng *rng)
{
    if (n_layers == 0 || n_layers > MLP_LAYERS_MAX)
        return ls_error(LS_EINVAL, "a network of %zu layers: 1 to %d", n_layers,
                        MLP_LAYERS_MAX);
    struct mlp made = {.n_layers = n_layers};
    memcpy(made.widths, widths, (n_layers + 1) * sizeof *widths);
    made.beta1_power = made.beta2_power = 1.0;
    const size_t n = made.n_parameters = count_parameters(&made);

    /* One block: parameters, gradient, two moments, transposed. */
    made.parameters = calloc(4 * n + largest_passed(&made), sizeof(float));
    if (made.parameters == NULL)
        return ls_error(LS_ENOMEM, "a network of %zu parameters", n);
    made.gradient = made.parameters + n;
    made.mean = made.gradient + n;
    made.square = made.mean + n;
    made.transposed = made.square + n;
    first_weights(&made, output_gain, rng);
    *net = made;
    return LS_OK;
}

void mlp_fini(struct mlp *net)
{
    free(net->parameters);
    free(net->activations[0]);
    *net = (struct mlp){0};
}

int mlp_reserve(struct mlp *net, size_t batch)
{
    if (batch <= net->batch_max)
        return LS_OK;
    size_t row = 2 * widest_hidden(net);
    for (size_t i = 1; i <= net->n_layers; i++)
        row += net->widths[i];
    float *block = calloc(batch * row, sizeof *block);
    if (block == NULL)
        return ls_error(LS_ENOMEM, "a batch of %zu rows", batch);
    free(net->activations[0]);
    for (size_t i = 0; i < net->n_layers; i++) {
        net->activations[i] = block;
        block += batch * net->widths[i + 1];
    }
    net->deltas[0] = block;
    net->deltas[1] = block + batch * widest_hidden(net);
    net->batch_max = batch;
    return LS_OK;
}

const float *mlp_forward(struct mlp *net, const float *input, size_t batch)
{
    const float *from = net->input = input;
    const float *weights = net->parameters;
    for (size_t i = 0; i < net->n_layers; i++) {
        const size_t n_in = net->widths[i];
        const size_t n_out = net->widths[i + 1];
        const float *biases = weights + n_in * n_out;
        float *to = net->activations[i];
        matrix_multiply(to, (struct matrix_view){from, n_in, 1}, weights,
                        biases, batch, n_in, n_out);
        if (i + 1 < net->n_layers)
            for (size_t j = 0; j < batch * n_out; j++)
                to[j] = fast_tanh(to[j]);
        weights = biases + n_out;
        from = to;
    }
    return from;
}

static void sum_columns(float *sums, const float *rows, size_t batch, size_t n)
{
    memset(sums, 0, n * sizeof *sums);
    for (size_t i = 0; i < batch; i++)
        for (size_t j = 0; j < n; j++)
            sums[j] += rows[i * n + j];
}

/* From the slope of layer i's output to that of the layer below. */
static void slope_below(struct mlp *net, size_t i, const float *weights,
                        const float *slope, float *below, size_t batch)
{
    const size_t n_in = net->widths[i];
    const size_t n_out = net->widths[i + 1];
    matrix_transpose(net->transposed, weights, n_in, n_out);
    matrix_multiply(below, (struct matrix_view){slope, n_out, 1},
                    net->transposed, NULL, batch, n_out, n_in);
    const float *output = net->activations[i - 1];
    for (size_t j = 0; j < batch * n_in; j++)
        below[j] *= 1.0f - output[j] * output[j];
}

void mlp_backward(struct mlp *net, const float *slope, size_t batch)
{
    size_t end = net->n_parameters;
    for (size_t i = net->n_layers; i-- > 0;) {
        const size_t n_in = net->widths[i];
        const size_t n_out = net->widths[i + 1];
        const float *input = i == 0 ? net->input : net->activations[i - 1];
        const size_t start = end - (n_in + 1) * n_out;
        matrix_multiply(net->gradient + start,
                        (struct matrix_view){input, 1, n_in}, slope, NULL, n_in,
                        batch, n_out);
        sum_columns(net->gradient + end - n_out, slope, batch, n_out);
        if (i > 0) {
            float *below = net->deltas[i % 2];
            slope_below(net, i, net->parameters + start, slope, below, batch);
            slope = below;
        }
        end = start;
    }
}

double mlp_clip_gradient(struct mlp *net, double max_norm)
{
    double sum = 0.0;
    for (size_t i = 0; i < net->n_parameters; i++)
        sum += (double)net->gradient[i] * (double)net->gradient[i];
    const double norm = sqrt(sum);
    if (max_norm > 0.0 && norm > max_norm) {
        const float scale = (float)(max_norm / norm);
        for (size_t i = 0; i < net->n_parameters; i++)
            net->gradient[i] *= scale;
    }
    return norm;
}

void mlp_adam(struct mlp *net, double learning_rate)
{
    const float beta1 = 0.9f;
    const float beta2 = 0.999f;
    net->beta1_power *= 0.9;
    net->beta2_power *= 0.999;
    /* Both corrections for the moments' start at 0, taken out of the loop. */
    const double root = sqrt(1.0 - net->beta2_power);
    const float rate = (float)(learning_rate * root / (1.0 - net->beta1_power));
    const float epsilon = (float)(1e-5 * root);
    for (size_t i = 0; i < net->n_parameters; i++) {
        const float slope = net->gradient[i];
        net->mean[i] = beta1 * net->mean[i] + (1.0f - beta1) * slope;
        net->square[i] =
            beta2 * net->square[i] + (1.0f - beta2) * slope * slope;
        net->parameters[i] -=
            rate * net->mean[i] / (sqrtf(net->square[i]) + epsilon);
    }
}
