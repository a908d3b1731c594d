#include "lockstep/random.h"

#include <math.h>

#include "mix.h"

static uint64_t rotate_left(uint64_t bits, int by)
{
    return (bits << by) | (bits >> (64 - by));
}

void ls_rng_seed(struct ls_rng *rng, uint64_t seed, uint64_t stream)
{
    /* Stream 0 is the plain generator of the paper. The others start far from
     * it and from each other, since the mixer scatters small numbers; and all
     * differ, since it is a bijection. The state is never all zero, the one
     * state that xoshiro cannot leave: splitmix64 gives 0 once in its period.
     */
    uint64_t counter = seed ^ mix(stream);
    for (int i = 0; i < 4; i++) {
        counter += UINT64_C(0x9E3779B97F4A7C15);
        rng->state[i] = mix(counter);
    }
}

bool ls_rng_is_valid(const struct ls_rng *rng)
{
    return (rng->state[0] | rng->state[1] | rng->state[2] | rng->state[3]) != 0;
}

uint64_t ls_rng_next(struct ls_rng *rng)
{
    uint64_t *const state = rng->state;
    const uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    const uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

uint64_t ls_rng_below(struct ls_rng *rng, uint64_t bound)
{
    if (bound == 0)
        return 0;
    /* 2^64 mod bound: without that many numbers, what is left is a multiple of
     * bound, so that no remainder is more likely than another. */
    const uint64_t excess = (UINT64_C(0) - bound) % bound;
    uint64_t bits;
    do
        bits = ls_rng_next(rng);
    while (bits < excess);
    return bits % bound;
}

double ls_rng_double(struct ls_rng *rng)
{
    return (double)(ls_rng_next(rng) >> 11) * 0x1.0p-53;
}

double ls_rng_normal(struct ls_rng *rng)
{
    static const double two_pi = 6.283185307179586476925286766559;
    const double radius = 1.0 - ls_rng_double(rng); /* (0, 1]: log is finite */
    const double angle = ls_rng_double(rng);
    return sqrt(-2.0 * log(radius)) * cos(two_pi * angle);
}
