#include "lockstep/random.h"
#include "test.h"

#include <math.h>

TEST(stream_0_is_the_published_generator)
{
    struct ls_rng rng;
    /* splitmix64 from 0, as its authors' C file gives it. */
    ls_rng_seed(&rng, 0, 0);
    assert_true(rng.state[0] == UINT64_C(0xE220A8397B1DCDAF));
    assert_true(rng.state[1] == UINT64_C(0x6E789E6AA1B965F4));
    assert_true(rng.state[2] == UINT64_C(0x06C45D188009454F));
    assert_true(rng.state[3] == UINT64_C(0xF88BB8A8724C81EC));
    /* xoshiro256** from 1, 2, 3, 4, as its authors' C file gives it. */
    rng = (struct ls_rng){{1, 2, 3, 4}};
    static const uint64_t wanted[] = {
        UINT64_C(11520), UINT64_C(0), UINT64_C(1509978240),
        UINT64_C(1215971899390074240), UINT64_C(1216172134540287360)};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_true(ls_rng_next(&rng) == wanted[i]);
}

TEST(the_same_seed_and_stream_give_the_same_numbers)
{
    struct ls_rng a, b;
    ls_rng_seed(&a, 42, 7);
    ls_rng_seed(&b, 42, 7);
    for (int i = 0; i < 1000; i++)
        assert_true(ls_rng_next(&a) == ls_rng_next(&b));
}

TEST(streams_of_one_seed_share_no_numbers)
{
    enum { STREAMS = 64 };
    uint64_t firsts[STREAMS];
    for (uint64_t stream = 0; stream < STREAMS; stream++) {
        struct ls_rng rng;
        ls_rng_seed(&rng, 42, stream);
        firsts[stream] = ls_rng_next(&rng);
        for (uint64_t other = 0; other < stream; other++)
            assert_true(firsts[other] != firsts[stream]);
    }
}

TEST(nothing_but_zeros_is_no_generator)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 0, 0);
    assert_true(ls_rng_is_valid(&rng));
    for (size_t i = 0; i < 4; i++) {
        rng = (struct ls_rng){{0}};
        assert_false(ls_rng_is_valid(&rng));
        rng.state[i] = UINT64_C(1) << 63;
        assert_true(ls_rng_is_valid(&rng));
    }
}

TEST(below_stays_below_its_bound)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 1, 0);
    static const uint64_t bounds[] = {
        1, 2, 3, 10, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (int n = 0; n < 1000; n++)
            assert_true(ls_rng_below(&rng, bounds[i]) < bounds[i]);
    assert_true(ls_rng_below(&rng, 0) == 0);
}

/* With a bound of 3 * 2^62, a plain remainder would give the numbers below
 * 2^62 half of the time, not a third. */
TEST(below_has_no_bias)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 2, 0);
    enum { DRAWS = 30000 };
    int low = 0;
    for (int i = 0; i < DRAWS; i++)
        low += ls_rng_below(&rng, UINT64_C(3) << 62) < UINT64_C(1) << 62;
    assert_in_range(low, DRAWS / 3 - 500, DRAWS / 3 + 500);
}

TEST(below_reaches_every_number_equally_often)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 3, 0);
    int counts[6] = {0};
    for (int i = 0; i < 60000; i++)
        counts[ls_rng_below(&rng, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[i], 9500, 10500);
}

TEST(double_is_even_in_0_to_1)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 4, 0);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        const double value = ls_rng_double(&rng);
        assert_true(value >= 0.0 && value < 1.0);
        assert_true(floor(value * 0x1.0p53) == value * 0x1.0p53);
        sum += value;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.005);
}

TEST(double_of_the_largest_number_is_below_1)
{
    /* state[1] * 5, rotated by 7, * 9 has all bits set. */
    const uint64_t ninth = UINT64_C(0x8E38E38E38E38E39); /* 1/9 mod 2^64 */
    const uint64_t fifth = UINT64_C(0xCCCCCCCCCCCCCCCD); /* 1/5 mod 2^64 */
    const uint64_t rotated = UINT64_MAX * ninth;
    struct ls_rng rng = {{0, ((rotated >> 7) | (rotated << 57)) * fifth, 0, 0}};
    struct ls_rng copy = rng;
    assert_true(ls_rng_next(&copy) == UINT64_MAX);
    assert_true(ls_rng_double(&rng) == 1.0 - 0x1.0p-53);
}

TEST(normal_has_mean_0_and_variance_1)
{
    struct ls_rng rng;
    ls_rng_seed(&rng, 5, 0);
    enum { DRAWS = 100000 };
    double sum = 0, squares = 0;
    int within_1 = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double value = ls_rng_normal(&rng);
        assert_true(isfinite(value));
        sum += value;
        squares += value * value;
        within_1 += fabs(value) < 1.0;
    }
    assert_true(fabs(sum / DRAWS) < 0.02);
    assert_true(fabs(squares / DRAWS - 1.0) < 0.03);
    assert_in_range(within_1, 67500, 69000); /* 68.27 % */
}

TEST(normal_is_finite_when_the_radius_is_drawn_as_0)
{
    struct ls_rng rng = {{1, 0, 2, 3}};
    struct ls_rng copy = rng;
    assert_true(ls_rng_double(&copy) == 0.0);
    assert_true(isfinite(ls_rng_normal(&rng)));
}
