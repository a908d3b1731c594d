/* Groups of nodes, over inproc. */
#include "base/sanitized.h"
#include "group_nodes.h"

#include "lockstep/channel.h"

/* By messages, unless a test says otherwise. */
static const struct ls_group_options by_messages = {.room =
                                                        LS_GROUP_ROOM_NEVER};

static void make_nodes(struct ranks *ranks, uint32_t n)
{
    struct ls_group_stats stats;
    make_nodes_with(ranks, n, LS_TOPOLOGY_MESH, &by_messages);
    ls_group_stats(ranks->at[0].group, &stats);
    assert_int_equal(stats.shared, 0);
}

static const struct rank_maker nodes = {make_nodes, destroy_nodes};

/* Under a sanitizer one size: what it looks for is on the way of each. */
#define TEST_PROMISE(name)                                                     \
    TEST(name)                                                                 \
    {                                                                          \
        static const uint32_t sizes[] = {4, 1, 2, 3};                          \
        for (size_t i = 0; i < (SANITIZED ? 1 : 4); i++)                       \
            promise_##name(&nodes, sizes[i]);                                  \
    }
GROUP_PROMISES(TEST_PROMISE)

TEST(sixteen_nodes_do_as_well)
{
    promise_every_operation_gives_its_result(&nodes, SANITIZED ? 6 : RANKS_MAX);
}

static void make_star(struct ranks *ranks, uint32_t n)
{
    make_nodes_with(ranks, n, LS_TOPOLOGY_STAR, &by_messages);
}

TEST(a_hub_carries_a_group_as_well)
{
    static const struct rank_maker star = {make_star, destroy_nodes};
    promise_every_operation_gives_its_result(&star, 3);
    promise_long_payloads_arrive_whole(&star, 4);
    promise_pairs_exchange_in_order(&star, 3);
}

static void make_one_round(struct ranks *ranks, uint32_t n)
{
    const struct ls_group_options options = {.exit_ready = true,
                                             .room = LS_GROUP_ROOM_NEVER};
    make_nodes_with(ranks, n, LS_TOPOLOGY_MESH, &options);
}

TEST(one_round_of_messages_gives_the_same_results)
{
    static const struct rank_maker one_round = {make_one_round, destroy_nodes};
    promise_every_operation_gives_its_result(&one_round, 2);
    promise_every_operation_gives_its_result(&one_round, 5);
    promise_operations_overlap_and_end_in_order(&one_round, 3);
}

/* --- who is in a group -------------------------------------------------- */

/* Only some nodes make the group; the others are in the world. */
static int form_if_in(struct rank *rank)
{
    const struct world *world = rank->extra;
    const int status = ls_node_start(world->nodes[rank->index]);
    return status != LS_OK || rank->group == NULL
               ? status
               : ls_group_form(rank->group, RANK_WAIT_MS);
}

static int sum_ids(struct rank *rank)
{
    int64_t sum = node_id(rank->index);
    if (rank->group == NULL)
        return LS_OK;
    const int status = ls_group_all_reduce(rank->group, &sum, 1, LS_GROUP_I64,
                                           LS_GROUP_SUM, RANK_WAIT_MS);
    if (status == LS_OK && sum != node_id(1) + node_id(3))
        return ls_error(LS_EINVARIANT, "a sum of %d", (int)sum);
    return status;
}

/* Nodes 1 and 3 of five. */
static void check_two_of_five(const struct ls_group_options *options)
{
    struct ranks ranks = {.n = 5, .runtime = ls_runtime_threads()};
    struct world *world = calloc(1, sizeof *world);
    for (uint32_t i = 0; i < ranks.n; i++) {
        ls_group *none;
        ranks.at[i] =
            (struct rank){.ranks = &ranks, .index = i, .extra = world};
        create_node(&ranks, world, i);
        if (i == 1 || i == 3)
            assert_ok(
                ls_group_create(&ranks.at[i].group, world->nodes[i], options));
        else
            assert_fails(ls_group_create(&none, world->nodes[i], options),
                         LS_EINVAL);
    }
    ranks_do(&ranks, form_if_in);
    assert_int_equal(ls_group_size(ranks.at[3].group), 2);
    assert_int_equal(ls_group_rank(ranks.at[3].group), 1);
    ranks_do(&ranks, sum_ids);
    destroy_nodes(&ranks);
}

