/* Waits for words of shared memory, which are futexes, and for bells. Design
 * notes:
 *
 * - The futexes are not private: they are found by the pages that they lie on,
 *   so a reader may wait for, and wake, words that it can only read.
 * - One system call waits for all words, and compares each with the value that
 *   its waiter saw: what changes between that look and the call is not missed.
 */
#define _GNU_SOURCE /* syscall */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "memory_ops.h"
#include "runtime_threads_offer.h"

static long waitv(const struct futex_waitv *words, size_t n,
                  const struct timespec *until)
{
    return syscall(SYS_futex_waitv, words, n, 0, until, CLOCK_MONOTONIC);
}

static int threads_available(void)
{
    static ls_word word; /* 0: a wait for 1 is over at once */
    const struct futex_waitv probe = {
        .val = 1, .uaddr = (uintptr_t)&word, .flags = FUTEX_32};
    if (waitv(&probe, 1, NULL) == 0 || errno == EAGAIN)
        return LS_OK;
    return ls_error(LS_EUNREACHABLE,
                    "this system lets no thread wait for several words of "
                    "memory: futex_waitv: %s; it takes Linux 5.16, and a "
                    "container that allows it",
                    strerror(errno));
}

static int threads_words_wait(ls_runtime *runtime,
                              const struct ls_awaited *words, size_t n,
                              int64_t deadline)
{
    (void)runtime;
    struct futex_waitv all[LS_WORDS_MAX];
    for (size_t i = 0; i < n; i++)
        all[i] = (struct futex_waitv){.val = words[i].value,
                                      .uaddr = (uintptr_t)words[i].word,
                                      .flags = FUTEX_32};
    if (deadline < 0)
        return LS_ETIMEDOUT;
    const struct timespec until = {.tv_sec = (time_t)(deadline / LS_NS_PER_S),
                                   .tv_nsec = (long)(deadline % LS_NS_PER_S)};
    if (waitv(all, n, deadline == LS_FOREVER ? NULL : &until) >= 0)
        return LS_OK;
    assert(errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT ||
           errno == ENOMEM);
    return errno == ETIMEDOUT ? LS_ETIMEDOUT : LS_OK;
}

static void threads_word_wake(ls_runtime *runtime, const ls_word *word)
{
    (void)runtime;
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Each ring is an edge: nobody need read what was rung, so many may hear it. */
static int listen_to(const ls_memory *memory, int bell)
{
    struct epoll_event rung = {.events = EPOLLIN | EPOLLET};
    return epoll_ctl(memory->ear, EPOLL_CTL_ADD, bell, &rung) == 0
               ? LS_OK
               : ls_error_from(errno, "the bell of a memory cannot be heard");
}

static int threads_add_bell(ls_memory *memory)
{
    memory->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    memory->ear = epoll_create1(EPOLL_CLOEXEC);
    if (memory->bell < 0 || memory->ear < 0)
        return ls_error(LS_ELIMIT, "no more descriptors; raise `ulimit -n`");
    return listen_to(memory, memory->bell);
}

static int threads_hear_too(ls_memory *memory, const ls_memory *other)
{
    if (other->bell < 0)
        return ls_error(LS_EPROTO, "a memory that is to have a bell has none");
    return listen_to(memory, other->bell);
}

static int threads_hear(ls_memory *memory, int64_t deadline)
{
    struct epoll_event rung[2];
    int64_t ms = -1;
    if (deadline != LS_FOREVER) {
        const int64_t now = ls_now(memory->runtime);
        ms = deadline > now ? (deadline - now) / LS_NS_PER_MS + 1 : 0;
        if (ms > INT_MAX)
            ms = -1; /* for weeks: as good as for ever */
    }
    return epoll_wait(memory->ear, rung, 2, (int)ms) == 0 ? LS_ETIMEDOUT
                                                          : LS_OK;
}

static void threads_yield(ls_runtime *runtime)
{
    (void)runtime;
    (void)sched_yield();
}

const struct ls_memory_ops ls_memory_threads = {
    .available = threads_available,
    .offer_begin = ls_threads_offer_begin,
    .offer_end = ls_threads_offer_end,
    .folder = ls_threads_folder,
    .host = ls_threads_host,
    .take = ls_threads_take,
    .words_wait = threads_words_wait,
    .word_wake = threads_word_wake,
    .add_bell = threads_add_bell,
    .hear_too = threads_hear_too,
    .hear = threads_hear,
    .yield = threads_yield,
};
