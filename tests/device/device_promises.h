/* device_promises.h - what device.h promises on every device, as tests. Each is
 * given an open one. */
#ifndef DEVICE_PROMISES_H
#define DEVICE_PROMISES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lockstep/device.h"
#include "test.h"

#define DEVICE_PROMISES(X)                                                     \
    X(a_device_says_what_it_is)                                                \
    X(a_stack_has_its_capacity_in_both_memories)                               \
    X(what_was_uploaded_can_be_downloaded)                                     \
    X(a_part_is_copied_and_no_more)                                            \
    X(a_stack_serves_one_batch_after_the_other)                                \
    X(stacks_have_nothing_in_common)                                           \
    X(a_copy_of_nothing_is_done)                                               \
    X(a_copy_beyond_the_capacity_is_refused)                                   \
    X(a_wait_for_nothing_is_over_at_once)                                      \
    X(a_stack_of_nothing_is_refused)                                           \
    X(a_stack_of_more_than_there_is_is_refused)                                \
    X(any_thread_may_use_a_stack)                                              \
    X(a_thread_is_bound)                                                       \
    X(destroy_takes_nothing)

#define PROMISE_DECLARATION(name) void name(ls_device *device);
DEVICE_PROMISES(PROMISE_DECLARATION)
#undef PROMISE_DECLARATION

/* Helpers: each fails the test instead of returning an error. */
ls_device *open_device(const char *name);
ls_device_stack *new_stack(ls_device *device, size_t capacity);
void upload(ls_device_stack *stack, size_t offset, size_t size);
void download(ls_device_stack *stack, size_t offset, size_t size);
void wait_for(ls_device_stack *stack);

/* The last error has each of these words; NULL ends them. */
void assert_said(const char *word, ...);

#endif
