/* dots.c - a plugin from outside whose observations are images: u8, 12 × 12
 * × 1.
 *
 * A bright dot is in the left or the right half of a noisy image; saying in
 * which pays 1. What says so is one weight for each pixel. An episode has ten
 * images. */
#include <lockstep/plugin.h>
#include <lockstep/random.h>

#include <math.h>
#include <string.h>

enum { SIDE = 12, N_PIXELS = SIDE * SIDE, N_IMAGES = 10 };

/* The images ----------------------------------------------------------------
 */

struct dots {
    struct ls_rng rng;
    int32_t is_right; /* the dot that is shown */
    uint32_t n_shown;
};

static int dots_init(void *env, ls_config_section *config, uint64_t seed)
{
    struct dots *dots = env;
    (void)config;
    ls_rng_seed(&dots->rng, seed, 0);
    return LS_OK;
}

static void nothing_to_free(void *state)
{
    (void)state;
}

static void dots_spec(const void *env, struct ls_env_spec *out)
{
    (void)env;
    *out = (struct ls_env_spec){
        .observation = {.type = LS_U8, .n_dims = 3, .shape = {SIDE, SIDE, 1}},
        .action = {.type = LS_I32},
        .n_choices = 2,
        .max_steps = N_IMAGES};
}

static void draw_image(struct dots *dots, uint8_t *image)
{
    for (size_t i = 0; i < N_PIXELS; i++)
        image[i] = (uint8_t)ls_rng_below(&dots->rng, 32);
    dots->is_right = (int32_t)ls_rng_below(&dots->rng, 2);
    const size_t x = (size_t)ls_rng_below(&dots->rng, SIDE / 2) +
                     (dots->is_right ? SIDE / 2 : 0);
    image[ls_rng_below(&dots->rng, SIDE) * SIDE + x] = 255;
}

static int dots_reset(void *env, void *observation)
{
    struct dots *dots = env;
    dots->n_shown = 0;
    draw_image(dots, observation);
    return LS_OK;
}

static int dots_step(void *env, const void *action, void *observation,
                     float *reward, bool *terminated, bool *truncated)
{
    struct dots *dots = env;
    *reward = *(const int32_t *)action == dots->is_right ? 1.0f : 0.0f;
    *terminated = ++dots->n_shown == N_IMAGES;
    *truncated = false;
    draw_image(dots, observation);
    return LS_OK;
}

/* What says where the dot is ------------------------------------------------
 */

struct eye {
    float rate;
    float weights[N_PIXELS];
};

static int eye_init(void *policy, ls_config_section *config,
                    const struct ls_env_spec *spec, uint64_t seed)
{
    struct eye *eye = policy;
    (void)seed;
    eye->rate = (float)ls_config_double(config, "rate", 0.5, 0.0, 100.0);
    return ls_space_bytes(&spec->observation) == N_PIXELS &&
                   spec->action.type == LS_I32 && spec->n_choices == 2
               ? LS_OK
               : ls_error(LS_ECONFIG, "the eye is for the images of dots");
}

/* How likely the dot is on the right. */
static float look(const struct eye *eye, const uint8_t *image)
{
    float sum = 0.0f;
    for (size_t i = 0; i < N_PIXELS; i++)
        sum += eye->weights[i] * (float)image[i] / 255.0f;
    return 1.0f / (1.0f + expf(-sum));
}

static int eye_act(void *policy, const struct ls_act *rows)
{
    const struct eye *eye = policy;
    const uint8_t *images = rows->observations;
    int32_t *halves = rows->actions;
    for (size_t i = 0; i < rows->n; i++)
        halves[i] = rows->explore ? (int32_t)(rows->noise[i] >> 63)
                                  : look(eye, images + i * N_PIXELS) > 0.5f;
    return LS_OK;
}

static int eye_learn(void *policy, const struct ls_learn_batch *batch,
                     struct ls_learn_info *info)
{
    struct eye *eye = policy;
    double wrong = 0.0, n = 0.0;
    for (size_t i = 0; i < batch->n; i++) {
        const struct ls_trajectory *from = &batch->trajectories[i];
        const uint8_t *image = from->observations;
        for (size_t k = 0; k < from->n; k++, image += N_PIXELS) {
            const int32_t said = ((const int32_t *)from->actions)[k];
            const float truth =
                from->rewards[k] > 0.5f ? (float)said : (float)(1 - said);
            const float error = truth - look(eye, image);
            for (size_t j = 0; j < N_PIXELS; j++)
                eye->weights[j] += eye->rate * error * (float)image[j] / 255.0f;
            wrong += fabs((double)error);
            n += 1.0;
        }
    }
    info->n = 1;
    info->items[0].name = "wrong";
    info->items[0].value = n > 0.0 ? wrong / n : 0.0;
    return LS_OK;
}

static int eye_save(const void *policy, ls_writer *out)
{
    ls_write_floats(out, ((const struct eye *)policy)->weights, N_PIXELS);
    return LS_OK;
}

static int eye_load(void *policy, const ls_value *in)
{
    return ls_value_floats(in, ((struct eye *)policy)->weights, N_PIXELS);
}

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_env_ops dots = {.state_bytes = sizeof(struct dots),
                                           .init = dots_init,
                                           .fini = nothing_to_free,
                                           .spec = dots_spec,
                                           .reset = dots_reset,
                                           .step = dots_step};
    static const struct ls_policy_ops eye = {.state_bytes = sizeof(struct eye),
                                             .init = eye_init,
                                             .fini = nothing_to_free,
                                             .act = eye_act,
                                             .learn = eye_learn,
                                             .save = eye_save,
                                             .load = eye_load};
    static const struct ls_plugin plugin = {.abi = LS_PLUGIN_ABI,
                                            .name = "dots",
                                            .version = "1",
                                            .env = &dots,
                                            .policy = &eye};
    return &plugin;
}
