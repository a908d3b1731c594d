/* The life of a work, and how it ends. */
#include <stdio.h>

#include "coverage.h"
#include "fsm_state.h"

struct work *fsm_work_new(fsm *self, struct kind_use *use, uint64_t number,
                          int64_t now)
{
    struct work *work = works_add(&self->works, use, number, now);
    if (work == NULL ||
        (use->kind->open != NULL && use->kind->open(self, work) != LS_OK)) {
        fsm_no_memory(self);
        return NULL;
    }
    return work;
}

/* What it has under way counts no more. */
static void let_go(fsm *self, struct work *work)
{
    fsm_detach(self, work);
    fsm_waiting_drop(self, work);
}

void fsm_unneeded(fsm *self, int64_t now)
{
    struct work *next;
    for (struct work *w = self->works.first; w != NULL; w = next) {
        next = w->next;
        if (kind_of(w)->unneeded != NULL && !w->doomed)
            kind_of(w)->unneeded(self, w, now);
    }
}

static bool is_done(const struct work *work)
{
    return kind_of(work)->is_done != NULL && kind_of(work)->is_done(work);
}

void fsm_work_over(fsm *self, struct work *work, int64_t now, bool failed)
{
    ls_take(LS_TAKES_WORK_OVER);
    let_go(self, work);
    fsm_cancel_left(self, work->member);
    struct kind_use *use = work->use;
    const bool was_filled = work->buffer != NULL;
    fsm_buffer_close(self, work);
    if (use->kind->over != NULL)
        use->kind->over(self, work, failed);
    if (work->member != NULL && work->member->state == POOL_TAKEN)
        work->member->state = POOL_CONNECTED;
    fsm_record_over(self, work);
    works_remove(&self->works, &work);
    scheduler_freed(&self->scheduler, use, failed, now);
    if (was_filled)
        fsm_unneeded(self, now);
}

void fsm_work_again(fsm *self, struct work *work, int64_t now)
{
    let_go(self, work);
    const bool ending = work->state == WORK_CLOSING || work->doomed;
    const bool finished = is_done(work);
    if (finished || self->end.begun || (ending && work->end == WORK_GIVEN_UP)) {
        fsm_work_over(self, work, now, !finished);
        return;
    }
    fsm_cancel_left(self, work->member);
    ls_take(LS_TAKES_WORK_AGAIN);
    works_requeue(&self->works, work, now);
    self->counted.requeued++;
    fsm_record_work(self, work);
}

bool fsm_use_failed(fsm *self, struct kind_use *use, int64_t now,
                    const char *text)
{
    if (++use->failures < self->options.max_failures)
        return true;
    char why[sizeof self->end.text];
    (void)snprintf(why, sizeof why,
                   "%s works have failed %lld times in a row: "
                   "%s",
                   use->kind->name, (long long)self->options.max_failures,
                   text);
    fsm_end(self, now, LS_EHANDLER, why);
    return false;
}

bool fsm_count_failure(fsm *self, const struct work *work, int64_t now,
                       const char *text)
{
    fsm_say(self, LS_LOG_WARN, "node %u fails at %s: %s",
            (unsigned)work->member->id, work->key.task_id, text);
    return fsm_use_failed(self, work->use, now, text);
}

void fsm_work_failed(fsm *self, struct work *work, int64_t now,
                     const char *text)
{
    fsm_member_rests(self, work->member, now);
    if (fsm_count_failure(self, work, now, text))
        fsm_work_close(self, work, now, WORK_REQUEUED);
}

bool fsm_work_call_failed(fsm *self, int64_t now, const struct open_call *call,
                          const struct ls_call_result *result)
{
    struct work *work = call->work;
    if (result->state == LS_CALL_COMPLETED)
        return false;
    if (result->state != LS_CALL_START_FAILED) {
        fsm_work_failed(self, work, now, result->text);
    } else if (result->code == LS_CALL_REFUSED) { /* it does not hold it */
        fsm_member_rests(self, work->member, now);
        work->member->state = POOL_CONNECTED;
        (void)fsm_count_failure(self, work, now, result->text);
        fsm_work_again(self, work, now); /* over, if that has ended the job */
    } else {
        work->again_at = now + self->options.retry;
        if (result->code != LS_CALL_BUSY &&
            result->code != LS_CALL_SHUTTING_DOWN)
            (void)fsm_count_failure(self, work, now, result->text);
    }
    return true;
}

