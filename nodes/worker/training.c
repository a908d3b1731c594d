#include "training.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lockstep/log.h"

#include "teacher.h"

/* What one iteration has brought. Until its result is taken it belongs to who
 * puts as well: what is under way is part of what is saved. */
struct brought {
    struct ls_items items;    /* own */
    struct weights_note note; /* of the weights after it */
    atomic_uint owners;
};

/* What came of it: written by the learner thread, so that it is whole whatever
 * is learned meanwhile. */
struct outcome {
    struct ls_bytes policy; /* own; what others act by */
    struct ls_bytes file;   /* own; the value of weights.h; with `ahead` */
    struct ls_bytes rest;   /* own; all else that learning goes on from; without
                             * `ahead`, if a verdict may follow or other
                             * learners may fail */
};

/* What was told of it. */
struct figures {
    struct ls_learner_counts counts;
    ls_writer *writer; /* own */
    const void *data;  /* borrow; what is in the writer */
    size_t size;
};

struct training {
    struct agent *agent;          /* borrow */
    struct teacher *teacher;      /* own */
    ls_learner *learner;          /* own */
    struct teacher_piece *pieces; /* own; room for n_max in each stack */
    size_t n_max;                 /* trajectories in a batch */
    size_t ahead;                 /* batches under way when a call returns */
    unsigned passes;
    uint64_t seed;
    bool is_shared;                    /* with other learners */
    bool is_under_way;                 /* the policy's hooks know of it */
    size_t n_put, n_got;               /* batches, in this life */
    struct brought **under_way;        /* own; those from n_got on */
    struct outcome newest, before;     /* own */
    struct figures told, told_before;  /* own */
    ls_learner_info *said;             /* own; in one pass */
    struct ls_learner_metrics metrics; /* its info is owned */
    atomic_int_fast64_t enough;        /* nothing after this update; -1 */
    int64_t judged_every;              /* updates; 0: there is no verdict */
    /* The learner thread. */
    const struct brought *learning; /* borrow */
    int64_t n_learned;              /* batches, with those of earlier lives */
    size_t n_out;                   /* outcomes, in this life */
    ls_writer *out;                 /* own */
    bool gave_up;                   /* the batch that is over */
    struct ls_failure broken;       /* why, with other learners */
    /* One is read by who puts while at most `ahead` and one more are written:
     * the results' queue is between them. */
    struct outcome *outcomes; /* own; n_outcomes */
    size_t n_outcomes;
};

/* For what is learned on top of n_learned, which changes only when that is
 * over.
 */
static bool is_given_up(const void *self)
{
    const struct training *const training = self;
    return training->ahead == 0 &&
           atomic_load_explicit(&training->enough, memory_order_relaxed) ==
               training->n_learned;
}

static int load(void *self, const struct ls_learner_place *place)
{
    struct training *const training = self;
    const struct brought *const brought = place->batch->data;
    const struct ls_items *const items = &brought->items;
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
    struct training *const training = self;
    if (place->device == 0)
        training->learning = place->batch->data;
    if (training->broken.status != LS_OK)
        return LS_OK;
    const int status = teacher_learn(training->teacher, place, pass,
                                     training->n_learned, info, NULL);
    /* When another learner fails, this one may learn from the next batch. */
    if (status != LS_OK && training->is_shared)
        ls_failure_keep(&training->broken, status);
    return training->is_shared ? LS_OK : status;
}

/* Whether there may be a verdict on the weights after so many updates. */
static bool is_judged(const struct training *training, int64_t updates)
{
    return training->judged_every > 0 && updates > 0 &&
           updates % training->judged_every == 0;
}

static int write_outcome(struct training *training,
                         const struct weights_note *note, struct outcome *out)
{
    const struct ls_policy_ops *ops = training->agent->plugin->policy;
    ls_writer_clear(training->out);
    int status = ops->save(training->agent->policy, training->out);
    if (status == LS_OK)
        status = ls_bytes_set_written(&out->policy, training->out);
    ls_bytes_clear(&out->rest);
    if (status != LS_OK || (training->ahead == 0 && !training->is_shared &&
                            !is_judged(training, note->train_iter)))
        return status;
    ls_writer_clear(training->out);
    status = training->ahead > 0
                 ? weights_write(training->agent, note, true, training->out)
                 : agent_write_training(training->agent, training->out);
    return status == LS_OK ? ls_bytes_set_written(
                                 training->ahead > 0 ? &out->file : &out->rest,
                                 training->out)
                           : status;
}

