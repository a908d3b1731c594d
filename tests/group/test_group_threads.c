/* Groups of threads, and of one. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "group_ranks.h"
#include "lockstep/simulation.h"

static void make_threads(struct ranks *ranks, uint32_t n)
{
    ls_group *groups[RANKS_MAX];
    *ranks = (struct ranks){.n = n, .runtime = ls_runtime_threads()};
    assert_ok(ls_group_threads(groups, ranks->runtime, n));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id;
        ranks->at[i] =
            (struct rank){.ranks = ranks, .index = i, .group = groups[i]};
        assert_int_equal(ls_group_rank(groups[i]), i);
        assert_int_equal(ls_group_size(groups[i]), n);
        assert_int_equal(ls_group_generation(groups[i]), 1);
        assert_ok(ls_group_id(groups[i], n - 1, &id));
        assert_int_equal(id, n - 1);
    }
}

static void destroy_threads(struct ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->n; i++) {
        assert_ok(ls_group_destroy(&ranks->at[i].group));
        assert_null(ranks->at[i].group);
    }
}

static const struct rank_maker threads = {make_threads, destroy_threads};

#define TEST_PROMISE(name)                                                     \
    TEST(name)                                                                 \
    {                                                                          \
        promise_##name(&threads, 1);                                           \
        promise_##name(&threads, SANITIZED ? 3 : 7);                           \
    }
GROUP_PROMISES(TEST_PROMISE)

/* Of a copy of a process: 0, or which of these is not so. */
static int use_in_a_copy(ls_group *group, ls_collective *started, char *memory)
{
    void *more;
    if (ls_group_barrier(group, 1) != LS_ESTATE ||
        ls_group_form(group, 1) != LS_ESTATE ||
        ls_collective_wait(started, 1) != LS_ESTATE ||
        ls_group_destroy(&group) != LS_ESTATE || group == NULL)
        return 4;
    ls_collective_destroy(&started);
    ls_group_leave(group, LS_EHANDLER);
    if (ls_group_alloc(group, &more, 10) != LS_ESTATE || more != NULL)
        return 1;
    if (ls_group_free(group, memory) != LS_ESTATE)
        return 2;
    return memory[9] == 7 ? 0 : 3;
}

TEST(in_a_copy_of_the_process_it_can_only_be_read)
{
    ls_group *group;
    void *memory;
    assert_ok(ls_group_threads(&group, ls_runtime_threads(), 1));
    assert_ok(ls_group_alloc(group, &memory, 10));
    ((char *)memory)[9] = 7;
    ls_collective *started;
    assert_ok(
        ls_group_start(&started, group,
                       &(struct ls_group_operation){.kind = LS_GROUP_BARRIER}));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_in_a_copy(group, started, memory));
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_ok(ls_collective_wait(started, 0));
    ls_collective_destroy(&started);
    assert_ok(ls_group_barrier(group, 0));
    assert_ok(ls_group_free(group, memory));
    assert_ok(ls_group_destroy(&group));
}

TEST(sixteen_threads_do_as_well)
{
    promise_every_operation_gives_its_result(&threads,
                                             SANITIZED ? 2 : RANKS_MAX);
}

static int form_briefly(struct rank *rank)
{
    return ls_group_form(rank->group, 20);
}

static int form_later(struct rank *rank)
{
    return ls_group_form(rank->group, RANK_WAIT_MS);
}

TEST(a_generation_that_not_all_form_fails_for_those_who_do)
{
    struct ranks ranks;
    make_threads(&ranks, 3);
    ranks_do_without(&ranks, 4, form_briefly);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(ranks.at[i].status, LS_ETIMEDOUT);
        assert_has(ranks.at[i].text, "rank 2");
    }
    ranks_do(&ranks, form_later);
    assert_int_equal(ls_group_generation(ranks.at[2].group), 2);
    destroy_threads(&ranks);
}

/* --- who waits in it ---------------------------------------------------- */

static void form_alone(void *arg)
{
    struct rank *rank = arg;
    rank->status = ls_group_form(rank->group, RANK_WAIT_MS);
}

