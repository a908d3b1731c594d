/* The tasks of a group that run on this node, each on a thread of its own. A
 * task that is told to stop and does not is left behind, with all that it uses,
 * until it ends. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "lockstep/log.h"

struct ls_turn {
    struct turns *turns;
    const struct ls_job_task *task;
    ls_thread *thread; /* own */
    bool ended;        /* under job->asker.mutex */
};

struct turns {
    ls_job *job;
    enum ls_job_phase phase;
    int64_t epoch;
    bool is_private;
    struct workspace own; /* if it is */
    atomic_bool cancelled;
    /* Under job->asker.mutex: */
    int64_t cancelled_at;
    size_t n_tasks;   /* that run, without reports */
    size_t n_running; /* with them */
    bool left;        /* behind */
    struct ls_failure failure;
    size_t n;
    ls_turn all[];
};

/* ---- inside a task ----------------------------------------------------- */

uint32_t ls_turn_node(const ls_turn *turn)
{
    return turn->turns->job->id;
}

int64_t ls_turn_epoch(const ls_turn *turn)
{
    return turn->turns->epoch;
}

bool ls_turn_is_cancelled(const ls_turn *turn)
{
    return atomic_load(&turn->turns->cancelled);
}

int ls_turn_blob(ls_turn *turn, const char *name,
                 const struct ls_blob_form *form, void **memory)
{
    struct turns *turns = turn->turns;
    struct workspace *global = &turns->job->global;
    ls_mutex_lock(&turns->job->asker.mutex);
    const int status =
        turns->is_private
            ? workspace_blob(&turns->own, global, name, form, memory)
            : workspace_blob(global, NULL, name, form, memory);
    ls_mutex_unlock(&turns->job->asker.mutex);
    return status;
}

int ls_turn_form(ls_turn *turn, const char *name, struct ls_blob_form *out)
{
    const struct turns *turns = turn->turns;
    const struct ls_blob *blob = NULL;
    ls_mutex_lock(&turns->job->asker.mutex);
    if (turns->is_private)
        blob = ls_blobs_find(turns->own.blobs, name);
    if (blob == NULL)
        blob = ls_blobs_find(turns->job->global.blobs, name);
    if (blob != NULL)
        *out = blob->form;
    ls_mutex_unlock(&turns->job->asker.mutex);
    return blob != NULL
               ? LS_OK
               : ls_error(
                     LS_ENOENT,
                     "job %s: node %u has no blob %s: ls_turn_blob() makes it",
                     turns->job->options.name, ls_turn_node(turn), name);
}

/* ---- the thread of one ------------------------------------------------- */

void turns_cancel(ls_job *job)
{
    struct turns *turns = job->turns;
    if (turns == NULL || atomic_load(&turns->cancelled))
        return;
    turns->cancelled_at = ls_now(job->runtime);
    atomic_store(&turns->cancelled, true);
    ls_cond_broadcast(&job->asker.cond);
}

/* With job->asker.mutex held. */
static void keep_failure(struct turns *turns, int status)
{
    if (turns->failure.status == LS_OK)
        ls_failure_keep(&turns->failure, status);
    turns_cancel(turns->job);
}

/* With job->asker.mutex held. */
static void note_end(ls_turn *turn)
{
    struct turns *turns = turn->turns;
    turn->ended = true;
    turns->n_tasks -= turn->task->report_ms == 0 ? 1 : 0;
    turns->n_running--;
    ls_cond_broadcast(&turns->job->asker.cond);
}

enum next { AGAIN, LAST, NEVER };

/* A report waits for its next time, or for the end of the tasks. */
static enum next rest(struct turns *turns, int report_ms)
{
    ls_job *job = turns->job;
    const int64_t at = ls_deadline(job->runtime, report_ms);
    int status = LS_OK;
    ls_mutex_lock(&job->asker.mutex);
    while (turns->n_tasks != 0 && !turns->left && status == LS_OK)
        status = ls_cond_wait(&job->asker.cond, &job->asker.mutex, at);
    const enum next next = turns->left           ? NEVER
                           : turns->n_tasks == 0 ? LAST
                                                 : AGAIN;
    ls_mutex_unlock(&job->asker.mutex);
    return next;
}

