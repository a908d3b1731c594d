/* What others say: over whose link, of themselves and of each other; and what
 * this node says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "membership_inside.h"

/* ---- over whose link --------------------------------------------------- */

void membership_remind(struct membership *m, struct member *member, int64_t now)
{
    if (now - member->reminded_at < m->options.heartbeat_ns)
        return;
    member->reminded_at = now;
    m->announce = true;
}

/* Whether a life that speaks over the link of a member has taken the place of
 * the one that is known. What was under way from a life before it comes over
 * that link too: so not while that one is present, and the other is not. */
static bool succeeds(const struct member *member, uint64_t incarnation)
{
    return member->n_present == 0 ||
           (member->n_rival != 0 && member->rival->incarnation == incarnation);
}

/* The record that a life belongs to, which another life may have now. */
static int settle_life(struct membership *m, struct member *member,
                       uint64_t incarnation, bool own_link, int64_t now)
{
    if (member->incarnation == incarnation)
        return LS_OK;
    if (member_ended_as(member, incarnation)) {
        membership_remind(m, member, now);
        return ls_error(LS_ENOENT, "this life of node %u has ended",
                        member->id);
    }
    if (member_is_alive(member) &&
        (!own_link || !succeeds(member, incarnation)))
        return ls_error(LS_EEXIST, "node id %u is taken by %s", member->id,
                        member->endpoint);
    /* One that was only seen, and has gone, has ended too: what is still under
     * way from it must not end the life that came after it. */
    if (member_is_alive(member) || (own_link && !member_has_ended(member) &&
                                    succeeds(member, incarnation)))
        membership_replace(m, member, incarnation, now);
    else
        membership_begin_life(m, member, incarnation);
    return LS_OK;
}

/* Another answers where one that is away was: who has its address listens there
 * in its place, so it has gone, as when nobody does. */
static void note_replaced(struct membership *m, const struct answer *answer,
                          int64_t now)
{
    struct member *member = membership_find(m, answer->as);
    if (member != NULL && member->via == NULL && member->away_at != 0 &&
        strcmp(member->endpoint, answer->endpoint) == 0)
        membership_apply(m, member, member_is_lost(member, LS_ELOST), now);
}

int membership_answers(struct membership *m, const struct answer *answer,
                       int64_t now, struct member **out)
{
    if (answer->id == m->options.id && answer->incarnation == m->incarnation)
        return ls_error(LS_ESTATE, "it is this node itself");
    if (answer->expected && answer->id != answer->as) {
        note_replaced(m, answer, now);
        return ls_error(LS_EPROTO,
                        "node %u answers there, not node %u: see `advertise` "
                        "of that one",
                        answer->id, answer->as);
    }
    if (answer->id == m->options.id)
        return membership_own_id(m, answer->incarnation, answer->endpoint);
    struct member *member = membership_note(m, answer->id, answer->incarnation);
    if (member == NULL && (member = membership_find(m, answer->id)) == NULL)
        return ls_error(LS_ELIMIT, "no room to note node %u", answer->id);
    const int status = settle_life(m, member, answer->incarnation,
                                   member == answer->member, now);
    if (status == LS_OK)
        *out = member;
    return status;
}

/* What another than its hub has shown of a leaf was never so. */
static void leave_false_hub(struct membership *m, struct member *leaf,
                            struct member *hub, int64_t now)
{
    unsigned n = 0;
    for (size_t i = 0; i < MEMBERSHIP_SHOWINGS; i++) {
        struct showing *showing = &leaf->showings[i];
        if (!member_shows(hub, showing->link))
            *showing = (struct showing){.n = 0};
        n += showing->n;
    }
    leaf->via = n != 0 && leaf != hub ? hub : NULL;
    if (n != 0 || leaf->n_present == 0) {
        leaf->n_present = n;
        membership_settle(m, leaf, now);
        return;
    }
    leaf->n_present = 1;
    membership_apply(m, leaf, member_disappears(leaf, now), now);
}

void membership_attached(struct membership *m, struct member *member,
                         int64_t now)
{
    if (m->has_hub && m->hub == member->id)
        return;
    m->has_hub = true;
    m->hub = member->id;
    for (size_t i = 0; i < m->n && membership_is_leaf(m); i++)
        if (m->at[i]->via != NULL && m->at[i]->via != member)
            leave_false_hub(m, m->at[i], member, now);
}

/* Who sent what its hub passed on. The presence of who sent it comes over
 * another connection, and maybe later. */
static int find_relayed(struct membership *m, const struct member *hub,
                        uint32_t origin, uint64_t incarnation,
                        struct member **out, bool *early)
{
    struct member *member = membership_find(m, origin);
    if (!membership_is_leaf(m) || hub->via != NULL)
        return ls_error(LS_EPROTO, "node %u sends in the name of node %u",
                        hub->id, origin);
    if (member != NULL && member->via == hub &&
        member->incarnation == incarnation) {
        *out = member;
        *early = member->state == LS_MEMBER_SEEN;
        return LS_OK;
    }
    if (member != NULL && member_ended_as(member, incarnation))
        return ls_error(LS_ENOENT, "this life of node %u has ended", origin);
    *early = true;
    return LS_OK;
}

