/* Learners of any shape, with loads and passes that take any time, loaders that
 * die and stops at any moment. */
#include "trainer.h"

#include <stdio.h>

#include "base/seeds.h"
#include "base/simulated.h"
#include "test.h"

enum { N_STACKS_MAX = 4, N_PRODUCERS_MAX = 3, N_EACH_MAX = 8 };

enum { N_ITEMS_MAX = N_PRODUCERS_MAX * N_EACH_MAX };

/* Where a batch is, as the ops see it. */
enum whereabouts { AT_PRODUCER, QUEUED, IN_STACK, DROPPED };

struct item {
    enum whereabouts where;
    size_t stack;
    unsigned passes; /* so far */
};

/* What the ops see of a stack. */
enum stack_seen { SEEN_IDLE, SEEN_LOADING, SEEN_LOADED };

struct world {
    ls_simulation *simulation; /* borrow */
    ls_runtime *runtime;
    struct ls_rng rng;
    struct ls_learner_options options;
    ls_learner *learner;
    struct item items[N_ITEMS_MAX];
    size_t n_producers;
    size_t n_each;
    enum stack_seen stacks[N_STACKS_MAX];
    size_t n_computing[N_STACKS_MAX]; /* devices that are at it */
    struct item *training;            /* the pass is over this one */
    int64_t longest_ns;               /* of an op */
    size_t n_accepted;
    size_t n_dropped;
    uint64_t fails_at; /* which op; 0: none */
    bool failed;
    uint64_t n_ops;
    uint64_t n_got;
    bool stops; /* at some moment, in place of the end */
};

static void must_hold(struct world *world, bool condition, const char *what)
{
    if (!condition)
        ls_simulation_violation(world->simulation, "%s", what);
}

static struct item *item_of(const struct ls_learner_batch *batch)
{
    return batch->data;
}

static int take_time(struct world *world)
{
    const int64_t ns =
        (int64_t)ls_rng_below(&world->rng, (uint64_t)world->longest_ns + 1);
    if (++world->n_ops == world->fails_at) {
        world->failed = true;
        return ls_error(LS_EIO, "it was its turn to fail");
    }
    if (ns > world->longest_ns / 4) /* many take no time at all */
        ls_rest_until(world->runtime, ls_now(world->runtime) + ns);
    return LS_OK;
}

static int load(void *self, const struct ls_learner_place *place)
{
    struct world *const world = self;
    struct item *const item = item_of(place->batch);
    enum stack_seen *const stack = &world->stacks[place->stack];
    if (place->device == 0) {
        must_hold(world, *stack == SEEN_IDLE, "a stack in use is loaded");
        must_hold(world, item->where <= QUEUED, "a batch is loaded twice");
        *stack = SEEN_LOADING;
        item->where = IN_STACK;
        item->stack = place->stack;
    }
    must_hold(world, *stack == SEEN_LOADING, "a stack changed under a load");
    const int status = take_time(world);
    must_hold(world, *stack == SEEN_LOADING, "a stack changed under a load");
    if (status == LS_OK && place->device + 1 == world->options.n_devices)
        *stack = SEEN_LOADED;
    return status;
}

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    struct world *const world = self;
    struct item *const item = item_of(place->batch);
    enum stack_seen *const stack = &world->stacks[place->stack];
    must_hold(world, *stack == SEEN_LOADED, "what is not loaded is trained");
    must_hold(world, item->where == IN_STACK && item->stack == place->stack,
              "another batch's stack is trained");
    must_hold(world, item->passes == pass, "passes out of order");
    world->n_computing[place->stack]++;
    world->training = item;
    const int status = take_time(world);
    world->n_computing[place->stack]--;
    must_hold(world, *stack == SEEN_LOADED, "a stack changed under a pass");
    return status == LS_OK ? ls_learner_info_add(info, "loss", 1.0) : status;
}

static int apply(void *self, unsigned pass, ls_learner_info *info)
{
    struct world *const world = self;
    (void)info;
    for (size_t i = 0; i < N_STACKS_MAX; i++)
        must_hold(world, world->n_computing[i] == 0, "an apply during a pass");
    must_hold(world, pass < world->options.passes, "a pass too many");
    const int status = take_time(world);
    if (status == LS_OK)
        world->training->passes++;
    return status;
}

