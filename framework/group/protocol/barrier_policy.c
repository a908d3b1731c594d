/* What an epoch that failed means for the wait: it fails, or it goes on in the
 * next epoch.
 *
 * All fail an epoch or none (docs/barrier.md), so all go on, each with the
 * members that it then sees. Until all see the same, epochs fail at once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "barrier_epoch_inside.h"
#include "coverage.h"
#include "lockstep/runtime.h"

/* Whether members may come and go without a wait that fails. */
static bool is_elastic(const struct ls_epoch_rules *rules)
{
    return rules->go_on || rules->grace_ns > 0 || rules->most == 0 ||
           rules->least != rules->most;
}

static size_t n_here(const struct ls_epoch *epoch)
{
    return ls_epoch_n_joined(epoch) + 1;
}

static void pause(struct ls_epoch *epoch)
{
    epoch->clock.ask_at = epoch->now + epoch->wait.retry_every;
    epoch->wait.retry_every *= 2;
    if (epoch->wait.retry_every > LS_EPOCH_RETRY_LAST_NS)
        epoch->wait.retry_every = LS_EPOCH_RETRY_LAST_NS;
}

bool ls_epoch_retry(struct ls_epoch *epoch)
{
    const struct ls_epoch_rules *rules = &epoch->rules;
    const struct ls_epoch_reason *reason = &epoch->why.failed;
    if (!epoch->wait.inside || reason->final)
        return false;
    if (reason->status == LS_ELOST && (rules->go_on || rules->grace_ns > 0)) {
        if (epoch->wait.grace_until == 0 && rules->grace_ns > 0) {
            epoch->wait.grace_until = epoch->now + rules->grace_ns;
            epoch->wait.grace_n =
                epoch->view.n > rules->least ? epoch->view.n : rules->least;
        }
    } else if (reason->status != LS_EMISMATCH || !is_elastic(rules)) {
        return false;
    }
    pause(epoch);
    return true;
}

static void refuse_absence(struct ls_epoch *epoch)
{
    char text[LS_BARRIER_REASON_MAX] = "";
    ls_take(LS_TAKES_BARRIER_ABSENT);
    if (epoch->losses.has_gone)
        snprintf(text, sizeof text, "node %" PRIu32 " was lost, and ",
                 epoch->losses.gone_one);
    const size_t size = strlen(text);
    snprintf(text + size, sizeof text - size,
             "not all are here after %" PRId64 " ms of grace",
             epoch->rules.grace_ns / LS_NS_PER_MS);
    epoch->wait.pending = false;
    ls_epoch_give_up(epoch, LS_ELOST, true, text);
}

void ls_epoch_try_again(struct ls_epoch *epoch, int64_t now)
{
    if (epoch->wait.grace_until != 0 && n_here(epoch) < epoch->wait.grace_n) {
        if (now < epoch->wait.grace_until) {
            epoch->clock.ask_at = epoch->wait.grace_until;
            return;
        }
        if (!epoch->rules.go_on) {
            refuse_absence(epoch);
            return;
        }
    }
    epoch->wait.pending = false;
    ls_epoch_begin(epoch, now);
}

bool ls_epoch_is_short(const struct ls_epoch *epoch)
{
    const struct ls_epoch_rules *rules = &epoch->rules;
    /* One who was lost is not a newcomer: that is for `on_loss` and the grace.
     */
    return epoch->view.n < rules->least && rules->least <= rules->room &&
           !epoch->losses.has_gone && rules->grace_ns == 0;
}

bool ls_epoch_is_miscounted(const struct ls_epoch *epoch)
{
    const struct ls_epoch_rules *rules = &epoch->rules;
    return epoch->view.n < rules->least ||
           (rules->most != 0 && epoch->view.n > rules->most);
}

size_t ls_epoch_say_count(const struct ls_epoch *epoch,
                          char text[static LS_BARRIER_REASON_MAX])
{
    const struct ls_epoch_rules *rules = &epoch->rules;
    const bool few = epoch->view.n < rules->least;
    const int n =
        snprintf(text, LS_BARRIER_REASON_MAX,
                 "node %" PRIu32 " sees %" PRIu32 " members, not %s%" PRIu32,
                 epoch->id, epoch->view.n,
                 rules->least == rules->most ? ""
                 : few                       ? "at least "
                                             : "at most ",
                 few ? rules->least : rules->most);
    return n < 0 ? 0 : (size_t)n;
}

