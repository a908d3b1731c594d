/* Signals on a thread. Design notes:
 *
 * - A blocked signal stays pending until sigwait() takes it, so nothing is
 *   lost while there is no listener: whoever changes the list of watches stops
 *   the listener, changes it, and starts another. So the list needs no lock on
 *   the listener's side, and a watch that is gone is not being called.
 * - The listener is stopped by pthread_cancel(), the one portable way to end a
 *   sigwait() without taking a signal away from someone. It can be cancelled
 *   only there: a call under way is finished first.
 * - timeout(1) sends a signal to its child and then to the whole group: that
 *   is one wish, and not the second signal.
 * - Two listeners would steal each other's signals, hence one per process and
 *   the one global list of the framework; signals belong to the process. */
#include "lockstep/signal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "forked.h"
#include "lockstep/log.h"
#include "lockstep/runtime.h"

enum { SIGNALS = 65 }; /* numbers are below; Linux has 1 … 64 */
#define AGAIN_NS (200 * LS_NS_PER_MS) /* signal.h: nobody presses as fast */

struct ls_signals {
    ls_signals *next;
    sigset_t wanted;
    void (*fn)(void *self, int signal);
    void *self;
    void (*second)(void *self); /* before the process dies of it; NULL: none */
    void *second_self;
    bool each;      /* a second one does not kill */
    unsigned forks; /* ls_forks_now(), when it was made */
    /* the listener's */
    bool called;
    int number; /* of the signal that it was called with, and when */
    int64_t at;
};

static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;
static ls_signals *watches; /* changed under `change` without a listener */
static pthread_t listener;
static bool listening;

/* What the watches of this thread did to its mask. */
static _Thread_local struct {
    uint16_t watches;
    bool was_blocked;
} mask[SIGNALS];

/* Default disposition, and the signal again, to die of it. */
static void die_of(int number)
{
    sigset_t only;
    for (const ls_signals *watch = watches; watch != NULL; watch = watch->next)
        if (watch->second != NULL)
            watch->second(watch->second_self);
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    raise(number);
    _exit(128 + number); /* the first process of a container cannot die so */
}

/* Not for the one that it was called with, sent twice. */
static bool is_for(const ls_signals *watch, int number, int64_t now)
{
    return sigismember(&watch->wanted, number) == 1 &&
           !(watch->called && watch->number == number &&
             now - watch->at < AGAIN_NS);
}

static void deliver(int number)
{
    const int64_t now = ls_now(ls_runtime_threads());
    for (ls_signals *watch = watches; watch != NULL; watch = watch->next)
        if (watch->called && is_for(watch, number, now))
            die_of(number);
    for (ls_signals *watch = watches; watch != NULL; watch = watch->next)
        if (is_for(watch, number, now)) {
            watch->called = !watch->each;
            watch->number = number;
            watch->at = now;
            watch->fn(watch->self, number);
        }
}

static void *listen_to_all(void *unused)
{
    (void)unused;
    int state;
    sigset_t all;
    sigemptyset(&all);
    for (int number = 1; number < SIGNALS; number++)
        for (const ls_signals *watch = watches; watch; watch = watch->next)
            if (sigismember(&watch->wanted, number) == 1)
                sigaddset(&all, number);
    for (;;) {
        int number = 0;
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
        const int failed = sigwait(&all, &number);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        if (failed == 0)
            deliver(number);
    }
    return NULL;
}

/* The child of a fork has no listener, and none of the watches is its own. Nor
 * is a lock, which a thread may have that is no more. */
static void forget_parents(void)
{
    change = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    watches = NULL;
    listening = false;
}

static void mind_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_parents);
}

static int listener_start(void)
{
    if (watches == NULL)
        return LS_OK;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&listener, NULL, listen_to_all, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    listening = failed == 0;
    if (failed == EAGAIN)
        return ls_error(LS_EAGAIN, "signals: the system has no room for a "
                                   "thread that waits for them");
    return failed == 0 ? LS_OK : ls_error_from(failed, "signals: a thread");
}

