/* What a message or a loss does to an epoch of a barrier. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "barrier_epoch_inside.h"
#include "coverage.h"

/* How many epochs members may be apart that have gone that far. */
#define EPOCHS_APART (UINT64_C(1) << 20)

/* The peer is in an epoch that is behind this node, and needs to know how it
 * ended. */
static void on_past(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                    const struct ls_barrier_message *message)
{
    if (message->kind == LS_BARRIER_ABORT && message->epoch + 1 == epoch->epoch)
        epoch->why.refuse = false;
    if (!message->ask)
        return;
    if (epoch->left.any && epoch->left.epoch == message->epoch &&
        epoch->left.view == message->view) {
        ls_outbox_left(epoch, peer, message->kind != LS_BARRIER_READY);
    } else if (message->epoch < ls_outbox_since(epoch, peer)) {
        ls_outbox_post(epoch, peer, LS_BARRIER_EXPECT)->epoch = message->epoch;
    } else {
        ls_outbox_abort(epoch, peer, message->epoch);
    }
}

/* Keep what a peer says of an epoch that this node is not in yet. */
static void keep_ahead(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                       const struct ls_barrier_message *message)
{
    enum ls_epoch_phase phase = (enum ls_epoch_phase)message->kind;
    if (message->kind == LS_BARRIER_ABSENT)
        return;
    if (message->kind == LS_BARRIER_ABORT) {
        phase = LS_EPOCH_GAVE_UP;
        ls_why_heard(&epoch->why, epoch->epoch, peer, message);
    }
    const bool whole = message->branch && message->n_lacking == 0;
    const bool more =
        phase > peer->ahead.phase ||
        (phase == peer->ahead.phase && whole && !peer->ahead.branch);
    if (peer->ahead.phase != LS_EPOCH_NONE &&
        (peer->ahead.epoch > message->epoch ||
         (peer->ahead.epoch == message->epoch && !more)))
        return;
    peer->ahead.phase = phase;
    peer->ahead.epoch = message->epoch;
    peer->ahead.view = message->view;
    peer->ahead.since = message->since;
    peer->ahead.rules = message->rules;
    peer->ahead.branch = whole;
    peer->ahead.status = message->status;
    peer->ahead.final = message->final;
    peer->ahead.origin = message->origin;
    peer->ahead.flags = message->flags;
    peer->ahead.last = message->last;
}

/* A peer has lost somebody in an epoch that this node has not entered. Nobody
 * is ready in it, and nobody will be: this node would count others than the
 * peer does. So it says at once that it stays out, busy as it may be. */
static void stay_out(struct ls_epoch *epoch, const struct ls_epoch_peer *peer,
                     const struct ls_barrier_message *message)
{
    char text[LS_BARRIER_REASON_MAX];
    const bool inside = epoch->wait.inside;
    const bool withdrew = message->status == LS_EMISMATCH;
    ls_take(LS_TAKES_BARRIER_STAYS_OUT);
    if (withdrew)
        snprintf(text, sizeof text, "node %" PRIu32 LS_EPOCH_WITHDREW,
                 message->lost_one);
    else
        snprintf(text, sizeof text,
                 "node %" PRIu32 " was lost, as node %" PRIu32 " says",
                 message->lost_one, peer->id);
    const uint64_t passed = epoch->epoch;
    epoch->epoch = message->epoch;
    epoch->wait.pending = false;
    epoch->wait.short_of = false;
    epoch->wait.inquires = false;
    ls_epoch_give_up(epoch, withdrew ? LS_EMISMATCH : LS_ELOST, false, text);
    if (epoch->rules.in_turn)
        ls_why_passed(&epoch->why, passed, message->epoch);
    epoch->why.given_up = !inside;
}

/* The peer asks whether an epoch was given up that this node has not entered.
 * Who gave it up may be gone. What this node asks itself it does not know yet:
 * one of a higher id waits until it does. */
static void say_what_it_heard(struct ls_epoch *epoch,
                              struct ls_epoch_peer *peer,
                              const struct ls_barrier_message *message)
{
    const struct ls_epoch_heard *heard =
        ls_why_find(&epoch->why, message->epoch);
    if (heard != NULL && heard->joined)
        ls_outbox_abort(epoch, peer, message->epoch);
    else if (!epoch->wait.inquires || message->epoch != epoch->epoch ||
             peer->id < epoch->id)
        ls_outbox_absent(epoch, peer);
}

