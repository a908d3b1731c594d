/* The table of all members, and what follows when one of them changes. */
#include "membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "membership_inside.h"

void membership_init(struct membership *m,
                     const struct membership_options *options,
                     const struct membership_ops *ops, void *self)
{
    *m = (struct membership){
        .options = *options, .ops = ops, .self = self, .version = 1};
}

void membership_fini(struct membership *m,
                     void (*fn)(void *self, struct member *member))
{
    for (size_t i = 0; i < m->n; i++) {
        fn(m->self, m->at[i]);
        free(m->at[i]->has);
        free(m->at[i]->rival);
        free(m->at[i]->texts);
        free(m->at[i]);
    }
    free(m->at);
    m->at = NULL;
    m->n = m->capacity = 0;
}

void membership_begin(struct membership *m, uint64_t incarnation)
{
    m->incarnation = incarnation;
}

void membership_fail(struct membership *m, int status, const char *text)
{
    if (m->fatal != LS_OK)
        return;
    m->fatal = status;
    snprintf(m->fatal_text, sizeof m->fatal_text, "%s", text);
}

/* ---- the table --------------------------------------------------------- */

/* Where a member of this id stands, or would: they are ordered by id, since
 * every heartbeat looks for everyone. */
static size_t place(const struct membership *m, uint32_t id)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (m->at[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct member *membership_find(const struct membership *m, uint32_t id)
{
    const size_t at = place(m, id);
    return at < m->n && m->at[at]->id == id ? m->at[at] : NULL;
}

void membership_begin_life(struct membership *m, struct member *member,
                           uint64_t incarnation)
{
    member_begin(member, incarnation);
    m->version++;
    m->ops->began(m->self, member);
}

/* Nobody has who had this slot. */
static void forget(struct membership *m, size_t slot)
{
    for (size_t i = 0; i < m->n; i++)
        if (slot / 64 < m->at[i]->n_has)
            m->at[i]->has[slot / 64] &= ~(1ull << slot % 64);
}

/* One that was never ready, and is not there, makes room for another: so those
 * who only knock cannot fill the table. */
static struct member *recycle(struct membership *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct member *member = m->at[i];
        if (member->was_ready || member_is_alive(member) || member->linked ||
            member->n_present != 0 || member->n_rival != 0 ||
            member->n_ended != 0)
            continue;
        memmove(&m->at[i], &m->at[i + 1],
                (m->n - i - 1) * sizeof(struct member *));
        m->n--;
        forget(m, member->slot);
        return member;
    }
    return NULL;
}

static bool grow(struct membership *m)
{
    if (m->n < m->capacity)
        return true;
    const size_t capacity = m->capacity == 0 ? 8 : 2 * m->capacity;
    struct member **grown = realloc(m->at, capacity * sizeof(*grown));
    if (grown == NULL)
        return false;
    m->at = grown;
    m->capacity = capacity;
    return true;
}

static struct member *add(struct membership *m, uint32_t id)
{
    const size_t most = m->options.world_max < MEMBERSHIP_MAX / 2
                            ? 2 * (size_t)m->options.world_max + 64
                            : MEMBERSHIP_MAX;
    struct member *member = m->n >= most ? recycle(m) : NULL;
    if (member == NULL && (m->n == MEMBERSHIP_MAX || !grow(m)))
        return NULL;
    if (member == NULL) {
        member = calloc(1, m->options.member_size);
        if (member == NULL)
            return NULL;
        member->slot = m->n;
    }
    member->id = id;
    member_no_texts(member);
    const size_t at = place(m, id);
    memmove(&m->at[at + 1], &m->at[at], (m->n - at) * sizeof(struct member *));
    m->at[at] = member;
    m->n++;
    return member;
}

struct member *membership_note(struct membership *m, uint32_t id,
                               uint64_t incarnation)
{
    struct member *member = membership_find(m, id);
    if (member != NULL && member->incarnation == incarnation)
        return member;
    if (member != NULL &&
        (member_is_alive(member) || member_ended_as(member, incarnation)))
        return NULL;
    if (member == NULL && (member = add(m, id)) == NULL)
        return NULL;
    membership_begin_life(m, member, incarnation);
    return member;
}

/* ---- what follows from a change ---------------------------------------- */

bool membership_has(const struct member *member)
{
    return member->state == LS_MEMBER_READY ||
           (member->state == LS_MEMBER_LEFT && member->reason == LS_OK);
}

bool membership_has_both_ways(const struct member *member)
{
    const struct member *direct = member->via != NULL ? member->via : member;
    /* Who left in peace says no more whether this node was ready there. */
    return membership_has(member) &&
           (member->state == LS_MEMBER_LEFT || direct->ready_there ||
            (direct->state == LS_MEMBER_LEFT && membership_has(direct)));
}

static size_t count(const struct membership *m,
                    bool (*counts)(const struct member *))
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += counts(m->at[i]) ? 1 : 0;
    return n;
}

