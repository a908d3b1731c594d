/* The life of one member, as this node sees it: what happens to it is put in,
 * what becomes of it comes out.
 *
 *   SEEN --present, heard, it lists this node, and is listed--> READY
 *   READY --its presence is gone--> READY, away --it is back--> READY
 *   READY --farewell--> LEFT
 *   READY --silent for too long, or nobody, or another, listens at its
 *           address--> LOST
 *
 * That it is listed before it is ready here keeps the order on its connection:
 * it reads that it is, and so can be ready too, before anything that is sent to
 * it as a member.
 *
 * A broken connection is not a death: who is away has the time of silence to
 * come back, unless its host says that its process is gone. LEFT and LOST are
 * final: the same id may come again as a new incarnation only. */
#include "membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"

#define PROBE_FIRST_NS LS_NS_PER_MS

void member_has_none(struct member *member)
{
    for (size_t i = 0; i < member->n_has; i++)
        member->has[i] = 0;
}

void member_begin(struct member *member, uint64_t incarnation)
{
    member->incarnation = incarnation;
    ls_take(LS_TAKES_MEMBER_SEEN);
    member->state = LS_MEMBER_SEEN;
    member->reason = LS_OK;
    memset(member->showings, 0, sizeof member->showings);
    member->n_present = 0;
    member->via = NULL;
    member->was_ready = member->announced = false;
    member->lists_me = member->ready_there = false;
    member->barred = member->late = false;
    member->present_at = member->disputed_at = member->reminded_at = 0;
    member->away_at = member->ended_at = 0;
    member->probe = PROBE_NONE;
    member->probe_at = 0;
    member->heartbeats = 0;
    member->heard_at = 0;
    member_has_none(member);
}

void member_no_texts(struct member *member)
{
    free(member->texts);
    member->texts = NULL;
    member->host = member->config_hash = 0;
    member->role = member->labels = member->endpoint = member->as_role = "";
    member->signature = "";
}

int member_texts(struct member *member, const struct wire_presence *p)
{
    /* Who shows it to others sees it directly. */
    const char *signed_by_it = p->relayed ? "" : p->signature;
    const size_t role = strlen(p->role) + 1, labels = strlen(p->labels) + 1,
                 endpoint = strlen(p->endpoint) + 1,
                 signature = strlen(signed_by_it) + 1;
    const size_t as_role = role + strlen(" ()");
    char *texts = malloc(role + labels + endpoint + signature + as_role);
    if (texts == NULL)
        return ls_error(LS_ENOMEM, "node %u at %s", p->id, p->endpoint);
    free(member->texts);
    member->texts = texts;
    member->host = p->host;
    member->config_hash = p->config_hash;
    member->role = memcpy(texts, p->role, role);
    member->labels = memcpy(texts + role, p->labels, labels);
    member->endpoint = memcpy(texts + role + labels, p->endpoint, endpoint);
    texts += role + labels + endpoint;
    member->signature = memcpy(texts, signed_by_it, signature);
    texts += signature;
    (void)snprintf(texts, as_role, role > 1 ? " (%s)" : "%s", p->role);
    member->as_role = texts;
    return LS_OK;
}

bool member_has_ended(const struct member *member)
{
    return member->state == LS_MEMBER_LEFT || member->state == LS_MEMBER_LOST;
}

static const struct ended_life *ended_life(const struct member *member,
                                           uint64_t incarnation)
{
    for (size_t i = 0; i < MEMBERSHIP_LIVES; i++)
        if (incarnation != 0 && member->ended[i].incarnation == incarnation)
            return &member->ended[i];
    return NULL;
}

bool member_ended_as(const struct member *member, uint64_t incarnation)
{
    return ended_life(member, incarnation) != NULL;
}

bool member_lost_as(const struct member *member, uint64_t incarnation)
{
    const struct ended_life *life = ended_life(member, incarnation);
    return life != NULL && life->lost;
}

