/* group_nodes.h - groups of nodes of one process, over inproc: made, and what
 * their ranks do in tests of losses. */
#ifndef GROUP_NODES_H
#define GROUP_NODES_H

#include <unistd.h>

#include "group_ranks.h"
#include "lockstep/event.h"

/* Ids that are not ranks. */
static inline uint32_t node_id(uint32_t index)
{
    return 7 + 1000 * index;
}

struct world {
    ls_node *nodes[RANKS_MAX];
    char endpoint[64];
    enum ls_topology topology;
};

/* Every other node has it. */
#define LABEL "odd"

static inline void create_node(struct ranks *ranks, struct world *world,
                               uint32_t i)
{
    static int n_worlds;
    struct ls_node_options options;
    const char *attach = world->endpoint;
    ls_node_options_init(&options);
    options.id = node_id(i);
    options.start_timeout_ms = RANK_WAIT_MS;
    options.runtime = ranks->runtime;
    options.topology = world->topology;
    options.labels = i % 2 == 1 ? LABEL : "";
    if (i == 0)
        snprintf(world->endpoint, sizeof world->endpoint,
                 "inproc://group-%d-%d", (int)getpid(), n_worlds++);
    char bind[96];
    snprintf(bind, sizeof bind, "%s%s%u", world->endpoint, i == 0 ? "" : "-",
             i);
    if (i == 0)
        bind[strlen(world->endpoint)] = '\0';
    options.bind = bind;
    options.attach = &attach;
    options.n_attach = i == 0 ? 0 : 1;
    options.world_size = ranks->n;
    options.world_max = ranks->n;
    assert_ok(ls_node_create(&world->nodes[i], &options));
}

static inline int start_and_form(struct rank *rank)
{
    const struct world *world = rank->extra;
    const int status = ls_node_start(world->nodes[rank->index]);
    return status == LS_OK ? ls_group_form(rank->group, RANK_WAIT_MS) : status;
}

/* Nodes with groups that are not formed. */
static inline void create_nodes(struct ranks *ranks, uint32_t n,
                                enum ls_topology topology,
                                const struct ls_group_options *options)
{
    struct world *world = calloc(1, sizeof *world);
    world->topology = topology;
    *ranks = (struct ranks){.n = n, .runtime = ls_runtime_threads()};
    for (uint32_t i = 0; i < n; i++) {
        ranks->at[i] =
            (struct rank){.ranks = ranks, .index = i, .extra = world};
        create_node(ranks, world, i);
        assert_ok(
            ls_group_create(&ranks->at[i].group, world->nodes[i], options));
        assert_int_equal(ls_group_generation(ranks->at[i].group), 0);
    }
}

static inline void make_nodes_with(struct ranks *ranks, uint32_t n,
                                   enum ls_topology topology,
                                   const struct ls_group_options *options)
{
    create_nodes(ranks, n, topology, options);
    ranks_do(ranks, start_and_form);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id;
        assert_int_equal(ls_group_rank(ranks->at[i].group), i);
        assert_int_equal(ls_group_size(ranks->at[i].group), n);
        assert_ok(ls_group_id(ranks->at[i].group, n - 1, &id));
        assert_int_equal(id, node_id(n - 1));
    }
}

static inline void destroy_nodes(struct ranks *ranks)
{
    struct world *world = ranks->at[0].extra;
    for (uint32_t i = 0; i < ranks->n; i++) {
        assert_ok(ls_group_destroy(&ranks->at[i].group));
        assert_ok(ls_node_destroy(&world->nodes[i]));
    }
    free(world);
}

static inline int meet(struct rank *rank)
{
    return ls_group_barrier(rank->group, RANK_WAIT_MS);
}

static inline int form(struct rank *rank)
{
    return ls_group_form(rank->group, RANK_WAIT_MS);
}

/* Its node goes, in the middle of things. */
static inline void lose(struct ranks *ranks, uint32_t index)
{
    struct world *world = ranks->at[index].extra;
    assert_ok(ls_node_stop(world->nodes[index], LS_EHANDLER));
}

static inline void check_statuses(const struct ranks *ranks, uint32_t without,
                                  int status, const char *text)
{
    for (uint32_t i = 0; i < ranks->n; i++) {
        if ((without >> i & 1) != 0)
            continue;
        assert_int_equal(ranks->at[i].status, status);
        assert_has(ranks->at[i].text, text);
    }
}

static inline int sum_ranks(struct rank *rank)
{
    const uint32_t n = ls_group_size(rank->group);
    int64_t sum = ls_group_rank(rank->group);
    const int status = ls_group_all_reduce(rank->group, &sum, 1, LS_GROUP_I64,
                                           LS_GROUP_SUM, RANK_WAIT_MS);
    if (status == LS_OK && sum != (int64_t)n * (n - 1) / 2)
        return ls_error(LS_EINVARIANT, "a sum of %d", (int)sum);
    return status;
}

/* What is interrupted stays so until it is told otherwise. */
static inline int wait_interrupted_or_not(struct rank *rank)
{
    const struct world *world = rank->extra;
    const int status = ls_group_barrier(rank->group, RANK_WAIT_MS);
    ls_node_interrupt(world->nodes[rank->index], LS_OK);
    return status;
}

#endif