size_t membership_n_ready(const struct membership *m)
{
    return count(m, membership_has);
}

size_t membership_n_both_ways(const struct membership *m)
{
    return count(m, membership_has_both_ways);
}

/* Through a hub that is ready all are that it has shown; through one that is
 * lost nobody is reached any more. */
static void follow_hub(struct membership *m, const struct member *hub,
                       int64_t now)
{
    for (size_t i = 0; i < m->n; i++) {
        struct member *leaf = m->at[i];
        if (leaf->via != hub)
            continue;
        if (hub->state == LS_MEMBER_READY)
            membership_apply(m, leaf, member_settle(leaf), now);
        else if (hub->state == LS_MEMBER_LOST)
            membership_apply(m, leaf, member_is_lost(leaf, LS_ELOST), now);
    }
}

/* Its leaves had no connection but that one. */
static void return_leaves(struct membership *m, const struct member *hub,
                          int64_t now)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->at[i]->via == hub && m->at[i]->away_at != 0)
            m->at[i]->away_at = now;
}

void membership_apply(struct membership *m, struct member *member,
                      enum member_change change, int64_t now)
{
    if (change == MEMBER_SAME)
        return;
    const bool ended = change == MEMBER_ENDED || change == MEMBER_FORGOTTEN;
    m->version++;
    if (change != MEMBER_AWAY)
        m->announce = true;
    if (ended)
        member->ended_at = now;
    if (change == MEMBER_RETURNED)
        return_leaves(m, member, now);
    m->ops->changed(m->self, member, change);
    if (m->renewing)
        return;
    /* Before anything that is published now, and is not for it any more. */
    if (ended && member->state == LS_MEMBER_LOST)
        membership_tell(m, member);
    if (change == MEMBER_BECAME_READY || ended)
        follow_hub(m, member, now);
    if (ended) {
        membership_admit_rival(m, member, now);
        membership_admit_barred(m, now);
    }
}

/* ---- time -------------------------------------------------------------- */

/* Since it looked last: it does so with each heartbeat. */
static int64_t own_stall(const struct membership *m, int64_t now)
{
    const int64_t late = now - m->looked_at;
    return m->looked_at != 0 && late > 4 * m->options.heartbeat_ns ? late : 0;
}

int64_t membership_stood_ns(const struct membership *m, int64_t now)
{
    return m->stood_ns + own_stall(m, now);
}

/* After a stop of our own we must not accuse the others of silence. */
static void excuse_own_stall(struct membership *m, int64_t now)
{
    const int64_t late = own_stall(m, now);
    m->looked_at = now;
    if (late == 0)
        return;
    ls_take(LS_TAKES_MEMBER_EXCUSED);
    m->stood_ns += late;
    for (size_t i = 0; i < m->n; i++)
        member_excuse(m->at[i], late, now);
}

/* Who does not become ready gives its place to others, and is told why. */
static void note_late(struct membership *m, struct member *member, int64_t now,
                      int64_t *next)
{
    const int64_t due =
        member->present_at + MEMBERSHIP_PATIENCE * m->options.silence_ns;
    if (member->state != LS_MEMBER_SEEN || member->n_present == 0 ||
        member->late || member->barred || member->via != NULL)
        return;
    if (due > now) {
        *next = due < *next ? due : *next;
        return;
    }
    ls_take(LS_TAKES_MEMBER_LATE);
    member->late = true;
    m->announce = true;
    membership_admit_barred(m, now);
}

int64_t membership_tick(struct membership *m, int64_t now)
{
    int64_t next = LS_FOREVER;
    excuse_own_stall(m, now);
    membership_take_up(m, now);
    for (size_t i = 0; i < m->n; i++) {
        struct member *member = m->at[i];
        note_late(m, member, now, &next);
        if (m->leaving && member->away_at == 0)
            continue;
        membership_apply(m, member,
                         member_tick(member, now, m->options.silence_ns, &next),
                         now);
        m->probes_wanted = m->probes_wanted || member->probe == PROBE_WANTED;
    }
    return next;
}

void membership_probed(struct membership *m, const char *endpoint, bool refuses,
                       int64_t now)
{
    char asked[LS_ENDPOINT_MAX + 1]; /* a member's own goes with its life */
    (void)snprintf(asked, sizeof asked, "%s", endpoint);
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->at[i]->endpoint, asked) == 0)
            membership_apply(
                m, m->at[i],
                member_probed(m->at[i], refuses, now, m->options.heartbeat_ns),
                now);
}
