/* line.h - a model to train in tests: y = w·x + b, with an optimiser and data.
 * Ranks check with CHECK(): an assertion would leave the rank's thread. */
#ifndef DRIVER_LINE_H
#define DRIVER_LINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/driver.h"
#include "test.h"

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            return ls_error(LS_EINVARIANT, "%s:%d: %s", __FILE__, __LINE__,    \
                            #condition);                                       \
    } while (0)
#define TRY(call)                                                              \
    do {                                                                       \
        const int tried = (call);                                              \
        if (tried != LS_OK)                                                    \
            return ls_error_at(tried, "%s:%d", __FILE__, __LINE__);            \
    } while (0)
#define CHECK_FAILS(call, wanted) CHECK((call) == (wanted))
#define CHECK_ERROR_HAS(part)     CHECK(strstr(ls_error_text(), (part)) != NULL)

enum { LINE_SAMPLES = 40 };

struct line_item {
    double x[2], y;
};

struct line {
    const struct ls_parameter *parameters;
    double gradient[3]; /* of the last batch */
    struct ls_rng *random;
    enum ls_mode mode;
    bool low_precision;
};

static inline int line_load(void *self, const uint64_t *indices, size_t n,
                            void *items)
{
    struct line_item *out = items;
    (void)self;
    for (size_t i = 0; i < n; i++) {
        const double a = (double)(indices[i] % 7) - 3.0;
        const double b = (double)(indices[i] % 5) - 2.0;
        out[i] = (struct line_item){{a, b}, 2 * a - 3 * b + 1};
    }
    return LS_OK;
}

static const struct ls_data line_data = {.length = LINE_SAMPLES,
                                         .item_bytes = sizeof(struct line_item),
                                         .load = line_load};

static inline int line_init(void *model, const struct ls_model_setup *setup)
{
    struct line *line = model;
    line->random = setup->random;
    return LS_OK;
}

static inline bool line_parameter(const void *model, size_t at,
                                  struct ls_parameter *out)
{
    static const struct ls_parameter all[] = {
        {.name = "w", .form = {LS_BLOB_F64, 1, {2}}},
        {.name = "b", .form = {.type = LS_BLOB_F64}}};
    (void)model;
    if (at >= 2)
        return false;
    *out = all[at];
    return true;
}

static inline int line_begin(void *model, const struct ls_parameter *parameters,
                             struct ls_rng *random)
{
    struct line *line = model;
    double *w = parameters[0].value;
    line->parameters = parameters;
    w[0] = ls_rng_normal(random);
    w[1] = ls_rng_normal(random);
    return LS_OK;
}

static inline int line_forward(struct line *line, const struct ls_batch *batch,
                               ls_learner_info *figures)
{
    const struct line_item *items = batch->items;
    const double *w = line->parameters[0].value;
    const double *b = line->parameters[1].value;
    double loss = 0.0, greatest = 0.0;
    memset(line->gradient, 0, sizeof line->gradient);
    for (size_t i = 0; i < batch->n; i++) {
        const double error =
            w[0] * items[i].x[0] + w[1] * items[i].x[1] + *b - items[i].y;
        const double share = 2 * error / (double)batch->n;
        line->gradient[0] += share * items[i].x[0];
        line->gradient[1] += share * items[i].x[1];
        line->gradient[2] += share;
        loss += error * error / (double)batch->n;
        greatest = error * error > greatest ? error * error : greatest;
    }
    const int status = ls_learner_info_add(figures, "loss", loss);
    return status == LS_OK ? ls_learner_info_add(figures, "max_loss", greatest)
                           : status;
}

/* Training draws, so that a generator that is not restored shows. */
static inline int line_train(void *model, const struct ls_batch *batch,
                             ls_learner_info *figures)
{
    struct line *line = model;
    const int status = line_forward(line, batch, figures);
    for (int i = 0; i < 3 && line->random != NULL; i++)
        line->gradient[i] += 0.01 * ls_rng_normal(line->random);
    return status;
}

