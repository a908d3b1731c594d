/* Whom a node asks, and whom it tells, as it enters a barrier. */
#include "barrier_epoch_inside.h"

#include <stdlib.h>
#include <string.h>

/* An entry asks those ahead, then speaks to all, then may end the epoch. */
#define OUT_PER_PEER 3
#define OUT_MORE     8

int ls_outbox_reserve(struct ls_epoch *epoch, size_t n)
{
    const size_t capacity = OUT_PER_PEER * n + OUT_MORE;
    if (capacity <= epoch->outbox.capacity)
        return LS_OK;
    struct ls_epoch_out *out =
        realloc(epoch->outbox.out, 2 * capacity * sizeof *out);
    if (out == NULL)
        return ls_error(LS_ENOMEM, "barrier: no memory for %zu members", n);
    epoch->outbox.out = out;
    epoch->outbox.capacity = 2 * capacity;
    return LS_OK;
}

static uint8_t known_phase(const struct ls_epoch_peer *peer)
{
    return peer->phase < LS_EPOCH_READY ? (uint8_t)peer->phase : LS_EPOCH_READY;
}

uint64_t ls_outbox_since(const struct ls_epoch *epoch,
                         const struct ls_epoch_peer *peer)
{
    return peer->since > epoch->base ? peer->since : epoch->base;
}

struct ls_barrier_message *ls_outbox_post(struct ls_epoch *epoch,
                                          struct ls_epoch_peer *peer,
                                          enum ls_barrier_kind kind)
{
    /* What does not fit goes to a place that is never sent. */
    static _Thread_local struct ls_barrier_message nowhere;
    struct ls_barrier_message *message = &nowhere;
    if (epoch->outbox.n < epoch->outbox.capacity) {
        struct ls_epoch_out *out = &epoch->outbox.out[epoch->outbox.n++];
        out->to = peer->id;
        message = &out->message;
    }
    const uint64_t since = ls_outbox_since(epoch, peer);
    *message = (struct ls_barrier_message){
        .kind = kind,
        .known = known_phase(peer),
        .to = peer->incarnation,
        .epoch = epoch->epoch,
        .view = epoch->view.hash,
        .next = since > epoch->epoch ? since : epoch->epoch,
        .since = epoch->view.since,
        .rules = epoch->rules.hash,
        .flags = epoch->facts.flags,
        .last = epoch->facts.last,
        .full = peer->phase < LS_EPOCH_READY,
        .astray = epoch->tree.grown && epoch->tree.way != LS_EPOCH_BY_TREE,
        .reason = "",
    };
    epoch->outbox.n_sent++;
    return message;
}

/* How far this node is; the phases have the numbers of the kinds. */
static struct ls_barrier_message *post_phase(struct ls_epoch *epoch,
                                             struct ls_epoch_peer *peer)
{
    struct ls_barrier_message *message =
        ls_outbox_post(epoch, peer, (enum ls_barrier_kind)epoch->phase);
    if (epoch->phase == LS_EPOCH_ENTERED) {
        message->flags = epoch->facts.own_flags;
        message->stuck = ls_epoch_is_stuck(epoch);
        message->n_lost = epoch->losses.n;
        message->lost = epoch->losses.hash;
        message->lost_one = epoch->losses.n > 0 ? epoch->losses.one : 0;
        message->status = epoch->losses.n > 0 ? epoch->losses.status : 0;
    }
    peer->told = epoch->phase;
    return message;
}

/* Room for one more name, as long as there is any. */
static void add_missing(struct ls_epoch_reason *reason, uint32_t id,
                        uint64_t rounds)
{
    reason->n_lacking++;
    if (reason->n_missing == LS_BARRIER_MISSING_MAX)
        return;
    reason->missing[reason->n_missing++] =
        (struct ls_barrier_missing){.id = id, .rounds = rounds};
}

/* Whether this node waits for the peer, and knows that it is for its own sake.
 */
static bool is_lacking(const struct ls_epoch *epoch,
                       const struct ls_epoch_peer *peer)
{
    if (epoch->phase == LS_EPOCH_NONE)
        return peer->joined && !(peer->ahead.phase != LS_EPOCH_NONE &&
                                 peer->ahead.epoch == epoch->epoch);
    if (!peer->in_view || !ls_tree_knows(epoch, peer))
        return false;
    return epoch->phase == LS_EPOCH_ENTERED
               ? peer->phase < LS_EPOCH_ENTERED
               : peer->phase < LS_EPOCH_READY && !peer->lost;
}

static void list_lacking(const struct ls_epoch *epoch,
                         const struct ls_epoch_peer *besides,
                         struct ls_epoch_reason *reason)
{
    reason->n_lacking = 0;
    reason->n_missing = 0;
    if (epoch->phase == LS_EPOCH_NONE)
        add_missing(reason, epoch->id, epoch->rounds);
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (peer != besides && is_lacking(epoch, peer))
            add_missing(reason, peer->id, peer->rounds);
    }
}

/* The lists of all answers to one input are the same but for the asker; there
 * is one answer at most to one input. */
