/* Batches on their way through the engine of lockstep/learner.h: loaders fetch
 * and read their data, its learner thread trains them, and the task commits and
 * answers what came of the one before meanwhile. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner_parts.h"
#include "lockstep/log.h"
#include "plain_name.h"

/* Lists ---------------------------------------------------------------------
 */

void batches_init(struct batches *batches)
{
    batches->first = NULL;
    batches->last = &batches->first;
}

static void batches_add(struct batches *batches, struct batch *batch)
{
    batch->next = NULL;
    *batches->last = batch;
    batches->last = &batch->next;
}

static void batches_remove(struct batches *batches, const struct batch *batch)
{
    struct batch **at = &batches->first;
    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
    if (*at == NULL)
        batches->last = at;
}

struct batch *batches_take(struct batches *batches)
{
    struct batch *batch = batches->first;
    if (batch != NULL)
        batches_remove(batches, batch);
    return batch;
}

static int64_t wanted(const struct batches *batches)
{
    int64_t n = 0;
    for (const struct batch *b = batches->first; b != NULL; b = b->next)
        n += !b->forsaken && b->status == LS_OK;
    return n;
}

static void free_blobs(struct batch *batch)
{
    for (size_t i = 0; batch->blobs != NULL && i < batch->n_own; i++)
        store_blob_fini(&batch->blobs[i]);
    free(batch->blobs);
    batch->blobs = NULL;
}

void batch_destroy(struct batch *batch)
{
    if (batch == NULL)
        return;
    assert(batch->request == NULL);
    ls_collective_destroy(&batch->telling);
    ls_group_parts_free(&batch->told_parts);
    ls_bytes_clear(&batch->words);
    free_blobs(batch);
    free(batch->samples);
    free(batch->priorities);
    snapshot_fini(&batch->after);
    learner_batch_fini(&batch->told);
    free(batch);
}

/* What is asked for --------------------------------------------------------
 */

/* Whether those that are on their way are the last ones. */
static bool is_last(const struct learner_service *service)
{
    const struct learner_work *told = &service->told;
    const int64_t open = wanted(&service->under_way) + wanted(&service->over) +
                         (service->current != NULL ? 1 : 0);
    return told->iterations > 0 && service->iter + open >= told->iterations;
}

/* One for each stack, and as many as may wait for one. */
static int64_t most_under_way(const struct learner_service *service)
{
    return (int64_t)(service->options.stacks + service->options.queue);
}

void learner_answer_demand(struct learner_service *service)
{
    const bool asks = service->wants && !service->outstanding &&
                      wanted(&service->under_way) < most_under_way(service) &&
                      !is_last(service);
    if (service->demand == NULL || (!asks && !service->finished))
        return;
    struct learner_demand demand = {.key = service->told.key,
                                    .done = service->finished,
                                    .batch_size = service->told.batch_size,
                                    .cur_learner_iter = service->iter,
                                    .policy_version = service->policy_version,
                                    .info = service->last};
    memcpy(demand.buffer_id, service->told.buffer_id, sizeof demand.buffer_id);
    ls_writer_clear(service->work.writer);
    learner_demand_write(&demand, service->work.writer);
    const int status = service_work_answer(&service->work, &service->demand);
    /* One that nobody waits for any more asks for nothing. */
    service->outstanding = asks && status == LS_OK;
}

void learner_forsake(struct learner_service *service, const char *text)
{
    for (struct batch *b = service->under_way.first; b != NULL; b = b->next) {
        if (b->begun)
            continue;
        b->forsaken = true;
        service_work_fail_call(&b->request, text);
    }
    service->outstanding = false;
}

/* Loaders ------------------------------------------------------------------
 */