bool member_hears(const struct member *member)
{
    return member->n_present != 0 && !member->barred &&
           !member_has_ended(member);
}

bool member_is_here(const struct member *member)
{
    return member->state == LS_MEMBER_READY && member->n_present != 0;
}

bool member_is_alive(const struct member *member)
{
    return !member_has_ended(member) && !member->barred &&
           (member->n_present != 0 || member->state == LS_MEMBER_READY ||
            member->heard_at != 0);
}

static bool both_ways(const struct member *member)
{
    if (member->via != NULL) /* the hub was ready with both */
        return member->via->state == LS_MEMBER_READY;
    return member->lists_me && member->announced && member->heard_at != 0;
}

bool member_may_be_ready(const struct member *member)
{
    return member->state != LS_MEMBER_READY && member_hears(member) &&
           both_ways(member);
}

enum member_change member_settle(struct member *member)
{
    if (!member_may_be_ready(member))
        return MEMBER_SAME;
    ls_take(LS_TAKES_MEMBER_READY);
    member->state = LS_MEMBER_READY;
    member->was_ready = true;
    member->late = false;
    return MEMBER_BECAME_READY;
}

/* ---- presence ---------------------------------------------------------- */

struct showing *member_showing(struct member *member, uint64_t link,
                               uint64_t incarnation)
{
    for (size_t i = 0; i < MEMBERSHIP_SHOWINGS; i++) {
        struct showing *showing = &member->showings[i];
        if (showing->n != 0 && showing->link == link &&
            showing->incarnation == incarnation)
            return showing;
    }
    return NULL;
}

bool member_shows(const struct member *member, uint64_t link)
{
    for (size_t i = 0; i < MEMBERSHIP_SHOWINGS; i++)
        if (member->showings[i].link == link && link != 0)
            return true;
    return false;
}

bool member_shows_over(const struct member *member, uint64_t connection)
{
    for (size_t i = 0; i < MEMBERSHIP_SHOWINGS; i++)
        if (member->showings[i].n != 0 &&
            member->showings[i].connection == connection)
            return true;
    return false;
}

enum member_change member_appears(struct member *member, int64_t now)
{
    if (member->n_present++ != 0)
        return MEMBER_SAME;
    member->present_at = now;
    if (member->away_at == 0)
        return MEMBER_SAME;
    ls_take(LS_TAKES_MEMBER_BACK);
    member->away_at = 0;
    return MEMBER_RETURNED;
}

void member_ask(struct member *member, int64_t now)
{
    member->probe_at = now;
    member->probe_every = PROBE_FIRST_NS / 2;
}

enum member_change member_disappears(struct member *member, int64_t now)
{
    if (member->n_present == 0 || --member->n_present != 0)
        return MEMBER_SAME;
    member->present_at = 0;
    if (member_has_ended(member))
        return MEMBER_SAME;
    member->lists_me = member->ready_there = false;
    if (member->state != LS_MEMBER_READY) { /* as if it had never been */
        ls_take(LS_TAKES_MEMBER_UNSEEN);
        member->heard_at = 0;
        member->announced = member->late = false;
        return MEMBER_SAME;
    }
    ls_take(LS_TAKES_MEMBER_AWAY);
    member->away_at = now;
    member_ask(member, now);
    return MEMBER_AWAY;
}

/* ---- the end ----------------------------------------------------------- */

static void count_end(const struct member *member, enum ls_member_state state)
{
    const bool left = state == LS_MEMBER_LEFT;
    if (member->state != LS_MEMBER_READY)
        ls_take(left ? LS_TAKES_MEMBER_SEEN_LEFT : LS_TAKES_MEMBER_SEEN_LOST);
    else if (member->away_at != 0)
        ls_take(left ? LS_TAKES_MEMBER_AWAY_LEFT : LS_TAKES_MEMBER_AWAY_LOST);
    else
        ls_take(left ? LS_TAKES_MEMBER_READY_LEFT : LS_TAKES_MEMBER_READY_LOST);
}