static int report(ls_turn *turn)
{
    const struct ls_job_task *task = turn->task;
    enum next next = AGAIN;
    int status = LS_OK;
    while (next == AGAIN && status == LS_OK) {
        next = rest(turn->turns, task->report_ms);
        if (next != NEVER)
            status = task->fn(task->self, turn);
    }
    return status;
}

static void turn_main(void *self)
{
    ls_turn *turn = self;
    const struct ls_job_task *task = turn->task;
    struct turns *turns = turn->turns;
    ls_job *job = turns->job;
    ls_log_set_node(job->id);
    ls_log_set_step(task->name);
    ls_error_clear();
    const int status =
        task->report_ms == 0 ? task->fn(task->self, turn) : report(turn);
    if (status != LS_OK && ls_error_text()[0] == '\0')
        (void)ls_error(status, "%s", ls_status_sentence(status));
    if (status != LS_OK)
        (void)ls_error_at(status, "%s group, task %s",
                          ls_job_phase_name(turns->phase), task->name);
    ls_mutex_lock(&job->asker.mutex);
    if (status != LS_OK)
        keep_failure(turns, status);
    note_end(turn);
    ls_mutex_unlock(&job->asker.mutex);
}

/* ---- all of them ------------------------------------------------------- */

/* NULL: an error. */
static struct turns *create(ls_job *job, enum ls_job_phase phase, int64_t epoch)
{
    size_t n = 0;
    for (const struct job_task *t = job->groups[phase]; t != NULL; t = t->next)
        n += job_runs_on(t, job->id) ? 1 : 0;
    struct turns *turns = calloc(1, sizeof *turns + n * sizeof turns->all[0]);
    if (turns == NULL) {
        (void)ls_error(LS_ENOMEM, "%zu tasks", n);
        return NULL;
    }
    turns->job = job;
    turns->phase = phase;
    turns->epoch = epoch;
    for (const struct job_task *t = job->groups[phase]; t != NULL;
         t = t->next) {
        if (!job_runs_on(t, job->id))
            continue;
        turns->all[turns->n++] = (ls_turn){.turns = turns, .task = &t->given};
        turns->n_tasks += t->given.report_ms == 0 ? 1 : 0;
        turns->is_private =
            turns->is_private || t->given.workspace == LS_WORKSPACE_PRIVATE;
    }
    turns->n_running = turns->n;
    if (!turns->is_private || workspace_init(&turns->own) == LS_OK)
        return turns;
    free(turns);
    return NULL;
}

/* All have ended, or none has begun. */
static void destroy(struct turns *turns)
{
    for (size_t i = 0; i < turns->n; i++)
        asker_join(&turns->all[i].thread);
    if (turns->is_private)
        workspace_fini(&turns->own);
    free(turns);
}

/* From here on they can be cancelled. */
static int begin(struct turns *turns)
{
    ls_job *job = turns->job;
    int status = LS_OK;
    ls_mutex_lock(&job->asker.mutex);
    if (job->turns != NULL)
        status = ls_error(LS_ESTATE, "job %s: tasks of another group run",
                          job->options.name);
    else if (!job->lanes[0].running || job->ended)
        status = ls_error(LS_ECANCELED, "job %s is over", job->options.name);
    else
        job->turns = turns;
    ls_mutex_unlock(&job->asker.mutex);
    return status;
}

static void spawn(struct turns *turns)
{
    ls_job *job = turns->job;
    int status = LS_OK;
    size_t begun = 0;
    for (; begun < turns->n && status == LS_OK; begun++)
        status = ls_thread_spawn(job->runtime, &turns->all[begun].thread,
                                 "job-task", turn_main, &turns->all[begun]);
    if (status == LS_OK)
        return;
    ls_mutex_lock(&job->asker.mutex);
    keep_failure(turns, status);
    for (begun--; begun < turns->n; begun++)
        note_end(&turns->all[begun]);
    ls_mutex_unlock(&job->asker.mutex);
}