static void listen_again(void)
{
    if (listener_start() != LS_OK)
        ls_log_error("the watched signals are not heard any more: %s",
                     ls_error_text());
}

static void listener_stop(void)
{
    if (!listening)
        return;
    pthread_cancel(listener);
    pthread_join(listener, NULL);
    listening = false;
}

static void mask_take(const sigset_t *wanted)
{
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, wanted, &before);
    for (int number = 1; number < SIGNALS; number++)
        if (sigismember(wanted, number) == 1 && mask[number].watches++ == 0)
            mask[number].was_blocked = sigismember(&before, number) == 1;
}

static void mask_give_back(const sigset_t *wanted)
{
    sigset_t freed;
    sigemptyset(&freed);
    for (int number = 1; number < SIGNALS; number++)
        if (sigismember(wanted, number) == 1 && --mask[number].watches == 0 &&
            !mask[number].was_blocked)
            sigaddset(&freed, number);
    pthread_sigmask(SIG_UNBLOCK, &freed, NULL);
}

static int set_fill(sigset_t *set, const int *signals, size_t n)
{
    if (n == 0)
        return ls_error(LS_EINVAL, "signals: name at least one to watch");
    sigemptyset(set);
    for (size_t i = 0; i < n; i++) {
        switch (signals[i]) {
        case SIGKILL:
        case SIGSTOP:
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
            return ls_error(LS_EINVAL, "signals: number %d cannot be watched",
                            signals[i]);
        default:
            if (signals[i] >= SIGNALS || sigaddset(set, signals[i]) != 0)
                return ls_error(LS_EINVAL, "signals: there is no number %d",
                                signals[i]);
        }
    }
    return LS_OK;
}

static void unlink_watch(const ls_signals *watch)
{
    ls_signals **at = &watches;
    while (*at != watch)
        at = &(*at)->next;
    *at = watch->next;
}

static int watch_for(ls_signals **out, const int *signals, size_t n,
                     void (*fn)(void *self, int signal), void *self, bool each)
{
    sigset_t wanted;
    int status = set_fill(&wanted, signals, n);
    if (status != LS_OK)
        return status;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, mind_forks);
    ls_signals *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return ls_error(LS_ENOMEM, "signals: no memory for a watch");
    watch->wanted = wanted;
    watch->fn = fn;
    watch->self = self;
    watch->each = each;
    watch->forks = ls_forks_now();
    mask_take(&wanted);

    pthread_mutex_lock(&change);
    listener_stop();
    watch->next = watches;
    watches = watch;
    status = listener_start();
    if (status != LS_OK) {
        unlink_watch(watch);
        listen_again();
    }
    pthread_mutex_unlock(&change);

    if (status != LS_OK) {
        mask_give_back(&wanted);
        free(watch);
        return status;
    }
    *out = watch;
    return LS_OK;
}

int ls_signal_watch(ls_signals **out, const int *signals, size_t n,
                    void (*fn)(void *self, int signal), void *self)
{
    *out = NULL;
    return watch_for(out, signals, n, fn, self, false);
}

int ls_signal_watch_each(ls_signals **out, const int *signals, size_t n,
                         void (*fn)(void *self, int signal), void *self)
{
    *out = NULL;
    return watch_for(out, signals, n, fn, self, true);
}

void ls_signal_on_second(ls_signals *signals, void (*fn)(void *self),
                         void *self)
{
    if (ls_forked_since(signals->forks))
        return;
    pthread_mutex_lock(&change);
    listener_stop();
    signals->second = fn;
    signals->second_self = self;
    listen_again();
    pthread_mutex_unlock(&change);
}

void ls_signal_unwatch(ls_signals **signals)
{
    if (signals == NULL || *signals == NULL ||
        ls_forked_since((*signals)->forks))
        return;
    ls_signals *watch = *signals;
    *signals = NULL;
    pthread_mutex_lock(&change);
    listener_stop();
    unlink_watch(watch);
    listen_again();
    pthread_mutex_unlock(&change);
    mask_give_back(&watch->wanted);
    free(watch);
}