TEST(members_are_those_with_a_word_or_these)
{
    const uint32_t ids[] = {node_id(3), node_id(1)};
    const struct ls_group_options of_word = {.word = LABEL};
    const struct ls_group_options these = {.ids = ids, .n_ids = 2};
    check_two_of_five(&of_word);
    check_two_of_five(&these);
}

TEST(wrong_options_are_refused)
{
    const uint32_t ids[] = {node_id(0), node_id(1), node_id(1)};
    struct ls_group_options options = {.word = LABEL, .ids = ids, .n_ids = 1};
    struct ranks ranks;
    ls_group *group;
    create_nodes(&ranks, 1, LS_TOPOLOGY_MESH, NULL);
    const struct world *world = ranks.at[0].extra;
    assert_fails(ls_group_create(&group, world->nodes[0], &options), LS_EINVAL);
    options =
        (struct ls_group_options){.name = "twice", .ids = ids, .n_ids = 3};
    assert_fails(ls_group_create(&group, world->nodes[0], &options), LS_EINVAL);
    assert_error_has("is twice among its ids");
    options = (struct ls_group_options){.name = "two words"};
    assert_fails(ls_group_create(&group, world->nodes[0], &options), LS_EINVAL);
    options.name = "";
    assert_fails(ls_group_create(&group, world->nodes[0], &options), LS_EINVAL);
    options.name = "0123456789012345678901234567890123456789012345678901234567"
                   "890123456789";
    assert_fails(ls_group_create(&group, world->nodes[0], &options), LS_EINVAL);
    options = (struct ls_group_options){.name = "other", .grace_ms = -1};
    assert_fails(ls_group_create(&group, world->nodes[0], &options), LS_EINVAL);
    options = (struct ls_group_options){.name = "other",
                                        .room = (enum ls_group_room)7};
    assert_fails(ls_group_create(&group, world->nodes[0], &options), LS_EINVAL);
    assert_fails(ls_group_create(&group, world->nodes[0], NULL), LS_EEXIST);
    assert_null(group);
    assert_fails(ls_group_barrier(ranks.at[0].group, 1000), LS_ESTATE);
    assert_error_has("ls_group_form");
    assert_fails(ls_group_split(&group, ranks.at[0].group, 0, 1000), LS_ESTATE);
    assert_null(group);
    assert_fails(ls_group_form(ranks.at[0].group, 1000), LS_ESTATE);
    assert_error_has("start the node");
    destroy_nodes(&ranks);
}

TEST(there_are_so_many_groups_within_one_and_no_more)
{
    enum { MOST = 16 };
    const struct ls_group_options options = {
        .name =
            "0123456789012345678901234567890123456789012345678901234567890123",
        .room = LS_GROUP_ROOM_NEVER};
    struct ranks ranks;
    ls_group *groups[MOST];
    size_t n = 1;
    int status = LS_OK;
    make_nodes_with(&ranks, 1, LS_TOPOLOGY_MESH, &options);
    groups[0] = ranks.at[0].group;
    for (; n < MOST && status == LS_OK; n += status == LS_OK)
        status = ls_group_split(&groups[n], groups[n - 1], 1, RANK_WAIT_MS);
    assert_fails(status, LS_ELIMIT);
    assert_true(n >= 3); /* two within one */
    assert_null(groups[n]);
    while (--n > 0) {
        assert_ok(ls_group_barrier(groups[n], RANK_WAIT_MS));
        assert_ok(ls_group_destroy(&groups[n]));
    }
    assert_ok(ls_group_barrier(groups[0], RANK_WAIT_MS));
    destroy_nodes(&ranks);
}

/* --- losses ------------------------------------------------------------- */

TEST(a_group_that_fails_on_loss_stays_failed)
{
    struct ranks ranks;
    make_nodes(&ranks, 4);
    lose(&ranks, 2);
    ranks_do_without(&ranks, 4, meet);
    check_statuses(&ranks, 4, LS_ELOST, "node 2007 was lost");
    ranks_do_without(&ranks, 4, meet);
    check_statuses(&ranks, 4, LS_ELOST, "node 2007 was lost");
    ranks_do_without(&ranks, 4, form);
    check_statuses(&ranks, 4, LS_ELOST, "node 2007 was lost");
    destroy_nodes(&ranks);
}

