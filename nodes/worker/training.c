#include "training.h"

#include <stdlib.h>

#include "lockstep/log.h"

#include "teacher.h"

struct training {
    struct teacher *teacher;      /* own */
    ls_learner *learner;          /* own */
    struct teacher_piece *pieces; /* own; room for n_max in each stack */
    size_t n_max;                 /* trajectories in a batch */
    int64_t n_learned;            /* batches, with those of earlier lives */
    bool is_under_way;            /* the policy's hooks know of it */
    unsigned passes;
    ls_learner_info *said;             /* own; in one pass */
    struct ls_learner_metrics metrics; /* its info is owned */
    ls_writer *writer;                 /* own */
    const void *published;             /* borrow; what is in the writer */
    size_t published_size;
};

static int load(void *self, const struct ls_learner_place *place)
{
    struct training *const training = self;
    const struct ls_items *const items = place->batch->data;
    struct teacher_piece *pieces =
        training->pieces + place->stack * training->n_max;
    for (size_t i = 0; i < items->n && i < training->n_max; i++)
        pieces[i] = (struct teacher_piece){.data = items->items[i].data,
                                           .size = items->items[i].size};
    return teacher_load(training->teacher, place, pieces, items->n);
}

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    const struct training *const training = self;
    return teacher_learn(training->teacher, place, pass, training->n_learned,
                         info, NULL);
}

static int apply(void *self, unsigned pass, ls_learner_info *info)
{
    struct training *const training = self;
    if (pass + 1 < training->passes)
        return LS_OK;
    return teacher_hooks(training->teacher, LS_AFTER_ITER,
                         training->n_learned++, info);
}

static const struct ls_learner_ops ops = {
    .load = load, .compute = compute, .apply = apply};

static int start_learner(struct training *training, ls_runtime *runtime,
                         const struct plan_learner *plan)
{
    struct ls_learner_options options = {
        .ops = &ops,
        .self = training,
        .queue = plan->queue,
        .stacks = plan->stacks,
        .loaders = plan->loaders,
        .passes = plan->passes,
        .held_wait_ms = -1 /* the next batch comes when this one is done */};
    teacher_set_options(training->teacher, &options);
    return ls_learner_create(&training->learner, runtime, &options);
}

int training_start(struct training **out, ls_runtime *runtime,
                   const struct plan *plan, struct agent *agent,
                   uint32_t node_id, size_t n)
{
    struct training *training = calloc(1, sizeof *training);
    if (training == NULL)
        return ls_error(LS_ENOMEM, "training");
    training->n_max = n;
    training->passes = plan->learner.passes;
    training->pieces =
        calloc(n * plan->learner.stacks, sizeof *training->pieces);
    int status = training->pieces == NULL
                     ? ls_error(LS_ENOMEM, "%zu trajectories", n)
                     : teacher_create(&training->teacher, runtime,
                                      &(struct teacher_options){
                                          .agent = agent,
                                          .devices = plan->learner.devices,
                                          .n_devices = plan->learner.n_devices,
                                          .stacks = plan->learner.stacks,
                                          .n = n,
                                          .steps = plan->steps,
                                          .node_id = node_id});
    if (status == LS_OK)
        status = ls_learner_info_create(&training->said);
    if (status == LS_OK)
        status = ls_learner_info_create(&training->metrics.learner);
    if (status == LS_OK)
        status = ls_writer_create(&training->writer);
    if (status == LS_OK)
        status = start_learner(training, runtime, &plan->learner);
    if (status != LS_OK) {
        training_stop(&training);
        return status;
    }
    *out = training;
    return LS_OK;
}

int training_learn(struct training *training, const struct ls_items *items,
                   ls_learner_info *info)
{
    struct ls_learner_batch batch = {.data = (void *)(uintptr_t)items};
    struct ls_learner_result result = {.info = training->said};
    int status = ls_learner_put(training->learner, &batch, -1);
    while (status == LS_OK && !result.last) {
        status = ls_learner_get(training->learner, &result, -1);
        if (status == LS_OK)
            status = ls_learner_info_merge(info, result.info);
    }
    return status;
}

int training_begin(struct training *training, int64_t n_learned)
{
    training->n_learned = n_learned;
    training->is_under_way = true;
    return teacher_hooks(training->teacher, LS_BEFORE_RUN, n_learned, NULL);
}

int training_end(struct training *training)
{
    if (!training->is_under_way)
        return LS_OK;
    training->is_under_way = false;
    return teacher_hooks(training->teacher, LS_AFTER_RUN, training->n_learned,
                         NULL);
}

bool training_is_whole(const struct training *training)
{
    return teacher_is_whole(training->teacher);
}

int training_publish(struct training *training, ls_node *node)
{
    struct ls_emission emission = {.event = "learner.metrics",
                                   .policy = LS_POLICY_LATEST};
    int status =
        ls_learner_metrics(training->learner, &training->metrics, true);
    if (status != LS_OK)
        return status;
    training->published_size = 0;
    ls_writer_clear(training->writer);
    ls_learner_metrics_write(&training->metrics, training->writer);
    status = ls_writer_bytes(training->writer, &emission.data, &emission.size);
    if (status != LS_OK)
        return status;
    training->published = emission.data;
    training->published_size = emission.size;
    return ls_emit_with(node, &emission);
}

void training_published(const struct training *training, const void **data,
                        size_t *size)
{
    *data = training->published;
    *size = training->published_size;
}

const struct ls_learner_metrics *
training_metrics(const struct training *training)
{
    return &training->metrics;
}

void training_stop(struct training **training)
{
    if (training == NULL || *training == NULL)
        return;
    struct training *const old = *training;
    *training = NULL;
    if (training_end(old) != LS_OK)
        ls_log_warn("%s", ls_error_text());
    ls_learner_destroy(&old->learner);
    teacher_destroy(&old->teacher);
    ls_learner_info_destroy(&old->said);
    ls_learner_info_destroy(&old->metrics.learner);
    ls_writer_destroy(&old->writer);
    free(old->pieces);
    free(old);
}
