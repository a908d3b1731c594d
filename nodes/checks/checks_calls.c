/* Every call ends, once, in time, and by the answer that it asked for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks_services.h"

void checks_forget_call(struct service_checks *books, struct checked_call *call)
{
    struct checked_call **at = &books->calls;
    while (*at != call)
        at = &(*at)->previous;
    *at = call->previous;
    learner_batch_fini(&call->batch);
    free(call);
}

static struct checked_call *
find_call(const checks *self, const struct service_life *by, uint64_t number)
{
    const struct service_checks *books = self->state;
    struct checked_call *call = books->calls;
    while (call != NULL && (call->number != number || call->by != by))
        call = call->previous;
    return call;
}

bool checks_call_is(const struct checked_call *call, const char *name)
{
    return strcmp(call->name, name) == 0;
}

bool checks_call_is_in(const struct checked_call *call, enum ls_job_phase phase)
{
    const struct fsm_task *task = fsm_kinds_task(call->name);
    return task != NULL && task->phase == phase;
}

/* Which work a call is about. */
static int read_key(struct checked_call *call, const struct fsm_action *action)
{
    if (checks_call_is(call, CALL_RESOURCE) || call->name[0] == '\0')
        return LS_OK;
    if (checks_call_is(call, CALL_LEARNER_START)) {
        struct learner_work work;
        const int status = learner_work_read(&work, action->data, action->size);
        if (status == LS_OK)
            call->key = work.key;
        return status;
    }
    if (checks_call_is(call, CALL_COLLECTOR_START)) {
        struct collector_work work;
        const int status =
            collector_work_read(&work, action->data, action->size);
        if (status == LS_OK)
            call->key = work.key;
        return status;
    }
    if (checks_call_is(call, CALL_LEARNER_LEARN)) {
        const int status =
            learner_batch_read(&call->batch, action->data, action->size);
        if (status == LS_OK)
            call->key = call->batch.key;
        return status;
    }
    if (checks_call_is(call, CALL_COLLECTOR_DATA)) {
        struct collector_ask ask;
        const int status = collector_ask_read(&ask, action->data, action->size);
        if (status == LS_OK)
            call->key = ask.key;
        return status;
    }
    return work_key_read(&call->key, action->data, action->size);
}

static void note_call(struct service_life *by, const struct fsm_action *action)
{
    checks *all = by->life->all;
    struct service_checks *books = all->state;
    const bool connects = action->kind == FSM_CONNECT;
    if (find_call(all, by, action->number) != NULL)
        checks_break(all, "calls", "call %" PRIu64 " is begun twice",
                     action->number);
    struct checked_call *made = checks_allocate(all, sizeof *made);
    if (made == NULL)
        return;
    made->number = action->number;
    made->by = by;
    made->to = action->to;
    made->wait_ns = action->wait_ns;
    made->began_at = checks_now(all);
    if (!connects)
        (void)snprintf(made->name, sizeof made->name, "%s", action->name);
    made->previous = books->calls;
    books->calls = made;
    all->figures.calls++;
    if (read_key(made, action) != LS_OK)
        checks_break(all, "calls", "%s", ls_error_text());
    ls_simulation_note(all->simulation,
                       "call %" PRIu64 " to node %" PRIu32 ": %s %s/%" PRId64,
                       made->number, made->to, action->name, made->key.task_id,
                       made->key.attempt);
    if (checks_call_is_in(made, LS_JOB_INIT)) {
        checks_note_start(by, made, action);
        return;
    }
    checks_take_over(by, &made->key);
    if (checks_call_is(made, CALL_LEARNER_LEARN))
        checks_note_batch(by, made);
}

/* A coordinator is told something. */
static void begin_to_tell(struct service_life *service)
{
    if (service->acts)
        service->n_lost = 0;
    service->acts = false;
}

void checks_on_member_told(void *self, uint32_t id, uint64_t incarnation,
                           bool ready)
{
    struct service_life *service = self;
    (void)incarnation; /* a new one comes after the loss of the old one, or
                        * instead: what that held is lost */
    if (service->life->dead)
        return;
    begin_to_tell(service);
    if (!ready && service->n_lost < CHECKS_LOST_MAX)
        service->lost[service->n_lost++] = id;
    checks_note_lost(service, id, NULL);
}

/* Whatever happens, it can be done: an error is a promise broken. */
static void note_over(struct service_life *by, const struct fsm_action *action)
{
    const checks *all = by->life->all;
    by->done = true;
    by->done_status = action->status;
    ls_simulation_note(all->simulation, "the job is over: %s", action->text);
    if (action->status != LS_OK)
        checks_break(all, "end", "the job fails with %s: %s",
                     ls_status_name(action->status), action->text);
}

static void note_cancel(struct service_life *by, uint64_t number)
{
    checks *all = by->life->all;
    struct checked_call *call = find_call(all, by, number);
    if (call == NULL)
        return; /* it has ended, which the state machine is told next */
    call->cancelled = true;
    checks_note_fate(call, LS_CALL_CANCELLED);
}

void checks_on_action(void *self, const struct fsm_action *action)
{
    struct service_life *service = self;
    if (service->life->dead)
        return;
    service->acts = true;
    switch (action->kind) {
    case FSM_CONNECT:
    case FSM_CALL:
        note_call(service, action);
        break;
    case FSM_CANCEL:
        note_cancel(service, action->number);
        break;
    case FSM_DROP:
        checks_note_drop(service, action->name);
        break;
    case FSM_INFO:
        checks_note_info(service, action->info);
        break;
    case FSM_DONE:
        note_over(service, action);
        break;
    default:
        break;
    }
}