int membership_origin(struct membership *m, struct member *peer,
                      uint32_t origin, uint64_t incarnation, int64_t now,
                      struct member **out, bool *early)
{
    *early = false;
    *out = NULL;
    if (origin == m->options.id) /* what a hub relays comes back */
        return ls_error(LS_ENOENT, "it is of this node itself");
    if (origin != peer->id)
        return find_relayed(m, peer, origin, incarnation, out, early);
    const int status = settle_life(m, peer, incarnation, true, now);
    if (status == LS_OK)
        *out = peer;
    return status;
}

/* ---- of themselves ----------------------------------------------------- */

int membership_heartbeat(struct member *from, uint64_t number)
{
    if (number <= from->heartbeats)
        return ls_error(LS_ENOENT, "overtaken by a newer one");
    from->heartbeats = number;
    member_has_none(from);
    return LS_OK;
}

void membership_farewell(struct membership *m, struct member *member,
                         int reason, int64_t now)
{
    membership_apply(m, member, member_leaves(member, reason), now);
}

/* ---- of each other ----------------------------------------------------- */

static bool is_there(const struct wire_member *listed)
{
    return listed->state == WIRE_MEMBER_PRESENT ||
           listed->state == WIRE_MEMBER_READY;
}

/* What its hub says of another leaf. */
static void read_relayed(struct membership *m, const struct member *hub,
                         const struct wire_member *listed, int64_t now)
{
    char text[256];
    struct member *member = membership_find(m, listed->id);
    if (member == NULL || member->via != hub ||
        member->incarnation != listed->incarnation)
        return;
    if (listed->state == WIRE_MEMBER_LEFT) {
        membership_apply(m, member, member_leaves(member, listed->reason), now);
    } else if (listed->state == WIRE_MEMBER_LOST) {
        membership_apply(m, member, member_is_lost(member, listed->reason),
                         now);
    } else if (member->state == LS_MEMBER_LOST && member->n_present != 0) {
        snprintf(text, sizeof text,
                 "node %u had declared node %u lost, which its hub, node %u, "
                 "has as a member",
                 m->options.id, member->id, hub->id);
        membership_want_rejoin(m, text);
    }
}

/* Whom it has as a member, in the life that this node knows. Without memory it
 * has one less. */
static void note_listed(struct membership *m, struct member *from,
                        const struct wire_member *listed)
{
    const struct member *of = membership_find(m, listed->id);
    if (of == NULL || of->incarnation != listed->incarnation)
        return;
    const size_t word = of->slot / 64;
    if (word >= from->n_has) {
        const size_t n = m->n / 64 + 1 > word + 1 ? m->n / 64 + 1 : word + 1;
        uint64_t *grown = realloc(from->has, n * sizeof *grown);
        if (grown == NULL)
            return;
        memset(grown + from->n_has, 0, (n - from->n_has) * sizeof *grown);
        from->has = grown;
        from->n_has = n;
    }
    from->has[word] |= 1ull << of->slot % 64;
}

/* Whether this is somebody whom this node should dial: unknown, or known but
 * not connected, and not one that has said farewell here; or one that has ended
 * and begun anew, maybe elsewhere. */
static bool is_news(const struct membership *m,
                    const struct wire_member *listed, int64_t now)
{
    if (!is_there(listed) || listed->endpoint[0] == '\0' || m->leaving)
        return false;
    const struct member *known = membership_find(m, listed->id);
    if (known == NULL)
        return true;
    if (member_has_ended(known) && known->incarnation != listed->incarnation)
        return !member_ended_as(known, listed->incarnation);
    /* Who was lost but now may still be listed by some. */
    return !known->linked && known->state != LS_MEMBER_LEFT &&
           (known->state != LS_MEMBER_LOST ||
            now - known->ended_at >= m->options.silence_ns);
}

void membership_listed(struct membership *m, struct member *from,
                       const struct wire_member *listed, int64_t now)
{
    if (listed->id == m->options.id) {
        if (listed->incarnation == m->incarnation) {
            from->lists_me = is_there(listed);
            from->ready_there = listed->state == WIRE_MEMBER_READY;
        }
        return;
    }
    if (m->options.topology == LS_TOPOLOGY_STAR) {
        if (membership_is_leaf(m) && from->via == NULL)
            read_relayed(m, from, listed, now);
        return;
    }
    /* Only members are believed about others; and those that were, about where
     * others are: see verdicts.c. */
    if (!from->was_ready || from->state == LS_MEMBER_LEFT)
        return;
    if (from->state == LS_MEMBER_READY && listed->state == WIRE_MEMBER_READY)
        note_listed(m, from, listed);
    if (m->options.topology == LS_TOPOLOGY_MESH && is_news(m, listed, now))
        (void)m->ops->dial(m->self, NULL, listed->id, listed->endpoint);
}

