/* Who is there, and what becomes of an epoch when somebody is lost: see the
 * design notes in barrier_epoch.c. */
#include <inttypes.h>
#include <stdio.h>

#include "barrier_epoch_inside.h"
#include "coverage.h"

bool ls_epoch_is_direct(const struct ls_epoch *epoch)
{
    return epoch->tree.way == LS_EPOCH_DIRECT;
}

bool ls_epoch_is_under_way(const struct ls_epoch *epoch)
{
    return epoch->phase != LS_EPOCH_NONE;
}

struct ls_epoch_peer *ls_epoch_add_peer(struct ls_epoch *epoch, uint32_t id,
                                        uint64_t incarnation)
{
    if (ls_outbox_reserve(epoch, epoch->peers.n + 1) != LS_OK)
        return NULL;
    struct ls_epoch_peer *peer =
        ls_epoch_peers_add(&epoch->peers, id, incarnation);
    if (peer != NULL)
        ls_tree_shift(epoch, (size_t)(peer - epoch->peers.items));
    if (peer != NULL)
        peer->since = epoch->epoch + (ls_epoch_is_under_way(epoch) ? 1 : 0);
    return peer;
}

int ls_epoch_joined(struct ls_epoch *epoch, int64_t now, uint32_t id,
                    uint64_t incarnation, uint64_t host)
{
    epoch->now = now;
    const struct ls_epoch_peer *old = ls_epoch_peers_joined(&epoch->peers, id);
    if (old != NULL && old->incarnation != incarnation)
        ls_epoch_lost(epoch, now, id, old->incarnation);
    struct ls_epoch_peer *peer =
        ls_epoch_peers_find(&epoch->peers, id, incarnation);
    if (peer == NULL)
        peer = ls_epoch_add_peer(epoch, id, incarnation);
    if (peer == NULL)
        return ls_error(LS_ENOMEM, "barrier: no memory for member %" PRIu32,
                        id);
    if (peer->withdrew)
        return LS_OK;
    peer->joined = true;
    peer->host = host;
    peer->gone = false;
    if (epoch->losses.has_gone && epoch->losses.gone_one == id)
        epoch->losses.has_gone = false;
    /* Who was waited for may be this one. */
    if (epoch->wait.pending && (epoch->wait.grace_until != 0 ||
                                epoch->wait.short_of || epoch->wait.inquires))
        epoch->clock.ask_at = now;
    return LS_OK;
}

size_t ls_epoch_n_joined(const struct ls_epoch *epoch)
{
    size_t n = 0;
    for (size_t i = 0; i < epoch->peers.n; i++)
        n += epoch->peers.items[i].joined ? 1 : 0;
    return n;
}

bool ls_epoch_is_stuck(const struct ls_epoch *epoch)
{
    return epoch->phase == LS_EPOCH_ENTERED && ls_epoch_is_direct(epoch) &&
           epoch->facts.lack_lost > 0;
}

void ls_epoch_give_up_lost(struct ls_epoch *epoch)
{
    char text[LS_BARRIER_REASON_MAX];
    const struct ls_epoch_peer *named = NULL;
    ls_take(LS_TAKES_BARRIER_LOST);
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (peer->in_view && peer->lost && peer->phase < LS_EPOCH_ENTERED &&
            (named == NULL || (named->withdrew && !peer->withdrew)))
            named = peer;
    }
    uint32_t id = named != NULL ? named->id : epoch->view.leader;
    const bool withdrew = named != NULL && named->withdrew;
    if (withdrew && epoch->losses.status == LS_EMISMATCH) {
        snprintf(text, sizeof text, "node %" PRIu32 LS_EPOCH_WITHDREW, id);
        ls_epoch_give_up(epoch, LS_EMISMATCH, false, text);
        return;
    }
    if (withdrew)
        id = epoch->losses.one; /* why it did */
    char more[40] = " was";
    if (epoch->facts.lack_lost > 1)
        snprintf(more, sizeof more, " and %zu more were",
                 epoch->facts.lack_lost - 1);
    snprintf(text, sizeof text,
             "node %" PRIu32 "%s lost, not known to have entered", id, more);
    ls_epoch_give_up(epoch, LS_ELOST, false, text);
}

void ls_epoch_check_stuck(struct ls_epoch *epoch)
{
    /* The leader alone says when all have entered: while it has not, nobody
     * else can be ready, and it need not ask. */
    const bool decides =
        epoch->view.leader == epoch->id && !ls_epoch_is_direct(epoch) &&
        epoch->phase == LS_EPOCH_ENTERED && epoch->facts.lack_lost > 0;
    if (!decides && !ls_epoch_is_stuck(epoch))
        return;
    for (size_t i = 0; i < epoch->peers.n && !decides; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (peer->in_view && !peer->lost &&
            (peer->n_lost != epoch->losses.n ||
             peer->lost_hash != epoch->losses.hash))
            return;
    }
    ls_epoch_give_up_lost(epoch);
}

