/* sum.h - arithmetic with figures that another program has said: it ends where
 * int64_t does, so that what is wrong stays as large as it can be told.
 *
 * Thread: any. */
#ifndef LOCKSTEP_SUM_H
#define LOCKSTEP_SUM_H

#include <math.h>
#include <stdint.h>

static inline int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t difference_of(int64_t a, int64_t b)
{
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference))
        return difference;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

/* Rounded; of NaN: 0. */
static inline int64_t whole_of(double value)
{
    if (value >= (double)INT64_MAX)
        return INT64_MAX;
    if (value <= (double)INT64_MIN)
        return INT64_MIN;
    return isnan(value) ? 0 : llround(value);
}

#endif
