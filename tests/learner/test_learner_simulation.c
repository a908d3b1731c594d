/* The learner on virtual time, where how long everything takes is exact. */
#include "trainer.h"

#include <math.h>

#include "base/simulated.h"
#include "test.h"

#define MS LS_NS_PER_MS

/* ---- ops that take time ------------------------------------------------ */

struct timed {
    ls_runtime *runtime;
    int64_t load_ns;
    int64_t train_ns;
    int64_t drop_ns;
    size_t n_dropped;
    size_t fails_at; /* the number of the batch whose load fails */
    int64_t failed_at;
    int64_t began_at[N_BATCHES_MAX]; /* passes */
    size_t n_began;
};

static int timed_load(void *self, const struct ls_learner_place *place)
{
    struct timed *const timed = self;
    ls_rest_until(timed->runtime, ls_now(timed->runtime) + timed->load_ns);
    if (number_of(place->batch) != timed->fails_at)
        return LS_OK;
    timed->failed_at = ls_now(timed->runtime);
    return ls_error(LS_EIO, "the disk is gone");
}

static int timed_compute(void *self, const struct ls_learner_place *place,
                         unsigned pass, ls_learner_info *info)
{
    struct timed *const timed = self;
    (void)place;
    (void)pass;
    (void)info;
    const int64_t now = ls_now(timed->runtime);
    if (timed->n_began < N_BATCHES_MAX)
        timed->began_at[timed->n_began++] = now;
    ls_rest_until(timed->runtime, now + timed->train_ns);
    return LS_OK;
}

static void timed_drop(void *self, struct ls_learner_batch *batch)
{
    struct timed *const timed = self;
    (void)batch;
    ls_rest_until(timed->runtime, ls_now(timed->runtime) + timed->drop_ns);
    timed->n_dropped++;
}

static const struct ls_learner_ops timed_ops = {
    .load = timed_load, .compute = timed_compute, .drop = timed_drop};

/* What a test does on a host, and what it does it with. */
struct scene {
    struct timed timed;
    struct ls_learner_options options;
    ls_learner *learner;
    void (*play)(struct scene *scene);
};

static void play_scene(void *arg)
{
    struct scene *const scene = arg;
    scene->options.ops = &timed_ops;
    scene->options.self = &scene->timed;
    assert_ok(ls_learner_create(&scene->learner, scene->timed.runtime,
                                &scene->options));
    scene->play(scene);
    ls_learner_destroy(&scene->learner);
}

static void spawn_scene(void *arg)
{
    struct scene *const scene = arg;
    ls_thread *thread;
    spawn(scene->timed.runtime, &thread, play_scene, scene);
    join(&thread);
}

static void simulate_scene(struct scene *scene)
{
    ls_simulation *simulation = simulate(1);
    scene->timed.runtime = ls_host_runtime(new_host(simulation, "learner"));
    if (scene->timed.fails_at == 0)
        scene->timed.fails_at = SIZE_MAX;
    run(simulation, spawn_scene, scene);
    ls_simulation_destroy(&simulation);
}

/* About so long: what the scheduler takes is far below a millisecond. */
static void assert_about(int64_t ns, int64_t wanted)
{
    if (ns < wanted - MS || ns > wanted + MS)
        fail_msg("%.3f ms, not %.3f ms", (double)ns / (double)MS,
                 (double)wanted / (double)MS);
}

/* ---- overlap ----------------------------------------------------------- */

enum { N_TRAINED = 40 };

static int64_t elapsed; /* of the last scene that was timed */
static struct ls_learner_metrics measured;
static struct ls_learner_counts counted;

static void train_many(struct scene *scene)
{
    struct ls_learner_result result = {.info = NULL};
    const int64_t from = ls_now(scene->timed.runtime);
    for (size_t put_so_far = 0, got = 0; got < N_TRAINED; got++) {
        for (; put_so_far < N_TRAINED && put_so_far < got + 8; put_so_far++)
            put(scene->learner, put_so_far);
        assert_ok(ls_learner_get(scene->learner, &result, -1));
    }
    elapsed = ls_now(scene->timed.runtime) - from;
    assert_ok(ls_learner_metrics(scene->learner, &measured, false));
    ls_learner_counts(scene->learner, &counted);
}

