/* To collect: trajectories, exploring, until as many are brought as was asked
 * for. What is told of each goes to who asks, its bytes into the store. */
#include <string.h>

#include "collector_parts.h"
#include "lockstep/log.h"
#include "lockstep/payload.h"

static bool is_done(const struct collector_service *service)
{
    const struct collector_work *told = &service->told;
    return told->samples > 0 && service->trajectories >= told->samples;
}

static bool may_make(const struct collector_service *service)
{
    return service->to_make > 0;
}

static bool has_news(const struct collector_service *service)
{
    return is_done(service);
}

static int64_t progress(void *self)
{
    const struct collector_service *service = self;
    return service->trajectories;
}

static int make(struct collector_service *service, int64_t more)
{
    return service->options.ops->collect(
        service->options.self, service->told.unroll_len, service->told.split,
        more, &service->data, &service->what);
}

/* Lock held. */
static void make_ready(struct collector_service *service,
                       const service_name data_id, size_t size)
{
    struct sample *sample = &service->ready[service->n_ready++];
    service->trajectories++;
    service->figures.trajectories++;
    *sample = (struct sample){.policy_iter = service->policy_iter,
                              .policy_version = service->version,
                              .env_id = service->what.env_id,
                              .unroll_len = service->told.unroll_len,
                              .parts = service->told.split,
                              .priority = 1.0,
                              .cur_episode = service->episodes,
                              .cur_sample = service->trajectories,
                              .cur_step = service->steps,
                              .size = (int64_t)size};
    memcpy(sample->data_id, data_id, sizeof sample->data_id);
    memcpy(sample->task_id, service->told.key.task_id, sizeof sample->task_id);
    memcpy(sample->buffer_id, service->told.buffer_id,
           sizeof sample->buffer_id);
    memcpy(sample->compressor, SAMPLE_PLAIN, sizeof SAMPLE_PLAIN);
}

/* The bytes themselves go there. */
static int put_data(struct collector_service *service, const char *name)
{
    const struct store_put put = {.name = name,
                                  .data = service->data.bytes,
                                  .size = service->data.size,
                                  .release = ls_payload_free,
                                  .wait_ms =
                                      service->options.common.store_wait_ms};
    service->data.bytes = NULL;
    return store_put(service->options.common.store, &put);
}

/* Where it was to be kept nobody is: from now on it is kept here, and made once
 * more. */
static int keep_here(struct collector_service *service)
{
    ls_log_warn("collector: it keeps its data itself: %s", ls_error_text());
    service->options.elsewhere = false;
    ls_mutex_lock(&service->work.mutex);
    service->figures.dropped += service->told.split;
    service->makes = false;
    service->to_make++;
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

static int hand_over(struct collector_service *service)
{
    const ls_node *node = service->options.common.node;
    const size_t size = service->data.size;
    service_name name;
    store_data_name(
        name,
        service->options.elsewhere ? service->options.home : ls_node_id(node),
        ls_node_id(node), ls_node_incarnation(node), ++service->n_names);
    const int status = put_data(service, name);
    if (status == LS_ELOST && service->options.elsewhere)
        return keep_here(service);
    if (status != LS_OK) {
        (void)ls_error_at(LS_EIO, "data %s", name);
        ls_mutex_lock(&service->work.mutex);
        service->figures.dropped += service->told.split;
        ls_mutex_unlock(&service->work.mutex);
        return collector_fail_ask(service);
    }
    ls_mutex_lock(&service->work.mutex);
    service->makes = false;
    collector_count(service);
    make_ready(service, name, size);
    if (service->work.closing || service->work.master_is_lost ||
        service->work.lost_masters != service->masters_lost) {
        collector_discard(service); /* nobody knows of it */
        service->to_make++;         /* and who asks by now gets another */
    }
    collector_answer(service);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

const struct collector_kind service_kind_collect = {
    .of = {COLLECTOR_KIND, .progress = progress},
    .is_done = is_done,
    .may_make = may_make,
    .has_news = has_news,
    .make = make,
    .hand_over = hand_over};
