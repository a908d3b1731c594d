/* Barriers whose members come, go and come back, under thousands of fault
 * schedules: the waits of all others go on. */
#include "barrier_play.h"
#include "test.h"

/* Unless somebody is wrongly declared lost, no wait fails. */
static void play_without_failure(struct plan plan, uint64_t n_seeds)
{
    static struct world world;
    const struct seeds seeds = seeds_of(n_seeds);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        plan.n = plan.fanout > 0 ? 5 + seed % 5 : 2 + seed % 8;
        play(&world, &plan, seed);
        if (world.violation[0] != '\0')
            fail_msg("seed %llu, %zu nodes: %s", (unsigned long long)seed,
                     plan.n, world.violation);
        if (world.failure[0] != '\0')
            fail_msg("seed %llu, %zu nodes: %s", (unsigned long long)seed,
                     plan.n, world.failure);
    }
}

static const struct plan rough_elastic = {
    .least = 1,
    .go_on = true,
    .retry = true,
    .waits = 8,
    .loss = 0.2,
    .twice = 0.2,
    .delay = 5 * WORLD_MS,
    .think = 20 * WORLD_MS,
    .late = 30 * WORLD_MS,
    .give_up_at = 300 * LS_NS_PER_S,
};

TEST(members_that_come_later_join_without_a_failure)
{
    struct plan plan = rough_elastic;
    plan.formed = 2;
    plan.least = 2;
    plan.late = 400 * WORLD_MS;
    play_without_failure(plan, 350);
    plan.go_on = false;
    play_without_failure(plan, 350);
    plan.fanout = 2;
    play_without_failure(plan, 350);
}

/* Two have found each other, and wait, before they know of the others. */
TEST(any_number_finds_together_without_a_failure)
{
    struct plan plan = rough_elastic;
    plan.go_on = false;
    plan.any = true;
    plan.formed = 2;
    play_without_failure(plan, 350);
    plan.late = 400 * WORLD_MS;
    play_without_failure(plan, 350);
    plan.fanout = 2;
    play_without_failure(plan, 350);
}

TEST(too_few_wait_for_the_others_without_a_failure)
{
    struct plan plan = rough_elastic;
    plan.go_on = false;
    plan.formed = 2;
    plan.least = 5;
    plan.fanout = 2; /* five at least */
    plan.late = 400 * WORLD_MS;
    play_without_failure(plan, 350);
    plan.go_on = true;
    play_without_failure(plan, 350);
}

TEST(the_others_go_on_without_the_lost)
{
    struct plan plan = rough_elastic;
    for (plan.crashes = 1; plan.crashes <= 3; plan.crashes++)
        play_without_failure(plan, 350);
    plan.fanout = 2;
    play_without_failure(plan, 350);
}

TEST(who_comes_back_is_counted_again)
{
    struct plan plan = rough_elastic;
    plan.crashes = 2;
    plan.restart = true;
    play_without_failure(plan, 350);
    plan.fanout = 2;
    play_without_failure(plan, 350);
}

TEST(within_the_grace_a_restart_fails_no_wait)
{
    struct plan plan = rough_elastic;
    plan.least = 0;
    plan.go_on = false;
    plan.grace = 10 * LS_NS_PER_S;
    plan.crashes = 1;
    plan.restart = true;
    play_without_failure(plan, 350);
}

TEST(deadlines_and_aborts_do_not_stop_those_who_go_on)
{
    struct plan plan = rough_elastic;
    plan.crashes = 1;
    plan.restart = true;
    plan.aborts = 3;
    plan.deadline = 400 * WORLD_MS;
    play_all(plan, 350);
    plan.fanout = 2;
    play_all(plan, 350);
}

TEST(a_false_alarm_does_not_stop_those_who_go_on)
{
    struct plan plan = rough_elastic;
    plan.false_lost = true;
    play_all(plan, 350);
    plan.crashes = 1;
    play_all(plan, 350);
    plan.fanout = 2;
    play_all(plan, 350);
}