/* Without its leader a node has only what the others know. */
static void lose_leader(struct ls_epoch *epoch)
{
    ls_take(LS_TAKES_BARRIER_LEADERLESS);
    epoch->tree.way = LS_EPOCH_DIRECT;
    for (size_t i = 0; i < epoch->peers.n; i++) {
        if (epoch->peers.items[i].gave_up) {
            ls_epoch_follow(epoch, 0);
            return;
        }
    }
}

static void lose(struct ls_epoch *epoch, struct ls_epoch_peer *peer)
{
    peer->lost = true;
    if (epoch->losses.n++ == 0) {
        /* Who withdrew because of a loss has named it, and it was noted. */
        epoch->losses.one = peer->withdrew ? epoch->losses.gone_one : peer->id;
        epoch->losses.status = peer->withdrew && epoch->losses.gone_withdrew
                                   ? LS_EMISMATCH
                                   : LS_ELOST;
    }
    epoch->losses.hash +=
        ls_epoch_hash_member(peer->id, peer->incarnation, peer->host);
    if (peer->phase < LS_EPOCH_READY)
        epoch->facts.lack_ready--;
    if (peer->phase < LS_EPOCH_ENTERED)
        epoch->facts.lack_lost++;
    ls_tree_quit(epoch);
    if (peer->id == epoch->view.leader && !ls_epoch_is_direct(epoch))
        lose_leader(epoch);
    if (ls_epoch_is_under_way(epoch))
        ls_epoch_advance(epoch);
    if (ls_epoch_is_under_way(epoch))
        ls_epoch_check_stuck(epoch);
    if (ls_epoch_is_under_way(epoch))
        ls_epoch_tell_loss(epoch);
}

/* Whether the last epoch that ended well knew nothing of it yet. */
static bool is_fresh(const struct ls_epoch *epoch)
{
    return epoch->losses.has_gone &&
           (!epoch->left.any || epoch->losses.gone_epoch >= epoch->left.epoch);
}

/* The first is the cause to name: members that fail by its loss may go too. */
static void note_gone(struct ls_epoch *epoch, uint32_t id, bool withdrew)
{
    if (is_fresh(epoch))
        return;
    epoch->losses.has_gone = true;
    epoch->losses.gone_one = id;
    epoch->losses.gone_withdrew = withdrew;
    epoch->losses.gone_epoch = epoch->epoch;
}

static void be_gone(struct ls_epoch *epoch, int64_t now,
                    struct ls_epoch_peer *peer)
{
    epoch->now = now;
    if (peer->joined || peer->counted) {
        note_gone(epoch, peer->id, peer->withdrew);
        epoch->losses.n_gone += peer->gone ? 0 : 1;
    }
    peer->joined = false;
    peer->gone = true;
    if (epoch->wait.short_of || epoch->wait.inquires)
        epoch->clock.ask_at = now;
    if (!ls_epoch_is_under_way(epoch) || !peer->in_view || peer->lost)
        return;
    epoch->clock.stuck_until = now + LS_EPOCH_STUCK_NS;
    epoch->clock.ask_every = LS_EPOCH_ASK_FIRST_NS;
    epoch->clock.ask_at = now + LS_EPOCH_ASK_FIRST_NS;
    lose(epoch, peer);
}

void ls_epoch_lost(struct ls_epoch *epoch, int64_t now, uint32_t id,
                   uint64_t incarnation)
{
    struct ls_epoch_peer *peer =
        ls_epoch_peers_find(&epoch->peers, id, incarnation);
    if (peer == NULL)
        return;
    peer->withdrew = false;
    be_gone(epoch, now, peer);
}

void ls_epoch_withdrawn(struct ls_epoch *epoch, int64_t now, uint32_t id,
                        uint64_t incarnation,
                        const struct ls_barrier_message *message)
{
    struct ls_epoch_peer *peer =
        ls_epoch_peers_find(&epoch->peers, id, incarnation);
    /* An earlier barrier of that name, of one who makes a new one, is none that
     * this one ever met. */
    if (peer == NULL || peer->gone || peer->rounds == 0)
        return;
    if (message->n_lost > 0 && message->lost_one != epoch->id)
        note_gone(epoch, message->lost_one, message->status == LS_EMISMATCH);
    ls_take(LS_TAKES_BARRIER_WITHDRAWN);
    peer->withdrew = true;
    be_gone(epoch, now, peer);
}

void ls_epoch_withdraw(struct ls_epoch *epoch)
{
    for (size_t i = 0; i < epoch->peers.n; i++) {
        if (!epoch->peers.items[i].joined)
            continue;
        struct ls_barrier_message *message =
            ls_outbox_post(epoch, &epoch->peers.items[i], LS_BARRIER_GONE);
        if (!is_fresh(epoch))
            continue;
        message->n_lost = 1;
        message->lost_one = epoch->losses.gone_one;
        message->status = epoch->losses.gone_withdrew ? LS_EMISMATCH : LS_ELOST;
    }
}
