/* Groups of nodes, over inproc. */
#include "group_ranks.h"

#include <unistd.h>

/* Ids that are not ranks. */
static uint32_t node_id(uint32_t index)
{
    return 7 + 1000 * index;
}

struct world {
    ls_node *nodes[RANKS_MAX];
    char endpoint[64];
};

static void create_node(struct ranks *ranks, struct world *world, uint32_t i)
{
    static int n_worlds;
    struct ls_node_options options;
    const char *attach = world->endpoint;
    ls_node_options_init(&options);
    options.id = node_id(i);
    options.start_timeout_ms = RANK_WAIT_MS;
    options.runtime = ranks->runtime;
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

static int start_and_form(struct rank *rank)
{
    const struct world *world = rank->extra;
    const int status = ls_node_start(world->nodes[rank->index]);
    return status == LS_OK ? ls_group_form(rank->group, RANK_WAIT_MS) : status;
}

static void make_nodes_with(struct ranks *ranks, uint32_t n,
                            const struct ls_group_options *options)
{
    struct world *world = calloc(1, sizeof *world);
    *ranks = (struct ranks){.n = n, .runtime = ls_runtime_threads()};
    for (uint32_t i = 0; i < n; i++) {
        ranks->at[i] =
            (struct rank){.ranks = ranks, .index = i, .extra = world};
        create_node(ranks, world, i);
        assert_ok(
            ls_group_create(&ranks->at[i].group, world->nodes[i], options));
        assert_int_equal(ls_group_generation(ranks->at[i].group), 0);
    }
    ranks_do(ranks, start_and_form);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id;
        assert_int_equal(ls_group_rank(ranks->at[i].group), i);
        assert_int_equal(ls_group_size(ranks->at[i].group), n);
        assert_ok(ls_group_id(ranks->at[i].group, n - 1, &id));
        assert_int_equal(id, node_id(n - 1));
    }
}

static void make_nodes(struct ranks *ranks, uint32_t n)
{
    make_nodes_with(ranks, n, NULL);
}

static void destroy_nodes(struct ranks *ranks)
{
    struct world *world = ranks->at[0].extra;
    for (uint32_t i = 0; i < ranks->n; i++) {
        assert_ok(ls_group_destroy(&ranks->at[i].group));
        assert_ok(ls_node_destroy(&world->nodes[i]));
    }
    free(world);
}

static const struct rank_maker nodes = {make_nodes, destroy_nodes};

#define TEST_PROMISE(name)                                                     \
    TEST(name)                                                                 \
    {                                                                          \
        static const uint32_t sizes[] = {1, 2, 3, 5};                          \
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)            \
            promise_##name(&nodes, sizes[i]);                                  \
    }
GROUP_PROMISES(TEST_PROMISE)
