/* The collector's steps. An iteration of the task is one trajectory, or one
 * episode of an evaluation, or ends early: the work is closed or has failed, or
 * its task is finished. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector_parts.h"
#include "lockstep/log.h"
#include "policy_value.h"

/* Ends --------------------------------------------------------------------- */

static void end_work(struct collector_service *service, const char *failure)
{
    ls_mutex_lock(&service->work.mutex);
    collector_discard(service);
    ls_mutex_unlock(&service->work.mutex);
    service->collects = false;
    service_work_let_go(&service->work, failure);
}

static int fail_work(struct collector_service *service)
{
    char text[LS_CALL_TEXT_MAX + 1];
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    end_work(service, text);
    return LS_OK;
}

/* The store has failed: whoever asks is told, and the next call is waited for.
 */
static int fail_ask(struct collector_service *service)
{
    char text[LS_CALL_TEXT_MAX + 1];
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    ls_log_warn("collector: %s", text);
    service->collects = false;
    ls_mutex_lock(&service->work.mutex);
    service->figures.failed_stores++;
    service->may_begin = service->makes = false;
    if (service->ask != NULL)
        (void)ls_request_fail(&service->ask, text);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

/* A work begins ------------------------------------------------------------ */

int collector_begin(void *self)
{
    struct collector_service *service = self;
    return service->options.ops->reset(service->options.self) == LS_OK
               ? LS_OK
               : fail_work(service);
}

/* The policy --------------------------------------------------------------- */

static bool may_collect(void *arg)
{
    const struct collector_service *service = arg;
    return service->work.closing ||
           (service->may_begin && !collector_is_done(service) &&
            (service->told.eval_flag || service->to_make > 0));
}

static int load(struct collector_service *service,
                const struct store_blob *blob)
{
    struct policy_value value;
    const int status =
        policy_value_load(&value, blob->data, blob->size,
                          service->options.ops->load, service->options.self);
    if (status != LS_OK)
        return status;
    if (service->options.common.watch != NULL)
        service->options.common.watch->loaded(
            service->options.common.watch->self, &service->told.key,
            service->told.policy_id, &value, &(struct ls_bytes){.size = 0});
    service->policy_iter = value.iter;
    ls_mutex_lock(&service->work.mutex);
    service->version = value.version;
    service->figures.policies++;
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

static int get_policy(struct collector_service *service)
{
    const char *name = service->told.policy_id;
    struct store_blob blob;
    if (service->options.common.watch != NULL)
        service->options.common.watch->loading(
            service->options.common.watch->self);
    int status = store_get(service->options.common.store, &name, 1, &blob,
                           service->options.common.store_wait_ms);
    if (status != LS_OK) {
        (void)ls_error_at(status, "policy %s", name);
        return fail_ask(service);
    }
    status = load(service, &blob);
    store_blob_fini(&blob);
    if (status == LS_OK)
        return LS_OK;
    (void)ls_error_at(status, "policy %s", name);
    return fail_work(service);
}

int collector_step_policy(ls_step *step, void *self)
{
    struct collector_service *service = self;
    (void)step;
    service->collects = false;
    if (!service_work_is_used(&service->work))
        return LS_OK;
    const int status = service_work_wait(&service->work, may_collect, service);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&service->work.mutex);
    const bool closing = service->work.closing;
    service->collects = !closing && may_collect(service);
    service->masters_lost = service->work.lost_masters;
    service->makes = service->collects;
    service->to_make -= service->collects ? 1 : 0;
    const bool newer =
        service->version < 0 || service->wanted_version > service->version;
    ls_mutex_unlock(&service->work.mutex);
    if (closing)
        end_work(service, NULL);
    return service->collects && newer ? get_policy(service) : LS_OK;
}

/* Collecting ----------------------------------------------------------------
 */

static int collect(struct collector_service *service)
{
    const struct collector_ops *ops = service->options.ops;
    service->what = (struct collected){.steps = 0};
    ls_mutex_lock(&service->work.mutex);
    const int64_t more = service->to_make > 0 ? service->to_make : 0;
    ls_mutex_unlock(&service->work.mutex);
    if (!service->told.eval_flag)
        return ops->collect(service->options.self, service->told.unroll_len,
                            service->told.split, more, &service->data,
                            &service->what);
    service->what.episodes = 1;
    return ops->evaluate(service->options.self, &service->what.return_sum,
                         &service->what.steps);
}

int collector_step_collect(ls_step *step, void *self)
{
    struct collector_service *service = self;
    (void)step;
    if (!service->collects)
        return LS_OK;
    return collect(service) == LS_OK ? LS_OK : fail_work(service);
}

/* Handing over --------------------------------------------------------------
 */

static void count(struct collector_service *service)
{
    const struct collected *what = &service->what;
    service->episodes += what->episodes;
    service->steps += what->steps;
    service->return_sum += what->return_sum;
    service->figures.episodes += what->episodes;
    service->figures.steps += what->steps;
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

static void free_data(void *data, void *hint)
{
    (void)hint;
    free(data);
}

/* The bytes themselves go there. */
static int put_data(struct collector_service *service, const char *name)
{
    const struct store_put put = {.name = name,
                                  .data = service->data.data,
                                  .size = service->data.size,
                                  .release = free_data,
                                  .wait_ms =
                                      service->options.common.store_wait_ms};
    service->data = (struct ls_bytes){.data = NULL};
    return store_put(service->options.common.store, &put);
}

/* Where it was to be kept nobody is: from now on it is kept here, and made once
 * more. */
static int keep_here(struct collector_service *service)
{
    ls_log_warn("collector: it keeps its data itself: %s", ls_error_text());
    service->options.elsewhere = false;
    ls_mutex_lock(&service->work.mutex);
    service->figures.dropped++;
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
        service->figures.dropped++;
        ls_mutex_unlock(&service->work.mutex);
        return fail_ask(service);
    }
    ls_mutex_lock(&service->work.mutex);
    service->makes = false;
    count(service);
    make_ready(service, name, size);
    if (service->work.closing || service->work.master_is_lost ||
        service->work.lost_masters != service->masters_lost)
        collector_discard(service); /* nobody knows of it */
    else
        collector_answer(service);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

int collector_step_hand_over(ls_step *step, void *self)
{
    struct collector_service *service = self;
    (void)step;
    if (!service->collects)
        return LS_OK;
    if (!service->told.eval_flag)
        return hand_over(service);
    ls_mutex_lock(&service->work.mutex);
    service->makes = false;
    count(service);
    collector_answer(service);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

void collector_run_ended(void *self)
{
    struct collector_service *service = self;
    service->collects = false;
}
