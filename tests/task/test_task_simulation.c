/* Tasks inside a simulation: steps wait on fibers of their own, which stand on
 * threads that are fibers. */
#include "lockstep/simulation.h"

#include "task_help.h"
#include "test.h"

enum { STEPS = 3 };

/* Steps meet here, each in the middle of its half. */
struct meeting {
    ls_simulation *simulation;
    ls_runtime *runtime;
    ls_mutex mutex;
    ls_cond changed;
    int awaited, here;
    char order[64];
    size_t n;
};

struct member {
    struct meeting *meeting;
    char letter;
};

static void meet(struct meeting *meeting, char letter)
{
    ls_mutex_lock(&meeting->mutex);
    meeting->order[meeting->n++] = letter;
    const int round = meeting->here / meeting->awaited;
    meeting->here++;
    ls_cond_broadcast(&meeting->changed);
    while (meeting->here < (round + 1) * meeting->awaited)
        if (ls_cond_wait(&meeting->changed, &meeting->mutex,
                         ls_deadline(meeting->runtime, 60000)) < 0)
            abort();
    ls_mutex_unlock(&meeting->mutex);
}

static int meets(ls_step *step, void *self)
{
    const struct member *const member = self;
    meet(member->meeting, member->letter);
    const int status = ls_yield(step);
    ls_rest_until(member->meeting->runtime,
                  ls_now(member->meeting->runtime) + LS_NS_PER_MS);
    return status;
}

static void meeting_init(struct meeting *meeting, int awaited)
{
    meeting->runtime = ls_simulation_runtime(meeting->simulation);
    meeting->awaited = awaited;
    assert_ok(ls_mutex_init(&meeting->mutex, meeting->runtime));
    assert_ok(ls_cond_init(&meeting->changed, meeting->runtime));
}

static void meeting_fini(struct meeting *meeting)
{
    ls_cond_fini(&meeting->changed);
    ls_mutex_fini(&meeting->mutex);
}

static void run_task(struct meeting *meeting, struct ls_task_options options,
                     int n_steps, uint64_t n_iterations)
{
    options.runtime = meeting->runtime;
    ls_task *task = task_with(options);
    struct member members[STEPS];
    for (int i = 0; i < n_steps; i++) {
        members[i] = (struct member){meeting, (char)('a' + i)};
        assert_ok(ls_task_use_fn(task, meets, &members[i]));
    }
    assert_ok(ls_task_run(task, n_iterations));
    assert_int_equal(ls_task_iterations(task), n_iterations);
    ls_task_destroy(&task);
}

static void run_async(void *arg)
{
    struct meeting *const meeting = arg;
    meeting_init(meeting, STEPS);
    run_task(meeting,
             (struct ls_task_options){.async = true, .n_workers = STEPS}, STEPS,
             4);
    meeting_fini(meeting);
}

/* Returns the hash. */
static uint64_t simulate(uint64_t seed, void (*fn)(void *arg), char *order)
{
    const struct ls_simulation_options options = {.seed = seed};
    struct meeting meeting = {.n = 0};
    assert_ok(ls_simulation_create(&meeting.simulation, &options));
    assert_ok(ls_simulation_run(meeting.simulation, fn, &meeting));
    const uint64_t hash = ls_simulation_hash(meeting.simulation);
    ls_simulation_destroy(&meeting.simulation);
    memcpy(order, meeting.order, sizeof meeting.order);
    return hash;
}

TEST(steps_of_one_task_wait_for_each_other)
{
    int orders = 0;
    char first[64];
    for (uint64_t seed = 0; seed < 50; seed++) {
        char order[64], again[64];
        const uint64_t hash = simulate(seed, run_async, order);
        assert_true(simulate(seed, run_async, again) == hash);
        assert_string_equal(order, again);
        if (seed == 0)
            memcpy(first, order, sizeof first);
        orders += strcmp(first, order) != 0;
    }
    assert_true(orders > 0);
}

static void run_plain(void *arg)
{
    run_task(arg, (struct ls_task_options){.n_workers = 1}, 1, 10);
}

