/* Signals as calls on a thread. SIGUSR1 and SIGUSR2 stand for those that end a
 * program, so that a mistake here does not end whoever runs the tests. */
#define _GNU_SOURCE /* gettid */
#include "lockstep/signal.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/runtime.h"
#include "sanitized.h"
#include "test.h"

extern char **environ;

/* Counts what a watch was called with. */
struct ear {
    ls_mutex mutex;
    ls_cond heard;
    int calls;
    int last;
};

static void ear_init(struct ear *ear)
{
    *ear = (struct ear){.calls = 0};
    assert_ok(ls_mutex_init(&ear->mutex, ls_runtime_threads()));
    assert_ok(ls_cond_init(&ear->heard, ls_runtime_threads()));
}

static void ear_fini(struct ear *ear)
{
    ls_cond_fini(&ear->heard);
    ls_mutex_fini(&ear->mutex);
}

static void hear(void *self, int number)
{
    struct ear *ear = self;
    ls_mutex_lock(&ear->mutex);
    ear->calls++;
    ear->last = number;
    ls_cond_broadcast(&ear->heard);
    ls_mutex_unlock(&ear->mutex);
}

static int ear_wait(struct ear *ear, int calls)
{
    ls_mutex_lock(&ear->mutex);
    while (ear->calls < calls)
        if (ls_cond_wait(&ear->heard, &ear->mutex, LS_FOREVER) != LS_OK)
            break;
    const int last = ear->last;
    ls_mutex_unlock(&ear->mutex);
    return last;
}

static bool is_blocked(int number)
{
    sigset_t now;
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, number) == 1;
}

TEST(a_signal_becomes_a_call)
{
    struct ear ear;
    ear_init(&ear);
    ls_signals *watch = NULL;
    const int wanted[] = {SIGUSR1, SIGUSR2};
    assert_ok(ls_signal_watch(&watch, wanted, 2, hear, &ear));
    kill(getpid(), SIGUSR2);
    assert_int_equal(ear_wait(&ear, 1), SIGUSR2);
    ls_signal_unwatch(&watch);
    assert_null(watch);
    ear_fini(&ear);
}

TEST(every_watch_of_a_signal_is_called)
{
    struct ear a, b;
    ear_init(&a);
    ear_init(&b);
    ls_signals *first = NULL, *second = NULL;
    const int both[] = {SIGUSR1, SIGUSR2};
    assert_ok(ls_signal_watch(&first, both, 1, hear, &a));
    assert_ok(ls_signal_watch(&second, both, 2, hear, &b));
    kill(getpid(), SIGUSR1);
    assert_int_equal(ear_wait(&a, 1), SIGUSR1);
    assert_int_equal(ear_wait(&b, 1), SIGUSR1);
    ls_signal_unwatch(&second);
    ls_signal_unwatch(&first);
    ear_fini(&a);
    ear_fini(&b);
}

TEST(a_watch_goes_on_when_another_ends)
{
    struct ear a, b;
    ear_init(&a);
    ear_init(&b);
    ls_signals *first = NULL, *second = NULL;
    const int both[] = {SIGUSR1, SIGUSR2};
    assert_ok(ls_signal_watch(&first, both, 2, hear, &a));
    assert_ok(ls_signal_watch(&second, both, 1, hear, &b));
    ls_signal_unwatch(&first);
    assert_true(is_blocked(SIGUSR1));
    assert_false(is_blocked(SIGUSR2));
    kill(getpid(), SIGUSR1);
    assert_int_equal(ear_wait(&b, 1), SIGUSR1);
    ls_signal_unwatch(&second);
    assert_int_equal(a.calls, 0);
    ear_fini(&a);
    ear_fini(&b);
}

TEST(unwatch_restores_the_mask)
{
    struct ear ear;
    ear_init(&ear);
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    assert_int_equal(sigprocmask(SIG_BLOCK, &one, &before), 0);

    ls_signals *watch = NULL;
    const int wanted[] = {SIGUSR1, SIGUSR2};
    assert_ok(ls_signal_watch(&watch, wanted, 2, hear, &ear));
    assert_true(is_blocked(SIGUSR1));
    ls_signal_unwatch(&watch);
    assert_false(is_blocked(SIGUSR1));
    assert_true(is_blocked(SIGUSR2));

    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    ear_fini(&ear);
}

