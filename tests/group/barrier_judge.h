/* barrier_judge.h - what must be true of every epoch of a virtual world of
 * barriers, whatever happens there. Included by barrier_world.h. */
#ifndef BARRIER_JUDGE_H
#define BARRIER_JUDGE_H

#include <string.h>

#include "barrier_happening.h"

static inline void note_entered(struct world *world, size_t node)
{
    const struct life *life = &world->lives[node];
    const struct ls_epoch *machine = life->machine;
    if (machine->rounds == 0 || machine->rounds > WORLD_EPOCHS_MAX)
        return;
    struct record *record = &world->records[machine->rounds - 1];
    const uint64_t nth = life->incarnation / WORLD_LIFE;
    /* A wait that begins between two epochs has flags for the next. */
    if (!record->entered[node][nth])
        record->flags[node][nth] = machine->facts.own_flags;
    record->entered[node][nth] = true;
}

/* All who leave an epoch have the same view of it, which only ever grows. */
static inline void check_view(struct world *world, size_t node,
                              const struct ls_epoch_end *end)
{
    struct life *life = &world->lives[node];
    struct record *record = &world->records[end->epoch];
    if (end->since < life->since || end->since > end->epoch)
        violate(world, "an older view", node, end->epoch);
    if (end->n_members != life->machine->left.n_ids)
        violate(world, "members uncounted", node, end->epoch);
    /* Two parts of a world that have not met are two worlds. */
    if (record->view == life->machine->view.hash &&
        (record->n_members != end->n_members || record->since != end->since))
        violate(world, "views differ", node, end->epoch);
    life->since = end->since;
    record->since = end->since;
    record->n_members = end->n_members;
}

static inline void check_left(struct world *world, size_t node, uint64_t epoch,
                              uint32_t seen)
{
    const struct ls_epoch *machine = world->lives[node].machine;
    struct record *record = &world->records[epoch];
    uint32_t all = world->lives[node].flags;
    for (size_t i = 0; i < machine->peers.n; i++) {
        const struct ls_epoch_peer *peer = &machine->peers.items[i];
        if (!peer->in_view)
            continue;
        const size_t at = index_of(world, peer->id);
        const uint64_t nth = peer->incarnation / WORLD_LIFE;
        record->counted[at] = true;
        if (!record->entered[at][nth])
            violate(world, "left before all had entered", node, epoch);
        all |= record->flags[at][nth];
    }
    if (seen != all ||
        (record->view == machine->view.hash && record->seen != seen))
        violate(world, "flags differ", node, epoch);
    record->seen = seen;
    record->view = machine->view.hash;
    record->left[node] = true;
}

static inline void check_failed(struct world *world, size_t node,
                                const struct ls_epoch_end *end)
{
    struct record *record = &world->records[end->epoch];
    record->failed[node] = true;
    if (world->plan.alike && record->cause != LS_OK &&
        record->cause != end->status)
        violate(world, "failed differently", node, end->epoch);
    record->cause = end->status;
}

/* Nobody has left an epoch that another has failed, be it before a crash. */
static inline void check_uniform(struct world *world)
{
    for (uint64_t epoch = 0; epoch < WORLD_EPOCHS_MAX; epoch++) {
        const struct record *record = &world->records[epoch];
        for (size_t i = 0; i < world->plan.n; i++) {
            if (record->counted[i] && record->failed[i])
                violate(world, "some left and some failed", i, epoch);
        }
    }
}

#endif
