/* fiber.h - stackful coroutines on pooled stacks with guard pages.
 *
 * A fiber is resumed by some code and yields back to it; fibers may resume
 * fibers. A fiber always runs on the OS thread that first resumed it, because
 * compilers keep addresses of thread-locals across a yield. Stack overflow is a
 * SIGSEGV at the guard page, never silent damage. The switch is a few
 * instructions of our own on x86-64 and aarch64, ucontext elsewhere;
 * AddressSanitizer, ThreadSanitizer and valgrind are told of each switch.
 * Thread: serial per pool; the current fiber is per thread.
 * Source: System V AMD64 psABI 1.0 section 3.2.1 and AAPCS64 section 6.1.1 for
 * the registers that a call preserves; sanitizer/common_interface_defs.h. */
#ifndef LOCKSTEP_FIBER_H
#define LOCKSTEP_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_fiber ls_fiber;
typedef struct ls_fiber_pool ls_fiber_pool;

/* out:         own; NULL after an error.
 * stack_bytes: usable bytes of each stack, rounded up to pages; 0: 64 KiB
 *              (256 KiB under a sanitizer).
 * max_idle:    stacks kept for reuse; more are unmapped. 0: 64.
 * Errors: LS_EINVAL under 4 KiB; LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_fiber_pool_create(ls_fiber_pool **out, size_t stack_bytes, size_t max_idle);
/* Every fiber of the pool must have been destroyed. */
LS_API void ls_fiber_pool_destroy(ls_fiber_pool **pool);

/* Create a fiber that will run fn(arg); nothing runs yet.
 * out:    own; NULL after an error; give it to ls_fiber_destroy().
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_fiber_create(ls_fiber **out, ls_fiber_pool *pool,
                                       void (*fn)(void *arg), void *arg);

/* Run the fiber until it yields or ends. Returns true if it yielded, false if
 * it has ended, now or before. */
LS_API bool ls_fiber_resume(ls_fiber *fiber);

/* Inside a fiber: return to its resumer. */
LS_API void ls_fiber_yield(void);

/* The fiber that runs on this thread; NULL: none. */
LS_API ls_fiber *ls_fiber_current(void);

/* How many bytes the stack of that fiber still has, from the caller on;
 * SIZE_MAX: this is none. For who is about to do something deep. */
LS_API size_t ls_fiber_stack_left(void);

/* Whether fn has returned. */
LS_API bool ls_fiber_done(const ls_fiber *fiber);

/* Release the stack. A suspended fiber is dropped as it is: nothing on its
 * stack is unwound, so resume fibers to their end first. Never call it inside
 * the fiber itself. NULL is fine. */
LS_API void ls_fiber_destroy(ls_fiber **fiber);

#ifdef __cplusplus
}
#endif

#endif