static bool has_too_few_left(const struct ls_epoch *epoch)
{
    return epoch->view.n < epoch->rules.least && epoch->losses.has_gone;
}

static size_t n_silent(const struct ls_epoch *epoch)
{
    size_t n = 0;
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        n += peer->in_view && !peer->answered ? 1 : 0;
    }
    return n;
}

/* Of two that ask each other the one with the lower id gives its reason, and
 * the other waits for that. */
static bool gives_reason(const struct ls_epoch *epoch,
                         const struct ls_epoch_peer *peer)
{
    return peer->asked == epoch->epoch + 1 && peer->id < epoch->id;
}

/* For how long it asks. One that asks as well may itself ask in vain, and what
 * it then says be lost. */
static int64_t patience(const struct ls_epoch *epoch)
{
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (peer->in_view && !peer->answered && gives_reason(epoch, peer))
            return 2 * LS_EPOCH_INQUIRE_NS;
    }
    return LS_EPOCH_INQUIRE_NS;
}

bool ls_epoch_inquire(struct ls_epoch *epoch)
{
    if (!has_too_few_left(epoch))
        return false;
    if (epoch->wait.inquired != epoch->epoch + 1) {
        epoch->wait.inquired = epoch->epoch + 1;
        epoch->wait.inquired_at = epoch->now;
        for (size_t i = 0; i < epoch->peers.n; i++)
            epoch->peers.items[i].answered = false;
    }
    const int64_t passed = epoch->now - epoch->wait.inquired_at;
    const int64_t left = patience(epoch) - passed;
    if (n_silent(epoch) == 0 || left <= 0)
        return false;
    for (size_t i = 0; i < epoch->peers.n; i++) {
        struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (peer->in_view && !peer->answered)
            ls_outbox_inquire(epoch, peer);
    }
    ls_take(LS_TAKES_BARRIER_INQUIRES);
    epoch->wait.inquires = true;
    epoch->wait.pending = true;
    const int64_t every =
        passed > LS_EPOCH_ASK_FIRST_NS ? passed : LS_EPOCH_ASK_FIRST_NS;
    epoch->clock.ask_at = epoch->now + (every < left ? every : left);
    return true;
}

void ls_epoch_note_answer(struct ls_epoch *epoch, struct ls_epoch_peer *peer,
                          const struct ls_barrier_message *message)
{
    const bool absent = message->kind == LS_BARRIER_ABSENT;
    if (absent && message->ask)
        peer->asked = message->epoch + 1;
    if (!epoch->wait.inquires || (message->epoch != epoch->epoch && !absent))
        return;
    peer->answered = !absent || !gives_reason(epoch, peer);
    if (n_silent(epoch) == 0)
        epoch->clock.ask_at = epoch->now;
}

void ls_epoch_refuse_count(struct ls_epoch *epoch)
{
    epoch->wait.pending = false;
    epoch->wait.inquires = false;
    const struct ls_epoch_rules *rules = &epoch->rules;
    const bool few = epoch->view.n < rules->least;
    char text[LS_BARRIER_REASON_MAX];
    if (has_too_few_left(epoch)) {
        snprintf(text, sizeof text,
                 "node %" PRIu32 "%s; %" PRIu32
                 " members are here, not %" PRIu32,
                 epoch->losses.gone_one,
                 epoch->losses.gone_withdrew ? LS_EPOCH_WITHDREW : " was lost",
                 epoch->view.n, rules->least);
        ls_epoch_give_up(epoch,
                         epoch->losses.gone_withdrew ? LS_EMISMATCH : LS_ELOST,
                         epoch->losses.gone_withdrew, text);
        return;
    }
    (void)ls_epoch_say_count(epoch, text);
    /* Who is awaited may have been lost before this node knew it. */
    const bool awaited = few && rules->grace_ns > 0;
    ls_epoch_give_up(epoch, awaited ? LS_ELOST : LS_EMISMATCH, !awaited, text);
}
