#include "clock_fit.h"

#include <math.h>

#include "lockstep/random.h"

#include "test.h"

enum { SEEDS = 1000, BEATS = 80, BEAT_NS = 250000000 };

/* The other clock, at a time of this one. */
struct other {
    int64_t from;
    double offset, drift;
};

static double truly(const struct other *other, int64_t here)
{
    return (double)(here - other->from) * (1.0 + other->drift) +
           (double)other->from + other->offset;
}

static double within(struct ls_rng *rng, double most)
{
    return (ls_rng_double(rng) * 2.0 - 1.0) * most;
}

/* 30 us, and now and then much more, by another way each. */
static int64_t delay(struct ls_rng *rng)
{
    return (int64_t)(30000.0 - 200000.0 * log(1.0 - ls_rng_double(rng)));
}

/* Heartbeats both ways; returns how many bounds. */
static size_t beats(struct ls_rng *rng, const struct other *other, size_t n,
                    struct clock_bound *out)
{
    for (size_t i = 0; i < n; i++) {
        const int64_t sent = other->from + (int64_t)i * BEAT_NS;
        const int64_t took = delay(rng);
        const bool most = i % 2 == 0;
        out[i] = (struct clock_bound){
            .here = most ? sent : sent + took,
            .there = (int64_t)truly(other, most ? sent + took : sent),
            .most = most};
    }
    return n;
}

TEST(the_error_covers_the_truth_whatever_the_clocks_and_the_delays)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct clock_bound bounds[BEATS];
        struct ls_rng rng;
        struct clock_fit fit;
        ls_rng_seed(&rng, seed, 0);
        const struct other other = {.from =
                                        (int64_t)(ls_rng_double(&rng) * 1e15),
                                    .offset = within(&rng, 3e9),
                                    .drift = within(&rng, 100e-6)};
        const size_t n = 2 + ls_rng_below(&rng, BEATS - 1);
        assert_ok(clock_fit(&fit, bounds, beats(&rng, &other, n, bounds)));
        assert_true(fit.slack_ns == 0.0);
        for (int i = 0; i < 50; i++) {
            const int64_t at =
                other.from + (int64_t)(within(&rng, 2.0) * BEAT_NS * (double)n);
            const double off =
                fabs((double)clock_fit_there(&fit, at) - truly(&other, at));
            if (off > clock_fit_error(&fit, at))
                fail_msg("seed %llu: wrong by %.0f ns, said at most %.0f",
                         (unsigned long long)seed, off,
                         clock_fit_error(&fit, at));
        }
        if (n == BEATS && clock_fit_error(&fit, bounds[n / 2].here) > 100e3)
            fail_msg("seed %llu: known to %.0f ns only",
                     (unsigned long long)seed,
                     clock_fit_error(&fit, bounds[n / 2].here));
        clock_fit_clear(&fit);
    }
}

TEST(one_round_trip_is_known_to_half_of_it)
{
    const struct clock_bound bounds[] = {{1000, 5000600, true},
                                         {2000, 5000600, false}};
    struct clock_fit fit;
    assert_ok(clock_fit(&fit, bounds, 2));
    assert_in_range(clock_fit_there(&fit, 1500), 5000600 - 2, 5000600 + 2);
    assert_true(fabs(clock_fit_error(&fit, 1500) - 500) < 6);
    /* Later the drift adds to it: 500 ppm at most. */
    assert_true(fabs(clock_fit_error(&fit, 1000001500) - 500500) < 1000);
    clock_fit_clear(&fit);
}

TEST(a_clock_that_was_set_is_said_to_be_no_line)
{
    const struct clock_bound bounds[] = {{0, 100, true},
                                         {1000, 100, false},
                                         {10000, 9010100, true},
                                         {11000, 9010100, false}};
    struct clock_fit fit;
    assert_ok(clock_fit(&fit, bounds, 4));
    assert_true(fit.slack_ns > 1e6 && fit.slack_ns < 9e6);
    assert_true(clock_fit_error(&fit, 0) > 1e5);
    clock_fit_clear(&fit);
}

TEST(the_farthest_times_are_as_far_as_can_be_told)
{
    static const struct clock_bound bounds[] = {
        {INT64_MIN, INT64_MIN, true}, {INT64_MIN, INT64_MIN, false},
        {INT64_MAX, INT64_MAX, true}, {INT64_MAX, INT64_MAX, false},
        {INT64_MIN, INT64_MAX, true}, {INT64_MAX, INT64_MIN, false}};
    struct clock_fit fit;
    assert_ok(clock_fit(&fit, bounds, 4));
    assert_true(clock_fit_there(&fit, INT64_MIN) < -(INT64_MAX / 2));
    assert_true(clock_fit_there(&fit, INT64_MAX) > INT64_MAX / 2);
    assert_true(clock_fit_here(&fit, INT64_MIN) < -(INT64_MAX / 2));
    assert_true(clock_fit_here(&fit, INT64_MAX) > INT64_MAX / 2);
    clock_fit_clear(&fit);
    assert_ok(clock_fit(&fit, (struct clock_bound[]){bounds[4], bounds[5]}, 2));
    (void)clock_fit_there(&fit, INT64_MAX);
    (void)clock_fit_here(&fit, INT64_MIN);
    clock_fit_clear(&fit);
}

TEST(messages_of_one_direction_say_nothing)
{
    const struct clock_bound bounds[] = {{0, 100, true}, {10, 120, true}};
    struct clock_fit fit;
    assert_fails(clock_fit(&fit, bounds, 2), LS_ENOENT);
    assert_fails(clock_fit(&fit, bounds, 0), LS_ENOENT);
}
