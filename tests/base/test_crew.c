/* What lockstep/crew.h promises. */
#include "lockstep/crew.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "gate.h"
#include "huge_allocations.h"
#include "sanitized.h"
#include "simulated.h"
#include "test.h"

enum { N = 4, CALLS = 50 };

struct called {
    ls_crew *crew;
    struct gate gate; /* of who holds */
    int n[N];
    bool moved[N]; /* called on the thread of another */
    char name[N][16];
};

/* Whose calls this thread has had: a member, from 1. */
static _Thread_local size_t calls_of;

static void note_call(void *self, size_t member)
{
    struct called *called = self;
    if (called->n[member]++ == 0 && calls_of == 0) {
        calls_of = member + 1;
        (void)prctl(PR_GET_NAME, called->name[member]);
    }
    called->moved[member] = called->moved[member] || calls_of != member + 1;
}

static void create(struct called *called, size_t n, ls_crew_fn *fn)
{
    memset(called, 0, sizeof *called);
    init_gate(&called->gate, ls_runtime_threads());
    assert_ok(ls_crew_create(&called->crew, ls_runtime_threads(), n, "crew", fn,
                             called));
}

static void destroy(struct called *called)
{
    ls_crew_destroy(&called->crew);
    assert_null(called->crew);
    fini_gate(&called->gate);
}

TEST(all_are_called_each_on_a_thread_of_its_own)
{
    struct called called;
    calls_of = 0;
    create(&called, N, note_call);
    for (int i = 0; i < CALLS; i++) {
        ls_crew_run(called.crew);
        for (size_t k = 0; k < N; k++)
            assert_int_equal(called.n[k], i + 1); /* when it returns */
    }
    for (size_t k = 0; k < N; k++)
        assert_false(called.moved[k]);
    assert_int_equal(calls_of, 1); /* here */
    for (size_t k = 1; k < N; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "crew-%zu", k);
        assert_string_equal(called.name[k], name);
    }
    destroy(&called);
}

TEST(one_alone_runs_on_the_thread_of_the_caller)
{
    struct called called;
    calls_of = 0;
    create(&called, 1, note_call);
    ls_crew_run(called.crew);
    assert_int_equal(called.n[0], 1);
    assert_int_equal(calls_of, 1);
    assert_int_equal(ls_crew_busy(called.crew), 0);
    assert_ok(ls_crew_join(called.crew, LS_NOW)); /* there is none */
    destroy(&called);
}

static void hold_the_other(void *self, size_t member)
{
    struct called *called = self;
    if (member == 1)
        pass_gate(&called->gate);
}

static void run_it(void *arg)
{
    struct called *called = arg;
    ls_crew_run(called->crew);
}

TEST(who_is_in_a_call_is_told_and_waited_for_until_a_deadline)
{
    struct called called;
    ls_thread *caller = NULL;
    create(&called, 2, hold_the_other);
    assert_int_equal(ls_crew_busy(called.crew), 0);
    spawn(ls_runtime_threads(), &caller, run_it, &called);
    await_waiting(&called.gate, 1);
    assert_int_equal(ls_crew_busy(called.crew), 1);
    ls_crew_dismiss(called.crew);
    assert_int_equal(ls_crew_join(called.crew, LS_NOW), LS_ETIMEDOUT);
    assert_int_equal(ls_crew_busy(called.crew), 1);
    open_gate(&called.gate);
    join(&caller);
    ls_crew_dismiss(called.crew); /* once more */
    assert_ok(ls_crew_join(called.crew, LS_FOREVER));
    assert_ok(ls_crew_join(called.crew, LS_NOW));
    destroy(&called);
}

static void hold_the_last(void *self, size_t member)
{
    struct called *called = self;
    if (member == 2)
        pass_gate(&called->gate);
}

/* A join gives up when one of the two has ended. */
static void destroy_half(void *arg)
{
    bool *const ended = arg;
    char lines[16384];
    struct called called = {.crew = NULL};
    ls_thread *caller = NULL;
    ls_runtime *const runtime = ls_runtime_current();
    init_gate(&called.gate, runtime);
    assert_ok(ls_crew_create(&called.crew, runtime, 3, "crew", hold_the_last,
                             &called));
    spawn(runtime, &caller, run_it, &called);
    await_waiting(&called.gate, 1);
    ls_crew_dismiss(called.crew);
    assert_int_equal(ls_crew_join(called.crew, ls_now(runtime) + LS_NS_PER_S),
                     LS_ETIMEDOUT);
    open_gate(&called.gate);
    join(&caller);
    ls_crew_destroy(&called.crew);
    read_lines(ls_simulation_of(runtime), lines, sizeof lines);
    *ended = strstr(lines, "/crew-2 ends") != NULL;
    fini_gate(&called.gate);
}

TEST(who_destroys_it_waits_for_those_that_a_join_has_left)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        bool ended = false;
        ls_simulation *simulation = simulate(seed);
        run(simulation, destroy_half, &ended);
        assert_true(ended);
        ls_simulation_destroy(&simulation);
    }
}

TEST(who_destroys_it_dismisses_it)
{
    struct called called;
    create(&called, N, note_call);
    destroy(&called); /* never run */
    create(&called, N, note_call);
    ls_crew_run(called.crew);
    destroy(&called);
    ls_crew_destroy(&called.crew);
    ls_crew_destroy(NULL);
}

TEST(without_memory_there_is_none)
{
    ls_crew *crew = (ls_crew *)(void *)&crew;
    assert_fails(ls_crew_create(&crew, ls_runtime_threads(), too_many / 8,
                                "crew", note_call, NULL),
                 LS_ENOMEM);
    assert_null(crew);
}

TEST(nobody_is_no_crew)
{
    ls_crew *crew = (ls_crew *)(void *)&crew;
    assert_fails(
        ls_crew_create(&crew, ls_runtime_threads(), 0, "crew", note_call, NULL),
        LS_EINVAL);
    assert_null(crew);
}

/* Those that have begun end. */
TEST(without_room_for_all_threads_there_is_none)
{
    if (SANITIZED)
        skip(); /* they need the address space themselves */
    ls_crew *crew = (ls_crew *)(void *)&crew;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    const int status = ls_crew_create(&crew, ls_runtime_threads(), 100, "crew",
                                      note_call, NULL);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(status, LS_EAGAIN);
    assert_error_has("crew-");
    assert_null(crew);
}

static void note_simulated(void *self, size_t member)
{
    struct called *called = self;
    called->n[member]++;
}

static void simulated_main(void *arg)
{
    struct called *called = arg;
    assert_ok(ls_crew_create(&called->crew, ls_runtime_current(), N, "crew",
                             note_simulated, called));
    for (int i = 0; i < CALLS; i++)
        ls_crew_run(called->crew);
    ls_crew_destroy(&called->crew);
}

TEST(a_simulation_runs_one_too)
{
    struct called called = {.crew = NULL};
    ls_simulation *simulation = simulate(1);
    run(simulation, simulated_main, &called);
    for (size_t k = 0; k < N; k++)
        assert_int_equal(called.n[k], CALLS);
    ls_simulation_destroy(&simulation);
}
