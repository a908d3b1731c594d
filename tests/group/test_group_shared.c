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

/* --- memory of ls_group_alloc() ------------------------------------------- */

enum { NUMBERS = 20001 };

/* What a rank brings; exact, as is the sum. */
static float share_of(const struct rank *rank, size_t i)
{
    return (float)(ls_group_rank(rank->group) + i % 100);
}

/* Errors: LS_EINVARIANT the sum is wrong, or it was lent though it should not
 * have been, or was not. */
static int sum_of_memory(struct rank *rank, float *numbers, bool lent)
{
    struct ls_group_stats before, after;
    const float n = (float)ls_group_size(rank->group);
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = share_of(rank, i);
    ls_group_stats(rank->group, &before);
    const int status =
        ls_group_all_reduce(rank->group, numbers, NUMBERS, LS_GROUP_F32,
                            LS_GROUP_SUM, RANK_WAIT_MS);
    if (status != LS_OK)
        return status;
    ls_group_stats(rank->group, &after);
    if (after.lent - before.lent != (lent ? 1 : 0))
        return ls_error(LS_EINVARIANT, "it was%s lent", lent ? " not" : "");
    for (size_t i = 0; i < NUMBERS; i++)
        if (numbers[i] != n * (n - 1) / 2 + n * (float)(i % 100))
            return ls_error(LS_EINVARIANT, "number %zu is %g", i,
                            (double)numbers[i]);
    return LS_OK;
}

static int alloc_numbers(struct rank *rank, float **numbers)
{
    void *memory;
    const int status =
        ls_group_alloc(rank->group, &memory, NUMBERS * sizeof(float));
    if (status == LS_OK)
        *numbers = memory;
    return status;
}

static uint64_t n_lent(struct rank *rank)
{
    struct ls_group_stats stats;
    ls_group_stats(rank->group, &stats);
    return stats.lent;
}

/* Any sizes, of ranks each by itself: the last one's is not of the group. */
static int lend_to_gathers(struct rank *rank)
{
    const uint32_t own = ls_group_rank(rank->group);
    const bool lends = own + 1 < ls_group_size(rank->group);
    static float plain[NUMBERS];
    float *numbers = plain;
    struct ls_group_parts parts;
    int status = lends ? alloc_numbers(rank, &numbers) : LS_OK;
    struct ls_group_operation operation = {.kind = LS_GROUP_ALL_GATHER,
                                           .count = (NUMBERS - own) * 4,
                                           .in = numbers,
                                           .parts = &parts};
    for (size_t i = 0; i < NUMBERS && status == LS_OK && lends; i++)
        numbers[i] = share_of(rank, i);
    if (status == LS_OK)
        status = ls_group_do(rank->group, &operation);
    if (status == LS_OK && (n_lent(rank) != (lends ? 1u : 0) ||
                            ((const float *)parts.items[1].data)[77] != 78.0f))
        status = ls_error(LS_EINVARIANT, "a gathering lends");
    ls_group_parts_free(&parts);
    operation.kind = LS_GROUP_BROADCAST; /* by rank 0 */
    operation.parts = NULL;
    operation.out = numbers;
    operation.count = NUMBERS * 4;
    if (status == LS_OK)
        status = ls_group_do(rank->group, &operation);
    if (status == LS_OK &&
        (n_lent(rank) != (lends ? 1u : 0) + (own == 0 ? 1u : 0) ||
         numbers[77] != 77.0f))
        status = ls_error(LS_EINVARIANT, "a broadcast lends");
    operation.parts = &parts;
    if (status == LS_OK)
        status = ls_group_do(rank->group, &operation);
    if (status == LS_OK &&
        (n_lent(rank) != (lends ? 1u : 0) + (own == 0 ? 2u : 0) ||
         ((const float *)parts.items[0].data)[77] != 77.0f))
        status = ls_error(LS_EINVARIANT, "a broadcast of any size lends");
    ls_group_parts_free(&parts);
    if (status == LS_OK && lends)
        status = ls_group_free(rank->group, numbers);
    return status;
}

