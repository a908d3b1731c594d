/* The network of the plugin cartpole. */
#include <math.h>
#include <string.h>

#include "mlp.h"
#include "test.h"

enum { n_rows = 7, n_inputs = 3, n_outputs = 9 };

/* Wide and narrow enough for whole tiles of the product and for its edges. */
static const size_t widths[] = {n_inputs, 17, 8, n_outputs};

static void open_net(struct mlp *net, struct ls_rng *rng, float *input)
{
    ls_rng_seed(rng, 23, 0);
    assert_ok(mlp_init(net, widths, 3, 1.0, rng));
    assert_ok(mlp_reserve(net, n_rows));
    for (size_t i = 0; i < n_rows * n_inputs; i++)
        input[i] = (float)ls_rng_normal(rng);
}

/* A loss whose slope by the output is `slope`. */
static double loss(struct mlp *net, const float *input, const float *slope)
{
    const float *output = mlp_forward(net, input, n_rows);
    double sum = 0.0;
    for (size_t i = 0; i < n_rows * n_outputs; i++)
        sum += (double)output[i] * (double)slope[i];
    return sum;
}

TEST(gradient_is_that_of_finite_differences)
{
    struct mlp net;
    struct ls_rng rng;
    float input[n_rows * n_inputs], slope[n_rows * n_outputs];
    open_net(&net, &rng, input);
    for (size_t i = 0; i < n_rows * n_outputs; i++)
        slope[i] = (float)ls_rng_normal(&rng);
    mlp_forward(&net, input, n_rows);
    mlp_backward(&net, slope, n_rows);
    for (size_t i = 0; i < net.n_parameters; i++) {
        const float kept = net.parameters[i];
        const float by = 1.0f / 128.0f;
        net.parameters[i] = kept + by;
        const double above = loss(&net, input, slope);
        net.parameters[i] = kept - by;
        const double below = loss(&net, input, slope);
        net.parameters[i] = kept;
        const double expected = (above - below) / (2.0 * (double)by);
        assert_true(fabs(expected - (double)net.gradient[i]) <
                    2e-3 * (1.0 + fabs(expected)));
    }
    mlp_fini(&net);
}

TEST(a_row_is_the_same_in_any_batch)
{
    struct mlp net;
    struct ls_rng rng;
    float input[n_rows * n_inputs], together[n_rows * n_outputs];
    open_net(&net, &rng, input);
    memcpy(together, mlp_forward(&net, input, n_rows), sizeof together);
    for (size_t i = 0; i < n_rows; i++)
        assert_memory_equal(mlp_forward(&net, input + i * n_inputs, 1),
                            together + i * n_outputs,
                            n_outputs * sizeof(float));
    mlp_fini(&net);
}

TEST(gradient_is_clipped_to_its_longest)
{
    struct mlp net;
    struct ls_rng rng;
    float input[n_rows * n_inputs];
    open_net(&net, &rng, input);
    net.gradient[0] = 3.0f;
    net.gradient[5] = -4.0f;
    assert_true(mlp_clip_gradient(&net, 0.0) == 5.0);
    assert_true(mlp_clip_gradient(&net, 6.0) == 5.0);
    assert_true(net.gradient[0] == 3.0f);
    assert_true(mlp_clip_gradient(&net, 1.0) == 5.0);
    assert_true(fabsf(net.gradient[5] + 0.8f) < 1e-6f);
    net.gradient[7] = NAN;
    assert_true(isnan(mlp_clip_gradient(&net, 1.0)));
    mlp_fini(&net);
}

TEST(network_refuses_a_wrong_depth)
{
    struct mlp net;
    struct ls_rng rng;
    const size_t many[MLP_LAYERS_MAX + 2] = {1};
    ls_rng_seed(&rng, 1, 0);
    assert_fails(mlp_init(&net, many, 0, 1.0, &rng), LS_EINVAL);
    assert_fails(mlp_init(&net, many, MLP_LAYERS_MAX + 1, 1.0, &rng),
                 LS_EINVAL);
}

TEST(adam_takes_steps_of_the_learning_rate)
{
    struct mlp net;
    struct ls_rng rng;
    float input[n_rows * n_inputs];
    open_net(&net, &rng, input);
    const float before[2] = {net.parameters[0], net.parameters[1]};
    for (int i = 1; i <= 3; i++) {
        net.gradient[0] = 5.0f;
        net.gradient[1] = -0.5f;
        mlp_adam(&net, 0.01);
        /* Whatever the slope's size, as long as it keeps its sign. */
        const float moved = 0.01f * (float)i;
        assert_true(fabsf(net.parameters[0] - before[0] + moved) < 1e-5f);
        assert_true(fabsf(net.parameters[1] - before[1] - moved) < 1e-5f);
    }
    mlp_fini(&net);
}
