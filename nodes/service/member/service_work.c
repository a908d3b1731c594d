#include "service_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lockstep/log.h"

#include "coverage.h"
#include "told.h"

static const char *what(const struct service_work *work)
{
    return work->ops->what;
}

void service_work_changed(struct service_work *work)
{
    work->changes++;
    ls_cond_broadcast(&work->changed);
}

static bool is_same(const struct work_key *a, const struct work_key *b)
{
    return a->attempt == b->attempt && strcmp(a->task_id, b->task_id) == 0;
}

static bool was_given_back(const struct service_work *work,
                           const struct work_key *key)
{
    return work->failure[0] != '\0' && is_same(&work->failed_key, key);
}

static void drop(struct service_work *work, const char *text)
{
    work->kind->drop(work->self, text);
}

int service_work_answer(struct service_work *work, ls_request **request)
{
    const void *data;
    size_t size;
    if (ls_writer_bytes(work->writer, &data, &size) == LS_OK)
        return ls_request_complete(request, data, size);
    return ls_request_fail(request, ls_error_text());
}

void service_work_refuse(struct service_work *work, ls_request **request)
{
    work->figures.refused++;
    if (is_told((uint64_t)work->figures.refused))
        ls_log_warn("%s: %s from node %u was refused: %s", what(work),
                    ls_request_name(*request),
                    (unsigned)ls_request_from(*request), ls_error_text());
    (void)ls_request_refuse(request, LS_CALL_REFUSED, ls_error_text());
}

int service_work_malformed(struct service_work *work, const ls_request *request,
                           int status)
{
    ls_mutex_lock(&work->mutex);
    const bool told = is_told((uint64_t)++work->figures.refused);
    ls_mutex_unlock(&work->mutex);
    if (told)
        ls_log_warn("%s: a call from node %u was refused: %s", what(work),
                    (unsigned)ls_request_from(request), ls_error_text());
    return status;
}

int service_work_read_key(struct service_work *work, const ls_request *request,
                          struct work_key *out)
{
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = work_key_read(out, data, size);
    if (status == LS_OK)
        return LS_OK;
    (void)ls_error_at(status, "%s", ls_request_name(request));
    return service_work_malformed(work, request, status);
}

/* Masters ----------------------------------------------------------------- */

/* A call has come: the coordinator is there. Not when it is handled after the
 * caller's loss was told: then it is not a master any more. */
static void heard(struct service_work *work, const ls_request *request)
{
    uint32_t master;
    if (!ls_rpc_master(work->options.calls, &master) ||
        master != ls_request_from(request))
        return;
    if (work->master_is_lost)
        ls_take(LS_TAKES_WORK_MASTER_BACK);
    work->has_master = true;
    work->master = master;
    work->master_is_lost = false;
    work->news++;
    service_work_changed(work);
}

/* By its id: one that leaves at once has not told its role. */
static bool is_master(const struct service_work *work,
                      const struct ls_member *member)
{
    return member->id ==
           (work->has_master ? work->master : work->options.coordinator);
}

/* One that leaves though nothing is wrong has nothing more to be done. It has
 * said so to those that were members then: who came just now was none. */
static void finish_with(struct service_work *work,
                        const struct ls_member *member)
{
    if (member->state != LS_MEMBER_LEFT || member->reason != LS_OK ||
        work->task == NULL)
        return;
    ls_task_finish_here(work->task);
    service_work_recall(work);
}

static void on_member(void *self, const struct ls_member *member)
{
    struct service_work *work = self;
    const bool gone =
        member->state == LS_MEMBER_LEFT || member->state == LS_MEMBER_LOST;
    ls_mutex_lock(&work->mutex);
    if (member->state == LS_MEMBER_READY)
        work->news++;
    if (gone && !work->master_is_lost && is_master(work, member)) {
        ls_take(LS_TAKES_WORK_MASTER_LOST);
        work->master = member->id;
        work->master_is_lost = true;
        work->master_lost_at = ls_now(work->runtime);
        work->lost_masters++;
        if (work->ops->master_lost != NULL)
            work->ops->master_lost(work->self);
        finish_with(work, member);
    }
    service_work_changed(work);
    ls_mutex_unlock(&work->mutex);
}

