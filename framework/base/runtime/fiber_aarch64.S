/* Where a new fiber begins on aarch64; inline/fiber_switch.h says how it
 * gets here.
 * x1: its point; x29: the main function, which takes the point and never
 * returns. A debugger's backtrace ends here. */
#if defined(__aarch64__) && defined(__LP64__) && !defined(LOCKSTEP_FIBER_UCONTEXT)
    .text
    .globl ls_fiber_enter
    .hidden ls_fiber_enter
    .type ls_fiber_enter, %function
    .p2align 4
ls_fiber_enter:
    .cfi_startproc
    .cfi_undefined x30
    hint #38 /* bti jc */
    mov x16, x29
    mov x29, xzr
    mov x30, xzr
    mov x0, x1
    br x16 /* the register that "bti c" takes a jump from */
    .cfi_endproc
    .size ls_fiber_enter, . - ls_fiber_enter

/* BTI. Return addresses are signed with the stack pointer that they are
 * checked with, so signing needs nothing of us. */
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000000, 4, 3, 0
#endif
    .section .note.GNU-stack, "", %progbits
