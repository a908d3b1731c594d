/* The calls that are open, and what becomes of them.
 *
 * A call belongs to one life of a member, and to one attempt at a work. When
 * either is over, its end counts for nothing but the data that it may bring. */
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "fsm_state.h"

enum { MALFORMED_MAX = 3 };

static const char *name_of(const struct open_call *call)
{
    return call->task != NULL             ? call->task->name
           : call->about == ABOUT_CONNECT ? "ls.connect"
                                          : CALL_RESOURCE;
}

/* Turns, and a work's end, wait for what is under way; at the job's end nobody
 * waits for that. */
static bool is_long(const fsm *self, const struct open_call *call)
{
    return call->about == ABOUT_WORK && call->task->phase != LS_JOB_INIT &&
           !(call->task->phase == LS_JOB_EXIT && self->end.begun);
}

static void make_call(fsm *self, const struct open_call *call)
{
    const void *data = NULL;
    size_t size = 0;
    if (ls_writer_bytes(self->writer, &data, &size) != LS_OK) {
        fsm_no_memory(self); /* what is written here is whole, and text */
        return;
    }
    const struct fsm_options *options = &self->options;
    const bool connect = call->about == ABOUT_CONNECT;
    fsm_act(self, &(struct fsm_action){.kind = connect ? FSM_CONNECT : FSM_CALL,
                                       .number = call->number,
                                       .to = call->member->id,
                                       .name = name_of(call),
                                       .data = connect ? NULL : data,
                                       .size = connect ? 0 : size,
                                       .wait_ns = is_long(self, call)
                                                      ? options->work_timeout
                                                      : options->call_timeout});
}

static void add(fsm *self, const struct open_call *what)
{
    struct open_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        fsm_no_memory(self);
        return;
    }
    *call = *what;
    call->next = self->calls.first;
    call->number = ++self->calls.last_number;
    call->incarnation = call->member->incarnation;
    self->calls.first = call;
    self->counted.open_calls++;
    make_call(self, call);
}

void fsm_call(fsm *self, enum call_about about, struct pool_member *member,
              const struct fsm_task *exit)
{
    add(self,
        &(struct open_call){.about = about, .task = exit, .member = member});
}

void fsm_ask(fsm *self, const struct fsm_task *task, struct work *work,
             void *load)
{
    add(self, &(struct open_call){.about = ABOUT_WORK,
                                  .task = task,
                                  .member = work->member,
                                  .work = work,
                                  .load = load});
}

void fsm_calls_fini(fsm *self)
{
    while (self->calls.first != NULL) {
        struct open_call *gone = self->calls.first;
        self->calls.first = gone->next;
        free(gone);
    }
}

bool fsm_has_call(const fsm *self, const struct work *work,
                  const struct fsm_task *task)
{
    for (const struct open_call *c = self->calls.first; c != NULL; c = c->next)
        if (c->work == work && c->task == task)
            return true;
    return false;
}

static bool comes_late(const struct open_call *call)
{
    return call->task != NULL && call->task->late != NULL;
}

static void unload(fsm *self, struct work *work, struct open_call *call)
{
    if (call->load != NULL && call->task->unload != NULL)
        call->task->unload(self, work, call->load);
    call->load = NULL;
}

static void cancel(fsm *self, const struct open_call *call)
{
    fsm_act(self,
            &(struct fsm_action){.kind = FSM_CANCEL, .number = call->number});
}

void fsm_detach(fsm *self, struct work *work)
{
    work->asked = 0;
    for (struct open_call *c = self->calls.first; c != NULL; c = c->next) {
        if (c->work != work)
            continue;
        c->work = NULL;
        /* What may be on its way has to be seen to; the close ends this call.
         */
        if (!comes_late(c))
            cancel(self, c);
        unload(self, work, c);
    }
}

void fsm_cancel_left(fsm *self, const struct pool_member *member)
{
    for (const struct open_call *c = self->calls.first; c != NULL; c = c->next)
        if (c->member == member && c->work == NULL && comes_late(c))
            cancel(self, c);
}

