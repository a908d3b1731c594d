/* Groups in the simulation: whatever is lost, late, repeated or killed, each
 * operation ends alike in all ranks, with the right result or the same named
 * error. SEEDS=10000 at full size. */

#include "base/seeds.h"
#include "group_story.h"
#include "test.h"

static struct story_tally tell_all(const struct story_kind *kind, uint64_t n)
{
    const struct seeds seeds = seeds_of(n);
    struct story_tally tally = {0};
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        const char *wrong = story_tell(kind, seed, &tally);
        if (wrong != NULL)
            fail_msg("%s", wrong);
    }
    return tally;
}

TEST(what_the_network_does_changes_no_result)
{
    const struct story_kind kind = {.kills = false};
    const struct story_tally tally = tell_all(&kind, 12);
    assert_true(tally.well > 0);
    assert_int_equal(tally.mismatched + tally.late, 0);
    assert_int_equal(tally.dropped, 0);
    assert_true(tally.lost == 0 || tally.dead > 0);
}

TEST(different_calls_and_deadlines_fail_alike)
{
    const struct story_kind kind = {.quarrels = true};
    const struct story_tally tally = tell_all(&kind, 12);
    if (seeds_are_others())
        return;
    assert_true(tally.lost == 0 || tally.dead > 0);
    assert_true(tally.well > 0 && tally.mismatched > 0 && tally.late > 0);
}

TEST(a_death_fails_an_operation_for_all_or_for_none)
{
    const struct story_kind kind = {.kills = true, .quarrels = true};
    const struct story_tally tally = tell_all(&kind, 40);
    if (seeds_are_others())
        return;
    assert_true(tally.lost > 0 && tally.well > 0);
}

TEST(who_comes_back_is_in_a_later_generation)
{
    const struct story_kind kind = {.kills = true, .returns = true};
    const struct story_tally tally = tell_all(&kind, 20);
    if (seeds_are_others())
        return;
    assert_true(tally.lost > 0 && tally.returned > 0);
}

/* Nothing rides then, commits go through a tree, and sums around a ring. */
TEST(more_than_32_ranks_do_as_well)
{
    const struct story_kind kind = {.n = 34, .kills = true, .quarrels = true};
    struct story_tally tally = {0};
    for (uint64_t seed = 1; seed <= (SANITIZED ? 1 : 2); seed++) {
        const char *wrong = story_tell(&kind, seed, &tally);
        if (wrong != NULL)
            fail_msg("%s", wrong);
    }
    assert_true(tally.well > 0);
}

TEST(in_shared_memory_what_the_network_does_changes_no_result)
{
    const struct story_kind kind = {.shares = true};
    const struct story_tally tally = tell_all(&kind, 12);
    assert_true(tally.well > 0 && tally.shared > tally.well);
    assert_true(tally.lent > 0 || seeds_are_others());
    assert_int_equal(tally.mismatched + tally.late, 0);
}

TEST(in_shared_memory_different_calls_and_deadlines_fail_alike)
{
    const struct story_kind kind = {.quarrels = true, .shares = true};
    const struct story_tally tally = tell_all(&kind, 12);
    if (seeds_are_others())
        return;
    assert_true(tally.lent > 0 && tally.mismatched > 0 && tally.late > 0);
}

TEST(in_shared_memory_a_death_fails_an_operation_for_all_or_for_none)
{
    const struct story_kind kind = {
        .kills = true, .quarrels = true, .shares = true};
    const struct story_tally tally = tell_all(&kind, 40);
    if (seeds_are_others())
        return;
    assert_true(tally.lent > 0 && tally.lost > 0 && tally.well > 0);
}

TEST(in_shared_memory_who_comes_back_is_in_a_later_generation)
{
    const struct story_kind kind = {
        .kills = true, .returns = true, .shares = true};
    const struct story_tally tally = tell_all(&kind, 40);
    if (seeds_are_others())
        return;
    assert_true(tally.lent > 0 && tally.lost > 0 && tally.returned > 0);
}
