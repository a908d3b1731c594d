#include "lockstep/stats.h"

#include <math.h>

#include "huge_allocations.h"
#include "runtime_ops.h"
#include "test.h"

/* A runtime whose clock stands until the test moves it. */
static int64_t clock_ns;

static int64_t read_test_clock(ls_runtime *runtime)
{
    (void)runtime;
    return clock_ns;
}

static ls_runtime test_runtime = {
    .ops = &(const struct ls_runtime_ops){.now = read_test_clock},
};

static void summarise(size_t capacity, const double *values, size_t n,
                      struct ls_window_summary *out)
{
    ls_window *window;
    assert_ok(ls_window_create(&window, capacity));
    for (size_t i = 0; i < n; i++)
        ls_window_push(window, values[i]);
    ls_window_summary(window, out);
    ls_window_destroy(&window);
}

static void assert_quantiles(const struct ls_window_summary *summary,
                             const double wanted[5])
{
    for (size_t i = 0; i < 5; i++)
        if (summary->quantiles[i] != wanted[i])
            fail_msg("quantile %zu is %.17g, not %.17g", i,
                     summary->quantiles[i], wanted[i]);
}

TEST(a_window_keeps_the_last_values)
{
    double values[120];
    for (int i = 0; i < 120; i++)
        values[i] = i;
    struct ls_window_summary summary;
    summarise(50, values, 120, &summary);
    assert_true(summary.count == 120);
    assert_int_equal(summary.held, 50);
    assert_true(summary.mean == 94.5);
    assert_true(summary.std == sqrt(208.25));
    assert_true(fabs(summary.std - 14.43087) < 5e-6);
    const double wanted[5] = {70, 74.9, 94.5, 114.1, 119};
    assert_quantiles(&summary, wanted);
}

TEST(the_values_of_a_window_are_copied_the_oldest_first)
{
    ls_window *window;
    double values[5] = {-1, -1, -1, -1, -1};
    assert_ok(ls_window_create(&window, 3));
    assert_int_equal(ls_window_values(window, values, 5), 0);
    for (int i = 0; i < 2; i++)
        ls_window_push(window, i);
    assert_int_equal(ls_window_values(window, values, 5), 2);
    assert_true(values[0] == 0 && values[1] == 1 && values[2] == -1);
    for (int i = 2; i < 7; i++)
        ls_window_push(window, i);
    assert_int_equal(ls_window_values(window, values, 5), 3);
    assert_true(values[0] == 4 && values[1] == 5 && values[2] == 6);
    assert_true(values[3] == -1);
    values[1] = -1;
    assert_int_equal(ls_window_values(window, values, 1), 3); /* there are */
    assert_true(values[0] == 4 && values[1] == -1);
    assert_int_equal(ls_window_values(window, NULL, 0), 3);
    ls_window_destroy(&window);
}

TEST(a_window_that_is_not_full_counts_what_it_holds)
{
    const double values[] = {0, 1, 2, 3};
    struct ls_window_summary summary;
    summarise(50, values, 4, &summary);
    assert_true(summary.count == 4);
    assert_int_equal(summary.held, 4);
    assert_true(summary.mean == 1.5);
    assert_true(summary.std == sqrt(1.25));
    assert_true(fabs(summary.std - 1.118034) < 5e-7);
    const double wanted[5] = {0, 0.3, 1.5, 2.7, 3};
    for (size_t i = 0; i < 5; i++)
        assert_true(fabs(summary.quantiles[i] - wanted[i]) < 1e-15);
}

TEST(an_empty_window_has_count_0_and_nan)
{
    struct ls_window_summary summary;
    summarise(50, NULL, 0, &summary);
    assert_true(summary.count == 0);
    assert_int_equal(summary.held, 0);
    assert_true(isnan(summary.mean));
    assert_true(isnan(summary.std));
    for (size_t i = 0; i < 5; i++)
        assert_true(isnan(summary.quantiles[i]));
}

TEST(one_value_is_every_quantile)
{
    const double values[] = {3, 7};
    struct ls_window_summary summary;
    summarise(1, values, 2, &summary);
    assert_true(summary.count == 2);
    assert_int_equal(summary.held, 1);
    assert_true(summary.mean == 7.0);
    assert_true(summary.std == 0.0);
    const double wanted[5] = {7, 7, 7, 7, 7};
    assert_quantiles(&summary, wanted);
}

TEST(values_may_come_in_any_order)
{
    const double values[] = {5, -1, 9, 3, 7, 1, 11, 13, 15, 17, 19};
    struct ls_window_summary summary;
    summarise(11, values, 11, &summary);
    const double wanted[5] = {-1, 1, 9, 17, 19};
    assert_quantiles(&summary, wanted);
}

TEST(a_quantile_is_rounded_once)
{
    const double values[] = {0.8, 3.4};
    struct ls_window_summary summary;
    summarise(2, values, 2, &summary);
    assert_true(summary.quantiles[3] == 3.14); /* not 3.1399999999999997 */
}

TEST(std_keeps_small_deviations_from_a_large_mean)
{
    const double values[] = {1e9, 1e9 + 1, 1e9 + 2};
    struct ls_window_summary summary;
    summarise(3, values, 3, &summary);
    assert_true(summary.std == sqrt(2.0 / 3.0));
}

