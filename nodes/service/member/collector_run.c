/* The collector's steps. An iteration of the task is one trajectory, or one
 * episode of an evaluation, or ends early: the work is closed or has failed, or
 * its task is finished. */
#include <stdio.h>
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

int collector_fail_ask(struct collector_service *service)
{
    char text[LS_CALL_TEXT_MAX + 1];
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    ls_log_warn("collector: %s", text);
    service->collects = false;
    ls_mutex_lock(&service->work.mutex);
    service->work.figures.failed++;
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
    const struct collector_kind *kind = service->kind;
    return service->work.closing ||
           (service->may_begin && !kind->is_done(service) &&
            kind->may_make(service));
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
        return collector_fail_ask(service);
    }
    status = load(service, &blob);
    store_blob_fini(&blob);
    if (status == LS_OK)
        return LS_OK;
    (void)ls_error_at(status, "policy %s", name);
    return fail_work(service);
}

static int take_policy(ls_step *step, void *self)
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

static int collect(ls_step *step, void *self)
{
    struct collector_service *service = self;
    (void)step;
    if (!service->collects)
        return LS_OK;
    service->what = (struct collected){.steps = 0};
    ls_mutex_lock(&service->work.mutex);
    const int64_t more = service->to_make > 0 ? service->to_make : 0;
    ls_mutex_unlock(&service->work.mutex);
    return service->kind->make(service, more) == LS_OK ? LS_OK
                                                       : fail_work(service);
}

/* Handing over --------------------------------------------------------------
 */

void collector_count(struct collector_service *service)
{
    const struct collected *what = &service->what;
    service->episodes += what->episodes;
    service->steps += what->steps;
    service->return_sum += what->return_sum;
    service->figures.episodes += what->episodes;
    service->figures.steps += what->steps;
}

static int hand_over(ls_step *step, void *self)
{
    struct collector_service *service = self;
    (void)step;
    return service->collects ? service->kind->hand_over(service) : LS_OK;
}

const struct service_work_step collector_steps[COLLECTOR_STEPS] = {
    {"policy", take_policy}, {"collect", collect}, {"hand over", hand_over}};

void collector_run_ended(void *self)
{
    struct collector_service *service = self;
    service->collects = false;
}
