/* Batches on their way to the learner: one is asked for, one waits, one trains.
 * The data of the one that waits is fetched on a thread of its own. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner_parts.h"

void batch_destroy(struct batch *batch)
{
    if (batch == NULL)
        return;
    for (size_t i = 0; batch->blobs != NULL && i < batch->told.n; i++)
        store_blob_fini(&batch->blobs[i]);
    free(batch->blobs);
    learner_batch_fini(&batch->told);
    free(batch);
}

static bool is_last(const struct learner_service *service)
{
    const struct learner_work *told = &service->told;
    return told->iterations > 0 &&
           service->iter + (service->training ? 1 : 0) >= told->iterations;
}

void learner_answer_demand(struct learner_service *service)
{
    const bool asks = service->wants && !service->outstanding &&
                      service->waiting == NULL && !is_last(service);
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

static int get_data(const struct learner_service *service, struct batch *batch)
{
    const char *names[SERVICE_BATCH_MAX];
    const size_t n = batch->told.n;
    assert(n <= SERVICE_BATCH_MAX);
    for (size_t i = 0; i < n; i++)
        names[i] = batch->told.items[i].sample.data_id;
    struct store_blob *blobs = calloc(n, sizeof *blobs);
    if (blobs == NULL)
        return ls_error(LS_ENOMEM, "the data of %zu samples", n);
    const int status = store_get(service->options.common.store, names, n, blobs,
                                 service->options.common.store_wait_ms);
    if (status == LS_OK)
        batch->blobs = blobs;
    else
        free(blobs);
    return status;
}

static struct batch *next_to_fetch(struct learner_service *service)
{
    struct batch *batch = service->waiting;
    return batch != NULL && !batch->fetched && !batch->fetching ? batch : NULL;
}

/* Until now, with what is under way. Lock held. */
static int64_t trained_ns(const struct learner_service *service, int64_t now)
{
    return service->figures.train_ns +
           (service->training_since > 0 ? now - service->training_since : 0);
}

void learner_fetch(void *self)
{
    struct learner_service *service = self;
    struct service_work *work = &service->work;
    ls_mutex_lock(&work->mutex);
    while (!service->stopping) {
        struct batch *batch = next_to_fetch(service);
        if (batch == NULL) {
            (void)!ls_cond_wait(&work->changed, &work->mutex, LS_FOREVER);
            continue;
        }
        batch->fetching = true;
        const int64_t began = ls_now(work->runtime);
        const int64_t trained = trained_ns(service, began);
        ls_mutex_unlock(&work->mutex);
        batch->status = get_data(service, batch);
        if (batch->status != LS_OK)
            (void)snprintf(batch->text, sizeof batch->text, "%s",
                           ls_error_text());
        ls_mutex_lock(&work->mutex);
        const int64_t now = ls_now(work->runtime);
        service->figures.load_ns += now - began;
        service->figures.overlap_ns += trained_ns(service, now) - trained;
        batch->fetching = false;
        batch->fetched = true;
        if (batch->dropped)
            batch_destroy(batch);
        service_work_changed(work);
    }
    ls_mutex_unlock(&work->mutex);
}
