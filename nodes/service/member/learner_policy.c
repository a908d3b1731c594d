/* The weights of a learner, out of the store and into it. */
#include <inttypes.h>

#include "learner_parts.h"
#include "lockstep/log.h"
#include "policy_value.h"

static int64_t version_of(struct learner_service *service)
{
    ls_mutex_lock(&service->work.mutex);
    const int64_t version = service->policy_version;
    ls_mutex_unlock(&service->work.mutex);
    return version;
}

static void set_version(struct learner_service *service, int64_t version)
{
    ls_mutex_lock(&service->work.mutex);
    service->policy_version = version;
    service->moment.policy_version = version;
    ls_mutex_unlock(&service->work.mutex);
}

static void tell_loaded(const struct learner_service *service,
                        const struct policy_value *value)
{
    const struct service_watch *watch = service->options.common.watch;
    if (watch != NULL)
        watch->loaded(watch->self, &service->told.key, service->told.policy_id,
                      value->version, value->iter);
}

static int take_policy(struct learner_service *service,
                       const struct store_blob *blob)
{
    struct policy_value value;
    const int status =
        policy_value_load(&value, blob->data, blob->size,
                          service->options.ops->load, service->options.self);
    if (status != LS_OK)
        return status;
    tell_loaded(service, &value);
    service->moment.resumed = true;
    set_version(service, value.version);
    ls_mutex_lock(&service->work.mutex);
    service->iter = policy_value_iterations(&value);
    ls_mutex_unlock(&service->work.mutex);
    ls_log_info("learner: work %s, attempt %" PRId64
                ", goes on after iteration %" PRId64 " with version %" PRId64
                " of policy %s",
                service->told.key.task_id, service->told.key.attempt,
                policy_value_iterations(&value), value.version,
                service->told.policy_id);
    return LS_OK;
}

/* The first attempt begins anew, whatever an earlier job has left under that
 * name; a later one goes on, if there is anything to go on from. */
int learner_load(struct learner_service *service)
{
    const char *name = service->told.policy_id;
    struct store_blob blob;
    service->moment.resumed = false;
    if (service->told.key.attempt == 1 ||
        service->options.common.sabotage == SERVICE_SABOTAGE_FROM_SCRATCH)
        return LS_OK;
    if (service->options.common.watch != NULL)
        service->options.common.watch->loading(
            service->options.common.watch->self);
    int status = store_get(service->options.common.store, &name, 1, &blob,
                           service->options.common.store_wait_ms);
    if (status == LS_ENOENT)
        return LS_OK;
    if (status == LS_OK) {
        status = take_policy(service, &blob);
        store_blob_fini(&blob);
    }
    return status == LS_OK ? LS_OK : ls_error_at(status, "policy %s", name);
}

/* An attempt that was given up takes the place of none after it. */
static uint64_t rank_of(const struct learner_service *service)
{
    return service->options.common.sabotage == SERVICE_SABOTAGE_NO_FENCING
               ? 0
               : (uint64_t)service->told.key.attempt;
}

static int put_policy(struct learner_service *service,
                      const struct ls_bytes *weights, int64_t version)
{
    struct policy_value value = {.iter = service->iter, .version = version};
    struct store_put put = {.name = service->told.policy_id,
                            .keep = true,
                            .rank = rank_of(service),
                            .wait_ms = service->options.common.store_wait_ms};
    struct ls_bytes now = {.data = NULL};
    int status = LS_OK;
    if (weights == NULL)
        status = service->options.ops->save(service->options.self, &now);
    if (status != LS_OK)
        return status;
    value.weights = weights != NULL ? *weights : now;
    ls_writer_clear(service->writer);
    policy_value_write(&value, service->writer);
    ls_bytes_clear(&now);
    status = ls_writer_bytes(service->writer, &put.data, &put.size);
    return status == LS_OK ? store_put(service->options.common.store, &put)
                           : status;
}

static bool has_news(void *arg)
{
    struct learner_service *service = arg;
    return service->work.closing || service->work.news != service->news_seen;
}

/* Who keeps the store is lost: with the coordinator, as a rule. The weights are
 * worth more than the time until the next one is there, or calls. */
static int wait_for_store(struct learner_service *service)
{
    ls_log_warn("learner: policy %s waits for a store: %s",
                service->told.policy_id, ls_error_text());
    const int status = service_work_wait(&service->work, has_news, service);
    if (status != LS_OK) {
        service->run_status = status;
        return status;
    }
    if (service_work_is_closing(&service->work))
        return ls_error(LS_ECANCELED, "it is being closed");
    if (ls_task_finishing(service->work.task))
        return ls_error(LS_ECANCELED, "the task is finished");
    return LS_OK;
}

int learner_commit(struct learner_service *service,
                   const struct ls_bytes *weights)
{
    const int64_t version = version_of(service) + 1;
    int status;
    for (;;) {
        ls_mutex_lock(&service->work.mutex);
        service->news_seen = service->work.news;
        ls_mutex_unlock(&service->work.mutex);
        status = put_policy(service, weights, version);
        if (status != LS_ELOST)
            break;
        status = wait_for_store(service);
        if (status != LS_OK)
            return status;
    }
    if (status != LS_OK)
        return ls_error_at(status, "policy %s", service->told.policy_id);
    if (service->options.common.watch != NULL)
        service->options.common.watch->committed(
            service->options.common.watch->self, &service->told.key,
            service->told.policy_id, version, service->iter);
    set_version(service, version);
    ls_log_debug("learner: policy %s, version %" PRId64 ", is of iteration "
                 "%" PRId64,
                 service->told.policy_id, version, service->iter);
    ls_mutex_lock(&service->work.mutex);
    service->figures.commits++;
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}
