#include "lockstep/trainer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_inside.h"
#include "lockstep/metrics.h"
#include "tally.h"

/* Where the training is: the blob "trainer", the same in all ranks. */
struct progress {
    int64_t epoch; /* the current one */
    int64_t steps;
    int64_t is_epoch_trained; /* all its batches were; the rest of it was not
                               * done */
    int64_t saves;            /* the number of the last checkpoint */
};
#define N_PROGRESS (sizeof(struct progress) / sizeof(int64_t))

struct ls_trainer {
    ls_driver *driver;                        /* borrow */
    const struct ls_trainer_options *options; /* borrow */
    ls_loader *loader, *evaluation;           /* own */
    ls_learner_info *figures;                 /* own */
    ls_metrics *metrics;                      /* own; NULL: none */
    struct tally evaluated;
    struct progress progress;
    uint64_t batch;    /* of the epoch */
    uint32_t gathered; /* batches since the last step */
    bool wishes_stop;  /* this rank */
    bool stops;        /* all ranks */
    bool is_saved;     /* nothing happened since the last checkpoint */
    bool is_listed;    /* the blob is; not another trainer's */
    bool is_open;      /* checkpoints are; not the caller's */
    const char *doing; /* for errors: a static text */
};

/* ---- callbacks ----------------------------------------------------------- */

