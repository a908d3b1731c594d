/* Fibers and their stacks. The switch itself is in inline/fiber_switch.h.
 *
 * One mapping holds all there is of a fiber, from low to high addresses:
 *
 *   guard page | stack, growing down | colour | struct ls_fiber
 *
 * so that taking and returning a pooled one touches one list head. All tops
 * being page-aligned, the busy ends of all stacks would compete for the same
 * few cache sets; the colour, another for each of 16 fibers, spreads them. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_STACK */
#include "lockstep/fiber.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fiber_inline.h"

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#if !defined(VALGRIND_STACK_REGISTER)
#define VALGRIND_STACK_REGISTER(start, end) 0u
#define VALGRIND_STACK_DEREGISTER(id)       ((void)(id))
#endif

#define STACK_BYTES_MIN 4096u
#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
#define STACK_BYTES_DEFAULT (256u * 1024u)
#else
#define STACK_BYTES_DEFAULT (64u * 1024u)
#endif
#define MAX_IDLE_DEFAULT 64u

#define COLOURS      16u
#define COLOUR_BYTES 192u

struct ls_fiber_pool {
    size_t page_bytes;
    size_t map_bytes;
    size_t max_idle;
    ls_fiber *idle; /* own */
    size_t n_idle;
    size_t n_live;
    size_t n_made; /* gives the colour */
};

_Thread_local ls_fiber *ls_fiber_running
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

int ls_fiber_pool_create(ls_fiber_pool **out, size_t stack_bytes,
                         size_t max_idle)
{
    *out = NULL;
    if (stack_bytes == 0)
        stack_bytes = STACK_BYTES_DEFAULT;
    if (stack_bytes < STACK_BYTES_MIN)
        return ls_error(LS_EINVAL,
                        "fiber: a stack of %zu bytes is too small; give at "
                        "least %u, or 0 for the default",
                        stack_bytes, STACK_BYTES_MIN);
    if (stack_bytes > SIZE_MAX / 2)
        return ls_error(LS_ENOMEM, "fiber: no memory for a stack of %zu bytes",
                        stack_bytes);

    ls_fiber_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return ls_error(LS_ENOMEM, "fiber: no memory for a pool");
    pool->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    pool->map_bytes =
        pool->page_bytes +
        round_up(stack_bytes + COLOURS * COLOUR_BYTES + sizeof(struct ls_fiber),
                 pool->page_bytes);
    pool->max_idle = max_idle == 0 ? MAX_IDLE_DEFAULT : max_idle;
    *out = pool;
    return LS_OK;
}

static void fiber_unmap(ls_fiber *fiber)
{
    VALGRIND_STACK_DEREGISTER(fiber->valgrind_id);
    (void)munmap(fiber->map, fiber->pool->map_bytes);
}

void ls_fiber_pool_destroy(ls_fiber_pool **pool)
{
    if (pool == NULL || *pool == NULL)
        return;
    assert((*pool)->n_live == 0);
    while ((*pool)->idle != NULL) {
        ls_fiber *fiber = (*pool)->idle;
        (*pool)->idle = fiber->next;
        fiber_unmap(fiber);
    }
    free(*pool);
    *pool = NULL;
}

static int fiber_map(ls_fiber **out, ls_fiber_pool *pool)
{
    char *map = mmap(NULL, pool->map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (map == MAP_FAILED)
        return ls_error(LS_ENOMEM, "fiber: no memory for a stack of %zu bytes",
                        pool->map_bytes - pool->page_bytes);
    if (mprotect(map, pool->page_bytes, PROT_NONE) < 0) {
        (void)munmap(map, pool->map_bytes);
        return ls_error(LS_ENOMEM, "fiber: no memory for a guard page: the "
                                   "process has too many mappings");
    }

    const size_t header = round_up(sizeof(struct ls_fiber), 64);
    ls_fiber *fiber =
        (ls_fiber *)(void *)(map + pool->map_bytes - header -
                             pool->n_made % COLOURS * COLOUR_BYTES);
    pool->n_made++;
    fiber->pool = pool;
    fiber->map = map;
    fiber->top = (char *)fiber;
    fiber->valgrind_id =
        VALGRIND_STACK_REGISTER(map + pool->page_bytes, fiber->top);
    *out = fiber;
    return LS_OK;
}

static void run_fn(struct fiber_point *point)
{
    ls_fiber *fiber = fiber_begun(point);
    fiber->fn(fiber->arg);
    fiber_end(fiber);
}

int ls_fiber_create(ls_fiber **out, ls_fiber_pool *pool, void (*fn)(void *arg),
                    void *arg)
{
    *out = NULL;
    const int status = ls_fiber_create_main(out, pool, run_fn, arg);
    if (status == LS_OK)
        (*out)->fn = fn;
    return status;
}

int ls_fiber_create_main(ls_fiber **out, ls_fiber_pool *pool,
                         fiber_main_fn *main, void *arg)
{
    ls_fiber *fiber = pool->idle;
    if (fiber != NULL) {
        pool->idle = fiber->next;
        pool->n_idle--;
    } else {
        const int status = fiber_map(&fiber, pool);
        if (status < 0)
            return status;
    }
    pool->n_live++;
    fiber->arg = arg;
    fiber->done = false;
    fiber_point_init(&fiber->self, fiber->map + pool->page_bytes, fiber->top,
                     main);
#if defined(FIBER_TSAN)
    fiber->self.tsan = __tsan_create_fiber(0);
#endif
    *out = fiber;
    return LS_OK;
}

bool ls_fiber_resume(ls_fiber *fiber)
{
    return !fiber->done && fiber_resume(fiber);
}

void ls_fiber_yield(void)
{
    assert(ls_fiber_running != NULL);
    fiber_yield(ls_fiber_running);
}

ls_fiber *ls_fiber_current(void)
{
    return ls_fiber_running;
}

size_t ls_fiber_stack_left(void)
{
    const ls_fiber *fiber = ls_fiber_running;
    /* Not the address of a variable: a sanitizer may have it elsewhere. */
    const char *here = __builtin_frame_address(0);
    return fiber == NULL
               ? SIZE_MAX
               : (size_t)(here - (fiber->map + fiber->pool->page_bytes));
}

bool ls_fiber_done(const ls_fiber *fiber)
{
    return fiber->done;
}

void ls_fiber_destroy(ls_fiber **fiber)
{
    if (fiber == NULL || *fiber == NULL)
        return;
    ls_fiber *gone = *fiber;
    ls_fiber_pool *pool = gone->pool;
    *fiber = NULL;
    assert(gone != ls_fiber_running);
#if defined(FIBER_TSAN)
    __tsan_destroy_fiber(gone->self.tsan);
#endif
#if defined(FIBER_ASAN)
    /* Frames that were dropped, or left without a return, had poison. */
    __asan_unpoison_memory_region(gone->map + pool->page_bytes,
                                  (size_t)(gone->top - gone->map) -
                                      pool->page_bytes);
#endif
    pool->n_live--;
    if (pool->n_idle == pool->max_idle) {
        fiber_unmap(gone);
        return;
    }
    gone->next = pool->idle;
    pool->idle = gone;
    pool->n_idle++;
}
