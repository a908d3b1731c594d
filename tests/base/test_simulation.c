/* Runs of a simulation: equal for equal seeds, and never without an end. */
#include "lockstep/simulation.h"

#include "lockstep/fiber.h"
#include "lockstep/queue.h"
#include "simulated.h"
#include "test.h"

enum { RACERS = 4 };

/* Threads that change a number and note in which order they came. */
struct race {
    ls_simulation *simulation;
    ls_mutex mutex;
    ls_thread *threads[RACERS];
    char order[128];
    size_t n;
};

struct racer {
    struct race *race;
    char letter;
};

static void race_along(void *arg)
{
    const struct racer *const self = arg;
    struct race *const race = self->race;
    for (int i = 0; i < 5; i++) {
        ls_mutex_lock(&race->mutex);
        race->order[race->n++] = self->letter;
        ls_mutex_unlock(&race->mutex);
        ls_runtime *const runtime = ls_simulation_runtime(race->simulation);
        ls_rest_until(runtime, ls_now(runtime) + 1000);
    }
}

static void start_race(void *arg)
{
    struct race *const race = arg;
    ls_runtime *const runtime = ls_simulation_runtime(race->simulation);
    assert_ok(ls_mutex_init(&race->mutex, runtime));
    struct racer racers[RACERS];
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){race, (char)('a' + i)};
        spawn(runtime, &race->threads[i], race_along, &racers[i]);
    }
    for (int i = 0; i < RACERS; i++)
        join(&race->threads[i]);
    ls_mutex_fini(&race->mutex);
}

/* Returns the hash; order: of at least 128 bytes. */
static uint64_t race(uint64_t seed, char *order, FILE *log)
{
    const struct ls_simulation_options options = {.seed = seed, .log = log};
    struct race race = {.n = 0};
    assert_ok(ls_simulation_create(&race.simulation, &options));
    run(race.simulation, start_race, &race);
    const uint64_t hash = ls_simulation_hash(race.simulation);
    strcpy(order, race.order);
    ls_simulation_destroy(&race.simulation);
    return hash;
}

TEST(equal_seeds_give_equal_runs)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        char first[128], again[128];
        char logs[2][4096];
        memset(logs, 0, sizeof logs);
        FILE *file = fmemopen(logs[0], sizeof logs[0], "w");
        const uint64_t hash = race(seed, first, file);
        fclose(file);
        file = fmemopen(logs[1], sizeof logs[1], "w");
        assert_true(race(seed, again, file) == hash);
        fclose(file);
        assert_string_equal(first, again);
        assert_string_equal(logs[0], logs[1]);
    }
}

TEST(other_seeds_give_other_runs)
{
    char order[50][128];
    uint64_t hashes[50];
    int orders = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        hashes[seed] = race(seed, order[seed], NULL);
        bool is_new = true;
        for (uint64_t other = 0; other < seed; other++) {
            assert_true(hashes[other] != hashes[seed]);
            is_new = is_new && strcmp(order[other], order[seed]) != 0;
        }
        orders += is_new;
    }
    assert_true(orders > 40);
}

/* A run on a machine of another kind must give the same. */
TEST(a_seed_gives_the_same_run_on_every_machine)
{
    char order[128];
    assert_true(race(42, order, NULL) == UINT64_C(0xfab499f18c85a8c5));
    assert_string_equal(order, "bacdbdcdbaacacdcbabd");
}

/* Without a lock, a read and a write with a look at the clock between. */
struct unlocked {
    ls_runtime *runtime;
    int count;
};

static void count_carelessly(void *arg)
{
    struct unlocked *const self = arg;
    for (int i = 0; i < 10; i++) {
        const int count = self->count;
        (void)ls_now(self->runtime);
        self->count = count + 1;
    }
}

static void start_careless(void *arg)
{
    struct unlocked *const self = arg;
    ls_thread *threads[2];
    for (int i = 0; i < 2; i++)
        spawn(self->runtime, &threads[i], count_carelessly, self);
    for (int i = 0; i < 2; i++)
        join(&threads[i]);
}

TEST(some_seeds_show_a_race)
{
    int shown = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        ls_simulation *simulation = simulate(seed);
        struct unlocked self = {ls_simulation_runtime(simulation), 0};
        run(simulation, start_careless, &self);
        shown += self.count < 20;
        ls_simulation_destroy(&simulation);
    }
    assert_true(shown > 10 && shown < 100);
}

/* ---- runs that come to no end -------------------------------------------- */

struct stuck {
    ls_simulation *simulation;
    ls_mutex mutex;
    ls_cond cond;
    ls_mutex taken;
};

static void wait_for_ever(void *arg)
{
    struct stuck *const self = arg;
    ls_mutex_lock(&self->mutex);
    assert_ok(ls_cond_wait(&self->cond, &self->mutex, LS_FOREVER));
}

static void lock_what_is_taken(void *arg)
{
    struct stuck *const self = arg;
    ls_mutex_lock(&self->taken);
}

static void get_stuck(void *arg)
{
    struct stuck *const self = arg;
    ls_runtime *const runtime = ls_simulation_runtime(self->simulation);
    assert_ok(ls_mutex_init(&self->mutex, runtime));
    assert_ok(ls_mutex_init(&self->taken, runtime));
    assert_ok(ls_cond_init(&self->cond, runtime));
    ls_mutex_lock(&self->taken);
    ls_host *const host = new_host(self->simulation, "node0");
    ls_thread *waits, *locks;
    assert_ok(ls_thread_spawn(ls_host_runtime(host), &waits, "waits",
                              wait_for_ever, self));
    assert_ok(ls_thread_spawn(ls_host_runtime(host), &locks, "locks",
                              lock_what_is_taken, self));
    join(&waits);
}

