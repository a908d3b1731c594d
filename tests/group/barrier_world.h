/* barrier_world.h - barrier state machines on a virtual network that loses,
 * doubles, delays and reorders, all from one seed.
 *
 * What is checked while it runs: nobody leaves an epoch before everyone it
 * counts has entered it; all who leave an epoch see the same flags, those of
 * all; and, unless somebody is declared lost who is not, or gives up of its own
 * accord, nobody leaves an epoch that another fails. The first violation is
 * kept as a text. */
#ifndef BARRIER_WORLD_H
#define BARRIER_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_filter.h"
#include "barrier_happening.h"
#include "barrier_judge.h"
#include "barrier_sabotage.h"
#include "test.h"

/* --- what a machine did ------------------------------------------------- */

static inline void put_on_wire(struct world *world, size_t from,
                               const struct ls_epoch_out *out)
{
    const size_t to = index_of(world, out->to);
    if (ls_sabotage.swallows((int)world->plan.sabotage, &out->message))
        return;
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    const size_t size = ls_barrier_wire_encode(&out->message, bytes);
    int copies = chance(world, world->plan.loss) ? 0 : 1;
    copies += chance(world, world->plan.twice) ? 1 : 0;
    world->n_sent++;
    for (; copies > 0; copies--) {
        struct happening what = {.at = world->now + 1 +
                                       up_to(world, world->plan.delay),
                                 .action = DELIVER,
                                 .node = to,
                                 .peer = from,
                                 .incarnation = world->lives[from].incarnation,
                                 .size = size,
                                 .bytes = malloc(size)};
        if (what.bytes == NULL)
            abort();
        memcpy(what.bytes, bytes, size);
        push(world, what);
    }
}

static inline void on_end(struct world *world, size_t node,
                          const struct ls_epoch_end *end)
{
    struct life *life = &world->lives[node];
    life->waiting = false;
    if (end->epoch >= WORLD_EPOCHS_MAX) {
        life->done = true;
        return;
    }
    if (end->status == LS_OK) {
        check_view(world, node, end);
        check_left(world, node, end->epoch, end->flags);
        life->n_left++;
    } else {
        check_failed(world, node, end);
        life->n_failed++;
        if (world->failure[0] == '\0')
            snprintf(world->failure, sizeof world->failure,
                     "node %zu, epoch %llu: %s: %.100s", node,
                     (unsigned long long)end->epoch,
                     ls_status_name(end->status), end->reason.text);
    }
    const bool enough = life->n_left >= world->plan.waits;
    if (enough || (end->status != LS_OK && !world->plan.retry))
        life->done = true;
    if (!life->done || world->plan.retry)
        soon(world, ENTER, node,
             end->status == LS_OK ? world->plan.think : 50 * WORLD_MS);
}

/* Take what the machine has to say after an input. */
static inline void settle(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    note_entered(world, node);
    size_t n;
    const struct ls_epoch_out *out = ls_epoch_take(life->machine, &n);
    for (size_t i = 0; i < n; i++)
        put_on_wire(world, node, &out[i]);
    const struct ls_epoch_end *end = ls_epoch_end(life->machine);
    /* An epoch that failed, though the wait goes on. */
    if (life->machine->wait.pending && !life->machine->wait.short_of &&
        !life->machine->wait.inquires &&
        life->machine->end.epoch < WORLD_EPOCHS_MAX)
        world->records[life->machine->end.epoch].failed[node] = true;
    if (life->waiting && end != NULL) {
        on_end(world, node, end);
        return;
    }
    const int64_t at = ls_epoch_wake_at(life->machine);
    if (at == LS_FOREVER || at == life->tick_at)
        return;
    life->tick_at = at;
    push(world, (struct happening){.at = at, .action = TICK, .node = node});
}

/* --- actions ------------------------------------------------------------ */

static inline void start(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    const uint32_t n = (uint32_t)world->plan.n;
    const uint32_t least = world->plan.least;
    const bool any = world->plan.any;
    const struct ls_epoch_rules rules = {
        .least = any          ? 0
                 : least != 0 ? least
                              : n,
        .most = any ? 0 : n,
        .room = world->plan.formed != 0 ? n : 0,
        .fanout = world->plan.fanout,
        .go_on = world->plan.go_on,
        .grace_ns = world->plan.grace,
    };
    if (ls_epoch_create(&life->machine, life->id, &rules) != LS_OK)
        abort();
    ls_epoch_set_self(life->machine, life->incarnation, life->host);
    life->born = true;
    life->up = true;
    life->tick_at = 0;
    for (size_t i = 0; i < world->plan.n; i++) {
        struct life *other = &world->lives[i];
        if (i == node || !other->up)
            continue;
        push(world,
             (struct happening){.at = world->now + up_to(world, WORLD_MS),
                                .action = JOIN,
                                .node = i,
                                .peer = node,
                                .incarnation = life->incarnation});
        push(world,
             (struct happening){.at = world->now + up_to(world, WORLD_MS),
                                .action = JOIN,
                                .node = node,
                                .peer = i,
                                .incarnation = other->incarnation});
    }
    soon(world, ENTER, node, WORLD_MS);
}

