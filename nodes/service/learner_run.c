/* The learner's steps, and its own hooks. An iteration of the task is one of
 * the work, or ends early: the work is closed or has failed, or its task is
 * finished. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner_parts.h"
#include "lockstep/log.h"

static void end_work(struct learner_service *service, const char *failure)
{
    batch_destroy(service->current);
    service->current = NULL;
    service_work_let_go(&service->work, failure);
}

/* Something of the work has failed: it is given back, and the run goes on; but
 * for what ends the run. */
static int fail_work(struct learner_service *service)
{
    if (service->run_status != LS_OK)
        return service->run_status;
    char text[LS_CALL_TEXT_MAX + 1];
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    end_work(service, text);
    return LS_OK;
}

static int run_hooks(struct learner_service *service,
                     enum hook_position position)
{
    service->moment.work = &service->told;
    service->moment.info = position == HOOK_AFTER_ITER ? &service->info : NULL;
    return priority_hooks_run(&service->hooks, position, service->iter);
}

/* Hooks -------------------------------------------------------------------- */

static int send_first_policy(void *self, int64_t last_iter)
{
    struct learner_service *service = self;
    (void)last_iter;
    return service->moment.resumed ? LS_OK : learner_commit(service);
}

static int send_policy(void *self, int64_t last_iter)
{
    struct learner_service *service = self;
    return last_iter % service->told.send_policy_freq == 0
               ? learner_commit(service)
               : LS_OK;
}

static int send_last_info(void *self, int64_t last_iter)
{
    struct learner_service *service = self;
    struct learner_info info = service->info;
    info.learner_step = last_iter;
    info.learner_done = true;
    ls_mutex_lock(&service->work.mutex);
    info.policy_version = service->policy_version;
    service->last = info;
    service->finished = !service->work.closing;
    service->figures.infos++;
    learner_answer_demand(service);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

int learner_add_hooks(struct learner_service *service)
{
    const struct hook hooks[] = {
        {"send policy", HOOK_BEFORE_RUN, 100, 0, send_first_policy, service},
        {"send policy", HOOK_AFTER_ITER, 100, 0, send_policy, service},
        {"send info", HOOK_AFTER_RUN, 1, 0, send_last_info, service}};
    int status = LS_OK;
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0] && status == LS_OK;
         i++)
        status = priority_hooks_add(&service->hooks, &hooks[i]);
    return status;
}

int learner_service_hook(learner_service *service, const struct hook *hook)
{
    return priority_hooks_add(&service->hooks, hook);
}

const struct learner_moment *
learner_service_moment(const learner_service *service)
{
    return &service->moment;
}

/* A work begins ------------------------------------------------------------ */

static int after_last(struct learner_service *service)
{
    return service->told.iterations > 0 &&
                   service->iter >= service->told.iterations
               ? run_hooks(service, HOOK_AFTER_RUN)
               : LS_OK;
}

static int begin(struct learner_service *service)
{
    service->run_status = LS_OK;
    memset(&service->info, 0, sizeof service->info);
    service->moment.policy_version = -1;
    ls_mutex_lock(&service->work.mutex);
    service->iter = 0; /* what is not in a policy is not done */
    ls_mutex_unlock(&service->work.mutex);
    int status = service->options.ops->reset(service->options.self);
    if (status == LS_OK)
        status = learner_load(service);
    if (status == LS_OK)
        status = run_hooks(service, HOOK_BEFORE_RUN);
    if (status == LS_OK)
        status = after_last(service);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&service->work.mutex);
    service->wants = !service->work.closing;
    learner_answer_demand(service);
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

int learner_begin(void *self)
{
    struct learner_service *service = self;
    return begin(service) == LS_OK ? LS_OK : fail_work(service);
}

/* A batch ------------------------------------------------------------------ */

static bool has_batch(void *arg)
{
    const struct learner_service *service = arg;
    return service->work.closing ||
           (service->waiting != NULL && service->waiting->fetched);
}

/* Lock held. The next one is asked for while this one trains. */
static struct batch *take_batch(struct learner_service *service)
{
    struct batch *batch = service->waiting;
    if (service->work.closing || batch == NULL || !batch->fetched)
        return NULL;
    service->waiting = NULL;
    service->answering = service->asking;
    service->asking = NULL;
    service->training = batch->status == LS_OK;
    if (!service->training) {
        service->figures.failed_batches++;
        ls_log_warn("learner: a batch was not learned: %s", batch->text);
        (void)ls_request_fail(&service->answering, batch->text);
    }
    learner_answer_demand(service);
    return batch;
}