static void run_two_tasks(void *arg)
{
    struct meeting *const meeting = arg;
    meeting_init(meeting, 2);
    ls_thread *threads[2];
    for (int i = 0; i < 2; i++)
        assert_ok(ls_thread_spawn(meeting->runtime, &threads[i], "task",
                                  run_plain, meeting));
    for (int i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    meeting_fini(meeting);
}

TEST(steps_of_two_tasks_wait_for_each_other)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        char order[64];
        (void)simulate(seed, run_two_tasks, order);
        assert_string_equal(order, "aaaaaaaaaaaaaaaaaaaa");
    }
}

/* Errors of two steps that run at the same time ---------------------------- */

struct failing {
    ls_runtime *runtime;
    int64_t after_ns;
    int status;
};

static int fails_after(ls_step *step, void *self)
{
    const struct failing *const failing = self;
    (void)step;
    ls_rest_until(failing->runtime,
                  ls_now(failing->runtime) + failing->after_ns);
    return ls_error(failing->status, "it went wrong");
}

static int is_given(ls_step *step, void *self)
{
    return *(int *)self = ls_yield(step);
}

static void run_failing(void *arg)
{
    struct meeting *const meeting = arg;
    meeting_init(meeting, 1);
    ls_task *task = task_with((struct ls_task_options){
        .runtime = meeting->runtime, .async = true, .n_workers = STEPS});
    struct failing late = {meeting->runtime, 2 * LS_NS_PER_MS, LS_EIO};
    struct failing early = {meeting->runtime, LS_NS_PER_MS, LS_EPROTO};
    int given = LS_OK;
    assert_ok(ls_task_use_fn(task, is_given, &given));
    assert_ok(ls_task_use_fn(task, fails_after, &late));
    assert_ok(ls_task_use_fn(task, fails_after, &early));
    assert_fails(ls_task_run(task, 1), LS_EPROTO);
    assert_int_equal(given, LS_EPROTO);
    ls_task_destroy(&task);
    meeting_fini(meeting);
}

TEST(the_error_that_came_first_unwinds_the_others)
{
    char order[64];
    (void)simulate(1, run_failing, order);
}

/* Sleeping ----------------------------------------------------------------- */

static int sleeps(ls_step *step, void *self)
{
    return ls_step_sleep(step, *(const int *)self);
}

static void cancel_in_a_second(void *self)
{
    ls_task *task = self;
    ls_runtime *runtime = ls_task_runtime(task);
    ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_S);
    ls_task_cancel(task, LS_ELOST, "node 4 is gone");
}

/* Runs a step that sleeps so long, and is cancelled after a second. Returns how
 * long the run took. */
static int64_t sleep_for(ls_runtime *runtime, int sleep_ms, int expected)
{
    ls_thread *thread;
    ls_task *task = task_with((struct ls_task_options){.runtime = runtime});
    assert_ok(ls_task_use_fn(task, sleeps, &sleep_ms));
    const int64_t begun_at = ls_now(runtime);
    assert_ok(
        ls_thread_spawn(runtime, &thread, "cancels", cancel_in_a_second, task));
    assert_int_equal(ls_task_run(task, 1), expected);
    const int64_t took_ns = ls_now(runtime) - begun_at;
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_task_destroy(&task);
    return took_ns;
}

static void run_sleepers(void *arg)
{
    const struct meeting *const meeting = arg;
    ls_runtime *runtime = ls_simulation_runtime(meeting->simulation);
    const int64_t ms = LS_NS_PER_MS;
    assert_true(sleep_for(runtime, -1, LS_OK) < ms);
    assert_true(sleep_for(runtime, 0, LS_OK) < ms);
    const int64_t slept = sleep_for(runtime, 250, LS_OK);
    assert_true(slept >= 250 * ms && slept < 251 * ms);
    const int64_t cut = sleep_for(runtime, 3600000, LS_ELOST);
    assert_true(cut >= 1000 * ms && cut < 1001 * ms);
}

TEST(a_sleep_ends_in_time_or_when_the_run_is_cancelled)
{
    char order[64];
    (void)simulate(3, run_sleepers, order);
}