static int apply(void *self, unsigned pass, ls_learner_info *info)
{
    struct training *const training = self;
    if (pass + 1 < training->passes)
        return LS_OK;
    if (is_given_up(training) || training->broken.status != LS_OK) {
        training->gave_up = true;
        return LS_OK;
    }
    const int status = teacher_hooks(training->teacher, LS_AFTER_ITER,
                                     training->n_learned++, info);
    return status == LS_OK
               ? write_outcome(training, &training->learning->note,
                               &training->outcomes[training->n_out++ %
                                                   training->n_outcomes])
               : status;
}

static void let_go(struct brought *brought)
{
    if (atomic_fetch_sub(&brought->owners, 1) > 1)
        return;
    ls_items_clear(&brought->items);
    free(brought);
}

static void drop(void *self, struct ls_learner_batch *batch)
{
    (void)self;
    let_go(batch->data);
}

static const struct ls_learner_ops ops = {
    .load = load, .compute = compute, .apply = apply, .drop = drop};

static int start_learner(struct training *training, ls_runtime *runtime,
                         const struct plan_learner *plan)
{
    struct ls_learner_options options = {
        .ops = &ops,
        .self = training,
        .queue = training->ahead + 1,
        .out_queue = (training->ahead + 1) * plan->passes,
        .stacks = plan->stacks,
        .loaders = plan->loaders,
        .passes = plan->passes,
        .held_timeout_ms =
            LS_NO_WAIT /* the next batch comes when this one is done */};
    teacher_set_options(training->teacher, &options);
    return ls_learner_create(&training->learner, runtime, &options);
}

int training_start(struct training **out, ls_runtime *runtime,
                   const struct plan *plan, struct agent *agent,
                   uint32_t node_id, size_t n, ls_group *group)
{
    struct training *training = calloc(1, sizeof *training);
    if (training == NULL)
        return ls_error(LS_ENOMEM, "training");
    training->agent = agent;
    training->is_shared = group != NULL;
    training->n_max = n;
    training->passes = plan->learner.passes;
    training->ahead = plan->learner.queue;
    atomic_init(&training->enough, -1);
    if (isfinite(plan->solved) && plan_count(plan, PLAN_EVALUATOR) > 0)
        training->judged_every = plan->every;
    training->seed = plan->seed;
    training->n_outcomes = training->ahead + 2;
    training->outcomes =
        calloc(training->n_outcomes, sizeof *training->outcomes);
    training->under_way = calloc(training->ahead + 1, sizeof(struct brought *));
    training->pieces =
        calloc(n * plan->learner.stacks, sizeof *training->pieces);
    int status = training->pieces == NULL || training->outcomes == NULL ||
                         training->under_way == NULL
                     ? ls_error(LS_ENOMEM, "%zu trajectories", n)
                     : teacher_create(&training->teacher, runtime,
                                      &(struct teacher_options){
                                          .agent = agent,
                                          .devices = plan->learner.devices,
                                          .n_devices = plan->learner.n_devices,
                                          .stacks = plan->learner.stacks,
                                          .n = n,
                                          .steps = plan->steps,
                                          .group = group,
                                          .node_id = node_id,
                                          .is_given_up = is_given_up,
                                          .self = training});
    if (status == LS_OK)
        status = ls_learner_info_create(&training->said);
    if (status == LS_OK)
        status = ls_learner_info_create(&training->metrics.learner);
    if (status == LS_OK)
        status = ls_writer_create(&training->told.writer);
    if (status == LS_OK)
        status = ls_writer_create(&training->told_before.writer);
    if (status == LS_OK)
        status = ls_writer_create(&training->out);
    if (status == LS_OK)
        status = start_learner(training, runtime, &plan->learner);
    if (status != LS_OK) {
        training_stop(&training);
        return status;
    }
    *out = training;
    return LS_OK;
}

/* items: moved, on success. */
static int put(struct training *training, struct ls_items *items,
               const struct weights_note *note)
{
    struct brought *brought = malloc(sizeof *brought);
    if (brought == NULL)
        return ls_error(LS_ENOMEM, "a batch");
    *brought = (struct brought){.items = *items, .note = *note};
    atomic_init(&brought->owners, 2);
    struct ls_learner_batch batch = {.data = brought};
    const int status = ls_learner_put(training->learner, &batch, INT_MAX);
    if (status != LS_OK) {
        free(brought);
        return status;
    }
    *items = (struct ls_items){.n = 0};
    training->under_way[training->n_put++ % (training->ahead + 1)] = brought;
    return LS_OK;
}