static inline int line_evaluate(void *model, const struct ls_batch *batch,
                                ls_learner_info *figures)
{
    return line_forward(model, batch, figures);
}

static inline int line_backward(void *model, double scale)
{
    struct line *line = model;
    double *w = line->parameters[0].gradient;
    double *b = line->parameters[1].gradient;
    w[0] += scale * line->gradient[0];
    w[1] += scale * line->gradient[1];
    *b += scale * line->gradient[2];
    return LS_OK;
}

static inline int line_set_mode(void *model, enum ls_mode mode)
{
    ((struct line *)model)->mode = mode;
    return LS_OK;
}

static inline int line_auto_cast(void *model, bool on)
{
    ((struct line *)model)->low_precision = on;
    return LS_OK;
}

static const struct ls_model_ops line_ops = {.name = "line",
                                             .state_bytes = sizeof(struct line),
                                             .init = line_init,
                                             .parameter = line_parameter,
                                             .begin = line_begin,
                                             .train = line_train,
                                             .backward = line_backward,
                                             .evaluate = line_evaluate,
                                             .set_mode = line_set_mode,
                                             .auto_cast = line_auto_cast};

/* The same without noise: its losses can be compared between numbers of
 * ranks. */
static inline int still_init(void *model, const struct ls_model_setup *setup)
{
    (void)model;
    (void)setup;
    return LS_OK;
}

static inline struct ls_model_ops still_ops(void)
{
    struct ls_model_ops ops = line_ops;
    ops.init = still_init;
    return ops;
}

/* Gradient descent with momentum. */
static inline int sgd_step(void *config, const struct ls_parameter *parameter,
                           void *const *slots, uint64_t step)
{
    const double rate = *(const double *)config;
    double *value = parameter->value, *momentum = slots[0];
    const double *gradient = parameter->gradient;
    (void)step;
    for (size_t i = 0; i < ls_parameter_count(parameter); i++) {
        momentum[i] = 0.5 * momentum[i] + gradient[i];
        value[i] -= rate * momentum[i];
    }
    return LS_OK;
}

static const struct ls_optimiser_ops sgd_ops = {
    .name = "sgd", .n_slots = 1, .step = sgd_step};
static double sgd_rate = 0.02;
static const struct ls_optimiser sgd = {.ops = &sgd_ops, .config = &sgd_rate};

static inline int line_setup(ls_driver *driver, const struct ls_model_ops *ops)
{
    return ls_driver_setup(
        driver, &(struct ls_driver_setup){
                    .model = ops, .optimisers = &sgd, .n_optimisers = 1});
}

/* Run on each kind of place that this process has. */
static inline int run_kind(enum ls_driver_kind kind, uint32_t n,
                           ls_driver_fn *fn, void *self)
{
    return ls_driver_run(
        &(struct ls_driver_options){.kind = kind, .n_threads = n, .seed = 5},
        fn, self);
}

static inline int run_threads(uint32_t n, ls_driver_fn *fn, void *self)
{
    return run_kind(LS_DRIVER_THREADS, n, fn, self);
}

/* A folder of the test's own. */
struct scratch {
    char folder[64];
    char command[128];
};

static inline int scratch_set_up(void **state)
{
    struct scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    /* In memory: each save waits for its disk. */
    memcpy(scratch->folder, "/dev/shm/lockstep-XXXXXX",
           sizeof "/dev/shm/lockstep-XXXXXX");
    assert_non_null(mkdtemp(scratch->folder));
    *state = scratch;
    return 0;
}

static inline int scratch_tear_down(void **state)
{
    struct scratch *scratch = *state;
    (void)snprintf(scratch->command, sizeof scratch->command, "rm -r %s",
                   scratch->folder);
    assert_int_equal(system(scratch->command), 0);
    free(scratch);
    return 0;
}

#endif
