#include "barrier_sabotage.h"

#include "barrier_filter.h"

static bool swallows(int what, const struct ls_barrier_message *message)
{
    return what == LS_SABOTAGE_NO_REPEAT && message->again;
}

static bool tells_phase(const struct ls_barrier_message *message)
{
    return message->kind <= LS_BARRIER_LEFT;
}

/* A member that is waited for, if `from` has nothing new to say. */
static const struct ls_epoch_peer *
taken_for(const struct ls_epoch *epoch, uint32_t from,
          const struct ls_barrier_message *message)
{
    const struct ls_epoch_peer *missing = NULL;
    for (size_t i = 0; i < epoch->peers.n; i++) {
        const struct ls_epoch_peer *peer = &epoch->peers.items[i];
        if (!peer->in_view)
            continue;
        const bool knew = peer->phase >= (enum ls_epoch_phase)message->kind;
        if (peer->id == from && !knew)
            return NULL;
        if (peer->id != from && !knew)
            missing = peer;
    }
    return missing;
}

static void received(int what, const struct ls_epoch *epoch, uint32_t *from,
                     uint64_t *incarnation, struct ls_barrier_message *message)
{
    if (epoch->phase == LS_EPOCH_NONE || !tells_phase(message))
        return;
    if (what == LS_SABOTAGE_NO_EPOCH) {
        message->epoch = epoch->epoch;
    } else if (what == LS_SABOTAGE_COUNT && message->epoch == epoch->epoch) {
        const struct ls_epoch_peer *peer = taken_for(epoch, *from, message);
        if (peer != NULL) {
            *from = peer->id;
            *incarnation = peer->incarnation;
        }
    } else if (what == LS_SABOTAGE_ONE_PHASE &&
               message->kind == LS_BARRIER_READY) {
        message->kind = LS_BARRIER_LEFT;
    } else if (what == LS_SABOTAGE_EAGER &&
               message->kind == LS_BARRIER_ENTERED) {
        message->kind = LS_BARRIER_LEFT;
        message->branch = false;
        message->stuck = false;
        message->n_lost = 0;
    } else if (what == LS_SABOTAGE_HASTY &&
               message->kind == LS_BARRIER_ENTERED && epoch->losses.n > 0) {
        message->stuck = true;
        message->n_lost = epoch->losses.n;
        message->lost = epoch->losses.hash;
    }
}

const struct ls_barrier_filter ls_sabotage = {swallows, received};

void ls_barrier_sabotage(ls_barrier *barrier, enum ls_sabotage what)
{
    ls_barrier_filter(barrier, &ls_sabotage, (int)what);
}
