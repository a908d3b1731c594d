/* barrier_world.h - barrier state machines on a virtual network that loses,
 * doubles, delays and reorders, all from one seed. Included by one test, after
 * it has included the state machine.
 *
 * What is checked while it runs: nobody leaves an epoch before everyone it
 * counts has entered it; all who leave an epoch see the same flags, those of
 * all; and, unless somebody is held for lost who is not, or gives up of its own
 * accord, nobody leaves an epoch that another fails. The first violation is
 * kept as a text. */
#ifndef BARRIER_WORLD_H
#define BARRIER_WORLD_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_epoch.h"
#include "lockstep/random.h"
#include "lockstep/runtime.h"

#define WORLD_NODES_MAX  64
#define WORLD_EPOCHS_MAX 512
#define WORLD_LIVES_MAX  4
#define WORLD_LIFE       1000 /* what a new life adds to the incarnation */
#define WORLD_MS         LS_NS_PER_MS

struct plan {
    size_t n;
    unsigned waits; /* each node waits so often, at least */
    double loss;    /* of messages */
    double twice;   /* so many come a second time */
    int64_t delay;  /* up to so many ns */
    int64_t think;  /* between two waits, up to */
    int64_t late;   /* start, up to */
    unsigned crashes;
    bool restart;       /* who crashed comes back as a new life */
    bool false_lost;    /* once somebody is wrongly held for lost */
    unsigned aborts;    /* in all */
    bool retry;         /* go on after an error; else it is the last wait */
    int64_t deadline;   /* of each wait; 0: none */
    int64_t give_up_at; /* when a run that does not end is stopped */
};

enum action { DELIVER, ENTER, TICK, CRASH, RESTART, LOST, JOIN, ABORT, DUE };

struct happening {
    int64_t at;
    uint64_t order; /* of those at the same time */
    enum action action;
    size_t node;
    size_t peer;
    uint64_t incarnation;
    uint64_t count; /* of the wait that a DUE belongs to */
    size_t size;
    unsigned char *bytes; /* own */
};

struct life {
    struct ls_epoch *machine; /* own */
    uint32_t id;
    uint64_t incarnation;
    bool born;
    bool up;
    bool waiting;
    bool done;
    uint32_t flags;
    uint64_t count; /* of its waits */
    unsigned n_left;
    unsigned n_failed;
    bool met[WORLD_NODES_MAX]; /* has ever been joined by */
    int64_t tick_at;           /* for which a TICK is queued */
};

/* What is known of one epoch, over all lives. */
struct record {
    bool entered[WORLD_NODES_MAX][WORLD_LIVES_MAX];
    uint32_t flags[WORLD_NODES_MAX][WORLD_LIVES_MAX];
    bool left[WORLD_NODES_MAX];
    bool failed[WORLD_NODES_MAX];
    uint32_t seen; /* flags that those saw who left last */
    uint64_t view; /* whom those counted; 0: nobody has left */
};

struct world {
    struct plan plan;
    struct ls_rng rng;
    int64_t now;
    uint64_t order;
    struct happening *heap; /* own */
    size_t n_heap;
    size_t heap_capacity;
    struct life lives[WORLD_NODES_MAX];
    struct record *records; /* own; WORLD_EPOCHS_MAX */
    unsigned crashed;
    unsigned aborted;
    uint64_t n_sent;
    char violation[160];
};

static void violate(struct world *world, const char *what, size_t node,
                    uint64_t epoch)
{
    if (world->violation[0] == '\0')
        snprintf(world->violation, sizeof world->violation,
                 "%s: node %zu, epoch %llu", what, node,
                 (unsigned long long)epoch);
}

static int64_t up_to(struct world *world, int64_t bound)
{
    return (int64_t)ls_rng_below(&world->rng, (uint64_t)bound + 1);
}

static bool chance(struct world *world, double p)
{
    return ls_rng_double(&world->rng) < p;
}

/* --- what happens next -------------------------------------------------- */

