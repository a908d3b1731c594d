/* Who holds whom for lost, and what that explains. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "checks_members.h"

/* When a life ended, so far as others heed it: LS_FOREVER: it goes on. */
static int64_t end_of(const struct check_life *life)
{
    return life->dead ? life->died_at : life->over ? life->over_at : LS_FOREVER;
}

/* It holds until it is taken back, by whatever life of that node, as the one
 * that made it may have ended of it; or whom it is of is no more. */
static int64_t holds_until(const struct mistake *mistake)
{
    int64_t until = mistake->of != NULL ? end_of(mistake->of) : LS_FOREVER;
    if (until != LS_FOREVER)
        until += CHECKS_NOTICE_NS;
    return mistake->to < until ? mistake->to : until;
}

static bool was_mistaken(const checks *self, int64_t from, int64_t to)
{
    const struct member_checks *state = self->state;
    for (const struct mistake *at = state->mistakes; at != NULL;
         at = at->previous) {
        if (at->from <= to && holds_until(at) >= from)
            return true;
    }
    return false;
}

static size_t is_between(int64_t at, int64_t from, int64_t to)
{
    return at >= from && at <= to ? 1 : 0;
}

/* Lives that began or ended; who rejoins as a new member does both. */
static size_t count_changes(const checks *self, int64_t from, int64_t to)
{
    size_t n = 0;
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        const struct member_life *member = life->state;
        n += is_between(life->began_at, from, to);
        if (life->dead)
            n += is_between(life->died_at, from, to);
        else if (life->over)
            n += is_between(life->over_at, from, to);
        if (member->renewed_at != 0)
            n += 2 * is_between(member->renewed_at, from, to);
    }
    return n;
}

static bool is_gone(const struct ready *ready)
{
    return ready != NULL && ready->gone_at != LS_FOREVER;
}

static bool is_excused(const checks *self, const struct verdict *verdict)
{
    if (verdict->pair[0] != NULL)
        return is_gone(verdict->pair[0]) || is_gone(verdict->pair[1]);
    return was_mistaken(self, verdict->from, verdict->to) ||
           (verdict->alike &&
            count_changes(self, verdict->from - CHECKS_NOTICE_NS,
                          verdict->to + CHECKS_NOTICE_NS) > 1);
}

void checks_judge(checks *self, int64_t before)
{
    struct member_checks *state = self->state;
    size_t kept = 0;
    for (size_t i = 0; i < state->n_verdicts; i++) {
        const struct verdict *verdict = &state->verdicts[i];
        if (verdict->to >= before)
            state->verdicts[kept++] = *verdict;
        else if (is_excused(self, verdict)) /* of a pair: accounted for */
            self->figures.excused += verdict->pair[0] == NULL ? 1 : 0;
        else
            ls_simulation_violation(self->simulation, "%s", verdict->text);
    }
    state->n_verdicts = kept;
}

static void accuse(checks *self, const struct verdict *what, const char *format,
                   va_list arguments)
{
    struct member_checks *state = self->state;
    if (state->n_verdicts == CHECKS_VERDICTS_MAX)
        return; /* one is enough */
    struct verdict *verdict = &state->verdicts[state->n_verdicts++];
    *verdict = *what;
    verdict->to = checks_now(self);
    (void)vsnprintf(verdict->text, sizeof verdict->text, format, arguments);
}

void checks_accuse(checks *self, int64_t from, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    accuse(self, &(struct verdict){.from = from}, format, arguments);
    va_end(arguments);
}

void checks_accuse_difference(checks *self, int64_t from, const char *format,
                              ...)
{
    va_list arguments;
    va_start(arguments, format);
    accuse(self, &(struct verdict){.from = from, .alike = true}, format,
           arguments);
    va_end(arguments);
}

void checks_accuse_pair(checks *self, const struct ready *there,
                        const struct ready *back, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    accuse(self, &(struct verdict){.pair = {there, back}}, format, arguments);
    va_end(arguments);
}

/* Whether this life of a node is over. One that never entered an epoch did not
 * tell its incarnation; if there is such a one, it is the one. */
static bool has_ended(const checks *self, uint32_t id, uint64_t incarnation)
{
    bool unknown = false;
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        const struct member_life *member = life->state;
        const bool gone = life->dead || life->over;
        if (checks_id(life) == id && member->incarnation == incarnation)
            return gone;
        unknown |= checks_id(life) == id && member->incarnation == 0 && gone;
    }
    return unknown;
}

