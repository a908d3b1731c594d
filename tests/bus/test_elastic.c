/* Worlds that may grow, and those that may not. */
#include "bus.h"
#include "lockstep/room.h"
#include "node_fixture.h"
#include "test.h"

static int start(ls_node **out, struct ls_node_options *options,
                 const ls_node *seed)
{
    const char *attach = seed != NULL ? ls_node_endpoint(seed) : NULL;
    options->attach = &attach;
    options->n_attach = seed != NULL ? 1 : 0;
    *out = create(options);
    options->attach = NULL; /* copied */
    const int status = ls_node_start(*out);
    if (status != LS_OK)
        ls_node_destroy(out);
    return status;
}

/* A world of two that may have `max`. */
static void two(ls_node **nodes, uint32_t max, enum ls_topology topology)
{
    struct ls_node_options options = usual(1);
    options.world_size = 2;
    options.world_max = max;
    options.topology = topology;
    nodes[0] = create(&options);
    assert_ok(ls_node_open(nodes[0]));
    options = usual(2);
    options.world_size = 2;
    options.world_max = max;
    options.topology = topology;
    assert_ok(start(&nodes[1], &options, nodes[0]));
    assert_ok(ls_node_join(nodes[0]));
}

static int join_as(ls_node **out, uint32_t id, const ls_node *seed)
{
    struct ls_node_options options = usual(id);
    options.world_size = 3;
    options.world_max = 3;
    options.topology = ls_node_topology(seed);
    options.linger_ms = 2000;
    return start(out, &options, seed);
}

static void on_third(void *self, const struct ls_member *member)
{
    if (member->id != 3)
        return;
    counter_add(self, member->state == LS_MEMBER_READY ? 1 : 100);
}

/* ---- growing ----------------------------------------------------------- */

static void grow_to_three(enum ls_topology topology)
{
    ls_node *nodes[3], *more;
    two(nodes, 3, topology);
    assert_ok(join_as(&nodes[2], 3, nodes[0]));
    assert_fails(join_as(&more, 4, nodes[0]), LS_ELIMIT);
    assert_error_has("node 4: the world is full");
    assert_error_has("counts 3 members");
    assert_true(ls_node_members(nodes[0], NULL, 0) >= 2);
    ls_node_destroy(&nodes[2]);
    ls_node_destroy(&nodes[1]);
    ls_node_destroy(&nodes[0]);
}

TEST(a_world_grows_to_its_limit_and_no_further)
{
    grow_to_three(LS_TOPOLOGY_MESH);
    grow_to_three(LS_TOPOLOGY_STAR);
}

TEST(a_place_that_became_free_is_taken)
{
    ls_node *nodes[3], *next;
    struct counter seen;
    counter_init(&seen);
    two(nodes, 3, LS_TOPOLOGY_MESH);
    assert_ok(ls_node_on_member(nodes[0], on_third, &seen));
    assert_ok(join_as(&nodes[2], 3, nodes[0]));
    assert_reaches(&seen, 1);
    ls_node_destroy(&nodes[2]);
    assert_reaches(&seen, 101);
    assert_ok(join_as(&next, 4, nodes[0]));
    ls_node_destroy(&next);
    ls_node_destroy(&nodes[1]);
    ls_node_destroy(&nodes[0]);
    counter_fini(&seen);
}

TEST(a_world_without_a_limit_of_its_own_stays_as_it_is)
{
    ls_node *nodes[2], *more;
    two(nodes, 0, LS_TOPOLOGY_MESH);
    assert_fails(join_as(&more, 3, nodes[0]), LS_ELIMIT);
    ls_node_destroy(&nodes[1]);
    ls_node_destroy(&nodes[0]);
}

TEST(one_that_waits_for_nobody_takes_all_that_come)
{
    struct ls_node_options options = usual(1);
    ls_node *first = started(&options), *others[3];
    for (uint32_t i = 0; i < 3; i++) {
        options = usual(i + 2);
        options.world_size = i + 2;
        options.world_max = 4;
        assert_ok(start(&others[i], &options, first));
    }
    for (uint32_t i = 0; i < 3; i++)
        ls_node_destroy(&others[i]);
    ls_node_destroy(&first);
}

TEST(a_limit_that_contradicts_the_world_is_refused)
{
    static const uint32_t members[] = {1, 2};
    struct ls_node_options options = usual(1);
    ls_node *node;
    options.world_size = 2;
    options.world_max = 1;
    assert_fails(ls_node_create(&node, &options), LS_EINVAL);
    assert_error_has("world_max");
    options.members = members;
    assert_fails(ls_node_create(&node, &options), LS_EINVAL);
    assert_error_has("world_max");
}

/* ---- many that came and went -------------------------------------------- */

TEST(those_that_are_not_ready_take_no_place_in_a_room_of_all)
{
    struct ls_node_options options = usual(1000);
    ls_node *node = started(&options);
    ls_room *room;
    transport_lock(node->transport);
    for (uint32_t id = 1; id <= LS_ROOM_MEMBERS_MAX; id++)
        assert_non_null(membership_note(&node->world, id, id));
    transport_unlock(node->transport);
    assert_ok(ls_room_create(&room, node, NULL));
    assert_int_equal(ls_room_size(room), 1);
    ls_room_destroy(&room);
    ls_node_destroy(&node);
}
