/* simulation.h - a whole cluster in one thread, from one seed.
 *
 * A simulation is a set of hosts, each with a runtime of its own (runtime.h).
 * Every thread that is spawned there is a fiber; one scheduler picks the next
 * of those that can run with a seeded generator, and when none can, the virtual
 * clock jumps to the next deadline. Programs that keep to runtime.h run in it
 * unchanged; the same seed gives the same run, event for event, on any machine.
 * The network between the hosts is lockstep/network.h.
 *
 * Time: a switch to another thread and a look at the clock cost some virtual
 * nanoseconds, drawn from the seed, so that a program that waits for time to
 * pass by looking at it comes to an end. ls_wall_now() begins at 2000-01-01 and
 * costs nothing, so that what people choose to log changes no run.
 * Schedules: any thread that can run may be next; a look at the clock, a lock,
 * an unlock and a signal may let others run; a signal wakes any of those that
 * wait, and a lock that is let go may be taken by any thread.
 * Thread: all of a simulation on one OS thread. A process may hold several,
 * on several threads too.
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
    int64_t limit_ns;   /* the run fails when virtual time is past it; 0: one
                         * hour */
    size_t stack_bytes; /* of each thread; 0: 128 KiB (more under a
                         * sanitizer) */
    FILE *log;          /* every event as a line; NULL: none. Borrow */
    size_t keep;        /* so many of the last lines are kept for
                         * ls_simulation_print(); 0: 64 */
};

/* out: own; NULL after an error. options: NULL: all zero. Copied.
 * Errors: LS_EINVAL stack_bytes under 4 KiB; LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_simulation_create(ls_simulation **out,
                     const struct ls_simulation_options *options);
/* NULL and a pointer to NULL are fine. Locks and conditions on its runtimes
 * have had their fini, and its threads were joined. After a run that did not
 * come to its end, take nothing apart but the simulation: the stacks of its
 * threads go, and what those owned is lost. Calls that did not come due are not
 * made. */
LS_API void ls_simulation_destroy(ls_simulation **simulation);

/* Run fn(arg) as the first thread, outside of all hosts, until it and every
 * thread of the simulation has ended. It may be run again after that.
 * Errors: LS_ESTATE nothing can run any more, and nobody waits with a deadline:
 *         the text lists who waits for what; LS_ETIMEDOUT virtual time ran out:
 *         the same; LS_EINVARIANT whatever else happened, when
 *         ls_simulation_violation() was called: with the text that it was told
 *         first. LS_ESTATE also when it runs already, or has failed before;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_simulation_run(ls_simulation *simulation,
                                         void (*fn)(void *arg), void *arg);

/* The runtime of those who watch: no host, so never paused and never skewed. */
LS_API ls_runtime *ls_simulation_runtime(ls_simulation *simulation);

/* The simulation that a runtime belongs to; NULL: none, it is of threads. */
LS_API ls_simulation *ls_simulation_of(const ls_runtime *runtime);

/* A stream of random numbers for whoever injects faults: apart from that of the
 * scheduler, so that drawing more of them changes nothing else. Borrow. */
LS_API struct ls_rng *ls_simulation_random(ls_simulation *simulation);

/* ---- hosts ------------------------------------------------------------- */

/* One more host; may be made at any time, also from inside the run.
 * out: borrow; as long as the simulation. name: copied; in the log.
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_host_create(ls_host **out, ls_simulation *simulation,
                                      const char *name);
LS_API ls_runtime *ls_host_runtime(ls_host *host);
/* The host of a runtime; NULL: that of a simulation itself, or of threads. */
LS_API ls_host *ls_host_of(ls_runtime *runtime);
LS_API const char *ls_host_name(const ls_host *host);

/* The host of the thread that runs now; NULL: it has none, or none runs. A
 * thread that does not return to the simulation stops all of it, which only
 * another thread of the system can see. Borrow. Thread: any. */
LS_API ls_host *ls_simulation_running(const ls_simulation *simulation);

/* Stop all its threads, as SIGSTOP does, the calling one included; what they
 * hold they keep, and their deadlines go on: those that have passed end their
 * waits when they are resumed. Twice: once. A dead host: nothing. */
LS_API void ls_host_pause(ls_host *host);
LS_API void ls_host_resume(ls_host *host);
LS_API bool ls_host_is_paused(const ls_host *host);

/* Its clocks show true time · (1 + drift) + offset from now on; the monotonic
 * one never goes back: it stands until that has come to where it was.
 * Deadlines that are waited for are those of the changed clock. drift: -0.1 …
 * 0.1, in steps of 1e-9. */
LS_API void ls_host_skew(ls_host *host, int64_t offset_ns, double drift);

/* The simulated process is dead: a network lets nothing of it out, and its
 * threads, resumed when they were paused, are left to find that out and end.
 * There is no way back; a new life is a new host. */
LS_API void ls_host_kill(ls_host *host);
LS_API bool ls_host_is_dead(const ls_host *host);

/* ---- what happened ----------------------------------------------------- */

/* Add a line to the log: true virtual time, the host and the name of the
 * calling thread ("-": without a host, outside of all threads), the text:
 *   12.345678901 node0/bus heard of node 3
 * A line is cut to 239 bytes; control bytes become "?". The simulation itself
 * notes the threads' beginnings and ends, what is done to hosts, and what
 * threads log (lockstep/log.h) as a warning or an error, whatever LS_LOG says.
 * Cheap when nobody reads it, not free: it is formatted and hashed. */
LS_API void ls_simulation_note(ls_simulation *simulation, const char *format,
                               ...) LS_PRINTF(2, 3);

/* A hash of all lines so far: equal runs have equal ones. */
LS_API uint64_t ls_simulation_hash(const ls_simulation *simulation);

/* Print the last lines that were kept, oldest first. */
LS_API void ls_simulation_print(const ls_simulation *simulation, FILE *out);

/* An invariant is broken: noted, and what ls_simulation_run() will return. The
 * first one counts. */
LS_API void ls_simulation_violation(ls_simulation *simulation,
                                    const char *format, ...) LS_PRINTF(2, 3);
LS_API bool ls_simulation_is_violated(const ls_simulation *simulation);

/* Call check(self) each time before virtual time jumps, and at the end of the
 * run; it reports by ls_simulation_violation(). Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_simulation_watch(ls_simulation *simulation,
                    void (*check)(void *self, ls_simulation *simulation),
                    void *self);

/* Call fn(arg) at a virtual time, between threads; it must not wait. The means
 * of networks and fault injectors. at: in the past: soon. Calls of the same
 * time run in the order in which they were asked for.
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_simulation_at(ls_simulation *simulation, int64_t at,
                                        void (*fn)(void *arg), void *arg);

/* True virtual time, which begins at 0. */
LS_API int64_t ls_simulation_now(const ls_simulation *simulation);

#ifdef __cplusplus
}
#endif

#endif
