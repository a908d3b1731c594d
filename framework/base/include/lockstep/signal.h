/* signal.h - termination signals, handled by calls on a thread.
 *
 * In a signal handler almost nothing is allowed. Here the signals are blocked
 * and one thread of the process waits for them, so the callback may do what any
 * thread may: take locks, log, cancel a run. Several watches may name the same
 * signal: each is called. The second signal that a watch would see kills the
 * process, as if nobody had watched: a user who presses Ctrl-C twice wants out.
 * The same signal again within 200 ms is not a second one: timeout(1), for one,
 * sends it to its child and to the whole group.
 * fork(2): the watches are the parent's. The child has none until it makes its
 * own; the signals stay blocked there.
 * Thread: owner; several owners may have watches at the same time.
 * Source: sigwait(3), pthread_sigmask(3). */
#ifndef LOCKSTEP_SIGNAL_H
#define LOCKSTEP_SIGNAL_H

#include <stddef.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_signals ls_signals;

/* Block the signals in the calling thread and have fn called for each one. Call
 * it before the program has other threads: they inherit the mask, while a
 * signal would kill through any thread that does not block it (threads of
 * ls_thread_spawn() always block SIGINT, SIGTERM and SIGHUP). Programs started
 * from this thread inherit the mask as well, unless told not to:
 * posix_spawnattr_setsigmask(3).
 * out:    own; NULL after an error; give it to ls_signal_unwatch() on the
 *         same thread.
 * signals: n of SIGINT, SIGTERM, SIGHUP, SIGUSR1 …; n >= 1. copied
 * fn:     runs on the watching thread, one call at a time in the process; it
 *         must not watch or unwatch.
 * Errors: LS_EINVAL no signal or one that cannot be waited for: SIGKILL,
 *         SIGSTOP, and those that a program fault raises; LS_EAGAIN the system
 *         has no room for a thread; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_signal_watch(ls_signals **out, const int *signals,
                                       size_t n,
                                       void (*fn)(void *self, int signal),
                                       void *self);

/* The same for signals that ask for something and end nothing: however many
 * come, fn is called for each. */
LS_MUST_USE LS_API int ls_signal_watch_each(ls_signals **out,
                                            const int *signals, size_t n,
                                            void (*fn)(void *self, int signal),
                                            void *self);

/* Have fn called before a second signal kills the process, for what must not
 * outlive it; the default is NULL, nothing.
 * fn:     as that of the watch, and not while that one runs. The process dies
 *         once it returns, so it must not wait for anybody.
 * self:   borrow, until the next call or the end of the watch. */
LS_API void ls_signal_on_second(ls_signals *signals, void (*fn)(void *self),
                                void *self);

/* End the watch at once: on return fn is not running and will not run again.
 * The mask is as before the watch, except for signals that another watch of
 * this thread names. NULL and a pointer to NULL are fine. */
LS_API void ls_signal_unwatch(ls_signals **signals);

#ifdef __cplusplus
}
#endif

#endif
