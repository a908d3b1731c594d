/* runtime_ops.h - what an implementation of runtime.h fills in.
 *
 * runtime.c forwards each call to the runtime's table: a new runtime is one
 * more .c file with a table and a way to get hold of it. A runtime and its
 * threads begin with the structs below and continue as they like. Contracts
 * are those of runtime.h, except for what is said here. */
#ifndef LOCKSTEP_RUNTIME_OPS_H
#define LOCKSTEP_RUNTIME_OPS_H

#include "lockstep/runtime.h"

struct ls_runtime_ops {
    int64_t (*now)(ls_runtime *runtime);
    int64_t (*wall_now)(ls_runtime *runtime);
    /* As now, for those who only watch: it takes no time, and lets nobody else
     * run. */
    int64_t (*glance)(ls_runtime *runtime);
    uint64_t (*entropy)(ls_runtime *runtime);
    void (*rest_until)(ls_runtime *runtime, int64_t deadline);

    /* Sets (*out)->runtime. *out is written before fn runs. */
    int (*thread_spawn)(ls_runtime *runtime, ls_thread **out, const char *name,
                        void (*fn)(void *arg), void *arg);
    /* Frees the thread, unless it fails. */
    int (*thread_join)(ls_thread *thread, int64_t deadline);
    bool (*thread_is_current)(const ls_thread *thread);
    int (*core_count)(ls_runtime *runtime);
    double (*cpus)(ls_runtime *runtime);
    /* core: 0 to core_count - 1 */
    int (*thread_pin)(ls_runtime *runtime, int core);

    /* The member runtime is set before init and stays until after fini. */
    int (*mutex_init)(ls_mutex *mutex);
    void (*mutex_fini)(ls_mutex *mutex);
    void (*mutex_lock)(ls_mutex *mutex);
    void (*mutex_unlock)(ls_mutex *mutex);
    int (*cond_init)(ls_cond *cond);
    void (*cond_fini)(ls_cond *cond);
    void (*cond_signal)(ls_cond *cond);
    void (*cond_broadcast)(ls_cond *cond);
    int (*cond_wait)(ls_cond *cond, ls_mutex *mutex, int64_t deadline);

    const struct ls_memory_ops *memory; /* memory_ops.h */
};

struct ls_runtime {
    const struct ls_runtime_ops *ops;
    void *network; /* borrow, of the bus: what its nodes use; NULL: libzmq */
    void *disk;    /* borrow, of files: where they are; NULL: the system's */
};

struct ls_thread {
    ls_runtime *runtime; /* borrow */
};

/* Name the calling thread, if the runtime of threads has spawned it, after the
 * node that it works for: "2 ls-bus", for gdb, top and perf. */
void ls_runtime_threads_name(int64_t node);

/* Whether fd takes something, now or by the deadline, also if it then fails: of
 * a terminal or a pipe, whether who reads it keeps up. */
bool ls_runtime_threads_takes(int fd, int64_t deadline);

/* A lock of the runtime of threads that needs no init and has no end, for what
 * the process has only one of: the log. */
ls_mutex *ls_runtime_process_mutex(void);

#endif
