/* What the scheduler wants becomes works, and works get members. */
#include <math.h>
#include <stdio.h>

#include "coverage.h"
#include "fsm_state.h"

void fsm_drive_scheduler(fsm *self, int64_t now)
{
    const char *why = NULL;
    struct kind_use *use;
    while (self->status == LS_OK &&
           (use = scheduler_next(&self->scheduler, &self->pool, now, &why)) !=
               NULL) {
        if (use->kind->ask != NULL)
            use->kind->ask(self, use, now);
        else
            (void)fsm_work_new(self, use, 0, now);
        scheduler_asked(&self->scheduler, use, now);
    }
    if (self->status == LS_OK && why != NULL)
        fsm_end(self, now, LS_OK, why);
}

/* "node 1, node 2"; "nobody". */
static void list_members(const fsm *self, const struct fsm_kind *kind,
                         char *out, size_t size)
{
    size_t at = 0;
    (void)snprintf(out, size, "nobody");
    for (const struct pool_member *m = self->pool.first; m != NULL && at < size;
         m = m->next)
        if (pool_suits(m, kind) && m->state != POOL_GONE)
            at += (size_t)snprintf(out + at, size - at, "%snode %u",
                                   at > 0 ? ", " : "", (unsigned)m->id);
}

static size_t count_missing(const fsm *self, const struct work *work)
{
    const size_t n = work->use->ranks;
    const size_t here = pool_count(&self->pool, kind_of(work));
    return n > 1 && here < n ? n - here : 0;
}

/* A work that several do may need more than there are. Those that come at the
 * same time as it are not missed. */
static void say_missing(fsm *self, int64_t now)
{
    char list[256];
    for (struct work *w = self->works.first; w != NULL; w = w->next) {
        const size_t missing = count_missing(self, w);
        const char *const doer = fsm_kind_doer(kind_of(w));
        if (w->state != WORK_QUEUED || w->n_missing == missing)
            continue;
        if (missing > 0 && now - w->queued_at < self->options.retry) {
            w->again_at = w->queued_at + self->options.retry;
            continue;
        }
        w->n_missing = missing;
        if (missing == 0)
            continue;
        list_members(self, kind_of(w), list, sizeof list);
        fsm_say(self, LS_LOG_WARN,
                "%s waits for %zu more %s%s: it has %zu ranks, and of %ss "
                "there is %s",
                w->key.task_id, missing, doer, missing == 1 ? "" : "s",
                w->use->ranks, doer, list);
    }
}

static void say_given(fsm *self, const struct work *work)
{
    if (work->n_ranks == 0)
        fsm_say(self, LS_LOG_INFO, "%s, attempt %lld, goes to node %u",
                work->key.task_id, (long long)work->key.attempt,
                (unsigned)work->member->id);
    else
        fsm_say(self, LS_LOG_INFO,
                "%s, attempt %lld, goes to node %u, the first of its %zu ranks",
                work->key.task_id, (long long)work->key.attempt,
                (unsigned)work->member->id, work->n_ranks);
}

static void give_out(fsm *self, const struct kind_use *use, int64_t now)
{
    const struct fsm_kind *kind = use->kind;
    struct work *work;
    while (self->status == LS_OK &&
           (work = works_assign(&self->works, use, &self->pool, now)) != NULL) {
        fsm_record_work(self, work);
        say_given(self, work);
        ls_writer_clear(self->writer);
        kind->write_start(self, work);
        fsm_ask(self, fsm_kind_task(kind, LS_JOB_INIT), work, NULL);
    }
}

void fsm_drive_queue(fsm *self, int64_t now)
{
    for (size_t i = 0; i < self->scheduler.n_uses; i++)
        give_out(self, &self->scheduler.uses[i], now);
    say_missing(self, now);
}

static void refused(fsm *self, int64_t now, struct work *work,
                    const struct ls_call_result *result)
{
    struct pool_member *member = work->member;
    fsm_say(self, LS_LOG_INFO, "node %u refuses %s: %s", (unsigned)member->id,
            work->key.task_id, result->text);
    self->counted.refused_starts++;
    ls_take(LS_TAKES_WORK_REFUSED);
    member->state = POOL_CONNECTED; /* what it has may be another thing now */
    fsm_member_rests(self, member, now);
    if (work->doomed) {
        fsm_work_over(self, work, now, work->end == WORK_GIVEN_UP);
        return;
    }
    works_return(work);
    fsm_record_work(self, work);
}

void fsm_start_ended(fsm *self, int64_t now, const struct open_call *call,
                     const struct ls_call_result *result)
{
    struct work *work = call->work;
    if (result->state == LS_CALL_START_FAILED) {
        refused(self, now, work, result);
        return;
    }
    ls_take(LS_TAKES_WORK_RUNS);
    work->state = WORK_RUNNING;
    work->again_at = now;
    if (result->state == LS_CALL_COMPLETED &&
        service_started_read(result->data, result->size) != LS_OK)
        fsm_malformed(self, call); /* and begun all the same */
    if (work->doomed)
        fsm_work_close(self, work, now, work->end);
    else if (result->state != LS_CALL_COMPLETED)
        fsm_work_failed(self, work, now, result->text);
}

void fsm_close_call(fsm *self, struct work *work)
{
    ls_writer_clear(self->writer);
    work_key_write(&work->key, self->writer);
    fsm_ask(self, fsm_kind_task(kind_of(work), LS_JOB_EXIT), work, NULL);
}

static bool read_exit(fsm *self, const struct open_call *call,
                      const struct ls_call_result *result,
                      struct work_exit *out)
{
    int status =
        kind_of(call->work)->read_exit(out, result->data, result->size);
    if (status == LS_OK)
        status = fsm_check_key(call->work, &out->key);
    if (status != LS_OK)
        fsm_malformed(self, call);
    return status == LS_OK;
}

void fsm_close_ended(fsm *self, int64_t now, const struct open_call *call,
                     const struct ls_call_result *result)
{
    struct work *work = call->work;
    struct work_exit exit = {.value = (double)NAN, .version = -1};
    if (result->state == LS_CALL_COMPLETED) {
        const bool told = read_exit(self, call, result, &exit);
        fsm_work_closed(self, work, now, told ? &exit : NULL);
    } else if (self->end.begun || (result->state == LS_CALL_START_FAILED &&
                                   (result->code == LS_CALL_REFUSED ||
                                    result->code == LS_CALL_SHUTTING_DOWN))) {
        fsm_work_closed(self, work, now, NULL); /* it does not hold it */
    } else {
        work->again_at = now + self->options.retry;
        fsm_say(self, LS_LOG_WARN, "%s is not closed: %s", work->key.task_id,
                result->text);
    }
}
