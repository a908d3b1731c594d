/* A profile of simulated hosts, each with a clock of its own: what is truly so
 * is known there. */
#include <math.h>

#include "base/seeds.h"
#include "lockstep/middleware.h"
#include "lockstep/task.h"
#include "profile_table.h"
#include "simulation_fixture.h"

enum { N = 4, SLOW = 2, ITERATIONS = 20 };

#define SLOW_NS (20 * LS_NS_PER_MS)

struct world;

struct machine {
    struct world *world;
    uint32_t id;
    int64_t offset_ns;
    double drift;
    ls_host *host;
    ls_thread *thread;
};

struct world {
    struct simulation sim;
    struct machine machines[N];
    struct ls_trace_file files[N];
};

static int work(ls_step *step, void *self)
{
    const struct machine *machine = self;
    ls_runtime *runtime = ls_host_runtime(machine->host);
    (void)step;
    if (machine->id == SLOW)
        ls_rest_until(runtime, ls_now(runtime) + SLOW_NS);
    return LS_OK;
}

static void run_machine(void *arg)
{
    struct machine *self = arg;
    const char *first = "tcp://127.0.0.1:21500";
    char bind[32];
    ls_trace *trace = NULL;
    ls_node *node = NULL;
    ls_task *task = NULL;
    struct ls_node_options options;
    ls_runtime *runtime = ls_host_runtime(self->host);
    (void)snprintf(bind, sizeof bind, "tcp://127.0.0.1:%u", 21500 + self->id);
    assert_ok(ls_trace_create(
        &trace, &(struct ls_trace_options){
                    .runtime = runtime, .node = self->id, .job = "sim"}));
    ls_node_options_init(&options);
    options.id = self->id;
    options.bind = bind;
    options.attach = &first;
    options.n_attach = self->id != 0;
    options.world_size = N;
    options.runtime = runtime;
    options.trace = trace;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.node = node}));
    assert_ok(ls_task_use(
        task,
        ls_mw_barrier(task, &(struct ls_barrier_options){.expected = N})));
    assert_ok(ls_task_use_fn(task, work, self));
    assert_ok(ls_node_start(node));
    assert_ok(ls_task_run(task, ITERATIONS));
    assert_ok(ls_trace_take(trace, ls_node_incarnation(node), "a test",
                            &self->world->files[self->id]));
    ls_task_destroy(&task);
    assert_ok(ls_node_destroy(&node));
    ls_trace_destroy(&trace);
}

static void run_all(void *arg)
{
    struct world *world = arg;
    for (uint32_t i = 0; i < N; i++) {
        struct machine *machine = &world->machines[i];
        char name[16];
        (void)snprintf(name, sizeof name, "node %u", (unsigned)i);
        machine->host = simulation_host(&world->sim, name);
        ls_host_skew(machine->host, machine->offset_ns, machine->drift);
        assert_ok(ls_thread_spawn(ls_host_runtime(machine->host),
                                  &machine->thread, "node", run_machine,
                                  machine));
    }
    for (size_t i = 0; i < N; i++)
        assert_ok(ls_thread_join(&world->machines[i].thread, LS_FOREVER));
}

/* Clocks up to 3 s apart, faster or slower by up to 100 ppm. */
static void run_world(struct world *world, uint64_t seed, bool skewed)
{
    const struct ls_network_path path = {.delay_ns = 30 * LS_NS_PER_US,
                                         .jitter_ns = 200 * LS_NS_PER_US};
    struct ls_rng rng;
    ls_rng_seed(&rng, seed, 0);
    *world = (struct world){.sim = {.seed = seed}};
    for (uint32_t i = 0; i < N; i++) {
        const double offset = ls_rng_double(&rng), drift = ls_rng_double(&rng);
        world->machines[i] =
            (struct machine){.world = world,
                             .id = i,
                             .offset_ns = skewed ? (int64_t)(offset * 3e9) : 0,
                             .drift = skewed ? 200e-6 * drift - 100e-6 : 0.0};
    }
    simulation_play(&world->sim, seed, &path, run_all, world);
}

/* What the first node's clock truly showed when that of a node showed `own`. */
static double truly(const struct world *world, size_t node, int64_t own)
{
    const struct machine *of = &world->machines[node];
    const struct machine *first = &world->machines[0];
    const double at = (double)(own - of->offset_ns) / (1.0 + of->drift);
    return at * (1.0 + first->drift) + (double)first->offset_ns;
}

static void check_clocks(const struct world *world,
                         const struct profile *profile, uint64_t seed)
{
    for (size_t i = 1; i < N; i++) {
        const struct profile_node *node = &profile->nodes[i];
        assert_true(node->aligned);
        assert_int_equal(node->parent, 0);
        for (size_t k = 0; k < node->file.n_records; k++) {
            const int64_t at = node->file.records[k].begin_ns;
            const double error = profile_error(profile, i, at);
            const double off = fabs(
                (double)at - truly(world, i, clock_fit_here(&node->clock, at)));
            if (off > error || error > 300e3)
                fail_msg("seed %d, node %zu: off by %.0f ns, said at most %.0f",
                         (int)seed, i, off, error);
        }
    }
}

/* Returns the part of all waiting that the slow one is blamed for. */
static double blame(const struct profile *profile, uint64_t seed)
{
    struct profile_graph graph;
    struct profile_table table;
    const struct profile_row *most;
    assert_ok(profile_graph_make(&graph, profile));
    assert_ok(profile_table_make(&table, &graph));
    const double share = profile_blame(&table, SLOW, &most) / table.waited_ns;
    if (most == NULL ||
        strcmp(profile_step_text(profile, most->name), "work") != 0)
        fail_msg("seed %d: another step is named", (int)seed);
    profile_table_clear(&table);
    profile_graph_clear(&graph);
    return share;
}

TEST(clocks_that_are_wrong_change_no_blame_and_are_known_within_their_error)
{
    const struct seeds seeds = seeds_of(100);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        double shares[2];
        for (int skewed = 0; skewed < 2; skewed++) {
            struct world world;
            struct profile profile;
            run_world(&world, seed, skewed == 1);
            assert_ok(profile_make(&profile, world.files, N));
            check_clocks(&world, &profile, seed);
            shares[skewed] = blame(&profile, seed);
            profile_clear(&profile);
        }
        if (fabs(shares[0] - shares[1]) > 0.01 || shares[1] < 0.9)
            fail_msg("seed %d: blamed for %g, with wrong clocks for %g",
                     (int)seed, shares[0], shares[1]);
    }
}
