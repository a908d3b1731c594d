/* The life of a work, and how it ends. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core_parts.h"
#include "coverage.h"

struct work *core_work_new(core *self, enum work_kind kind, uint64_t number,
                           int64_t now)
{
    struct work *work = works_add(&self->works, kind, number, now);
    if (work == NULL ||
        (kind == WORK_LEARNER && core_learner_init(self, work) != LS_OK)) {
        core_no_memory(self);
        return NULL;
    }
    return work;
}

/* What it has under way counts no more. */
static void let_go(core *self, struct work *work)
{
    core_detach(self, work);
    core_held_drop(self, work);
    core_last_data_done(self, work);
}

void core_close_collectors(core *self, int64_t now)
{
    struct work *next;
    for (struct work *w = self->works.first; w != NULL; w = next) {
        next = w->next;
        if (w->kind == WORK_COLLECTOR && !w->doomed)
            core_work_close(self, w, now, WORK_FINISHED);
    }
}

void core_work_over(core *self, struct work *work, int64_t now, bool failed)
{
    ls_take(LS_TAKES_WORK_OVER);
    let_go(self, work);
    core_cancel_left(self, work->member);
    const enum work_kind kind = work->kind;
    if (kind == WORK_LEARNER)
        core_buffer_close(self, work);
    if (kind == WORK_EVALUATION && failed)
        core_drop(self, work->policy_id);
    if (work->member != NULL && work->member->state == POOL_TAKEN)
        work->member->state = POOL_CONNECTED;
    core_record_over(self, work);
    works_remove(&self->works, &work);
    commander_freed(&self->commander, kind, failed, now);
    if (kind == WORK_LEARNER)
        core_close_collectors(self, now);
}

void core_work_again(core *self, struct work *work, int64_t now)
{
    let_go(self, work);
    const bool ending = work->state == WORK_CLOSING || work->doomed;
    const bool finished =
        (work->kind == WORK_LEARNER && work->done) ||
        (work->kind == WORK_COLLECTOR && ending && work->end == WORK_FINISHED);
    if (finished || self->stopping || (ending && work->end == WORK_GIVEN_UP)) {
        core_work_over(self, work, now, !finished);
        return;
    }
    core_cancel_left(self, work->member);
    ls_take(LS_TAKES_WORK_AGAIN);
    works_requeue(&self->works, work, now);
    self->counted.requeued++;
    core_record_work(self, work);
}

bool core_count_failure(core *self, const struct work *work, int64_t now,
                        const char *text)
{
    core_say(self, LS_LOG_WARN, "node %u fails at %s: %s",
             (unsigned)work->member->id, work->key.task_id, text);
    if (++self->failures[work->kind] < self->options.max_failures)
        return true;
    char why[sizeof self->stop_text];
    (void)snprintf(why, sizeof why,
                   "%s works have failed %lld times in a row: "
                   "%s",
                   work_kind_name(work->kind),
                   (long long)self->options.max_failures, text);
    core_end(self, now, LS_EHANDLER, why);
    return false;
}

void core_work_failed(core *self, struct work *work, int64_t now,
                      const char *text)
{
    core_member_rests(self, work->member, now);
    if (core_count_failure(self, work, now, text))
        core_work_close(self, work, now, WORK_REQUEUED);
}

bool core_work_call_failed(core *self, int64_t now,
                           const struct open_call *call,
                           const struct ls_call_result *result)
{
    struct work *work = call->work;
    if (result->state == LS_CALL_COMPLETED)
        return false;
    if (result->state != LS_CALL_START_FAILED) {
        core_work_failed(self, work, now, result->text);
    } else if (result->code == LS_CALL_REFUSED) { /* it does not hold it */
        core_member_rests(self, work->member, now);
        work->member->state = POOL_CONNECTED;
        if (core_count_failure(self, work, now, result->text))
            core_work_again(self, work, now);
    } else {
        work->again_at = now + self->options.retry;
        if (result->code != LS_CALL_BUSY &&
            result->code != LS_CALL_SHUTTING_DOWN)
            (void)core_count_failure(self, work, now, result->text);
    }
    return true;
}

void core_work_close(core *self, struct work *work, int64_t now,
                     enum work_end end)
{
    work->end = end;
    if (work->kind == WORK_LEARNER && end != WORK_REQUEUED)
        core_close_collectors(self, now);
    if (work->state == WORK_QUEUED) {
        core_work_over(self, work, now, end == WORK_GIVEN_UP);
        return;
    }
    work->doomed = true;
    if (work->state == WORK_STARTING) { /* how that ends has to be known */
        ls_take(LS_TAKES_WORK_DOOMED);
        return;
    }
    let_go(self, work);
    if (work->kind == WORK_LEARNER && end != WORK_REQUEUED)
        core_buffer_close(self, work);
    ls_take(work->state == WORK_AWAITED   ? LS_TAKES_WORK_AWAITED_CLOSES
            : work->state == WORK_CLOSING ? LS_TAKES_WORK_CLOSES_AGAIN
                                          : LS_TAKES_WORK_CLOSES);
    work->state = WORK_CLOSING;
    work->until = now + (self->stopping ? self->options.call_timeout
                                        : self->options.work_timeout);
    work->again_at = now;
}

