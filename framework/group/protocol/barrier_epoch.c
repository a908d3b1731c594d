#include "barrier_epoch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_epoch_inside.h"
#include "coverage.h"
#include "lockstep/runtime.h"

/* Design notes.
 *
 * One epoch, seen from one node: NONE -> ENTERED -> READY -> NONE. ENTERED
 * becomes READY when everyone counted is known to have entered, or somebody
 * says so; READY ends when everyone counted is known to be ready or lost, or
 * somebody has left. So whoever leaves knows that all who live know that all
 * have entered, and nobody can give the epoch up any more: all or none.
 *
 * Facts about an epoch only ever grow (NONE < ENTERED < READY < LEFT), and
 * receiving is the maximum, so what is lost, doubled, late or out of order
 * does no harm. A fact is used in the epoch that it names and in no other;
 * what a peer says of a later one is kept aside until this node gets there.
 *
 * Whoever waits asks, and goes on asking those from whom it lacks something,
 * until it knows: no message has to arrive for another to be sent. Whoever is
 * asked about an epoch that it has behind it answers at once.
 *
 * Through the leader a node asks it alone, and the leader's READY and LEFT
 * stand for everyone's. The leader is then the only one who decides between
 * going on and giving up: see on_abort() and ls_epoch_check_stuck().
 *
 * When the leader is lost, or there is none, everyone talks to everyone. A
 * node may then be stuck: one who is lost is not known to have entered, yet
 * another may have heard of it that all have. So it says that it is stuck, and
 * without whom, and from then on believes nothing that those have said. Once
 * all who are left are stuck without the same ones, nobody is ready or ever
 * will be, and all give up. Were a stuck node to give up by itself, one that
 * is ready could hear of it or not before that node is lost as well, and those
 * who remain would disagree. */

int ls_epoch_create(struct ls_epoch **out, uint32_t id,
                    const struct ls_epoch_rules *rules)
{
    struct ls_epoch *epoch = calloc(1, sizeof *epoch);
    if (epoch == NULL)
        return ls_error(LS_ENOMEM, "barrier: no memory for its state");
    epoch->id = id;
    epoch->view.leader = id;
    epoch->rules = *rules;
    epoch->tree.way = LS_EPOCH_BY_LEADER;
    epoch->clock.ask_at = LS_FOREVER;
    epoch->why.failed.status = LS_EABORTED; /* as long as nothing is known */
    snprintf(epoch->why.past, sizeof epoch->why.past,
             "node %" PRIu32 LS_EPOCH_GAVE_UP_BEFORE, id);
    if (ls_outbox_reserve(epoch, rules->least) != LS_OK) {
        ls_epoch_destroy(&epoch);
        return LS_ENOMEM;
    }
    *out = epoch;
    return LS_OK;
}

void ls_epoch_destroy(struct ls_epoch **epoch)
{
    if (epoch == NULL || *epoch == NULL)
        return;
    ls_epoch_peers_fini(&(*epoch)->peers);
    free((*epoch)->outbox.out);
    ls_tree_fini(*epoch);
    free((*epoch)->left.ids);
    free((*epoch)->left.lives);
    free(*epoch);
    *epoch = NULL;
}

void ls_epoch_set_self(struct ls_epoch *epoch, uint64_t incarnation,
                       uint64_t host)
{
    epoch->incarnation = incarnation;
    epoch->host = host;
}

/* --- ends --------------------------------------------------------------- */

/* The epoch is behind this node, which goes on with the next, or with the one
 * that the others are in by now. When nobody is inside it ends what the next
 * wait will enter: whoever was inside last may not have looked at its end. */