static int64_t time_of(size_t stacks, size_t loaders, int64_t load_ms,
                       int64_t train_ms)
{
    struct scene scene = {
        .options = {.stacks = stacks, .loaders = loaders},
        .timed = {.load_ns = load_ms * MS, .train_ns = train_ms * MS},
        .play = train_many};
    simulate_scene(&scene);
    return elapsed;
}

TEST(one_stack_loads_and_trains_in_turn)
{
    assert_about(time_of(1, 1, 300, 100), N_TRAINED * 400 * MS);
    assert_about((int64_t)(measured.learner_load_wait_time_ms * 1e6), 300 * MS);
    assert_about((int64_t)(measured.learner_load_time_ms * 1e6), 300 * MS);
    assert_about((int64_t)(measured.learner_grad_time_ms * 1e6), 100 * MS);
    assert_int_equal(counted.overlap_ns, 0);
}

TEST(four_loaders_hide_slow_loads_behind_the_training)
{
    assert_about(time_of(4, 4, 300, 100), 300 * MS + N_TRAINED * 100 * MS);
    assert_about((int64_t)(measured.learner_load_wait_time_ms * 1e6), 0);
    assert_about((int64_t)(measured.learner_grad_time_ms * 1e6), 100 * MS);
}

TEST(the_learner_waits_for_what_the_loaders_lack)
{
    /* A stack takes 350 ms from load to load, in which four are trained for
     * 200: the learner waits 150 for every fourth batch. The last ten have two
     * of those. */
    assert_about(time_of(4, 4, 300, 50),
                 300 * MS + 10 * 200 * MS + 9 * 150 * MS);
    assert_about((int64_t)(measured.learner_load_wait_time_ms * 1e6), 30 * MS);
}

TEST(equal_times_of_load_and_train_overlap_whole)
{
    const int64_t ideal = N_TRAINED * 100 * MS;
    const int64_t one = time_of(1, 1, 100, 100);
    const int64_t four = time_of(4, 4, 100, 100);
    assert_about(four, ideal + 100 * MS);
    assert_about(one, 2 * ideal);
    /* All but the first load, and what trains while four load is shared. */
    assert_true(counted.overlap_ns > counted.load_ns / 2);
    assert_true(counted.overlap_ns < counted.load_ns);
    assert_true((double)ideal / (double)four >= 0.9);
    assert_true((double)one / (double)four >= 1.8);
}

TEST(times_are_told_to_the_microsecond)
{
    struct scene scene = {.options = {.stacks = 4, .loaders = 4},
                          .timed = {.load_ns = 1234567, .train_ns = 2345678},
                          .play = train_many};
    simulate_scene(&scene);
    const double times[] = {
        measured.learner_grad_time_ms, measured.learner_load_time_ms,
        measured.learner_load_wait_time_ms, measured.learner_dequeue_time_ms};
    assert_about((int64_t)(times[0] * 1e6), 2345678);
    for (size_t i = 0; i < 4; i++)
        assert_true(times[i] == round(times[i] * 1000.0) / 1000.0);
}

/* The second of two passes over a batch waits for nothing, and is a turn. */
static void train_twice_at_once(struct scene *scene)
{
    struct ls_learner_metrics metrics = {.learner = NULL};
    put(scene->learner, 1);
    for (int i = 0; i < 2; i++)
        (void)get(scene->learner);
    assert_ok(ls_learner_metrics(scene->learner, &metrics, false));
    assert_about((int64_t)(metrics.learner_load_wait_time_ms * 1e6), 150 * MS);
}

TEST(a_turn_without_a_wait_counts_as_none)
{
    struct scene scene = {.options = {.loaders = 1, .passes = 2},
                          .timed = {.load_ns = 300 * MS, .train_ns = 10 * MS},
                          .play = train_twice_at_once};
    simulate_scene(&scene);
}

static void train_two_and_look(struct scene *scene)
{
    for (size_t i = 0; i < 2; i++)
        put(scene->learner, i);
    for (size_t i = 1; i <= 2; i++) {
        assert_true(get(scene->learner).last);
        assert_int_equal(scene->timed.n_dropped, i);
    }
}

TEST(the_last_result_comes_when_its_batch_is_dropped)
{
    for (size_t loaders = 0; loaders < 2; loaders++) {
        struct scene scene = {.options = {.loaders = loaders},
                              .timed = {.drop_ns = 10 * MS},
                              .play = train_two_and_look};
        simulate_scene(&scene);
    }
}

