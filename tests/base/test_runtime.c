#include "lockstep/runtime.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A door that threads wait at until it is opened. */
struct gate {
    ls_mutex mutex;
    ls_cond changed;
    int waiting;
    bool open;
};

static void init_gate(struct gate *gate)
{
    memset(gate, 0, sizeof *gate);
    assert_int_equal(ls_mutex_init(&gate->mutex, ls_runtime_threads()), LS_OK);
    assert_int_equal(ls_cond_init(&gate->changed, ls_runtime_threads()), LS_OK);
}

static void fini_gate(struct gate *gate)
{
    ls_cond_fini(&gate->changed);
    ls_mutex_fini(&gate->mutex);
}

/* Under the gate's mutex. */
static void await_change(struct gate *gate)
{
    const int status = ls_cond_wait(&gate->changed, &gate->mutex, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
}

static void pass_gate(void *arg)
{
    struct gate *gate = arg;
    ls_mutex_lock(&gate->mutex);
    gate->waiting++;
    ls_cond_broadcast(&gate->changed);
    while (!gate->open)
        await_change(gate);
    gate->waiting--;
    ls_mutex_unlock(&gate->mutex);
}

static void await_waiting(struct gate *gate, int n)
{
    ls_mutex_lock(&gate->mutex);
    while (gate->waiting < n)
        await_change(gate);
    ls_mutex_unlock(&gate->mutex);
}

static void open_gate(struct gate *gate)
{
    ls_mutex_lock(&gate->mutex);
    gate->open = true;
    ls_cond_broadcast(&gate->changed);
    ls_mutex_unlock(&gate->mutex);
}

static void spawn(ls_thread **out, void (*fn)(void *arg), void *arg)
{
    assert_int_equal(
        ls_thread_spawn(ls_runtime_threads(), out, "test", fn, arg), LS_OK);
}

static void join(ls_thread **thread)
{
    assert_int_equal(ls_thread_join(thread, LS_FOREVER), LS_OK);
    assert_null(*thread);
}

static void now_never_goes_back(void **state)
{
    (void)state;
    int64_t before = ls_now(ls_runtime_threads());
    for (int i = 0; i < 1000; i++) {
        const int64_t now = ls_now(ls_runtime_threads());
        assert_true(now >= before);
        before = now;
    }
}

static void wall_now_is_the_time_of_day(void **state)
{
    (void)state;
    const int64_t before = (int64_t)time(NULL) - 1;
    const int64_t wall = ls_wall_now(ls_runtime_threads()) / LS_NS_PER_S;
    const int64_t after = (int64_t)time(NULL) + 1;
    assert_true(before <= wall && wall <= after);
}

static void deadline_turns_a_wait_into_a_point_in_time(void **state)
{
    (void)state;
    ls_runtime *runtime = ls_runtime_threads();
    assert_true(ls_deadline(runtime, 0) == LS_NOW);
    assert_true(ls_deadline(runtime, -1) == LS_FOREVER);
    assert_true(ls_deadline(runtime, INT32_MIN) == LS_FOREVER);
    const int64_t before = ls_now(runtime);
    const int64_t deadline = ls_deadline(runtime, INT32_MAX);
    const int64_t after = ls_now(runtime);
    assert_true(deadline >= before + INT32_MAX * LS_NS_PER_MS);
    assert_true(deadline <= after + INT32_MAX * LS_NS_PER_MS);
}

static void entropy_does_not_repeat(void **state)
{
    (void)state;
    uint64_t seen[64];
    for (size_t i = 0; i < 64; i++) {
        seen[i] = ls_entropy(ls_runtime_threads());
        for (size_t j = 0; j < i; j++)
            assert_true(seen[j] != seen[i]);
    }
}

static void rest_ends_at_its_deadline(void **state)
{
    (void)state;
    ls_runtime *runtime = ls_runtime_threads();
    const int64_t deadline = ls_deadline(runtime, 1);
    ls_rest_until(runtime, deadline);
    assert_true(ls_now(runtime) >= deadline);
    ls_rest_until(runtime, deadline);
    ls_rest_until(runtime, LS_NOW);
}

struct self_check {
    ls_thread *thread;
    bool had_thread;
    bool was_current;
    char name[32];
    sigset_t blocked;
};

static void check_self(void *arg)
{
    struct self_check *check = arg;
    check->had_thread = check->thread != NULL;
    check->was_current = ls_thread_is_current(check->thread);
    FILE *file = fopen("/proc/thread-self/comm", "r");
    if (file != NULL) {
        if (fgets(check->name, sizeof check->name, file) == NULL)
            check->name[0] = '\0';
        fclose(file);
    }
    sigprocmask(SIG_BLOCK, NULL, &check->blocked);
}

static void run_self_check(struct self_check *check, const char *name)
{
    memset(check, 0, sizeof *check);
    assert_int_equal(ls_thread_spawn(ls_runtime_threads(), &check->thread, name,
                                     check_self, check),
                     LS_OK);
    join(&check->thread);
}

static void a_thread_knows_itself_from_its_start(void **state)
{
    (void)state;
    struct self_check check;
    run_self_check(&check, "self");
    assert_true(check.had_thread);
    assert_true(check.was_current);
}

static void a_thread_is_current_nowhere_else(void **state)
{
    (void)state;
    struct gate gate;
    init_gate(&gate);
    ls_thread *thread;
    spawn(&thread, pass_gate, &gate);
    assert_false(ls_thread_is_current(thread));
    assert_false(ls_thread_is_current(NULL));
    open_gate(&gate);
    join(&thread);
    fini_gate(&gate);
}

static void a_thread_has_its_name_cut_to_15_bytes(void **state)
{
    (void)state;
    struct self_check check;
    run_self_check(&check, "short");
    assert_string_equal(check.name, "short\n");
    run_self_check(&check, "0123456789abcdefgh");
    assert_string_equal(check.name, "0123456789abcde\n");
}

static void a_thread_leaves_ending_signals_to_main(void **state)
{
    (void)state;
    sigset_t before, after;
    sigprocmask(SIG_BLOCK, NULL, &before);
    struct self_check check;
    run_self_check(&check, "mask");
    sigprocmask(SIG_BLOCK, NULL, &after);
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        assert_int_equal(sigismember(&check.blocked, ending[i]), 1);
        assert_int_equal(sigismember(&before, ending[i]), 0);
        assert_int_equal(sigismember(&after, ending[i]), 0);
    }
    assert_int_equal(sigismember(&check.blocked, SIGUSR1), 0);
}

