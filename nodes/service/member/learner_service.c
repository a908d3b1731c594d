#include "learner_service.h"

#include <stdlib.h>
#include <string.h>

#include "learner_parts.h"

/* What the work is asked --------------------------------------------------- */

static void fail_all(struct batches *batches, const char *text)
{
    for (struct batch *b = batches->first; b != NULL; b = b->next)
        service_work_fail_call(&b->request, text);
}

static void drop(void *self, const char *text)
{
    struct learner_service *service = self;
    service_work_fail_call(&service->demand, text);
    learner_forsake(service, text);
    fail_all(&service->under_way, text);
    fail_all(&service->over, text);
    if (service->current != NULL)
        service_work_fail_call(&service->current->request, text);
    service->wants = service->finished = false;
    ranks_leave(service, LS_ECANCELED);
}

/* What it has asked for does not come any more; what trains goes on. */
static void master_lost(void *self)
{
    struct learner_service *service = self;
    service_work_fail_call(&service->demand, "the coordinator is lost");
    learner_forsake(service, "the coordinator is lost");
}

static int64_t progress(void *self)
{
    const struct learner_service *service = self;
    return service->iter;
}

static void closed(void *self, ls_writer *out)
{
    const struct learner_service *service = self;
    struct learner_closed answer = {.key = service->told.key};
    memcpy(answer.buffer_id, service->told.buffer_id, sizeof answer.buffer_id);
    learner_closed_write(&answer, out);
}

static const struct service_kind learner_kind;

static int serve_start(void *self, ls_request *request)
{
    struct learner_service *service = self;
    struct learner_work told;
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = learner_work_read(&told, data, size);
    if (status != LS_OK)
        return service_work_malformed(&service->work, request, status);
    ls_mutex_lock(&service->work.mutex);
    if (service_work_start(&service->work, &request, &learner_kind,
                           &told.key)) {
        service->told = told;
        service->ranks.newest = told.key.attempt;
        service->iter = told.done;
        service->policy_version = -1;
        service->wants = service->outstanding = service->finished = false;
        service->engine_status = LS_OK;
    }
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

static int serve_demand(void *self, ls_request *request)
{
    struct learner_service *service = self;
    struct work_key key;
    const int status = service_work_read_key(&service->work, request, &key);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&service->work.mutex);
    if (service_work_admits(&service->work, &request, &key)) {
        service_work_fail_call(&service->demand,
                               "a later call takes its place");
        service->demand = request;
        learner_answer_demand(service);
    }
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

/* Lock held. batch, request: moved, on success. */
static int take_batch(struct learner_service *service, struct batch *batch,
                      ls_request *request)
{
    const struct learner_batch *told = &batch->told;
    if (!service->outstanding)
        return ls_error(LS_ESTATE, "no batch was asked for");
    if ((int64_t)told->n != service->told.batch_size)
        return ls_error(LS_EPROTO, "%zu samples, and a batch has %lld", told->n,
                        (long long)service->told.batch_size);
    batch->request = request;
    const int status = learner_engine_put(service, batch);
    if (status != LS_OK) {
        batch->request = NULL;
        return status;
    }
    service->outstanding = false;
    if (ranks_are_several(service)) {
        size_t size;
        const void *data = ls_request_data(request, &size);
        ranks_tell(service, batch, data, size);
    }
    return LS_OK;
}

static int serve_learn(void *self, ls_request *request)
{
    struct learner_service *service = self;
    size_t size;
    const void *data = ls_request_data(request, &size);
    struct batch *batch = calloc(1, sizeof *batch);
    const int status = batch == NULL
                           ? ls_error(LS_ENOMEM, "a batch")
                           : learner_batch_read(&batch->told, data, size);
    if (status != LS_OK) {
        free(batch);
        (void)service_work_malformed(&service->work, request, status);
        if (status != LS_ENOMEM)
            return status;
        /* Nothing is wrong with it, and one is still asked for: it is given
         * again in a while. */
        (void)ls_request_refuse(&request, LS_CALL_BUSY, ls_error_text());
        return LS_OK;
    }
    ls_mutex_lock(&service->work.mutex);
    if (service_work_admits(&service->work, &request, &batch->told.key)) {
        if (take_batch(service, batch, request) == LS_OK)
            batch = NULL;
        else
            service_work_refuse(&service->work, &request);
    }
    ls_mutex_unlock(&service->work.mutex);
    batch_destroy(batch);
    return LS_OK;
}

/* The service ---------------------------------------------------------------
 */

static const struct service_task tasks[] = {
    {LS_JOB_INIT, CALL_LEARNER_START, serve_start},
    {LS_JOB_EPOCH, CALL_LEARNER_DEMAND, serve_demand},
    {LS_JOB_EPOCH, CALL_LEARNER_LEARN, serve_learn},
    {LS_JOB_EXIT, CALL_LEARNER_CLOSE, NULL}};

static const struct service_work_step steps[] = {{"learn", learner_step_learn},
                                                 {"after", learner_step_after}};

static const struct service_kind learner_kind = {
    .tasks = tasks,
    .n_tasks = sizeof tasks / sizeof tasks[0],
    .steps = steps,
    .n_steps = sizeof steps / sizeof steps[0],
    .begin = learner_begin,
    .progress = progress,
    .drop = drop,
    .closed = closed};

static const struct service_kind *const kinds[] = {&learner_kind, NULL};

static const struct service_work_ops work_ops = {.what = "learner",
                                                 .kinds = kinds,
                                                 .master_lost = master_lost,
                                                 .run_ended = learner_run_ended,
                                                 .is_wanted = learner_is_wanted,
                                                 .recall = learner_recall};

int learner_service_create(learner_service **out,
                           const struct learner_service_options *options)
{
    struct learner_service *service = calloc(1, sizeof *service);
    if (service == NULL)
        return ls_error(LS_ENOMEM, "a learner service");
    service->options = *options;
    if (service->options.stacks == 0)
        service->options.stacks = 1;
    if (service->options.passes == 0)
        service->options.passes = 1;
    service->ranks.n = 1;
    batches_init(&service->under_way);
    batches_init(&service->over);
    int status = ls_writer_create(&service->writer);
    if (status == LS_OK)
        status = service_work_init(&service->work, &options->common, &work_ops,
                                   service);
    if (status == LS_OK)
        status = learner_add_hooks(service);
    if (status == LS_OK)
        status = service_work_serve(&service->work);
    if (status == LS_OK)
        status = ls_rpc_serve(options->common.calls, CALL_RANK_START,
                              LS_CALL_ANYONE, learner_serve_rank, service);
    if (status != LS_OK) {
        struct ls_failure why;
        ls_failure_keep(&why, status);
        learner_service_destroy(&service);
        return ls_failure_return(&why);
    }
    *out = service;
    return LS_OK;
}

void learner_service_destroy(learner_service **service)
{
    if (service == NULL || *service == NULL)
        return;
    struct learner_service *old = *service;
    if (old->work.options.node != NULL) /* else there is no lock yet */
        learner_run_ended(old);
    service_work_fini(&old->work);
    ls_writer_destroy(&old->writer);
    free(old);
    *service = NULL;
}

void learner_service_use(learner_service *service, ls_task *task)
{
    service_work_use(&service->work, task);
}

void learner_service_figures(learner_service *service,
                             struct learner_figures *out)
{
    struct service_work *work = &service->work;
    ls_mutex_lock(&work->mutex);
    struct learner_figures figures = service->figures;
    learner_add_times(service, &figures);
    figures.common = work->figures;
    ls_mutex_unlock(&work->mutex);
    *out = figures;
}