/* ---- nothing to train -------------------------------------------------- */

static void be_idle_then_train(struct scene *scene)
{
    const int64_t from = ls_now(scene->timed.runtime);
    ls_rest_until(scene->timed.runtime, from + 10500 * MS);
    assert_true(counts_of(scene->learner).not_ready == 10);
    assert_ok(ls_learner_check(scene->learner));
    put(scene->learner, 1);
    (void)get(scene->learner);
    assert_true(counts_of(scene->learner).steps == 1);
}

TEST(an_idle_learner_is_not_ready_and_lives_on)
{
    for (size_t loaders = 0; loaders < 3; loaders++) {
        struct scene scene = {.options = {.loaders = loaders},
                              .play = be_idle_then_train};
        simulate_scene(&scene);
    }
}

static void train_one_twice(struct scene *scene)
{
    put(scene->learner, 1);
    assert_false(get(scene->learner).last);
    assert_true(get(scene->learner).last);
    assert_about(scene->timed.began_at[1] - scene->timed.began_at[0],
                 1000 * MS);
    assert_true(counts_of(scene->learner).not_ready == 0);
}

TEST(what_is_held_is_trained_again_when_nothing_comes)
{
    struct scene scene = {.options = {.stacks = 3, .loaders = 2, .passes = 2},
                          .play = train_one_twice};
    simulate_scene(&scene);
}

static void train_one_at_once(struct scene *scene)
{
    put(scene->learner, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(get(scene->learner).last, i == 3);
    assert_about(scene->timed.began_at[3] - scene->timed.began_at[0], 30 * MS);
}

TEST(what_is_held_need_not_wait)
{
    for (size_t loaders = 0; loaders < 3; loaders++) {
        struct scene scene = {.options = {.stacks = 3,
                                          .loaders = loaders,
                                          .passes = 4,
                                          .held_timeout_ms = -1},
                              .timed = {.train_ns = 10 * MS},
                              .play = train_one_at_once};
        simulate_scene(&scene);
    }
}

/* ---- the end ----------------------------------------------------------- */

static void stop_while_blocked(struct scene *scene)
{
    const int64_t from = ls_now(scene->timed.runtime);
    assert_ok(ls_learner_stop(scene->learner, 1000));
    assert_about(ls_now(scene->timed.runtime) - from, 0);
}

TEST(stop_takes_no_time_while_the_loaders_wait)
{
    for (size_t loaders = 0; loaders < 5; loaders += 2) {
        struct scene scene = {
            .options = {.stacks = 2, .loaders = loaders, .n_devices = 2},
            .play = stop_while_blocked};
        simulate_scene(&scene);
    }
}

static void stop_in_time(struct scene *scene)
{
    put(scene->learner, 1);
    ls_rest_until(scene->timed.runtime, ls_now(scene->timed.runtime) + MS);
    const int64_t from = ls_now(scene->timed.runtime);
    assert_fails(ls_learner_stop(scene->learner, 1000), LS_ETIMEDOUT);
    assert_about(ls_now(scene->timed.runtime) - from, 1000 * MS);
    assert_string_equal(
        ls_error_text(),
        "learner: loader 0 does not end: its load does not return");
}

TEST(stop_gives_up_at_its_deadline)
{
    struct scene scene = {.options = {.loaders = 1},
                          .timed = {.load_ns = 60 * LS_NS_PER_S},
                          .play = stop_in_time};
    simulate_scene(&scene);
}

static void wait_for_a_dead_loader(struct scene *scene)
{
    struct ls_learner_result result = {.info = NULL};
    put(scene->learner, 7);
    assert_fails(ls_learner_get(scene->learner, &result, -1), LS_EIO);
    assert_about(ls_now(scene->timed.runtime) - scene->timed.failed_at, 0);
    assert_error_has("learner: loader ");
    assert_error_has(": the disk is gone");
}

TEST(a_dead_loader_is_named_at_once)
{
    struct scene scene = {.options = {.stacks = 4, .loaders = 4},
                          .timed = {.load_ns = 300 * MS, .fails_at = 7},
                          .play = wait_for_a_dead_loader};
    simulate_scene(&scene);
}
