/* The life of one member, as this node sees it: what happens to it is put in,
 * what becomes of it comes out. No I/O, no clock, no lock.
 *
 *   SEEN --present, heard, and it lists this node--> READY
 *   READY --its presence is gone--> READY, away --it is back--> READY
 *   READY --farewell--> LEFT
 *   READY --silent for too long, or nobody listens at its address--> LOST
 *
 * A broken connection is no death: who is away has the time of silence to come
 * back, unless its host says that its process is gone. LEFT and LOST are
 * final: the same id may come again as a new incarnation only. */
#include "bus.h"

#define PROBE_FIRST_NS LS_NS_PER_MS

void member_begin(struct peer *peer, uint64_t incarnation)
{
    peer->incarnation = incarnation;
    peer->state = LS_MEMBER_SEEN;
    peer->reason = LS_OK;
    peer->n_present = 0;
    peer->via = NULL;
    peer->lists_me = false;
    peer->barred = false;
    peer->away_at = peer->ended_at = 0;
    peer->probe = PROBE_NONE;
    peer->probe_at = 0;
    peer->heartbeats = 0;
    peer->heard_at = 0;
}

bool member_has_ended(const struct peer *peer)
{
    return peer->state == LS_MEMBER_LEFT || peer->state == LS_MEMBER_LOST;
}

bool member_hears(const struct peer *peer)
{
    return peer->n_present != 0 && !peer->barred && !member_has_ended(peer);
}

bool member_is_alive(const struct peer *peer)
{
    return !member_has_ended(peer) &&
           (peer->n_present != 0 || peer->state == LS_MEMBER_READY ||
            peer->heard_at != 0) &&
           !peer->barred;
}

enum member_change member_settle(struct peer *peer)
{
    const bool both =
        peer->via != NULL || (peer->lists_me && peer->heard_at != 0);
    if (!member_hears(peer) || !both || peer->state == LS_MEMBER_READY)
        return MEMBER_SAME;
    peer->state = LS_MEMBER_READY;
    return MEMBER_BECAME_READY;
}

enum member_change member_appears(struct peer *peer)
{
    if (peer->n_present++ != 0 || peer->away_at == 0)
        return MEMBER_SAME;
    peer->away_at = 0;
    return MEMBER_RETURNED;
}

void member_ask(struct peer *peer, int64_t now)
{
    peer->probe_at = now;
    peer->probe_every = PROBE_FIRST_NS / 2;
}

enum member_change member_disappears(struct peer *peer, int64_t now)
{
    if (peer->n_present == 0 || --peer->n_present != 0 ||
        member_has_ended(peer))
        return MEMBER_SAME;
    peer->lists_me = false;
    if (peer->state != LS_MEMBER_READY) {
        peer->heard_at = 0; /* as if it had never been */
        return MEMBER_SAME;
    }
    peer->away_at = now;
    member_ask(peer, now);
    return MEMBER_AWAY;
}

static enum member_change end(struct peer *peer, enum ls_member_state state,
                              int reason)
{
    const bool was_ready = peer->state == LS_MEMBER_READY;
    if (member_has_ended(peer))
        return MEMBER_SAME;
    peer->state = state;
    peer->reason = reason;
    peer->lists_me = false;
    peer->away_at = 0;
    peer->probe = PROBE_NONE;
    return was_ready ? MEMBER_ENDED : MEMBER_FORGOTTEN;
}

enum member_change member_leaves(struct peer *peer, int reason)
{
    return end(peer, LS_MEMBER_LEFT, reason);
}

enum member_change member_is_lost(struct peer *peer, int reason)
{
    return end(peer, LS_MEMBER_LOST, reason);
}

/* A process that dies closes its endpoint a moment after its connections,
 * maybe: one that listens is soon asked again, and then less and less. */
enum member_change member_probed(struct peer *peer, bool refuses, int64_t now,
                                 int64_t heartbeat)
{
    const bool asked = peer->probe == PROBE_ASKED;
    peer->probe = PROBE_NONE;
    peer->probe_every *= 2;
    if (peer->probe_every > heartbeat)
        peer->probe_every = heartbeat;
    peer->probe_at = now + peer->probe_every;
    if (!asked || !refuses || (peer->away_at == 0 && peer->n_rival == 0))
        return MEMBER_SAME; /* it came back meanwhile */
    return member_is_lost(peer, LS_ELOST);
}

/* Since when nothing speaks for it; 0: it is not to be judged. */
static int64_t silent_since(const struct peer *peer)
{
    if (peer->via != NULL) /* its hub judges; this is for a hub that fails to */
        return peer->via->away_at == 0 ? peer->away_at : 0;
    if (peer->away_at != 0)
        return peer->heard_at < peer->away_at ? peer->heard_at : peer->away_at;
    return peer->state == LS_MEMBER_READY || peer->n_rival != 0 ? peer->heard_at
                                                                : 0;
}

enum member_change member_tick(struct peer *peer, int64_t now, int64_t silence,
                               int64_t *next)
{
    const int64_t since = silent_since(peer);
    if (member_has_ended(peer) || since == 0)
        return MEMBER_SAME;
    if (now - since >= silence)
        return member_is_lost(peer, LS_ETIMEDOUT);
    if (since + silence < *next)
        *next = since + silence;
    if (peer->via != NULL || peer->probe != PROBE_NONE ||
        (peer->away_at == 0 && peer->n_rival == 0))
        return MEMBER_SAME;
    if (peer->probe_at <= now)
        peer->probe = PROBE_WANTED;
    else if (peer->probe_at < *next)
        *next = peer->probe_at;
    return MEMBER_SAME;
}

void member_excuse(struct peer *peer, int64_t late)
{
    if (peer->heard_at != 0)
        peer->heard_at += late;
    if (peer->away_at != 0)
        peer->away_at += late;
}
