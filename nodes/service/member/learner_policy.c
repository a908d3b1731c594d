/* What a learner has learned, out of the store and into it. */
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
    ls_mutex_unlock(&service->work.mutex);
}

/* Into which the policy goes then. value: own. Errors: LS_ENOENT, LS_EPROTO and
 * LS_EMISMATCH: it is not there, or not that of this policy. */
static int get_training(const struct learner_service *service,
                        const struct policy_value *policy,
                        struct policy_value *value)
{
    const struct learner_service_options *options = &service->options;
    char training[SAFE_NAME_MAX + 1];
    const char *name = training;
    struct store_blob blob;
    int status = policy_training_name(training, service->told.policy_id,
                                      policy->version);
    if (status == LS_OK)
        status = store_get(options->common.store, &name, 1, &blob,
                           options->common.store_wait_ms);
    if (status != LS_OK)
        return status;
    status = policy_value_read(value, blob.data, blob.size);
    store_blob_fini(&blob);
    if (status == LS_OK && (value->version != policy->version ||
                            value->attempt != policy->attempt))
        status = ls_error(LS_EMISMATCH,
                          "it is of version %" PRId64 " of attempt %" PRId64
                          ", not %" PRId64 " of %" PRId64,
                          value->version, value->attempt, policy->version,
                          policy->attempt);
    return status == LS_OK
               ? options->ops->load_training(options->self, &value->weights)
               : status;
}

/* Without it the policy goes on alone. */
static int take_training(struct learner_service *service,
                         const struct policy_value *policy,
                         struct policy_value *value)
{
    const int status = get_training(service, policy, value);
    if (status != LS_ENOENT && status != LS_EPROTO && status != LS_EMISMATCH)
        return status;
    ls_log_warn("learner: work %s, attempt %" PRId64
                ", resumes from policy %s alone, without the training state: "
                "%s",
                service->told.key.task_id, service->told.key.attempt,
                service->told.policy_id, ls_error_text());
    ls_bytes_clear(&value->weights);
    ls_mutex_lock(&service->work.mutex);
    service->figures.policy_only++;
    ls_mutex_unlock(&service->work.mutex);
    return service->options.ops->reset(service->options.self);
}

static void go_on(struct learner_service *service,
                  const struct policy_value *value,
                  const struct ls_bytes *training)
{
    const struct service_watch *watch = service->options.common.watch;
    if (watch != NULL)
        watch->loaded(watch->self, &service->told.key, service->told.policy_id,
                      value, training);
    service->resumed = true;
    set_version(service, value->version);
    ls_mutex_lock(&service->work.mutex);
    service->iter = policy_value_iterations(value);
    ls_mutex_unlock(&service->work.mutex);
    ls_log_info("learner: work %s, attempt %" PRId64
                ", resumes after iteration %" PRId64 " with version %" PRId64
                " of policy %s",
                service->told.key.task_id, service->told.key.attempt,
                policy_value_iterations(value), value->version,
                service->told.policy_id);
}

static int take_policy(struct learner_service *service,
                       const struct store_blob *blob)
{
    const struct learner_ops *ops = service->options.ops;
    struct policy_value policy, training = {.weights.size = 0};
    int status = policy_value_read(&policy, blob->data, blob->size);
    if (status != LS_OK)
        return status;
    if (ops->load_training != NULL)
        status = take_training(service, &policy, &training);
    if (status == LS_OK)
        status = ops->load(service->options.self, &policy.weights);
    ls_bytes_clear(&policy.weights);
    if (status == LS_OK)
        go_on(service, &policy, &training.weights);
    ls_bytes_clear(&training.weights);
    return status;
}

/* The first attempt begins anew, whatever an earlier job has left under that
 * name; a later one goes on, if there is anything to go on from. */
int learner_load(struct learner_service *service)
{
    const char *name = service->told.policy_id;
    struct store_blob blob;
    service->resumed = false;
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

static int put(struct learner_service *service, const char *name,
               struct policy_value value, const struct ls_bytes *bytes)
{
    struct store_put put = {.name = name,
                            .keep = true,
                            .rank = rank_of(service),
                            .wait_ms = service->options.common.store_wait_ms};
    value.weights = *bytes;
    ls_writer_clear(service->writer);
    policy_value_write(&value, service->writer);
    const int status = ls_writer_bytes(service->writer, &put.data, &put.size);
    return status == LS_OK ? store_put(service->options.common.store, &put)
                           : status;
}

/* The policy is last: where it is, the rest is. */
static int put_all(struct learner_service *service,
                   const struct snapshot *snapshot,
                   const struct policy_value *value)
{
    const char *policy_id = service->told.policy_id;
    char name[SAFE_NAME_MAX + 1];
    int status = LS_OK;
    if (snapshot->training.size > 0)
        status = policy_training_name(name, policy_id, value->version);
    if (status == LS_OK && snapshot->training.size > 0)
        status = put(service, name, *value, &snapshot->training);
    return status == LS_OK ? put(service, policy_id, *value, &snapshot->weights)
                           : status;
}

int snapshot_take(const struct learner_service *service, struct snapshot *out)
{
    const struct learner_ops *ops = service->options.ops;
    const int status = ops->save(service->options.self, &out->weights);
    return status == LS_OK && ops->save_training != NULL
               ? ops->save_training(service->options.self, &out->training)
               : status;
}

void snapshot_fini(struct snapshot *snapshot)
{
    ls_bytes_clear(&snapshot->weights);
    ls_bytes_clear(&snapshot->training);
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
                   const struct snapshot *snapshot)
{
    const int64_t version = version_of(service) + 1;
    const struct policy_value value = {.iter = service->iter,
                                       .version = version,
                                       .attempt = service->told.key.attempt};
    int status;
    for (;;) {
        ls_mutex_lock(&service->work.mutex);
        service->news_seen = service->work.news;
        ls_mutex_unlock(&service->work.mutex);
        status = put_all(service, snapshot, &value);
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
            service->told.policy_id, &value, &snapshot->training);
    set_version(service, version);
    ls_log_debug("learner: policy %s, version %" PRId64 ", is of iteration "
                 "%" PRId64,
                 service->told.policy_id, version, service->iter);
    ls_mutex_lock(&service->work.mutex);
    service->figures.commits++;
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}