void fsm_work_close(fsm *self, struct work *work, int64_t now,
                    enum work_end end)
{
    work->end = end;
    const bool ends_buffer = work->buffer != NULL && end != WORK_REQUEUED;
    if (ends_buffer)
        fsm_unneeded(self, now);
    if (work->state == WORK_QUEUED) {
        fsm_work_over(self, work, now, end == WORK_GIVEN_UP);
        return;
    }
    work->doomed = true;
    if (work->state == WORK_STARTING) { /* how that ends has to be known */
        ls_take(LS_TAKES_WORK_DOOMED);
        return;
    }
    let_go(self, work);
    if (ends_buffer)
        fsm_buffer_close(self, work);
    ls_take(work->state == WORK_AWAITED   ? LS_TAKES_WORK_AWAITED_CLOSES
            : work->state == WORK_CLOSING ? LS_TAKES_WORK_CLOSES_AGAIN
                                          : LS_TAKES_WORK_CLOSES);
    work->state = WORK_CLOSING;
    work->until = now + (self->end.begun ? self->options.call_timeout
                                         : self->options.work_timeout);
    work->again_at = now;
}

void fsm_work_held(fsm *self, struct work *work, int64_t now)
{
    ls_take(LS_TAKES_WORK_FOUND);
    work->state = WORK_RUNNING;
    work->again_at = now;
    fsm_say(self, LS_LOG_INFO, "node %u continues attempt %lld of %s",
            (unsigned)work->member->id, (long long)work->key.attempt,
            work->key.task_id);
    if (work->doomed)
        fsm_work_close(self, work, now, work->end);
    else if (kind_of(work)->unneeded != NULL && fsm_buffer_owner(self) == NULL)
        kind_of(work)->unneeded(self, work, now);
}

void fsm_work_closed(fsm *self, struct work *work, int64_t now,
                     const struct work_exit *exit)
{
    const struct fsm_kind *kind = kind_of(work);
    work->member->state = POOL_CONNECTED;
    if (work->end != WORK_FINISHED || kind->brings == NULL ||
        !kind->brings(self, work, now, exit))
        fsm_work_again(self, work, now);
}

/* It is in nobody's hands for too long. */
static void give_up(fsm *self, struct work *work, int64_t now)
{
    struct pool_member *member = work->member;
    ls_take(LS_TAKES_WORK_TAKEN_AWAY);
    if (work->state == WORK_AWAITED) {
        fsm_work_again(self, work, now);
        return;
    }
    fsm_say(self, LS_LOG_WARN, "node %u does not close %s: taken from it",
            (unsigned)member->id, work->key.task_id);
    fsm_member_rests(self, member, now);
    /* What the member still does for this attempt, nobody takes any more. */
    if (work->end == WORK_REQUEUED && !self->end.begun) {
        if (member->state == POOL_TAKEN)
            member->state = POOL_CONNECTED;
        fsm_work_again(self, work, now);
        return;
    }
    if (!self->end.begun)
        self->counted.expired++;
    fsm_work_over(self, work, now, !is_done(work));
}

/* Whether the list of works has changed. */
static bool look_after(fsm *self, struct work *work, int64_t now)
{
    if (work->state != WORK_AWAITED && work->state != WORK_CLOSING)
        return false;
    if (work->until <= now) {
        give_up(self, work, now);
        return true;
    }
    if (work->state == WORK_CLOSING && work->member->state == POOL_TAKEN &&
        work->again_at <= now &&
        !fsm_has_call(self, work, fsm_kind_task(kind_of(work), LS_JOB_EXIT)))
        fsm_close_call(self, work);
    return false;
}

/* The scheduler, which is told, may ask for another. */
static void expire(fsm *self, struct work *work, int64_t now)
{
    ls_take(LS_TAKES_WORK_EXPIRED);
    self->counted.expired++;
    fsm_say(self, LS_LOG_WARN,
            "%s has waited for a %s too long: it is given up",
            work->key.task_id, fsm_kind_doer(kind_of(work)));
    fsm_work_over(self, work, now, true);
}

void fsm_drive_works(fsm *self, int64_t now)
{
    struct work *next = self->works.first;
    while (next != NULL)
        next = look_after(self, next, now) ? self->works.first : next->next;
    while ((next = works_expired(&self->works, now)) != NULL)
        expire(self, next, now);
}
