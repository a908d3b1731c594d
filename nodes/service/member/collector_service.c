#include "collector_service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector_parts.h"
#include "lockstep/payload.h"

/* What the work is asked --------------------------------------------------- */

static int answer(struct collector_service *service,
                  const struct collector_data *data)
{
    ls_writer_clear(service->work.writer);
    collector_data_write(data, service->work.writer);
    return service_work_answer(&service->work, &service->ask);
}

static void answer_samples(struct collector_service *service,
                           struct collector_data *data)
{
    data->n = service->n_ready;
    data->samples = service->ready;
    if (answer(service, data) != LS_OK)
        return; /* nobody waits for it any more: the next call gets it */
    for (size_t i = 0; i < data->n; i++) {
        service->samples += service->ready[i].parts;
        service->figures.samples += service->ready[i].parts;
    }
    service->n_ready = 0;
}

/* How far it is. */
static void answer_info(struct collector_service *service,
                        struct collector_data *data)
{
    service->told_episodes = service->episodes;
    data->is_info = true;
    data->info = (struct collector_info){.collector_done =
                                             service->kind->is_done(service),
                                         .cur_episode = service->episodes,
                                         .cur_sample = service->trajectories,
                                         .cur_step = service->steps};
    (void)answer(service, data);
}

void collector_answer(struct collector_service *service)
{
    if (service->ask == NULL)
        return;
    struct collector_data data = {.key = service->told.key};
    memcpy(data.buffer_id, service->told.buffer_id, sizeof data.buffer_id);
    if (service->n_ready > 0)
        answer_samples(service, &data);
    else if (service->kind->has_news(service))
        answer_info(service, &data);
}

void collector_discard(struct collector_service *service)
{
    if (service->options.common.sabotage == SERVICE_SABOTAGE_STALE_SAMPLES)
        return;
    for (size_t i = 0; i < service->n_ready; i++) {
        const char *name = service->ready[i].data_id;
        store_forget(service->options.common.store, &name, 1);
        service->figures.dropped += service->ready[i].parts;
    }
    service->n_ready = 0;
}

void collector_drop(void *self, const char *text)
{
    struct collector_service *service = self;
    service_work_fail_call(&service->ask, text);
    collector_discard(service);
}

/* Nothing is collected for nobody. */
static void master_lost(void *self)
{
    struct collector_service *service = self;
    collector_drop(service, "the coordinator is lost");
    service->may_begin = false;
}

void collector_closed(void *self, ls_writer *out)
{
    const struct collector_service *service = self;
    const struct collector_closed finish_info = {
        .key = service->told.key,
        .eval_flag = service->told.eval_flag,
        .reward_mean = service->episodes > 0
                           ? service->return_sum / (double)service->episodes
                           : (double)NAN,
        .step_count = service->steps,
        .episode_count = service->episodes,
        .sample_count = service->samples,
        .policy_version = service->version};
    collector_closed_write(&finish_info, out);
}

/* Lock held. */
static void begin_anew(struct collector_service *service,
                       const struct collector_work *told,
                       const struct collector_kind *kind)
{
    service->told = *told;
    service->kind = kind;
    service->version = service->wanted_version = -1;
    service->may_begin = service->makes = false;
    service->to_make = 0;
    service->episodes = service->steps = service->trajectories = 0;
    service->told_episodes = 0;
    service->samples = 0;
    service->return_sum = 0.0;
}

static int serve_start(void *self, ls_request *request)
{
    struct collector_service *service = self;
    struct collector_work told;
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = collector_work_read(&told, data, size);
    if (status != LS_OK)
        return service_work_malformed(&service->work, request, status);
    ls_mutex_lock(&service->work.mutex);
    const struct collector_kind *kind =
        told.eval_flag ? &service_kind_evaluate : &service_kind_collect;
    if (service_work_start(&service->work, &request, &kind->of, &told.key))
        begin_anew(service, &told, kind);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

static int serve_data(void *self, ls_request *request)
{
    struct collector_service *service = self;
    struct collector_ask ask;
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = collector_ask_read(&ask, data, size);
    if (status != LS_OK)
        return service_work_malformed(&service->work, request, status);
    ls_mutex_lock(&service->work.mutex);
    if (service_work_admits(&service->work, &request, &ask.key)) {
        service_work_fail_call(&service->ask, "a later call takes its place");
        service->ask = request;
        service->may_begin = true;
        service->to_make =
            ask.want - (int64_t)service->n_ready - (service->makes ? 1 : 0);
        if (ask.policy_version > service->wanted_version)
            service->wanted_version = ask.policy_version;
        collector_answer(service);
        service_work_changed(&service->work);
    }
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

/* The service ---------------------------------------------------------------
 */

const struct service_task collector_tasks[COLLECTOR_TASKS] = {
    {LS_JOB_INIT, CALL_COLLECTOR_START, serve_start},
    {LS_JOB_EPOCH, CALL_COLLECTOR_DATA, serve_data},
    {LS_JOB_EXIT, CALL_COLLECTOR_CLOSE, NULL}};

static const struct service_kind *const kinds[] = {
    &service_kind_collect.of, &service_kind_evaluate.of, NULL};

static const struct service_work_ops work_ops = {.what = "collector",
                                                 .kinds = kinds,
                                                 .master_lost = master_lost,
                                                 .run_ended =
                                                     collector_run_ended};

int collector_service_create(collector_service **out,
                             const struct collector_service_options *options)
{
    struct collector_service *service = calloc(1, sizeof *service);
    if (service == NULL)
        return ls_error(LS_ENOMEM, "a collector service");
    service->options = *options;
    service->data.node = options->common.node;
    int status =
        service_work_init(&service->work, &options->common, &work_ops, service);
    if (status == LS_OK)
        status = service_work_serve(&service->work);
    if (status != LS_OK) {
        collector_service_destroy(&service);
        return status;
    }
    *out = service;
    return LS_OK;
}

int collected_room(struct collected_data *data, size_t size)
{
    collected_clear(data);
    const int status = ls_payload_alloc(&data->bytes, data->node, size);
    data->size = status == LS_OK ? size : 0;
    return status;
}

void collected_clear(struct collected_data *data)
{
    ls_payload_free(data->bytes, NULL);
    data->bytes = NULL;
    data->size = 0;
}

void collector_service_destroy(collector_service **service)
{
    if (service == NULL || *service == NULL)
        return;
    service_work_fini(&(*service)->work);
    collected_clear(&(*service)->data);
    free(*service);
    *service = NULL;
}

void collector_service_use(collector_service *service, ls_task *task)
{
    service_work_use(&service->work, task);
}

void collector_service_figures(collector_service *service,
                               struct collector_figures *out)
{
    struct service_work *work = &service->work;
    ls_mutex_lock(&work->mutex);
    struct collector_figures figures = service->figures;
    figures.common = work->figures;
    ls_mutex_unlock(&work->mutex);
    *out = figures;
}