static struct ls_epoch_end *finish(struct ls_epoch *epoch, int status,
                                   uint64_t next)
{
    struct ls_epoch_end *end =
        epoch->wait.inside ? &epoch->end : &epoch->why.early;
    end->status = status;
    end->epoch = epoch->epoch;
    end->flags = epoch->facts.flags;
    end->last = epoch->facts.last;
    end->since = epoch->view.since;
    end->n_members = epoch->view.n;
    end->n_lost = epoch->losses.n_gone;
    epoch->phase = LS_EPOCH_NONE;
    epoch->clock.ask_at = LS_FOREVER;
    epoch->epoch =
        next > epoch->epoch && !epoch->rules.in_turn ? next : epoch->epoch + 1;
    return end;
}

static void tell_abort(struct ls_epoch *epoch, uint64_t number)
{
    for (size_t i = 0; i < epoch->peers.n; i++) {
        struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (peer->joined)
            ls_outbox_abort(epoch, peer, number);
    }
}

/* End the epoch with an error. `failed` says why; `tell`: the others may not
 * know yet. The policy may let the wait go on. */
static void end_failed(struct ls_epoch *epoch, int status, uint64_t next,
                       bool tell)
{
    const uint64_t number = epoch->epoch;
    ls_take(epoch->phase == LS_EPOCH_READY     ? LS_TAKES_BARRIER_READY_FAILED
            : epoch->phase == LS_EPOCH_ENTERED ? LS_TAKES_BARRIER_ENTERED_FAILED
                                               : LS_TAKES_BARRIER_NONE_FAILED);
    ls_why_failed(&epoch->why, epoch->epoch);
    finish(epoch, status, next)->reason = epoch->why.failed;
    if (tell)
        tell_abort(epoch, number);
    if (!epoch->wait.inside)
        return;
    epoch->wait.pending = ls_epoch_retry(epoch);
    epoch->ended = !epoch->wait.pending;
    epoch->wait.inside = epoch->wait.pending;
    if (epoch->wait.pending)
        ls_take(LS_TAKES_BARRIER_AGAIN);
}

void ls_epoch_give_up(struct ls_epoch *epoch, int status, bool final,
                      const char *text)
{
    ls_take(LS_TAKES_BARRIER_OWN);
    epoch->why.failed.n_lacking = 0;
    epoch->why.failed.n_missing = 0;
    if (epoch->phase != LS_EPOCH_NONE && status != LS_EMISMATCH)
        ls_epoch_missing(epoch, &epoch->why.failed);
    epoch->why.failed.status = status;
    epoch->why.failed.final = final;
    epoch->why.failed.origin = epoch->id;
    ls_why_set_text(&epoch->why.failed, text, strlen(text));
    end_failed(epoch, status, 0, true);
}

/* What a wait returns that fails for another's cause. These are true of all
 * alike; any other status is the origin's own, and may be one that this node
 * has never heard of. */
static int status_for_all(int cause)
{
    switch (cause) {
    case LS_ETIMEDOUT:
    case LS_ELOST:
    case LS_EMISMATCH:
        return cause;
    default:
        return LS_EABORTED;
    }
}

void ls_epoch_follow(struct ls_epoch *epoch, uint64_t next)
{
    const struct ls_epoch_heard *heard = ls_why_find(&epoch->why, epoch->epoch);
    assert(heard != NULL); /* whoever calls this has heard it, or noted it */
    ls_take(LS_TAKES_BARRIER_FOLLOWED);
    epoch->why.failed = heard->reason;
    epoch->wait.pending = false;
    epoch->wait.short_of = false;
    epoch->wait.inquires = false;
    end_failed(epoch, status_for_all(epoch->why.failed.status), next,
               epoch->view.leader == epoch->id);
}

void ls_epoch_differ(struct ls_epoch *epoch, const struct ls_epoch_peer *peer,
                     uint32_t rules)
{
    char text[LS_BARRIER_REASON_MAX];
    const bool same = rules == epoch->rules.hash;
    ls_take(LS_TAKES_BARRIER_DIFFERS);
    snprintf(text, sizeof text,
             same ? "node %" PRIu32 " and node %" PRIu32
                    " see different members"
                  : "node %" PRIu32 " and node %" PRIu32
                    " have given this barrier different options (group, "
                    "expected, fanout or on_loss)",
             epoch->id, peer->id);
    ls_epoch_give_up(epoch, LS_EMISMATCH, !same, text);
}

