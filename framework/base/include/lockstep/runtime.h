/* runtime.h - everything that waits, spawns, or reads a clock.
 *
 * No other file may call pthread_*, clock_gettime, nanosleep or the like: a
 * program that keeps to this interface runs unchanged on threads and in the
 * seeded simulation, where a thread is a fiber and time is virtual.
 *
 * Time, in every header: the name says what a number means.
 *   deadline, …_at   a moment: int64_t, ns on the runtime's monotonic clock, as
 *                    returned by ls_now(). Waits of this layer, and of devices,
 *                    take a deadline: LS_NOW only looks, LS_FOREVER never gives
 *                    up
 *   …_ns             a duration: int64_t, measured, or given to a simulation
 *   wait_ms          an argument: how long this call may wait. 0: only look;
 *                    LS_WAIT_DEFAULT: a minute, unless the function says
 *                    otherwise. No such call waits for ever
 *   …_timeout_ms     an option: the same. 0: its default, as with any option;
 *                    LS_NO_WAIT, where it is named: only look
 *   …_ms, …_s        other options: an int, or a double. Figures for people: a
 *                    double
 * ls_deadline() turns wait_ms into a deadline once, at entry.
 * Thread: any.
 * Source: pthreads(7), clock_gettime(2); design in docs/runtime.md. */
#ifndef LOCKSTEP_RUNTIME_H
#define LOCKSTEP_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LS_NOW     INT64_MIN
#define LS_FOREVER INT64_MAX

#define LS_WAIT_DEFAULT (-1) /* as wait_ms */
#define LS_NO_WAIT      (-1) /* as timeout_ms */

#define LS_NS_PER_US INT64_C(1000)
#define LS_NS_PER_MS INT64_C(1000000)
#define LS_NS_PER_S  INT64_C(1000000000)

/* An implementation. Threads have one per process, a simulated cluster has one
 * of its own. */
typedef struct ls_runtime ls_runtime;

/* A thread. Own: the code that spawned it joins it. */
typedef struct ls_thread ls_thread;

/* Storage for a lock and for a condition, in the caller's memory; set up by
 * init, released by fini. Do not move it between the two. */
typedef struct ls_mutex {
    ls_runtime *runtime; /* borrow */
    union {
        max_align_t align;
        unsigned char bytes[48];
    } os;
} ls_mutex;

typedef struct ls_cond {
    ls_runtime *runtime; /* borrow */
    union {
        max_align_t align;
        unsigned char bytes[48];
    } os;
} ls_cond;

/* The runtime of POSIX threads and CLOCK_MONOTONIC. Borrow: it lives as long
 * as the process. */
LS_API ls_runtime *ls_runtime_threads(void);

/* The runtime that the calling thread was spawned on; that of threads, if
 * ls_thread_spawn() did not spawn it. Borrow. */
LS_API ls_runtime *ls_runtime_current(void);

/* Now, on the monotonic clock, in ns. */
LS_API int64_t ls_now(ls_runtime *runtime);

/* Now, in wall-clock time: ns since 1970-01-01 UTC. For timestamps that people
 * read and for incarnations; never for a wait. */
LS_API int64_t ls_wall_now(ls_runtime *runtime);

/* The deadline `wait_ms` from now: 0 gives LS_NOW, negative a minute. */
LS_API int64_t ls_deadline(ls_runtime *runtime, int wait_ms);

/* 64 bits that are unpredictable on threads, and follow from the seed in the
 * simulation. For seeds and identifiers; random streams come from ls_rng. */
LS_API uint64_t ls_entropy(ls_runtime *runtime);

/* Make the calling thread sleep until the deadline. The framework itself never
 * calls it: it is for programs that stand in for work (and, in the simulation,
 * for anything that takes time). */
LS_API void ls_rest_until(ls_runtime *runtime, int64_t deadline);

/* Start a thread that runs fn(arg). On threads, it leaves SIGINT, SIGTERM and
 * SIGHUP to the main thread.
 * out:    own; NULL after an error; written before fn runs; give it to
 *         ls_thread_join().
 * name:   copied; cut to 15 bytes; what ps and gdb show.
 * Errors: LS_EAGAIN the system has no room for another; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_thread_spawn(ls_runtime *runtime, ls_thread **out,
                                       const char *name, void (*fn)(void *arg),
                                       void *arg);

/* Wait until the thread has ended, free it and set *thread to NULL. NULL and a
 * pointer to NULL are fine. A thread must not join itself.
 * Errors: LS_ETIMEDOUT: it still runs and *thread is still yours. */
LS_MUST_USE LS_API int ls_thread_join(ls_thread **thread, int64_t deadline);

/* Whether the caller runs on this thread. NULL: false. */
LS_API bool ls_thread_is_current(const ls_thread *thread);

/* The number of cores of this machine; cores are numbered from 0. In a
 * simulation always LS_CORES_MAX. */
#define LS_CORES_MAX 1024
LS_API int ls_core_count(ls_runtime *runtime);

/* How many cores this process may use now: those of its affinity, or the limit
 * of its control groups (cgroup v2, cpu.max) where that is less: 0.5 in a
 * container with half a core. In a simulation 1. */
LS_API double ls_cpus(ls_runtime *runtime);

/* Keep the calling thread, and threads that it spawns, on one core. No effect
 * in a simulation.
 * Errors: LS_ENOENT: there is no such core, or this process may not use it. */
LS_MUST_USE LS_API int ls_thread_pin(ls_runtime *runtime, int core);

/* A non-recursive lock. fini does nothing if the lock is all zero or was
 * already released, so a half-initialised struct can be torn down. Errors of
 * init: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_mutex_init(ls_mutex *mutex, ls_runtime *runtime);
LS_API void ls_mutex_fini(ls_mutex *mutex);
LS_API void ls_mutex_lock(ls_mutex *mutex);
LS_API void ls_mutex_unlock(ls_mutex *mutex);

/* A condition. Always use it with one mutex, and in a loop over the state that
 * you wait for, since a wait may end early. fini: as for a lock. Errors of
 * init: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_cond_init(ls_cond *cond, ls_runtime *runtime);
LS_API void ls_cond_fini(ls_cond *cond);
LS_API void ls_cond_signal(ls_cond *cond);
LS_API void ls_cond_broadcast(ls_cond *cond);

/* Release the mutex, wait for a signal, take the mutex again.
 * Errors: LS_ETIMEDOUT the deadline passed; the mutex is held again. It leaves
 *         no ls_error_text(): the caller knows what it means. */
LS_MUST_USE LS_API int ls_cond_wait(ls_cond *cond, ls_mutex *mutex,
                                    int64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