void core_work_held(core *self, struct work *work, int64_t now)
{
    ls_take(LS_TAKES_WORK_FOUND);
    work->state = WORK_RUNNING;
    work->again_at = now;
    core_say(self, LS_LOG_INFO, "node %u goes on with attempt %lld of %s",
             (unsigned)work->member->id, (long long)work->key.attempt,
             work->key.task_id);
    if (work->doomed)
        core_work_close(self, work, now, work->end);
    else if (work->kind == WORK_COLLECTOR && core_learner(self) == NULL)
        core_work_close(self, work, now, WORK_FINISHED);
}

/* Wherever the journal ends, the next life does not evaluate, give up or drop
 * what it says was evaluated: the work is over first, and the policy of before
 * goes last. */
static void evaluated(core *self, struct work *work, int64_t now,
                      const struct collector_closed *finish)
{
    service_name before;
    commander_evaluated(&self->commander, finish->reward_mean,
                        finish->policy_version);
    self->failures[WORK_EVALUATION] = 0;
    memcpy(before, self->evaluated, sizeof before);
    memcpy(self->evaluated, work->policy_id, sizeof self->evaluated);
    core_work_over(self, work, now, false);
    core_record_figures(self);
    core_act(self,
             &(struct core_action){.kind = CORE_EVALUATED,
                                   .name = self->evaluated,
                                   .value = self->commander.value,
                                   .version = self->commander.value_version});
    if (before[0] != '\0')
        core_drop(self, before);
}

void core_work_closed(core *self, struct work *work, int64_t now,
                      const struct collector_closed *finish)
{
    struct pool_member *member = work->member;
    member->state = POOL_CONNECTED;
    if (work->kind == WORK_EVALUATION && work->end == WORK_FINISHED) {
        if (finish != NULL && !isnan(finish->reward_mean)) {
            evaluated(self, work, now, finish);
            return;
        }
        core_member_rests(self, member, now);
        if (!core_count_failure(self, work, now, "it brings no value"))
            return;
    }
    core_work_again(self, work, now);
}

/* It is in nobody's hands for too long. */
static void give_up(core *self, struct work *work, int64_t now)
{
    struct pool_member *member = work->member;
    ls_take(LS_TAKES_WORK_TAKEN_AWAY);
    if (work->state == WORK_AWAITED) {
        core_work_again(self, work, now);
        return;
    }
    core_say(self, LS_LOG_WARN, "node %u does not close %s: it is taken away",
             (unsigned)member->id, work->key.task_id);
    core_member_rests(self, member, now);
    /* What the member still does for this attempt, nobody takes any more. */
    if (work->end == WORK_REQUEUED && !self->stopping) {
        if (member->state == POOL_TAKEN)
            member->state = POOL_CONNECTED;
        core_work_again(self, work, now);
        return;
    }
    if (!self->stopping)
        self->counted.expired++;
    const bool done =
        work->end == WORK_FINISHED && work->kind != WORK_EVALUATION;
    core_work_over(self, work, now, !done);
}

/* Whether the list of works has changed. */
static bool look_after(core *self, struct work *work, int64_t now)
{
    if (work->state != WORK_AWAITED && work->state != WORK_CLOSING)
        return false;
    if (work->until <= now) {
        give_up(self, work, now);
        return true;
    }
    if (work->state == WORK_CLOSING && work->member->state == POOL_TAKEN &&
        work->again_at <= now && !core_has_call(self, work, ABOUT_CLOSE))
        core_close_call(self, work);
    return false;
}

/* The commander, which is told, may ask for another. */
static void expire(core *self, struct work *work, int64_t now)
{
    ls_take(LS_TAKES_WORK_EXPIRED);
    self->counted.expired++;
    core_say(self, LS_LOG_WARN,
             "%s has waited for a %s too long: it is given up",
             work->key.task_id,
             work_role(work->kind) == POOL_LEARNER ? "learner" : "collector");
    core_work_over(self, work, now, true);
}

void core_drive_works(core *self, int64_t now)
{
    struct work *next = self->works.first;
    while (next != NULL)
        next = look_after(self, next, now) ? self->works.first : next->next;
    while ((next = works_expired(&self->works, now)) != NULL)
        expire(self, next, now);
}