TEST(the_next_generation_is_without_the_lost)
{
    const struct ls_group_options options = {.on_loss = LS_ON_LOSS_GO_ON,
                                             .room = LS_GROUP_ROOM_NEVER};
    struct ranks ranks;
    make_nodes_with(&ranks, 4, LS_TOPOLOGY_MESH, &options);
    const uint64_t before = ls_group_generation(ranks.at[3].group);
    lose(&ranks, 0);
    ranks_do_without(&ranks, 1, meet);
    check_statuses(&ranks, 1, LS_ELOST, "node 7 was lost");
    ranks_do_without(&ranks, 1, form);
    ranks_do_without(&ranks, 1, sum_ranks);
    check_statuses(&ranks, 1, LS_OK, "");
    assert_int_equal(ls_group_size(ranks.at[3].group), 3);
    assert_int_equal(ls_group_rank(ranks.at[3].group), 2);
    assert_true(ls_group_generation(ranks.at[3].group) > before);
    destroy_nodes(&ranks);
}

TEST(an_interrupt_ends_the_generation)
{
    struct ranks ranks;
    make_nodes(&ranks, 3);
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

/* What others send on the channel of a group. */
static void ignore(void *self, uint32_t from, uint64_t incarnation,
                   const void *data, size_t size)
{
    (void)self;
    (void)from;
    (void)incarnation;
    (void)data;
    (void)size;
}

static int start_only(struct rank *rank)
{
    const struct world *world = rank->extra;
    return ls_node_start(world->nodes[rank->index]);
}

TEST(bytes_that_are_no_message_are_counted_and_dropped)
{
    static const struct ls_channel_ops ops = {.message = ignore};
    struct ranks ranks = {.n = 2, .runtime = ls_runtime_threads()};
    struct world *world = calloc(1, sizeof *world);
    struct ls_group_stats stats;
    ls_channel *channel;
    for (uint32_t i = 0; i < 2; i++) {
        ranks.at[i] =
            (struct rank){.ranks = &ranks, .index = i, .extra = world};
        create_node(&ranks, world, i);
    }
    const uint32_t ids[] = {node_id(0)};
    const struct ls_group_options alone = {.ids = ids, .n_ids = 1};
    assert_ok(ls_group_create(&ranks.at[0].group, world->nodes[0], &alone));
    assert_ok(ls_channel_open(&channel, world->nodes[1], "ls.group.world", &ops,
                              NULL));
    ranks_do(&ranks, start_only);
    assert_ok(ls_group_form(ranks.at[0].group, RANK_WAIT_MS));
    do {
        assert_ok(ls_channel_send(channel, node_id(0), "nonsense", 8));
        ls_group_stats(ranks.at[0].group, &stats);
    } while (stats.dropped == 0);
    assert_ok(ls_group_barrier(ranks.at[0].group, RANK_WAIT_MS));
    ls_channel_close(&channel);
    destroy_nodes(&ranks);
}

TEST(a_node_that_stops_ends_its_operations)
{
    struct ranks ranks;
    ls_collective *started;
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER};
    make_nodes(&ranks, 2);
    assert_ok(ls_group_start(&started, ranks.at[1].group, &operation));
    assert_fails(ls_collective_wait(started, 0), LS_ETIMEDOUT);
    assert_false(ls_collective_has_ended(started));
    lose(&ranks, 1);
    assert_fails(ls_collective_wait(started, RANK_WAIT_MS), LS_ECLOSED);
    ls_collective_destroy(&started);
    assert_null(started);
    assert_ok(ls_group_start(&started, ranks.at[1].group, &operation));
    assert_fails(ls_collective_wait(started, 0), LS_ECLOSED);
    ls_collective_destroy(&started);
    assert_fails(ls_group_form(ranks.at[1].group, RANK_WAIT_MS), LS_ECLOSED);
    const struct ls_group_options options = {.name = "late"};
    const struct world *world = ranks.at[0].extra;
    ls_group *group;
    assert_fails(ls_group_create(&group, world->nodes[1], &options),
                 LS_ECLOSED);
    assert_null(group);
    destroy_nodes(&ranks);
}
