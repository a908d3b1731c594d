/* pair_fixture.h - two nodes that hear each other. */
#ifndef PAIR_FIXTURE_H
#define PAIR_FIXTURE_H

#include "world_fixture.h"

/* Two nodes that both count one event from the start. */
struct pair {
    struct world world;
    struct counter heard[2];
    ls_node *a, *b;
};

static inline void listen_both(ls_node *node, size_t index, void *self)
{
    struct pair *pair = self;
    counter_init(&pair->heard[index]);
    assert_ok(ls_on(node, "hi", count, &pair->heard[index]));
}

static inline struct pair *
pair_start_with(void (*tune)(struct ls_node_options *options, size_t index))
{
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    world_start(&pair->world, &(struct world_plan){.n = 2,
                                                   .tune = tune,
                                                   .prepare = listen_both,
                                                   .self = pair});
    pair->a = pair->world.at[0].node;
    pair->b = pair->world.at[1].node;
    return pair;
}

static inline struct pair *pair_start(void)
{
    return pair_start_with(NULL);
}

static inline void pair_end(struct pair *pair)
{
    world_destroy(&pair->world);
    counter_fini(&pair->heard[0]);
    counter_fini(&pair->heard[1]);
    free(pair);
}

/* Wait until a node has handled all that it was sent before this. */
static inline void flush_local(ls_node *node)
{
    struct counter done;
    counter_init(&done);
    assert_ok(ls_once(node, "flush", count, &done));
    assert_ok(
        ls_emit_with(node, &(struct ls_emission){.event = "flush",
                                                 .scope = LS_SCOPE_LOCAL}));
    assert_reaches(&done, 1);
    counter_fini(&done);
}

#endif
