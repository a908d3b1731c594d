/* No work is done twice, and none is lost. */
#include <inttypes.h>
#include <string.h>

#include "checks_services.h"

#define WORK           "work %s/%" PRId64
#define WORK_OF(given) (given)->key.task_id, (given)->key.attempt

struct given *checks_find_given(const checks *self, const struct work_key *key)
{
    const struct service_checks *books = self->state;
    struct given *given = books->given;
    while (given != NULL && (given->key.attempt != key->attempt ||
                             strcmp(given->key.task_id, key->task_id) != 0))
        given = given->previous;
    return given;
}

/* The attempt of the same work before this one, in the order in which they
 * were given out. */
static const struct given *find_before(const struct given *given)
{
    const struct given *before = given->previous;
    while (before != NULL &&
           strcmp(before->key.task_id, given->key.task_id) != 0)
        before = before->previous;
    return before;
}

/* Giving up needs a reason: a call that was lost, refused or late. A later life
 * of the coordinator may have one of its own. */
static bool may_follow(const struct given *before, const struct given *given)
{
    return given->key.attempt > before->key.attempt &&
           (before->by != given->by || before->state == GIVEN_BROKEN ||
            before->state == GIVEN_REFUSED ||
            (before->state == GIVEN_CLOSED && before->lacks_one));
}

static bool is_rank(const struct given *given, uint32_t id)
{
    bool is_rank = false;
    for (size_t i = 1; i < given->n_ranks; i++)
        is_rank = is_rank || given->ranks[i] == (int64_t)id;
    return is_rank;
}

/* By its coordinator, before it came to close the attempt. */
static void note_lost_before(const struct service_life *by, struct given *given)
{
    for (size_t i = 0; i < by->n_lost; i++)
        given->lacks_one = given->lacks_one || is_rank(given, by->lost[i]);
}

static void give(struct service_life *by, uint32_t to,
                 const struct given *wanted)
{
    checks *all = by->life->all;
    struct service_checks *books = all->state;
    struct given *known = checks_find_given(all, &wanted->key);
    if (known != NULL) {
        if (known->state != GIVEN_REFUSED)
            checks_break(all, "once",
                         WORK " was given to node %" PRIu32
                              ", and is given to node %" PRIu32 " again",
                         WORK_OF(known), known->to, to);
        known->to = to;
        known->n_ranks = wanted->n_ranks;
        memcpy(known->ranks, wanted->ranks, sizeof known->ranks);
        known->state = GIVEN_ASKED;
        known->by = by;
        note_lost_before(by, known);
        return;
    }
    struct given *made = checks_allocate(all, sizeof *made);
    if (made == NULL)
        return;
    *made = *wanted;
    made->to = to;
    made->by = by;
    made->committed = -1;
    note_lost_before(by, made);
    made->previous = books->given;
    books->given = made;
    all->figures.works++;
    const struct given *before = find_before(made);
    if (before != NULL) {
        all->figures.retried++;
        books->is_whole = books->is_whole && !made->learns;
    }
    if (before != NULL && !may_follow(before, made))
        checks_break(all, "once",
                     WORK " is given out while attempt %" PRId64
                          " of node %" PRIu32 " was not given up",
                     WORK_OF(made), before->key.attempt, before->to);
}

void checks_note_start(struct service_life *by, const struct checked_call *call,
                       const struct fsm_action *action)
{
    struct given wanted = {.key = call->key,
                           .learns = checks_call_is(call, CALL_LEARNER_START)};
    int status = LS_OK;
    if (wanted.learns) {
        struct learner_work work;
        status = learner_work_read(&work, action->data, action->size);
        if (status == LS_OK) {
            wanted.iterations = work.iterations;
            wanted.informs = work.send_info_freq;
            memcpy(wanted.policy_id, work.policy_id, sizeof wanted.policy_id);
            wanted.n_ranks = work.n_ranks;
            memcpy(wanted.ranks, work.ranks, sizeof wanted.ranks);
            if (work.n_ranks > 0 && work.ranks[0] != (int64_t)action->to)
                checks_break(by->life->all, "once",
                             "work %s/%" PRId64 " is given to node %" PRIu32
                             ", which is not the first of its ranks",
                             work.key.task_id, work.key.attempt, action->to);
            wanted.repeats = work.send_policy_freq != 1;
        }
    } else if (checks_call_is(call, CALL_COLLECTOR_START)) {
        struct collector_work work;
        status = collector_work_read(&work, action->data, action->size);
    }
    if (status == LS_OK)
        give(by, action->to, &wanted);
    else
        checks_break(by->life->all, "once", "%s says: %s", action->name,
                     ls_error_text());
}

void checks_take_over(struct service_life *by, const struct work_key *key)
{
    struct given *given = checks_find_given(by->life->all, key);
    if (given == NULL || given->by == by)
        return;
    given->by = by;
    if (given->state == GIVEN_ASKED)
        given->state = GIVEN_RUNNING;
}