static void on_ahead(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                     const struct ls_barrier_message *message)
{
    keep_ahead(epoch, peer, message);
    if (!ls_epoch_is_under_way(epoch)) {
        if (message->n_lost > 0 && peer->joined)
            stay_out(epoch, peer, message);
        else if (message->kind == LS_BARRIER_ABSENT && message->ask)
            say_what_it_heard(epoch, peer, message);
        return;
    }
    if (!peer->in_view || peer->chased)
        return;
    /* It knows how this one ended. */
    peer->chased = true;
    ls_outbox_say(epoch, peer, true);
}

/* Whether the epoch that the wait would enter next ends it. Another reason than
 * a final one is looked at when the pause before that epoch is over. */
static bool ends_pending(const struct ls_epoch *epoch,
                         const struct ls_epoch_peer *peer,
                         const struct ls_barrier_message *message)
{
    return epoch->wait.pending && peer->joined &&
           message->kind == LS_BARRIER_ABORT &&
           (message->final || epoch->wait.short_of || epoch->wait.inquires);
}

/* The peer is in the epoch that this node will enter next. */
static void on_next(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                    const struct ls_barrier_message *message)
{
    keep_ahead(epoch, peer, message);
    if (ends_pending(epoch, peer, message)) {
        ls_epoch_follow(epoch, message->next);
    } else if (epoch->why.refuse && peer->joined && message->ask) {
        char text[sizeof epoch->why.failed.text];
        memcpy(text, epoch->why.failed.text, sizeof text);
        ls_take(LS_TAKES_BARRIER_REFUSED);
        epoch->why.refuse = false;
        ls_epoch_abort(epoch, epoch->why.failed.status, false, text);
    } else if (message->n_lost > 0 && peer->joined) {
        stay_out(epoch, peer, message);
    } else if (message->kind == LS_BARRIER_ABSENT && message->ask) {
        say_what_it_heard(epoch, peer, message);
    } else if (message->again) {
        ls_outbox_absent(epoch, peer);
    }
}

/* Once everyone is READY, an abort and the leader's LEFT may be under way at
 * the same time. Only the leader knows which of the two counts: it has sent
 * LEFT, or it hears of the abort and sends that on. Others wait for its word,
 * unless it is lost. */
static void on_abort(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                     const struct ls_barrier_message *message)
{
    ls_why_heard(&epoch->why, epoch->epoch, peer, message);
    if (epoch->phase == LS_EPOCH_READY && !ls_epoch_is_direct(epoch) &&
        epoch->view.leader != epoch->id && epoch->view.leader != peer->id) {
        ls_take(LS_TAKES_BARRIER_DEFERS);
        peer->gave_up = true;
        return;
    }
    ls_epoch_follow(epoch, message->next);
}

/* This node was not counted before epoch `next`: it goes there. While it has
 * only entered, nobody can have left for its sake. */
static void on_expect(struct ls_epoch *epoch, int64_t now,
                      const struct ls_epoch_peer *peer,
                      const struct ls_barrier_message *message)
{
    if (message->next <= epoch->epoch)
        return;
    if (!ls_epoch_is_under_way(epoch)) {
        if (peer->joined && !epoch->why.given_up) {
            epoch->epoch = message->next;
            epoch->base = message->next;
        }
        return;
    }
    if (!peer->in_view || message->epoch != epoch->epoch)
        return;
    if (epoch->phase == LS_EPOCH_READY) {
        ls_epoch_differ(epoch, peer, epoch->rules.hash);
        return;
    }
    ls_take(LS_TAKES_BARRIER_MOVED);
    epoch->epoch = message->next;
    epoch->base = message->next;
    ls_epoch_begin(epoch, now);
}

/* Whether the peer should hear at once how far this node is. A first request
 * is answered by the READY that it waits for, not before. */
static bool wants_answer(const struct ls_epoch *epoch,
                         const struct ls_epoch_peer *peer,
                         const struct ls_barrier_message *message)
{
    if (!message->ask || !ls_epoch_is_under_way(epoch) ||
        epoch->epoch != message->epoch)
        return false;
    if (message->again)
        return true;
    if (message->known >= epoch->phase || peer->told >= epoch->phase)
        return false;
    /* In the tree it is told what it waits for once this node knows it. */
    if (epoch->tree.way == LS_EPOCH_BY_TREE && ls_tree_is_next(epoch, peer))
        return false;
    /* One who asks past the leader has lost it. */
    return epoch->phase == LS_EPOCH_READY ||
           (epoch->view.leader != epoch->id && epoch->view.leader != peer->id);
}