/* One that left before it was ready here counts for the world that was joined,
 * and nobody is told that it left. */
void service_work_look(struct service_work *work)
{
    struct ls_member member;
    if (ls_node_member(work->options.node, work->options.coordinator,
                       &member) == LS_OK &&
        member.state == LS_MEMBER_LEFT)
        on_member(work, &member);
}

static int serve_resource(void *self, ls_request *request)
{
    struct service_work *work = self;
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = service_nothing_read(data, size);
    if (status != LS_OK)
        return service_work_malformed(work, request, status);
    ls_mutex_lock(&work->mutex);
    heard(work, request);
    struct service_resource resource = {.gpu = work->options.gpu,
                                        .cpu = work->options.cpu};
    if (work->held && !was_given_back(work, &work->key)) {
        memcpy(resource.task_id, work->key.task_id, sizeof resource.task_id);
        resource.attempt = work->key.attempt;
        resource.progress = work->kind->progress(work->self);
    }
    ls_writer_clear(work->writer);
    service_resource_write(&resource, work->writer);
    (void)service_work_answer(work, &request);
    ls_mutex_unlock(&work->mutex);
    return LS_OK;
}

/* Begin and end ----------------------------------------------------------- */

static void forget(struct service_work *work)
{
    const struct service_watch *watch = work->options.watch;
    if (work->held && watch != NULL)
        watch->ended(watch->self, &work->key);
    work->held = work->closing = work->used = false;
    work->kind = NULL;
    memset(&work->key, 0, sizeof work->key);
}

/* Nobody is at it any more. Returns what is to be started now. */
static ls_request *give_up(struct service_work *work)
{
    ls_request *successor = work->successor;
    if (work->closer != NULL) {
        ls_take(LS_TAKES_WORK_CLOSED);
        ls_writer_clear(work->writer);
        work->kind->closed(work->self, work->writer);
        (void)service_work_answer(work, &work->closer);
    }
    work->successor = NULL;
    forget(work);
    service_work_changed(work);
    return successor;
}

static const struct service_task *task_of(const struct service_kind *kind,
                                          const char *name)
{
    for (size_t i = 0; i < kind->n_tasks; i++)
        if (strcmp(kind->tasks[i].name, name) == 0)
            return &kind->tasks[i];
    return NULL;
}

/* The first kind with a task of this name, which is the same in all that have
 * it. */
static const struct service_kind *kind_with(const struct service_work *work,
                                            const char *name)
{
    const struct service_kind *const *kind = work->ops->kinds;
    while (task_of(*kind, name) == NULL)
        kind++;
    return *kind;
}

static void start_again(struct service_work *work, ls_request *successor)
{
    if (successor == NULL)
        return;
    const char *name = ls_request_name(successor);
    const struct service_task *task = task_of(kind_with(work, name), name);
    if (task->fn(work->self, successor) != LS_OK)
        (void)ls_request_fail(&successor, ls_error_text());
}

static void replace(ls_request **kept, ls_request **request)
{
    if (*kept != NULL)
        (void)ls_request_fail(kept, "a later call takes its place");
    *kept = *request;
    *request = NULL;
}

/* A later attempt of the work that is held: it begins when that one is let go.
 */
static void supersede(struct service_work *work, ls_request **request)
{
    char text[LS_CALL_TEXT_MAX + 1];
    ls_take(LS_TAKES_WORK_SUPERSEDED);
    (void)snprintf(text, sizeof text,
                   "work %s is closed: a later attempt than %" PRId64
                   " was started",
                   work->key.task_id, work->key.attempt);
    if (!was_given_back(work, &work->key))
        drop(work, text);
    replace(&work->successor, request);
    work->closing = true;
    service_work_changed(work);
}

