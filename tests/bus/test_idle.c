/* What a node does not hold for those that it only knows. */
#include "bus.h"
#include "test.h"
#include "world_fixture.h"

#define HUB  0
#define FROM 1
#define TO   2
#define ONE  3 /* nobody talks to it */
#define N    4

static bool has_hop(ls_node *node, uint32_t id)
{
    transport_lock(node->transport);
    const bool has = world_find(node, id)->hop != NULL;
    transport_unlock(node->transport);
    return has;
}

static bool has_streams(ls_node *node, uint32_t id)
{
    transport_lock(node->transport);
    const bool has = streams_of(world_find(node, id)) != NULL;
    transport_unlock(node->transport);
    return has;
}

static void listen_at_one(ls_node *node, size_t index, void *heard)
{
    if (index == TO)
        assert_ok(ls_on(node, "x", count, heard));
}

static void star_start(struct world *world, struct counter *heard)
{
    counter_init(heard);
    world_start(world, &(struct world_plan){.n = N,
                                            .topology = LS_TOPOLOGY_STAR,
                                            .prepare = listen_at_one,
                                            .self = heard});
}

TEST(only_those_it_is_connected_to_have_windows)
{
    struct world world;
    struct counter heard;
    star_start(&world, &heard);
    for (uint32_t i = 1; i < N; i++) {
        ls_node *leaf = world.at[i].node;
        assert_true(has_hop(world.at[HUB].node, ls_node_id(leaf)));
        assert_true(has_hop(leaf, ls_node_id(world.at[HUB].node)));
        for (uint32_t j = 1; j < N; j++)
            assert_true(i == j || !has_hop(leaf, ls_node_id(world.at[j].node)));
    }
    world_destroy(&world);
    counter_fini(&heard);
}

TEST(streams_are_made_with_the_first_message)
{
    struct world world;
    struct counter heard;
    star_start(&world, &heard);
    ls_node *from = world.at[FROM].node, *to = world.at[TO].node;
    ls_node *one = world.at[ONE].node;
    assert_false(has_streams(from, ls_node_id(to)));
    assert_false(has_streams(to, ls_node_id(from)));
    assert_ok(ls_node_set_delivery(from, "x", LS_DELIVERY_RELIABLE));
    assert_ok(ls_emit(from, "x", NULL, 0));
    assert_reaches(&heard, 1);
    assert_true(has_streams(from, ls_node_id(to)));
    assert_true(has_streams(to, ls_node_id(from)));
    assert_false(has_streams(from, ls_node_id(one)));
    assert_false(has_streams(one, ls_node_id(from)));
    world_destroy(&world);
    counter_fini(&heard);
}