static void join_gives_up_at_its_deadline_and_may_be_tried_again(void **state)
{
    (void)state;
    struct gate gate;
    init_gate(&gate);
    ls_thread *thread;
    spawn(&thread, pass_gate, &gate);
    ls_thread *const same = thread;
    assert_int_equal(ls_thread_join(&thread, LS_NOW), LS_ETIMEDOUT);
    assert_non_null(strstr(ls_error_text(), "'test'"));
    const int64_t deadline = ls_deadline(ls_runtime_threads(), 1);
    assert_int_equal(ls_thread_join(&thread, deadline), LS_ETIMEDOUT);
    assert_true(ls_now(ls_runtime_threads()) >= deadline);
    assert_ptr_equal(thread, same);
    open_gate(&gate);
    assert_int_equal(
        ls_thread_join(&thread, ls_deadline(ls_runtime_threads(), 60000)),
        LS_OK);
    assert_null(thread);
    fini_gate(&gate);
}

static void join_of_nothing_is_fine(void **state)
{
    (void)state;
    ls_thread *thread = NULL;
    assert_int_equal(ls_thread_join(&thread, LS_NOW), LS_OK);
    assert_int_equal(ls_thread_join(NULL, LS_NOW), LS_OK);
}

/* Without room for stacks, some threads still start on those that the C library
 * has kept, but not many. */
static void spawn_says_when_the_system_has_no_room(void **state)
{
    (void)state;
    if (SANITIZED)
        skip(); /* they need the address space themselves */
    enum { MANY = 256 };
    static ls_thread *threads[MANY];
    struct gate gate;
    init_gate(&gate);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    int n = 0, status = LS_OK;
    for (; n < MANY && status == LS_OK; n++)
        status = ls_thread_spawn(ls_runtime_threads(), &threads[n], "one more",
                                 pass_gate, &gate);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(status, LS_EAGAIN);
    assert_non_null(strstr(ls_error_text(), "'one more'"));
    assert_null(threads[n - 1]);
    open_gate(&gate);
    for (int i = 0; i < n - 1; i++)
        join(&threads[i]);
    fini_gate(&gate);
}

struct counter {
    ls_mutex mutex;
    int count;
};

static void count_up(void *arg)
{
    struct counter *counter = arg;
    for (int i = 0; i < 10000; i++) {
        ls_mutex_lock(&counter->mutex);
        counter->count++;
        ls_mutex_unlock(&counter->mutex);
    }
}

