/* The learner's steps, and its own hooks. An iteration of the task is one of
 * the work, or ends early: the work is closed or has failed, or its task is
 * finished. The engine trains the next one meanwhile. */
#include <stdio.h>
#include <string.h>

#include "learner_parts.h"
#include "lockstep/log.h"

/* Calls are failed first, with the reason; nothing is under way any more when
 * the work is let go of. */
static void end_work(struct learner_service *service, const char *failure)
{
    service_work_give_back(&service->work, failure);
    learner_engine_end(service);
    ranks_close(service);
    service_work_let_go(&service->work, NULL);
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
    return priority_hooks_run(&service->hooks, position, service->iter);
}

/* Hooks -------------------------------------------------------------------- */

static int send_first_policy(void *self, int64_t last_iter)
{
    struct learner_service *service = self;
    struct snapshot first = {.weights.size = 0};
    (void)last_iter;
    if (service->resumed)
        return LS_OK;
    int status = snapshot_take(service, &first);
    if (status == LS_OK)
        status = learner_commit(service, &first);
    snapshot_fini(&first);
    return status;
}

static int send_policy(void *self, int64_t last_iter)
{
    struct learner_service *service = self;
    const struct batch *batch = service->current;
    (void)last_iter;
    return batch->has_weights ? learner_commit(service, &batch->after) : LS_OK;
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

/* A work begins ------------------------------------------------------------ */

static bool is_over(const struct learner_service *service)
{
    return service->told.iterations > 0 &&
           service->iter >= service->told.iterations;
}

/* Nothing is under way, and nothing comes. */
static int end_run(struct learner_service *service)
{
    const int status =
        learner_beside(service, LS_AFTER_RUN, service->iter, NULL);
    return status == LS_OK ? run_hooks(service, HOOK_AFTER_RUN) : status;
}

static int begin(struct learner_service *service)
{
    service->run_status = LS_OK;
    memset(&service->info, 0, sizeof service->info);
    ls_mutex_lock(&service->work.mutex);
    service->iter = 0; /* what is not in a policy is not done */
    ls_mutex_unlock(&service->work.mutex);
    int status = service->options.ops->reset(service->options.self);
    if (status == LS_OK)
        status = learner_load(service);
    if (status == LS_OK && !is_over(service))
        status = ranks_begin(service);
    if (status == LS_OK)
        status = learner_beside(service, LS_BEFORE_RUN, service->iter, NULL);
    if (status == LS_OK)
        status = run_hooks(service, HOOK_BEFORE_RUN);
    if (status == LS_OK)
        status =
            is_over(service) ? end_run(service) : learner_engine_begin(service);
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

/* What was learned --------------------------------------------------------- */

static bool has_batch(void *arg)
{
    const struct learner_service *service = arg;
    return service->work.closing || service->over.first != NULL ||
           service->engine_status != LS_OK;
}

/* With nothing but that its data is lost, unless it was trained. Lock held. */
static void answer_learn(struct learner_service *service, struct batch *batch)
{
    const bool trained = batch->trained;
    struct learner_result result = {
        .key = service->told.key,
        .data_lost = !trained,
        .policy_version = service->policy_version,
        .cur_learner_iter = service->iter,
        .has_info = trained && batch->iter % service->told.send_info_freq == 0,
        .info = service->info,
        .n = trained ? batch->told.n : 0};
    memcpy(result.buffer_id, service->told.buffer_id, sizeof result.buffer_id);
    result.info.learner_step = service->iter;
    result.info.policy_version = service->policy_version;
    if (trained)
        memcpy(result.priorities, batch->priorities,
               batch->told.n * sizeof result.priorities[0]);
    service->figures.infos += result.has_info;
    ls_writer_clear(service->work.writer);
    learner_result_write(&result, service->work.writer);
    (void)service_work_answer(&service->work, &batch->request);
}

/* Lock held. One that was not trained counts for nothing. */
static struct batch *take_batch(struct learner_service *service)
{
    struct batch *batch = batches_take(&service->over);
    if (batch == NULL || batch->trained)
        return batch;
    if (batch->status != LS_OK && !batch->forsaken) {
        service->work.figures.failed++;
        ls_log_warn("learner: a batch was not learned: %s", batch->text);
    }
    if (batch->request != NULL && batch->status == LS_ELOST)
        answer_learn(service, batch);
    else
        service_work_fail_call(&batch->request, batch->text);
    learner_answer_demand(service);
    return batch;
}

int learner_step_learn(ls_step *step, void *self)
{
    struct learner_service *service = self;
    (void)step;
    if (!service_work_is_used(&service->work))
        return learner_assist(service);
    int status = service_work_wait(&service->work, has_batch, service);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&service->work.mutex);
    const bool closing = service->work.closing;
    struct batch *batch = closing ? NULL : take_batch(service);
    if (batch != NULL && batch->trained)
        service->current = batch;
    else if (batch == NULL && !closing && service->engine_status != LS_OK)
        status = ls_error(service->engine_status, "%s", service->engine_text);
    ls_mutex_unlock(&service->work.mutex);
    if (batch != service->current)
        batch_destroy(batch);
    if (closing)
        end_work(service, NULL);
    return status == LS_OK ? LS_OK : fail_work(service);
}

/* After -------------------------------------------------------------------- */

static void count_iteration(struct learner_service *service)
{
    ls_mutex_lock(&service->work.mutex);
    struct batch *batch = service->current;
    service->current = NULL;
    service->iter++;
    service->figures.iterations++;
    service->figures.info = batch->info;
    if (batch->request != NULL)
        answer_learn(service, batch);
    learner_answer_demand(service);
    ls_mutex_unlock(&service->work.mutex);
    batch_destroy(batch);
}

static int end_iteration(struct learner_service *service)
{
    service->info = service->current->info;
    int status = run_hooks(service, HOOK_AFTER_ITER);
    if (status != LS_OK)
        return status;
    count_iteration(service);
    return is_over(service) ? end_run(service) : LS_OK;
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
    return end_iteration(service) == LS_OK ? LS_OK : fail_work(service);
}

void learner_run_ended(void *self)
{
    struct learner_service *service = self;
    learner_engine_end(service);
    ranks_close(service);
    ls_mutex_lock(&service->work.mutex);
    service_work_fail_call(&service->ranks.wish, "the learner has ended");
    ls_mutex_unlock(&service->work.mutex);
}
