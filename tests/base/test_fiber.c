/* What lockstep/fiber.h promises. */
#define _DEFAULT_SOURCE /* mincore */
#include "lockstep/fiber.h"

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/runtime.h"
#include "test.h"

static ls_fiber_pool *pool_of(size_t stack_bytes, size_t max_idle)
{
    ls_fiber_pool *pool = NULL;
    assert_ok(ls_fiber_pool_create(&pool, stack_bytes, max_idle));
    return pool;
}

static ls_fiber *fiber_of(ls_fiber_pool *pool, void (*fn)(void *), void *arg)
{
    ls_fiber *fiber = NULL;
    assert_ok(ls_fiber_create(&fiber, pool, fn, arg));
    return fiber;
}

/* What the fibers below leave behind, a letter each. */
struct trace {
    char text[64];
    ls_fiber_pool *pool;
    ls_fiber *seen;
    void *address;
};

static void note(struct trace *trace, const char *text)
{
    strncat(trace->text, text, sizeof trace->text - strlen(trace->text) - 1);
}

static void two_halves(void *arg)
{
    struct trace *trace = arg;
    char kept[16] = "b";
    note(trace, "a");
    ls_fiber_yield();
    note(trace, kept);
}

static void never_yields(void *arg)
{
    note(arg, "x");
}

TEST(pool_refuses_stacks_under_4_kib)
{
    ls_fiber_pool *pool = (ls_fiber_pool *)(void *)&pool;
    assert_fails(ls_fiber_pool_create(&pool, 4095, 0), LS_EINVAL);
    assert_error_has("4095");
    assert_null(pool);
    pool = pool_of(4096, 0);
    ls_fiber_pool_destroy(&pool);
}

TEST(memory_that_is_not_there_is_an_error)
{
    ls_fiber_pool *pool = (ls_fiber_pool *)(void *)&pool;
    assert_fails(ls_fiber_pool_create(&pool, SIZE_MAX, 0), LS_ENOMEM);
    assert_null(pool);

    pool = pool_of((size_t)1 << 60, 0); /* more than any address space */
    ls_fiber *fiber = (ls_fiber *)(void *)&fiber;
    assert_fails(ls_fiber_create(&fiber, pool, never_yields, NULL), LS_ENOMEM);
    assert_null(fiber);
    ls_fiber_pool_destroy(&pool);
}

TEST(destroy_takes_null)
{
    ls_fiber_pool *pool = NULL;
    ls_fiber *fiber = NULL;
    ls_fiber_pool_destroy(NULL);
    ls_fiber_pool_destroy(&pool);
    ls_fiber_destroy(NULL);
    ls_fiber_destroy(&fiber);
}

TEST(a_fiber_runs_only_when_resumed)
{
    struct trace trace = {0};
    ls_fiber_pool *pool = pool_of(0, 0);
    ls_fiber *fiber = fiber_of(pool, two_halves, &trace);
    assert_string_equal(trace.text, "");
    assert_false(ls_fiber_done(fiber));

    assert_true(ls_fiber_resume(fiber));
    assert_string_equal(trace.text, "a");
    assert_false(ls_fiber_done(fiber));

    assert_false(ls_fiber_resume(fiber));
    assert_string_equal(trace.text, "ab");
    assert_true(ls_fiber_done(fiber));

    assert_false(ls_fiber_resume(fiber));
    assert_string_equal(trace.text, "ab");
    ls_fiber_destroy(&fiber);
    assert_null(fiber);
    ls_fiber_pool_destroy(&pool);
    assert_null(pool);
}

TEST(a_fiber_that_never_yields_ends_at_once)
{
    struct trace trace = {0};
    ls_fiber_pool *pool = pool_of(0, 0);
    ls_fiber *fiber = fiber_of(pool, never_yields, &trace);
    assert_false(ls_fiber_resume(fiber));
    assert_true(ls_fiber_done(fiber));
    ls_fiber_destroy(&fiber);
    ls_fiber_pool_destroy(&pool);
}

TEST(a_suspended_fiber_may_be_dropped)
{
    struct trace trace = {0};
    ls_fiber_pool *pool = pool_of(0, 0);
    for (int i = 0; i < 3; i++) {
        ls_fiber *fiber = fiber_of(pool, two_halves, &trace);
        assert_true(ls_fiber_resume(fiber));
        ls_fiber_destroy(&fiber);
    }
    assert_string_equal(trace.text, "aaa");
    ls_fiber_pool_destroy(&pool);
}

static void look_at_stack(void *arg)
{
    volatile char used[2048];
    size_t *left = arg;
    used[0] = 1;
    left[0] = ls_fiber_stack_left();
    ls_fiber_yield();
    left[1] = ls_fiber_stack_left();
    (void)used[0];
}