TEST(nan_is_the_largest_value)
{
    const double values[] = {NAN, 1, 2, NAN, 3};
    struct ls_window_summary summary;
    summarise(5, values, 5, &summary);
    assert_true(isnan(summary.mean));
    assert_true(isnan(summary.std));
    assert_true(summary.quantiles[0] == 1.0);
    assert_true(summary.quantiles[2] == 3.0);
    assert_true(isnan(summary.quantiles[4]));
}

TEST(infinities_are_values_as_any)
{
    const double values[] = {INFINITY, 1,        -INFINITY,
                             INFINITY, INFINITY, INFINITY};
    struct ls_window_summary summary;
    summarise(6, values, 6, &summary);
    const double wanted[5] = {-INFINITY, -INFINITY, INFINITY, INFINITY,
                              INFINITY};
    assert_quantiles(&summary, wanted);
}

TEST(a_window_refuses_a_bad_capacity)
{
    ls_window *window = (ls_window *)(void *)&window;
    assert_fails(ls_window_create(&window, 0), LS_EINVAL);
    assert_fails(ls_window_create(&window, too_many), LS_ENOMEM);
    assert_null(window);
}

TEST(destroy_takes_nothing)
{
    ls_window *window = NULL;
    ls_timer *timer = NULL;
    ls_window_destroy(NULL);
    ls_window_destroy(&window);
    ls_timer_destroy(NULL);
    ls_timer_destroy(&timer);
    assert_ok(ls_window_create(&window, 1));
    ls_window_destroy(&window);
    assert_null(window);
    assert_ok(ls_timer_create(&timer, &test_runtime, 1));
    ls_timer_destroy(&timer);
    assert_null(timer);
}

static void run_timer(ls_timer *timer, int64_t ms, double units)
{
    assert_ok(ls_timer_start(timer));
    clock_ns += ms * LS_NS_PER_MS;
    assert_ok(ls_timer_stop(timer, units));
    clock_ns += 77; /* between runs: not counted */
}

TEST(a_timer_averages_its_last_runs)
{
    ls_timer *timer;
    struct ls_timer_summary summary;
    assert_ok(ls_timer_create(&timer, &test_runtime, 10));
    for (int i = 1; i <= 12; i++)
        run_timer(timer, i * 100, i);
    ls_timer_summary(timer, &summary);
    assert_true(summary.count == 12);
    assert_true(summary.mean_s == 0.75); /* 300 to 1200 ms */
    assert_true(summary.throughput == 10.0);
    double values[11] = {0};
    assert_int_equal(ls_timer_values(timer, values, 2), 10);
    assert_true(values[0] == 0.3 && values[1] == 0.4 && values[2] == 0.0);
    assert_int_equal(ls_timer_values(timer, values, 11), 10);
    assert_true(values[9] == 1.2 && values[10] == 0.0);
    ls_timer_destroy(&timer);
}

TEST(throughput_weighs_runs_by_their_time)
{
    ls_timer *timer;
    struct ls_timer_summary summary;
    assert_ok(ls_timer_create(&timer, &test_runtime, 10));
    run_timer(timer, 1000, 100);
    run_timer(timer, 3000, 0);
    ls_timer_summary(timer, &summary);
    assert_true(summary.mean_s == 2.0);
    assert_true(summary.throughput == 25.0);
    ls_timer_destroy(&timer);
}

TEST(a_timer_without_runs_or_time_gives_0)
{
    ls_timer *timer;
    struct ls_timer_summary summary;
    assert_ok(ls_timer_create(&timer, &test_runtime, 10));
    ls_timer_summary(timer, &summary);
    assert_true(summary.count == 0);
    assert_true(summary.mean_s == 0.0);
    assert_true(summary.throughput == 0.0);
    run_timer(timer, 0, 5);
    ls_timer_summary(timer, &summary);
    assert_true(summary.count == 1);
    assert_true(summary.mean_s == 0.0);
    assert_true(summary.throughput == 0.0);
    ls_timer_destroy(&timer);
}

TEST(a_timer_is_started_and_stopped_in_turn)
{
    ls_timer *timer;
    struct ls_timer_summary summary;
    assert_ok(ls_timer_create(&timer, &test_runtime, 10));
    assert_fails(ls_timer_stop(timer, 1), LS_ESTATE);
    assert_ok(ls_timer_start(timer));
    assert_fails(ls_timer_start(timer), LS_ESTATE);
    assert_ok(ls_timer_stop(timer, 1));
    assert_fails(ls_timer_stop(timer, 1), LS_ESTATE);
    ls_timer_summary(timer, &summary);
    assert_true(summary.count == 1);
    ls_timer_destroy(&timer);
}

TEST(a_timer_runs_on_when_units_are_refused)
{
    ls_timer *timer;
    assert_ok(ls_timer_create(&timer, &test_runtime, 10));
    assert_ok(ls_timer_start(timer));
    assert_fails(ls_timer_stop(timer, -1), LS_EINVAL);
    assert_fails(ls_timer_stop(timer, NAN), LS_EINVAL);
    assert_ok(ls_timer_stop(timer, 0));
    ls_timer_destroy(&timer);
}

TEST(a_timer_refuses_a_bad_capacity)
{
    ls_timer *timer = (ls_timer *)(void *)&timer;
    assert_fails(ls_timer_create(&timer, &test_runtime, 0), LS_EINVAL);
    assert_fails(ls_timer_create(&timer, &test_runtime, too_many), LS_ENOMEM);
    assert_null(timer);
}