TEST(a_new_watch_begins_anew)
{
    struct ear ear;
    ear_init(&ear);
    const int wanted[] = {SIGUSR1};
    for (int round = 1; round <= 3; round++) {
        ls_signals *watch = NULL;
        assert_ok(ls_signal_watch(&watch, wanted, 1, hear, &ear));
        kill(getpid(), SIGUSR1);
        ear_wait(&ear, round);
        ls_signal_unwatch(&watch);
    }
    assert_int_equal(ear.calls, 3);
    ear_fini(&ear);
}

/* However soon they come: the second of a watch that ends something would kill
 * the process, and one at once would be passed over. */
TEST(signals_that_ask_for_something_are_called_for_each)
{
    struct ear ear;
    ear_init(&ear);
    ls_signals *watch = NULL;
    const int wanted[] = {SIGUSR1, SIGUSR2};
    assert_ok(ls_signal_watch_each(&watch, wanted, 2, hear, &ear));
    for (int i = 1; i <= 6; i++) {
        kill(getpid(), wanted[i / 2 % 2]);
        assert_int_equal(ear_wait(&ear, i), wanted[i / 2 % 2]);
    }
    ls_signal_unwatch(&watch);
    assert_false(is_blocked(SIGUSR1));
    ear_fini(&ear);
}

/* Returns 0 if the child hears by its own watch alone. */
static int hear_in_a_child(ls_signals **parents, const struct ear *parents_ear)
{
    struct ear ear;
    ls_signals *const same = *parents;
    ls_signals *own = NULL;
    const int wanted[] = {SIGUSR1};
    alarm(10);
    ear_init(&ear);
    ls_signal_unwatch(parents);
    if (*parents != same || !is_blocked(SIGUSR1) ||
        ls_signal_watch(&own, wanted, 1, hear, &ear) != LS_OK)
        return 1;
    kill(getpid(), SIGUSR1);
    if (ear_wait(&ear, 1) != SIGUSR1)
        return 2;
    ls_signal_unwatch(&own);
    return parents_ear->calls == 0 ? 0 : 3;
}

TEST(a_watch_is_not_inherited)
{
    if (SANITIZED)
        skip(); /* they start no threads in such a child */
    struct ear ear;
    ear_init(&ear);
    ls_signals *watch = NULL;
    const int wanted[] = {SIGUSR1};
    int how = -1;
    assert_ok(ls_signal_watch(&watch, wanted, 1, hear, &ear));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(hear_in_a_child(&watch, &ear));
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    kill(getpid(), SIGUSR1);
    assert_int_equal(ear_wait(&ear, 1), SIGUSR1);
    ls_signal_unwatch(&watch);
    ear_fini(&ear);
}

/* One who takes its watch away while that is called. */
struct leaver {
    ls_signals *watch;
    ls_mutex held; /* by who waits to fork: the call does not return */
    atomic_bool called;
    atomic_int thread;
};

static void be_held(void *self, int number)
{
    struct leaver *leaver = self;
    (void)number;
    atomic_store(&leaver->called, true);
    ls_mutex_lock(&leaver->held);
    ls_mutex_unlock(&leaver->held);
}

static void leave(void *self)
{
    struct leaver *leaver = self;
    atomic_store(&leaver->thread, gettid());
    ls_signal_unwatch(&leaver->watch);
}

static char state_of(int thread)
{
    char path[64], state = '?';
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    (void)fclose(file);
    return state;
}

/* What it waits for then is the end of the call. */
static void await_leaver(const struct leaver *leaver)
{
    while (atomic_load(&leaver->thread) == 0 ||
           state_of(atomic_load(&leaver->thread)) != 'S')
        (void)sched_yield();
}

static int watch_in_a_child(void)
{
    struct ear ear;
    ls_signals *own = NULL;
    const int wanted[] = {SIGUSR1};
    alarm(10);
    ear_init(&ear);
    if (ls_signal_watch(&own, wanted, 1, hear, &ear) != LS_OK)
        return 1;
    ls_signal_unwatch(&own);
    return 0;
}

