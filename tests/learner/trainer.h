/* trainer.h - ops of a learner that note what they are asked for. */
#ifndef TRAINER_H
#define TRAINER_H

#include "base/gate.h"
#include "lockstep/learner.h"

enum { N_BATCHES_MAX = 64 };

struct trainer {
    ls_mutex mutex;
    /* The rest under mutex, or set before there is a learner. */
    size_t loads;
    size_t drops;
    size_t applies;
    size_t trained[N_BATCHES_MAX]; /* the number of a batch, pass by pass */
    size_t n_trained;
    struct gate *load_gate;     /* borrow; NULL: none */
    struct gate *drop_gate;     /* the same */
    struct gate *compute_gates; /* borrow; one per device; NULL: none */
    int load_status;            /* what load returns, with this text */
    int compute_status;
    bool others_abort;     /* the other devices give up, too */
    size_t compute_device; /* where */
    int apply_status;
    const char *text; /* borrow; NULL: none is left */
};

static inline void init_trainer(struct trainer *trainer, ls_runtime *runtime)
{
    memset(trainer, 0, sizeof *trainer);
    assert_int_equal(ls_mutex_init(&trainer->mutex, runtime), LS_OK);
}

static inline void fini_trainer(struct trainer *trainer)
{
    ls_mutex_fini(&trainer->mutex);
}

/* A batch's data is its number, plus one. */
static inline size_t number_of(const struct ls_learner_batch *batch)
{
    return (size_t)(uintptr_t)batch->data - 1;
}

static inline struct ls_learner_batch batch_of(size_t number)
{
    return (struct ls_learner_batch){.data = (void *)(uintptr_t)(number + 1),
                                     .env_steps = 10 * number,
                                     .agent_steps = 20 * number};
}

static inline int fail_with(const struct trainer *trainer, int status)
{
    return status == LS_OK || trainer->text == NULL
               ? status
               : ls_error(status, "%s", trainer->text);
}

static inline int note_load(void *self, const struct ls_learner_place *place)
{
    struct trainer *const trainer = self;
    (void)place;
    ls_mutex_lock(&trainer->mutex);
    trainer->loads++;
    ls_mutex_unlock(&trainer->mutex);
    if (trainer->load_gate != NULL)
        pass_gate(trainer->load_gate);
    return fail_with(trainer, trainer->load_status);
}

static inline int note_compute(void *self, const struct ls_learner_place *place,
                               unsigned pass, ls_learner_info *info)
{
    struct trainer *const trainer = self;
    ls_mutex_lock(&trainer->mutex);
    if (place->device == 0 && trainer->n_trained < N_BATCHES_MAX)
        trainer->trained[trainer->n_trained++] = number_of(place->batch);
    ls_mutex_unlock(&trainer->mutex);
    if (trainer->compute_gates != NULL)
        pass_gate(&trainer->compute_gates[place->device]);
    if (place->device == trainer->compute_device &&
        trainer->compute_status != LS_OK)
        return fail_with(trainer, trainer->compute_status);
    if (trainer->others_abort)
        return ls_error(LS_EABORTED, "another one failed");
    const int status = ls_learner_info_add(
        info, "loss", (double)(100 * pass + 10 * place->device));
    return status == LS_OK ? ls_learner_info_add(info, "max_pass", (double)pass)
                           : status;
}

static inline int note_apply(void *self, unsigned pass, ls_learner_info *info)
{
    struct trainer *const trainer = self;
    (void)pass;
    (void)info;
    ls_mutex_lock(&trainer->mutex);
    trainer->applies++;
    ls_mutex_unlock(&trainer->mutex);
    return fail_with(trainer, trainer->apply_status);
}

static inline void note_drop(void *self, struct ls_learner_batch *batch)
{
    struct trainer *const trainer = self;
    assert(batch->data != NULL);
    memset(batch, 0, sizeof *batch); /* whoever looks now is late */
    ls_mutex_lock(&trainer->mutex);
    trainer->drops++;
    ls_mutex_unlock(&trainer->mutex);
    if (trainer->drop_gate != NULL)
        pass_gate(trainer->drop_gate);
}

static const struct ls_learner_ops trainer_ops = {.load = note_load,
                                                  .compute = note_compute,
                                                  .apply = note_apply,
                                                  .drop = note_drop};

static inline ls_learner *start_learner(ls_runtime *runtime,
                                        struct trainer *trainer,
                                        struct ls_learner_options options)
{
    ls_learner *learner;
    options.ops = &trainer_ops;
    options.self = trainer;
    assert_int_equal(ls_learner_create(&learner, runtime, &options), LS_OK);
    return learner;
}

static inline void put(ls_learner *learner, size_t number)
{
    struct ls_learner_batch batch = batch_of(number);
    assert_int_equal(ls_learner_put(learner, &batch, -1), LS_OK);
    assert_null(batch.data);
}

static inline struct ls_learner_result get(ls_learner *learner)
{
    struct ls_learner_result result = {.info = NULL};
    assert_int_equal(ls_learner_get(learner, &result, -1), LS_OK);
    return result;
}

static inline struct ls_learner_counts counts_of(ls_learner *learner)
{
    struct ls_learner_counts counts;
    ls_learner_counts(learner, &counts);
    return counts;
}

/* Stop it, and see that every batch and every result is accounted for. */
static inline void end_learner(ls_learner *learner, struct trainer *trainer)
{
    assert_int_equal(ls_learner_stop(learner, -1), LS_OK);
    const struct ls_learner_counts counts = counts_of(learner);
    assert_true(counts.put ==
                counts.trained + counts.dropped + counts.discarded);
    assert_true(trainer->drops == counts.put);
    assert_int_equal(counts.queued, 0);
    assert_true(counts.steps >= counts.got + counts.results_dropped);
    ls_learner_destroy(&learner);
    assert_null(learner);
}

#endif
