/* Three nodes of a simulation that train: they are killed at any moment, or
 * lose power, over a network that loses messages, drawn from a seed; then all
 * begin again, until the training ends. The weights are those of threads that
 * nobody disturbed, to the bit. */
#include "base/seeds.h"
#include "line.h"
#include "lockstep/trainer.h"
#include "simulation_fixture.h"

enum { SITES = 3, LIVES = 3 };

struct world;

struct site {
    struct world *world;
    uint32_t index;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    int status;
    char text[LS_ERROR_TEXT_MAX];
    bool is_killed;
};

struct world {
    struct simulation sim;
    int64_t life_ns; /* of an undisturbed life; 0: measure it */
    struct site sites[SITES];
    uint64_t hashes[SITES];
    uint64_t steps_at_start; /* of the last life */
};

static uint64_t wanted; /* hash of the weights */
static unsigned n_killed, n_resumed, n_odd;

static int note_start(void *self, ls_trainer *trainer)
{
    struct world *world = self;
    world->steps_at_start = ls_trainer_steps(trainer);
    return LS_OK;
}

static int train(void *self, ls_driver *driver)
{
    struct world *world = self;
    const struct ls_trainer_callbacks callbacks = {
        .before_training = note_start, .self = world};
    TRY(line_setup(driver, &line_ops));
    CHECK(world->sim.disk == NULL || ls_driver_local_rank(driver) == 0);
    TRY(ls_trainer_run(driver,
                       &(struct ls_trainer_options){
                           .data = &line_data,
                           .evaluation = &line_data,
                           .epochs = 2,
                           .batch_size = 3,
                           .folder = world->sim.disk != NULL ? "saved" : NULL,
                           .save_every = 2,
                           .retention = {.last = 2},
                           .resume = true,
                           .callbacks = &callbacks,
                           .n_callbacks = 1},
                       NULL));
    world->hashes[ls_driver_rank(driver)] = ls_driver_hash(driver);
    return LS_OK;
}

static int live(struct site *site)
{
    static const char *const all[SITES] = {"tcp://127.0.0.1:21500",
                                           "tcp://127.0.0.1:21501",
                                           "tcp://127.0.0.1:21502"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = 11 * (site->index + 1);
    options.bind = all[site->index];
    options.attach = all;
    options.n_attach = SITES;
    options.world_size = SITES;
    options.runtime = ls_host_runtime(site->host);
    TRY(ls_node_create(&site->node, &options));
    return ls_driver_run(&(struct ls_driver_options){.kind = LS_DRIVER_BUS,
                                                     .node = site->node,
                                                     .timeout_ms = 20000,
                                                     .seed = 5},
                         train, site->world);
}

static void site_main(void *arg)
{
    struct site *site = arg;
    site->status = live(site);
    if (site->status != LS_OK)
        (void)snprintf(site->text, sizeof site->text, "%s", ls_error_text());
    assert_ok(ls_node_destroy(&site->node));
}

static void life_begin(struct world *world)
{
    static const char *const names[SITES] = {"one", "two", "three"};
    memset(world->hashes, 0, sizeof world->hashes);
    for (uint32_t i = 0; i < SITES; i++) {
        struct site *site = &world->sites[i];
        *site = (struct site){.world = world, .index = i};
        site->host = simulation_host(&world->sim, names[i]);
        assert_ok(ls_thread_spawn(ls_host_runtime(site->host), &site->thread,
                                  "site", site_main, site));
    }
}

static void life_end(struct world *world)
{
    for (size_t i = 0; i < SITES; i++)
        assert_ok(ls_thread_join(&world->sites[i].thread, LS_FOREVER));
    n_resumed += world->steps_at_start > 0;
}

static void fail_seed(const struct world *world, size_t i, const char *what)
{
    simulation_fail(&world->sim, "site %zu: %s", i, what);
}

static void kill(struct world *world, size_t i)
{
    struct site *site = &world->sites[i];
    site->is_killed = true;
    if (ls_rng_below(ls_simulation_random(world->sim.simulation), 2) == 0)
        ls_network_kill(world->sim.network, site->host);
    else
        ls_disk_power_cut(world->sim.disk, site->host);
}

/* Who survives says that another was lost, or that all was done. */
static void check_survivors(const struct world *world)
{
    for (size_t i = 0; i < SITES; i++) {
        const struct site *site = &world->sites[i];
        n_killed += site->is_killed;
        if (site->is_killed || site->status == LS_OK)
            continue;
        if (site->status != LS_ELOST && site->status != LS_EABORTED &&
            site->status != LS_EUNREACHABLE)
            fail_seed(world, i, site->text);
        n_odd += site->status == LS_EUNREACHABLE;
    }
}

static void check_end(const struct world *world)
{
    for (size_t i = 0; i < SITES; i++) {
        if (world->sites[i].status != LS_OK)
            fail_seed(world, i, world->sites[i].text);
        if (world->hashes[i] != wanted)
            fail_seed(world, i, "other weights");
    }
}

static void body(void *arg)
{
    struct world *world = arg;
    ls_runtime *runtime = ls_simulation_runtime(world->sim.simulation);
    struct ls_rng *random = ls_simulation_random(world->sim.simulation);
    for (int life = 0; life < LIVES && world->life_ns > 0; life++) {
        life_begin(world);
        ls_rest_until(runtime,
                      ls_now(runtime) + (int64_t)ls_rng_below(
                                            random, (uint64_t)world->life_ns));
        kill(world, (size_t)ls_rng_below(random, SITES));
        life_end(world);
        check_survivors(world);
    }
    life_begin(world);
    life_end(world);
    check_end(world);
    if (world->life_ns == 0)
        world->life_ns = ls_simulation_now(world->sim.simulation);
}

static void play(struct world *world, uint64_t seed)
{
    const struct ls_network_path path = {.delay_ns = LS_NS_PER_MS / 2,
                                         .jitter_ns = LS_NS_PER_MS / 2,
                                         .loss = 0.02,
                                         .duplicate = 0.02,
                                         .reorder = 0.02};
    simulation_play(&world->sim, seed, &path, body, world);
}

TEST(whoever_dies_and_when_the_weights_are_those_of_threads)
{
    const struct seeds seeds = seeds_of(40);
    struct world threads = {.life_ns = 0};
    assert_ok(run_threads(SITES, train, &threads));
    wanted = threads.hashes[0];
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct world world = {.life_ns = 0};
        play(&world, seed); /* undisturbed, but for the network */
        play(&world, seed);
    }
    printf("%u killed, %u resumed, %u not begun\n", n_killed, n_resumed, n_odd);
    if (!seeds_are_others())
        assert_true(n_killed > 0 && n_resumed > 0);
}