/* ---- ends -------------------------------------------------------------- */

static void check_key(const struct checked_call *call,
                      const struct work_key *key)
{
    if (strcmp(key->task_id, call->key.task_id) == 0 &&
        key->attempt == call->key.attempt)
        return;
    checks_break(call->by->life->all, "stale",
                 "node %" PRIu32 " answers %s of work %s/%" PRId64
                 " for work %s/%" PRId64,
                 call->to, call->name, call->key.task_id, call->key.attempt,
                 key->task_id, key->attempt);
}

static int read_data(struct service_life *by, const struct checked_call *call,
                     const struct ls_call_result *result)
{
    struct collector_data data;
    const int status = collector_data_read(&data, result->data, result->size);
    if (status != LS_OK)
        return status;
    check_key(call, &data.key);
    for (size_t i = 0; i < data.n; i++) {
        const struct sample *sample = &data.samples[i];
        if (strcmp(sample->task_id, call->key.task_id) != 0)
            checks_break(
                by->life->all, "stale",
                "node %" PRIu32 " brings sample %s of work %s for work %s",
                call->to, sample->data_id, sample->task_id, call->key.task_id);
        checks_note_sample(by, sample);
    }
    collector_data_fini(&data);
    return LS_OK;
}

/* In a simulation nobody is a stranger, so each answer has the format. */
static int read_answer(struct service_life *by, const struct checked_call *call,
                       const struct ls_call_result *result)
{
    int status = LS_OK;
    if (checks_call_is(call, CALL_RESOURCE)) {
        struct service_resource resource;
        status = service_resource_read(&resource, result->data, result->size);
        struct work_key key = {.attempt = resource.attempt};
        memcpy(key.task_id, resource.task_id, sizeof key.task_id);
        if (status == LS_OK) {
            checks_note_lost(by, call->to, &key);
            checks_take_over(by, &key);
        }
    } else if (checks_call_is(call, CALL_LEARNER_DEMAND)) {
        struct learner_demand demand;
        status = learner_demand_read(&demand, result->data, result->size);
        if (status == LS_OK)
            check_key(call, &demand.key);
    } else if (checks_call_is(call, CALL_LEARNER_LEARN)) {
        struct learner_result learned;
        status = learner_result_read(&learned, result->data, result->size);
        if (status == LS_OK)
            check_key(call, &learned.key);
    } else if (checks_call_is(call, CALL_COLLECTOR_DATA)) {
        status = read_data(by, call, result);
    } else if (checks_call_is(call, CALL_LEARNER_CLOSE)) {
        struct learner_closed closed;
        status = learner_closed_read(&closed, result->data, result->size);
        if (status == LS_OK)
            check_key(call, &closed.key);
    } else if (checks_call_is(call, CALL_COLLECTOR_CLOSE)) {
        struct collector_closed closed;
        status = collector_closed_read(&closed, result->data, result->size);
        if (status == LS_OK)
            check_key(call, &closed.key);
    }
    return status;
}

void checks_on_call_ended(void *self, uint64_t number,
                          const struct ls_call_result *result)
{
    struct service_life *service = self;
    checks *all = service->life->all;
    if (service->life->dead)
        return;
    begin_to_tell(service);
    struct checked_call *call = find_call(all, service, number);
    if (call == NULL) {
        checks_break(all, "calls", "call %" PRIu64 " ends, which is not open",
                     number);
        return;
    }
    ls_simulation_note(all->simulation, "call %" PRIu64 " is %s", number,
                       ls_call_state_name(result->state));
    if (!ls_call_state_is_end(result->state))
        checks_break(all, "calls", "call %" PRIu64 " ends as %s", number,
                     ls_call_state_name(result->state));
    if (result->state == LS_CALL_COMPLETED &&
        read_answer(service, call, result) != LS_OK)
        checks_break(all, "stale", "node %" PRIu32 " answers %s: %s", call->to,
                     call->name, ls_error_text());
    if (result->state != LS_CALL_COMPLETED)
        all->figures.unanswered++;
    if (result->state == LS_CALL_LOST)
        checks_note_lost(service, call->to, NULL);
    checks_judge_batch(call, result->state);
    checks_note_fate(call, result->state);
    checks_forget_call(all->state, call);
}

void checks_look_at_calls(checks *self)
{
    const struct service_checks *books = self->state;
    for (const struct checked_call *call = books->calls; call != NULL;
         call = call->previous) {
        const struct check_life *life = call->by->life;
        const int64_t moves = checks_moves_since(life);
        const int64_t from = call->began_at > moves ? call->began_at : moves;
        if (life->dead || life->over || ls_host_is_paused(life->host) ||
            checks_now(self) - from <= call->wait_ns + CHECKS_SLACK_NS)
            continue;
        checks_break(self, "calls",
                     "%s to node %" PRIu32 " is open after %.3f s, and its "
                     "deadline was after %.3f s",
                     call->name, call->to,
                     (double)(checks_now(self) - call->began_at) / 1e9,
                     (double)call->wait_ns / 1e9);
    }
}

void checks_finish_calls(struct service_life *by)
{
    checks *all = by->life->all;
    struct service_checks *books = all->state;
    for (struct checked_call *call = books->calls; call != NULL;) {
        struct checked_call *previous = call->previous;
        if (call->by == by) {
            if (by->done)
                checks_break(all, "calls",
                             "%s to node %" PRIu32
                             " is open after the job's end",
                             call->name, call->to);
            checks_forget_call(books, call);
        }
        call = previous;
    }
}
