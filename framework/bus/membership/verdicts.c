/* Who has to yield when one has declared another lost that lives.
 *
 * LOST is final for an incarnation. Whoever was declared lost and is heard
 * again (a partition has healed, a process was stopped and goes on) is told so,
 * with every heartbeat, until one of the two is a new incarnation. It becomes
 * one in place: under the same id and address it is a member like any that has
 * just started. Which of the two it is, each decides by itself, from what it
 * sees: those who are on its own side, and those on the other.
 *
 * On the other side are all that dispute this node's membership, or are lost
 * here and dispute that. Of the members here, one is on the side of who was
 * declared lost if it has that one as a member. The smaller side yields; of
 * equals, the one without the smallest id. So a part that was cut off comes
 * back to the rest, one that was stopped to those who missed it, and one that
 * accuses falsely is believed by nobody whom others have as a member.
 *
 * What one says of its own number is not believed: one that lies could have
 * everybody rejoin. So those in a dispute must see each other's members: of one
 * that is lost, but there, the addresses that it speaks of are dialled too.
 *
 * Both may be wrong for a moment, and then both yield; a new incarnation is
 * accused by nobody, so each time there are fewer accusations, and in quiet
 * times there are no new ones.
 *
 * A hub never yields, since all that a leaf knows of others goes through it: a
 * leaf that accuses its hub is accused in return. Who is a member the hub alone
 * says: a leaf that has declared another lost, with its hub or because that was
 * slower to find a new hub, and sees it there again, rejoins. Its hub is who
 * answers at the address that its user gave: to others it yields as in a mesh,
 * or whoever is present at it could end its lives. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coverage.h"
#include "membership_inside.h"

void membership_want_rejoin(struct membership *m, const char *text)
{
    m->rejoins = true;
    snprintf(m->rejoin_text, sizeof m->rejoin_text, "%s", text);
}

/* ---- two sides --------------------------------------------------------- */

struct side {
    uint32_t n, least; /* the smallest id on it */
};

static void join_side(struct side *side, uint32_t id)
{
    side->n++;
    if (id < side->least)
        side->least = id;
}

static bool has(const struct member *member, const struct member *of)
{
    const size_t word = of->slot / 64;
    return word < member->n_has &&
           (member->has[word] >> of->slot % 64 & 1) != 0;
}

static bool disputes(const struct membership *m, const struct member *member,
                     int64_t now)
{
    return member->disputed_at != 0 && member->n_present != 0 &&
           !member->barred && now - member->disputed_at < m->options.silence_ns;
}

/* Whether this node is on the smaller side of its dispute with `other`. */
static bool yields(const struct membership *m, const struct member *other,
                   int64_t now)
{
    struct side mine = {0, UINT32_MAX}, theirs = {0, UINT32_MAX};
    join_side(&mine, m->options.id);
    for (size_t i = 0; i < m->n; i++) {
        const struct member *member = m->at[i];
        if (disputes(m, member, now))
            join_side(&theirs, member->id);
        else if (member->state != LS_MEMBER_READY)
            continue;
        else if (other->state == LS_MEMBER_LOST ? !has(member, other)
                                                : member->ready_there)
            join_side(&mine, member->id);
        else if (other->state == LS_MEMBER_LOST)
            join_side(&theirs, member->id);
    }
    return mine.n < theirs.n ||
           (mine.n == theirs.n && theirs.least < mine.least);
}

/* ---- what is said of this node ----------------------------------------- */

static void yield(struct membership *m, const struct member *from,
                  const struct verdict *verdict)
{
    char text[256];
    if (verdict->reason == LS_ESTATE)
        snprintf(text, sizeof text,
                 "node %u had declared node %u lost, which the others have as "
                 "a member",
                 m->options.id, from->id);
    else if (verdict->silence_ms != 0)
        snprintf(text, sizeof text,
                 "node %u was declared lost by node %u after %.1f s of silence",
                 m->options.id, from->id, verdict->silence_ms / 1000.0);
    else
        snprintf(text, sizeof text,
                 "node %u was declared lost by node %u when its connection "
                 "closed",
                 m->options.id, from->id);
    membership_want_rejoin(m, text);
}

/* It has ended this node, or says that it lives although this node has ended
 * it. */