static int get_data(const struct learner_service *service, struct batch *batch)
{
    struct store_part parts[SERVICE_BATCH_MAX];
    const struct drawn_sample *items = batch->told.items + batch->first;
    const size_t n = batch->n_own;
    assert(n <= SERVICE_BATCH_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = &items[i].sample;
        parts[i] = (struct store_part){sample->data_id, sample_at(sample),
                                       sample_bytes(sample)};
    }
    struct store_blob *blobs = calloc(n, sizeof *blobs);
    batch->samples = calloc(n, sizeof *batch->samples);
    batch->priorities = calloc(batch->told.n, sizeof *batch->priorities);
    if (blobs == NULL || batch->samples == NULL || batch->priorities == NULL) {
        free(blobs);
        return ls_error(LS_ENOMEM, "the data of %zu samples", n);
    }
    const int status =
        store_get_parts(service->options.common.store, parts, n, blobs,
                        service->options.common.store_wait_ms);
    if (status != LS_OK) {
        free(blobs);
        return status;
    }
    batch->blobs = blobs;
    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = &items[i].sample;
        batch->samples[i] = (struct learner_sample){
            .sample = sample, .data = blobs[i].data, .size = blobs[i].size};
        batch->priorities[batch->first + i] = sample->priority;
    }
    return LS_OK;
}

static int read_data(const struct learner_service *service, struct batch *batch,
                     const struct ls_learner_place *place)
{
    const struct learner_ops *ops = service->options.ops;
    if (ops->read == NULL)
        return LS_OK;
    const int status =
        ops->read(service->options.self, place, batch->samples, batch->n_own);
    if (status == LS_OK && place->device + 1 < service->n_devices)
        return LS_OK;
    free_blobs(batch);
    for (size_t i = 0; i < batch->n_own; i++)
        batch->samples[i].data = NULL;
    return status;
}

/* What cannot be got fails its own call, not the engine. */
static int load(void *self, const struct ls_learner_place *place)
{
    struct learner_service *service = self;
    struct service_work *work = &service->work;
    struct batch *batch = place->batch->data;
    ls_mutex_lock(&work->mutex);
    const bool forsaken = batch->forsaken;
    ls_mutex_unlock(&work->mutex);
    if (forsaken || (place->device > 0 && batch->samples == NULL))
        return LS_OK;
    int status = place->device == 0 ? get_data(service, batch) : batch->status;
    if (status == LS_OK)
        status = read_data(service, batch, place);
    ls_mutex_lock(&work->mutex);
    batch->status = status;
    if (status != LS_OK)
        (void)snprintf(batch->text, sizeof batch->text, "%s", ls_error_text());
    ls_mutex_unlock(&work->mutex);
    return LS_OK;
}

/* The learner thread -------------------------------------------------------
 */

/* Whether there is anything to train; from here on its call is answered. The
 * first of the devices decides for all. */
static bool begin_batch(struct learner_service *service, struct batch *batch,
                        size_t device, bool *is_first)
{
    ls_mutex_lock(&service->work.mutex);
    *is_first = !batch->is_due;
    if (*is_first) {
        batch->is_due = true;
        batch->begun = !batch->forsaken && batch->status == LS_OK;
        batch->iter = service->trained;
    }
    const bool begun = batch->begun;
    if (device == 0)
        service->learning = begun ? batch : NULL;
    ls_mutex_unlock(&service->work.mutex);
    return begun;
}

static void not_learned(struct learner_service *service, struct batch *batch,
                        size_t who, int status)
{
    const struct learner_work *told = &service->told;
    ls_mutex_lock(&service->work.mutex);
    batch->begun = false;
    service->learning = NULL;
    if (batch->status == LS_OK) {
        batch->status = status;
        (void)snprintf(batch->text, sizeof batch->text,
                       "rank %zu, node %lld, has not got its share: %s", who,
                       (long long)told->ranks[who], ls_status_sentence(status));
    }
    ls_mutex_unlock(&service->work.mutex);
}

/* The same of several ranks: all of them begin it, or none does. */
static int begin_together(struct learner_service *service, struct batch *batch,
                          size_t device, bool *begun)
{
    bool is_first;
    *begun = begin_batch(service, batch, device, &is_first);
    if (!is_first || !ranks_are_several(service))
        return LS_OK;
    const int own = *begun                   ? LS_OK
                    : batch->status != LS_OK ? batch->status
                                             : LS_ECANCELED;
    size_t who = 0;
    int status;
    const int agreed = ranks_agree(service, own, &who, &status);
    if (agreed != LS_OK || status == LS_OK)
        return agreed;
    *begun = false;
    not_learned(service, batch, who, status);
    return LS_OK;
}

