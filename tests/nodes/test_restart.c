/* When a node that failed is started again, and when that ends. */
#include "restart.h"

#include "lockstep/runtime.h"
#include "test.h"

#include <signal.h>

static const struct plan_node restart = {
    .on_loss = PLAN_RESTART, .max_restarts = 12, .backoff_ms = 100};

static const struct node_end killed = {.over = true, .signal = SIGKILL};

static int wait_ms(struct restarts *restarts, int64_t now)
{
    int ms = -1;
    assert_int_equal(restart_decide(restarts, &restart, &killed, now, &ms),
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
    assert_int_equal(restart_decide(&restarts, &restart, &killed, 0, &ms),
                     RESTART_FAIL);
    assert_int_equal(restarts.n, restart.max_restarts);
    const struct plan_node none = {.on_loss = PLAN_RESTART, .backoff_ms = 100};
    struct restarts first = {.n = 0};
    assert_int_equal(restart_decide(&first, &none, &killed, 0, &ms),
                     RESTART_FAIL);
}

static const struct plan_node three_a_second = {.on_loss = PLAN_RESTART,
                                                .max_restarts = 3,
                                                .restart_window_s = 1.0,
                                                .backoff_ms = 100};

static enum restart_verdict within(struct restarts *restarts, int64_t now)
{
    int ms;
    return restart_decide(restarts, &three_a_second, &killed, now, &ms);
}

TEST(within_a_window_there_are_at_most_max_restarts)
{
    struct restarts restarts = {.n = 0};
    const int64_t s = LS_NS_PER_S;
    assert_int_equal(restart_spent(&restarts, &three_a_second, s), 0);
    assert_int_equal(within(&restarts, s), RESTART_AGAIN);
    assert_int_equal(within(&restarts, s + s / 2), RESTART_AGAIN);
    assert_int_equal(within(&restarts, s + s / 2), RESTART_AGAIN);
    assert_int_equal(restart_spent(&restarts, &three_a_second, 2 * s - 1), 3);
    assert_int_equal(within(&restarts, 2 * s - 1), RESTART_FAIL);
    assert_int_equal(restarts.n, 3);
    /* The first one is out of it. */
    assert_int_equal(within(&restarts, 2 * s), RESTART_AGAIN);
    assert_int_equal(within(&restarts, 2 * s), RESTART_FAIL);
    assert_int_equal(restart_spent(&restarts, &three_a_second, 10 * s), 0);
}

TEST(a_window_forgets_whatever_was_before_it)
{
    struct restarts restarts = {.n = 0};
    for (int64_t i = 1; i <= 3 * PLAN_WINDOW_RESTARTS_MAX; i++)
        assert_int_equal(within(&restarts, i * LS_NS_PER_S), RESTART_AGAIN);
    assert_int_equal(restarts.n, 3 * PLAN_WINDOW_RESTARTS_MAX);
    const struct plan_node most = {.on_loss = PLAN_RESTART,
                                   .max_restarts = PLAN_WINDOW_RESTARTS_MAX,
                                   .restart_window_s = 1e7};
    assert_int_equal(restart_spent(&restarts, &most, INT64_C(1) << 40),
                     PLAN_WINDOW_RESTARTS_MAX);
}

TEST(a_run_goes_on_only_without_one_that_was_in_its_world)
{
    const struct plan_node go_on = {.on_loss = PLAN_GO_ON};
    struct restarts restarts = {.n = 0};
    int ms;
    assert_int_equal(restart_decide(&restarts, &go_on, &killed, 9, &ms),
                     RESTART_FAIL);
    restart_note_working(&restarts, 7);
    assert_int_equal(restart_decide(&restarts, &go_on, &killed, 9, &ms),
                     RESTART_LET_GO);
    assert_int_equal(restarts.n, 0);
}

TEST(without_a_policy_the_run_fails)
{
    const struct plan_node node = {.on_loss = PLAN_FAIL};
    struct restarts restarts = {.n = 0};
    int ms;
    restart_note_working(&restarts, 7);
    assert_int_equal(restart_decide(&restarts, &node, &killed, 9, &ms),
                     RESTART_FAIL);
}

static enum restart_verdict verdict_on(struct node_end end, bool worked)
{
    struct restarts restarts = {.n = 0};
    int ms;
    end.over = true;
    if (worked)
        restart_note_working(&restarts, 1);
    return restart_decide(&restarts, &restart, &end, 9, &ms);
}

TEST(who_could_not_begin_is_not_started_again)
{
    static const struct node_end hopeless[] = {
        {.reported = true, .status = LS_ECONFIG, .exit_code = 78},
        {.reported = true, .status = LS_ENOENT, .exit_code = 78},
        {.reported = true, .status = LS_EPROTO, .exit_code = 1},
        {.exit_code = 78},
        {.exit_code = 2},
    };
    static const struct node_end others[] = {
        {.reported = true, .status = LS_EEXIST, .exit_code = 78},
        {.reported = true, .status = LS_EMISMATCH, .exit_code = 78},
        {.reported = true, .status = LS_EADDRINUSE, .exit_code = 75},
        {.exit_code = 1},
        {.signal = SIGSEGV},
    };
    for (size_t i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++) {
        assert_int_equal(verdict_on(hopeless[i], false), RESTART_FAIL);
        /* It did begin: a call or a plugin may say so. */
        assert_int_equal(verdict_on(hopeless[i], true), RESTART_AGAIN);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(verdict_on(others[i], false), RESTART_AGAIN);
}
