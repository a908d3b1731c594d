/* mix.h - the finaliser of splitmix64, which scatters numbers that lie close
 * together. Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014.
 *
 * Thread: any. */
#ifndef LOCKSTEP_BASE_MIX_H
#define LOCKSTEP_BASE_MIX_H

#include <stdint.h>

/* A bijection that maps 0 to 0. */
static inline uint64_t mix(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
    return bits ^ (bits >> 31);
}

#endif
