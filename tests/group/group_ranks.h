/* group_ranks.h - ranks that do the same at the same time, on a thread each,
 * for the tests of groups. Assertions are made afterwards, on the test's own
 * thread. */
#ifndef GROUP_RANKS_H
#define GROUP_RANKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/group.h"
#include "test.h"

enum { RANKS_MAX = 16, RANK_WAIT_MS = 60000 };

struct rank {
    struct ranks *ranks;
    uint32_t index; /* of its handle; its rank, unless a generation says more */
    ls_group *group;
    ls_thread *thread;
    int status; /* of what it did last */
    int cause;
    char text[LS_ERROR_TEXT_MAX];
    void *extra;    /* of the test */
    bool allocates; /* what it brings and gets lies in memory of its group */
};

struct ranks {
    uint32_t n;
    ls_runtime *runtime;
    int (*act)(struct rank *rank);
    struct rank at[RANKS_MAX];
};

static inline void rank_main(void *arg)
{
    struct rank *rank = arg;
    ls_error_clear();
    rank->status = rank->ranks->act(rank);
    rank->cause = ls_error_cause();
    snprintf(rank->text, sizeof rank->text, "%s",
             rank->status == LS_OK ? "" : ls_error_text());
}

/* Have all ranks do this, but those whose bit is in `without`. */
static inline void ranks_do_without(struct ranks *ranks, uint32_t without,
                                    int (*act)(struct rank *rank))
{
    ranks->act = act;
    for (uint32_t i = 0; i < ranks->n; i++) {
        if ((without >> i & 1) == 0)
            assert_ok(ls_thread_spawn(ranks->runtime, &ranks->at[i].thread,
                                      "rank", rank_main, &ranks->at[i]));
    }
    for (uint32_t i = 0; i < ranks->n; i++)
        assert_ok(ls_thread_join(&ranks->at[i].thread, LS_FOREVER));
}

static inline void ranks_do(struct ranks *ranks, int (*act)(struct rank *rank))
{
    ranks_do_without(ranks, 0, act);
    for (uint32_t i = 0; i < ranks->n; i++) {
        if (ranks->at[i].status != LS_OK)
            fail_msg("rank %u: %s", i, ranks->at[i].text);
    }
}

/* What a carrier's tests make ranks with. */
struct rank_maker {
    void (*make)(struct ranks *ranks, uint32_t n);
    void (*destroy)(struct ranks *ranks);
};

/* Each promise of group.h, tried on n ranks of a carrier. */
#define GROUP_PROMISES(X)                                                      \
    X(every_operation_gives_its_result)                                        \
    X(any_sizes_and_values_reach_all)                                          \
    X(long_payloads_arrive_whole)                                              \
    X(sums_are_in_the_order_of_ranks)                                          \
    X(operations_overlap_and_end_in_order)                                     \
    X(pairs_exchange_in_order)                                                 \
    X(sub_groups_work_by_themselves)                                           \
    X(different_calls_fail_alike_with_both_names)                              \
    X(a_deadline_fails_all_and_names_the_missing)                              \
    X(who_leaves_ends_the_generation_for_all)                                  \
    X(wrong_operations_are_refused)                                            \
    X(operations_are_counted)                                                  \
    X(memory_is_aligned_and_zeroed)                                            \
    X(memory_of_the_group_gives_the_same_results)                              \
    X(memory_is_not_freed_under_an_operation)                                  \
    X(memory_outlives_its_group)                                               \
    X(a_rank_that_is_destroyed_is_missed_at_once)

#define DECLARE_PROMISE(name)                                                  \
    void promise_##name(const struct rank_maker *maker, uint32_t n);
GROUP_PROMISES(DECLARE_PROMISE)
#undef DECLARE_PROMISE

#endif
