/* A classifier of points in the plane, trained by one program on one rank, on
 * threads, and on nodes:
 *
 *     train single
 *     train threads 3
 *     train bus RANK RANKS FOLDER      once for each rank; sockets go to FOLDER
 *
 * All come to the same weights, bit for bit, on all ranks. */
#include <inttypes.h>
#include <lockstep/lockstep.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 3, SAMPLES = 960, BATCH = 48, EPOCHS = 5 };

/* ---- the data: three clouds, each sample from its own number ------------- */

struct item {
    double x, y;
    int64_t label;
};

static int load(void *self, const uint64_t *indices, size_t n, void *items)
{
    struct item *out = items;
    (void)self;
    for (size_t i = 0; i < n; i++) {
        struct ls_rng random;
        ls_rng_seed(&random, 1, indices[i]);
        const int64_t label = (int64_t)(indices[i] % CLASSES);
        const double angle = 2.0 * (double)label; /* in radians */
        out[i].x = 2.0 * cos(angle) + ls_rng_normal(&random);
        out[i].y = 2.0 * sin(angle) + ls_rng_normal(&random);
        out[i].label = label;
    }
    return LS_OK;
}

/* ---- the model: a linear map, and softmax -------------------------------- */

struct model {
    double (*w)[3]; /* for each class: of x, of y, and of 1 */
    double (*w_gradient)[3];
    double gradient[CLASSES][3]; /* of the last batch's mean loss */
};

static bool parameter(const void *self, size_t at, struct ls_parameter *out)
{
    (void)self;
    *out = (struct ls_parameter){.name = "w",
                                 .form = {LS_BLOB_F64, 2, {CLASSES, 3}}};
    return at == 0;
}

static int begin(void *self, const struct ls_parameter *parameters,
                 struct ls_rng *random)
{
    struct model *model = self;
    model->w = parameters[0].value;
    model->w_gradient = parameters[0].gradient;
    for (int i = 0; i < CLASSES; i++)
        for (int j = 0; j < 3; j++)
            model->w[i][j] = 0.1 * ls_rng_normal(random);
    return LS_OK;
}

/* The probabilities of the classes; returns the likeliest. */
static int classify(const struct model *model, const struct item *item,
                    double out[CLASSES])
{
    double sum = 0.0;
    int best = 0;
    for (int i = 0; i < CLASSES; i++) {
        const double *w = model->w[i];
        out[i] = exp(w[0] * item->x + w[1] * item->y + w[2]);
        sum += out[i];
        best = out[i] > out[best] ? i : best;
    }
    for (int i = 0; i < CLASSES; i++)
        out[i] /= sum;
    return best;
}

static int run_batch(void *self, const struct ls_batch *batch,
                     ls_learner_info *figures)
{
    struct model *model = self;
    const struct item *items = batch->items;
    const double share = 1.0 / (double)batch->n;
    double loss = 0.0, accuracy = 0.0;
    memset(model->gradient, 0, sizeof model->gradient);
    for (size_t k = 0; k < batch->n; k++) {
        double p[CLASSES];
        accuracy += share * (classify(model, &items[k], p) == items[k].label);
        loss -= share * log(p[items[k].label]);
        for (int i = 0; i < CLASSES; i++) {
            const double error = share * (p[i] - (i == items[k].label));
            model->gradient[i][0] += error * items[k].x;
            model->gradient[i][1] += error * items[k].y;
            model->gradient[i][2] += error;
        }
    }
    const int status = ls_learner_info_add(figures, "loss", loss);
    return status == LS_OK ? ls_learner_info_add(figures, "accuracy", accuracy)
                           : status;
}

static int backward(void *self, double scale)
{
    struct model *model = self;
    for (int i = 0; i < CLASSES; i++)
        for (int j = 0; j < 3; j++)
            model->w_gradient[i][j] += scale * model->gradient[i][j];
    return LS_OK;
}

/* ---- the optimiser: gradient descent with momentum ----------------------- */

