/* The runtime of POSIX threads. Design notes:
 *
 * - A join with a deadline waits for a flag that the thread sets last of all;
 *   pthread_join() follows, and is then as good as immediate. POSIX itself has
 *   no join with a deadline.
 * - Conditions wait on CLOCK_MONOTONIC, so a clock that is set moves nothing.
 * - A thread starts with the parent holding its lock and takes that lock
 *   first: so the parent has stored *out before fn can look at it.
 * - Threads block the signals that ask a program to end: those then reach the
 *   main thread, the one place that knows what to do about them. They are
 *   blocked before the thread exists, so it never has a moment without.
 * - That a pthread call fails on a lock that was initialised is a mistake in
 *   our code, never news from outside: hence the assertions. */
#define _GNU_SOURCE /* pthread_setname_np, getentropy, CPU_SET */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "memory_ops.h"
#include "runtime_ops.h"
#include "runtime_threads_cpus.h"
#include "thread_state.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(((ls_mutex *)NULL)->os),
               "a pthread_mutex_t fits into an ls_mutex");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(((ls_cond *)NULL)->os),
               "a pthread_cond_t fits into an ls_cond");
_Static_assert(_Alignof(pthread_mutex_t) <= _Alignof(max_align_t) &&
                   _Alignof(pthread_cond_t) <= _Alignof(max_align_t),
               "and their alignments, too");

enum { NAME_BYTES = 16 }; /* with its NUL; what Linux keeps of a name */

_Static_assert(LS_CORES_MAX <= CPU_SETSIZE, "a cpu_set_t has room for all");

struct os_thread {
    ls_thread base;
    pthread_t handle;
    pthread_mutex_t mutex;
    pthread_cond_t has_ended;
    bool ended; /* under mutex */
    void (*fn)(void *arg);
    void *arg;
    char name[NAME_BYTES];
    struct thread_state state; /* the thread's, while it runs */
};

/* The thread that runs here; NULL on one that was not spawned by us. */
static _Thread_local const struct os_thread *current;

/* For calls that only fail when our own code is wrong. */
static void must(int os_errno)
{
    assert(os_errno == 0);
    (void)os_errno;
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / LS_NS_PER_S),
                             .tv_nsec = (long)(ns % LS_NS_PER_S)};
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;
    const int failed = clock_gettime(clock, &time);
    assert(!failed);
    (void)failed;
    return (int64_t)time.tv_sec * LS_NS_PER_S + time.tv_nsec;
}

static int64_t threads_now(ls_runtime *runtime)
{
    (void)runtime;
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t threads_wall_now(ls_runtime *runtime)
{
    (void)runtime;
    return read_clock(CLOCK_REALTIME);
}

static uint64_t threads_entropy(ls_runtime *runtime)
{
    (void)runtime;
    uint64_t bits;
    /* Linux has it since 3.17. Numbers that can be foretold, or are the same
     * in two processes, would do harm far from here: better to stop. */
    if (getentropy(&bits, sizeof bits) != 0)
        abort();
    return bits;
}

static void threads_rest_until(ls_runtime *runtime, int64_t deadline)
{
    (void)runtime;
    if (deadline < 0)
        return;
    const struct timespec until = timespec_of(deadline);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
           EINTR)
        continue;
}

/* A condition on CLOCK_MONOTONIC. Returns an errno. */
static int init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed)
        return failed;
    must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    failed = pthread_cond_init(cond, &attributes);
    must(pthread_condattr_destroy(&attributes));
    return failed;
}

/* A lock that, where assertions are on, notices who unlocks or locks what is
 * not theirs to. Returns an errno. */
static int init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int failed = pthread_mutexattr_init(&attributes);
    if (failed)
        return failed;
#ifndef NDEBUG
    must(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK));
#endif
    failed = pthread_mutex_init(mutex, &attributes);
    must(pthread_mutexattr_destroy(&attributes));
    return failed;
}

static int wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex,
                    int64_t deadline)
{
    if (deadline == LS_FOREVER) {
        must(pthread_cond_wait(cond, mutex));
        return LS_OK;
    }
    /* LS_NOW, or before the clock began. */
    if (deadline < 0)
        return LS_ETIMEDOUT;
    const struct timespec until = timespec_of(deadline);
    const int failed = pthread_cond_timedwait(cond, mutex, &until);
    if (failed == ETIMEDOUT)
        return LS_ETIMEDOUT;
    must(failed);
    return LS_OK;
}