/* Until all have ended, or one has not in time after it was told to. */
static void wait_for_end(struct turns *turns)
{
    ls_job *job = turns->job;
    const int64_t patience =
        (int64_t)job->options.cancel_timeout_ms * LS_NS_PER_MS;
    ls_mutex_lock(&job->asker.mutex);
    while (turns->n_running != 0 && !turns->left) {
        const int64_t until = atomic_load(&turns->cancelled)
                                  ? turns->cancelled_at + patience
                                  : LS_FOREVER;
        if (ls_cond_wait(&job->asker.cond, &job->asker.mutex, until) != LS_OK)
            turns->left = turns->n_running != 0;
    }
    if (turns->left)
        ls_cond_broadcast(&job->asker.cond);
    ls_mutex_unlock(&job->asker.mutex);
}

/* Copy an output to where it stays. */
static int land(struct turns *turns, const char *name)
{
    const struct ls_blob *from = ls_blobs_find(turns->own.blobs, name);
    uint64_t size;
    void *memory;
    if (from == NULL)
        return LS_OK; /* it is there already, or nobody has made it */
    int status =
        workspace_blob(&turns->job->global, NULL, name, &from->form, &memory);
    if (status == LS_OK)
        status = ls_blob_form_bytes(&from->form, &size);
    if (status == LS_OK && size != 0)
        memcpy(memory, from->memory, (size_t)size);
    return status;
}

static int land_all(struct turns *turns)
{
    int status = LS_OK;
    for (size_t i = 0; i < turns->n && turns->is_private; i++) {
        const struct ls_job_task *task = turns->all[i].task;
        const char *const *outputs = task->outputs;
        for (; status == LS_OK && outputs != NULL && *outputs != NULL;
             outputs++)
            status = land(turns, *outputs);
        if (status != LS_OK)
            return ls_error_at(status, "%s group, task %s",
                               ls_job_phase_name(turns->phase), task->name);
    }
    return status;
}

static int outcome(struct turns *turns)
{
    ls_mutex_lock(&turns->job->asker.mutex);
    const struct ls_failure failure = turns->failure;
    const bool left = turns->left;
    ls_mutex_unlock(&turns->job->asker.mutex);
    if (failure.status != LS_OK)
        return ls_failure_return(&failure);
    return left ? ls_error(LS_ETIMEDOUT, "%s group: a task was left behind",
                           ls_job_phase_name(turns->phase))
                : land_all(turns);
}

static void on_cancel(void *self)
{
    ls_job *job = self;
    ls_mutex_lock(&job->asker.mutex);
    turns_cancel(job);
    ls_mutex_unlock(&job->asker.mutex);
}

int turns_run(ls_job *job, ls_request *request, enum ls_job_phase phase,
              int64_t epoch)
{
    struct ls_failure end;
    struct turns *turns = create(job, phase, epoch);
    if (turns == NULL)
        return LS_ENOMEM;
    const int status = begin(turns);
    if (status != LS_OK) {
        destroy(turns);
        return status;
    }
    ls_request_on_cancel(request, on_cancel, job);
    spawn(turns);
    wait_for_end(turns);
    ls_request_on_cancel(request, NULL, NULL);
    ls_failure_keep(&end, outcome(turns));
    (void)turns_end(job, LS_ETIMEDOUT); /* the owner will hear of it */
    return ls_failure_return(&end);
}

int turns_end(ls_job *job, int status)
{
    struct turns *turns = job->turns;
    const ls_turn *running = NULL; /* a report only if no other task does */
    if (turns == NULL)
        return LS_OK;
    ls_mutex_lock(&job->asker.mutex);
    for (size_t i = 0; i < turns->n; i++)
        if (!turns->all[i].ended &&
            (running == NULL || running->task->report_ms != 0))
            running = &turns->all[i];
    if (running == NULL)
        job->turns = NULL;
    ls_mutex_unlock(&job->asker.mutex);
    if (running != NULL)
        return ls_error(status,
                        "job %s, %s group, task %s still runs, after it was "
                        "cancelled %d ms ago or more",
                        job->options.name, ls_job_phase_name(turns->phase),
                        running->task->name, job->options.cancel_timeout_ms);
    destroy(turns);
    return LS_OK;
}