static enum member_change end(struct member *member, enum ls_member_state state,
                              int reason)
{
    const bool was_ready = member->state == LS_MEMBER_READY;
    if (member_has_ended(member))
        return MEMBER_SAME;
    count_end(member, state);
    member->state = state;
    member->reason = reason;
    member->lists_me = member->ready_there = false;
    member->away_at = 0;
    member->probe = PROBE_NONE;
    if (!member_ended_as(member, member->incarnation))
        member->ended[member->n_ended++ % MEMBERSHIP_LIVES] =
            (struct ended_life){member->incarnation, state == LS_MEMBER_LOST};
    return was_ready ? MEMBER_ENDED : MEMBER_FORGOTTEN;
}

enum member_change member_leaves(struct member *member, int reason)
{
    return end(member, LS_MEMBER_LEFT, reason);
}

enum member_change member_is_lost(struct member *member, int reason)
{
    return end(member, LS_MEMBER_LOST, reason);
}

/* A process that dies closes its endpoint a moment after its connections,
 * maybe: one that listens is soon asked again, and then less and less. */
enum member_change member_probed(struct member *member, bool refuses,
                                 int64_t now, int64_t heartbeat)
{
    const bool asked = member->probe == PROBE_ASKED;
    member->probe = PROBE_NONE;
    member->probe_every *= 2;
    if (member->probe_every > heartbeat)
        member->probe_every = heartbeat;
    member->probe_at = now + member->probe_every;
    if (!asked || (member->away_at == 0 && member->n_rival == 0)) {
        ls_take(LS_TAKES_MEMBER_PROBE_LATE);
        return MEMBER_SAME; /* it came back meanwhile */
    }
    ls_take(refuses ? LS_TAKES_MEMBER_PROBE_REFUSED
                    : LS_TAKES_MEMBER_PROBE_ANSWERED);
    if (!refuses)
        return MEMBER_SAME;
    return member_is_lost(member, LS_ELOST);
}

/* Since when nothing speaks for it; 0: it is not to be judged. */
static int64_t silent_since(const struct member *member)
{
    if (member->via != NULL) /* its hub judges; this is for one that fails to */
        return member->via->away_at == 0 ? member->away_at : 0;
    if (member->away_at != 0)
        return member->heard_at < member->away_at ? member->heard_at
                                                  : member->away_at;
    if (member->state == LS_MEMBER_READY)
        return member->heard_at;
    if (member->n_rival == 0)
        return 0;
    return member->heard_at != 0 ? member->heard_at : member->present_at;
}

enum member_change member_tick(struct member *member, int64_t now,
                               int64_t silence, int64_t *next)
{
    const int64_t since = silent_since(member);
    if (member_has_ended(member) || since == 0)
        return MEMBER_SAME;
    if (now - since >= silence) {
        ls_take(LS_TAKES_MEMBER_SILENT);
        return member_is_lost(member, LS_ETIMEDOUT);
    }
    if (since + silence < *next)
        *next = since + silence;
    if (member->via != NULL || member->probe != PROBE_NONE ||
        (member->away_at == 0 && member->n_rival == 0))
        return MEMBER_SAME;
    if (member->probe_at <= now)
        member->probe = PROBE_WANTED;
    else if (member->probe_at < *next)
        *next = member->probe_at;
    return MEMBER_SAME;
}

/* What was heard after that is not of a time to come. */
static int64_t excused(int64_t at, int64_t late, int64_t now)
{
    return at == 0 ? 0 : at + late < now ? at + late : now;
}

void member_excuse(struct member *member, int64_t late, int64_t now)
{
    member->heard_at = excused(member->heard_at, late, now);
    member->away_at = excused(member->away_at, late, now);
    member->present_at = excused(member->present_at, late, now);
}