static bool is_before(const struct happening *a, const struct happening *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct world *world, struct happening what)
{
    if (world->n_heap == world->heap_capacity) {
        world->heap_capacity = 2 * world->heap_capacity + 64;
        world->heap =
            realloc(world->heap, world->heap_capacity * sizeof *world->heap);
        if (world->heap == NULL)
            abort();
    }
    what.order = world->order++;
    size_t at = world->n_heap++;
    for (; at > 0 && is_before(&what, &world->heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        world->heap[at] = world->heap[(at - 1) / 2];
    world->heap[at] = what;
}

static struct happening pop(struct world *world)
{
    const struct happening first = world->heap[0];
    const struct happening last = world->heap[--world->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= world->n_heap)
            break;
        if (child + 1 < world->n_heap &&
            is_before(&world->heap[child + 1], &world->heap[child]))
            child++;
        if (!is_before(&world->heap[child], &last))
            break;
        world->heap[at] = world->heap[child];
        at = child;
    }
    if (world->n_heap > 0)
        world->heap[at] = last;
    return first;
}

static void soon(struct world *world, enum action action, size_t node,
                 int64_t within)
{
    push(world, (struct happening){.at = world->now + up_to(world, within),
                                   .action = action,
                                   .node = node});
}

/* --- what a machine did ------------------------------------------------- */

static size_t index_of(const struct world *world, uint32_t id)
{
    for (size_t i = 0; i < world->plan.n; i++) {
        if (world->lives[i].id == id)
            return i;
    }
    return world->plan.n;
}

static void put_on_wire(struct world *world, size_t from,
                        const struct ls_epoch_out *out)
{
    const size_t to = index_of(world, out->to);
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

static void note_entered(struct world *world, size_t node)
{
    const struct life *life = &world->lives[node];
    const struct ls_epoch *machine = life->machine;
    if (machine->rounds == 0 || machine->rounds > WORLD_EPOCHS_MAX)
        return;
    struct record *record = &world->records[machine->rounds - 1];
    const uint64_t nth = life->incarnation / WORLD_LIFE;
    record->entered[node][nth] = true;
    record->flags[node][nth] = machine->own_flags;
}

static void check_left(struct world *world, size_t node, uint64_t epoch,
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
        if (!record->entered[at][nth])
            violate(world, "left before all had entered", node, epoch);
        all |= record->flags[at][nth];
    }
    if (seen != all || (record->view == machine->view && record->seen != seen))
        violate(world, "flags differ", node, epoch);
    record->seen = seen;
    record->view = machine->view;
    record->left[node] = true;
}

static void on_end(struct world *world, size_t node,
                   const struct ls_epoch_end *end)
{
    struct life *life = &world->lives[node];
    life->waiting = false;
    if (end->epoch >= WORLD_EPOCHS_MAX) {
        life->done = true;
        return;
    }
    if (end->status == LS_OK) {
        check_left(world, node, end->epoch, end->flags);
        life->n_left++;
    } else {
        world->records[end->epoch].failed[node] = true;
        life->n_failed++;
    }
    const bool enough = life->n_left >= world->plan.waits;
    if (enough || (end->status != LS_OK && !world->plan.retry))
        life->done = true;
    if (!life->done || world->plan.retry)
        soon(world, ENTER, node,
             end->status == LS_OK ? world->plan.think : 50 * WORLD_MS);
}

/* Take what the machine has to say after an input. */
static void settle(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    note_entered(world, node);
    size_t n;
    const struct ls_epoch_out *out = ls_epoch_take(life->machine, &n);
    for (size_t i = 0; i < n; i++)
        put_on_wire(world, node, &out[i]);
    const struct ls_epoch_end *end = ls_epoch_end(life->machine);
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

static void start(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    if (ls_epoch_create(&life->machine, life->id, (uint32_t)world->plan.n) !=
        LS_OK)
        abort();
    ls_epoch_set_incarnation(life->machine, life->incarnation);
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

static size_t n_met(const struct world *world, size_t node)
{
    size_t n = 0;
    for (size_t i = 0; i < world->plan.n; i++) {
        const bool dead = world->lives[i].done && !world->lives[i].up;
        n += world->lives[node].met[i] || dead ? 1 : 0;
    }
    return n;
}

static void enter(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    if (life->waiting)
        return;
    /* As ls_node_start() does: nobody waits in a world that was not formed. */
    if (n_met(world, node) + 1 < world->plan.n) {
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

static void deliver(struct world *world, const struct happening *what)
{
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    struct ls_barrier_message message;
    if (ls_barrier_wire_decode(what->bytes, what->size, &message, scratch) !=
        LS_OK)
        violate(world, ls_error_text(), what->peer, 0);
    else
        ls_epoch_receive(world->lives[what->node].machine, world->now,
                         world->lives[what->peer].id, what->incarnation,
                         &message);
    settle(world, what->node);
}

static void tell_lost(struct world *world, size_t node, size_t about,
                      int64_t within)
{
    push(world,
         (struct happening){.at = world->now + up_to(world, within),
                            .action = LOST,
                            .node = node,
                            .peer = about,
                            .incarnation = world->lives[about].incarnation});
}

static void crash(struct world *world, size_t node)
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

static void restart(struct world *world, size_t node)
{
    struct life *life = &world->lives[node];
    life->incarnation += WORLD_LIFE;
    memset(life->met, 0, sizeof life->met);
    life->n_failed = 0;
    life->n_left = 0;
    start(world, node);
}

static void lost(struct world *world, const struct happening *what)
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

static void join(struct world *world, const struct happening *what)
{
    if (!world->lives[what->peer].up ||
        world->lives[what->peer].incarnation != what->incarnation)
        return;
    if (ls_epoch_joined(world->lives[what->node].machine, world->now,
                        world->lives[what->peer].id,
                        what->incarnation) != LS_OK)
        abort();
    world->lives[what->node].met[what->peer] = true;
    settle(world, what->node);
}

static void act(struct world *world, const struct happening *what)
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
