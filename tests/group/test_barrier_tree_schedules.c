/* The barrier in a tree, under thousands of fault schedules. */
#include "barrier_play.h"
#include "test.h"

/* Two stand below each: the tree has three levels at least. */
static const struct plan rough_tree = {
    .fanout = 2,
    .waits = 6,
    .loss = 0.2,
    .twice = 0.2,
    .delay = 5 * WORLD_MS,
    .think = 20 * WORLD_MS,
    .late = 30 * WORLD_MS,
    .give_up_at = 300 * LS_NS_PER_S,
};

TEST(all_leave_every_epoch_through_a_tree)
{
    play_all(rough_tree, 1000);
}

TEST(crashes_in_a_tree_leave_the_others_agreed)
{
    struct plan plan = rough_tree;
    for (plan.crashes = 1; plan.crashes <= 4; plan.crashes++)
        play_all(plan, 500);
}

TEST(a_crash_in_a_busy_tree_leaves_the_others_agreed)
{
    struct plan plan = rough_tree;
    plan.crashes = 2;
    plan.think = 0;
    plan.waits = 10;
    plan.late = 10 * WORLD_MS;
    plan.delay = LS_NS_PER_MS / 2;
    play_all(plan, 500);
}

/* Of those who crash, and then also of one that is only held for lost. */
static void play_restarts(struct plan plan, uint64_t n)
{
    plan.restart = true;
    plan.retry = true;
    plan.crashes = 2;
    play_all(plan, n);
    plan.false_lost = true;
    plan.crashes = 1;
    play_all(plan, n);
}

TEST(restarts_and_false_alarms_do_not_stop_a_tree)
{
    play_restarts(rough_tree, 350);
}

TEST(aborts_and_deadlines_do_not_stop_a_tree)
{
    struct plan plan = rough_tree;
    plan.aborts = 4;
    plan.deadline = 400 * WORLD_MS;
    plan.retry = true;
    play_all(plan, 350);
}

/* On two hosts or three; on some seeds all are on one. */
TEST(members_of_several_hosts_agree)
{
    struct plan plan = rough_tree;
    for (plan.hosts = 2; plan.hosts <= 3; plan.hosts++) {
        for (plan.fanout = 0; plan.fanout <= 2; plan.fanout++) {
            plan.crashes = 0;
            play_all(plan, 150);
            plan.crashes = 2;
            play_all(plan, 150);
        }
    }
}

TEST(restarts_and_false_alarms_do_not_stop_members_of_several_hosts)
{
    struct plan plan = rough_tree;
    plan.fanout = 0;
    plan.hosts = 2;
    play_restarts(plan, 200);
}

TEST(a_deadline_among_several_hosts_is_a_timeout_for_all)
{
    struct plan plan = rough_tree;
    plan.fanout = 0;
    plan.hosts = 3;
    plan.deadline = 100 * WORLD_MS;
    plan.retry = true;
    plan.alike = true;
    play_all(plan, 250);
}

TEST(a_tree_needs_no_more_messages_than_a_leader)
{
    static struct world world;
    const struct plan plan = {.n = WORLD_NODES_MAX,
                              .fanout = 4,
                              .waits = 20,
                              .delay = WORLD_MS,
                              .give_up_at = 60 * LS_NS_PER_S};
    play(&world, &plan, 1);
    assert_string_equal(world.violation, "");
    assert_true(world.n_sent <= 20 * 4 * (WORLD_NODES_MAX - 1));
    assert_true(world.n_sent >= 19 * 4 * (WORLD_NODES_MAX - 1));
}

TEST(a_deadline_in_a_tree_is_a_timeout_for_all)
{
    struct plan plan = rough_tree;
    plan.deadline = 100 * WORLD_MS;
    plan.retry = true;
    plan.alike = true;
    play_all(plan, 500);
}
