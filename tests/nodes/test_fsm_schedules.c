/* The coordinator's machine in thousands of schedules: random delays, losses,
 * returns, refusals, answers that are none or never come, and restarts of the
 * coordinator. Each comes to its end, and none breaks a rule of fsm.h. */
#include <math.h>

#include "base/seeds.h"
#include "fsm_world.h"
#include "test.h"

/* LOCKSTEP_FSM_TRACE=1 shows what the coordinator says. */
static int64_t split = 1;
static bool any_options;
static int64_t ranks; /* learners that do a work; there is one more */
static bool keeps;
static uint64_t n_kept; /* samples that another life has gone on with */

/* Anything that is allowed, so that cases meet that nobody has thought of. */
static void choose_options(struct world *world)
{
    struct ls_rng *rng = &world->rng;
    struct fsm_options *options = &world->options;
    world->n_members = 2 + ls_rng_below(rng, 5);
    for (size_t i = 0; i < world->n_members; i++)
        world->members[i].learner =
            i == 0 || (i > 1 && world_chance(world, 400));
    options->iterations = 1 + (int64_t)ls_rng_below(rng, 12);
    options->collector_works = ls_rng_below(rng, 4);
    options->samples_per_work = (int64_t)ls_rng_below(rng, 9);
    options->batch_size = 1 + (int64_t)ls_rng_below(rng, 8);
    options->eval_interval = (int64_t)ls_rng_below(rng, 3) * 40 * LS_NS_PER_MS;
    options->collector_expiry =
        (int64_t)(1 + ls_rng_below(rng, 20)) * 50 * LS_NS_PER_MS;
    options->replay.capacity = 32 + ls_rng_below(rng, 32);
    options->replay.min_size_to_sample = 8;
    options->replay.staleness_limit = (int64_t)ls_rng_below(rng, 3) * 4;
    options->replay.max_times_sampled = ls_rng_below(rng, 4);
}

static void sweep(const struct world_faults *faults, double stop_value)
{
    static struct world world;
    const struct seeds seeds = seeds_of(keeps ? 20 : 50);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        world_create(&world, seed, ranks > 0 ? (size_t)ranks + 1 : 2, 3);
        world.faults = *faults;
        world.value_per_version = 10;
        world.options.stop_value = stop_value;
        world.options.eval_episodes = 2;
        world.options.eval_interval = 50 * LS_NS_PER_MS;
        world.options.split = split;
        world.options.replay.mode = split > 1 ? REPLAY_FIFO : REPLAY_PRIORITY;
        /* Half of them with a rate limiter, as tight as it may be. */
        world.options.replay.samples_per_insert = seed % 2 == 0 ? 2 : 0;
        world.options.ranks = ranks;
        if (ranks > 0)
            world.options.batch_size = 2 * ranks;
        if (any_options)
            choose_options(&world);
        world.options.keeps_samples = world.options.data_stays = keeps;
        world_begin(&world);
        world_run(&world);
        if (world.violation[0] != '\0')
            fail_msg("seed %lld, after %llu events and %u lives: %s; %s",
                     (long long)seed, (unsigned long long)world.events_run,
                     world.life, world.violation, world.last_warning);
        assert_int_equal(world.done_status, LS_OK);
        assert_true(world.iter <= world.options.iterations);
        if (isnan(stop_value))
            assert_int_equal(world.iter, world.options.iterations);
        if (isnan(stop_value) && !world.lossy && world.life == 1 &&
            faults->fail == 0) {
            assert_int_equal(world.infos, world.options.iterations + 1);
            assert_int_equal(world.done_infos, 1);
        }
        n_kept += world.kept;
        world_destroy(&world);
    }
}

TEST(delays_alone)
{
    sweep(&(struct world_faults){0}, NAN);
    sweep(&(struct world_faults){0}, 80);
}

TEST(100_iterations_bring_101_infos_and_one_is_done)
{
    static struct world world;
    struct fsm_figures figures;
    world_create(&world, 1, 1, 1);
    world.options.iterations = 100;
    world_begin(&world);
    world_run(&world);
    assert_string_equal(world.violation, "");
    fsm_figures(world.fsm, &figures);
    assert_int_equal(world.infos, 101);
    assert_int_equal(world.done_infos, 1);
    assert_int_equal(figures.infos, 101);
    assert_int_equal(figures.done_infos, 1);
    assert_int_equal(figures.learner_step, 100);
    assert_int_equal(figures.batches, 100);
    world_destroy(&world);
}

TEST(members_are_lost_and_come_back)
{
    sweep(&(struct world_faults){.lose = 8}, NAN);
    sweep(&(struct world_faults){.lose = 15}, 1000);
}

TEST(starts_are_refused_and_calls_fail)
{
    sweep(&(struct world_faults){.refuse = 300, .fail = 20}, NAN);
}

TEST(answers_are_none_or_never_come)
{
    sweep(&(struct world_faults){.garble = 100}, NAN);
    sweep(&(struct world_faults){.mute = 20}, NAN);
}

TEST(the_coordinator_is_killed_and_started_again)
{
    sweep(&(struct world_faults){.quit = 3}, NAN);
    sweep(&(struct world_faults){.quit = 3, .lose = 5}, 80);
}

TEST(members_take_their_master_for_lost)
{
    sweep(&(struct world_faults){.forget = 10}, NAN);
}

