/* Nodes in step that save, killed at any moment, or without power, or with a
 * full disk, drawn from a seed; then all begin again, until the run ends. What
 * they have is then what nodes have that nobody disturbed. */
#include "base/seeds.h"
#include "step_world.h"

struct plan {
    int64_t total[SITES]; /* undisturbed */
    char judged[256];     /* what is kept, and what it is worth */
    int64_t life_ns;
};

/* Of all seeds: lives that a kill has ended, and epochs that the next one went
 * on from. */
static size_t n_ended, n_resumed[LAST + 1];

/* Every way to save. */
static void tune(struct site *site)
{
    const uint64_t seed = site->world->sim.seed;
    static const char *const own[SITES] = {"one", "two", "three"};
    site->options.behind = seed % 2 == 0;
    if (seed % 3 == 1 && site->id != 1)
        site->options.folder = NULL;
    if (seed % 3 == 2)
        site->options.folder = own[site->id - 1];
    if (seed % 5 == 0)
        site->options.retention.last = 2;
    if (seed % 7 == 0)
        site->options.every = 2;
    site->judges = site->id == 3;
    site->options.metric = NULL;
    site->options.retention.metric = "worth";
    if (seed % 11 < 5) {
        site->options.retention.best = 1 + seed % 3;
        site->options.retention.last = 1;
    }
}

static void undisturbed(struct step_world *world)
{
    struct plan *plan = world->self;
    assert_int_equal(life(world), LS_OK);
    for (size_t i = 0; i < SITES; i++)
        plan->total[i] = world->sites[i].total;
    strcpy(plan->judged, world->sites[0].judged);
    plan->life_ns = ls_simulation_now(world->sim.simulation);
}

static void fail_seed(const struct step_world *world, size_t i,
                      const char *what)
{
    simulation_fail(&world->sim, "node %zu: %s", i + 1, what);
}

static void note(const struct step_world *world)
{
    for (size_t i = 0; i < SITES; i++) {
        const struct site *site = &world->sites[i];
        n_ended += site->status != LS_OK ? 1 : 0;
        if (site->loaded != LS_CHECKPOINT_NONE)
            n_resumed[site->loaded]++;
        if (site->begun_at >= 0 && site->loaded != LS_CHECKPOINT_NONE &&
            site->begun_at != site->loaded)
            fail_seed(world, i, "it began elsewhere than it was loaded");
    }
}

static void disturb(struct step_world *world, int64_t life_ns)
{
    ls_runtime *runtime = ls_simulation_runtime(world->sim.simulation);
    ls_rest_until(
        runtime, ls_now(runtime) +
                     (int64_t)simulation_below(&world->sim, (uint64_t)life_ns));
    const size_t first = (size_t)simulation_below(&world->sim, SITES);
    for (size_t i = 0; i < SITES; i++)
        if (i == first || simulation_below(&world->sim, 3) == 0)
            simulation_kill(&world->sim, world->sites[i].host);
}

static void disturbed(struct step_world *world)
{
    struct plan *plan = world->self;
    for (int i = 0; i < 4; i++) {
        life_begin(world);
        disturb(world, plan->life_ns);
        life_end(world);
        note(world);
        for (size_t j = 0; j < SITES; j++) { /* its machine stays on */
            ls_disk_power_cut_after(world->sim.disk, world->sites[j].host,
                                    UINT64_MAX);
            if (world->sites[j].status == LS_EPROTO ||
                world->sites[j].status == LS_EMISMATCH)
                fail_seed(world, j, world->sites[j].text);
        }
    }
    (void)life(world);
    note(world);
    for (size_t i = 0; i < SITES; i++) {
        const struct site *site = &world->sites[i];
        if (site->status != LS_OK)
            fail_seed(world, i, site->text);
        if (site->total != plan->total[i])
            fail_seed(world, i, "other blobs");
    }
    if (strcmp(world->sites[0].judged, plan->judged) != 0)
        fail_seed(world, 0, world->sites[0].judged);
}

TEST(whoever_dies_and_when_the_state_is_that_of_an_undisturbed_run)
{
    const struct seeds seeds = seeds_of(200);
    (void)state;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct plan plan = {.life_ns = 0};
        struct step_world world = {.tune = tune, .self = &plan};
        world_play(&world, seed, undisturbed);
        struct step_world again = {.tune = tune, .self = &plan};
        world_play(&again, seed, disturbed);
    }
    if (seeds_are_others())
        return;
    assert_true(n_ended > 0);
    for (size_t i = 0; i < LAST; i++)
        assert_true(n_resumed[i] > 0);
}
