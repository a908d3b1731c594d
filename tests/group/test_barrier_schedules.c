/* The barrier under thousands of fault schedules, each from its seed. */
#include "barrier_play.h"
#include "base/covered.h"
#include "test.h"

TEST(all_leave_every_epoch_whatever_the_network_does)
{
    play_all(rough, 700);
}

TEST(one_crash_leaves_the_others_agreed)
{
    struct plan plan = rough;
    plan.crashes = 1;
    play_all(plan, 600);
}

TEST(two_crashes_leave_the_others_agreed)
{
    struct plan plan = rough;
    plan.crashes = 2;
    play_all(plan, 600);
}

TEST(any_number_of_crashes_leave_the_others_agreed)
{
    struct plan plan = rough;
    plan.crashes = 5;
    plan.waits = 3;
    play_all(plan, 600);
}

TEST(a_crash_among_busy_nodes_leaves_them_agreed)
{
    struct plan plan = rough;
    plan.crashes = 1;
    plan.think = 0;
    plan.waits = 10;
    plan.late = 10 * WORLD_MS;
    plan.delay = LS_NS_PER_MS / 2;
    play_all(plan, 600);
}

TEST(a_restarted_node_joins_at_the_next_epoch)
{
    struct plan plan = rough;
    plan.crashes = 1;
    plan.restart = true;
    plan.retry = true;
    play_all(plan, 350);
}

TEST(two_restarts_do_not_stop_the_world)
{
    struct plan plan = rough;
    plan.crashes = 2;
    plan.restart = true;
    plan.retry = true;
    play_all(plan, 350);
}

TEST(a_false_alarm_breaks_no_promise_but_agreement)
{
    struct plan plan = rough;
    plan.false_lost = true;
    plan.retry = true;
    play_all(plan, 350);
}

TEST(a_false_alarm_beside_a_crash_does_not_stop_them)
{
    struct plan plan = rough;
    plan.false_lost = true;
    plan.crashes = 1;
    plan.restart = true;
    plan.retry = true;
    play_all(plan, 350);
}

TEST(aborts_and_deadlines_do_not_stop_the_world)
{
    struct plan plan = rough;
    plan.aborts = 4;
    plan.deadline = 400 * WORLD_MS;
    plan.retry = true;
    play_all(plan, 350);
}

TEST(a_deadline_is_a_timeout_for_all)
{
    struct plan plan = rough;
    plan.deadline = 100 * WORLD_MS;
    plan.retry = true;
    plan.alike = true;
    play_all(plan, 1000);
}

TEST(many_nodes_with_a_few_messages_each)
{
    static struct world world;
    const struct plan plan = {.n = WORLD_NODES_MAX,
                              .waits = 20,
                              .delay = WORLD_MS,
                              .give_up_at = 60 * LS_NS_PER_S};
    play(&world, &plan, 1);
    assert_string_equal(world.violation, "");
    /* Request, ready, ack, leave; and none of them twice. */
    assert_true(world.n_sent <= 20 * 4 * (WORLD_NODES_MAX - 1));
    assert_true(world.n_sent >= 19 * 4 * (WORLD_NODES_MAX - 1));
}

/* After those above. No world here has a tree, is elastic, or withdraws. */
TEST(the_schedules_took_every_transition)
{
    static const enum ls_transition elsewhere[] = {
        LS_TAKES_BARRIER_BY_TREE, LS_TAKES_BARRIER_TREE_QUIT,
        LS_TAKES_BARRIER_AGAIN,   LS_TAKES_BARRIER_ABSENT,
        LS_TAKES_BARRIER_SHORT,   LS_TAKES_BARRIER_WITHDRAWN};
    covered_check("barrier", elsewhere, sizeof elsewhere / sizeof *elsewhere);
}

int main(void)
{
    covered_begin();
    return tests_run();
}
