/* Groups whose memory runs out, at each place where they take some: the rank
 * that has none says so, and no other waits for it until its time is up. */
#include "allocations.h"
#include "group_nodes.h"
#include "lockstep/crew.h"

/* Nobody may wait for as long as this. */
#define NEVER_MS 600000
/* Who looks for the room of one who has none waits for a part of this. */
#define ROOM_MS 400

static int form_ms;

/* What was not begun is begun again: the others wait in it. */
static int split(ls_group **part, ls_group *group)
{
    const int status = ls_group_split(part, group, 0, NEVER_MS);
    return status == LS_ENOMEM ? ls_group_split(part, group, 0, NEVER_MS)
                               : status;
}

static int work(ls_group *group, ls_group **part)
{
    int64_t sum = 1;
    unsigned char bytes[100] = {0}, all[2 * sizeof bytes];
    struct ls_group_parts parts = {.n = 0};
    int status = ls_group_all_reduce(group, &sum, 1, LS_GROUP_I64, LS_GROUP_SUM,
                                     NEVER_MS);
    if (status == LS_OK)
        status = ls_group_all_gather(group, bytes, sizeof bytes, all, NEVER_MS);
    if (status == LS_OK)
        status = ls_group_do(
            group, &(struct ls_group_operation){.kind = LS_GROUP_ALL_GATHER,
                                                .count = sizeof bytes,
                                                .in = bytes,
                                                .parts = &parts,
                                                .timeout_ms = NEVER_MS});
    ls_group_parts_free(&parts);
    if (status == LS_OK)
        status = split(part, group);
    if (status == LS_OK)
        status = ls_group_barrier(*part, NEVER_MS);
    return status;
}

/* Who fails leaves, as ls_driver_run() has it. */
static int work_or_leave(struct rank *rank)
{
    ls_group *part = NULL;
    const int status = work(rank->group, &part);
    if (status != LS_OK)
        ls_group_leave(rank->group, status);
    if (part != NULL && status != LS_OK)
        ls_group_leave(part, status);
    const struct ls_failure failure = {.status = status};
    assert_ok(ls_group_destroy(&part));
    return failure.status;
}

static int form_and_work(struct rank *rank)
{
    const int status = ls_group_form(rank->group, form_ms);
    if (status == LS_OK)
        return work_or_leave(rank);
    ls_group_leave(rank->group, status);
    return status;
}

/* On threads that are there before memory runs out. */
static ls_crew *crew;

static void act(void *ranks, size_t number)
{
    rank_main(&((struct ranks *)ranks)->at[number]);
}

static void have_crew(struct ranks *ranks)
{
    assert_ok(ls_crew_create(&crew, ranks->runtime, 2, "rank", act, ranks));
}

static void both_do(struct ranks *ranks, int (*what)(struct rank *rank))
{
    ranks->act = what;
    ls_crew_run(crew);
}

/* All call the same; only a form that is short may be late. */
static bool is_wrong(int status)
{
    if (status == LS_EMISMATCH)
        return true;
    return form_ms == NEVER_MS && status != LS_OK &&
           (status == LS_ETIMEDOUT || !allocation_failed());
}

static bool are_well(const struct ranks *ranks)
{
    bool well = true;
    for (uint32_t i = 0; i < ranks->n; i++) {
        const int status = ranks->at[i].status;
        well = well && status == LS_OK;
        if (is_wrong(status))
            fail_msg("rank %u: %s", i, ranks->at[i].text);
    }
    return well;
}

TEST(threads)
{
    (void)state;
    struct ranks ranks = {.n = 2, .runtime = ls_runtime_threads()};
    ls_group *groups[2];
    form_ms = NEVER_MS;
    have_crew(&ranks);
    for (long n = 0; allocations_fail_at(n); n++) {
        if (ls_group_threads(groups, ranks.runtime, 2) != LS_OK)
            continue;
        for (uint32_t i = 0; i < 2; i++)
            ranks.at[i] =
                (struct rank){.ranks = &ranks, .index = i, .group = groups[i]};
        both_do(&ranks, work_or_leave);
        (void)are_well(&ranks);
        for (uint32_t i = 0; i < 2; i++)
            assert_ok(ls_group_destroy(&ranks.at[i].group));
    }
    ls_crew_destroy(&crew);
}

/* Their nodes are there, and stay. */
static void form_again(enum ls_group_room room, int wait_ms)
{
    const struct ls_group_options options = {.room = room};
    struct ranks ranks;
    make_nodes_with(&ranks, 2, LS_TOPOLOGY_MESH, &options);
    form_ms = wait_ms;
    have_crew(&ranks);
    for (long n = 0; allocations_fail_at(n); n++) {
        both_do(&ranks, form_and_work);
        (void)are_well(&ranks);
    }
    form_ms = NEVER_MS;
    both_do(&ranks, form_and_work);
    assert_true(are_well(&ranks));
    ls_crew_destroy(&crew);
    destroy_nodes(&ranks);
}

TEST(nodes_that_talk)
{
    (void)state;
    form_again(LS_GROUP_ROOM_NEVER, NEVER_MS);
}

TEST(nodes_that_share_memory)
{
    (void)state;
    form_again(LS_GROUP_ROOM_AUTO, ROOM_MS);
}