TEST(a_child_can_watch_whatever_its_parent_was_at)
{
    if (SANITIZED)
        skip(); /* they start no threads in such a child */
    struct leaver leaver = {.watch = NULL};
    ls_thread *thread = NULL;
    const int wanted[] = {SIGUSR2};
    int how = -1;
    assert_ok(ls_mutex_init(&leaver.held, ls_runtime_threads()));
    assert_ok(ls_signal_watch(&leaver.watch, wanted, 1, be_held, &leaver));
    ls_mutex_lock(&leaver.held);
    kill(getpid(), SIGUSR2);
    while (!atomic_load(&leaver.called))
        (void)sched_yield();
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "leaver", leave,
                              &leaver));
    await_leaver(&leaver);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(watch_in_a_child());
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    ls_mutex_unlock(&leaver.held);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_mutex_fini(&leaver.held);
}

TEST(unwatch_takes_nothing)
{
    ls_signals *none = NULL;
    ls_signal_unwatch(NULL);
    ls_signal_unwatch(&none);
}

TEST(watch_refuses_what_cannot_be_waited_for)
{
    const int refused[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                           SIGILL,  0,       -1,      65,     4000};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ls_signals *watch = (ls_signals *)(void *)&watch;
        const int wanted[] = {SIGUSR1, refused[i]};
        assert_fails(ls_signal_watch(&watch, wanted, 2, hear, NULL), LS_EINVAL);
        assert_null(watch);
        assert_false(is_blocked(SIGUSR1));
    }
    ls_signals *watch = NULL;
    assert_fails(ls_signal_watch(&watch, NULL, 0, hear, NULL), LS_EINVAL);
}

/* What the child of the next test runs: never returns. */
static int die_of_the_second(void)
{
    struct ear ear;
    ear_init(&ear);
    ls_signals *watch = NULL;
    const int wanted[] = {SIGUSR1, SIGUSR2};
    if (ls_signal_watch(&watch, wanted, 2, hear, &ear) != LS_OK)
        return 1;
    kill(getpid(), SIGUSR1);
    ear_wait(&ear, 1);
    kill(getpid(), SIGUSR2);
    ear_wait(&ear, 2);
    return 2;
}

static void end_as_told(void *self)
{
    _exit(*(const int *)self);
}

/* What the child of the next test runs: what is to be called then ends it. */
static int call_before_the_second(void)
{
    struct ear ear;
    int seven = 7, eight = 8;
    ear_init(&ear);
    ls_signals *watch = NULL;
    const int wanted[] = {SIGUSR1, SIGUSR2};
    if (ls_signal_watch(&watch, wanted, 2, hear, &ear) != LS_OK)
        return 1;
    ls_signal_on_second(watch, end_as_told, &eight);
    kill(getpid(), SIGUSR1);
    ear_wait(&ear, 1);
    ls_signal_on_second(watch, end_as_told, &seven);
    kill(getpid(), SIGUSR2);
    ear_wait(&ear, 2);
    return 2;
}

static int run_child(char *what)
{
    char *const arguments[] = {"/proc/self/exe", what, NULL};
    pid_t child;
    int how;
    assert_int_equal(
        posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    return how;
}

TEST(the_second_signal_ends_the_process)
{
    const int how = run_child("die");
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGUSR2);
}

TEST(before_the_second_signal_ends_the_process_a_call_is_made)
{
    const int how = run_child("call");
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 7);
}

/* What the child of the next test runs. Real-time signals queue: both are there
 * at once. The other one is heard after them. */
static int hear_twice(void)
{
    struct ear ear, after;
    ear_init(&ear);
    ear_init(&after);
    ls_signals *watch = NULL, *other = NULL;
    const int wanted = SIGRTMIN, end = SIGRTMIN + 1;
    if (ls_signal_watch(&watch, &wanted, 1, hear, &ear) != LS_OK ||
        ls_signal_watch_each(&other, &end, 1, hear, &after) != LS_OK)
        return 1;
    kill(getpid(), wanted);
    kill(getpid(), wanted);
    kill(getpid(), end);
    ear_wait(&after, 1);
    return ear.calls == 1 ? 0 : 2;
}

/* A machine that stands still just between them is no reason to fail. */
TEST(the_same_signal_sent_twice_at_once_is_one)
{
    int how = -1;
    for (int i = 0; i < 5 && how != 0; i++)
        how = run_child("twice");
    assert_int_equal(how, 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "die") == 0)
        return die_of_the_second();
    if (argc == 2 && strcmp(argv[1], "call") == 0)
        return call_before_the_second();
    if (argc == 2 && strcmp(argv[1], "twice") == 0)
        return hear_twice();
    return tests_run();
}
