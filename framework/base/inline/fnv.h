/* fnv.h - FNV-1a, 32 bits: of names, to tell them apart; not against who means
 * harm. draft-eastlake-fnv, section 2.
 *
 * Thread: any. */
#ifndef LOCKSTEP_BASE_FNV_H
#define LOCKSTEP_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT32_C(2166136261)

/* Go on from `hash`, at first FNV_BEGIN. */
static inline uint32_t fnv_add(uint32_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT32_C(16777619);
    return hash;
}

#endif