TEST(what_is_left_of_a_stack_is_known)
{
    size_t left[2] = {0};
    ls_fiber_pool *pool = pool_of(16384, 0);
    ls_fiber *fiber = fiber_of(pool, look_at_stack, left);
    assert_true(ls_fiber_stack_left() == SIZE_MAX); /* of a thread */
    assert_true(ls_fiber_resume(fiber));
    assert_true(ls_fiber_stack_left() == SIZE_MAX);
    assert_false(ls_fiber_resume(fiber));
    assert_in_range(left[0], 4096, 16384 + 4096); /* whole pages */
    assert_int_equal(left[0], left[1]);
    ls_fiber_destroy(&fiber);
    ls_fiber_pool_destroy(&pool);
}

static void inner(void *arg)
{
    struct trace *trace = arg;
    trace->seen = ls_fiber_current();
    note(trace, "2");
    ls_fiber_yield();
    note(trace, "4");
}

static void outer(void *arg)
{
    struct trace *trace = arg;
    ls_fiber *const self = ls_fiber_current();
    ls_fiber *fiber = fiber_of(trace->pool, inner, trace);
    note(trace, "1");
    assert_true(ls_fiber_resume(fiber));
    assert_ptr_equal(trace->seen, fiber);
    assert_ptr_equal(ls_fiber_current(), self);
    note(trace, "3");
    ls_fiber_yield();
    assert_false(ls_fiber_resume(fiber));
    assert_ptr_equal(ls_fiber_current(), self);
    note(trace, "5");
    ls_fiber_destroy(&fiber);
}

TEST(fibers_may_resume_fibers)
{
    struct trace trace = {.pool = pool_of(0, 0)};
    assert_null(ls_fiber_current());
    ls_fiber *fiber = fiber_of(trace.pool, outer, &trace);
    assert_true(ls_fiber_resume(fiber));
    assert_null(ls_fiber_current());
    assert_string_equal(trace.text, "123");
    assert_false(ls_fiber_resume(fiber));
    assert_string_equal(trace.text, "12345");
    ls_fiber_destroy(&fiber);
    ls_fiber_pool_destroy(&trace.pool);
}

static void resume_other(void *arg)
{
    (void)ls_fiber_resume(arg);
}

TEST(a_fiber_yields_to_whom_resumed_it_last)
{
    struct trace trace = {.pool = pool_of(0, 0)};
    ls_fiber *fiber = fiber_of(trace.pool, two_halves, &trace);
    ls_fiber *other = fiber_of(trace.pool, resume_other, fiber);
    assert_true(ls_fiber_resume(fiber));
    assert_false(ls_fiber_resume(other));
    assert_true(ls_fiber_done(fiber));
    assert_string_equal(trace.text, "ab");
    ls_fiber_destroy(&fiber);
    ls_fiber_destroy(&other);
    ls_fiber_pool_destroy(&trace.pool);
}

/* More live values than there are registers, across a yield. */
static void sums(void *arg)
{
    volatile double seed = *(double *)arg;
    const double a = seed + 1, b = seed + 2, c = seed + 3, d = seed + 4;
    const double e = seed + 5, f = seed + 6, g = seed + 7, h = seed + 8;
    volatile long whole = (long)seed;
    const long i = whole + 1, j = whole + 2, k = whole + 3, l = whole + 4;
    const long m = whole + 5, n = whole + 6, o = whole + 7, p = whole + 8;
    ls_fiber_yield();
    *(double *)arg =
        a * b + c * d + e * f + g * h + (double)(i * j + k * l + m * n + o * p);
}

TEST(locals_and_registers_survive_a_yield)
{
    ls_fiber_pool *pool = pool_of(0, 0);
    ls_fiber *fibers[3];
    double values[3] = {0, 10, 20};
    for (int i = 0; i < 3; i++) {
        fibers[i] = fiber_of(pool, sums, &values[i]);
        assert_true(ls_fiber_resume(fibers[i]));
    }
    for (int i = 2; i >= 0; i--) {
        assert_false(ls_fiber_resume(fibers[i]));
        ls_fiber_destroy(&fibers[i]);
    }
    /* 2 (x+1)(x+2) + 2 (x+3)(x+4) + … */
    assert_true(values[0] == 200 && values[1] == 1720 && values[2] == 4840);
    ls_fiber_pool_destroy(&pool);
}

static void rounds_up(void *arg)
{
    int *modes = arg;
    modes[0] = fegetround();
    (void)fesetround(FE_UPWARD);
    ls_fiber_yield();
    modes[1] = fegetround();
}