TEST(what_a_rank_brings_out_of_its_memory_is_lent)
{
    struct ranks ranks;
    make_shared(&ranks, 3);
    ranks_do(&ranks, lend_to_gathers);
    destroy_nodes(&ranks);
}

static float *kept[RANKS_MAX];

static int form_and_sum(struct rank *rank)
{
    const int status = start_and_form(rank);
    return status == LS_OK ? sum_of_memory(rank, kept[rank->index], true)
                           : status;
}

static int form_again_and_sum(struct rank *rank)
{
    if (kept[rank->index][5] != 4 * 3 / 2 + 4 * 5.0f)
        return ls_error(LS_EINVARIANT, "what lay there is gone");
    const int status = form(rank);
    return status == LS_OK ? sum_of_memory(rank, kept[rank->index], true)
                           : status;
}

TEST(memory_is_lent_in_every_generation_and_stays)
{
    struct ranks ranks;
    create_nodes(&ranks, 4, LS_TOPOLOGY_MESH, &go_on);
    for (uint32_t i = 0; i < 4; i++)
        assert_ok(alloc_numbers(&ranks.at[i], &kept[i]));
    ranks_do(&ranks, form_and_sum);
    lose(&ranks, 0);
    ranks_do_without(&ranks, 1, meet);
    check_statuses(&ranks, 1, LS_ELOST, "node 7 was lost");
    ranks_do_without(&ranks, 1, form_again_and_sum);
    check_statuses(&ranks, 1, LS_OK, "");
    for (uint32_t i = 0; i < 4; i++)
        assert_ok(ls_group_free(ranks.at[i].group, kept[i]));
    destroy_nodes(&ranks);
}

static int sum_of_much(struct rank *rank)
{
    float *fits, *does_not;
    int status = alloc_numbers(rank, &fits);
    if (status == LS_OK)
        status = alloc_numbers(rank, &does_not);
    if (status == LS_OK)
        status = sum_of_memory(rank, fits, true);
    if (status == LS_OK)
        status = sum_of_memory(rank, does_not, false);
    if (status != LS_OK)
        return status;
    (void)ls_group_free(rank->group, fits);
    (void)ls_group_free(rank->group, does_not);
    status = alloc_numbers(rank, &fits);
    if (status == LS_OK)
        status = sum_of_memory(rank, fits, true);
    (void)ls_group_free(rank->group, fits);
    return status;
}

TEST(memory_beyond_alloc_bytes_is_copied)
{
    const struct ls_group_options options = {.room = LS_GROUP_ROOM_ALWAYS,
                                             .alloc_bytes = (NUMBERS + 1000) *
                                                            sizeof(float)};
    struct ranks ranks;
    make_nodes_with(&ranks, 3, LS_TOPOLOGY_MESH, &options);
    ranks_do(&ranks, sum_of_much);
    destroy_nodes(&ranks);
}

/* By messages; then in memory of its own, once it has formed. */
static int sum_in_a_sub_group(struct rank *rank)
{
    struct rank of = {.ranks = rank->ranks, .index = rank->index};
    float *numbers;
    int status = ls_group_split(&of.group, rank->group, 0, RANK_WAIT_MS);
    if (status == LS_OK)
        status = alloc_numbers(&of, &numbers);
    if (status == LS_OK)
        status = sum_of_memory(&of, numbers, false);
    if (status == LS_OK)
        status = form(&of);
    if (status == LS_OK)
        status = sum_of_memory(&of, numbers, true);
    if (status == LS_OK)
        status = sum_of_memory(rank, numbers, false); /* not its own */
    if (status == LS_OK)
        status = ls_group_free(of.group, numbers);
    (void)ls_group_destroy(&of.group);
    return status;
}

TEST(a_sub_group_lends_once_it_is_formed_anew)
{
    struct ranks ranks;
    make_shared(&ranks, 3);
    ranks_do(&ranks, sum_in_a_sub_group);
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
