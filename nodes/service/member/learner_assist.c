/* A learner that does a work with another, to which it was given: a rank of it
 * that is not the first. It is told what to learn from, and commits nothing.
 * Whatever ends it, it is free again, and the first one gives the work back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "learner_parts.h"
#include "lockstep/log.h"
#include "lockstep/place.h"

/* What it is asked ---------------------------------------------------------
 */

static bool is_rank(const struct learner_service *service,
                    const struct learner_work *told, uint32_t from)
{
    const int64_t own = ls_node_id(service->options.common.node);
    bool is_rank = false;
    for (size_t i = 1; i < told->n_ranks; i++)
        is_rank = is_rank || told->ranks[i] == own;
    return is_rank && told->ranks[0] == (int64_t)from;
}

/* Whose work it is was decided elsewhere: but the coordinator gives works of
 * learners to none but these. */
static int check_role(const struct learner_service *service, uint32_t from)
{
    struct ls_member member;
    if (ls_node_member(service->options.common.node, from, &member) == LS_OK &&
        ls_place_has("role:learner", member.id, member.role, member.labels))
        return LS_OK;
    return ls_error(LS_EPROTO, "node %u is no learner", (unsigned)from);
}

/* Lock held. */
static int check_wish(const struct learner_service *service,
                      const struct learner_work *told, uint32_t from)
{
    const struct service_work *work = &service->work;
    if (!is_rank(service, told, from))
        return ls_error(LS_EPROTO, "this node is no rank of node %u's work",
                        (unsigned)from);
    if (work->ended)
        return ls_error(LS_ESTATE, "its task has ended");
    if (work->held || work->successor != NULL)
        return ls_error(LS_ESTATE, "the learner has a work of its own");
    if (told->key.attempt < service->ranks.newest)
        return ls_error(LS_ESTATE,
                        "it is for attempt %" PRId64 ", and attempt %" PRId64
                        " has begun",
                        told->key.attempt, service->ranks.newest);
    return LS_OK;
}

int learner_serve_rank(void *self, ls_request *request)
{
    struct learner_service *service = self;
    struct learner_work told;
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = learner_work_read(&told, data, size);
    if (status != LS_OK)
        return service_work_malformed(&service->work, request, status);
    const uint32_t from = ls_request_from(request);
    int refusal = check_role(service, from);
    ls_mutex_lock(&service->work.mutex);
    if (refusal == LS_OK)
        refusal = check_wish(service, &told, from);
    if (refusal != LS_OK) {
        service_work_refuse(&service->work, &request);
    } else {
        service_work_fail_call(&service->ranks.wish,
                               "a later call takes its place");
        service->ranks.wish = request;
        service->ranks.wished = told;
        service->ranks.newest = told.key.attempt;
        service_work_recall(&service->work);
        service_work_changed(&service->work);
    }
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

bool learner_is_wanted(const void *self)
{
    const struct learner_service *service = self;
    return service->ranks.wish != NULL;
}

void learner_recall(void *self)
{
    ranks_leave(self, LS_ECANCELED);
}

/* What it does -------------------------------------------------------------
 */

/* Those that have left the engine. */
static void forget_trained(struct learner_service *service)
{
    struct batch *batch;
    do {
        ls_mutex_lock(&service->work.mutex);
        batch = batches_take(&service->over);
        if (batch != NULL && batch->trained)
            service->iter++;
        ls_mutex_unlock(&service->work.mutex);
        if (batch != NULL && batch->status != LS_OK)
            ls_log_warn("learner: a batch was not learned: %s", batch->text);
        batch_destroy(batch);
    } while (batch != NULL);
}

static int take_batch(struct learner_service *service,
                      const struct ls_group_part *part)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return ls_error(LS_ENOMEM, "a batch");
    int status = learner_batch_read(&batch->told, part->data, part->size);
    if (status != LS_OK) {
        free(batch);
        return status;
    }
    ls_mutex_lock(&service->work.mutex);
    status = (int64_t)batch->told.n == service->told.batch_size
                 ? learner_engine_put(service, batch)
                 : ls_error(LS_EPROTO, "%zu samples, and a batch has %" PRId64,
                            batch->told.n, service->told.batch_size);
    ls_mutex_unlock(&service->work.mutex);
    if (status != LS_OK)
        batch_destroy(batch);
    return status;
}

