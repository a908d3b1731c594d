/* The side of the task: its steps, what wakes it, and what it waits for. */
#include <assert.h>
#include <stdio.h>

#include "lockstep/event.h"
#include "lockstep/log.h"

#include "service_work.h"

/* What wakes it ----------------------------------------------------------- */

static void wake(struct service_work *work)
{
    ls_mutex_lock(&work->mutex);
    service_work_recall(work);
    service_work_changed(work);
    ls_mutex_unlock(&work->mutex);
}

static void on_cancel(void *self, int status)
{
    (void)status;
    wake(self);
}

/* The task listens since before us, so it knows by now. */
static int on_finish(void *self, const struct ls_event *event)
{
    (void)event;
    wake(self);
    return LS_OK;
}

/* Another thread asks for it, when the coordinator leaves. */
static void set_task(struct service_work *work, ls_task *task)
{
    ls_mutex_lock(&work->mutex);
    work->task = task;
    ls_mutex_unlock(&work->mutex);
}

static int attach(struct service_work *work, ls_task *task)
{
    int status = ls_task_on_cancel(task, on_cancel, work);
    if (status != LS_OK)
        return status;
    status = ls_on(work->options.node, LS_FINISH_EVENT, on_finish, work);
    if (status == LS_OK)
        set_task(work, task);
    else if (ls_task_on_cancel(task, NULL, work) != LS_OK)
        ls_log_debug("%s: %s", work->ops->what, ls_error_text());
    return status;
}

static void detach(void *self)
{
    struct service_work *work = self;
    ls_task *task = work->task;
    if (task == NULL)
        return;
    set_task(work, NULL);
    if (ls_off(work->options.node, LS_FINISH_EVENT, on_finish, work) != LS_OK ||
        ls_task_on_cancel(task, NULL, work) != LS_OK)
        ls_log_debug("%s: %s", work->ops->what, ls_error_text());
}

/* What it waits for ------------------------------------------------------- */

/* With the lock held. */
static int64_t patience_ends(const struct service_work *work)
{
    return work->master_is_lost
               ? work->master_lost_at + work->options.patience_ms * LS_NS_PER_MS
               : LS_FOREVER;
}

static int master_is_missed(const struct service_work *work)
{
    return work->options.patience_ms > 0
               ? ls_error(LS_ELOST,
                          "the coordinator, node %u, was lost, and none came "
                          "in its place within %d ms",
                          (unsigned)work->master, work->options.patience_ms)
               : ls_error(LS_ELOST, "the coordinator, node %u, was lost",
                          (unsigned)work->master);
}

/* Wait for a change after `seen`. LS_EAGAIN: look again. */
static int wait_once(struct service_work *work, uint64_t seen,
                     bool (*ready)(void *arg), void *arg, int64_t until)
{
    int status = LS_EAGAIN;
    ls_mutex_lock(&work->mutex);
    if (work->changes == seen && ready(arg)) {
        status = LS_OK;
    } else if (work->changes == seen) {
        const int64_t patience = patience_ends(work);
        if (ls_cond_wait(&work->changed, &work->mutex,
                         patience < until ? patience : until) != LS_OK &&
            work->changes == seen)
            status = patience < until
                         ? master_is_missed(work)
                         : ls_error(LS_ETIMEDOUT, "the time is up");
    }
    ls_mutex_unlock(&work->mutex);
    return status;
}

/* The task must not be asked with the lock held: it calls on_cancel() under a
 * lock of its own. */
int service_work_wait_until(struct service_work *work, bool (*ready)(void *arg),
                            void *arg, int64_t until)
{
    int status;
    do {
        ls_mutex_lock(&work->mutex);
        const uint64_t seen = work->changes;
        ls_mutex_unlock(&work->mutex);
        status = ls_task_cancelled(work->task);
        if (status == LS_OK && ls_task_finishing(work->task))
            return LS_OK;
        if (status == LS_OK)
            status = ls_node_take_error(work->options.node);
        if (status == LS_OK)
            status = wait_once(work, seen, ready, arg, until);
    } while (status == LS_EAGAIN);
    return status;
}

int service_work_wait(struct service_work *work, bool (*ready)(void *arg),
                      void *arg)
{
    return service_work_wait_until(work, ready, arg, LS_FOREVER);
}

bool service_work_is_used(struct service_work *work)
{
    ls_mutex_lock(&work->mutex);
    const bool used = work->used;
    ls_mutex_unlock(&work->mutex);
    return used;
}

bool service_work_is_closing(struct service_work *work)
{
    ls_mutex_lock(&work->mutex);
    const bool closing = work->closing;
    ls_mutex_unlock(&work->mutex);
    return closing;
}

/* The steps --------------------------------------------------------------- */

static bool take(void *self)
{
    struct service_work *work = self;
    if (work->ended) /* a new run has patience of its own */
        work->master_lost_at = ls_now(work->runtime);
    work->ended = false;
    if (work->held && !work->closing && !work->used) {
        work->used = true;
        work->figures.works++;
    }
    work->at = work->used ? work->kind : NULL;
    return work->used ||
           (work->ops->is_wanted != NULL && work->ops->is_wanted(work->self));
}

static int await_work(ls_step *step, void *self)
{
    struct service_work *work = self;
    (void)step;
    if (service_work_is_used(work))
        return LS_OK;
    service_work_look(work);
    const int status = service_work_wait(work, take, work);
    if (status != LS_OK || !service_work_is_used(work)) /* it finishes */
        return status;
    return work->kind->begin != NULL ? work->kind->begin(work->self) : LS_OK;
}

static int finish(void *self, ls_task *task, int status)
{
    struct service_work *work = self;
    (void)task;
    service_work_end_run(work, status);
    if (work->ops->run_ended != NULL)
        work->ops->run_ended(work->self);
    return LS_OK;
}

static bool has_step(const struct service_kind *kind, ls_step_fn *fn)
{
    for (size_t i = 0; i < kind->n_steps; i++)
        if (kind->steps[i].fn == fn)
            return true;
    return false;
}

/* Without a work it may be for another member: service_work_lend(). */
static int take_turn(ls_step *step, void *self)
{
    const struct service_turn *turn = self;
    const struct service_work *work = turn->work;
    return work->at == NULL || has_step(work->at, turn->fn)
               ? turn->fn(step, work->self)
               : LS_OK;
}

static void use_step(struct service_work *work, ls_task *task,
                     const struct service_work_step *step)
{
    for (size_t i = 0; i < work->n_turns; i++)
        if (work->turns[i].fn == step->fn)
            return; /* another kind has it, too */
    assert(work->n_turns < SERVICE_TURNS);
    struct service_turn *turn = &work->turns[work->n_turns++];
    *turn = (struct service_turn){work, step->fn};
    (void)ls_task_use(task, (struct ls_middleware){.name = step->name,
                                                   .fn = take_turn,
                                                   .self = turn});
}

void service_work_use(struct service_work *work, ls_task *task)
{
    struct ls_middleware first = {.name = SERVICE_IDLE_STEP,
                                  .fn = await_work,
                                  .self = work,
                                  .release = detach,
                                  .finish = finish};
    first.status = attach(work, task);
    if (first.status != LS_OK)
        (void)snprintf(first.error, sizeof first.error, "%s", ls_error_text());
    /* The task keeps the first error. */
    (void)ls_task_use(task, first);
    work->n_turns = 0;
    for (const struct service_kind *const *k = work->ops->kinds; *k != NULL;
         k++)
        for (size_t i = 0; i < (*k)->n_steps; i++)
            use_step(work, task, &(*k)->steps[i]);
}