static void leave(struct ls_epoch *epoch)
{
    const bool direct = ls_epoch_is_direct(epoch);
    const bool leads = epoch->view.leader == epoch->id &&
                       epoch->tree.way == LS_EPOCH_BY_LEADER;
    ls_take(LS_TAKES_BARRIER_LEFT);
    ls_epoch_keep_left(epoch);
    ls_why_forget_others(&epoch->why, epoch->epoch, &epoch->peers);
    for (size_t i = 0; i < epoch->peers.n; i++) {
        struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!peer->in_view)
            continue;
        if (peer->rounds <= epoch->epoch)
            peer->rounds = epoch->epoch + 1;
        /* The word of the leader, or of the one above, is what the others wait
         * for. Without one, those who were not told READY have only this to go
         * by. */
        if (!peer->lost && peer->phase < LS_EPOCH_LEFT &&
            (leads || ls_tree_is_below(epoch, peer) ||
             (direct && peer->told < LS_EPOCH_READY)))
            ls_outbox_left(epoch, peer, peer->phase < LS_EPOCH_READY);
    }
    (void)finish(epoch, LS_OK, 0);
    epoch->ended = true;
    epoch->wait.inside = false;
    epoch->losses.n_gone = 0;
}

/* --- asking ------------------------------------------------------------- */

static bool counts(const struct ls_epoch *epoch)
{
    return ls_epoch_is_direct(epoch) || epoch->view.leader == epoch->id;
}

/* Through a leader only its word lets a node go. */
static bool may_leave(const struct ls_epoch *epoch)
{
    return epoch->facts.released || epoch->rules.one_round ||
           (epoch->facts.lack_ready == 0 && counts(epoch));
}

static void ask_all(struct ls_epoch *epoch, enum ls_epoch_phase until,
                    bool again)
{
    for (size_t i = 0; i < epoch->peers.n; i++) {
        struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (peer->in_view && !peer->lost && peer->phase < until)
            ls_outbox_say(epoch, peer, again);
    }
}

static void ask_leader(struct ls_epoch *epoch, bool again)
{
    struct ls_epoch_peer *leader =
        ls_epoch_peers_joined(&epoch->peers, epoch->view.leader);
    if (leader != NULL && leader->in_view)
        ls_outbox_say(epoch, leader, again);
}

static void become_ready(struct ls_epoch *epoch)
{
    ls_take(LS_TAKES_BARRIER_READY);
    epoch->phase = LS_EPOCH_READY;
    epoch->clock.ask_every = LS_EPOCH_ASK_FIRST_NS;
    if (may_leave(epoch))
        return;
    if (epoch->tree.way == LS_EPOCH_BY_TREE)
        ls_tree_tell_down(epoch);
    else if (counts(epoch))
        ask_all(epoch, LS_EPOCH_LEFT, false);
    else
        ask_leader(epoch, false);
}

void ls_epoch_advance(struct ls_epoch *epoch)
{
    if (epoch->phase == LS_EPOCH_ENTERED &&
        (epoch->facts.claimed ||
         (epoch->facts.lack_entered == 0 && counts(epoch))))
        become_ready(epoch);
    if (epoch->phase == LS_EPOCH_READY && may_leave(epoch))
        leave(epoch);
    else if (epoch->phase != LS_EPOCH_NONE &&
             epoch->tree.way == LS_EPOCH_BY_TREE)
        ls_tree_tell_up(epoch);
}

void ls_epoch_tell_loss(struct ls_epoch *epoch)
{
    if (ls_epoch_is_direct(epoch))
        ask_all(epoch, LS_EPOCH_LEFT, true);
    else if (epoch->view.leader != epoch->id &&
             epoch->phase == LS_EPOCH_ENTERED)
        ask_leader(epoch, true);
}

