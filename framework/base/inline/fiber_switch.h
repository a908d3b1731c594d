/* fiber_switch.h - leave one stack and go on where another one stands.
 *
 * The symmetric primitive below lockstep/fiber.h; a scheduler that lets one
 * suspended fiber follow another directly stands on this too.
 *
 * A point is a place where execution stands still: stack pointer, frame
 * pointer, where to go on, and the floating-point control words (both ABIs
 * have a call preserve those). All other registers are named as clobbered by
 * the switch, so the compiler itself saves those that it still needs, mostly
 * none, and the switch is a handful of moves and one indirect jump. A switch
 * that returned instead would mispredict each time, since the processor
 * expects a return to go where the last call on the *other* stack came from:
 * 57 ns instead of 29 for the whole life of a step.
 *
 * Everything here is always inlined: ThreadSanitizer keeps a call stack for
 * each fiber, and a function that is entered on one and left on another would
 * put both out of balance. */
#ifndef FIBER_SWITCH_H
#define FIBER_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif

#if defined(FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

/* LOCKSTEP_FIBER_UCONTEXT takes the portable switch where it is not needed. */
#if defined(LOCKSTEP_FIBER_UCONTEXT)
#define FIBER_UCONTEXT 1
#elif defined(__x86_64__) && defined(__LP64__)
#define FIBER_X86_64 1
#elif defined(__aarch64__) && defined(__LP64__)
#define FIBER_AARCH64 1
#else
#define FIBER_UCONTEXT 1
#endif

#if defined(FIBER_UCONTEXT)
#include <ucontext.h>
#endif

#define FIBER_INLINE static inline __attribute__((always_inline))

struct fiber_point;
typedef void fiber_main_fn(struct fiber_point *point);

struct fiber_point {
#if defined(FIBER_UCONTEXT)
    ucontext_t context;
    fiber_main_fn *main;
#else
    /* The switch reads and writes these three by their offsets. */
    void *sp;
    void *fp; /* of a point where nothing ran yet: its main function */
    void *pc;
    uint64_t fp_control;
#endif
#if defined(FIBER_ASAN)
    void *fake_stack; /* of use-after-return detection */
    const void *stack;
    size_t stack_bytes;
    struct fiber_point *came_from;
#endif
#if defined(FIBER_TSAN)
    void *tsan;
#endif
};

#if defined(FIBER_X86_64)

/* Where a new point begins: calls the main function with the point. */
extern const char ls_fiber_enter[] __attribute__((visibility("hidden")));

/* MXCSR below, the x87 control word above. */
FIBER_INLINE uint64_t fiber_fp_control(void)
{
    uint32_t sse;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(sse), "=m"(x87));
    return (uint64_t)x87 << 32 | sse;
}

/* The lowest six bits of MXCSR are flags, which no call preserves. */
FIBER_INLINE void fiber_fp_change(uint64_t from, uint64_t to)
{
    if (((from ^ to) & ~UINT64_C(0x3f)) == 0)
        return;
    const uint32_t sse = (uint32_t)to;
    const uint16_t x87 = (uint16_t)(to >> 32);
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(sse), "m"(x87));
}

#if defined(__AVX512F__)
#define FIBER_CLOBBER_AVX512                                                   \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",  \
        "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30",         \
        "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define FIBER_CLOBBER_AVX512
#endif

/* The frame pointer cannot be named as clobbered, so it travels in the point.
 * Nothing is pushed: what a leaf function keeps below its stack pointer (the
 * red zone) stays as it is. */
FIBER_INLINE void fiber_jump(struct fiber_point *from, struct fiber_point *to)
{
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%%rdi)\n\t"
                     "movq %%rbp, 8(%%rdi)\n\t"
                     "movq %%rax, 16(%%rdi)\n\t"
                     "movq 0(%%rsi), %%rsp\n\t"
                     "movq 8(%%rsi), %%rbp\n\t"
                     "jmpq *16(%%rsi)\n"
                     "1:\n\t"
                     "endbr64"
                     : "+D"(from), "+S"(to)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11",
                       "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                       "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)",
                       "st(6)", "st(7)", "cc", "memory" FIBER_CLOBBER_AVX512);
}

#elif defined(FIBER_AARCH64)

extern const char ls_fiber_enter[] __attribute__((visibility("hidden")));

FIBER_INLINE uint64_t fiber_fp_control(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}

