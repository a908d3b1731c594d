/* Every reliable event is accounted for at each listener: handled once and in
 * order, or counted by its sender.
 *
 * While it runs, a gap is seen when a later event comes; after it, what never
 * came to one who was there to the end, and what those missed that are gone. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

void checks_on_emitting(void *self, uint64_t incarnation, uint64_t number)
{
    struct member_life *member = self;
    const checks *all = member->life->all;
    checks_note_incarnation(member, incarnation);
    struct emit *grown = realloc(member->emits, number * sizeof *member->emits);
    if (grown == NULL) {
        ls_simulation_violation(all->simulation, "checks: no memory");
        return;
    }
    member->emits = grown;
    member->emits[number - 1] =
        (struct emit){.began_at = checks_now(all), .ended_at = LS_FOREVER};
    member->n_emitted = number;
}

void checks_on_emitted(void *self, uint64_t number)
{
    const struct member_life *member = self;
    if (number <= member->n_emitted)
        member->emits[number - 1].ended_at = checks_now(member->life->all);
}

static struct member_life *life_of(const checks *all, uint32_t id,
                                   uint64_t incarnation)
{
    for (const struct check_life *life = all->lives; life != NULL;
         life = life->previous) {
        struct member_life *member = life->state;
        if (checks_id(life) == id && member->incarnation == incarnation)
            return member;
    }
    return NULL;
}

/* What a member sees, it is told so much later at most. */
#define TOLD_NS (100 * LS_NS_PER_MS)

/* Whether an event was for one who is ready in its sender's eyes. Who is lost
 * while the emit waits for room, its own or another's, does not get it. */
static bool is_for(const struct member_life *sender, const struct ready *ready,
                   uint64_t number)
{
    if (number > sender->n_emitted)
        return false;
    const struct emit *emit = &sender->emits[number - 1];
    return emit->ended_at != LS_FOREVER && ready->at <= emit->began_at &&
           emit->ended_at < ready->gone_at - TOLD_NS;
}

/* It got this one, and those between it and the one before were not for it: who
 * is not a member yet in the sender's eyes may hear of this and that. */
static void check_gap(const struct member_life *member,
                      const struct ls_event *event, uint64_t before,
                      uint64_t number)
{
    checks *all = member->life->all;
    const uint32_t id = checks_id(member->life);
    const struct member_life *sender =
        life_of(all, event->origin, event->incarnation);
    const struct ready *there =
        sender == NULL ? NULL
                       : checks_find_ready(sender, id, member->incarnation);
    for (uint64_t at = before + 1; there != NULL && at < number; at++) {
        if (!is_for(sender, there, at))
            continue;
        checks_accuse_pair(
            all, there,
            checks_find_ready(member, event->origin, event->incarnation),
            "events: node %" PRIu32 " got event %" PRIu64 " of node %" PRIu32
            ", and never event %" PRIu64,
            id, number, event->origin, at);
        return;
    }
}

static void keep(const checks *all, struct heard *heard, uint64_t number)
{
    if (heard->n == heard->capacity) {
        const size_t capacity = 2 * heard->capacity + 16;
        uint64_t *grown =
            realloc(heard->numbers, capacity * sizeof *heard->numbers);
        if (grown == NULL) {
            ls_simulation_violation(all->simulation, "checks: no memory");
            return;
        }
        heard->numbers = grown;
        heard->capacity = capacity;
    }
    heard->numbers[heard->n++] = number;
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
    check_gap(member, event, heard->number, number);
    all->figures.events++;
    heard->number = number;
    keep(all, heard, number);
}

