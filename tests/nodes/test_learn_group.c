/* Means over members that compute at the same time, each on its thread. */
#include "learn_group.h"
#include "test.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { N_MEMBERS = 3, N_VALUES = 4, N_MEANS = 50 };

/* What a member does in a round, and what came of it. */
struct part {
    struct learn_group *group;
    size_t member;
    size_t n_values;
    size_t n_means;
    float values[N_VALUES]; /* the last mean */
    int status;
};

static void take_part(void *arg)
{
    struct part *const part = arg;
    const struct ls_learn_group *const group =
        learn_group_member(part->group, part->member);
    part->status = LS_OK;
    for (size_t i = 0; i < part->n_means && part->status == LS_OK; i++) {
        for (size_t k = 0; k < part->n_values; k++)
            part->values[k] = (float)(part->member * 10 + k + i);
        part->status = group->mean(group->self, part->values, part->n_values);
    }
    learn_group_leave(part->group);
}

static void run_round(struct part *parts)
{
    ls_thread *threads[N_MEMBERS];
    for (size_t i = 0; i < N_MEMBERS; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "part",
                                  take_part, &parts[i]));
    for (size_t i = 0; i < N_MEMBERS; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
}

static struct learn_group *new_group(struct part *parts, size_t n_means)
{
    struct learn_group *group;
    assert_ok(learn_group_create(&group, ls_runtime_threads(), N_MEMBERS));
    for (size_t i = 0; i < N_MEMBERS; i++)
        parts[i] = (struct part){.group = group,
                                 .member = i,
                                 .n_values = N_VALUES,
                                 .n_means = n_means};
    return group;
}

static void assert_means(const struct part *parts)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        assert_int_equal(parts[i].status, LS_OK);
        for (size_t k = 0; k < N_VALUES; k++) /* of 0, 10 and 20, and k, i */
            assert_true(parts[i].values[k] == (float)(10 + k + N_MEANS - 1));
    }
}

TEST(all_members_get_the_mean_of_all)
{
    struct part parts[N_MEMBERS];
    struct learn_group *group = new_group(parts, N_MEANS);
    assert_int_equal(learn_group_member(group, 0)->n, N_MEMBERS);
    for (int round = 0; round < 20; round++) {
        run_round(parts);
        assert_means(parts);
    }
    learn_group_destroy(&group);
    learn_group_destroy(&group);
    learn_group_destroy(NULL);
}

TEST(the_others_are_told_when_one_leaves_early)
{
    struct part parts[N_MEMBERS];
    struct learn_group *group = new_group(parts, N_MEANS);
    parts[1].n_means = 7;
    run_round(parts);
    assert_int_equal(parts[0].status, LS_EABORTED);
    assert_int_equal(parts[1].status, LS_OK);
    assert_int_equal(parts[2].status, LS_EABORTED);
    parts[1].n_means = N_MEANS; /* the next round is whole again */
    run_round(parts);
    assert_means(parts);
    learn_group_destroy(&group);
}

TEST(all_are_told_when_they_share_different_things)
{
    struct part parts[N_MEMBERS];
    struct learn_group *group = new_group(parts, N_MEANS);
    parts[2].n_values = 2;
    run_round(parts);
    for (size_t i = 0; i < N_MEMBERS; i++)
        assert_int_equal(parts[i].status, LS_EABORTED);
    learn_group_destroy(&group);
}