static inline size_t n_met(const struct world *world, size_t node)
{
    size_t n = 0;
    for (size_t i = 0; i < world->plan.n; i++) {
        const bool dead = world->lives[i].done && !world->lives[i].up;
        n += world->lives[node].met[i] || dead ? 1 : 0;
    }
    return n;
}

static inline void enter(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    if (life->waiting)
        return;
    /* As ls_node_start() does: nobody waits in a world that was not formed. */
    const size_t formed =
        world->plan.formed != 0 ? world->plan.formed : world->plan.n;
    if (n_met(world, node) + 1 < formed) {
        soon(world, ENTER, node, 5 * WORLD_MS);
        return;
    }
    int64_t deadline = LS_FOREVER;
    life->count++;
    life->flags = UINT32_C(1) << ls_rng_below(&world->rng, 32);
    if (world->plan.deadline > 0) {
        deadline = world->now + 1 + up_to(world, world->plan.deadline);
        push(world, (struct happening){.at = deadline,
                                       .action = DUE,
                                       .node = node,
                                       .count = life->count});
    }
    life->waiting = true;
    ls_epoch_enter(life->machine, world->now, deadline, life->flags);
    settle(world, node);
}

static inline void deliver(struct world *world, const struct happening *what)
{
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    struct ls_barrier_message message;
    struct ls_epoch *machine = world->lives[what->node].machine;
    uint32_t from = world->lives[what->peer].id;
    uint64_t incarnation = what->incarnation;
    if (ls_barrier_wire_decode(what->bytes, what->size, &message, scratch) !=
        LS_OK) {
        violate(world, ls_error_text(), what->peer, 0);
        return;
    }
    ls_sabotage.received((int)world->plan.sabotage, machine, &from,
                         &incarnation, &message);
    ls_epoch_receive(machine, world->now, from, incarnation, &message);
    settle(world, what->node);
}

static inline void tell_lost(struct world *world, size_t node, size_t about,
                             int64_t within)
{
    push(world,
         (struct happening){.at = world->now + up_to(world, within),
                            .action = LOST,
                            .node = node,
                            .peer = about,
                            .incarnation = world->lives[about].incarnation});
}

static inline void crash(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    life->up = false;
    life->waiting = false;
    ls_epoch_destroy(&life->machine);
    for (size_t i = 0; i < world->plan.n; i++) {
        if (i != node && world->lives[i].up)
            tell_lost(world, i, node, 100 * WORLD_MS);
    }
    if (world->plan.restart)
        push(world, (struct happening){.at = world->now + 120 * WORLD_MS,
                                       .action = RESTART,
                                       .node = node});
    else
        life->done = true;
}

static inline void restart(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    life->incarnation += WORLD_LIFE;
    memset(life->met, 0, sizeof life->met);
    life->since = 0;
    life->n_failed = 0;
    life->n_left = 0;
    start(world, node);
}

static inline void lost(struct world *world, const struct happening *what)
{
    const struct life *about = &world->lives[what->peer];
    ls_epoch_lost(world->lives[what->node].machine, world->now, about->id,
                  what->incarnation);
    world->lives[what->node].met[what->peer] = true;
    settle(world, what->node);
    if (about->up && about->incarnation == what->incarnation)
        push(world, (struct happening){.at = world->now + 50 * WORLD_MS,
                                       .action = JOIN,
                                       .node = what->node,
                                       .peer = what->peer,
                                       .incarnation = what->incarnation});
}

static inline void join(struct world *world, const struct happening *what)
{
    if (!world->lives[what->peer].up ||
        world->lives[what->peer].incarnation != what->incarnation)
        return;
    if (ls_epoch_joined(world->lives[what->node].machine, world->now,
                        world->lives[what->peer].id, what->incarnation,
                        world->lives[what->peer].host) != LS_OK)
        abort();
    world->lives[what->node].met[what->peer] = true;
    settle(world, what->node);
}

static inline void act(struct world *world, const struct happening *what)
{
    struct life *life = &world->lives[what->node];
    if (!life->up) {
        if (what->action == RESTART)
            restart(world, what->node);
        else if (what->action == ENTER && !life->born)
            start(world, what->node);
        return;
    }
    switch (what->action) {
    case DELIVER:
        deliver(world, what);
        break;
    case ENTER:
        enter(world, what->node);
        break;
    case TICK:
        ls_epoch_tick(life->machine, world->now);
        settle(world, what->node);
        break;
    case CRASH:
        crash(world, what->node);
        break;
    case LOST:
        lost(world, what);
        break;
    case JOIN:
        join(world, what);
        break;
    case ABORT:
        ls_epoch_abort(life->machine, LS_ECANCELED, true, "the test says so");
        settle(world, what->node);
        break;
    case DUE:
        if (life->waiting && life->count == what->count) {
            ls_epoch_abort(life->machine, LS_ETIMEDOUT, false, "late");
            settle(world, what->node);
        }
        break;
    case RESTART:
        break;
    }
}

#endif