TEST(a_deadlock_is_told_with_who_waits_for_what)
{
    struct stuck self = {.simulation = simulate(1)};
    assert_fails(ls_simulation_run(self.simulation, get_stuck, &self),
                 LS_ESTATE);
    const char *const text = ls_error_text();
    assert_non_null(strstr(text, "node0/waits waits for a condition"));
    assert_non_null(strstr(text, "node0/locks waits for a mutex that -/main"));
    assert_non_null(strstr(text, "-/main joins node0/waits"));
    assert_fails(ls_simulation_run(self.simulation, get_stuck, &self),
                 LS_ESTATE);
    assert_error_has("has failed");
    ls_simulation_destroy(&self.simulation);
}

static void look_at_the_clock_for_ever(void *arg)
{
    ls_runtime *const runtime = ls_simulation_runtime(arg);
    while (ls_now(runtime) >= 0)
        continue;
}

static void rest_for_a_day(void *arg)
{
    ls_rest_until(ls_simulation_runtime(arg), 86400 * LS_NS_PER_S);
}

TEST(a_run_ends_at_its_limit)
{
    void (*const fns[])(void *arg) = {look_at_the_clock_for_ever,
                                      rest_for_a_day};
    for (int i = 0; i < 2; i++) {
        const struct ls_simulation_options options = {.seed = 1,
                                                      .limit_ns = LS_NS_PER_MS};
        ls_simulation *simulation;
        assert_ok(ls_simulation_create(&simulation, &options));
        assert_fails(ls_simulation_run(simulation, fns[i], simulation),
                     LS_ETIMEDOUT);
        assert_error_has("-/main ");
        ls_simulation_destroy(&simulation);
    }
}

static void run_inside(void *arg)
{
    assert_fails(ls_simulation_run(arg, rest_for_a_day, arg), LS_ESTATE);
}

TEST(a_run_holds_no_other_run)
{
    ls_simulation *simulation = simulate(1);
    run(simulation, run_inside, simulation);
    ls_simulation_destroy(&simulation);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static void run_another(void *arg)
{
    (void)arg;
    ls_simulation *inner = simulate(2);
    run(inner, do_nothing, NULL);
    assert_int_equal(ls_simulation_now(inner) > 0, 1);
    ls_simulation_destroy(&inner);
}

TEST(a_thread_may_run_another_simulation)
{
    ls_simulation *simulation = simulate(1);
    run(simulation, run_another, NULL);
    assert_null(ls_simulation_of(ls_runtime_current()));
    ls_simulation_destroy(&simulation);
}

static void look_for_a_fiber(void *arg)
{
    *(bool *)arg = ls_fiber_current() != NULL;
}

static void run_in_fiber(void *arg)
{
    ls_simulation *simulation = simulate(1);
    run(simulation, look_for_a_fiber, arg);
    ls_simulation_destroy(&simulation);
    assert_non_null(ls_fiber_current());
}

TEST(a_run_may_stand_on_a_fiber)
{
    ls_fiber_pool *pool;
    ls_fiber *fiber;
    bool is_on_fiber = true;
    assert_ok(ls_fiber_pool_create(&pool, 256u * 1024u, 0));
    assert_ok(ls_fiber_create(&fiber, pool, run_in_fiber, &is_on_fiber));
    assert_false(ls_fiber_resume(fiber));
    assert_false(is_on_fiber);
    ls_fiber_destroy(&fiber);
    ls_fiber_pool_destroy(&pool);
}

TEST(a_run_may_follow_another)
{
    ls_simulation *simulation = simulate(1);
    run(simulation, do_nothing, NULL);
    const int64_t now = ls_simulation_now(simulation);
    run(simulation, do_nothing, NULL);
    assert_true(ls_simulation_now(simulation) > now);
    ls_simulation_destroy(&simulation);
}

TEST(small_stacks_are_refused)
{
    const struct ls_simulation_options options = {.stack_bytes = 100};
    ls_simulation *simulation = (ls_simulation *)(void *)&simulation;
    assert_fails(ls_simulation_create(&simulation, &options), LS_EINVAL);
    assert_null(simulation);
    ls_simulation_destroy(&simulation);
    ls_simulation_destroy(NULL);
}

/* ---- the parts of the framework, inside ---------------------------------- */

struct flow {
    ls_runtime *runtime;
    ls_queue *queue;
};

static void produce(void *arg)
{
    const struct flow *const flow = arg;
    for (int i = 0; i < 1000; i++)
        assert_ok(ls_queue_put(flow->queue, &i, LS_FOREVER));
    ls_queue_close(flow->queue);
}

static void consume(void *arg)
{
    struct flow *const flow = arg;
    const struct ls_queue_options options = {.capacity = 4,
                                             .item_size = sizeof(int)};
    assert_ok(ls_queue_create(&flow->queue, flow->runtime, &options));
    ls_thread *thread;
    spawn(flow->runtime, &thread, produce, flow);
    int item, n = 0, status;
    while ((status = ls_queue_get(flow->queue, &item,
                                  ls_deadline(flow->runtime, 1000))) == LS_OK)
        assert_int_equal(item, n++);
    assert_int_equal(status, LS_ECLOSED);
    assert_int_equal(n, 1000);
    join(&thread);
    ls_queue_destroy(&flow->queue);
}

TEST(a_queue_works_inside)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        ls_simulation *simulation = simulate(seed);
        struct flow flow = {.runtime = ls_simulation_runtime(simulation)};
        run(simulation, consume, &flow);
        ls_simulation_destroy(&simulation);
    }
}
