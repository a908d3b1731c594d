/* Groups of threads, and of one. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "group_ranks.h"

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
static int use_in_a_copy(ls_group *group, char *memory)
{
    void *more;
    if (ls_group_alloc(group, &more, 10) != LS_ESTATE || more != NULL)
        return 1;
    if (ls_group_free(group, memory) != LS_ESTATE)
        return 2;
    return memory[9] == 7 ? 0 : 3;
}

TEST(in_a_copy_of_the_process_memory_can_only_be_read)
{
    ls_group *group;
    void *memory;
    assert_ok(ls_group_threads(&group, ls_runtime_threads(), 1));
    assert_ok(ls_group_alloc(group, &memory, 10));
    ((char *)memory)[9] = 7;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_in_a_copy(group, memory));
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
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

TEST(there_is_at_least_one_rank)
{
    ls_group *groups[1];
    assert_int_equal(ls_group_threads(groups, ls_runtime_threads(), 0),
                     LS_EINVAL);
    ls_group *none = NULL;
    assert_ok(ls_group_destroy(&none));
    assert_ok(ls_group_destroy(NULL));
    ls_group_parts_free(NULL);
}