int learner_step_batch(ls_step *step, void *self)
{
    struct learner_service *service = self;
    const int64_t began = ls_step_now(step);
    if (!service_work_is_used(&service->work))
        return LS_OK;
    const int status = service_work_wait(&service->work, has_batch, service);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&service->work.mutex);
    const bool closing = service->work.closing;
    struct batch *batch = take_batch(service);
    if (batch != NULL)
        service->figures.wait_ns += ls_step_now(step) - began;
    ls_mutex_unlock(&service->work.mutex);
    if (closing)
        end_work(service, NULL);
    else if (batch != NULL && batch->status == LS_OK)
        service->current = batch;
    else
        batch_destroy(batch);
    return LS_OK;
}

/* Learning ------------------------------------------------------------------
 */

static int check_priorities(const struct learner_service *service)
{
    for (size_t i = 0; i < service->current->told.n; i++)
        if (!isfinite(service->priorities[i]) || service->priorities[i] < 0.0)
            return ls_error(LS_EHANDLER,
                            "learn: the priority of sample %zu is %g", i,
                            service->priorities[i]);
    return LS_OK;
}

static int learn(struct learner_service *service)
{
    const struct batch *batch = service->current;
    struct learner_sample samples[SERVICE_BATCH_MAX];
    for (size_t i = 0; i < batch->told.n; i++) {
        samples[i] =
            (struct learner_sample){.sample = &batch->told.items[i].sample,
                                    .data = batch->blobs[i].data,
                                    .size = batch->blobs[i].size};
        service->priorities[i] = batch->told.items[i].sample.priority;
    }
    memset(&service->info, 0, sizeof service->info);
    const int status = service->options.ops->learn(
        service->options.self, samples, batch->told.n, &service->info,
        service->priorities);
    return status == LS_OK ? check_priorities(service) : status;
}

/* since: 0: it is over, and took so long. */
static void note_training(struct learner_service *service, int64_t since,
                          int64_t took)
{
    ls_mutex_lock(&service->work.mutex);
    service->training_since = since;
    service->figures.train_ns += took;
    ls_mutex_unlock(&service->work.mutex);
}

int learner_step_learn(ls_step *step, void *self)
{
    struct learner_service *service = self;
    if (service->current == NULL)
        return LS_OK;
    const int64_t began = ls_step_now(step);
    note_training(service, began, 0);
    int status = run_hooks(service, HOOK_BEFORE_ITER);
    if (status == LS_OK)
        status = learn(service);
    note_training(service, 0, ls_step_now(step) - began);
    return status == LS_OK ? LS_OK : fail_work(service);
}

/* After -------------------------------------------------------------------- */

/* Lock held. */
static void answer_learn(struct learner_service *service)
{
    const struct batch *batch = service->current;
    const int64_t last_iter = service->iter - 1;
    const bool has_info = last_iter % service->told.send_info_freq == 0;
    struct learner_result result = {
        .key = service->told.key, .has_info = has_info, .info = service->info};
    memcpy(result.buffer_id, service->told.buffer_id, sizeof result.buffer_id);
    result.info.learner_step = service->iter;
    result.info.policy_version = service->policy_version;
    result.priority_info.n = batch->told.n;
    for (size_t i = 0; i < batch->told.n; i++) {
        struct priority_update *update = &result.priority_info.items[i];
        update->slot = batch->told.items[i].slot;
        memcpy(update->unique_id, batch->told.items[i].unique_id,
               sizeof update->unique_id);
        update->priority = service->priorities[i];
    }
    service->figures.infos += has_info;
    ls_writer_clear(service->work.writer);
    learner_result_write(&result, service->work.writer);
    (void)service_work_answer(&service->work, &service->answering);
}

static void count_iteration(struct learner_service *service)
{
    ls_mutex_lock(&service->work.mutex);
    service->iter++;
    service->training = false;
    service->figures.iterations++;
    if (service->answering != NULL)
        answer_learn(service);
    learner_answer_demand(service);
    ls_mutex_unlock(&service->work.mutex);
    batch_destroy(service->current);
    service->current = NULL;
}

int learner_step_after(ls_step *step, void *self)
{
    struct learner_service *service = self;
    (void)step;
    if (service->current == NULL)
        return LS_OK;
    if (service_work_is_closing(&service->work)) {
        end_work(service, NULL);
        return LS_OK;
    }
    int status = run_hooks(service, HOOK_AFTER_ITER);
    if (status == LS_OK) {
        count_iteration(service);
        status = after_last(service);
    }
    return status == LS_OK ? LS_OK : fail_work(service);
}

void learner_run_ended(void *self)
{
    struct learner_service *service = self;
    batch_destroy(service->current);
    service->current = NULL;
}
