/* Groups of nodes that share memory: what group.h promises holds there, too. */
#include "base/sanitized.h"
#include "group_nodes.h"

static const struct ls_group_options always = {.room = LS_GROUP_ROOM_ALWAYS};
static const struct ls_group_options go_on = {.on_loss = LS_ON_LOSS_GO_ON,
                                              .room = LS_GROUP_ROOM_ALWAYS};

static void make_shared(struct ranks *ranks, uint32_t n)
{
    make_nodes_with(ranks, n, LS_TOPOLOGY_MESH, &always);
}

static const struct rank_maker shared = {make_shared, destroy_nodes};

/* Under a sanitizer one size: what it looks for is on the way of each. */
#define TEST_PROMISE(name)                                                     \
    TEST(name)                                                                 \
    {                                                                          \
        promise_##name(&shared, 4);                                            \
        if (!SANITIZED)                                                        \
            promise_##name(&shared, 3);                                        \
    }
GROUP_PROMISES(TEST_PROMISE)

TEST(sixteen_nodes_do_as_well)
{
    promise_every_operation_gives_its_result(&shared,
                                             SANITIZED ? 6 : RANKS_MAX);
}

static int do_without_messages(struct rank *rank)
{
    struct ls_group_stats before, after;
    float numbers[5000] = {1};
    ls_collective *started;
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER};
    ls_group_stats(rank->group, &before);
    int status = ls_group_all_reduce(rank->group, numbers, 5000, LS_GROUP_F32,
                                     LS_GROUP_SUM, RANK_WAIT_MS);
    if (status == LS_OK)
        status = ls_group_start(&started, rank->group, &operation);
    if (status == LS_OK) {
        status = ls_collective_wait(started, LS_WAIT_DEFAULT);
        ls_collective_destroy(&started);
    }
    if (status != LS_OK)
        return status;
    ls_group_stats(rank->group, &after);
    if (after.shared != before.shared + 2 || after.sent != before.sent ||
        after.ended != after.shared || numbers[0] != (float)rank->ranks->n)
        return ls_error(LS_EINVARIANT, "%d operations, %d messages",
                        (int)(after.shared - before.shared),
                        (int)(after.sent - before.sent));
    return LS_OK;
}

TEST(operations_send_nothing_whether_waited_for_or_started)
{
    struct ranks ranks;
    make_nodes_with(&ranks, 3, LS_TOPOLOGY_MESH, NULL);
    ranks_do(&ranks, do_without_messages);
    destroy_nodes(&ranks);
}

/* The last one's options are others. */
static void make_different(struct ranks *ranks,
                           const struct ls_group_options *others)
{
    const struct ls_group_options never = {.room = LS_GROUP_ROOM_NEVER};
    create_nodes(ranks, 3, LS_TOPOLOGY_MESH, others);
    const struct world *world = ranks->at[0].extra;
    assert_ok(ls_group_destroy(&ranks->at[2].group));
    assert_ok(ls_group_create(&ranks->at[2].group, world->nodes[2], &never));
}

TEST(if_one_wants_none_there_is_none)
{
    struct ranks ranks;
    struct ls_group_stats stats;
    make_different(&ranks, NULL);
    ranks_do(&ranks, start_and_form);
    ranks_do(&ranks, sum_ranks);
    ls_group_stats(ranks.at[0].group, &stats);
    assert_int_equal(stats.ended, 1);
    assert_int_equal(stats.shared, 0);
    destroy_nodes(&ranks);
}

TEST(who_cannot_do_without_is_refused_in_all)
{
    struct ranks ranks;
    make_different(&ranks, &always);
    ranks_do_without(&ranks, 0, start_and_form);
    check_statuses(&ranks, 0, LS_EUNREACHABLE, "a member wants none");
    ranks_do_without(&ranks, 0, meet);
    check_statuses(&ranks, 0, LS_EUNREACHABLE, "");
    destroy_nodes(&ranks);
}

TEST(a_loss_fails_all_and_the_next_generation_shares_again)
{
    struct ranks ranks;
    struct ls_group_stats stats;
    make_nodes_with(&ranks, 4, LS_TOPOLOGY_MESH, &go_on);
    ranks_do(&ranks, sum_ranks);
    lose(&ranks, 0);
    ranks_do_without(&ranks, 1, meet);
    check_statuses(&ranks, 1, LS_ELOST, "node 7 was lost");
    ranks_do_without(&ranks, 1, meet);
    check_statuses(&ranks, 1, LS_ELOST, "node 7 was lost");
    ranks_do_without(&ranks, 1, form);
    ranks_do_without(&ranks, 1, sum_ranks);
    check_statuses(&ranks, 1, LS_OK, "");
    ls_group_stats(ranks.at[3].group, &stats);
    assert_int_equal(stats.shared, 2);
    assert_int_equal(ls_group_size(ranks.at[3].group), 3);
    destroy_nodes(&ranks);
}

TEST(an_interrupt_ends_the_generation)
{
    struct ranks ranks;
    make_nodes_with(&ranks, 3, LS_TOPOLOGY_MESH, &always);
    const struct world *world = ranks.at[0].extra;
    ls_node_interrupt(world->nodes[1], LS_ECANCELED);
    ranks_do_without(&ranks, 0, wait_interrupted_or_not);
    assert_int_equal(ranks.at[1].status, LS_ECANCELED);
    check_statuses(&ranks, 2, LS_EABORTED, "rank 1 (node 1007)");
    assert_int_equal(ranks.at[0].cause, LS_ECANCELED);
    ranks_do(&ranks, form);
    ranks_do(&ranks, sum_ranks);
    destroy_nodes(&ranks);
}

/* Rank 0 leaves while it is in an operation itself. */
static int leave_or_wait(struct rank *rank)
{
    ls_collective *started;
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER};
    if (rank->index == 1)
        return meet(rank);
    int status = ls_group_start(&started, rank->group, &operation);
    if (status != LS_OK)
        return status;
    ls_group_leave(rank->group, LS_EHANDLER);
    status = ls_collective_wait(started, LS_WAIT_DEFAULT);
    ls_collective_destroy(&started);
    return status;
}

TEST(who_leaves_in_the_middle_of_an_operation_ends_it_for_all)
{
    struct ranks ranks;
    make_nodes_with(&ranks, 3, LS_TOPOLOGY_MESH, &always);
    ranks_do_without(&ranks, 4, leave_or_wait); /* rank 2 does not come */
    assert_int_equal(ranks.at[0].status, LS_EHANDLER);
    assert_int_equal(ranks.at[1].status, LS_EABORTED);
    assert_int_equal(ranks.at[1].cause, LS_EHANDLER);
    assert_has(ranks.at[1].text, "rank 0 (node 7)");
    ranks_do_without(&ranks, 3, meet);
    assert_int_equal(ranks.at[2].status, LS_EABORTED);
    destroy_nodes(&ranks);
}

TEST(a_node_that_stops_ends_its_operations)
{
    struct ranks ranks;
    ls_collective *started;
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER};
    make_nodes_with(&ranks, 2, LS_TOPOLOGY_MESH, &always);
    assert_ok(ls_group_start(&started, ranks.at[1].group, &operation));
    assert_fails(ls_collective_wait(started, 0), LS_ETIMEDOUT);
    lose(&ranks, 1);
    assert_fails(ls_collective_wait(started, RANK_WAIT_MS), LS_ECLOSED);
    ls_collective_destroy(&started);
    destroy_nodes(&ranks);
}
