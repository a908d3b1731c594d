/* huge_allocations.h - sanitizers end a program that asks for more memory than
 * there can be; tests of LS_ENOMEM want NULL, as without them. */
#ifndef LOCKSTEP_TEST_HUGE_ALLOCATIONS_H
#define LOCKSTEP_TEST_HUGE_ALLOCATIONS_H

#include <stdint.h>

const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* Of 8 bytes each, more than any machine's memory. */
static const size_t too_many = SIZE_MAX / 16;

#endif
