/* Reliable events come once and in order. */
#include <inttypes.h>
#include <stdlib.h>

#include "checks_members.h"

static struct heard *heard_of(struct member_life *member, uint32_t from,
                              uint64_t incarnation)
{
    struct heard *heard = member->heard;
    while (heard != NULL &&
           (heard->from != from || heard->incarnation != incarnation))
        heard = heard->previous;
    if (heard != NULL)
        return heard;
    heard = checks_allocate(member->life->all, sizeof *heard);
    if (heard == NULL)
        return NULL;
    heard->from = from;
    heard->incarnation = incarnation;
    heard->previous = member->heard;
    member->heard = heard;
    return heard;
}

void checks_on_emitting(void *self, uint64_t number)
{
    struct member_life *member = self;
    const checks *all = member->life->all;
    int64_t *grown =
        realloc(member->emitted_at, number * sizeof *member->emitted_at);
    if (grown == NULL) {
        ls_simulation_violation(all->simulation, "checks: no memory");
        return;
    }
    member->emitted_at = grown;
    member->emitted_at[number - 1] = checks_now(all);
    member->n_emitted = number;
}

/* Whether the sender knew this life as a member when it emitted the event: who
 * is not one yet may hear of this and that. */
static bool was_for(const struct member_life *member,
                    const struct ls_event *event, uint64_t number)
{
    for (const struct check_life *life = member->life->all->lives; life != NULL;
         life = life->previous) {
        const struct member_life *at = life->state;
        if (checks_id(life) != event->origin ||
            at->incarnation != event->incarnation)
            continue;
        const struct ready *ready =
            checks_find_ready(at, checks_id(member->life), member->incarnation);
        return ready != NULL && number <= at->n_emitted &&
               ready->at <= at->emitted_at[number - 1];
    }
    return false;
}

void checks_on_heard(void *self, const struct ls_event *event, uint64_t number)
{
    struct member_life *member = self;
    checks *all = member->life->all;
    const uint32_t id = checks_id(member->life);
    struct heard *heard = heard_of(member, event->origin, event->incarnation);
    if (member->life->dead || heard == NULL)
        return;
    if (!checks_is_of_job(all, event->origin))
        ls_simulation_violation(all->simulation,
                                "events: node %" PRIu32 " got event %" PRIu64
                                " of node %" PRIu32 ", which is a stranger",
                                id, number, event->origin);
    if (number <= heard->number)
        ls_simulation_violation(all->simulation,
                                "events: node %" PRIu32 " got event %" PRIu64
                                " of node %" PRIu32 " after event %" PRIu64,
                                id, number, event->origin, heard->number);
    if (heard->number != 0 && number > heard->number + 1 &&
        was_for(member, event, heard->number + 1))
        checks_accuse(all, heard->at,
                      "events: node %" PRIu32 " got event %" PRIu64
                      " of node %" PRIu32 " next to event %" PRIu64,
                      id, number, event->origin, heard->number);
    all->figures.events++;
    heard->number = number;
    heard->at = checks_now(all);
}