/* In a simulation a thread that began to wait a second ago does wait. */
static void destroy_under_a_wait(void *arg)
{
    ls_runtime *runtime = arg;
    ls_group *groups[2];
    assert_ok(ls_group_threads(groups, runtime, 2));
    struct rank rank = {.group = groups[0]};
    assert_ok(
        ls_thread_spawn(runtime, &rank.thread, "forms", form_alone, &rank));
    ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_S);
    assert_fails(ls_group_destroy(&groups[0]), LS_ESTATE);
    assert_ptr_equal(groups[0], rank.group);
    assert_ok(ls_group_form(groups[1], RANK_WAIT_MS));
    assert_ok(ls_thread_join(&rank.thread, LS_FOREVER));
    assert_int_equal(rank.status, LS_OK);
    assert_ok(ls_group_destroy(&groups[0]));
    assert_ok(ls_group_destroy(&groups[1]));
}

TEST(a_group_outlives_who_waits_in_it)
{
    ls_simulation *simulation;
    assert_ok(ls_simulation_create(&simulation, NULL));
    assert_ok(ls_simulation_run(simulation, destroy_under_a_wait,
                                ls_simulation_runtime(simulation)));
    ls_simulation_destroy(&simulation);
}

TEST(there_are_not_more_than_the_most)
{
    ls_group **groups = malloc((LS_GROUP_RANKS_MAX + 1) * sizeof *groups);
    assert_non_null(groups);
    for (uint32_t i = 0; i <= LS_GROUP_RANKS_MAX; i++)
        groups[i] = (ls_group *)(void *)groups;
    assert_fails(
        ls_group_threads(groups, ls_runtime_threads(), LS_GROUP_RANKS_MAX + 1),
        LS_EINVAL);
    for (uint32_t i = 0; i <= LS_GROUP_RANKS_MAX; i++)
        assert_null(groups[i]);
    assert_ok(
        ls_group_threads(groups, ls_runtime_threads(), LS_GROUP_RANKS_MAX));
    assert_int_equal(ls_group_size(groups[LS_GROUP_RANKS_MAX - 1]),
                     LS_GROUP_RANKS_MAX);
    for (uint32_t i = 0; i < LS_GROUP_RANKS_MAX; i++)
        assert_ok(ls_group_destroy(&groups[i]));
    free(groups);
}

TEST(there_is_at_least_one_rank)
{
    ls_group *groups[1];
    assert_int_equal(ls_group_threads(groups, ls_runtime_threads(), 0),
                     LS_EINVAL);
    assert_null(groups[0]);
    ls_group *none = NULL;
    assert_ok(ls_group_destroy(&none));
    assert_ok(ls_group_destroy(NULL));
    ls_group_parts_free(NULL);
}

enum { SPLITS = 12000, DESTROYERS = 2 };

struct destroyer {
    ls_group *groups[SPLITS];
    bool all;
};

static void destroy_all(void *arg)
{
    struct destroyer *self = arg;
    self->all = true;
    for (size_t i = 0; i < SPLITS; i++)
        self->all = ls_group_destroy(&self->groups[i]) == LS_OK && self->all;
}

/* Each is serial by itself: whoever has it destroys it. */
TEST(sub_groups_are_destroyed_on_any_threads)
{
    ls_runtime *const runtime = ls_runtime_threads();
    struct destroyer *const all = calloc(DESTROYERS, sizeof *all);
    ls_thread *spawned[DESTROYERS];
    ls_group *group;
    assert_non_null(all);
    assert_ok(ls_group_threads(&group, runtime, 1));
    for (size_t k = 0; k < DESTROYERS * SPLITS; k++)
        assert_ok(ls_group_split(&all[k % DESTROYERS].groups[k / DESTROYERS],
                                 group, 0, LS_WAIT_DEFAULT));
    for (size_t i = 0; i < DESTROYERS; i++)
        assert_ok(ls_thread_spawn(runtime, &spawned[i], "destroyer",
                                  destroy_all, &all[i]));
    for (size_t i = 0; i < DESTROYERS; i++) {
        assert_ok(ls_thread_join(&spawned[i], LS_FOREVER));
        assert_true(all[i].all);
    }
    assert_ok(ls_group_destroy(&group));
    free(all);
}