FIBER_INLINE void fiber_fp_change(uint64_t from, uint64_t to)
{
    if (from != to)
        __asm__ volatile("msr fpcr, %0" : : "r"(to));
}

/* x18 belongs to the platform; "hint 36" is bti j, a no-op where there is no
 * branch target identification. */
FIBER_INLINE void fiber_jump(struct fiber_point *from, struct fiber_point *to)
{
    register struct fiber_point *x0 __asm__("x0") = from;
    register struct fiber_point *x1 __asm__("x1") = to;
    __asm__ volatile(
        "mov x9, sp\n\t"
        "adr x10, 1f\n\t"
        "stp x9, x29, [x0]\n\t"
        "str x10, [x0, #16]\n\t"
        "ldp x9, x29, [x1]\n\t"
        "ldr x10, [x1, #16]\n\t"
        "mov sp, x9\n\t"
        "br x10\n"
        "1:\n\t"
        "hint 36"
        : "+r"(x0), "+r"(x1)
        :
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
          "x13", "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23",
          "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3",
          "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
          "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
          "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}

#else

/* makecontext hands over ints only, so the point travels in two halves. */
static void fiber_enter(unsigned high, unsigned low)
{
    struct fiber_point *point =
        (struct fiber_point *)((uintptr_t)high << 16 << 16 | low);
    point->main(point);
}

FIBER_INLINE void fiber_jump(struct fiber_point *from, struct fiber_point *to)
{
    /* Fails only for a context that was never made. */
    (void)swapcontext(&from->context, &to->context);
}

#endif

/* Make the point where `main` begins on a stack; it never returns.
 * top: the end of the stack, 16-byte aligned. */
static inline void fiber_point_init(struct fiber_point *point, void *stack,
                                    void *top, fiber_main_fn *main)
{
#if defined(FIBER_UCONTEXT)
    const uintptr_t bits = (uintptr_t)point;
    (void)getcontext(&point->context);
    point->context.uc_stack.ss_sp = stack;
    point->context.uc_stack.ss_size = (size_t)((char *)top - (char *)stack);
    point->context.uc_link = NULL;
    point->main = main;
    makecontext(&point->context, (void (*)(void))fiber_enter, 2,
                (unsigned)(bits >> 16 >> 16), (unsigned)bits);
#else
    point->sp = top;
    point->fp = (void *)(uintptr_t)main;
    point->pc = (void *)(uintptr_t)ls_fiber_enter;
    point->fp_control = fiber_fp_control();
#endif
#if defined(FIBER_ASAN)
    point->fake_stack = NULL;
    point->stack = stack;
    point->stack_bytes = (size_t)((char *)top - (char *)stack);
#endif
    (void)stack;
}

FIBER_INLINE void fiber_depart(struct fiber_point *from, struct fiber_point *to,
                               void **fake_stack)
{
#if !defined(FIBER_UCONTEXT)
    from->fp_control = fiber_fp_control();
    fiber_fp_change(from->fp_control, to->fp_control);
#endif
#if defined(FIBER_ASAN)
    to->came_from = from;
    __sanitizer_start_switch_fiber(fake_stack, to->stack, to->stack_bytes);
#endif
    (void)from;
    (void)to;
    (void)fake_stack;
#if defined(FIBER_TSAN)
    from->tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
}

/* The first thing to do at a point; a main function does it itself. The stack
 * of a thread becomes known to us when one leaves it. */
FIBER_INLINE void fiber_arrive(struct fiber_point *here)
{
#if defined(FIBER_ASAN)
    __sanitizer_finish_switch_fiber(here->fake_stack, &here->came_from->stack,
                                    &here->came_from->stack_bytes);
#endif
    (void)here;
}

/* Stand still at `from`, go on at `to`. Returns when someone goes to `from`. */
FIBER_INLINE void fiber_switch(struct fiber_point *from, struct fiber_point *to)
{
#if defined(FIBER_ASAN)
    fiber_depart(from, to, &from->fake_stack);
#else
    fiber_depart(from, to, NULL);
#endif
    fiber_jump(from, to);
    fiber_arrive(from);
}

/* Go on at `to` and never come back. */
FIBER_INLINE void fiber_leave(struct fiber_point *from, struct fiber_point *to)
{
    fiber_depart(from, to, NULL); /* NULL: ASan frees the fake stack */
    fiber_jump(from, to);
    __builtin_unreachable();
}

#endif