TEST(everything_at_once)
{
    sweep(&(struct world_faults){.lose = 5,
                                 .quit = 2,
                                 .refuse = 100,
                                 .fail = 10,
                                 .garble = 10,
                                 .mute = 5,
                                 .forget = 3},
          80);
}

TEST(trajectories_are_split)
{
    split = 2;
    sweep(&(struct world_faults){0}, NAN);
    sweep(&(struct world_faults){.lose = 5, .garble = 10, .quit = 1}, NAN);
    split = 1;
}

TEST(several_learners_do_a_work_together)
{
    ranks = 2;
    sweep(&(struct world_faults){.lose = 8}, NAN);
    ranks = 3;
    sweep(&(struct world_faults){.lose = 5,
                                 .quit = 2,
                                 .refuse = 100,
                                 .fail = 10,
                                 .garble = 10,
                                 .mute = 5,
                                 .forget = 3},
          80);
    keeps = true;
    n_kept = 0;
    sweep(&(struct world_faults){.lose = 5, .quit = 3, .decay = 50}, NAN);
    assert_true(n_kept > 0);
    keeps = false;
    ranks = 0;
}

TEST(any_options_with_any_faults)
{
    any_options = true;
    sweep(&(struct world_faults){0}, NAN);
    sweep(&(struct world_faults){.lose = 5,
                                 .quit = 2,
                                 .refuse = 100,
                                 .fail = 10,
                                 .garble = 10,
                                 .mute = 5,
                                 .forget = 3},
          NAN);
    split = 2;
    sweep(&(struct world_faults){.lose = 3, .quit = 1, .mute = 3}, 60);
    split = 1;
    any_options = false;
}

/* ---- samples that are kept ---------------------------------------------- */

TEST(samples_outlive_the_coordinator)
{
    keeps = any_options = true;
    n_kept = 0;
    sweep(&(struct world_faults){.quit = 3}, NAN);
    sweep(&(struct world_faults){.lose = 5,
                                 .quit = 2,
                                 .refuse = 100,
                                 .garble = 10,
                                 .forget = 3,
                                 .decay = 100},
          NAN);
    split = 2;
    sweep(&(struct world_faults){.lose = 3, .quit = 2, .mute = 3, .decay = 50},
          60);
    split = 1;
    keeps = any_options = false;
    assert_true(n_kept > 0);
}

/* An item is known by its number. */
struct kept {
    struct replay_item items[64];
    size_t n;
    struct replay_account account;
};

static int keep(void *self, const struct replay_item *item)
{
    struct kept *kept = self;
    assert_true(kept->n < 64);
    kept->items[kept->n++] = *item;
    return LS_OK;
}

static void look(const struct world *world, struct kept *out)
{
    const struct work *learner = fsm_buffer_owner(world->fsm);
    *out = (struct kept){.n = 0};
    if (learner == NULL)
        return;
    assert_ok(replay_each(learner->buffer, keep, out));
    replay_account(learner->buffer, &out->account);
}

static void are_alike(const struct kept *before, const struct kept *after)
{
    assert_int_equal(before->n, after->n);
    for (size_t i = 0; i < before->n; i++) {
        const struct replay_item *a = &before->items[i], *b = &after->items[i];
        assert_int_equal(a->number, b->number);
        assert_int_equal(a->slot, b->slot);
        assert_int_equal(a->n_sampled, b->n_sampled);
        assert_string_equal(a->sample.data_id, b->sample.data_id);
        assert_int_equal(a->sample.part, b->sample.part);
        assert_int_equal(a->sample.unroll_len, b->sample.unroll_len);
        assert_int_equal(a->sample.policy_version, b->sample.policy_version);
        assert_true(fabs(a->sample.priority - b->sample.priority) < 1e-6);
    }
    if (before->n == 0)
        return;
    assert_int_equal(before->account.next_number, after->account.next_number);
    assert_int_equal(before->account.figures.inserted,
                     after->account.figures.inserted);
    assert_int_equal(before->account.figures.sampled,
                     after->account.figures.sampled);
    assert_int_equal(before->account.figures.evicted_used,
                     after->account.figures.evicted_used);
    assert_int_equal(before->account.figures.evicted_overflow,
                     after->account.figures.evicted_overflow);
}

/* When nothing is left to be written. */
TEST(the_buffer_is_that_of_the_life_before)
{
    static struct world world;
    const struct seeds seeds = seeds_of(30);
    uint64_t seen = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        world_create(&world, seed, 2, 3);
        choose_options(&world);
        world.options.replay.mode =
            seed % 2 == 0 ? REPLAY_FIFO : REPLAY_PRIORITY;
        world.options.replay.samples_per_insert = seed % 3 == 0 ? 2 : 0;
        world.options.split = 1 + (int64_t)(seed / 2 % 2);
        world.options.keeps_samples = world.options.data_stays = true;
        world_begin(&world);
        for (int i = 0; world_step(&world); i++) {
            struct kept before, after;
            if (ls_rng_below(&world.rng, 40) != 0)
                continue;
            look(&world, &before);
            world_restart(&world);
            look(&world, &after);
            if (fsm_buffer_owner(world.fsm) != NULL)
                are_alike(&before, &after);
            seen += after.n;
        }
        assert_string_equal(world.violation, "");
        assert_int_equal(world.done_status, LS_OK);
        world_destroy(&world);
    }
    assert_true(seen > 0);
}
