/* The schedules prove something only if they would notice a barrier that is
 * wrong. Each of these is, and each is found. */
#include "barrier_play.h"
#include "test.h"

/* Returns the first seed that finds it; 0: none of `n_seeds` does. */
static uint64_t find(enum ls_sabotage what, struct plan plan, uint64_t n_seeds)
{
    static struct world world;
    plan.sabotage = what;
    for (uint64_t seed = 1; seed <= n_seeds; seed++) {
        plan.n = plan.fanout > 0 ? 5 + seed % 5 : 2 + seed % 8;
        play(&world, &plan, seed);
        if (world.violation[0] != '\0')
            return seed;
    }
    return 0;
}

static void check_found(enum ls_sabotage what, struct plan plan,
                        uint64_t n_seeds)
{
    assert_int_not_equal(find(what, plan, n_seeds), 0);
    plan.fanout = 2;
    assert_int_not_equal(find(what, plan, n_seeds), 0);
}

TEST(without_repeats_somebody_waits_for_ever)
{
    check_found(LS_SABOTAGE_NO_REPEAT, rough, 1000);
}

TEST(an_ack_of_another_epoch_must_not_count)
{
    check_found(LS_SABOTAGE_NO_EPOCH, rough, 1000);
}

TEST(a_message_that_comes_twice_must_not_count_twice)
{
    check_found(LS_SABOTAGE_COUNT, rough, 1000);
}

TEST(one_that_has_entered_is_not_all)
{
    check_found(LS_SABOTAGE_EAGER, rough, 1000);
}

TEST(with_one_phase_the_survivors_disagree)
{
    struct plan plan = rough;
    plan.waits = 3;
    plan.crashes = 2;
    assert_int_not_equal(find(LS_SABOTAGE_ONE_PHASE, plan, 1000), 0);
    plan.crashes = 4;
    plan.fanout = 2;
    assert_int_not_equal(find(LS_SABOTAGE_ONE_PHASE, plan, 1000), 0);
}

TEST(who_is_stuck_must_not_give_up_by_itself)
{
    struct plan plan = rough;
    plan.crashes = 3;
    assert_int_not_equal(find(LS_SABOTAGE_HASTY, plan, 100000), 0);
}
