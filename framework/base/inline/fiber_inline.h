/* fiber_inline.h - fiber.h, for loops that resume one fiber after the other.
 *
 * A processor predicts a return from the calls it has seen, newest first, and
 * knows nothing of stacks. Where a switch is inside a function, that
 * function's own return is mispredicted, and so are the returns on the other
 * side: 28 of the 49 ns that a fiber's whole life takes through fiber.h. With
 * the switch inlined into the loop, every call that a fiber makes before its
 * yield is answered by its return after it, in reverse order over a stack of
 * fibers, as the processor expects. So the task's loops are built on this; it
 * is not installed, and fiber.c is built on it too. */
#ifndef FIBER_INLINE_H
#define FIBER_INLINE_H

#include "fiber_switch.h"
#include "lockstep/fiber.h"

struct ls_fiber {
    struct fiber_point self; /* first: a main function gets its address */
    struct fiber_point resumer;
    ls_fiber *outer; /* the running one when this one was resumed */
    void (*fn)(void *arg);
    void *arg;
    bool done;
    ls_fiber_pool *pool; /* borrow */
    ls_fiber *next;      /* in pool->idle */
    char *map;           /* own; guard page first */
    char *top;           /* of the stack */
    unsigned valgrind_id;
};

/* The fiber that runs on this thread. initial-exec: the general model is a
 * function call on each use. */
extern _Thread_local ls_fiber *ls_fiber_running
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ls_fiber_create() with a main function of one's own, which begins with
 * fiber_begun() and ends with fiber_end(). */
LS_MUST_USE int ls_fiber_create_main(ls_fiber **out, ls_fiber_pool *pool,
                                     fiber_main_fn *main, void *arg);

FIBER_INLINE bool fiber_resume(ls_fiber *fiber)
{
    fiber->outer = ls_fiber_running;
    ls_fiber_running = fiber;
    fiber_switch(&fiber->resumer, &fiber->self);
    ls_fiber_running = fiber->outer;
    return !fiber->done;
}

FIBER_INLINE void fiber_yield(ls_fiber *fiber)
{
    fiber_switch(&fiber->self, &fiber->resumer);
}

FIBER_INLINE ls_fiber *fiber_begun(struct fiber_point *point)
{
    fiber_arrive(point);
    return (ls_fiber *)(void *)point;
}

FIBER_INLINE void fiber_end(ls_fiber *fiber)
{
    fiber->done = true;
    fiber_leave(&fiber->self, &fiber->resumer);
}

#endif