/* Wait for the oldest. */
static int get(struct training *training, ls_learner_info *info)
{
    struct ls_learner_result result = {.info = training->said};
    int status = LS_OK;
    while (status == LS_OK && !result.last) {
        status = ls_learner_get(training->learner, &result, INT_MAX);
        if (status == LS_OK)
            status = ls_learner_info_merge(info, result.info);
    }
    if (status != LS_OK || training->gave_up)
        return status;
    let_go(training->under_way[training->n_got % (training->ahead + 1)]);
    struct outcome *out =
        &training->outcomes[training->n_got++ % training->n_outcomes];
    const struct outcome oldest = training->before;
    training->before = training->newest;
    training->newest = *out;
    *out = oldest; /* whose memory is used again */
    return LS_OK;
}

/* The state is that of `newest` again. */
static int restore(struct training *training)
{
    return teacher_restore(training->teacher, &training->newest.policy,
                           &training->newest.rest);
}

/* The batch was given up: as if it had never come. */
static int forget(struct training *training)
{
    const struct ls_failure broken = training->broken;
    training->n_put--;
    let_go(training->under_way[training->n_put % (training->ahead + 1)]);
    training->gave_up = false;
    training->broken.status = LS_OK;
    atomic_store(&training->enough, -1);
    const int status = restore(training);
    return status == LS_OK ? ls_failure_return(&broken) : status;
}

int training_learn(struct training *training, struct ls_items *items,
                   const struct weights_note *note, ls_learner_info *info,
                   bool *is_over)
{
    int status = put(training, items, note);
    *is_over = false;
    if (status != LS_OK || training->n_put - training->n_got <= training->ahead)
        return status;
    status = get(training, info);
    if (status == LS_OK && training->gave_up)
        return forget(training);
    *is_over = status == LS_OK;
    return status;
}

void training_give_up(struct training *training, int64_t update)
{
    if (is_judged(training, update)) /* what came after is kept */
        atomic_store(&training->enough, update);
}

int training_revert(struct training *training)
{
    const struct outcome newest = training->newest;
    const struct figures told = training->told;
    training->newest = training->before;
    training->before = newest;
    training->told = training->told_before;
    training->told_before = told;
    if (training->ahead > 0)
        return LS_OK;
    training->n_learned--;
    return restore(training);
}

size_t training_under_way(const struct training *training)
{
    return training->n_put - training->n_got;
}

int training_begin(struct training *training, const struct weights_note *note)
{
    training->n_learned = note->train_iter;
    training->is_under_way = true;
    int status = agent_align_replicas(training->agent);
    if (status == LS_OK)
        status = teacher_hooks(training->teacher, LS_BEFORE_RUN,
                               training->n_learned, NULL);
    return status == LS_OK ? write_outcome(training, note, &training->newest)
                           : status;
}

int training_adopt(struct training *training, const struct weights_note *note)
{
    training->n_learned = note->train_iter;
    return write_outcome(training, note, &training->newest);
}

int training_end(struct training *training)
{
    if (!training->is_under_way)
        return LS_OK;
    training->is_under_way = false;
    ls_learner_destroy(&training->learner); /* nothing learns any more */
    return teacher_hooks(training->teacher, LS_AFTER_RUN, training->n_learned,
                         NULL);
}

bool training_is_whole(const struct training *training)
{
    return training->ahead > 0 || teacher_is_whole(training->teacher);
}

const struct ls_bytes *training_policy(const struct training *training)
{
    return &training->newest.policy;
}

int training_save(struct training *training, const struct weights_note *note,
                  const char *folder, const char *name, char *path, size_t size)
{
    const struct ls_bytes *file = &training->newest.file;
    return training->ahead > 0
               ? weights_put(file->data, file->size, folder, name, path, size)
               : weights_save(training->agent, note, true, folder, name, path,
                              size);
}

int training_write(struct training *training, const struct weights_note *note,
                   struct ls_bytes *out)
{
    const struct ls_bytes *file = &training->newest.file;
    if (training->ahead > 0)
        return ls_bytes_set(out, file->data, file->size);
    ls_writer *writer = training->agent->writer; /* ours holds what is said */
    ls_writer_clear(writer);
    const int status = weights_write(training->agent, note, true, writer);
    return status == LS_OK ? ls_bytes_set_written(out, writer) : status;
}

/* ---- batches under way ------------------------------------------------- */

static int64_t *count_of(struct weights_note *note, size_t i)
{
    int64_t *const counts[] = {&note->iteration, &note->train_iter,
                               &note->env_step, &note->env_episode};
    return counts[i];
}