void membership_list_ends(struct membership *m, struct member *from,
                          bool listed_me, int64_t now)
{
    from->lists_me = from->lists_me && listed_me;
    from->ready_there = from->ready_there && listed_me;
    membership_settle(m, from, now);
}

/* ---- what this node says ----------------------------------------------- */

/* A hub also says who has ended, for leaves that missed it. */
static bool is_obituary(const struct membership *m, const struct member *member,
                        int64_t now)
{
    return m->options.hub && member_has_ended(member) && member->was_ready &&
           now - member->ended_at < 2 * m->options.silence_ns;
}

bool membership_lists(const struct membership *m, const struct member *member,
                      int64_t now)
{
    return member->via == NULL &&
           (member_hears(member) || is_obituary(m, member, now));
}

enum wire_member_state membership_lists_as(const struct member *member)
{
    return member->state == LS_MEMBER_LEFT   ? WIRE_MEMBER_LEFT
           : member->state == LS_MEMBER_LOST ? WIRE_MEMBER_LOST
           : member_is_here(member)          ? WIRE_MEMBER_READY
                                             : WIRE_MEMBER_PRESENT;
}

static void tell(const struct membership *m, const struct member *member,
                 int reason, uint64_t subject, const char *text)
{
    const bool silent = member->reason == LS_ETIMEDOUT;
    m->ops->tell(
        m->self,
        &(struct verdict){
            .to = member->id,
            .reason = reason,
            .subject = subject,
            .members = reason == LS_ELIMIT
                           ? m->options.world_max
                           : (uint32_t)membership_n_ready(m) + 1,
            .silence_ms =
                silent ? (uint32_t)(m->options.silence_ns / LS_NS_PER_MS) : 0,
            .text = text});
}

/* Whether one that is away was where this one is: it is gone, as soon as that
 * is proved, or silent; and leaves its place. */
static bool may_inherit(const struct membership *m, const struct member *member)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->at[i]->away_at != 0 && m->at[i]->via == NULL &&
            strcmp(m->at[i]->endpoint, member->endpoint) == 0)
            return true;
    return false;
}

void membership_tell(struct membership *m, struct member *member)
{
    if (member->n_present == 0 || member->via != NULL || m->leaving)
        return;
    if (member->state == LS_MEMBER_LOST)
        tell(m, member, LS_ELOST, member->incarnation, "");
    else if (member->barred && !membership_puts_off(m, member) &&
             !may_inherit(m, member))
        tell(m, member, LS_ELIMIT, member->incarnation, "");
    else if (member->late)
        tell(m, member, LS_EUNREACHABLE, member->incarnation, "");
    /* The one that was there stays, once it has proved to be alive. */
    if (member->n_rival != 0 && member->heard_at > member->rival_at)
        tell(m, member, LS_EEXIST, member->rival->incarnation,
             member->endpoint);
}

void membership_announced(struct membership *m, int64_t now)
{
    for (size_t i = 0; i < m->n; i++) {
        struct member *member = m->at[i];
        if (member->via != NULL)
            continue;
        membership_tell(m, member);
        if (!member_hears(member))
            continue;
        member->announced = true;
        membership_settle(m, member, now);
    }
}

/* ---- another life ------------------------------------------------------ */

/* As if this node had just met it; but the connections are there. */
static void meet_again(struct membership *m, struct member *member)
{
    struct showing showings[MEMBERSHIP_SHOWINGS];
    const unsigned n_present = member->n_present;
    const int64_t present_at = member->present_at;
    const bool barred = member->barred;
    struct member *via = member->via;
    memcpy(showings, member->showings, sizeof showings);
    if (member->state == LS_MEMBER_READY)
        membership_apply(m, member, member_is_lost(member, LS_ELOST), 0);
    /* The lives that it had before this one may still be heard of. */
    for (size_t i = 0; i < MEMBERSHIP_LIVES; i++)
        if (member->ended[i].incarnation == member->incarnation)
            member->ended[i].incarnation = 0;
    membership_begin_life(m, member, member->incarnation);
    memcpy(member->showings, showings, sizeof showings);
    member->n_present = n_present;
    member->present_at = present_at;
    member->barred = barred;
    member->via = via;
}

void membership_renew(struct membership *m, uint64_t incarnation, int64_t now)
{
    m->incarnation = incarnation;
    m->rejoins = false;
    m->renewing = true;
    for (size_t i = 0; i < m->n; i++)
        if (m->at[i]->state != LS_MEMBER_LEFT)
            meet_again(m, m->at[i]);
    m->renewing = false;
    for (size_t i = 0; i < m->n; i++) {
        membership_admit_rival(m, m->at[i], now);
        membership_settle(m, m->at[i], now);
    }
    m->version++;
    m->announce = true;
}
