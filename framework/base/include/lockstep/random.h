/* random.h - a small seeded generator, the same on every machine.
 *
 * xoshiro256** with its state filled by splitmix64. Not for secrets.
 * Thread: serial.
 * Source: Blackman and Vigna, "Scrambled Linear Pseudorandom Number
 * Generators", ACM TOMS 47(4), 2021, section 4. */
#ifndef LOCKSTEP_RANDOM_H
#define LOCKSTEP_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ls_rng {
    uint64_t state[4];
};

/* Fill the state from `seed`; `stream` picks one of 2^64 sequences for it, so
 * that nodes with the same seed can draw different numbers. */
LS_API void ls_rng_seed(struct ls_rng *rng, uint64_t seed, uint64_t stream);

/* Whether it is a generator, as of one that was saved: not all of its state is
 * 0. It would never leave that, and ls_rng_below() never return. */
LS_API bool ls_rng_is_valid(const struct ls_rng *rng);

/* 64 uniform bits. */
LS_API uint64_t ls_rng_next(struct ls_rng *rng);

/* Uniform in [0, bound), without bias; 0 if bound is 0. */
LS_API uint64_t ls_rng_below(struct ls_rng *rng, uint64_t bound);

/* Uniform in [0, 1), in steps of 2^-53. */
LS_API double ls_rng_double(struct ls_rng *rng);

/* Normal with mean 0 and variance 1 (Box and Muller 1958, one of the pair). */
LS_API double ls_rng_normal(struct ls_rng *rng);

#ifdef __cplusplus
}
#endif

#endif