int training_write_batches(struct training *training, struct ls_bytes *out)
{
    ls_writer *writer = training->agent->writer;
    ls_writer_clear(writer);
    ls_write_array(writer, (uint32_t)training_under_way(training));
    for (size_t i = training->n_got; i < training->n_put; i++) {
        struct brought *brought =
            training->under_way[i % (training->ahead + 1)];
        ls_write_array(writer, 2);
        ls_write_array(writer, 4);
        for (size_t k = 0; k < 4; k++)
            ls_write_int(writer, *count_of(&brought->note, k));
        ls_write_array(writer, (uint32_t)brought->items.n);
        for (size_t k = 0; k < brought->items.n; k++)
            ls_write_binary(writer, brought->items.items[k].data,
                            brought->items.items[k].size);
    }
    return ls_bytes_set_written(out, writer);
}

static int take_batch(struct training *training, const ls_value *in,
                      uint64_t seed)
{
    struct weights_note note = {.seed = seed};
    struct ls_items items = {.n = 0};
    const ls_value *counts = ls_value_at(in, 0), *all = ls_value_at(in, 1);
    int status = LS_OK;
    for (size_t i = 0; i < 4 && status == LS_OK; i++)
        status = ls_value_int(ls_value_at(counts, i), count_of(&note, i));
    for (size_t i = 0; i < ls_value_size(all) && status == LS_OK; i++) {
        const void *data;
        size_t size;
        status = ls_value_binary(ls_value_at(all, i), &data, &size);
        if (status == LS_OK)
            status = ls_items_append(&items, data, size);
    }
    if (status == LS_OK)
        status = put(training, &items, &note);
    ls_items_clear(&items);
    return status;
}

int training_take_batches(struct training *training, const struct ls_bytes *in)
{
    const struct ls_codec_limits limits = {.max_bytes = (size_t)1 << 30,
                                           .max_depth = 16,
                                           .max_objects = UINT32_MAX};
    ls_document *document = NULL;
    int status = ls_document_read(&document, in->data, in->size, &limits);
    const ls_value *all = status == LS_OK ? ls_document_root(document) : NULL;
    if (status == LS_OK && ls_value_size(all) > training->ahead)
        status = ls_error(LS_EPROTO,
                          "%zu batches are under way, and at most "
                          "%zu may be",
                          ls_value_size(all), training->ahead);
    for (size_t i = 0; status == LS_OK && i < ls_value_size(all); i++)
        status = take_batch(training, ls_value_at(all, i), training->seed);
    ls_document_destroy(&document);
    return status == LS_ENOENT ? LS_EPROTO : status;
}

int training_publish(struct training *training, ls_node *node)
{
    const struct figures oldest = training->told_before;
    training->told_before = training->told;
    training->told = oldest; /* whose memory is used again */
    struct figures *told = &training->told;
    struct ls_emission emission = {.event = "learner.metrics",
                                   .delivery = LS_DELIVERY_LATEST};
    int status =
        ls_learner_metrics(training->learner, &training->metrics, true);
    if (status != LS_OK)
        return status;
    ls_learner_counts(training->learner, &told->counts);
    told->size = 0;
    ls_writer_clear(told->writer);
    ls_learner_metrics_write(&training->metrics, told->writer);
    status = ls_writer_bytes(told->writer, &emission.data, &emission.size);
    if (status != LS_OK)
        return status;
    told->data = emission.data;
    told->size = emission.size;
    return ls_emit_with(node, &emission);
}

void training_published(const struct training *training, const void **data,
                        size_t *size)
{
    *data = training->told.data;
    *size = training->told.size;
}

const struct ls_learner_counts *training_counts(const struct training *training)
{
    return &training->told.counts;
}

static void clear_outcome(struct outcome *outcome)
{
    ls_bytes_clear(&outcome->policy);
    ls_bytes_clear(&outcome->file);
    ls_bytes_clear(&outcome->rest);
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
    for (; old->n_got < old->n_put; old->n_got++)
        let_go(old->under_way[old->n_got % (old->ahead + 1)]);
    free(old->under_way);
    teacher_destroy(&old->teacher);
    ls_learner_info_destroy(&old->said);
    ls_learner_info_destroy(&old->metrics.learner);
    ls_writer_destroy(&old->told.writer);
    ls_writer_destroy(&old->told_before.writer);
    ls_writer_destroy(&old->out);
    clear_outcome(&old->newest);
    clear_outcome(&old->before);
    for (size_t i = 0; old->outcomes != NULL && i < old->n_outcomes; i++)
        clear_outcome(&old->outcomes[i]);
    free(old->outcomes);
    free(old->pieces);
    free(old);
}