void fsm_cancel_questions(fsm *self)
{
    for (const struct open_call *c = self->calls.first; c != NULL; c = c->next)
        if (c->about <= ABOUT_PURGE &&
            works_of(&self->works, c->member) == NULL)
            cancel(self, c);
}

void fsm_malformed(fsm *self, const struct open_call *call)
{
    self->counted.refused_data++;
    fsm_say(self, LS_LOG_WARN, "node %u sends a malformed answer to %s: %s",
            (unsigned)call->member->id, name_of(call), ls_error_text());
}

void fsm_work_malformed(fsm *self, int64_t now, const struct open_call *call)
{
    fsm_malformed(self, call);
    if (++call->work->malformed < MALFORMED_MAX)
        return;
    fsm_work_failed(self, call->work, now,
                    "three of its answers in a row were malformed");
}

int fsm_check_key(const struct work *work, const struct work_key *key)
{
    if (key->attempt == work->key.attempt &&
        strcmp(key->task_id, work->key.task_id) == 0)
        return LS_OK;
    return ls_error(LS_EPROTO,
                    "task_id %s, attempt %lld: expected %s, attempt %lld",
                    key->task_id, (long long)key->attempt, work->key.task_id,
                    (long long)work->key.attempt);
}

/* The member is not connected any more, or not there. What it holds is its own
 * to tell, when it is asked again. */
static void part(fsm *self, int64_t now, struct open_call *call,
                 const struct ls_call_result *result)
{
    struct pool_member *member = call->member;
    unload(self, call->work, call);
    if (result->state == LS_CALL_LOST) {
        fsm_member_gone(self, member, now, POOL_NEW);
        fsm_member_rests(self, member, now);
        return;
    }
    struct work *work = works_of(&self->works, member);
    member->state = POOL_NEW;
    if (call->about <= ABOUT_PURGE)
        fsm_member_rests(self, member, now);
    if (work != NULL) {
        fsm_detach(self, work);
        if (work->state != WORK_CLOSING) {
            ls_take(LS_TAKES_WORK_AWAITED);
            work->state = WORK_AWAITED;
            work->demanded = 0;
            work->until = now + self->options.work_timeout;
        }
    }
}

static bool is_parted(const struct open_call *call,
                      const struct ls_call_result *result)
{
    return result->state == LS_CALL_LOST ||
           (result->state == LS_CALL_START_FAILED &&
            result->code == LS_CALL_NOT_CONNECTED &&
            call->about != ABOUT_CONNECT);
}

static fsm_ended_fn *const ended[] = {[ABOUT_CONNECT] = fsm_connect_ended,
                                      [ABOUT_RESOURCE] = fsm_resource_ended,
                                      [ABOUT_PURGE] = fsm_purge_ended};

static fsm_ended_fn *end_of(const struct open_call *call)
{
    if (call->about != ABOUT_WORK)
        return ended[call->about];
    return call->task->phase == LS_JOB_INIT   ? fsm_start_ended
           : call->task->phase == LS_JOB_EXIT ? fsm_close_ended
                                              : call->task->ended;
}

static void dispatch(fsm *self, int64_t now, struct open_call *call,
                     const struct ls_call_result *result)
{
    const bool member_is = call->incarnation == call->member->incarnation &&
                           call->member->state != POOL_GONE;
    const bool asked = call->work != NULL || call->about <= ABOUT_PURGE;
    if (asked && member_is && is_parted(call, result))
        part(self, now, call, result);
    else if (asked && member_is)
        end_of(call)(self, now, call, result);
    else if (comes_late(call))
        call->task->late(self, result);
}

int fsm_call_ended(fsm *self, int64_t now, uint64_t number,
                   const struct ls_call_result *result)
{
    struct open_call **at = &self->calls.first;
    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    if (*at == NULL)
        return ls_error(LS_EINVAL, "call %llu is not open",
                        (unsigned long long)number);
    struct open_call *call = *at;
    *at = call->next;
    self->counted.open_calls--;
    dispatch(self, now, call, result);
    free(call);
    fsm_settle(self, now);
    return self->status;
}