/* The group ends when the engine has failed, and when it is recalled. */
static int learn_next(struct learner_service *service)
{
    struct ls_group_parts parts = {.n = 0};
    int status =
        ls_group_do(service->ranks.commands,
                    &(struct ls_group_operation){.kind = LS_GROUP_BROADCAST,
                                                 .name = "batch",
                                                 .parts = &parts,
                                                 .timeout_ms = RANKS_IDLE_MS});
    forget_trained(service);
    if (status == LS_OK)
        status = take_batch(service, &parts.items[0]);
    ls_group_parts_free(&parts);
    return status;
}

static void watch_rank(const struct learner_service *service, bool joins)
{
    const struct service_watch *watch = service->options.common.watch;
    if (watch != NULL)
        (joins ? watch->joined : watch->parted)(watch->self,
                                                &service->told.key);
}

/* Whoever asks for it is answered when there is somebody to meet. */
static int begin(struct learner_service *service)
{
    struct service_work *work = &service->work;
    int status = ls_task_finishing(work->task)
                     ? ls_error(LS_ECANCELED, "its task finishes")
                     : ls_task_cancelled(work->task);
    if (status == LS_OK)
        status = ranks_open(service);
    ls_mutex_lock(&work->mutex);
    ls_request *wish = service->ranks.answering;
    service->ranks.answering = NULL;
    if (status != LS_OK) {
        (void)ls_request_fail(&wish, ls_error_text());
    } else {
        ls_writer_clear(work->writer);
        service_started_write("learner rank has started", work->writer);
        status = service_work_answer(work, &wish);
    }
    ls_mutex_unlock(&work->mutex);
    if (status == LS_OK)
        status = ranks_meet(service);
    if (status == LS_OK)
        status = ranks_take_state(service);
    if (status == LS_OK)
        status = learner_beside(service, LS_BEFORE_RUN, service->iter, NULL);
    return status == LS_OK ? learner_engine_begin(service) : status;
}

/* A work of its own comes first. */
static bool take_wish(struct learner_service *service)
{
    struct ranks *ranks = &service->ranks;
    ls_mutex_lock(&service->work.mutex);
    const bool taken = ranks->wish != NULL && service_work_lend(&service->work);
    if (taken) {
        ranks->answering = ranks->wish;
        ranks->wish = NULL;
        ranks->left = false;
        service->told = ranks->wished;
        service->iter = 0;
        service->wants = service->finished = false;
        service->engine_status = LS_OK;
    }
    ls_mutex_unlock(&service->work.mutex);
    return taken;
}

static void say_end(struct learner_service *service)
{
    const struct learner_work *told = &service->told;
    ls_mutex_lock(&service->work.mutex);
    ls_log_info("learner: work %s, attempt %" PRId64
                ", is over here, rank %zu: %s",
                told->key.task_id, told->key.attempt, service->ranks.own,
                service->engine_status != LS_OK ? service->engine_text
                                                : ls_error_text());
    ls_mutex_unlock(&service->work.mutex);
}

int learner_assist(struct learner_service *service)
{
    if (!take_wish(service))
        return LS_OK;
    watch_rank(service, true);
    int status = begin(service);
    while (status == LS_OK)
        status = learn_next(service);
    say_end(service);
    ls_mutex_lock(&service->work.mutex);
    ranks_leave(service, status); /* its learner thread waits for others */
    ls_mutex_unlock(&service->work.mutex);
    learner_engine_end(service);
    ranks_close(service);
    watch_rank(service, false);
    service_work_return(&service->work);
    return LS_OK;
}