static int told_lost(struct membership *m, struct member *from,
                     const struct verdict *verdict, bool attached, int64_t now)
{
    const bool of_its_hub = membership_is_leaf(m) && attached;
    const bool member = from->was_ready;
    from->disputed_at = now;
    from->ready_there = false;
    if (m->options.hub && verdict->reason == LS_ELOST) {
        ls_take(LS_TAKES_MEMBER_ACCUSES);
        membership_apply(m, from, member_is_lost(from, LS_ESTATE), now);
        m->announce = true;
    } else if (!m->options.hub && (of_its_hub || yields(m, from, now))) {
        ls_take(LS_TAKES_MEMBER_YIELDS);
        yield(m, from, verdict);
    } else if (verdict->reason == LS_ELOST && from->state != LS_MEMBER_LOST) {
        ls_take(LS_TAKES_MEMBER_DISPUTES);
        m->ops->tell(m->self, &(struct verdict){.to = from->id,
                                                .reason = LS_ESTATE,
                                                .subject = from->incarnation,
                                                .text = ""});
    }
    return member
               ? LS_OK
               : ls_error(LS_EPROTO, "a verdict of one that is not a member");
}

/* ---- while it joins ---------------------------------------------------- */

static void told_taken(struct membership *m, const struct member *from,
                       const struct verdict *verdict)
{
    (void)ls_error(
        LS_EEXIST,
        "node id %u is taken: %s has it, says node %u, and so "
        "has %s; give each node its own id",
        m->options.id, verdict->text[0] != '\0' ? verdict->text : "another",
        from != NULL ? from->id : m->options.id, m->options.endpoint);
    membership_fail(m, LS_EEXIST, ls_error_text());
}

/* That it cannot, or why it does not get on. */
static void told_joining(struct membership *m, const struct member *from,
                         const struct verdict *verdict)
{
    switch (verdict->reason) {
    case LS_EEXIST:
        told_taken(m, from, verdict);
        break;
    case LS_ELIMIT:
        (void)ls_error(LS_ELIMIT,
                       "node %u: the world is full: node %u counts %" PRIu32
                       " members already; see world_max",
                       m->options.id, from->id, verdict->members);
        membership_fail(m, LS_ELIMIT, ls_error_text());
        break;
    case LS_EMISMATCH:
        (void)ls_error(
            LS_EMISMATCH,
            "node %u: node %u does not let it in with role \"%s\" "
            "and labels \"%s\": the job, or the certificate of node "
            "%u there, does not give it these; start node %u as what "
            "they say, or copy the right node-%u.cert there",
            m->options.id, from->id, m->options.role, m->options.labels,
            m->options.id, m->options.id, m->options.id);
        membership_fail(m, LS_EMISMATCH, ls_error_text());
        break;
    case LS_EUNREACHABLE:
        snprintf(m->hint, sizeof m->hint,
                 "node %u does not reach this node at %.128s: see `advertise`"
                 "%s",
                 from->id, m->options.endpoint,
                 membership_is_leaf(m) ? "; or it is not a hub, but a leaf"
                                       : "");
        break;
    default:
        break;
    }
}

/* Whether the world of this node cannot be formed without it. */
static bool is_awaited(const struct membership *m, const struct member *member)
{
    for (uint32_t i = 0; m->options.members != NULL && i < m->options.n_members;
         i++)
        if (m->options.members[i] == member->id)
            return true;
    return false;
}

int membership_verdict(struct membership *m, struct member *from,
                       const struct verdict *verdict, bool attached,
                       int64_t now)
{
    const bool member = from != NULL && from->was_ready;
    if (verdict->subject != m->incarnation)
        return LS_OK; /* of another life */
    if (verdict->reason != LS_ELOST && verdict->reason != LS_ESTATE) {
        if (m->formed || (from == NULL && verdict->reason != LS_EEXIST))
            return LS_OK;
        if (!attached && !member && (from == NULL || !is_awaited(m, from)))
            return ls_error(LS_EPROTO, "a verdict of one that is not a member");
        told_joining(m, from, verdict);
        return LS_OK;
    }
    if (from == NULL || from->n_present == 0 ||
        (verdict->reason == LS_ESTATE && from->state != LS_MEMBER_LOST))
        return ls_error(LS_EPROTO, "a verdict of one that is not a member");
    return told_lost(m, from, verdict, attached, now);
}
