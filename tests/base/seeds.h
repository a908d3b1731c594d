/* seeds.h - which seeds a sweep plays: SEED=17 begins with that one, and is it
 * alone unless SEEDS=5000 says how many. */
#ifndef SEEDS_H
#define SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "sanitized.h"

struct seeds {
    uint64_t first, end; /* the one after the last */
};

/* From 1 on, `n` of them; under a sanitizer a tenth: what it looks for is in
 * the paths, most of which the first seeds take. */
static inline struct seeds seeds_of(uint64_t n)
{
    const char *first = getenv("SEED"), *count = getenv("SEEDS");
    struct seeds seeds = {.first = 1};
    if (SANITIZED)
        n = n / 10 + 1;
    if (first != NULL) {
        seeds.first = strtoull(first, NULL, 10);
        n = 1;
    }
    if (count != NULL)
        n = strtoull(count, NULL, 10);
    seeds.end = seeds.first + n;
    return seeds;
}

/* Whether others are played than a test draws by itself: what all of those see
 * together, these may not. */
static inline bool seeds_are_others(void)
{
    return SANITIZED || getenv("SEED") != NULL || getenv("SEEDS") != NULL;
}

#endif
