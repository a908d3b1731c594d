/* told.h - which of many alike are a line of the log. */
#ifndef LOCKSTEP_TOLD_H
#define LOCKSTEP_TOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the n-th of its kind is: the first, second, fourth. Of what a peer
 * may do as often as it likes, so that it cannot fill a disk. */
static inline bool is_told(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

#endif
