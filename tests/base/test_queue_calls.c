/* Who waits at a queue, and who is called: in simulations, where a thread that
 * is never called is a deadlock, and the run fails. */
#include "lockstep/queue.h"

#include "lockstep/random.h"
#include "simulated.h"
#include "test.h"

enum { N_SIDE = 5, N_EACH = 12, CAPACITY = 3, SEEDS = 200 };

struct scene {
    ls_simulation *simulation;
    ls_runtime *runtime;
    struct ls_rng rng;
    ls_queue *queue;
    int n_put;
    int n_got;
    int put_sum;
    int got_sum;
    bool may_give_up; /* getters and putters, at a deadline */
};

static void play(struct scene *scene, uint64_t seed, void (*fn)(void *scene))
{
    const struct ls_queue_options options = {.capacity = CAPACITY,
                                             .item_size = sizeof(int)};
    scene->simulation = simulate(seed);
    scene->runtime = ls_host_runtime(new_host(scene->simulation, "host"));
    ls_rng_seed(&scene->rng, seed, 1);
    assert_ok(ls_queue_create(&scene->queue, scene->runtime, &options));
    run(scene->simulation, fn, scene);
    ls_queue_destroy(&scene->queue);
    ls_simulation_destroy(&scene->simulation);
}

static void rest_ms(struct scene *scene, int64_t ms)
{
    ls_rest_until(scene->runtime, ls_now(scene->runtime) + ms * LS_NS_PER_MS);
}

static int64_t some_deadline(struct scene *scene)
{
    if (!scene->may_give_up)
        return LS_FOREVER;
    return ls_now(scene->runtime) +
           (int64_t)ls_rng_below(&scene->rng, 4) * LS_NS_PER_MS;
}

static void get_one(void *arg)
{
    struct scene *const scene = arg;
    int item = 0;
    assert_ok(ls_queue_get(scene->queue, &item, LS_FOREVER));
    scene->n_got++;
}

static void put_one(void *arg)
{
    struct scene *const scene = arg;
    const int item = 7;
    assert_ok(ls_queue_put(scene->queue, &item, LS_FOREVER));
    scene->n_put++;
}

static void have_getters_wait(void *arg)
{
    struct scene *const scene = arg;
    ls_thread *threads[N_SIDE];
    for (int i = 0; i < N_SIDE; i++)
        spawn(scene->runtime, &threads[i], get_one, scene);
    rest_ms(scene, 1); /* all of them wait by now */
    for (int i = 0; i < N_SIDE; i++)
        put_one(scene);
    for (int i = 0; i < N_SIDE; i++)
        join(&threads[i]);
}

TEST(each_getter_comes_when_there_is_an_item_for_each)
{
    struct scene scene = {.n_got = 0};
    play(&scene, 1, have_getters_wait);
    assert_int_equal(scene.n_got, N_SIDE);
}

static void have_putters_wait(void *arg)
{
    struct scene *const scene = arg;
    ls_thread *threads[N_SIDE];
    for (int i = 0; i < CAPACITY; i++)
        put_one(scene);
    for (int i = 0; i < N_SIDE; i++)
        spawn(scene->runtime, &threads[i], put_one, scene);
    rest_ms(scene, 1);
    for (int i = 0; i < CAPACITY; i++)
        get_one(scene); /* room for some at once */
    for (int i = 0; i < N_SIDE; i++)
        get_one(scene);
    for (int i = 0; i < N_SIDE; i++)
        join(&threads[i]);
}

TEST(each_putter_comes_when_there_is_room_for_each)
{
    struct scene scene = {.n_got = 0};
    play(&scene, 1, have_putters_wait);
    assert_int_equal(scene.n_put, CAPACITY + N_SIDE);
    assert_int_equal(scene.n_got, CAPACITY + N_SIDE);
}

static void put_many(void *arg)
{
    struct scene *const scene = arg;
    for (int item = 1; item <= N_EACH; item++) {
        int status;
        do
            status = ls_queue_put(scene->queue, &item, some_deadline(scene));
        while (status == LS_ETIMEDOUT);
        assert_int_equal(status, LS_OK);
        scene->put_sum += item;
        if (ls_rng_below(&scene->rng, 3) == 0)
            rest_ms(scene, (int64_t)ls_rng_below(&scene->rng, 5));
    }
}

static void get_until_closed(void *arg)
{
    struct scene *const scene = arg;
    int status = LS_OK;
    while (status != LS_ECLOSED) {
        int item = 0;
        status = ls_queue_get(scene->queue, &item, some_deadline(scene));
        assert_true(status == LS_OK || status == LS_ETIMEDOUT ||
                    status == LS_ECLOSED);
        scene->got_sum += status == LS_OK ? item : 0;
        if (ls_rng_below(&scene->rng, 4) == 0)
            rest_ms(scene, (int64_t)ls_rng_below(&scene->rng, 5));
    }
}

static void pass_many(void *arg)
{
    struct scene *const scene = arg;
    ls_thread *putters[N_SIDE], *getters[N_SIDE];
    for (int i = 0; i < N_SIDE; i++) {
        spawn(scene->runtime, &putters[i], put_many, scene);
        spawn(scene->runtime, &getters[i], get_until_closed, scene);
    }
    for (int i = 0; i < N_SIDE; i++)
        join(&putters[i]);
    ls_queue_close(scene->queue);
    for (int i = 0; i < N_SIDE; i++)
        join(&getters[i]);
}

static void assert_all_pass(bool may_give_up)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct scene scene = {.may_give_up = may_give_up};
        play(&scene, seed, pass_many);
        assert_int_equal(scene.put_sum, N_SIDE * N_EACH * (N_EACH + 1) / 2);
        assert_int_equal(scene.got_sum, scene.put_sum);
    }
}

TEST(no_schedule_leaves_a_thread_waiting)
{
    assert_all_pass(false);
}

TEST(who_gives_up_takes_no_call_along)
{
    assert_all_pass(true);
}
