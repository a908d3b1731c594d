#include "barrier_why.h"

#include <string.h>

void ls_why_set_text(struct ls_epoch_reason *reason, const char *text,
                     size_t size)
{
    if (size > LS_BARRIER_REASON_MAX)
        size = LS_BARRIER_REASON_MAX;
    memcpy(reason->text, text, size);
    reason->text[size] = '\0';
}

const struct ls_epoch_heard *ls_why_find(const struct ls_epoch_why *why,
                                         uint64_t number)
{
    const uint64_t at = number % LS_EPOCH_HEARD;
    const struct ls_epoch_heard *heard = &why->heard[at];
    if (heard->rounds == number + 1)
        return heard;
    heard = &why->beyond[at];
    return heard->rounds == number + 1 ? heard : NULL;
}

/* For those who ask about it later. */
void ls_why_failed(struct ls_epoch_why *why, uint64_t epoch)
{
    struct ls_epoch_heard *heard = &why->heard[epoch % LS_EPOCH_HEARD];
    why->failed_rounds = epoch + 1;
    if (heard->rounds > epoch + 1)
        return; /* of an epoch to come */
    heard->rounds = epoch + 1;
    heard->joined = true;
    heard->reason = why->failed;
}

void ls_why_passed(struct ls_epoch_why *why, uint64_t first, uint64_t epoch)
{
    if (epoch - first > LS_EPOCH_HEARD - 1)
        first = epoch - (LS_EPOCH_HEARD - 1);
    for (; first <= epoch; first++)
        ls_why_failed(why, first);
}

static void copy_reason(struct ls_epoch_reason *reason,
                        const struct ls_barrier_message *message)
{
    reason->status = message->status;
    reason->final = message->final;
    reason->origin = message->origin;
    ls_why_set_text(reason, message->reason, message->reason_size);
    reason->n_lacking = message->n_lacking;
    reason->n_missing = message->n_missing;
    if (message->n_missing > 0)
        memcpy(reason->missing, message->missing,
               message->n_missing * sizeof message->missing[0]);
}

void ls_why_heard(struct ls_epoch_why *why, uint64_t epoch,
                  const struct ls_epoch_peer *peer,
                  const struct ls_barrier_message *message)
{
    const uint64_t at = message->epoch % LS_EPOCH_HEARD;
    struct ls_epoch_heard *heard = &why->heard[at];
    if (heard->rounds > epoch && heard->rounds <= message->epoch) {
        heard = &why->beyond[at];
        if (heard->rounds > message->epoch + 1)
            return;
    }
    if (heard->rounds == message->epoch + 1 && heard->joined && !peer->joined)
        return;
    copy_reason(&heard->reason, message);
    heard->rounds = message->epoch + 1;
    heard->joined = peer->joined;
    heard->by = peer->id;
    heard->incarnation = peer->incarnation;
}

void ls_why_report(struct ls_epoch_why *why, uint64_t epoch,
                   const struct ls_barrier_message *message)
{
    why->report_epoch = 0;
    if (message->kind == LS_BARRIER_ABORT || message->n_lacking == 0)
        return;
    copy_reason(&why->report, message);
    why->report_epoch = epoch + 1;
}

bool ls_why_has_report(const struct ls_epoch_why *why, uint64_t epoch)
{
    return why->report_epoch == epoch + 1 && why->report.n_lacking > 0;
}

/* An epoch has ended well in which this was a member, in this life. */
static bool was_in(const struct ls_epoch_peers *peers, uint32_t id,
                   uint64_t incarnation)
{
    for (size_t i = 0; i < peers->n; i++) {
        const struct ls_epoch_peer *peer = &peers->items[i];
        if (peer->id == id)
            return peer->in_view && peer->incarnation == incarnation;
    }
    return false;
}

void ls_why_forget_others(struct ls_epoch_why *why, uint64_t epoch,
                          const struct ls_epoch_peers *peers)
{
    for (size_t i = 0; i < 2 * (size_t)LS_EPOCH_HEARD; i++) {
        struct ls_epoch_heard *heard = i < LS_EPOCH_HEARD
                                           ? &why->heard[i]
                                           : &why->beyond[i - LS_EPOCH_HEARD];
        if (heard->rounds > epoch + 1 &&
            !was_in(peers, heard->by, heard->incarnation))
            heard->rounds = 0;
    }
}
