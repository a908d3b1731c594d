#include "lockstep/runtime.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "gate.h"
#include "runtime_promises.h"
#include "sanitized.h"

static void wall_now_is_the_time_of_day(void **state)
{
    (void)state;
    const int64_t before = (int64_t)time(NULL) - 1;
    const int64_t wall = ls_wall_now(ls_runtime_threads()) / LS_NS_PER_S;
    const int64_t after = (int64_t)time(NULL) + 1;
    assert_true(before <= wall && wall <= after);
}

struct self_check {
    char name[32];
    sigset_t blocked;
};

static void check_self(void *arg)
{
    struct self_check *check = arg;
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
    ls_thread *thread;
    assert_int_equal(
        ls_thread_spawn(ls_runtime_threads(), &thread, name, check_self, check),
        LS_OK);
    join(&thread);
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

struct pinned {
    int core; /* the last one that it may use */
    char list[64];
};

static void pin_and_look(void *arg)
{
    struct pinned *pinned = arg;
    ls_runtime *const runtime = ls_runtime_threads();
    pinned->core = -1;
    for (int core = 0; core < ls_core_count(runtime); core++)
        if (ls_thread_pin(runtime, core) == LS_OK)
            pinned->core = core;
    FILE *file = fopen("/proc/thread-self/status", "r");
    assert_non_null(file);
    char line[256];
    while (fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "Cpus_allowed_list: %63s", pinned->list);
    fclose(file);
}

static void a_pinned_thread_stays_on_its_core(void **state)
{
    (void)state;
    struct pinned pinned = {.core = -1};
    ls_thread *thread;
    spawn(ls_runtime_threads(), &thread, pin_and_look, &pinned);
    join(&thread);
    char core[16];
    (void)snprintf(core, sizeof core, "%d", pinned.core);
    assert_string_equal(pinned.list, core);
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
    init_gate(&gate, ls_runtime_threads());
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

static void who_was_not_spawned_is_on_the_runtime_of_threads(void **state)
{
    (void)state;
    assert_ptr_equal(ls_runtime_current(), ls_runtime_threads());
}

#define ON_THREADS(name)                                                       \
    static void name##_on_threads(void **state)                                \
    {                                                                          \
        (void)state;                                                           \
        name(ls_runtime_threads());                                            \
    }
RUNTIME_PROMISES(ON_THREADS)
#undef ON_THREADS

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test(name##_on_threads),
        RUNTIME_PROMISES(TEST)
#undef TEST
            cmocka_unit_test(wall_now_is_the_time_of_day),
        cmocka_unit_test(a_thread_has_its_name_cut_to_15_bytes),
        cmocka_unit_test(a_thread_leaves_ending_signals_to_main),
        cmocka_unit_test(a_pinned_thread_stays_on_its_core),
        cmocka_unit_test(join_of_nothing_is_fine),
        cmocka_unit_test(spawn_says_when_the_system_has_no_room),
        cmocka_unit_test(who_was_not_spawned_is_on_the_runtime_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