/* The life that has this incarnation; NULL: it has not told which it has. */
static const struct check_life *find_life(const checks *self, uint32_t id,
                                          uint64_t incarnation)
{
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        const struct member_life *member = life->state;
        if (checks_id(life) == id && member->incarnation == incarnation)
            return life;
    }
    return NULL;
}

static void note_mistake(struct check_life *life, uint32_t id,
                         uint64_t incarnation)
{
    checks *all = life->all;
    struct member_checks *state = all->state;
    struct mistake *made = checks_allocate(all, sizeof *made);
    if (made == NULL)
        return;
    made->by = life;
    made->of = find_life(all, id, incarnation);
    made->id = id;
    made->from = checks_now(all) - CHECKS_NOTICE_NS;
    made->to = LS_FOREVER;
    made->previous = state->mistakes;
    state->mistakes = made;
    all->figures.mistakes++;
}

struct ready *checks_find_ready(const struct member_life *member, uint32_t id,
                                uint64_t incarnation)
{
    struct ready *ready = member->ready;
    while (ready != NULL &&
           (ready->id != id || ready->incarnation != incarnation))
        ready = ready->previous;
    return ready;
}

static void note_ready(struct member_life *self, const struct ls_member *member)
{
    const checks *all = self->life->all;
    struct ready *ready =
        checks_find_ready(self, member->id, member->incarnation);
    if (ready == NULL) {
        if ((ready = checks_allocate(all, sizeof *ready)) == NULL)
            return;
        ready->id = member->id;
        ready->incarnation = member->incarnation;
        ready->at = checks_now(all);
        ready->gone_at = LS_FOREVER;
        ready->previous = self->ready;
        self->ready = ready;
    }
    ready->until = LS_FOREVER;
}

static void note_gone(struct member_life *self, const struct ls_member *member)
{
    struct ready *ready =
        checks_find_ready(self, member->id, member->incarnation);
    if (ready == NULL || ready->until != LS_FOREVER)
        return;
    ready->until = checks_now(self->life->all);
    if (ready->gone_at == LS_FOREVER)
        ready->gone_at = ready->until;
}

/* Who goes on after a pause does so within this, before it has heard anyone. */
#define AT_ONCE_NS LS_NS_PER_MS

/* Whether another holds it for lost, and may have said so. */
static bool is_hearsay(const struct check_life *life, uint32_t id)
{
    const struct member_checks *state = life->all->state;
    for (const struct mistake *at = state->mistakes; at != NULL;
         at = at->previous) {
        if (at->by != life && at->id == id && at->to >= life->paused_at)
            return true;
    }
    return false;
}

/* That nobody was heard during a pause of one's own says nothing of them. A
 * shorter one is not noticed, by a clock that may be slow by a tenth. */
static void check_stall(const struct check_life *life,
                        const struct ls_member *member)
{
    const checks *all = life->all;
    const int64_t from = life->paused_at > life->stands_until
                             ? life->paused_at
                             : life->stands_until;
    const int64_t length = life->resumed_at - from; /* as it saw it */
    if (member->reason == LS_ETIMEDOUT && life->resumed_at != 0 &&
        checks_now(all) - life->resumed_at <= AT_ONCE_NS &&
        length - length / 10 >=
            all->plan->world.silence_ms * LS_NS_PER_MS / 2 &&
        !is_hearsay(life, member->id))
        ls_simulation_violation(
            all->simulation,
            "stall: node %" PRIu32 " was paused for %.3f s, and holds node "
            "%" PRIu32 " for silent since",
            checks_id(life), (double)(life->resumed_at - life->paused_at) / 1e9,
            member->id);
}

void checks_on_member(void *arg, const struct ls_member *member)
{
    struct member_life *self = arg;
    const struct check_life *life = self->life;
    checks *all = life->all;
    const struct member_checks *state = all->state;
    if (life->dead || !checks_is_of_job(all, member->id))
        return; /* a stranger may be held for what one likes */
    if (member->state == LS_MEMBER_LOST &&
        !has_ended(all, member->id, member->incarnation)) {
        note_mistake(self->life, member->id, member->incarnation);
        check_stall(life, member);
    }
    if (member->state == LS_MEMBER_LOST || member->state == LS_MEMBER_LEFT)
        note_gone(self, member);
    if (member->state != LS_MEMBER_READY)
        return;
    note_ready(self, member);
    for (struct mistake *at = state->mistakes; at != NULL; at = at->previous) {
        if (at->by->index == life->index && at->id == member->id &&
            at->to == LS_FOREVER)
            at->to = checks_now(all) + CHECKS_NOTICE_NS;
    }
}