TEST(each_side_keeps_its_rounding_mode)
{
    int modes[2] = {-1, -1};
    ls_fiber_pool *pool = pool_of(0, 0);
    ls_fiber *fiber = fiber_of(pool, rounds_up, modes);
    assert_true(ls_fiber_resume(fiber));
    assert_int_equal(modes[0], FE_TONEAREST);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_false(ls_fiber_resume(fiber));
    assert_int_equal(modes[1], FE_UPWARD);
    assert_int_equal(fegetround(), FE_TONEAREST);
    ls_fiber_destroy(&fiber);
    ls_fiber_pool_destroy(&pool);
}

static void prints(void *arg)
{
    (void)snprintf(arg, 16, "%.2f", 1.25);
}

TEST(library_calls_find_an_aligned_stack)
{
    char text[16] = "";
    ls_fiber_pool *pool = pool_of(0, 0);
    for (int i = 0; i < 3; i++) {
        ls_fiber *fiber = fiber_of(pool, prints, text);
        assert_false(ls_fiber_resume(fiber));
        ls_fiber_destroy(&fiber);
        assert_string_equal(text, "1.25");
    }
    ls_fiber_pool_destroy(&pool);
}

static void remembers_its_stack(void *arg)
{
    struct trace *trace = arg;
    trace->address = __builtin_frame_address(0);
}

static void *run_and_destroy(ls_fiber_pool *pool)
{
    struct trace trace = {0};
    ls_fiber *fiber = fiber_of(pool, remembers_its_stack, &trace);
    assert_false(ls_fiber_resume(fiber));
    ls_fiber_destroy(&fiber);
    return trace.address;
}

static bool is_mapped(void *address)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char vector;
    return mincore((void *)((uintptr_t)address & ~(page - 1)), 1, &vector) == 0;
}

TEST(stacks_are_used_again)
{
    ls_fiber_pool *pool = pool_of(0, 0);
    void *first = run_and_destroy(pool);
    assert_ptr_equal(run_and_destroy(pool), first);
    assert_true(is_mapped(first));
    ls_fiber_pool_destroy(&pool);
    assert_false(is_mapped(first));
}

TEST(idle_stacks_over_the_limit_are_unmapped)
{
    ls_fiber_pool *pool = pool_of(0, 1);
    struct trace traces[2] = {0};
    ls_fiber *fibers[2];
    for (int i = 0; i < 2; i++) {
        fibers[i] = fiber_of(pool, remembers_its_stack, &traces[i]);
        assert_false(ls_fiber_resume(fibers[i]));
    }
    ls_fiber_destroy(&fibers[0]);
    ls_fiber_destroy(&fibers[1]);
    assert_true(is_mapped(traces[0].address));
    assert_false(is_mapped(traces[1].address));
    ls_fiber_pool_destroy(&pool);
}

static void fills(void *arg)
{
    char bytes[48 * 1024];
    memset(bytes, 'x', sizeof bytes);
    *(char *)arg = bytes[sizeof bytes / 2];
}

TEST(a_stack_is_as_large_as_asked_for)
{
    char byte = 1;
    ls_fiber_pool *pool = pool_of(64 * 1024, 0);
    ls_fiber *fiber = fiber_of(pool, fills, &byte);
    assert_false(ls_fiber_resume(fiber));
    assert_int_equal(byte, 'x');
    ls_fiber_destroy(&fiber);
    ls_fiber_pool_destroy(&pool);
}

static int endless(volatile char *below)
{
    volatile char bytes[1024];
    bytes[0] = *below;
    if (bytes[0] != 0) /* never: but no compiler knows */
        return 0;
    return endless(bytes) + bytes[0];
}

static void overflows(void *arg)
{
    (void)endless(arg);
}

TEST(running_off_a_stack_kills_the_process)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)close(STDERR_FILENO);     /* a sanitizer's report */
        (void)signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
        char byte = 0;
        ls_fiber_pool *pool = pool_of(0, 0);
        (void)ls_fiber_resume(fiber_of(pool, overflows, &byte));
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void runs_a_pool(void *arg)
{
    struct trace *trace = arg;
    ls_fiber_pool *pool = NULL;
    if (ls_fiber_pool_create(&pool, 0, 0) < 0)
        return;
    for (int i = 0; i < 1000; i++) {
        struct trace own = {0};
        ls_fiber *fiber = NULL;
        if (ls_fiber_create(&fiber, pool, two_halves, &own) < 0)
            break;
        while (ls_fiber_resume(fiber))
            if (ls_fiber_current() != NULL)
                return;
        ls_fiber_destroy(&fiber);
        if (strcmp(own.text, "ab") != 0)
            return;
    }
    ls_fiber_pool_destroy(&pool);
    note(trace, "ok");
}

TEST(threads_run_their_own_fibers_at_the_same_time)
{
    struct trace traces[3] = {0};
    ls_thread *threads[3];
    for (int i = 0; i < 3; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "fibers",
                                  runs_a_pool, &traces[i]));
    for (int i = 0; i < 3; i++) {
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
        assert_string_equal(traces[i].text, "ok");
    }
}