static int call(ls_trainer *trainer, size_t offset, const char *doing)
{
    const struct ls_trainer_options *const options = trainer->options;
    trainer->doing = doing;
    for (size_t i = 0; i < options->n_callbacks; i++) {
        const struct ls_trainer_callbacks *const table = &options->callbacks[i];
        ls_trainer_fn *fn;
        memcpy(&fn, (const char *)table + offset, sizeof fn);
        const int status = fn != NULL ? fn(table->self, trainer) : LS_OK;
        if (status != LS_OK)
            return table->name != NULL
                       ? ls_error_at(status, "callback %s", table->name)
                       : status;
    }
    return LS_OK;
}
#define CALL(trainer, member)                                                  \
    call((trainer), offsetof(struct ls_trainer_callbacks, member), #member)

static void tell_exception(ls_trainer *trainer, int status)
{
    const struct ls_trainer_options *const options = trainer->options;
    struct ls_exception what;
    struct ls_failure failure;
    ls_driver_on_exception(trainer->driver, status, trainer->doing, &what);
    ls_failure_keep(&failure, status);
    for (size_t i = 0; i < options->n_callbacks; i++) {
        const struct ls_trainer_callbacks *const table = &options->callbacks[i];
        if (table->on_exception != NULL)
            table->on_exception(table->self, trainer, &what);
    }
    (void)ls_failure_return(&failure);
}

/* ---- metrics ------------------------------------------------------------- */

static int note(ls_trainer *trainer, const char *kind, const char *name,
                double value)
{
    char full[LS_METRIC_NAME_MAX + 16];
    (void)snprintf(full, sizeof full, "%s.%s", kind, name);
    return ls_metrics_add(trainer->metrics, full, trainer->progress.steps,
                          value);
}

static int note_step(ls_trainer *trainer)
{
    const ls_learner_info *const figures = trainer->figures;
    int status = LS_OK;
    if (trainer->metrics == NULL)
        return LS_OK;
    for (size_t i = 0; i < ls_learner_info_count(figures) && status == LS_OK;
         i++)
        status = note(trainer, "train", ls_learner_info_name(figures, i),
                      ls_learner_info_value(figures, i));
    return status;
}

static int note_evaluation(ls_trainer *trainer)
{
    const struct tally *const tally = &trainer->evaluated;
    int status = LS_OK;
    if (trainer->metrics == NULL || ls_driver_rank(trainer->driver) != 0)
        return LS_OK;
    for (size_t i = 0; i < tally->n && status == LS_OK; i++)
        status = note(trainer, "evaluation", tally->items[i].name,
                      tally_get(tally, tally->items[i].name));
    return status;
}

static int flush(ls_trainer *trainer)
{
    trainer->doing = "metrics";
    return trainer->metrics != NULL ? ls_metrics_flush(trainer->metrics)
                                    : LS_OK;
}

/* ---- checkpoints --------------------------------------------------------- */

static int save(ls_trainer *trainer)
{
    if (trainer->options->folder == NULL || trainer->is_saved)
        return LS_OK;
    int status = CALL(trainer, on_save);
    if (status == LS_OK)
        status = flush(trainer);
    if (status != LS_OK)
        return status;
    trainer->doing = "save";
    trainer->progress.saves++;
    status = ls_driver_save(trainer->driver, trainer->progress.saves,
                            trainer->stops);
    trainer->is_saved = status == LS_OK;
    return status;
}

static int refuse_to_overwrite(ls_trainer *trainer)
{
    bool is_empty;
    const int status = driver_is_empty(trainer->driver, &is_empty);
    if (status != LS_OK || is_empty)
        return status;
    return ls_error(LS_EEXIST,
                    "%s has checkpoints: resume, or choose another folder",
                    trainer->options->folder);
}

/* As a foreign file may have it, whose bytes are whole. */
static int check_progress(ls_trainer *trainer)
{
    const struct progress loaded = trainer->progress;
    if (loaded.epoch >= 0 && loaded.steps >= 0)
        return LS_OK;
    trainer->progress = (struct progress){.epoch = 0};
    return ls_error(LS_EPROTO,
                    "checkpoint %" PRId64 ": no trainer is in epoch %" PRId64
                    " after %" PRId64 " steps",
                    loaded.saves, loaded.epoch, loaded.steps);
}

static int load(ls_trainer *trainer)
{
    const struct ls_trainer_options *const options = trainer->options;
    struct ls_driver_loaded loaded;
    trainer->doing = "load";
    if (options->folder == NULL)
        return LS_OK;
    int status = ls_driver_open_checkpoints(trainer->driver, options->folder,
                                            &options->retention);
    trainer->is_open = status == LS_OK;
    if (status == LS_OK && !options->resume)
        return refuse_to_overwrite(trainer);
    if (status == LS_OK)
        status = ls_driver_load(trainer->driver, LS_CHECKPOINT_NONE, &loaded);
    if (status != LS_OK || loaded.number == LS_CHECKPOINT_NONE)
        return status;
    trainer->progress.saves = loaded.number;
    status = check_progress(trainer);
    if (status != LS_OK)
        return status;
    trainer->stops = loaded.stopped;
    trainer->is_saved = true;
    return CALL(trainer, on_load);
}

/* ---- evaluation ---------------------------------------------------------- */

static int evaluate_batches(ls_trainer *trainer, struct tally *tally)
{
    const struct ls_batch *batch;
    int status;
    while ((status = ls_loader_next(trainer->evaluation, &batch)) == LS_OK &&
           batch != NULL) {
        ls_learner_info_clear(trainer->figures);
        status = ls_driver_evaluate(trainer->driver, batch, trainer->figures);
        if (status == LS_OK)
            status = tally_add(tally, trainer->figures, batch->n);
        if (status != LS_OK)
            return status;
        (void)ls_loader_consume(trainer->evaluation);
    }
    return status;
}

/* In the order of ranks: equal in all of them. Nobody goes on before all have
 * evaluated. */
static int merge_ranks(ls_trainer *trainer, const struct tally *own)
{
    const uint32_t size = ls_driver_size(trainer->driver);
    ls_document **all = calloc(size, sizeof all[0]);
    ls_writer *writer = NULL;
    size_t n = 0;
    int status = all != NULL ? ls_writer_create(&writer)
                             : ls_error(LS_ENOMEM, "no memory for figures");
    trainer->evaluated = (struct tally){.n = 0};
    if (status == LS_OK) {
        tally_write(own, writer);
        status = ls_driver_all_gather_object(trainer->driver, writer, all, &n);
    }
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = tally_merge(&trainer->evaluated, ls_document_root(all[i]));
    for (size_t i = 0; i < n; i++)
        ls_document_destroy(&all[i]);
    ls_writer_destroy(&writer);
    free(all);
    return status;
}

static int evaluate(ls_trainer *trainer)
{
    struct tally tally = {.n = 0};
    const uint64_t every = trainer->options->evaluate_every > 0
                               ? trainer->options->evaluate_every
                               : 1;
    if (trainer->evaluation == NULL ||
        ((uint64_t)trainer->progress.epoch + 1) % every != 0)
        return LS_OK;
    int status = CALL(trainer, before_evaluation);
    if (status != LS_OK)
        return status;
    trainer->doing = "evaluate";
    status = ls_driver_set_mode(trainer->driver, LS_MODE_EVALUATE);
    if (status == LS_OK)
        status = evaluate_batches(trainer, &tally);
    if (status == LS_OK)
        status = ls_driver_set_mode(trainer->driver, LS_MODE_TRAIN);
    if (status == LS_OK)
        status = merge_ranks(trainer, &tally);
    if (status == LS_OK)
        status = note_evaluation(trainer);
    return status == LS_OK ? CALL(trainer, after_evaluation) : status;
}

/* ---- a batch ------------------------------------------------------------- */

static int step(ls_trainer *trainer)
{
    const int status = CALL(trainer, before_step);
    if (status != LS_OK)
        return status;
    trainer->doing = "step";
    trainer->gathered = 0;
    trainer->progress.steps++;
    return ls_driver_step(trainer->driver);
}

static int compute(ls_trainer *trainer, const struct ls_batch *batch)
{
    const uint32_t accumulate =
        trainer->options->accumulate > 0 ? trainer->options->accumulate : 1;
    const bool is_last =
        ls_sampler_remaining(ls_loader_sampler(trainer->loader)) == 1;
    int status = LS_OK;
    if (trainer->gathered++ == 0)
        status = ls_driver_zero_grad(trainer->driver);
    const bool steps = trainer->gathered == accumulate || is_last;
    bool stop = trainer->wishes_stop;
    ls_learner_info_clear(trainer->figures);
    trainer->doing = "train";
    if (status == LS_OK)
        status = ls_driver_train(trainer->driver, batch, trainer->figures);
    if (status != LS_OK)
        return status;
    trainer->doing = "backward";
    status = driver_backward(trainer->driver, 1.0 / accumulate, steps, &stop);
    if (status != LS_OK || !steps)
        return status;
    trainer->stops = stop;
    status = step(trainer);
    return status == LS_OK ? note_step(trainer) : status;
}

static int train_batch(ls_trainer *trainer, const struct ls_batch *batch)
{
    const uint64_t every = trainer->options->save_every;
    int status = CALL(trainer, before_batch);
    if (status == LS_OK)
        status = compute(trainer, batch);
    if (status == LS_OK)
        status = ls_loader_consume(trainer->loader);
    trainer->is_saved = false;
    if (status == LS_OK)
        status = CALL(trainer, after_batch);
    const bool is_step = trainer->gathered == 0;
    ls_sampler *const sampler = ls_loader_sampler(trainer->loader);
    trainer->progress.is_epoch_trained = ls_sampler_remaining(sampler) == 0;
    if (status == LS_OK && is_step && every > 0 && !trainer->stops &&
        (uint64_t)trainer->progress.steps % every == 0)
        status = save(trainer);
    return status;
}

/* ---- an epoch ------------------------------------------------------------ */

/* Also of one that was trained in an earlier life, and is yet to be ended. */
static int begin_epoch(ls_trainer *trainer)
{
    ls_sampler *const sampler = ls_loader_sampler(trainer->loader);
    const int status =
        ls_sampler_set_epoch(sampler, (uint64_t)trainer->progress.epoch);
    if (status != LS_OK)
        return status;
    trainer->batch = trainer->progress.is_epoch_trained
                         ? ls_sampler_batches(sampler)
                         : ls_sampler_batch_index(sampler);
    return CALL(trainer, before_epoch);
}

static int train_batches(ls_trainer *trainer)
{
    ls_sampler *const sampler = ls_loader_sampler(trainer->loader);
    const struct ls_batch *batch = NULL;
    int status = LS_OK;
    while (status == LS_OK && !trainer->stops) {
        trainer->batch = ls_sampler_batch_index(sampler);
        trainer->doing = "load batch";
        status = ls_loader_next(trainer->loader, &batch);
        if (status != LS_OK || batch == NULL)
            break;
        status = train_batch(trainer, batch);
    }
    ls_sampler_end(sampler);
    return status;
}

/* Also the barrier after the epoch. */
static int agree_to_stop(ls_trainer *trainer)
{
    bool any = false;
    trainer->doing = "after_epoch";
    const int status =
        ls_driver_any(trainer->driver, trainer->wishes_stop, &any);
    trainer->stops = trainer->stops || any;
    return status;
}

static int run_epoch(ls_trainer *trainer)
{
    int status = begin_epoch(trainer);
    if (status == LS_OK && !trainer->progress.is_epoch_trained)
        status = train_batches(trainer);
    if (status != LS_OK || trainer->stops)
        return status;
    status = evaluate(trainer);
    if (status == LS_OK)
        status = CALL(trainer, after_epoch);
    if (status == LS_OK)
        status = agree_to_stop(trainer);
    if (status != LS_OK)
        return status;
    trainer->progress.epoch++;
    trainer->progress.is_epoch_trained = false;
    trainer->is_saved = false;
    status = flush(trainer);
    return status == LS_OK ? save(trainer) : status;
}

/* ---- the training -------------------------------------------------------- */

static int check(const ls_driver *driver,
                 const struct ls_trainer_options *options)
{
    if (ls_driver_model(driver) == NULL)
        return ls_error(LS_ESTATE,
                        "a trainer needs a model: call ls_driver_setup()");
    if (options->data == NULL)
        return ls_error(LS_EINVAL, "a trainer needs its option `data`");
    if (options->epochs == 0)
        return ls_error(LS_EINVAL,
                        "a trainer needs its option `epochs`: 1 or more");
    if (options->spread != LS_SPREAD_PAD && options->spread != LS_SPREAD_CUT)
        return ls_error(LS_EINVAL,
                        "a trainer cannot spread its data %s: ranks that wait "
                        "for each other need equally many batches",
                        ls_spread_name(options->spread) != NULL
                            ? ls_spread_name(options->spread)
                            : "like this");
    return LS_OK;
}

static int init(ls_trainer *trainer)
{
    const struct ls_trainer_options *const options = trainer->options;
    int status =
        ls_blobs_add(ls_driver_blobs(trainer->driver),
                     &(struct ls_blob){.name = "trainer",
                                       .form = {LS_BLOB_I64, 1, {N_PROGRESS}},
                                       .memory = &trainer->progress});
    trainer->is_listed = status == LS_OK;
    if (status == LS_OK)
        status = ls_learner_info_create(&trainer->figures);
    if (status == LS_OK && options->metrics != NULL)
        status = ls_metrics_open(&trainer->metrics, trainer->driver,
                                 options->metrics);
    if (status == LS_OK)
        status = ls_loader_create(
            &trainer->loader, trainer->driver,
            &(struct ls_loader_options){.data = options->data,
                                        .spread = options->spread,
                                        .in_order = options->in_order,
                                        .drop_last = options->drop_last,
                                        .batch_size = options->batch_size,
                                        .blob = "sampler"});
    if (status == LS_OK && ls_trainer_batches(trainer) == 0)
        status = ls_error(LS_EINVAL,
                          "a trainer has no batch in %" PRIu64
                          " samples: without drop_last, of fewer samples, or "
                          "with fewer ranks it has",
                          options->data->length);
    if (status == LS_OK && options->evaluation != NULL)
        status = ls_loader_create(
            &trainer->evaluation, trainer->driver,
            &(struct ls_loader_options){.data = options->evaluation,
                                        .spread = LS_SPREAD_EXACT,
                                        .in_order = true,
                                        .batch_size =
                                            options->evaluation_batch_size > 0
                                                ? options->evaluation_batch_size
                                                : options->batch_size});
    return status;
}

static void fini(ls_trainer *trainer)
{
    ls_loader_destroy(&trainer->evaluation);
    ls_loader_destroy(&trainer->loader);
    ls_metrics_close(&trainer->metrics);
    ls_learner_info_destroy(&trainer->figures);
    if (trainer->is_open)
        driver_close_checkpoints(trainer->driver);
    if (trainer->is_listed)
        (void)ls_blobs_remove(ls_driver_blobs(trainer->driver), "trainer");
}

static int train(ls_trainer *trainer)
{
    const uint64_t epochs = trainer->options->epochs;
    int status = load(trainer);
    if (status != LS_OK)
        return status;
    trainer->doing = "before_training";
    status = ls_driver_barrier(trainer->driver);
    if (status == LS_OK)
        status = ls_driver_set_mode(trainer->driver, LS_MODE_TRAIN);
    if (status == LS_OK)
        status = CALL(trainer, before_training);
    while (status == LS_OK && !trainer->stops &&
           (uint64_t)trainer->progress.epoch < epochs)
        status = run_epoch(trainer);
    if (status == LS_OK)
        status = CALL(trainer, after_training);
    if (status == LS_OK)
        status = save(trainer);
    if (status == LS_OK)
        status = flush(trainer);
    /* Nobody has succeeded while another may yet fail. */
    return status == LS_OK ? ls_driver_barrier(trainer->driver) : status;
}

int ls_trainer_run(ls_driver *driver, const struct ls_trainer_options *options,
                   struct ls_trainer_result *out)
{
    ls_trainer trainer = {
        .driver = driver, .options = options, .doing = "setup"};
    int status = check(driver, options);
    if (status != LS_OK) {
        if (out != NULL)
            *out = (struct ls_trainer_result){.epochs = 0};
        return status;
    }
    status = init(&trainer);
    if (status == LS_OK)
        status = train(&trainer);
    if (status != LS_OK) {
        status = ls_error_at(status, "epoch %" PRId64 ", batch %" PRIu64,
                             trainer.progress.epoch, trainer.batch);
        tell_exception(&trainer, status);
    }
    if (out != NULL)
        *out = (struct ls_trainer_result){
            .epochs = (uint64_t)trainer.progress.epoch,
            .steps = (uint64_t)trainer.progress.steps,
            .stopped = trainer.stops};
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    fini(&trainer);
    return ls_failure_return(&failure);
}

/* ---- in callbacks -------------------------------------------------------- */

ls_driver *ls_trainer_driver(const ls_trainer *trainer)
{
    return trainer->driver;
}

uint64_t ls_trainer_epoch(const ls_trainer *trainer)
{
    return (uint64_t)trainer->progress.epoch;
}

uint64_t ls_trainer_steps(const ls_trainer *trainer)
{
    return (uint64_t)trainer->progress.steps;
}

uint64_t ls_trainer_batch(const ls_trainer *trainer)
{
    return trainer->batch;
}

uint64_t ls_trainer_batches(const ls_trainer *trainer)
{
    return ls_sampler_batches(ls_loader_sampler(trainer->loader));
}

const ls_learner_info *ls_trainer_figures(const ls_trainer *trainer)
{
    return trainer->figures;
}

double ls_trainer_evaluation(const ls_trainer *trainer, const char *name)
{
    return tally_get(&trainer->evaluated, name);
}

void ls_trainer_stop(ls_trainer *trainer)
{
    trainer->wishes_stop = true;
}