void ls_epoch_excuse(struct ls_epoch *epoch, int64_t stood_ns)
{
    epoch->clock.stuck_until += stood_ns;
    epoch->wait.inquired_at += stood_ns;
    if (epoch->wait.grace_until != 0)
        epoch->wait.grace_until += stood_ns;
}

void ls_epoch_tick(struct ls_epoch *epoch, int64_t now)
{
    epoch->now = now;
    if (now < epoch->clock.ask_at)
        return;
    if (epoch->wait.pending) {
        ls_epoch_try_again(epoch, now);
        return;
    }
    if (epoch->phase == LS_EPOCH_NONE)
        return;
    if (ls_epoch_is_stuck(epoch) && now >= epoch->clock.stuck_until) {
        ls_epoch_give_up_lost(epoch);
        return;
    }
    const size_t before = epoch->outbox.n;
    if (epoch->tree.way == LS_EPOCH_BY_TREE)
        ls_tree_ask(epoch);
    else if (counts(epoch))
        ask_all(epoch, ls_epoch_is_stuck(epoch) ? LS_EPOCH_READY : epoch->phase,
                true);
    else
        ask_leader(epoch, true);
    ls_take(LS_TAKES_BARRIER_ASKED);
    epoch->outbox.n_repeated += epoch->outbox.n - before;
    epoch->clock.ask_every *= 2;
    if (epoch->clock.ask_every > LS_EPOCH_ASK_LAST_NS)
        epoch->clock.ask_every = LS_EPOCH_ASK_LAST_NS;
    epoch->clock.ask_at = now + epoch->clock.ask_every;
}

int64_t ls_epoch_wake_at(const struct ls_epoch *epoch)
{
    return epoch->clock.ask_at;
}

/* --- entering ----------------------------------------------------------- */

void ls_epoch_note(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                   enum ls_epoch_phase phase, uint32_t flags, uint32_t last)
{
    if (phase <= peer->phase)
        return;
    if (peer->phase < LS_EPOCH_ENTERED) {
        epoch->facts.lack_entered--;
        epoch->facts.last = peer->id;
    }
    if (peer->phase < LS_EPOCH_READY && phase >= LS_EPOCH_READY && !peer->lost)
        epoch->facts.lack_ready--;
    peer->phase = phase;
    epoch->facts.flags |= flags;
    if (phase >= LS_EPOCH_READY) {
        epoch->facts.claimed = true;
        epoch->facts.last = last;
    }
    epoch->facts.released = epoch->facts.released || phase == LS_EPOCH_LEFT;
}

/* A peer gave this epoch up before this node was in it. */
static void follow_earlier(struct ls_epoch *epoch,
                           const struct ls_epoch_peer *peer)
{
    if (ls_why_find(&epoch->why, epoch->epoch) == NULL) {
        struct ls_epoch_heard *heard =
            &epoch->why.heard[epoch->epoch % LS_EPOCH_HEARD];
        char text[LS_BARRIER_REASON_MAX];
        const int n =
            snprintf(text, sizeof text, "node %" PRIu32 LS_EPOCH_GAVE_UP_BEFORE,
                     peer->id);
        heard->rounds = epoch->epoch + 1;
        heard->reason = (struct ls_epoch_reason){.status = peer->ahead.status,
                                                 .final = peer->ahead.final,
                                                 .origin = peer->ahead.origin};
        ls_why_set_text(&heard->reason, text, (size_t)n);
    }
    ls_epoch_follow(epoch, 0);
}

/* What a peer in the view said of this epoch before this node was in it. */
static bool is_ahead(const struct ls_epoch *epoch,
                     const struct ls_epoch_peer *peer)
{
    return peer->in_view && peer->ahead.phase != LS_EPOCH_NONE &&
           peer->ahead.epoch == epoch->epoch;
}