void checks_on_quitting(void *self, const struct ls_node_loss *losses, size_t n)
{
    struct member_life *member = self;
    const checks *all = member->life->all;
    if (member->quit_at != 0)
        return;
    member->quit_at = checks_now(all);
    member->losses = checks_allocate(all, (n + 1) * sizeof *losses);
    if (member->losses == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        member->losses[i] = losses[i];
    member->n_losses = n;
}

/* After the run ---------------------------------------------------------- */

static bool got(const struct member_life *member, uint32_t from,
                uint64_t incarnation, uint64_t number)
{
    const struct heard *heard = member->heard;
    while (heard != NULL &&
           (heard->from != from || heard->incarnation != incarnation))
        heard = heard->previous;
    for (size_t i = 0; heard != NULL && i < heard->n; i++) {
        if (heard->numbers[i] == number)
            return true;
    }
    return false;
}

/* What is under way gets through in so many times the time of silence: the
 * first for a cut, or a pause. */
#define OVERDUE 3
/* Nothing that is not acknowledged is given up: it is sent again so soon, at
 * the latest, for as long as its sender has the listener for a member. */
#define AGAIN_NS (500 * LS_NS_PER_MS)
/* Of so many, one may be lost each time and is late, not lost. */
#define ONE_IN 1e10

/* For how long one may be lost each time that it is sent. */
static int64_t repeated_for(const checks *all)
{
    struct ls_network_stats stats;
    ls_network_stats(all->network, &stats);
    const double over = 1 - stats.worst_loss; /* one link */
    const bool relayed = all->plan->world.topology == LS_TOPOLOGY_STAR;
    const double comes = relayed ? over * over : over;
    int64_t n = 0;
    for (double many = ONE_IN; many >= 1 && n < 10000; n++)
        many *= 1 - comes;
    return n * AGAIN_NS;
}

/* What was emitted before that is overdue when the member ends, unless it, or
 * its sender, could not move for a while; 0: nothing is. */
static int64_t overdue_at(const checks *all, const struct member_life *sender,
                          const struct member_life *member)
{
    const int64_t usual =
        OVERDUE * (int64_t)all->plan->world.silence_ms * LS_NS_PER_MS;
    const int64_t repeated = repeated_for(all);
    const int64_t until =
        member->quit_at - (repeated > usual ? repeated : usual);
    return sender->life->resumed_at > until || member->life->resumed_at > until
               ? 0
               : until;
}

/* One of which all is known: it was not killed, nor did it become another
 * member in the same life. */
static bool is_plain(const struct member_life *member)
{
    return !member->life->dead && member->renewed_at == 0 &&
           member->incarnation != 0 && member->quit_at != 0;
}

/* The first event that was for a life and that it did not get; n: how many. */
static uint64_t find_missed(const struct member_life *sender,
                            const struct ready *ready,
                            const struct member_life *member, int64_t until,
                            uint64_t *n)
{
    uint64_t first = 0;
    *n = 0;
    for (uint64_t number = 1; number <= sender->n_emitted; number++) {
        if (!is_for(sender, ready, number) ||
            sender->emits[number - 1].ended_at >= until ||
            got(member, checks_id(sender->life), sender->incarnation, number))
            continue;
        first = first == 0 ? number : first;
        (*n)++;
    }
    return first;
}

static uint64_t told_of(const struct member_life *sender, uint32_t id)
{
    uint64_t told = 0;
    for (size_t i = 0; i < sender->n_losses; i++) {
        const struct ls_node_loss *loss = &sender->losses[i];
        if (loss->receiver == id && strcmp(loss->event, MEMBER_EVENT) == 0)
            told += loss->unacknowledged;
    }
    return told;
}

/* Both were there, and each held the other for there, to the end. */
static bool has_stayed(const struct member_life *sender,
                       const struct ready *ready,
                       const struct member_life *member)
{
    const struct ready *back =
        checks_find_ready(member, checks_id(sender->life), sender->incarnation);
    return ready->gone_at == LS_FOREVER && is_plain(member) && back != NULL &&
           back->gone_at == LS_FOREVER;
}

/* What it missed, its sender has counted, and nothing of it is overdue. Returns
 * how many. */
static uint64_t account_for(checks *all, const struct member_life *sender,
                            const struct ready *ready)
{
    const struct member_life *member =
        life_of(all, ready->id, ready->incarnation);
    if (member == NULL || member->renewed_at != 0)
        return 0;
    const bool stayed = has_stayed(sender, ready, member);
    uint64_t n = 0;
    uint64_t first = !stayed ? 0
                             : find_missed(sender, ready, member,
                                           overdue_at(all, sender, member), &n);
    if (first != 0)
        ls_simulation_violation(all->simulation,
                                "events: node %" PRIu32
                                " never got event %" PRIu64 " of node %" PRIu32
                                ", the first of %" PRIu64 " that it missed, "
                                "and was there to the end",
                                ready->id, first, checks_id(sender->life), n);
    if (stayed || ready->gone_at != LS_FOREVER)
        (void)find_missed(sender, ready, member, LS_FOREVER, &n);
    return n;
}

static void account_for_all(checks *all, const struct member_life *sender,
                            uint32_t id)
{
    uint64_t missed = 0;
    for (const struct ready *ready = sender->ready; ready != NULL;
         ready = ready->previous)
        missed += ready->id == id ? account_for(all, sender, ready) : 0;
    if (missed > told_of(sender, id))
        ls_simulation_violation(
            all->simulation,
            "events: node %" PRIu32 " missed %" PRIu64
            " events of node %" PRIu32 ", which counts %" PRIu64,
            id, missed, checks_id(sender->life), told_of(sender, id));
}

void checks_finish_events(checks *self)
{
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        const struct member_life *sender = life->state;
        if (!is_plain(sender))
            continue;
        for (size_t i = 0; i < self->plan->n_nodes; i++)
            account_for_all(self, sender, self->plan->nodes[i].id);
    }
}