static int check_priorities(const struct batch *batch)
{
    for (size_t i = batch->first; i < batch->first + batch->n_own; i++)
        if (!isfinite(batch->priorities[i]) || batch->priorities[i] < 0.0)
            return ls_error(LS_EHANDLER,
                            "learn: the priority of sample %zu is %g", i,
                            batch->priorities[i]);
    return LS_OK;
}

/* A plugin names its values as it likes; on the wire names are plain. */
static void copy_name(service_name out, const char *name)
{
    size_t n = 0;
    for (; name[n] != '\0' && n < SAFE_NAME_MAX; n++)
        out[n] = plain_name_has(name[n], "-") ? name[n] : '_';
    if (n == 0)
        out[n++] = '_';
    out[n] = '\0';
}

static void take_values(struct batch *batch, const ls_learner_info *info)
{
    struct learner_info *out = &batch->info;
    memset(out, 0, sizeof *out);
    for (size_t i = 0;
         i < ls_learner_info_count(info) && out->n_values < LEARNER_VALUES_MAX;
         i++) {
        copy_name(out->values[out->n_values].name,
                  ls_learner_info_name(info, i));
        out->values[out->n_values++].value = ls_learner_info_value(info, i);
    }
}

int learner_beside(const struct learner_service *service,
                   enum ls_hook_position position, int64_t iter,
                   ls_learner_info *info)
{
    const struct learner_ops *ops = service->options.ops;
    return ops->beside != NULL
               ? ops->beside(service->options.self, position, iter, info)
               : LS_OK;
}

/* The weights are those after this batch, whatever is trained next. */
static int end_batch(struct learner_service *service, struct batch *batch,
                     ls_learner_info *info)
{
    int status = learner_beside(service, LS_AFTER_ITER, batch->iter, info);
    if (status == LS_OK)
        status = check_priorities(batch);
    if (status != LS_OK)
        return status;
    take_values(batch, info);
    batch->has_weights = batch->iter % service->told.send_policy_freq == 0;
    if (batch->has_weights)
        status = snapshot_take(service, &batch->after);
    if (status == LS_OK && ranks_are_several(service))
        status = ranks_compare(service, batch);
    if (status != LS_OK)
        return status;
    service->trained++;
    batch->trained = true;
    return LS_OK;
}

/* What fails first counts, but for a device that gave up because of it. */
static int fail(struct learner_service *service, int status)
{
    ls_mutex_lock(&service->work.mutex);
    if (service->engine_status == LS_OK ||
        service->engine_status == LS_EABORTED) {
        service->engine_status = status;
        (void)snprintf(service->engine_text, sizeof service->engine_text, "%s",
                       ls_error_text());
        service_work_changed(&service->work);
    }
    ranks_leave(service, status);
    ls_mutex_unlock(&service->work.mutex);
    return status;
}

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    struct learner_service *service = self;
    struct batch *batch = place->batch->data;
    bool begun;
    int status = begin_together(service, batch, place->device, &begun);
    if (status != LS_OK)
        return fail(service, status);
    if (!begun)
        return LS_OK;
    ls_log_set_node((int64_t)ls_node_id(service->options.common.node));
    if (pass == 0 && place->device == 0)
        status =
            priority_hooks_run(&service->hooks, HOOK_BEFORE_ITER, batch->iter);
    if (status == LS_OK)
        status = service->options.ops->learn(
            service->options.self,
            &(struct learner_lesson){.place = place,
                                     .pass = pass,
                                     .iter = batch->iter,
                                     .samples = batch->samples,
                                     .n = batch->n_own,
                                     .info = info,
                                     .priorities =
                                         batch->priorities + batch->first});
    return status == LS_OK ? LS_OK : fail(service, status);
}

