/* Hosts that are paused, killed, and have clocks of their own. */
#include "lockstep/simulation.h"

#include "simulated.h"
#include "test.h"

struct world {
    ls_simulation *simulation;
    ls_host *host;
    ls_runtime *here;  /* of the simulation */
    ls_runtime *there; /* of the host */
    ls_host *running;
    int steps;
    int64_t ended_at; /* true time */
};

static void make_world(struct world *world, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->simulation = simulate(seed);
    world->host = new_host(world->simulation, "node0");
    world->here = ls_simulation_runtime(world->simulation);
    world->there = ls_host_runtime(world->host);
}

static void rest_here(const struct world *world, int64_t until)
{
    ls_rest_until(world->here, until);
}

TEST(a_runtime_knows_its_host)
{
    struct world world;
    make_world(&world, 1);
    assert_ptr_equal(ls_host_of(world.there), world.host);
    assert_null(ls_host_of(world.here));
    assert_null(ls_host_of(ls_runtime_threads()));
    assert_ptr_equal(ls_simulation_of(world.there), world.simulation);
    assert_ptr_equal(ls_simulation_of(world.here), world.simulation);
    assert_null(ls_simulation_of(ls_runtime_threads()));
    assert_string_equal(ls_host_name(world.host), "node0");
    ls_simulation_destroy(&world.simulation);
}

static void note_running(void *arg)
{
    struct world *const world = arg;
    world->running = ls_simulation_running(world->simulation);
}

static void note_both(void *arg)
{
    struct world *const world = arg;
    ls_thread *thread;
    spawn(world->there, &thread, note_running, world);
    join(&thread);
    assert_ptr_equal(world->running, world->host);
    assert_null(ls_simulation_running(world->simulation));
}

TEST(whose_thread_runs_is_known)
{
    struct world world;
    make_world(&world, 1);
    assert_null(ls_simulation_running(world.simulation));
    assert_ok(ls_simulation_run(world.simulation, note_both, &world));
    assert_null(ls_simulation_running(world.simulation));
    ls_simulation_destroy(&world.simulation);
}

static void step_each_ms(void *arg)
{
    struct world *const world = arg;
    for (int i = 1; i <= 10; i++) {
        ls_rest_until(world->there, i * LS_NS_PER_MS);
        world->steps++;
    }
    world->ended_at = ls_simulation_now(world->simulation);
}

static void pause_for_a_while(void *arg)
{
    struct world *const world = arg;
    ls_thread *thread;
    spawn(world->there, &thread, step_each_ms, world);
    rest_here(world, 3500 * LS_NS_PER_US);
    assert_int_equal(world->steps, 3);
    ls_host_pause(world->host);
    ls_host_pause(world->host);
    assert_true(ls_host_is_paused(world->host));
    rest_here(world, 50 * LS_NS_PER_MS);
    assert_int_equal(world->steps, 3);
    assert_fails(ls_thread_join(&thread, 60 * LS_NS_PER_MS), LS_ETIMEDOUT);
    ls_host_resume(world->host);
    assert_false(ls_host_is_paused(world->host));
    join(&thread);
    assert_int_equal(world->steps, 10);
}

TEST(a_paused_host_stands_still_and_its_deadlines_do_not)
{
    struct world world;
    make_world(&world, 1);
    run(world.simulation, pause_for_a_while, &world);
    assert_true(world.ended_at < 61 * LS_NS_PER_MS);
    ls_simulation_destroy(&world.simulation);
}

static void count_steps(void *arg)
{
    struct world *const world = arg;
    for (int i = 0; i < 1000; i++) {
        world->steps++;
        (void)ls_now(world->there);
    }
}

static void pause_who_is_busy(void *arg)
{
    struct world *const world = arg;
    ls_thread *threads[3];
    for (int i = 0; i < 3; i++)
        spawn(world->there, &threads[i], count_steps, world);
    ls_host_pause(world->host);
    const int steps = world->steps;
    assert_true(steps < 3000);
    rest_here(world, LS_NS_PER_S);
    assert_int_equal(world->steps, steps);
    ls_host_resume(world->host);
    for (int i = 0; i < 3; i++)
        join(&threads[i]);
    assert_int_equal(world->steps, 3000);
}

TEST(a_pause_holds_threads_that_could_run)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct world world;
        make_world(&world, seed);
        run(world.simulation, pause_who_is_busy, &world);
        ls_simulation_destroy(&world.simulation);
    }
}

static void resume(void *arg)
{
    struct world *const world = arg;
    assert_int_equal(world->steps, 1);
    ls_host_resume(world->host);
}

static void pause_oneself(void *arg)
{
    struct world *const world = arg;
    assert_ok(ls_simulation_at(world->simulation, LS_NS_PER_S, resume, world));
    world->steps = 1;
    ls_host_pause(world->host);
    assert_true(ls_simulation_now(world->simulation) >= LS_NS_PER_S);
    world->steps = 2;
}

static void start_there(void *arg)
{
    struct world *const world = arg;
    ls_thread *thread;
    spawn(world->there, &thread, pause_oneself, world);
    join(&thread);
}

TEST(a_thread_that_pauses_its_own_host_stops_there)
{
    struct world world;
    make_world(&world, 1);
    run(world.simulation, start_there, &world);
    assert_int_equal(world.steps, 2);
    ls_simulation_destroy(&world.simulation);
}

