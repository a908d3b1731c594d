/* Where a new fiber begins on x86-64; inline/fiber_switch.h says how it
 * gets here.
 * %rsi: its point; %rbp: the main function, which takes the point and never
 * returns. A debugger's backtrace ends here. */
#if defined(__x86_64__) && defined(__LP64__) && !defined(LOCKSTEP_FIBER_UCONTEXT)
    .text
    .globl ls_fiber_enter
    .hidden ls_fiber_enter
    .type ls_fiber_enter, @function
    .p2align 4
ls_fiber_enter:
    .cfi_startproc
    .cfi_undefined rip
    endbr64
    movq %rbp, %rax
    xorl %ebp, %ebp
    movq %rsi, %rdi
    pushq $0 /* as a call would; it never returns */
    jmp *%rax
    .cfi_endproc
    .size ls_fiber_enter, . - ls_fiber_enter

/* IBT only. The linker keeps what all objects have, so that a program with
 * fibers in it never runs with a shadow stack, which a jump between stacks
 * leaves behind. */
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 1, 0
#endif
    .section .note.GNU-stack, "", %progbits
