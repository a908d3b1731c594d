/* Who fail in the same epoch fail alike. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checks_members.h"

/* Reads `barrier "x", epoch 3: node 7 ...`: what a barrier's error says. One
 * who lags too far behind to be told the reason names nobody. */
static bool read_text(const char *text, uint64_t *epoch, uint32_t *named)
{
    const char *at = strstr(text, "\", epoch ");
    if (strstr(text, " gave it up before") != NULL)
        return false;
    if (at == NULL || sscanf(at, "\", epoch %" SCNu64, epoch) != 1)
        return false;
    at = strstr(at, "node ");
    return at != NULL && sscanf(at, "node %" SCNu32, named) == 1;
}

/* Whether the one has known the other to be ready since then. */
static bool has_met(const struct member_life *member,
                    const struct member_life *of, int64_t by)
{
    const struct ready *ready =
        checks_find_ready(member, checks_id(of->life), of->incarnation);
    return ready != NULL && ready->at <= by;
}

static bool are_alike(const struct failure *a, const struct failure *b)
{
    /* One whose own time ran out names whom it missed, the others name it. */
    return a->status == b->status &&
           (a->named == b->named || a->status == LS_ETIMEDOUT);
}

/* Since when there may have been that cause of a failure: what each is told of
 * before it enters counts too; and if whom it names lives, and has not been met
 * by this member, as it may have been by others, that one has been coming. */
static int64_t caused_here_since(const struct failure *of)
{
    const struct member_life *member = of->member;
    int64_t coming_since = LS_FOREVER;
    for (const struct check_life *life = member->life->all->lives; life != NULL;
         life = life->previous) {
        if (checks_id(life) == of->named && !life->dead && !life->over)
            coming_since = life->began_at;
    }
    for (const struct ready *ready = member->ready; ready != NULL;
         ready = ready->previous) {
        if (ready->id == of->named && ready->at >= coming_since &&
            ready->at <= of->ended_at)
            return of->since;
    }
    return coming_since < of->since ? coming_since : of->since;
}

/* The same, where another may have failed in this epoch by that, and told it,
 * long before. */
static int64_t caused_since(const struct member_checks *state,
                            const struct failure *of)
{
    int64_t since = caused_here_since(of);
    for (const struct failure *at = state->failures; at != NULL;
         at = at->previous) {
        const int64_t there = caused_here_since(at);
        if (at->epoch == of->epoch && at->status == of->status &&
            at->named == of->named && there < since &&
            at->ended_at >= of->member->life->began_at)
            since = there;
    }
    return since;
}

static void compare(checks *self, const struct failure *a,
                    const struct failure *b)
{
    const int64_t entered_at =
        a->entered_at < b->entered_at ? a->entered_at : b->entered_at;
    if (a->epoch != b->epoch || are_alike(a, b) ||
        !has_met(a->member, b->member, entered_at) ||
        !has_met(b->member, a->member, entered_at))
        return;
    const int64_t causes[] = {caused_since(self->state, a),
                              caused_since(self->state, b)};
    checks_accuse_difference(
        self, causes[0] < causes[1] ? causes[0] : causes[1],
        "alike: epoch %" PRIu64 ": node %" PRIu32
        " fails with %s and names node %" PRIu32 ", node %" PRIu32
        " with %s and node %" PRIu32,
        a->epoch, checks_id(a->member->life), ls_status_name(a->status),
        a->named, checks_id(b->member->life), ls_status_name(b->status),
        b->named);
}

void checks_note_failure(struct member_life *member, int status)
{
    checks *self = member->life->all;
    struct member_checks *state = self->state;
    struct failure failure = {.member = member,
                              .status = status,
                              .entered_at = member->entered_at,
                              .ended_at = checks_now(self),
                              .since = member->ended_at != 0
                                           ? member->ended_at
                                           : member->life->began_at,
                              .previous = state->failures};
    if ((status != LS_ELOST && status != LS_EABORTED &&
         status != LS_ETIMEDOUT) ||
        !read_text(ls_error_text(), &failure.epoch, &failure.named))
        return;
    for (const struct failure *other = state->failures; other != NULL;
         other = other->previous)
        compare(self, &failure, other);
    struct failure *made = checks_allocate(self, sizeof *made);
    if (made == NULL)
        return;
    *made = failure;
    state->failures = made;
}