static void drop(void *self, struct ls_learner_batch *batch)
{
    struct world *const world = self;
    struct item *const item = item_of(batch);
    must_hold(world, item->where != DROPPED, "a batch is dropped twice");
    if (item->where == IN_STACK) {
        must_hold(world, world->n_computing[item->stack] == 0,
                  "a batch is dropped while it is trained");
        world->stacks[item->stack] = SEEN_IDLE;
    }
    item->where = DROPPED;
    world->n_dropped++;
}

static const struct ls_learner_ops ops = {
    .load = load, .compute = compute, .apply = apply, .drop = drop};

/* ---- who puts, gets and waits ------------------------------------------ */

struct producer {
    struct world *world;
    size_t first; /* of its items */
};

static void produce(void *arg)
{
    struct producer *const producer = arg;
    struct world *const world = producer->world;
    int status = LS_OK;
    for (size_t i = 0; i < world->n_each && status != LS_ECLOSED; i++) {
        struct item *const item = &world->items[producer->first + i];
        struct ls_learner_batch batch = {.data = item, .env_steps = 1};
        const int wait_ms = (int)ls_rng_below(&world->rng, 40) - 1;
        status = ls_learner_put(world->learner, &batch, wait_ms);
        must_hold(world, (status == LS_OK) == (batch.data == NULL),
                  "a batch is neither here nor there");
        world->n_accepted += status == LS_OK;
        if (status == LS_EIO)
            break;
        if (ls_rng_below(&world->rng, 2) == 0)
            ls_rest_until(world->runtime,
                          ls_now(world->runtime) +
                              (int64_t)ls_rng_below(&world->rng, 20) *
                                  LS_NS_PER_MS);
    }
}

static void consume(void *arg)
{
    struct world *const world = arg;
    struct ls_learner_result result = {.info = NULL};
    int status = ls_learner_info_create(&result.info);
    must_hold(world, status == LS_OK, "no memory");
    while ((status = ls_learner_get(world->learner, &result, -1)) == LS_OK) {
        must_hold(world,
                  result.env_steps == 1 &&
                      ls_learner_info_get(result.info, "loss") == 1.0,
                  "a result of another batch");
        world->n_got++;
    }
    /* What fails while it is stopped does not change what it was told. */
    must_hold(world,
              status == LS_EIO
                  ? world->failed
                  : status == LS_ECLOSED && (world->stops || !world->failed),
              "the end is not said as it was");
    ls_learner_info_destroy(&result.info);
}

/* Until everything that was accepted is trained or dropped, or the learner has
 * ended. */
static void await_all(struct world *world)
{
    struct ls_learner_counts counts = counts_of(world->learner);
    while (counts.trained + counts.dropped < counts.put) {
        if (ls_learner_await_weights(world->learner, -1) != LS_OK)
            return;
        counts = counts_of(world->learner);
    }
}

static void check_counts(struct world *world)
{
    const struct ls_learner_counts counts = counts_of(world->learner);
    uint64_t passes = 0;
    for (size_t i = 0; i < N_ITEMS_MAX; i++) {
        must_hold(world,
                  world->items[i].where == AT_PRODUCER ||
                      world->items[i].where == DROPPED,
                  "a batch is lost");
        passes += world->items[i].passes;
    }
    must_hold(world,
              counts.put == world->n_accepted &&
                  counts.put ==
                      counts.trained + counts.dropped + counts.discarded &&
                  world->n_dropped == counts.put,
              "puts are not gets and drops");
    must_hold(world, counts.steps == passes, "steps are not passes");
    must_hold(world, counts.got == world->n_got, "a result is lost");
    must_hold(world, counts.steps == counts.got + counts.results_dropped,
              "results are not gets and drops");
    must_hold(world, world->stops || world->failed || counts.discarded == 0,
              "something was discarded before the end");
}

/* ---- one learner ------------------------------------------------------- */