static void a_mutex_lets_one_in_at_a_time(void **state)
{
    (void)state;
    struct counter counter = {.count = 0};
    assert_int_equal(ls_mutex_init(&counter.mutex, ls_runtime_threads()),
                     LS_OK);
    ls_thread *threads[4];
    for (int i = 0; i < 4; i++)
        spawn(&threads[i], count_up, &counter);
    for (int i = 0; i < 4; i++)
        join(&threads[i]);
    assert_int_equal(counter.count, 40000);
    ls_mutex_fini(&counter.mutex);
}

static void fini_may_come_again_or_before_init(void **state)
{
    (void)state;
    ls_mutex mutex = {.runtime = NULL};
    ls_cond cond = {.runtime = NULL};
    ls_mutex_fini(&mutex);
    ls_cond_fini(&cond);
    assert_int_equal(ls_mutex_init(&mutex, ls_runtime_threads()), LS_OK);
    assert_int_equal(ls_cond_init(&cond, ls_runtime_threads()), LS_OK);
    ls_mutex_fini(&mutex);
    ls_mutex_fini(&mutex);
    ls_cond_fini(&cond);
    ls_cond_fini(&cond);
    ls_mutex_fini(NULL);
    ls_cond_fini(NULL);
}

static void broadcast_wakes_all_who_wait(void **state)
{
    (void)state;
    struct gate gate;
    init_gate(&gate);
    ls_thread *threads[3];
    for (int i = 0; i < 3; i++)
        spawn(&threads[i], pass_gate, &gate);
    await_waiting(&gate, 3);
    open_gate(&gate);
    for (int i = 0; i < 3; i++)
        join(&threads[i]);
    assert_int_equal(gate.waiting, 0);
    fini_gate(&gate);
}

static void signal_wakes_one_who_waits(void **state)
{
    (void)state;
    struct gate gate;
    init_gate(&gate);
    ls_thread *thread;
    spawn(&thread, pass_gate, &gate);
    await_waiting(&gate, 1);
    ls_mutex_lock(&gate.mutex);
    gate.open = true;
    ls_cond_signal(&gate.changed);
    ls_mutex_unlock(&gate.mutex);
    join(&thread);
    fini_gate(&gate);
}

static void a_wait_ends_at_its_deadline_with_the_mutex_held(void **state)
{
    (void)state;
    ls_runtime *runtime = ls_runtime_threads();
    struct gate gate;
    init_gate(&gate);
    (void)ls_error(LS_EIO, "from before");
    ls_mutex_lock(&gate.mutex);
    assert_int_equal(ls_cond_wait(&gate.changed, &gate.mutex, LS_NOW),
                     LS_ETIMEDOUT);
    assert_int_equal(
        ls_cond_wait(&gate.changed, &gate.mutex, ls_now(runtime) - 1),
        LS_ETIMEDOUT);
    const int64_t deadline = ls_deadline(runtime, 1);
    int status = LS_OK;
    while (status == LS_OK)
        status = ls_cond_wait(&gate.changed, &gate.mutex, deadline);
    assert_int_equal(status, LS_ETIMEDOUT);
    assert_true(ls_now(runtime) >= deadline);
    assert_string_equal(ls_error_text(), "from before");

    ls_thread *thread;
    spawn(&thread, pass_gate, &gate);
    assert_int_equal(gate.waiting, 0); /* it cannot get in */
    gate.open = true;
    ls_mutex_unlock(&gate.mutex);
    join(&thread);
    fini_gate(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(now_never_goes_back),
        cmocka_unit_test(wall_now_is_the_time_of_day),
        cmocka_unit_test(deadline_turns_a_wait_into_a_point_in_time),
        cmocka_unit_test(entropy_does_not_repeat),
        cmocka_unit_test(rest_ends_at_its_deadline),
        cmocka_unit_test(a_thread_knows_itself_from_its_start),
        cmocka_unit_test(a_thread_is_current_nowhere_else),
        cmocka_unit_test(a_thread_has_its_name_cut_to_15_bytes),
        cmocka_unit_test(a_thread_leaves_ending_signals_to_main),
        cmocka_unit_test(join_gives_up_at_its_deadline_and_may_be_tried_again),
        cmocka_unit_test(join_of_nothing_is_fine),
        cmocka_unit_test(spawn_says_when_the_system_has_no_room),
        cmocka_unit_test(a_mutex_lets_one_in_at_a_time),
        cmocka_unit_test(fini_may_come_again_or_before_init),
        cmocka_unit_test(broadcast_wakes_all_who_wait),
        cmocka_unit_test(signal_wakes_one_who_waits),
        cmocka_unit_test(a_wait_ends_at_its_deadline_with_the_mutex_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
