/* A job whose nodes are killed at any moment, or lose power, or whose disk is
 * full for a while, drawn from a seed; then all begin again, until the job
 * ends. Its blobs are then those of a run that nobody disturbed. */
#include "base/seeds.h"
#include "job_world.h"

struct plan {
    int64_t total[SITES], draw[SITES]; /* undisturbed */
    int64_t life_ns;
};

/* Of all seeds: lives that a kill has ended, and epochs that the next one went
 * on from. */
static size_t n_ended, n_resumed[5];

static void tune(struct site *site)
{
    site->options.saves_behind = site->world->sim.seed % 2 == 0;
    if (site->world->sim.seed % 3 == 0)
        site->options.retention.last = 2;
}

static void undisturbed(struct job_world *world)
{
    struct plan *plan = world->self;
    assert_int_equal(life(world), LS_OK);
    for (size_t i = 0; i < SITES; i++) {
        plan->total[i] = world->sites[i].total;
        plan->draw[i] = world->sites[i].draw;
    }
    plan->life_ns = ls_simulation_now(world->sim.simulation);
}

static void fail_seed(const struct job_world *world, size_t i, const char *what)
{
    simulation_fail(&world->sim, "node %zu: %s", i + 1, what);
}

static void note(const struct job_world *world)
{
    for (size_t i = 0; i < SITES; i++) {
        const struct site *site = &world->sites[i];
        const struct ls_job_result *result = &site->result;
        n_ended += site->status != LS_OK ? 1 : 0;
        if (result->times[LS_JOB_OP_LOAD].n != 0 && result->epoch >= 0)
            n_resumed[result->epoch - (int64_t)result->n_epochs]++;
    }
}

static void disturbed(struct job_world *world)
{
    struct plan *plan = world->self;
    ls_runtime *runtime = ls_simulation_runtime(world->sim.simulation);
    for (int i = 0; i < 4; i++) {
        life_begin(world);
        ls_rest_until(runtime, ls_now(runtime) +
                                   (int64_t)simulation_below(
                                       &world->sim, (uint64_t)plan->life_ns));
        const size_t first = (size_t)simulation_below(&world->sim, SITES);
        for (size_t j = 0; j < SITES; j++)
            if (j == first || simulation_below(&world->sim, 3) == 0)
                simulation_kill(&world->sim, world->sites[j].host);
        life_end(world);
        note(world);
        for (size_t j = 0; j < SITES; j++) { /* its machine stays on */
            ls_disk_power_cut_after(world->sim.disk, world->sites[j].host,
                                    UINT64_MAX);
            if (world->sites[j].status == LS_EPROTO ||
                world->sites[j].status == LS_EMISMATCH ||
                world->sites[j].status == LS_ESTATE)
                fail_seed(world, j, world->sites[j].text);
        }
    }
    (void)life(world);
    note(world);
    for (size_t i = 0; i < SITES; i++) {
        const struct site *site = &world->sites[i];
        if (site->status != LS_OK)
            fail_seed(world, i, site->text);
        if (site->total != plan->total[i] || site->draw != plan->draw[i] ||
            site->position != READS || site->result.epoch != 4)
            fail_seed(world, i, "other blobs");
    }
}

TEST(whoever_dies_and_when_the_blobs_are_those_of_an_undisturbed_run)
{
    const struct seeds seeds = seeds_of(300);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct plan plan = {.life_ns = 0};
        struct job_world world = {
            .own_folders = seed % 5 == 0, .tune = tune, .self = &plan};
        world_play(&world, seed, undisturbed);
        struct job_world again = {
            .own_folders = seed % 5 == 0, .tune = tune, .self = &plan};
        world_play(&again, seed, disturbed);
    }
    if (seeds_are_others())
        return;
    assert_true(n_ended > 0);
    for (size_t i = 0; i < 5; i++)
        assert_true(n_resumed[i] > 0);
}

/* ---- one that is there again --------------------------------------------- */

/* The second node keeps the others waiting in epoch 2. */
static int read_late(void *self, ls_turn *turn)
{
    const struct site *site = self;
    ls_runtime *const runtime = ls_host_runtime(site->host);
    if (site->id == 2 && ls_turn_epoch(turn) == 2)
        ls_rest_until(runtime, ls_now(runtime) + 10 * LS_NS_PER_S);
    return read_three(self, turn);
}

static int describe_late(struct site *site)
{
    return describe_reads(site, read_late, NULL);
}

static void begin_behind_its_back(struct job_world *world)
{
    struct site *third = &world->sites[2];
    life_begin(world);
    ls_rest_until(ls_simulation_runtime(world->sim.simulation),
                  3 * LS_NS_PER_S);
    ls_network_kill(world->sim.network, third->host);
    assert_ok(ls_thread_join(&third->thread, LS_FOREVER));
    site_spawn(world, 3);
    life_end(world);
    assert_int_equal(world->sites[0].status, LS_ELOST);
    assert_has(world->sites[0].text, "node 3");
    assert_int_equal(life(world), LS_OK);
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(world->sites[i].total, 145);
}

/* It has done its part of the epoch, so that nobody waits for it; its next life
 * begins without what the others have. */
TEST(a_node_that_is_lost_and_there_again_before_it_is_asked_was_lost)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct job_world world = {
            .describe = describe_late, .own_folders = seed > 2, .tune = tune};
        world_play(&world, seed, begin_behind_its_back);
    }
}
