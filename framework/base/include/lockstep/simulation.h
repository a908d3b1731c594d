/* simulation.h - a whole cluster in one thread, from one seed.
 *
 * A simulation is a set of hosts, each with its own runtime (runtime.h). Every
 * thread spawned there is a fiber. One scheduler picks the next runnable fiber
 * with a seeded generator; when none is runnable, the virtual clock jumps to
 * the next deadline. Programs that keep to runtime.h run in it unchanged; the
 * same seed gives the same run, event for event, on any machine. The network
 * between the hosts is lockstep/network.h.
 *
 * Time: a thread switch and a look at the clock cost some virtual nanoseconds,
 * drawn from the seed, so that a program that polls the clock makes progress.
 * ls_wall_now() begins at 2000-01-01 and costs nothing, so that the choice of
 * log level changes no run.
 * Schedules: any runnable thread may be next; a look at the clock, a lock, an
 * unlock and a signal may let others run; a signal wakes any one waiter, and a
 * released lock may be taken by any thread.
 * Thread: all of a simulation on one OS thread. A process may hold several
 * simulations, also on several threads.
 * Source: docs/runtime.md, docs/debugging.md. */
#ifndef LOCKSTEP_SIMULATION_H
#define LOCKSTEP_SIMULATION_H

#include <stdio.h>

#include "lockstep/random.h"
#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_simulation ls_simulation;
typedef struct ls_host ls_host;

struct ls_simulation_options {
    uint64_t seed;
    int64_t limit_ns;   /* the run fails once virtual time exceeds it; 0: one
                         * hour */
    size_t stack_bytes; /* of each thread; 0: 128 KiB (more under a
                         * sanitizer) */
    FILE *log;          /* every event as a line; NULL: none. Borrow */
    size_t keep;        /* how many of the last lines to keep for
                         * ls_simulation_print(); 0: 64 */
};

/* out: own; NULL after an error. options: NULL: all zero. Copied.
 * Errors: LS_EINVAL stack_bytes under 4 KiB; LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_simulation_create(ls_simulation **out,
                     const struct ls_simulation_options *options);
/* NULL and a pointer to NULL are fine. Before this, locks and conditions on its
 * runtimes must be released by fini, and its threads joined. After a run that
 * did not end normally, destroy only the simulation: the stacks of its threads
 * go, and what those owned is lost. Pending calls are not made. */
LS_API void ls_simulation_destroy(ls_simulation **simulation);

/* Run fn(arg) as the first thread, outside all hosts, until it and every thread
 * of the simulation have ended. It may be run again after that.
 * Errors: LS_ESTATE no thread can run, and none waits with a deadline: the text
 *         lists which thread waits for what; LS_ETIMEDOUT virtual time ran out:
 *         the same; LS_EINVARIANT ls_simulation_violation() was called,
 * whatever else happened: with its first text. LS_ESTATE also: it is running,
 * or has failed before; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_simulation_run(ls_simulation *simulation,
                                         void (*fn)(void *arg), void *arg);

/* The runtime of observers: it has no host, so it is never paused or skewed. */
LS_API ls_runtime *ls_simulation_runtime(ls_simulation *simulation);

/* The simulation that a runtime belongs to; NULL: none, it runs on threads. */
LS_API ls_simulation *ls_simulation_of(const ls_runtime *runtime);

/* A stream of random numbers for fault injectors, separate from that of the
 * scheduler, so that drawing more of them changes nothing else. Borrow. */
LS_API struct ls_rng *ls_simulation_random(ls_simulation *simulation);

/* ---- hosts ------------------------------------------------------------- */

/* Add a host, at any time, even during the run.
 * out: borrow; as long as the simulation. name: copied; in the log.
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_host_create(ls_host **out, ls_simulation *simulation,
                                      const char *name);
LS_API ls_runtime *ls_host_runtime(ls_host *host);
/* The host of a runtime; NULL: it is a simulation's own, or that of threads. */
LS_API ls_host *ls_host_of(ls_runtime *runtime);
LS_API const char *ls_host_name(const ls_host *host);
/* On which machine it is, 0 by default: hosts of one machine share memory
 * (docs/shared-memory.md). Before a node is opened there. */
LS_API void ls_host_set_machine(ls_host *host, uint32_t machine);

/* The host of the running thread; NULL: it has none, or no thread runs. A
 * thread that never returns to the simulation stops all of it, which only
 * another OS thread can detect. Borrow. Thread: any. */
LS_API ls_host *ls_simulation_running(const ls_simulation *simulation);

/* Stop all its threads, including the caller, as SIGSTOP does. They keep what
 * they hold, and their deadlines run on: those that have passed end their waits
 * on resume. Pausing it twice counts once. No effect on a dead host. */
LS_API void ls_host_pause(ls_host *host);
LS_API void ls_host_resume(ls_host *host);
LS_API bool ls_host_is_paused(const ls_host *host);

/* From now on its clocks show true time · (1 + drift) + offset. The monotonic
 * clock never goes back: it stands still until the new time has caught up.
 * Pending deadlines follow the changed clock. drift: -0.1 … 0.1, in steps of
 * 1e-9. */
LS_API void ls_host_skew(ls_host *host, int64_t offset_ns, double drift);

/* Kill the simulated process: a network lets nothing out of it any more, and
 * its threads, resumed if they were paused, run on until they notice and end.
 * This is final; a new life is a new host. */
LS_API void ls_host_kill(ls_host *host);
LS_API bool ls_host_is_dead(const ls_host *host);

/* ---- what happened ----------------------------------------------------- */

/* Add a line to the log: true virtual time, the host and the name of the
 * calling thread ("-": without a host, outside of all threads), the text:
 *   12.345678901 node0/bus heard of node 3
 * A line is cut to 239 bytes; control bytes become "?". The simulation itself
 * notes when threads begin and end, what is done to hosts, and warnings and
 * errors that threads log (lockstep/log.h), whatever LS_LOG says. Cheap even
 * when nobody reads it, but not free: the line is formatted and hashed. */
LS_API void ls_simulation_note(ls_simulation *simulation, const char *format,
                               ...) LS_PRINTF(2, 3);

/* A hash of all lines so far: equal runs have equal hashes. */
LS_API uint64_t ls_simulation_hash(const ls_simulation *simulation);

/* Print the last lines kept, oldest first. */
LS_API void ls_simulation_print(const ls_simulation *simulation, FILE *out);

/* Report a broken invariant: it is noted, and ls_simulation_run() will return
 * it. The first one counts. */
LS_API void ls_simulation_violation(ls_simulation *simulation,
                                    const char *format, ...) LS_PRINTF(2, 3);
LS_API bool ls_simulation_is_violated(const ls_simulation *simulation);

/* Call check(self) each time before virtual time jumps, and at the end of the
 * run; it reports with ls_simulation_violation(). Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_simulation_watch(ls_simulation *simulation,
                    void (*check)(void *self, ls_simulation *simulation),
                    void *self);

/* Call fn(arg) at a virtual time, between threads; it must not wait. Networks
 * and fault injectors use this. at: if in the past: soon. Calls at the same
 * time run in the order in which they were requested.
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_simulation_at(ls_simulation *simulation, int64_t at,
                                        void (*fn)(void *arg), void *arg);

/* True virtual time, which begins at 0. */
LS_API int64_t ls_simulation_now(const ls_simulation *simulation);

#ifdef __cplusplus
}
#endif

#endif