void ls_runtime_threads_name(int64_t node)
{
    char name[NAME_BYTES + 24];
    if (current == NULL)
        return;
    (void)snprintf(name, sizeof name, "%lld %s", (long long)node,
                   current->name);
    name[NAME_BYTES - 1] = '\0';
    (void)pthread_setname_np(pthread_self(), name);
}

bool ls_runtime_threads_takes(int fd, int64_t deadline)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    for (;;) {
        const int64_t now = read_clock(CLOCK_MONOTONIC);
        const int64_t left = deadline > now ? deadline - now : 0;
        const int ms = left > LS_NS_PER_S ? 1000 : (int)(left / LS_NS_PER_MS);
        const int n = poll(&one, 1, ms);
        if (n > 0)
            return true;
        if (n == 0 ? left < LS_NS_PER_MS : errno != EINTR)
            return false;
    }
}

static void *thread_main(void *argument)
{
    struct os_thread *thread = argument;
    must(pthread_mutex_lock(&thread->mutex));
    must(pthread_mutex_unlock(&thread->mutex));
    current = thread;
    /* Only for people's eyes: a system without names goes on without. */
    (void)pthread_setname_np(pthread_self(), thread->name);
    ls_thread_state_now = &thread->state;

    thread->fn(thread->arg);

    must(pthread_mutex_lock(&thread->mutex));
    thread->ended = true;
    must(pthread_cond_signal(&thread->has_ended));
    must(pthread_mutex_unlock(&thread->mutex));
    return NULL;
}

static void free_thread(struct os_thread *thread)
{
    must(pthread_cond_destroy(&thread->has_ended));
    must(pthread_mutex_destroy(&thread->mutex));
    free(thread);
}

static struct os_thread *new_thread(ls_runtime *runtime, const char *name,
                                    void (*fn)(void *arg), void *arg)
{
    struct os_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    if (init_mutex(&thread->mutex) != 0) {
        free(thread);
        return NULL;
    }
    if (init_cond(&thread->has_ended) != 0) {
        must(pthread_mutex_destroy(&thread->mutex));
        free(thread);
        return NULL;
    }
    thread->base.runtime = runtime;
    thread->fn = fn;
    thread->arg = arg;
    memcpy(thread->name, name, strnlen(name, NAME_BYTES - 1));
    thread->state.node = -1;
    thread->state.name = thread->name;
    return thread;
}

/* pthread_create() with the signals that end a program blocked in the new
 * thread. Returns an errno. */
static int create_blocked(struct os_thread *thread)
{
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    must(pthread_sigmask(SIG_BLOCK, &blocked, &before));
    const int failed =
        pthread_create(&thread->handle, NULL, thread_main, thread);
    must(pthread_sigmask(SIG_SETMASK, &before, NULL));
    return failed;
}

static int threads_spawn(ls_runtime *runtime, ls_thread **out, const char *name,
                         void (*fn)(void *arg), void *arg)
{
    struct os_thread *thread = new_thread(runtime, name, fn, arg);
    if (thread == NULL)
        return ls_error(LS_ENOMEM, "no memory for thread '%s'", name);

    must(pthread_mutex_lock(&thread->mutex));
    const int failed = create_blocked(thread);
    if (!failed)
        *out = &thread->base;
    must(pthread_mutex_unlock(&thread->mutex));
    if (failed) {
        free_thread(thread);
        return ls_error(failed == ENOMEM ? LS_ENOMEM : LS_EAGAIN,
                        "thread '%s' cannot be started: the system has no room "
                        "for one more; look at ulimit -u and ulimit -v",
                        name);
    }
    return LS_OK;
}

static int threads_join(ls_thread *base, int64_t deadline)
{
    struct os_thread *thread = (struct os_thread *)base;
    must(pthread_mutex_lock(&thread->mutex));
    int status = LS_OK;
    while (!thread->ended && status == LS_OK)
        status = wait_for(&thread->has_ended, &thread->mutex, deadline);
    const bool ended = thread->ended;
    must(pthread_mutex_unlock(&thread->mutex));
    if (!ended)
        return ls_error(LS_ETIMEDOUT, "thread '%s' still runs", thread->name);

    must(pthread_join(thread->handle, NULL));
    free_thread(thread);
    return LS_OK;
}

