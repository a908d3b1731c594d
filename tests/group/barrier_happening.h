/* barrier_happening.h - what a virtual world of barriers is planned to suffer,
 * what is known of it, and what happens there next: all drawn from one seed.
 * Included by barrier_world.h. */
#ifndef BARRIER_HAPPENING_H
#define BARRIER_HAPPENING_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_epoch.h"
#include "barrier_sabotage.h"
#include "lockstep/random.h"
#include "lockstep/runtime.h"

#define WORLD_NODES_MAX  64
#define WORLD_EPOCHS_MAX 512
#define WORLD_LIVES_MAX  4
#define WORLD_LIFE       1000 /* what a new life adds to the incarnation */
#define WORLD_MS         LS_NS_PER_MS

struct plan {
    size_t n;
    uint32_t fanout; /* of the tree */
    uint32_t hosts;  /* each is on one of these; 0: on one of its own */
    uint32_t least;  /* members that there must be; 0: n, and no more */
    bool any;        /* any number will do */
    size_t formed;   /* nobody waits before so many have met; 0: n */
    bool go_on;      /* without the lost */
    int64_t grace;   /* wait so long for them */
    unsigned waits;  /* each node waits so often, at least */
    double loss;     /* of messages */
    double twice;    /* so many come a second time */
    int64_t delay;   /* up to so many ns */
    int64_t think;   /* between two waits, up to */
    int64_t late;    /* start, up to */
    unsigned crashes;
    bool restart;     /* who crashed comes back as a new life */
    bool false_lost;  /* once somebody is wrongly declared lost */
    unsigned aborts;  /* in all */
    bool retry;       /* go on after an error; else it is the last wait */
    int64_t deadline; /* of each wait; 0: none */
    bool alike;       /* who fail an epoch do so with the same status */
    enum ls_sabotage sabotage;
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
    uint64_t host;
    bool born;
    bool up;
    bool waiting;
    bool done;
    uint32_t flags;
    uint64_t count; /* of its waits */
    uint64_t since; /* of the last epoch that it left */
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
    bool counted[WORLD_NODES_MAX]; /* by one who left */
    bool failed[WORLD_NODES_MAX];
    int cause;     /* of those who failed for another's; LS_OK: nobody did */
    uint32_t seen; /* flags that those saw who left last */
    uint64_t view; /* whom those counted; 0: nobody has left */
    uint64_t since;
    uint32_t n_members;
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
    uint64_t n_sent;
    char violation[160];
    char failure[160]; /* why the first wait failed; "": none did */
};

static inline void violate(struct world *world, const char *what, size_t node,
                           uint64_t epoch)
{
    if (world->violation[0] == '\0')
        snprintf(world->violation, sizeof world->violation,
                 "%s: node %zu, epoch %llu", what, node,
                 (unsigned long long)epoch);
}

static inline int64_t up_to(struct world *world, int64_t bound)
{
    return (int64_t)ls_rng_below(&world->rng, (uint64_t)bound + 1);
}

static inline bool chance(struct world *world, double p)
{
    return ls_rng_double(&world->rng) < p;
}

/* --- what happens next -------------------------------------------------- */

static inline bool is_before(const struct happening *a,
                             const struct happening *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static inline void push(struct world *world, struct happening what)
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

static inline struct happening pop(struct world *world)
{
    const struct happening first = world->heap[0];
    const struct happening last = world->heap[--world->n_heap];
    world->heap[world->n_heap].bytes = NULL; /* moved */
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

static inline void soon(struct world *world, enum action action, size_t node,
                        int64_t within)
{
    push(world, (struct happening){.at = world->now + up_to(world, within),
                                   .action = action,
                                   .node = node});
}

static inline size_t index_of(const struct world *world, uint32_t id)
{
    for (size_t i = 0; i < world->plan.n; i++) {
        if (world->lives[i].id == id)
            return i;
    }
    return world->plan.n;
}

#endif