void checks_note_fate(const struct checked_call *call, enum ls_call_state state)
{
    struct given *given = checks_find_given(call->by->life->all, &call->key);
    const bool is_close = checks_call_is_in(call, LS_JOB_EXIT);
    if (given == NULL || given->state == GIVEN_BROKEN)
        return;
    if (given->state == GIVEN_ASKED)
        given->state = state == LS_CALL_COMPLETED      ? GIVEN_RUNNING
                       : state == LS_CALL_START_FAILED ? GIVEN_REFUSED
                                                       : GIVEN_BROKEN;
    else if (state != LS_CALL_COMPLETED)
        given->state = GIVEN_BROKEN;
    else if (is_close)
        given->state = GIVEN_CLOSED;
}

void checks_note_lost(struct service_life *by, uint32_t id,
                      const struct work_key *held)
{
    const struct service_checks *books = by->life->all->state;
    for (struct given *at = books->given; at != NULL; at = at->previous) {
        const bool is_begun = at->state == GIVEN_RUNNING ||
                              (at->state == GIVEN_ASKED && held == NULL);
        if (is_rank(at, id) && held == NULL &&
            (at->state == GIVEN_RUNNING || at->state == GIVEN_ASKED))
            at->lacks_one = true;
        if (at->to == id && is_begun &&
            (held == NULL || held->attempt != at->key.attempt ||
             strcmp(held->task_id, at->key.task_id) != 0))
            at->state = GIVEN_BROKEN;
    }
}

static void take(struct given *given, const struct service_life *taker)
{
    given->taker = taker;
    if (given->learns)
        given->committed =
            checks_newest_version(taker->life->all, given->policy_id);
}

void checks_on_began(void *self, const struct work_key *key)
{
    struct service_life *service = self;
    checks *all = service->life->all;
    const uint32_t id = checks_id(service->life);
    if (service->life->dead)
        return;
    ls_simulation_note(all->simulation, "begins work %s/%" PRId64, key->task_id,
                       key->attempt);
    struct given *given = checks_find_given(all, key);
    if (service->holds)
        checks_break(all, "once",
                     "node %" PRIu32 " begins work %s/%" PRId64
                     " and holds work %s/%" PRId64,
                     id, key->task_id, key->attempt, service->held.task_id,
                     service->held.attempt);
    if (given == NULL || given->to != id)
        checks_break(all, "once",
                     "node %" PRIu32 " begins work %s/%" PRId64
                     ", which it was not given",
                     id, key->task_id, key->attempt);
    else if (given->taker != NULL)
        checks_break(all, "once",
                     WORK " was begun by node %" PRIu32 " and by node %" PRIu32,
                     WORK_OF(given), checks_id(given->taker->life), id);
    else
        take(given, service);
    service->holds = true;
    service->held = *key;
    service->base = -1;
}

void checks_on_work_ended(void *self, const struct work_key *key)
{
    struct service_life *service = self;
    checks *all = service->life->all;
    if (service->life->dead)
        return;
    ls_simulation_note(all->simulation, "ends work %s/%" PRId64, key->task_id,
                       key->attempt);
    if (!service->holds || service->held.attempt != key->attempt ||
        strcmp(service->held.task_id, key->task_id) != 0)
        checks_break(all, "stale",
                     "node %" PRIu32 " ends work %s/%" PRId64
                     ", which it does not hold",
                     checks_id(service->life), key->task_id, key->attempt);
    service->holds = false;
}

void checks_on_joined(void *self, const struct work_key *key)
{
    struct service_life *service = self;
    checks *all = service->life->all;
    const uint32_t id = checks_id(service->life);
    if (service->life->dead)
        return;
    ls_simulation_note(all->simulation, "joins work %s/%" PRId64, key->task_id,
                       key->attempt);
    all->figures.joined++;
    const struct given *given = checks_find_given(all, key);
    if (service->holds || service->assists)
        checks_break(
            all, "once",
            "node %" PRIu32 " joins work %s/%" PRId64
            " and does work %s/%" PRId64,
            id, key->task_id, key->attempt,
            service->holds ? service->held.task_id : service->assisted.task_id,
            service->holds ? service->held.attempt : service->assisted.attempt);
    if (given == NULL || !is_rank(given, id) || given->taker == NULL)
        checks_break(all, "once",
                     "node %" PRIu32 " joins work %s/%" PRId64
                     ", of which it is no rank, or which nobody has begun",
                     id, key->task_id, key->attempt);
    service->assists = true;
    service->assisted = *key;
}

void checks_on_parted(void *self, const struct work_key *key)
{
    struct service_life *service = self;
    if (service->life->dead)
        return;
    ls_simulation_note(service->life->all->simulation,
                       "leaves work %s/%" PRId64, key->task_id, key->attempt);
    service->assists = false;
}

void checks_finish_works(struct service_life *by)
{
    const checks *all = by->life->all;
    const struct service_checks *books = all->state;
    for (const struct given *at = books->given; at != NULL; at = at->previous) {
        if (at->by == by &&
            (at->state == GIVEN_ASKED || at->state == GIVEN_RUNNING))
            checks_break(all, "lost",
                         WORK " of node %" PRIu32
                              " was neither closed nor given up",
                         WORK_OF(at), at->to);
    }
}