bool service_work_start(struct service_work *work, ls_request **request,
                        const struct service_kind *kind,
                        const struct work_key *key)
{
    heard(work, *request);
    const bool later = work->held &&
                       strcmp(work->key.task_id, key->task_id) == 0 &&
                       key->attempt > work->key.attempt;
    /* One that was given back, and is not let go of yet: whatever is next
     * begins then. */
    const bool ends = work->held && was_given_back(work, &work->key);
    if ((later || ends) && work->used && !work->ended) {
        supersede(work, request);
        return false;
    }
    if (work->lent) {
        replace(&work->successor, request);
        service_work_recall(work);
        return false;
    }
    if (work->ended) {
        ls_take(LS_TAKES_WORK_ENDED);
        (void)ls_error(LS_ESTATE, "its task has ended");
        service_work_refuse(work, request);
        return false;
    }
    if (work->held && !later) {
        ls_take(LS_TAKES_WORK_BUSY);
        work->figures.refused++;
        char text[LS_CALL_TEXT_MAX + 1];
        (void)snprintf(text, sizeof text,
                       "the %s holds work %s, attempt %" PRId64, what(work),
                       work->key.task_id, work->key.attempt);
        (void)ls_request_refuse(request, LS_CALL_BUSY, text);
        return false;
    }
    forget(work);
    ls_take(LS_TAKES_WORK_HELD);
    work->held = true;
    work->kind = kind;
    work->key = *key;
    if (was_given_back(work, key)) /* and is tried once more */
        work->failure[0] = '\0';
    if (work->options.watch != NULL)
        work->options.watch->began(work->options.watch->self, key);
    char text[64];
    (void)snprintf(text, sizeof text, "%s task has started", what(work));
    ls_writer_clear(work->writer);
    service_started_write(text, work->writer);
    (void)service_work_answer(work, request);
    service_work_changed(work);
    return true;
}

bool service_work_admits(struct service_work *work, ls_request **request,
                         const struct work_key *key)
{
    heard(work, *request);
    if (work->held && !work->closing && is_same(&work->key, key))
        return true;
    if (was_given_back(work, key)) {
        (void)ls_request_fail(request, work->failure);
        return false;
    }
    ls_take(LS_TAKES_WORK_NOT_HELD);
    if (work->held && is_same(&work->key, key))
        (void)ls_error(LS_ESTATE, "work %s is being closed", key->task_id);
    else if (work->held)
        (void)ls_error(LS_ESTATE,
                       "it is for work %s, attempt %" PRId64
                       ", and the %s holds work %s, attempt %" PRId64,
                       key->task_id, key->attempt, what(work),
                       work->key.task_id, work->key.attempt);
    else
        (void)ls_error(LS_ESTATE,
                       "it is for work %s, attempt %" PRId64
                       ", and the %s holds none",
                       key->task_id, key->attempt, what(work));
    service_work_refuse(work, request);
    return false;
}

void service_work_fail_call(ls_request **request, const char *text)
{
    if (*request != NULL)
        (void)ls_request_fail(request, text);
}

static int serve_close(void *self, ls_request *request)
{
    struct service_work *work = self;
    struct work_key key;
    const int status = service_work_read_key(work, request, &key);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&work->mutex);
    ls_request *successor = NULL;
    if (work->held && work->closing && is_same(&work->key, &key)) {
        ls_take(LS_TAKES_WORK_CLOSED_TWICE);
        heard(work, request);
        replace(&work->closer, &request);
    } else if (was_given_back(work, &key)) {
        heard(work, request); /* there is nothing left to close */
        (void)ls_request_refuse(&request, LS_CALL_REFUSED, work->failure);
    } else if (service_work_admits(work, &request, &key)) {
        char text[LS_CALL_TEXT_MAX + 1];
        (void)snprintf(text, sizeof text, "work %s is closed", key.task_id);
        drop(work, text);
        ls_take(LS_TAKES_WORK_CLOSING);
        work->closer = request;
        work->closing = true;
        service_work_changed(work);
    }
    if (work->closing && !work->used)
        successor = give_up(work);
    ls_mutex_unlock(&work->mutex);
    start_again(work, successor);
    return LS_OK;
}

bool service_work_lend(struct service_work *work)
{
    work->lent = !work->held && !work->ended;
    if (work->lent)
        ls_take(LS_TAKES_WORK_JOINED);
    return work->lent;
}