static void attach_missing(struct ls_epoch *epoch,
                           const struct ls_epoch_peer *asker,
                           struct ls_barrier_message *message)
{
    struct ls_epoch_reason list;
    list_lacking(epoch, asker, &list);
    memcpy(epoch->outbox.missing, list.missing,
           list.n_missing * sizeof list.missing[0]);
    message->n_lacking = list.n_lacking;
    message->n_missing = list.n_missing;
    message->missing = epoch->outbox.missing;
}

/* To the one above: this holds for all below, but for those listed. */
static void speak_for_branch(struct ls_epoch *epoch,
                             struct ls_barrier_message *message)
{
    if (epoch->tree.told < epoch->phase)
        attach_missing(epoch, NULL, message);
    message->flags = epoch->facts.flags;
    message->branch = message->n_missing == message->n_lacking;
}

void ls_outbox_say(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                   bool again)
{
    struct ls_barrier_message *message = post_phase(epoch, peer);
    message->ask = true;
    message->again = again;
    if (peer == ls_tree_above(epoch))
        speak_for_branch(epoch, message);
}

static void attach_report(const struct ls_epoch *epoch,
                          struct ls_barrier_message *message)
{
    message->n_lacking = epoch->why.report.n_lacking;
    message->n_missing = epoch->why.report.n_missing;
    message->missing = epoch->why.report.missing;
}

void ls_outbox_answer(struct ls_epoch *epoch, struct ls_epoch_peer *peer)
{
    struct ls_barrier_message *message = post_phase(epoch, peer);
    if (peer == ls_tree_above(epoch))
        speak_for_branch(epoch, message);
    else if (epoch->tree.way == LS_EPOCH_BY_TREE &&
             ls_why_has_report(&epoch->why, epoch->epoch))
        attach_report(epoch, message);
    else
        attach_missing(epoch, peer, message);
}

void ls_outbox_inquire(struct ls_epoch *epoch, struct ls_epoch_peer *peer)
{
    struct ls_barrier_message *message =
        ls_outbox_post(epoch, peer, LS_BARRIER_ABSENT);
    message->ask = true;
    message->again = true;
}

void ls_outbox_absent(struct ls_epoch *epoch, struct ls_epoch_peer *peer)
{
    attach_missing(epoch, peer, ls_outbox_post(epoch, peer, LS_BARRIER_ABSENT));
}

void ls_outbox_left(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                    bool full)
{
    struct ls_barrier_message *message =
        ls_outbox_post(epoch, peer, LS_BARRIER_LEFT);
    message->epoch = epoch->left.epoch;
    message->since = epoch->left.since;
    message->view = epoch->left.view;
    message->flags = epoch->left.flags;
    message->last = epoch->left.last;
    message->known = LS_EPOCH_READY;
    message->full = full;
}

void ls_outbox_abort(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                     uint64_t number)
{
    const struct ls_epoch_heard *heard = ls_why_find(&epoch->why, number);
    const bool kept = heard != NULL && heard->joined;
    const bool known = kept || epoch->why.failed_rounds == number + 1;
    const struct ls_epoch_reason *failed =
        kept ? &heard->reason : &epoch->why.failed;
    struct ls_barrier_message *message =
        ls_outbox_post(epoch, peer, LS_BARRIER_ABORT);
    message->epoch = number;
    if (message->next <= number)
        message->next = number + 1;
    message->status = failed->status;
    message->final = failed->final;
    if (!known) {
        message->origin = epoch->id;
        message->reason = epoch->why.past;
        message->reason_size = strlen(epoch->why.past);
        return;
    }
    message->origin = failed->origin;
    message->reason = failed->text;
    message->reason_size = strlen(failed->text);
    message->n_lacking = failed->n_lacking;
    message->missing = failed->missing;
    message->n_missing = failed->n_missing;
}

void ls_epoch_missing(const struct ls_epoch *epoch,
                      struct ls_epoch_reason *reason)
{
    if (ls_epoch_is_direct(epoch) || epoch->view.leader == epoch->id) {
        list_lacking(epoch, NULL, reason);
        return;
    }
    /* Through a leader only the leader knows. */
    if (ls_why_has_report(&epoch->why, epoch->epoch)) {
        reason->n_lacking = epoch->why.report.n_lacking;
        reason->n_missing = epoch->why.report.n_missing;
        memcpy(reason->missing, epoch->why.report.missing,
               reason->n_missing * sizeof reason->missing[0]);
        return;
    }
    reason->n_lacking = 0;
    reason->n_missing = 0;
    if (epoch->tree.way == LS_EPOCH_BY_TREE)
        list_lacking(epoch, NULL, reason);
    const struct ls_epoch_peer *next = ls_tree_above(epoch);
    if (next == NULL)
        next = ls_epoch_peers_joined(&epoch->peers, epoch->view.leader);
    if (reason->n_lacking == 0)
        add_missing(reason, next == NULL ? epoch->view.leader : next->id,
                    next == NULL ? 0 : next->rounds);
}

const struct ls_epoch_out *ls_epoch_take(struct ls_epoch *epoch, size_t *n)
{
    *n = epoch->outbox.n;
    epoch->outbox.n = 0;
    return epoch->outbox.out;
}