static void pause_and_forget(void *arg)
{
    struct world *const world = arg;
    ls_thread *thread;
    spawn(world->there, &thread, step_each_ms, world);
    ls_host_pause(world->host);
    join(&thread);
}

TEST(a_host_that_stays_paused_is_told)
{
    struct world world;
    make_world(&world, 1);
    assert_fails(ls_simulation_run(world.simulation, pause_and_forget, &world),
                 LS_ESTATE);
    assert_error_has("its host paused");
    ls_simulation_destroy(&world.simulation);
}

static void kill_paused(void *arg)
{
    struct world *const world = arg;
    ls_thread *thread;
    spawn(world->there, &thread, step_each_ms, world);
    ls_host_pause(world->host);
    assert_false(ls_host_is_dead(world->host));
    ls_host_kill(world->host);
    ls_host_kill(world->host);
    assert_true(ls_host_is_dead(world->host));
    assert_false(ls_host_is_paused(world->host));
    ls_host_pause(world->host);
    assert_false(ls_host_is_paused(world->host));
    join(&thread);
}

TEST(threads_of_a_dead_host_run_to_their_end)
{
    struct world world;
    make_world(&world, 1);
    run(world.simulation, kill_paused, &world);
    assert_int_equal(world.steps, 10);
    assert_true(ls_host_is_dead(world.host));
    ls_simulation_destroy(&world.simulation);
}

/* ---- clocks -------------------------------------------------------------- */

static void look_at_skewed_clocks(void *arg)
{
    struct world *const world = arg;
    ls_host_skew(world->host, 5 * LS_NS_PER_S, 0.05);
    rest_here(world, 100 * LS_NS_PER_S);
    const int64_t from = ls_simulation_now(world->simulation);
    const int64_t shown = ls_now(world->there);
    const int64_t wall = ls_wall_now(world->there);
    const int64_t to = ls_simulation_now(world->simulation);
    const int64_t offset = 5 * LS_NS_PER_S;
    assert_true(shown >= from + from / 20 + offset - 1);
    assert_true(shown <= to + to / 20 + offset);
    const int64_t true_wall = ls_wall_now(world->here);
    assert_in_range(wall - true_wall, 9 * LS_NS_PER_S, 11 * LS_NS_PER_S);

    const int64_t before = ls_now(world->there);
    ls_host_skew(world->host, -LS_NS_PER_S, 0.0);
    assert_true(ls_now(world->there) >= before);
    assert_true(ls_wall_now(world->there) < true_wall);
}

TEST(a_skewed_clock_shows_another_time_and_never_goes_back)
{
    struct world world;
    make_world(&world, 1);
    run(world.simulation, look_at_skewed_clocks, &world);
    ls_simulation_destroy(&world.simulation);
}

static void rest_for_a_second(void *arg)
{
    struct world *const world = arg;
    const int64_t deadline = ls_now(world->there) + LS_NS_PER_S;
    ls_rest_until(world->there, deadline);
    world->ended_at = ls_simulation_now(world->simulation);
    assert_true(ls_now(world->there) >= deadline);
}

struct skew {
    struct world world;
    int64_t offset_ns;
    double drift;
    int64_t at; /* 0: before the rest begins */
};

static void skew_and_rest(void *arg)
{
    struct skew *const self = arg;
    struct world *const world = &self->world;
    if (self->at == 0)
        ls_host_skew(world->host, self->offset_ns, self->drift);
    ls_thread *thread;
    spawn(world->there, &thread, rest_for_a_second, world);
    if (self->at != 0) {
        rest_here(world, self->at);
        ls_host_skew(world->host, self->offset_ns, self->drift);
    }
    join(&thread);
}

/* When a rest of a second ended, in ms of true time. */
static int64_t rest_with(int64_t offset_ns, double drift, int64_t at)
{
    struct skew self = {.offset_ns = offset_ns, .drift = drift, .at = at};
    make_world(&self.world, 1);
    run(self.world.simulation, skew_and_rest, &self);
    ls_simulation_destroy(&self.world.simulation);
    return self.world.ended_at / LS_NS_PER_MS;
}

TEST(a_deadline_is_kept_on_the_clock_it_was_given_on)
{
    assert_int_equal(rest_with(0, 0.0, 0), 1000);
    assert_int_equal(rest_with(7 * LS_NS_PER_S, 0.0, 0), 1000);
    assert_int_equal(rest_with(0, 0.1, 0), 909);
    assert_int_equal(rest_with(0, -0.1, 0), 1111);
    assert_int_equal(rest_with(-LS_NS_PER_S, 0.0, 0), 2000);
}

TEST(a_clock_that_is_changed_moves_who_waits_on_it)
{
    const int64_t half = LS_NS_PER_S / 2;
    assert_int_equal(rest_with(LS_NS_PER_S / 4, 0.0, half), 750);
    assert_int_equal(rest_with(LS_NS_PER_S, 0.0, half), 500);
    assert_int_equal(rest_with(-LS_NS_PER_S / 4, 0.0, half), 1250);
}

TEST(every_host_has_true_time_at_first)
{
    struct world world;
    make_world(&world, 1);
    assert_true(ls_now(world.there) <= ls_now(world.here));
    assert_true(ls_wall_now(world.there) == ls_wall_now(world.here));
    assert_true(ls_wall_now(world.here) / LS_NS_PER_S == 946684800);
    ls_simulation_destroy(&world.simulation);
}