void service_work_return(struct service_work *work)
{
    ls_mutex_lock(&work->mutex);
    ls_request *successor = work->successor;
    work->successor = NULL;
    work->lent = false;
    ls_take(LS_TAKES_WORK_LEFT);
    service_work_changed(work);
    ls_mutex_unlock(&work->mutex);
    start_again(work, successor);
}

void service_work_recall(struct service_work *work)
{
    if (!work->lent)
        return;
    ls_take(LS_TAKES_WORK_CALLED_AWAY);
    work->ops->recall(work->self);
}

void service_work_give_back(struct service_work *work, const char *failure)
{
    ls_mutex_lock(&work->mutex);
    if (failure != NULL && !work->closing) {
        (void)snprintf(work->failure, sizeof work->failure,
                       "work %s was given back: %s", work->key.task_id,
                       failure);
        work->failed_key = work->key;
        ls_take(LS_TAKES_WORK_GIVEN_BACK);
        work->figures.given_back++;
        work->closing = true;
        ls_log_warn("%s: %s", what(work), work->failure);
        drop(work, work->failure);
    }
    ls_mutex_unlock(&work->mutex);
}

void service_work_let_go(struct service_work *work, const char *failure)
{
    service_work_give_back(work, failure);
    ls_mutex_lock(&work->mutex);
    ls_request *successor = give_up(work);
    ls_mutex_unlock(&work->mutex);
    start_again(work, successor);
}

void service_work_end_run(struct service_work *work, int status)
{
    char text[LS_CALL_TEXT_MAX + 1];
    (void)snprintf(text, sizeof text, "the %s has ended: %s", what(work),
                   status == LS_OK ? "it is finished" : ls_error_text());
    ls_mutex_lock(&work->mutex);
    work->ended = true;
    if (work->held) {
        ls_take(LS_TAKES_WORK_RUN_ENDED);
        drop(work, text);
    }
    ls_request *successor = give_up(work);
    ls_mutex_unlock(&work->mutex);
    start_again(work, successor); /* which is refused */
}

/* Made and taken apart ---------------------------------------------------- */

/* For one that was begun to be made, too. */
static void take_apart(struct service_work *work)
{
    ls_writer_destroy(&work->writer);
    ls_cond_fini(&work->changed);
    ls_mutex_fini(&work->mutex);
    work->options.node = NULL;
}

int service_work_init(struct service_work *work,
                      const struct service_options *options,
                      const struct service_work_ops *ops, void *self)
{
    *work =
        (struct service_work){.options = *options, .ops = ops, .self = self};
    work->runtime = ls_node_runtime(options->node);
    int status = ls_mutex_init(&work->mutex, work->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&work->changed, work->runtime);
    if (status == LS_OK)
        status = ls_writer_create(&work->writer);
    if (status == LS_OK)
        status = ls_node_on_member(options->node, on_member, work);
    if (status != LS_OK)
        take_apart(work);
    return status;
}

static int serve_kind(struct service_work *work,
                      const struct service_kind *kind)
{
    int status = LS_OK;
    for (size_t i = 0; i < kind->n_tasks && status == LS_OK; i++) {
        const struct service_task *task = &kind->tasks[i];
        const bool ends = task->phase == LS_JOB_EXIT;
        if (kind_with(work, task->name) == kind)
            status = ls_rpc_serve(
                work->options.calls, task->name, LS_CALL_MASTER_ONLY,
                ends ? serve_close : task->fn, ends ? work : work->self);
    }
    return status;
}

int service_work_serve(struct service_work *work)
{
    int status = ls_rpc_serve(work->options.calls, CALL_RESOURCE,
                              LS_CALL_ANYONE, serve_resource, work);
    for (const struct service_kind *const *k = work->ops->kinds;
         *k != NULL && status == LS_OK; k++)
        status = serve_kind(work, *k);
    return status;
}

void service_work_fini(struct service_work *work)
{
    if (work->options.node == NULL)
        return;
    ls_error_clear();
    service_work_end_run(work, LS_ECLOSED);
    if (ls_node_on_member(work->options.node, NULL, work) != LS_OK)
        ls_log_debug("%s: %s", what(work), ls_error_text());
    take_apart(work);
}