static int descend(void *config, const struct ls_parameter *parameter,
                   void *const *slots, uint64_t step)
{
    const double rate = *(const double *)config;
    double *value = parameter->value, *momentum = slots[0];
    const double *gradient = parameter->gradient;
    (void)step;
    for (size_t i = 0; i < ls_parameter_count(parameter); i++) {
        momentum[i] = 0.9 * momentum[i] + gradient[i];
        value[i] -= rate * momentum[i];
    }
    return LS_OK;
}

/* ---- the training, the same everywhere ----------------------------------- */

static int print_epoch(void *self, ls_trainer *trainer)
{
    (void)self;
    if (ls_driver_rank(ls_trainer_driver(trainer)) == 0)
        printf("epoch %" PRIu64 ": loss %.9f, accuracy %.1f %%\n",
               ls_trainer_epoch(trainer) + 1,
               ls_trainer_evaluation(trainer, "loss"),
               100.0 * ls_trainer_evaluation(trainer, "accuracy"));
    return LS_OK;
}

static int train(void *self, ls_driver *driver)
{
    static const struct ls_model_ops ops = {.name = "softmax",
                                            .state_bytes = sizeof(struct model),
                                            .parameter = parameter,
                                            .begin = begin,
                                            .train = run_batch,
                                            .backward = backward,
                                            .evaluate = run_batch};
    static const struct ls_optimiser_ops momentum = {
        .name = "momentum", .n_slots = 1, .step = descend};
    static const struct ls_data data = {SAMPLES, sizeof(struct item), load,
                                        NULL};
    static const struct ls_trainer_callbacks callbacks = {
        .name = "print", .after_evaluation = print_epoch};
    static double rate = 0.05;
    const struct ls_optimiser optimiser = {.ops = &momentum, .config = &rate};
    (void)self;
    int status = ls_driver_setup(
        driver, &(struct ls_driver_setup){.model = &ops,
                                          .optimisers = &optimiser,
                                          .n_optimisers = 1});
    if (status == LS_OK)
        status =
            ls_trainer_run(driver,
                           &(struct ls_trainer_options){
                               .data = &data,
                               .evaluation = &data,
                               .epochs = EPOCHS,
                               .batch_size = BATCH / ls_driver_size(driver),
                               .callbacks = &callbacks,
                               .n_callbacks = 1},
                           NULL);
    if (status == LS_OK)
        printf("rank %u of %u: weights %016" PRIx64 "\n",
               ls_driver_rank(driver), ls_driver_size(driver),
               ls_driver_hash(driver));
    return status;
}

/* ---- the place ----------------------------------------------------------- */

static int make_node(ls_node **out, char **argv)
{
    struct ls_node_options options;
    char bind[256], first[256];
    const char *attach = first;
    (void)snprintf(bind, sizeof bind, "ipc://%s/%s.ipc", argv[4], argv[2]);
    (void)snprintf(first, sizeof first, "ipc://%s/0.ipc", argv[4]);
    ls_node_options_init(&options);
    options.id = (uint32_t)strtoul(argv[2], NULL, 10);
    options.world_size = (uint32_t)strtoul(argv[3], NULL, 10);
    options.bind = bind;
    options.attach = &attach;
    options.n_attach = 1;
    return ls_node_create(out, &options);
}

int main(int argc, char **argv)
{
    struct ls_driver_options options = {.kind = LS_DRIVER_SINGLE, .seed = 7};
    ls_node *node = NULL;
    int status = LS_OK;
    if (argc == 3 && strcmp(argv[1], "threads") == 0) {
        options.kind = LS_DRIVER_THREADS;
        options.n_threads = (uint32_t)strtoul(argv[2], NULL, 10);
    } else if (argc == 5 && strcmp(argv[1], "bus") == 0) {
        status = make_node(&node, argv);
        options.kind = LS_DRIVER_BUS;
        options.node = node;
    } else if (argc != 1 && (argc != 2 || strcmp(argv[1], "single") != 0)) {
        status = ls_error(LS_EINVAL, "usage: train single | threads N | bus "
                                     "RANK RANKS FOLDER");
    }
    if (status == LS_OK)
        status = ls_driver_run(&options, train, NULL);
    if (status != LS_OK)
        fprintf(stderr, "train: %s\n", ls_error_text());
    ls_node_destroy(&node);
    return ls_status_exit_code(status);
}