static void use(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                const struct ls_barrier_message *message)
{
    if (message->stuck && message->n_lost > peer->n_lost) {
        peer->n_lost = message->n_lost;
        peer->lost_hash = message->lost;
    }
    const enum ls_epoch_phase phase = (enum ls_epoch_phase)message->kind;
    if (message->astray)
        ls_tree_quit(epoch);
    ls_epoch_note_since(epoch, phase, message->since);
    ls_epoch_note(epoch, peer, phase, message->flags, message->last);
    epoch->facts.flags |= message->flags;
    if (message->branch)
        ls_tree_note(epoch, peer, phase, message->last, message->missing,
                     message->n_missing);
    ls_epoch_advance(epoch);
    if (ls_epoch_is_under_way(epoch))
        ls_epoch_check_stuck(epoch);
}

static void on_present(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                       const struct ls_barrier_message *message)
{
    if (!peer->in_view) {
        if (message->ask)
            ls_outbox_post(epoch, peer, LS_BARRIER_EXPECT);
        return;
    }
    if (peer->lost) {
        /* It is not believed any more: the others were told so. */
        if (wants_answer(epoch, peer, message))
            ls_outbox_answer(epoch, peer);
        return;
    }
    if (epoch->tree.way == LS_EPOCH_BY_TREE ? peer == ls_tree_above(epoch)
                                            : peer->id == epoch->view.leader)
        ls_why_report(&epoch->why, epoch->epoch, message);
    if (message->kind == LS_BARRIER_ABORT) {
        on_abort(epoch, peer, message);
        return;
    }
    /* Who is not in the epoch may ask, but has nothing to say of it. */
    const bool absent = message->kind == LS_BARRIER_ABSENT;
    if (!absent && message->view != epoch->view.hash)
        ls_epoch_differ(epoch, peer, message->rules);
    else if (!absent)
        use(epoch, peer, message);
    if (wants_answer(epoch, peer, message))
        ls_outbox_answer(epoch, peer);
}

/* Who speaks. NULL: another life of a node than the one that is here. One that
 * is not known to be here may be heard before the bus says so. */
static struct ls_epoch_peer *sender(struct ls_epoch *epoch, uint32_t from,
                                    uint64_t incarnation)
{
    struct ls_epoch_peer *peer =
        ls_epoch_peers_find(&epoch->peers, from, incarnation);
    if (peer != NULL)
        return peer;
    if (ls_epoch_peers_has(&epoch->peers, from))
        return NULL;
    return ls_epoch_add_peer(epoch, from, incarnation);
}

/* One that lies, or has lost count, could send all to where epochs end, and
 * there nobody can go on, even when it is gone. So nobody follows it that far.
 * A node that has left no epoch yet believes twice as much: it can join those
 * who have gone as far as they would. */
static bool is_believed(const struct ls_epoch *epoch, uint64_t said)
{
    const uint64_t farthest = LS_BARRIER_EPOCH_MAX >> (epoch->left.any ? 2 : 1);
    return said <= farthest || said <= epoch->epoch + EPOCHS_APART;
}

void ls_epoch_receive(struct ls_epoch *epoch, int64_t now, uint32_t from,
                      uint64_t incarnation,
                      const struct ls_barrier_message *message)
{
    if (message->to != epoch->incarnation || from == epoch->id ||
        message->kind == LS_BARRIER_UNKNOWN ||
        !is_believed(epoch, message->epoch) ||
        !is_believed(epoch, message->next))
        return;
    struct ls_epoch_peer *peer = sender(epoch, from, incarnation);
    if (peer == NULL)
        return;
    epoch->now = now;
    if (message->kind == LS_BARRIER_GONE) {
        ls_epoch_withdrawn(epoch, now, from, incarnation, message);
        return;
    }
    if (peer->withdrew) {
        peer->withdrew = false;
        if (ls_epoch_joined(epoch, now, from, incarnation, peer->host) < 0)
            return;
    }
    if (message->kind <= LS_BARRIER_LEFT && peer->rounds <= message->epoch)
        peer->rounds = message->epoch + 1;
    if (message->kind == LS_BARRIER_EXPECT) {
        on_expect(epoch, now, peer, message);
        return;
    }
    ls_epoch_note_answer(epoch, peer, message);
    if (message->epoch < epoch->epoch)
        on_past(epoch, peer, message);
    else if (message->epoch > epoch->epoch)
        on_ahead(epoch, peer, message);
    else if (ls_epoch_is_under_way(epoch))
        on_present(epoch, peer, message);
    else
        on_next(epoch, peer, message);
}