static struct ls_learner_options draw_options(struct world *world)
{
    struct ls_rng *const rng = &world->rng;
    struct ls_learner_options options = {
        .ops = &ops,
        .self = world,
        .queue = 1 + ls_rng_below(rng, 4),
        .when_full = (enum ls_when_full)ls_rng_below(rng, 3),
        .out_queue = 1 + ls_rng_below(rng, 4),
        .out_when_full = (enum ls_when_full)ls_rng_below(rng, 3),
        .stacks = 1 + ls_rng_below(rng, N_STACKS_MAX),
        .loaders = ls_rng_below(rng, 5),
        .passes = 1 + (unsigned)ls_rng_below(rng, 4),
        .ready_timeout_ms = 1 + (int)ls_rng_below(rng, 30),
        .held_timeout_ms = (int)ls_rng_below(rng, 30) - 10,
        .n_devices = 1 + ls_rng_below(rng, 3)};
    options.first_passes = (unsigned)ls_rng_below(rng, options.passes + 1);
    return options;
}

static void stop_early(struct world *world)
{
    ls_rest_until(world->runtime,
                  ls_now(world->runtime) +
                      (int64_t)ls_rng_below(&world->rng, 200) * LS_NS_PER_MS);
    int status = LS_ETIMEDOUT;
    while (status == LS_ETIMEDOUT)
        status = ls_learner_stop(world->learner, 1);
}

static void live(void *arg)
{
    struct world *const world = arg;
    struct producer producers[N_PRODUCERS_MAX];
    ls_thread *threads[N_PRODUCERS_MAX + 1];
    const int status =
        ls_learner_create(&world->learner, world->runtime, &world->options);
    must_hold(world, status == LS_OK, ls_error_text());
    for (size_t i = 0; i < world->n_producers; i++) {
        producers[i] =
            (struct producer){.world = world, .first = i * N_EACH_MAX};
        spawn(world->runtime, &threads[i], produce, &producers[i]);
    }
    spawn(world->runtime, &threads[world->n_producers], consume, world);
    if (world->stops)
        stop_early(world);
    for (size_t i = 0; i < world->n_producers; i++)
        join(&threads[i]);
    await_all(world);
    must_hold(world, ls_learner_stop(world->learner, 1000) == LS_OK,
              "it does not stop");
    join(&threads[world->n_producers]);
    check_counts(world);
    ls_learner_destroy(&world->learner);
}

static void spawn_life(void *arg)
{
    struct world *const world = arg;
    ls_thread *thread;
    spawn(world->runtime, &thread, live, world);
    join(&thread);
}

/* What is accepted and not dropped is in the queue, in a stack, or just being
 * pushed out. */
static void check_bound(void *self, ls_simulation *simulation)
{
    struct world *const world = self;
    (void)simulation;
    const size_t pushed_out = world->options.when_full == LS_QUEUE_DROP_OLDEST
                                  ? world->n_producers
                                  : 0;
    must_hold(world,
              world->n_accepted <= world->n_dropped + world->options.queue +
                                       world->options.stacks + pushed_out,
              "more batches than there is room for");
}

static void run_seed(uint64_t seed)
{
    struct world world = {.simulation = simulate(seed)};
    ls_rng_seed(&world.rng, seed, 1);
    world.runtime = ls_host_runtime(new_host(world.simulation, "learner"));
    world.options = draw_options(&world);
    world.n_producers = 1 + ls_rng_below(&world.rng, N_PRODUCERS_MAX);
    world.n_each = 1 + ls_rng_below(&world.rng, N_EACH_MAX);
    world.longest_ns =
        (int64_t)ls_rng_below(&world.rng, 20) * LS_NS_PER_MS + LS_NS_PER_MS;
    world.stops = ls_rng_below(&world.rng, 3) == 0;
    if (ls_rng_below(&world.rng, 3) == 0)
        world.fails_at = 1 + ls_rng_below(&world.rng, 60);
    assert_ok(ls_simulation_watch(world.simulation, check_bound, &world));
    const int status = ls_simulation_run(world.simulation, spawn_life, &world);
    if (status != LS_OK) {
        (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed,
                      ls_error_text());
        ls_simulation_print(world.simulation, stderr);
    }
    assert_int_equal(status, LS_OK);
    ls_simulation_destroy(&world.simulation);
}

TEST(no_schedule_breaks_a_learner)
{
    const struct seeds seeds = seeds_of(1000);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        run_seed(seed);
}
