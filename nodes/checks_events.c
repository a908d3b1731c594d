/* Reliable events come once and in order. */
#include <inttypes.h>
#include <stdlib.h>

#include "checks_parts.h"

static struct heard *heard_of(struct check_life *life, uint32_t from,
                              uint64_t incarnation)
{
    struct heard *heard = life->heard;
    while (heard != NULL &&
           (heard->from != from || heard->incarnation != incarnation))
        heard = heard->previous;
    if (heard != NULL)
        return heard;
    heard = calloc(1, sizeof *heard);
    if (heard == NULL) {
        ls_simulation_violation(life->all->simulation, "checks: no memory");
        return NULL;
    }
    heard->from = from;
    heard->incarnation = incarnation;
    heard->previous = life->heard;
    life->heard = heard;
    return heard;
}

void checks_on_emitting(void *self, uint64_t number)
{
    struct check_life *life = self;
    int64_t *grown =
        realloc(life->emitted_at, number * sizeof *life->emitted_at);
    if (grown == NULL) {
        ls_simulation_violation(life->all->simulation, "checks: no memory");
        return;
    }
    life->emitted_at = grown;
    life->emitted_at[number - 1] = checks_now(life->all);
    life->n_emitted = number;
}

/* Whether the sender knew this life as a member when it emitted the event: who
 * is not one yet may hear of this and that. */
static bool was_for(const struct check_life *life, const struct ls_event *event,
                    uint64_t number)
{
    for (const struct check_life *at = life->all->lives; at != NULL;
         at = at->previous) {
        if (checks_id(at) != event->origin ||
            at->incarnation != event->incarnation)
            continue;
        const struct ready *ready =
            checks_find_ready(at, checks_id(life), life->incarnation);
        return ready != NULL && number <= at->n_emitted &&
               ready->at <= at->emitted_at[number - 1];
    }
    return false;
}

void checks_on_heard(void *self, const struct ls_event *event, uint64_t number)
{
    struct check_life *life = self;
    checks *all = life->all;
    struct heard *heard = heard_of(life, event->origin, event->incarnation);
    if (life->dead || heard == NULL)
        return;
    if (number <= heard->number)
        ls_simulation_violation(all->simulation,
                                "events: node %" PRIu32 " got event %" PRIu64
                                " of node %" PRIu32 " after event %" PRIu64,
                                checks_id(life), number, event->origin,
                                heard->number);
    if (heard->number != 0 && number > heard->number + 1 &&
        was_for(life, event, heard->number + 1))
        checks_accuse(all, heard->at,
                      "events: node %" PRIu32 " got event %" PRIu64
                      " of node %" PRIu32 " next to event %" PRIu64,
                      checks_id(life), number, event->origin, heard->number);
    all->figures.events++;
    heard->number = number;
    heard->at = checks_now(all);
}
