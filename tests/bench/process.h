/* process.h - what is measured between processes runs in processes of its own.
 *
 * A benchmark starts itself again with hidden arguments, and speaks with those
 * processes line by line, over their standard input and output. Nothing is
 * forked without an exec, which libzmq does not bear. Any failure, of any of
 * them, ends the program, what it started and its folder.
 * Thread: serial, but for bench_fail(). */
#ifndef LOCKSTEP_BENCH_PROCESS_H
#define LOCKSTEP_BENCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lockstep/runtime.h"

#define PROCESS_LINE_MAX 512
#define PROCESS_MAX      17 /* at the same time */

struct process {
    pid_t pid;
    FILE *input;
    FILE *output;
};

/* Monotonic, the same clock in all processes; ns. */
int64_t bench_now(void);

/* Print what failed, with ls_error_text(), and end the program. */
_Noreturn void bench_fail(const char *what);

/* A thread, and its end. */
ls_thread *bench_thread(void (*fn)(void *self), void *self);
void bench_thread_join(ls_thread *thread);

/* What one thread waits for, and another says; again and again. */
struct bench_latch {
    ls_mutex lock;
    ls_cond changed;
    bool done;
};
void bench_latch_init(struct bench_latch *latch);
void bench_latch_fini(struct bench_latch *latch);
void bench_latch_open(struct bench_latch *latch);
/* Ends the program when it is not opened in time. */
void bench_latch_wait(struct bench_latch *latch, int wait_ms);

/* In main, first. Interrupts are looked at where it is convenient. */
void process_init(void);

/* The job of the worlds that this program measures, the same in all its
 * processes: two programs that run at the same time stay apart. */
const char *bench_job(void);

/* Start this program again. arguments: without argv[0]; ends with NULL. */
void process_start(struct process *process, const char *const *arguments);
/* A line for it, without the newline. */
void process_tell(struct process *process, const char *line);
/* A line from it, without the newline; PROCESS_LINE_MAX bytes. */
void process_hear(struct process *process, char *line);
/* Its standard input ends, which is its sign to end; and it must end well. */
void process_end(struct process *process);
/* kill -9. */
void process_kill(struct process *process);

/* For those that were started: a line to and from the program; hear returns
 * 0 at the end of standard input. */
void parent_tell(const char *line);
int parent_hear(char *line);

/* A new folder for socket files, for this user alone; removed at the end.
 * Borrow. */
const char *bench_folder(void);

#endif
