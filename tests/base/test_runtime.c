#include "lockstep/runtime.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "runtime_promises.h"
#include "runtime_threads_cpus.h"
#include "sanitized.h"
#include "test.h"

TEST(wall_now_is_the_time_of_day)
{
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
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, name, check_self,
                              check));
    join(&thread);
}

TEST(a_thread_has_its_name_cut_to_15_bytes)
{
    struct self_check check;
    run_self_check(&check, "short");
    assert_string_equal(check.name, "short\n");
    run_self_check(&check, "0123456789abcdefgh");
    assert_string_equal(check.name, "0123456789abcde\n");
}

TEST(a_thread_leaves_ending_signals_to_main)
{
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

TEST(a_pinned_thread_stays_on_its_core)
{
    struct pinned pinned = {.core = -1};
    ls_thread *thread;
    spawn(ls_runtime_threads(), &thread, pin_and_look, &pinned);
    join(&thread);
    char core[16];
    (void)snprintf(core, sizeof core, "%d", pinned.core);
    assert_string_equal(pinned.list, core);
}

/* Files as the kernel has them: a group of its own in one that is limited. */
static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

TEST(a_control_group_limits_the_processors)
{
    static const struct {
        const char *outer, *inner;
        double cpus;
    } cases[] = {
        {"max 100000\n", "max 100000\n", INFINITY},
        {"max 100000\n", "50000 100000\n", 0.5},
        {"150000 100000\n", "400000 100000\n", 1.5},
        {"nonsense\n", "", INFINITY},
    };
    char folder[] = "/tmp/lockstep-cpus-XXXXXX", inner[64], member[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(inner, sizeof inner, "%s/a", folder);
    (void)snprintf(member, sizeof member, "%s/member", folder);
    assert_int_equal(mkdir(inner, 0700), 0);
    write_file(folder, "member", "4:memory:/m\n0::/a\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(folder, "cpu.max", cases[i].outer);
        write_file(inner, "cpu.max", cases[i].inner);
        assert_true(ls_cpus_of_cgroup(member, folder) == cases[i].cpus);
    }
    write_file(folder, "cpu.max", "25000 100000\n");
    write_file(folder, "member", "0::/\n");
    assert_true(ls_cpus_of_cgroup(member, folder) == 0.25);
    assert_true(isinf(ls_cpus_of_cgroup("/nowhere", folder)));
    remove_file(inner, "cpu.max");
    assert_int_equal(rmdir(inner), 0);
    remove_file(folder, "cpu.max");
    remove_file(folder, "member");
    assert_int_equal(rmdir(folder), 0);
}

/* On one core there is one. */
static void pinned_cpus(void *arg)
{
    ls_runtime *const runtime = ls_runtime_threads();
    double *const cpus = arg;
    int core = 0;
    while (ls_thread_pin(runtime, core) != LS_OK)
        core++;
    *cpus = ls_cpus(runtime);
}

TEST(the_processors_are_those_of_the_affinity)
{
    double cpus = 0.0;
    ls_thread *thread;
    assert_true(ls_cpus(ls_runtime_threads()) > 0.0);
    spawn(ls_runtime_threads(), &thread, pinned_cpus, &cpus);
    join(&thread);
    assert_true(cpus > 0.0 && cpus <= 1.0);
}

TEST(join_of_nothing_is_fine)
{
    ls_thread *thread = NULL;
    assert_ok(ls_thread_join(&thread, LS_NOW));
    assert_ok(ls_thread_join(NULL, LS_NOW));
}

/* Without room for stacks, some threads still start on those that the C library
 * has kept, but not many. */
TEST(spawn_says_when_the_system_has_no_room)
{
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
    assert_error_has("'one more'");
    assert_null(threads[n - 1]);
    open_gate(&gate);
    for (int i = 0; i < n - 1; i++)
        join(&threads[i]);
    fini_gate(&gate);
}

TEST(who_was_not_spawned_is_on_the_runtime_of_threads)
{
    assert_ptr_equal(ls_runtime_current(), ls_runtime_threads());
}

#define ON_THREADS(name)                                                       \
    TEST(name##_on_threads)                                                    \
    {                                                                          \
        name(ls_runtime_threads());                                            \
    }
RUNTIME_PROMISES(ON_THREADS)
#undef ON_THREADS
