/* The schedules prove something only if they would notice a barrier that is
 * wrong. Each of these is, and each is found. */
#include "barrier_play.h"

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

static void test_without_repeats_somebody_waits_for_ever(void **state)
{
    (void)state;
    check_found(LS_SABOTAGE_NO_REPEAT, rough, 1000);
}

static void test_an_ack_of_another_epoch_must_not_count(void **state)
{
    (void)state;
    check_found(LS_SABOTAGE_NO_EPOCH, rough, 1000);
}

static void test_a_message_that_comes_twice_must_not_count_twice(void **state)
{
    (void)state;
    check_found(LS_SABOTAGE_COUNT, rough, 1000);
}

static void test_one_that_has_entered_is_not_all(void **state)
{
    (void)state;
    check_found(LS_SABOTAGE_EAGER, rough, 1000);
}

static void test_with_one_phase_the_survivors_disagree(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.waits = 3;
    plan.crashes = 2;
    assert_int_not_equal(find(LS_SABOTAGE_ONE_PHASE, plan, 1000), 0);
    plan.crashes = 4;
    plan.fanout = 2;
    assert_int_not_equal(find(LS_SABOTAGE_ONE_PHASE, plan, 1000), 0);
}

static void test_who_is_stuck_must_not_give_up_by_itself(void **state)
{
    (void)state;
    struct plan plan = rough;
    plan.crashes = 3;
    assert_int_not_equal(find(LS_SABOTAGE_HASTY, plan, 100000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_repeats_somebody_waits_for_ever),
        cmocka_unit_test(test_an_ack_of_another_epoch_must_not_count),
        cmocka_unit_test(test_a_message_that_comes_twice_must_not_count_twice),
        cmocka_unit_test(test_one_that_has_entered_is_not_all),
        cmocka_unit_test(test_with_one_phase_the_survivors_disagree),
        cmocka_unit_test(test_who_is_stuck_must_not_give_up_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
