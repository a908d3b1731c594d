/* store_world.h - three nodes, of which the first keeps a store's bytes. */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

#include "bus/world_fixture.h"
#define SPEC_TOO_LONG (((size_t)48 << 20) + 1)
#include "nodes/store_spec.h"
#include "store_bus.h"

#define STORE_NODES 3

struct store_world {
    struct store_pair pair; /* what the spec sees: nodes 2 and 3 */
    struct world world;
    struct store_bus_options home_options;
    ls_rpc *calls[STORE_NODES];
    struct store *stores[STORE_NODES]; /* that of the home as well */
    ls_node *nodes[STORE_NODES];
};

static inline void store_prepare(ls_node *node, size_t index, void *self)
{
    struct store_world *w = self;
    w->nodes[index] = node;
    assert_ok(ls_rpc_open(&w->calls[index], node, NULL));
    struct store_bus_options options = {.max_bytes = SPEC_TOO_LONG - 1};
    if (index == 0)
        options = w->home_options;
    options.node = node;
    options.calls = w->calls[index];
    options.coordinator = 1;
    assert_ok(store_bus_open(&w->stores[index], &options));
}

/* options: NULL: all default. plan: what differs from a mesh over inproc. */
static inline struct store_world *
store_world_start(const struct store_bus_options *options,
                  const struct world_plan *plan)
{
    struct store_world *w = calloc(1, sizeof *w);
    struct world_plan mine =
        plan != NULL ? *plan : (struct world_plan){.transport = NULL};
    assert_non_null(w);
    w->home_options.max_bytes = SPEC_TOO_LONG - 1;
    if (options != NULL)
        w->home_options = *options;
    mine.n = STORE_NODES;
    mine.prepare = store_prepare;
    mine.self = w;
    world_start(&w->world, &mine);
    w->pair.here = w->stores[1];
    w->pair.there = w->stores[2];
    return w;
}

static inline void store_world_end(struct store_world *w)
{
    for (size_t i = 0; i < STORE_NODES; i++)
        ls_rpc_close(&w->calls[i]);
    for (size_t i = 0; i < STORE_NODES; i++)
        store_close(&w->stores[i]);
    world_destroy(&w->world);
    free(w);
}

static inline struct store_home_stats home_stats(struct store_world *w)
{
    struct store_home_stats stats;
    store_bus_stats(w->stores[0], &stats);
    return stats;
}

#endif
