/* allocations.h - memory that runs out at a place of one's choice. Of programs
 * that are linked for it: tests/CMakeLists.txt, `test_*_out_of_memory.c`.
 *
 *     for (long n = 0; allocations_fail_at(n); n++)
 *         what_is_tested();
 *
 * gives memory to all allocations of Lockstep and of the test but the first,
 * then to all but the second, and so on, until there are no more of them. */
#ifndef SUPPORT_ALLOCATIONS_H
#define SUPPORT_ALLOCATIONS_H

#include <stdbool.h>

/* From now on the allocation that `n` others came before fails, and no other.
 * false: that of the call before never came; all work then. Of all threads. */
bool allocations_fail_at(long n);
/* Whether it has. */
bool allocation_failed(void);

#endif