bool ls_epoch_was_given_up(const struct ls_epoch *epoch)
{
    const struct ls_epoch_heard *heard = ls_why_find(&epoch->why, epoch->epoch);
    return heard != NULL && heard->joined;
}

void ls_epoch_ask(struct ls_epoch *epoch, int64_t now, uint32_t id,
                  uint64_t incarnation)
{
    struct ls_epoch_peer *peer =
        ls_epoch_peers_find(&epoch->peers, id, incarnation);
    if (peer == NULL || !peer->joined || epoch->phase != LS_EPOCH_NONE)
        return;
    epoch->now = now;
    ls_outbox_inquire(epoch, peer);
}

/* Comes before a reason of this node's own, so that all name the same. Who was
 * a member when it said so may be gone by now: others have failed with it. */
static bool was_given_up(struct ls_epoch *epoch)
{
    const struct ls_epoch_heard *heard = ls_why_find(&epoch->why, epoch->epoch);
    if (heard != NULL && heard->joined) {
        ls_epoch_follow(epoch, 0);
        return true;
    }
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (is_ahead(epoch, peer) && peer->ahead.phase == LS_EPOCH_GAVE_UP) {
            follow_earlier(epoch, peer);
            return true;
        }
    }
    return false;
}

/* Returns false when what others said ended the epoch. */
static bool use_ahead(struct ls_epoch *epoch)
{
    for (size_t i = 0; i < epoch->peers.n; i++) {
        struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!is_ahead(epoch, peer))
            continue;
        ls_take(LS_TAKES_BARRIER_AHEAD);
        if (peer->ahead.view != epoch->view.hash) {
            ls_epoch_differ(epoch, peer, peer->ahead.rules);
            return false;
        }
        ls_epoch_note_since(epoch, peer->ahead.phase, peer->ahead.since);
        ls_epoch_note(epoch, peer, peer->ahead.phase, peer->ahead.flags,
                      peer->ahead.last);
        if (peer->ahead.branch)
            ls_tree_note(epoch, peer, peer->ahead.phase, peer->ahead.last, NULL,
                         0);
    }
    if (!epoch->facts.claimed)
        epoch->facts.last = epoch->id;
    return true;
}

static void speak_first(struct ls_epoch *epoch)
{
    for (size_t i = 0; i < epoch->peers.n; i++) {
        struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!peer->in_view || peer->ahead.phase == LS_EPOCH_NONE ||
            peer->ahead.epoch <= epoch->epoch)
            continue;
        peer->chased = true;
        ls_outbox_say(epoch, peer, true);
    }
    if (ls_epoch_is_direct(epoch))
        ask_all(epoch, LS_EPOCH_LEFT, false);
    else if (epoch->tree.way == LS_EPOCH_BY_LEADER &&
             epoch->view.leader != epoch->id)
        ask_leader(epoch, false);
}

