#include <lockstep/lockstep.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 4, BATCHES = 6, PASSES = 2 };

/* One number, which comes to be the mean of what it is shown. */
struct model {
    double weight, gradient;
};

static int load(void *self, const struct ls_learner_place *place)
{
    (void)self;
    const float *samples = place->batch->data;
    float *host = ls_device_stack_host(place->memory);
    for (int i = 0; i < SAMPLES; i++)
        host[i] = samples[i];
    return ls_device_stack_upload(place->memory, 0, SAMPLES * sizeof *host);
}

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    (void)pass;
    struct model *model = self;
    const float *samples = ls_device_stack_host(place->memory);
    double loss = 0.0;
    model->gradient = 0.0;
    for (int i = 0; i < SAMPLES; i++) {
        const double error = model->weight - (double)samples[i];
        model->gradient += 2 * error / SAMPLES;
        loss += error * error / SAMPLES;
    }
    return ls_learner_info_add(info, "loss", loss);
}

static int apply(void *self, unsigned pass, ls_learner_info *info)
{
    (void)pass;
    (void)info;
    struct model *model = self;
    model->weight -= 0.1 * model->gradient;
    return LS_OK;
}

static void drop(void *self, struct ls_learner_batch *batch)
{
    (void)self;
    free(batch->data);
}

static int put(ls_learner *learner)
{
    float *samples = malloc(SAMPLES * sizeof *samples);
    if (samples == NULL)
        return LS_ENOMEM;
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = (float)i; /* their mean is 1.5 */
    struct ls_learner_batch batch = {.data = samples, .env_steps = SAMPLES};
    const int status = ls_learner_put(learner, &batch, 1000);
    free(batch.data); /* NULL when it was taken */
    return status;
}

int main(void)
{
    static const struct ls_learner_ops ops = {
        .load = load, .compute = compute, .apply = apply, .drop = drop};
    struct model model = {.weight = 0.0};
    ls_device *device = NULL;
    ls_learner *learner = NULL;
    int status = ls_device_open(&device, ls_runtime_threads(), "cpu");
    if (status == LS_OK)
        status = ls_learner_create(
            &learner, ls_runtime_threads(),
            &(struct ls_learner_options){.ops = &ops,
                                         .self = &model,
                                         .stacks = 2,
                                         .loaders = 2,
                                         .passes = PASSES,
                                         .devices = &device,
                                         .n_devices = 1,
                                         .part_bytes = SAMPLES * sizeof(float),
                                         .batch_size = SAMPLES});
    for (int i = 0; i < BATCHES && status == LS_OK; i++)
        status = put(learner);
    struct ls_learner_result result = {.info = NULL};
    for (int i = 0; i < BATCHES * PASSES && status == LS_OK; i++)
        status = ls_learner_get(learner, &result, 10000);
    if (status != LS_OK)
        (void)fprintf(stderr, "%s\n", ls_error_text());
    ls_learner_destroy(&learner);
    ls_device_close(&device);
    printf("the weight is %.2f\n", model.weight);
    return ls_status_exit_code(status);
}