static int apply(void *self, unsigned pass, ls_learner_info *info)
{
    struct learner_service *service = self;
    if (service->learning == NULL || pass + 1 < service->options.passes)
        return LS_OK;
    const int status = end_batch(service, service->learning, info);
    return status == LS_OK ? LS_OK : fail(service, status);
}

/* It leaves the engine: trained, failed, forsaken, or given up with it. */
static void leave(void *self, struct ls_learner_batch *dropped)
{
    struct learner_service *service = self;
    struct batch *batch = dropped->data;
    free_blobs(batch);
    ls_mutex_lock(&service->work.mutex);
    batches_remove(&service->under_way, batch);
    batches_add(&service->over, batch);
    learner_answer_demand(service);
    service_work_changed(&service->work);
    ls_mutex_unlock(&service->work.mutex);
}

/* Begin and end ------------------------------------------------------------
 */

static const struct ls_learner_ops ops = {
    .load = load, .compute = compute, .apply = apply, .drop = leave};

int learner_engine_begin(struct learner_service *service)
{
    const struct learner_service_options *options = &service->options;
    struct ls_learner_options built = {
        .ops = &ops,
        .self = service,
        .queue = (size_t)most_under_way(service) + 1,
        .out_queue = 1, /* what comes of a batch is in the batch */
        .out_when_full = LS_QUEUE_DROP_OLDEST,
        .stacks = options->stacks,
        .loaders = options->loaders,
        .passes = options->passes,
        .held_timeout_ms = LS_NO_WAIT,
        .n_devices = 1};
    ls_learner *engine;
    if (options->ops->set_options != NULL)
        options->ops->set_options(options->self, &built);
    service->n_devices = built.n_devices;
    service->trained = service->iter;
    const int status =
        ls_learner_create(&engine, service->work.runtime, &built);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&service->work.mutex);
    service->engine = engine;
    service->engine_status = LS_OK;
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

/* Those that have left the engine, whose calls fail. */
static struct batch *take_over(struct learner_service *service)
{
    struct batches all;
    struct batch *batch;
    batches_init(&all);
    ls_mutex_lock(&service->work.mutex);
    if (service->current != NULL)
        batches_add(&service->over, service->current);
    service->current = NULL;
    while ((batch = batches_take(&service->over)) != NULL) {
        service_work_fail_call(&batch->request, "the work has ended");
        batches_add(&all, batch);
    }
    ls_mutex_unlock(&service->work.mutex);
    return all.first;
}

void learner_add_times(const struct learner_service *service,
                       struct learner_figures *figures)
{
    struct ls_learner_counts counts;
    if (service->engine == NULL || service->ranks.own > 0)
        return; /* the first rank tells of the iterations of all */
    ls_learner_counts(service->engine, &counts);
    figures->train_ns += counts.grad_ns;
    figures->load_ns += counts.load_ns;
    figures->overlap_ns += counts.overlap_ns;
    figures->wait_ns +=
        service->options.loaders > 0 ? counts.load_wait_ns : counts.dequeue_ns;
}

void learner_engine_end(struct learner_service *service)
{
    ls_mutex_lock(&service->work.mutex);
    ls_learner *engine = service->engine;
    learner_add_times(service, &service->figures);
    service->engine = NULL;
    service->wants = false;
    ls_mutex_unlock(&service->work.mutex);
    ls_learner_destroy(&engine); /* however long that takes */
    struct batch *batch = take_over(service);
    while (batch != NULL) {
        struct batch *next = batch->next;
        batch_destroy(batch);
        batch = next;
    }
}

int learner_engine_put(struct learner_service *service, struct batch *batch)
{
    if (service->engine == NULL)
        return ls_error(LS_ESTATE, "no batch was asked for");
    batch->n_own = batch->told.n / service->ranks.n;
    batch->first = service->ranks.own * batch->n_own;
    batches_add(&service->under_way, batch);
    const int status = ls_learner_put(
        service->engine, &(struct ls_learner_batch){.data = batch}, 0);
    if (status != LS_OK)
        batches_remove(&service->under_way, batch);
    return status;
}
