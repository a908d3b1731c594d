/* When a node that failed is started again, and when that ends. */
#include "restart.h"

#include "lockstep/runtime.h"
#include "test.h"

static const struct plan_node restart = {
    .on_loss = PLAN_RESTART, .max_restarts = 12, .backoff_ms = 100};

static int wait_ms(struct restarts *restarts, int64_t now)
{
    int ms = -1;
    assert_int_equal(restart_decide(restarts, &restart, now, &ms),
                     RESTART_AGAIN);
    return ms;
}

TEST(each_restart_waits_twice_as_long_up_to_ten_seconds)
{
    struct restarts restarts = {.n = 0};
    static const int waits[] = {100,  200,  400,   800,   1600,
                                3200, 6400, 10000, 10000, 10000};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        assert_int_equal(wait_ms(&restarts, 0), waits[i]);
    assert_int_equal(restarts.n, 10);
}

TEST(a_minute_of_good_work_takes_the_wait_back)
{
    struct restarts restarts = {.n = 0};
    assert_int_equal(wait_ms(&restarts, 0), 100);
    assert_int_equal(wait_ms(&restarts, 0), 200);
    restart_note_working(&restarts, 5);
    assert_int_equal(wait_ms(&restarts, 5 + RESTART_GOOD_WORK_NS - 1), 400);
    restart_note_working(&restarts, 5);
    assert_int_equal(wait_ms(&restarts, 5 + RESTART_GOOD_WORK_NS), 100);
    /* A life that never came into the world has not worked. */
    assert_int_equal(wait_ms(&restarts, 10 * RESTART_GOOD_WORK_NS), 200);
}

TEST(after_max_restarts_the_run_fails)
{
    struct restarts restarts = {.n = 0};
    int ms;
    for (unsigned i = 0; i < restart.max_restarts; i++) {
        restart_note_working(&restarts, 1);
        (void)wait_ms(&restarts, 2 * RESTART_GOOD_WORK_NS);
    }
    assert_int_equal(restart_decide(&restarts, &restart, 0, &ms), RESTART_FAIL);
    assert_int_equal(restarts.n, restart.max_restarts);
    const struct plan_node none = {.on_loss = PLAN_RESTART, .backoff_ms = 100};
    struct restarts first = {.n = 0};
    assert_int_equal(restart_decide(&first, &none, 0, &ms), RESTART_FAIL);
}

TEST(a_run_goes_on_only_without_one_that_was_in_its_world)
{
    const struct plan_node go_on = {.on_loss = PLAN_GO_ON};
    struct restarts restarts = {.n = 0};
    int ms;
    assert_int_equal(restart_decide(&restarts, &go_on, 9, &ms), RESTART_FAIL);
    restart_note_working(&restarts, 7);
    assert_int_equal(restart_decide(&restarts, &go_on, 9, &ms), RESTART_LET_GO);
    assert_int_equal(restarts.n, 0);
}

TEST(without_a_policy_the_run_fails)
{
    const struct plan_node node = {.on_loss = PLAN_FAIL};
    struct restarts restarts = {.n = 0};
    int ms;
    restart_note_working(&restarts, 7);
    assert_int_equal(restart_decide(&restarts, &node, 9, &ms), RESTART_FAIL);
}