void ls_epoch_begin(struct ls_epoch *epoch, int64_t now)
{
    epoch->now = now;
    epoch->wait.short_of = false;
    epoch->wait.inquires = false;
    ls_epoch_make_view(epoch);
    epoch->facts.flags = epoch->facts.own_flags;
    epoch->facts.last = epoch->id;
    epoch->why.refuse = false;
    epoch->clock.ask_every = LS_EPOCH_ASK_FIRST_NS;
    epoch->clock.ask_at = now + LS_EPOCH_ASK_FIRST_NS;
    /* One repeat before a near deadline, so that its error can name those whom
     * the leader lacks. */
    if (epoch->clock.deadline > now &&
        epoch->clock.deadline < epoch->clock.ask_at)
        epoch->clock.ask_at = now + (epoch->clock.deadline - now) / 2;
    if (was_given_up(epoch))
        return;
    if (ls_epoch_is_short(epoch)) {
        ls_take(LS_TAKES_BARRIER_SHORT);
        epoch->wait.short_of = true;
        epoch->wait.pending = true;
        epoch->clock.ask_at = LS_FOREVER;
        return;
    }
    if (ls_epoch_is_miscounted(epoch) && ls_epoch_inquire(epoch))
        return;
    ls_take(LS_TAKES_BARRIER_ENTERED);
    ls_take(epoch->tree.way == LS_EPOCH_DIRECT    ? LS_TAKES_BARRIER_BY_DIRECT
            : epoch->tree.way == LS_EPOCH_BY_TREE ? LS_TAKES_BARRIER_BY_TREE
                                                  : LS_TAKES_BARRIER_BY_LEADER);
    epoch->phase = LS_EPOCH_ENTERED;
    epoch->rounds = epoch->epoch + 1;
    if (ls_epoch_is_miscounted(epoch)) {
        ls_epoch_refuse_count(epoch);
        return;
    }
    if (!use_ahead(epoch))
        return;
    ls_epoch_advance(epoch);
    if (epoch->phase == LS_EPOCH_ENTERED)
        speak_first(epoch);
}

void ls_epoch_enter(struct ls_epoch *epoch, int64_t now, int64_t deadline,
                    uint32_t flags)
{
    epoch->now = now;
    epoch->wait.inside = true;
    epoch->clock.deadline = deadline;
    epoch->wait.retry_every = LS_EPOCH_RETRY_FIRST_NS;
    epoch->wait.grace_until = 0;
    if (epoch->why.given_up) {
        epoch->why.given_up = false;
        epoch->end = epoch->why.early;
        epoch->wait.pending = ls_epoch_retry(epoch);
        epoch->ended = !epoch->wait.pending;
        epoch->wait.inside = epoch->wait.pending;
        if (epoch->ended)
            return;
    }
    epoch->ended = false;
    epoch->facts.own_flags = flags;
    if (!epoch->wait.pending)
        ls_epoch_begin(epoch, now);
}

/* The wait is between two epochs: what kept it from the next is worth more
 * than that its time ran out. */
static void abort_pending(struct ls_epoch *epoch, int status, const char *text)
{
    char why[LS_BARRIER_REASON_MAX + 1];
    char both[2 * LS_BARRIER_REASON_MAX + 32];
    const bool counts = epoch->wait.short_of || epoch->wait.inquires;
    if (epoch->wait.inquires && status == LS_ETIMEDOUT) {
        ls_epoch_refuse_count(epoch); /* it has waited for that answer alone */
        return;
    }
    if (counts)
        (void)ls_epoch_say_count(epoch, why);
    else
        memcpy(why, epoch->why.failed.text, sizeof why);
    snprintf(both, sizeof both, "%s%s%s", text,
             counts ? ": " : "; before that, ", why);
    epoch->wait.pending = false;
    epoch->wait.short_of = false;
    epoch->wait.inquires = false;
    ls_epoch_give_up(epoch, status, true, both);
}

void ls_epoch_abort(struct ls_epoch *epoch, int status, bool for_good,
                    const char *text)
{
    if (epoch->why.given_up)
        return;
    if (epoch->wait.pending) {
        abort_pending(epoch, status, text);
        return;
    }
    if (epoch->phase == LS_EPOCH_NONE) {
        ls_epoch_give_up(epoch, status, true, text);
        epoch->why.given_up = true;
        return;
    }
    /* The leader may have let the others go already. */
    const bool late = epoch->phase == LS_EPOCH_READY &&
                      !ls_epoch_is_direct(epoch) &&
                      epoch->view.leader != epoch->id;
    ls_epoch_give_up(epoch, status, true, text);
    epoch->why.refuse = for_good && late;
}

const struct ls_epoch_end *ls_epoch_end(const struct ls_epoch *epoch)
{
    return epoch->ended && epoch->phase == LS_EPOCH_NONE ? &epoch->end : NULL;
}