static bool threads_is_current(const ls_thread *thread)
{
    return (const struct os_thread *)thread == current;
}

static int threads_core_count(ls_runtime *runtime)
{
    (void)runtime;
    const long n = sysconf(_SC_NPROCESSORS_CONF);
    if (n < 1)
        return 1;
    return n < LS_CORES_MAX ? (int)n : LS_CORES_MAX;
}

static double threads_cpus(ls_runtime *runtime)
{
    (void)runtime;
    return ls_cpus_of_process();
}

static int threads_pin(ls_runtime *runtime, int core)
{
    (void)runtime;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET((size_t)core, &only);
    if (pthread_setaffinity_np(pthread_self(), sizeof only, &only) != 0)
        return ls_error(LS_ENOENT,
                        "core %d: this process may not use it; look at taskset "
                        "-cp %ld, and at the cpuset of its container",
                        core, (long)getpid());
    return LS_OK;
}

static pthread_mutex_t *os_mutex(ls_mutex *mutex)
{
    return (pthread_mutex_t *)(void *)mutex->os.bytes;
}

static pthread_cond_t *os_cond(ls_cond *cond)
{
    return (pthread_cond_t *)(void *)cond->os.bytes;
}

static int threads_mutex_init(ls_mutex *mutex)
{
    if (init_mutex(os_mutex(mutex)) != 0)
        return ls_error(LS_ENOMEM, "no memory for a lock");
    return LS_OK;
}

static void threads_mutex_fini(ls_mutex *mutex)
{
    must(pthread_mutex_destroy(os_mutex(mutex)));
}

static void threads_mutex_lock(ls_mutex *mutex)
{
    must(pthread_mutex_lock(os_mutex(mutex)));
}

static void threads_mutex_unlock(ls_mutex *mutex)
{
    must(pthread_mutex_unlock(os_mutex(mutex)));
}

static int threads_cond_init(ls_cond *cond)
{
    if (init_cond(os_cond(cond)) != 0)
        return ls_error(LS_ENOMEM, "no memory for a condition");
    return LS_OK;
}

static void threads_cond_fini(ls_cond *cond)
{
    must(pthread_cond_destroy(os_cond(cond)));
}

static void threads_cond_signal(ls_cond *cond)
{
    must(pthread_cond_signal(os_cond(cond)));
}

static void threads_cond_broadcast(ls_cond *cond)
{
    must(pthread_cond_broadcast(os_cond(cond)));
}

static int threads_cond_wait(ls_cond *cond, ls_mutex *mutex, int64_t deadline)
{
    return wait_for(os_cond(cond), os_mutex(mutex), deadline);
}

static ls_runtime threads = {
    .ops =
        &(const struct ls_runtime_ops){
            .now = threads_now,
            .wall_now = threads_wall_now,
            .glance = threads_now,
            .entropy = threads_entropy,
            .rest_until = threads_rest_until,
            .thread_spawn = threads_spawn,
            .thread_join = threads_join,
            .thread_is_current = threads_is_current,
            .core_count = threads_core_count,
            .cpus = threads_cpus,
            .thread_pin = threads_pin,
            .mutex_init = threads_mutex_init,
            .mutex_fini = threads_mutex_fini,
            .mutex_lock = threads_mutex_lock,
            .mutex_unlock = threads_mutex_unlock,
            .cond_init = threads_cond_init,
            .cond_fini = threads_cond_fini,
            .cond_signal = threads_cond_signal,
            .cond_broadcast = threads_cond_broadcast,
            .cond_wait = threads_cond_wait,
            .memory = &ls_memory_threads,
        },
};

ls_runtime *ls_runtime_threads(void)
{
    return &threads;
}

static ls_mutex process_mutex;

/* Anew in the child of a fork, where a thread that held it is no more. */
static void make_process_mutex(void)
{
    /* A pthread mutex takes no memory of its own. */
    const int status = ls_mutex_init(&process_mutex, &threads);
    assert(status == LS_OK);
    (void)status;
}

static void init_process_mutex(void)
{
    make_process_mutex();
    (void)pthread_atfork(NULL, NULL, make_process_mutex);
}

ls_mutex *ls_runtime_process_mutex(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(pthread_once(&once, init_process_mutex));
    return &process_mutex;
}
