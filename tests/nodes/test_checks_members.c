/* What the checks say to stories that three members tell: each promise broken
 * once, and what is excused. */
#include "checks_world.h"

#include "role_member.h"
#include "test.h"

#define JOB                                                                    \
    "nodes: [{role: member, count: 3}]\n"                                      \
    "barrier: {timeout_ms: 10000}\n"

static void enters(struct world *world, size_t i)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    watch->entering(watch->self, 100 + i);
}

static void leaves(struct world *world, size_t i, uint64_t epoch)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    const struct ls_barrier_epoch_info info = {.epoch = epoch};
    watch->ended(watch->self, LS_OK, &info);
}

static void fails(struct world *world, size_t i)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    watch->ended(watch->self, ls_error(LS_ELOST, "node 1 was lost"), NULL);
}

static void sees(struct world *world, size_t i, size_t other,
                 enum ls_member_state state)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    const struct ls_member member = {
        .id = (uint32_t)other, .incarnation = 100 + other, .state = state};
    watch->member(watch->self, &member);
}

static void emits(struct world *world, size_t i, uint64_t number)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    watch->emitting(watch->self, 100 + i, number);
    watch->emitted(watch->self, number);
}

static void gets(struct world *world, size_t i, size_t from, uint64_t number)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    const struct ls_event event = {.origin = (uint32_t)from,
                                   .incarnation = 100 + from};
    watch->heard(watch->self, &event, number);
}

static void all_go_through(struct world *world, uint64_t epoch)
{
    for (size_t i = 0; i < 3; i++)
        enters(world, i);
    for (size_t i = 0; i < 3; i++)
        leaves(world, i, epoch);
}

/* Node 0 emits three events, and knows node 1 from the beginning. */
static void three_are_emitted(struct world *world)
{
    all_go_through(world, 0);
    sees(world, 0, 1, LS_MEMBER_READY);
    for (uint64_t number = 1; number <= 3; number++)
        emits(world, 0, number);
}

static void judge(void (*story)(void *world), const char *says)
{
    judge_job(JOB, story, says);
}

static void all_is_well(void *arg)
{
    for (uint64_t epoch = 0; epoch < 5; epoch++)
        all_go_through(arg, epoch);
}

TEST(epochs_that_all_leave_are_fine)
{
    judge(all_is_well, NULL);
}

static void one_has_not_entered(void *arg)
{
    all_go_through(arg, 0);
    enters(arg, 0);
    enters(arg, 1);
    leaves(arg, 0, 1);
}

TEST(leaving_before_another_entered_is_early)
{
    judge(one_has_not_entered,
          "early: node 0 left epoch 1 before node 2 had entered it");
}

static void one_is_in_the_epoch_before(void *arg)
{
    for (size_t i = 0; i < 3; i++)
        enters(arg, i);
    leaves(arg, 0, 0);
    enters(arg, 0);
    leaves(arg, 1, 0);
    enters(arg, 1);
    leaves(arg, 0, 1); /* node 2 is still in epoch 0 */
    leaves(arg, 2, 0);
    passes(arg, 10);
}

TEST(leaving_while_another_is_in_the_epoch_before)
{
    judge(one_is_in_the_epoch_before, "early: node 0 left epoch 1 while node 2 "
                                      "was in epoch 0");
}

static void one_fails_alone(void *arg)
{
    for (size_t i = 0; i < 3; i++)
        enters(arg, i);
    leaves(arg, 0, 0);
    leaves(arg, 1, 0);
    fails(arg, 2);
    passes(arg, 10);
}

TEST(failing_alone_breaks_all)
{
    judge(one_fails_alone, "all: node 0 left epoch 0, and node 2 failed in it");
}

static void one_failed_before_the_others_left(void *arg)
{
    for (size_t i = 0; i < 3; i++)
        enters(arg, i);
    fails(arg, 2);
    leaves(arg, 0, 0);
    leaves(arg, 1, 0);
    passes(arg, 10);
}

TEST(having_failed_alone_breaks_all)
{
    judge(one_failed_before_the_others_left,
          "all: node 0 left epoch 0, and node 2 failed in it");
}

static void all_fail(void *arg)
{
    for (size_t i = 0; i < 3; i++)
        enters(arg, i);
    for (size_t i = 0; i < 3; i++)
        fails(arg, i);
    all_go_through(arg, 1);
    passes(arg, 10);
}

TEST(failing_together_is_fine)
{
    judge(all_fail, NULL);
}

static void one_names_nobody(void *arg)
{
    struct world *world = arg;
    const struct member_watch *watch = checks_watch(world->lives[0]).member;
    enters(world, 0);
    watch->ended(watch->self, ls_error(LS_ELOST, "it went wrong"), NULL);
}

TEST(an_error_must_name_who_it_was)
{
    judge(one_names_nobody, "named: node 0 failed by another");
}

static void one_is_held_for_lost(void *arg)
{
    struct world *world = arg;
    for (size_t i = 0; i < 3; i++)
        enters(world, i);
    sees(world, 0, 2, LS_MEMBER_LOST);
    leaves(world, 0, 0);
    leaves(world, 1, 0);
    fails(world, 2);
    sees(world, 0, 2, LS_MEMBER_READY);
    passes(world, 10);
    assert_int_equal(checks_figures(world->checks).mistakes, 1);
    assert_int_equal(checks_figures(world->checks).excused, 1);
}

TEST(a_mistake_excuses_an_epoch)
{
    judge(one_is_held_for_lost, NULL);
}

static void a_mistake_is_over(void *arg)
{
    sees(arg, 0, 2, LS_MEMBER_LOST);
    passes(arg, 1);
    sees(arg, 0, 2, LS_MEMBER_READY);
    passes(arg, 10);
    one_fails_alone(arg);
}

TEST(a_mistake_of_before_excuses_nothing)
{
    judge(a_mistake_is_over, "all: node 0 left epoch 0");
}

static void a_mistake_ends_with_whom_it_is_of(void *arg)
{
    struct world *world = arg;
    all_go_through(world, 0);
    sees(world, 0, 2, LS_MEMBER_LOST);
    checks_killed(world->lives[2]);
    assert_ok(
        checks_begin(world->checks, &world->lives[2], 2, world->hosts[2]));
    passes(world, 10);
    for (size_t i = 0; i < 3; i++)
        enters(world, i);
    leaves(world, 0, 1);
    leaves(world, 2, 1);
    fails(world, 1);
    passes(world, 10);
}

static void another_life_takes_a_mistake_back(void *arg)
{
    struct world *world = arg;
    sees(world, 0, 2, LS_MEMBER_LOST);
    checks_ended(world->lives[0]);
    assert_ok(
        checks_begin(world->checks, &world->lives[0], 0, world->hosts[0]));
    passes(world, 10);
    one_fails_alone(world); /* the new life has not met node 2 yet */
    sees(world, 0, 2, LS_MEMBER_READY);
    passes(world, 10);
    all_go_through(world, 1);
    enters(world, 0);
    enters(world, 1);
    enters(world, 2);
    leaves(world, 0, 2);
    leaves(world, 1, 2);
    fails(world, 2);
    passes(world, 10);
}

TEST(a_mistake_lasts_as_long_as_it_can_matter)
{
    judge(a_mistake_ends_with_whom_it_is_of,
          "all: node 0 left epoch 1, and node 1 failed in it");
    judge(another_life_takes_a_mistake_back,
          "all: node 0 left epoch 2, and node 2 failed in it");
}

static void one_does_not_end(void *arg)
{
    struct world *world = arg;
    all_go_through(world, 0);
    checks_ended(world->lives[0]);
    checks_ended(world->lives[2]);
    passes(world, 15);
    checks_straggled(world->checks);
}

static void one_waits_for_who_is_done(void *arg)
{
    struct world *world = arg;
    all_go_through(world, 0);
    enters(world, 1);
    checks_ended(world->lives[0]);
    checks_ended(world->lives[2]);
    passes(world, 11);
    checks_straggled(world->checks);
    fails(world, 1);
}

TEST(who_left_the_last_epoch_ends)
{
    judge(one_does_not_end,
          "bound: node 1 left the last epoch and does not end");
    judge(one_waits_for_who_is_done, NULL);
}

static void one_dies_inside(void *arg)
{
    struct world *world = arg;
    sees(world, 0, 2, LS_MEMBER_READY);
    sees(world, 1, 2, LS_MEMBER_READY);
    for (size_t i = 0; i < 3; i++)
        enters(world, i);
    checks_killed(world->lives[2]);
    sees(world, 0, 2, LS_MEMBER_LOST);
    leaves(world, 0, 0);
    leaves(world, 1, 0);
    fails(world, 2); /* nobody sees that */
    passes(world, 20);
    assert_int_equal(checks_figures(world->checks).mistakes, 0);
}

/* Node 0 stands still from before node 2 dies to long after, and enters before
 * it looks. */
static void one_dies_inside_and_another_does_not_see_it(void *arg)
{
    struct world *world = arg;
    sees(world, 0, 2, LS_MEMBER_READY);
    sees(world, 0, 2, LS_MEMBER_LOST);
    sees(world, 0, 2, LS_MEMBER_READY); /* again, as after a cut */
    enters(world, 2);
    ls_host_pause(world->hosts[0]);
    checks_killed(world->lives[2]);
    passes(world, 10);
    ls_host_resume(world->hosts[0]);
    enters(world, 0);
    sees(world, 0, 2, LS_MEMBER_LOST);
    enters(world, 1);
    leaves(world, 0, 0);
}

static void one_dies_inside_and_another_knows(void *arg)
{
    struct world *world = arg;
    sees(world, 0, 2, LS_MEMBER_READY);
    enters(world, 1);
    enters(world, 2);
    checks_killed(world->lives[2]);
    passes(world, 1);
    sees(world, 0, 2, LS_MEMBER_LOST);
    passes(world, 1);
    enters(world, 0);
    leaves(world, 0, 0);
}

TEST(one_killed_inside_is_excused)
{
    judge(one_dies_inside, NULL);
    judge(one_dies_inside_and_another_does_not_see_it, NULL);
    judge(one_dies_inside_and_another_knows,
          "early: node 0 left epoch 0 before node 2 had entered it");
}

static void one_dies_outside(void *arg)
{
    struct world *world = arg;
    all_go_through(world, 0);
    checks_killed(world->lives[2]);
    enters(world, 0);
    enters(world, 1);
    leaves(world, 0, 1);
}

TEST(leaving_without_one_killed_before_is_early)
{
    judge(one_dies_outside, "early: node 0 left epoch 1 before node 2");
}

static void one_waits_for_ever(void *arg)
{
    enters(arg, 1);
    passes(arg, 8);
    passes(arg, 8);
    fails(arg, 1);
}

TEST(a_wait_past_its_deadline_breaks_the_bound)
{
    judge(one_waits_for_ever, "bound: node 1 has waited for 12.0");
}

static void one_waits_while_paused(void *arg)
{
    struct world *world = arg;
    enters(world, 1);
    ls_host_pause(world->hosts[1]);
    passes(world, 30);
    ls_host_resume(world->hosts[1]);
    checks_resumed(world->lives[1]);
    fails(world, 1);
    passes(world, 1);
}

TEST(who_is_paused_may_wait)
{
    judge(one_waits_while_paused, NULL);
}

static void one_waits_while_its_clock_stands(void *arg)
{
    struct world *world = arg;
    enters(world, 1);
    checks_clock_set(world->lives[1], -30 * LS_NS_PER_S);
    passes(world, 30);
    fails(world, 1);
}

static void one_waits_for_ever_with_its_clock_set_back(void *arg)
{
    struct world *world = arg;
    enters(world, 1);
    checks_clock_set(world->lives[1], -30 * LS_NS_PER_S);
    passes(world, 43);
}

static void clocks_stand(void *arg)
{
    struct world *world = arg;
    const int64_t now = ls_simulation_now(world->simulation);
    assert_int_equal(checks_all_move_at(world->checks), now);
    checks_clock_set(world->lives[1], -30 * LS_NS_PER_S);
    checks_clock_set(world->lives[2], -50 * LS_NS_PER_S);
    assert_int_equal(checks_all_move_at(world->checks), now + 50 * LS_NS_PER_S);
    checks_ended(world->lives[2]);
    assert_int_equal(checks_all_move_at(world->checks), now + 30 * LS_NS_PER_S);
    checks_killed(world->lives[1]);
    assert_int_equal(checks_all_move_at(world->checks), now);
}

/* A job is late only after that. */
TEST(it_is_known_when_the_clocks_of_all_go_on)
{
    judge(clocks_stand, NULL);
}

TEST(whose_clock_stands_may_wait)
{
    judge(one_waits_while_its_clock_stands, NULL);
    judge(one_waits_for_ever_with_its_clock_set_back,
          "bound: node 1 has waited for 42.0");
}

static void pauses(struct world *world, size_t i, int64_t seconds)
{
    ls_host_pause(world->hosts[i]);
    checks_paused(world->lives[i]);
    passes(world, seconds);
    ls_host_resume(world->hosts[i]);
    checks_resumed(world->lives[i]);
}

static void holds_for_silent(struct world *world, size_t i, size_t other)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    const struct ls_member member = {.id = (uint32_t)other,
                                     .incarnation = 100 + other,
                                     .state = LS_MEMBER_LOST,
                                     .reason = LS_ETIMEDOUT};
    watch->member(watch->self, &member);
}

static void one_blames_its_own_pause(void *arg)
{
    all_go_through(arg, 0);
    pauses(arg, 1, 2);
    holds_for_silent(arg, 1, 2);
}

static void one_is_paused_too_briefly_to_notice(void *arg)
{
    all_go_through(arg, 0);
    pauses(arg, 1, 1);
    holds_for_silent(arg, 1, 2);
}

static void its_clock_is_set(void *arg, int64_t by_s)
{
    struct world *world = arg;
    all_go_through(arg, 0);
    checks_paused(world->lives[1]);
    checks_clock_set(world->lives[1], by_s * LS_NS_PER_S);
    passes(arg, 2);
    checks_resumed(world->lives[1]);
    holds_for_silent(arg, 1, 2);
}

static void its_clock_is_set_back(void *arg)
{
    its_clock_is_set(arg, -1);
}

static void its_clock_is_set_ahead(void *arg)
{
    its_clock_is_set(arg, 1);
}

TEST(a_pause_that_its_clock_does_not_show_may_go_unnoticed)
{
    judge(one_is_paused_too_briefly_to_notice, NULL);
    judge(its_clock_is_set_back, NULL);
    judge(its_clock_is_set_ahead, "stall: node 1 was paused for 2.000 s, and "
                                  "holds node 2 for silent since");
}

TEST(a_pause_of_its_own_is_no_silence_of_others)
{
    judge(one_blames_its_own_pause, "stall: node 1 was paused for 2.000 s, and "
                                    "holds node 2 for silent since");
}

static void one_is_told_after_a_pause(void *arg)
{
    all_go_through(arg, 0);
    holds_for_silent(arg, 0, 2);
    pauses(arg, 1, 2);
    holds_for_silent(arg, 1, 2);
}

static void one_hears_nobody_after_a_pause(void *arg)
{
    all_go_through(arg, 0);
    pauses(arg, 1, 2);
    passes(arg, 2);
    holds_for_silent(arg, 1, 2);
}

TEST(who_is_told_or_waited_may_hold_others_for_silent)
{
    judge(one_is_told_after_a_pause, NULL);
    judge(one_hears_nobody_after_a_pause, NULL);
}

static void nobody_gets_through(void *arg)
{
    struct world *world = arg;
    all_go_through(arg, 0);
    checks_quiet(world->checks);
    passes(arg, 5);
    all_go_through(arg, 1);
    for (int i = 0; i < 5; i++) { /* no wait is too long */
        passes(arg, 2);
        enters(arg, 0);
        fails(arg, 0);
    }
}

TEST(after_the_last_fault_somebody_gets_through)
{
    judge(nobody_gets_through, "bound: nobody has left an epoch for 8.0 s");
}

static void nobody_gets_through_while_a_clock_stands(void *arg)
{
    struct world *world = arg;
    all_go_through(arg, 0);
    checks_clock_set(world->lives[2], -15 * LS_NS_PER_S);
    checks_quiet(world->checks);
    passes(arg, 20);
    all_go_through(arg, 1);
}

TEST(nobody_gets_through_while_a_clock_that_was_set_back_stands)
{
    judge(nobody_gets_through_while_a_clock_stands, NULL);
}

static void nobody_has_to(void *arg)
{
    struct world *world = arg;
    all_go_through(arg, 0);
    passes(arg, 20); /* there are faults to come */
    checks_quiet(world->checks);
    all_go_through(arg, 1);
    checks_done(world->checks);
    passes(arg, 20);
}

TEST(before_that_and_after_the_end_nobody_has_to)
{
    judge(nobody_has_to, NULL);
}

static void finds_no_room(struct world *world, size_t i)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    (void)ls_error(LS_EAGAIN, "node 2 has no room for it");
    watch->blocked(watch->self);
}

static void an_emit_finds_no_room(void *arg)
{
    passes(arg, 11);
    finds_no_room(arg, 1);
}

static void an_emit_finds_no_room_after_a_pause(void *arg)
{
    pauses(arg, 1, 11);
    finds_no_room(arg, 1);
}

TEST(an_emit_that_finds_no_room_breaks_the_bound)
{
    judge(an_emit_finds_no_room, "bound: node 1: node 2 has no room for it");
    judge(an_emit_finds_no_room_after_a_pause, NULL);
}

static void events_come_once(void *arg)
{
    struct world *world = arg;
    three_are_emitted(world);
    for (uint64_t number = 1; number <= 3; number++)
        gets(world, 1, 0, number);
    assert_int_equal(checks_figures(world->checks).events, 3);
    passes(world, 10);
}

TEST(events_in_order_are_fine)
{
    judge(events_come_once, NULL);
}

static void an_event_comes_twice(void *arg)
{
    three_are_emitted(arg);
    gets(arg, 1, 0, 1);
    gets(arg, 1, 0, 2);
    gets(arg, 1, 0, 2);
}

TEST(an_event_that_comes_twice_is_told)
{
    judge(an_event_comes_twice,
          "events: node 1 got event 2 of node 0 after event 2");
}

static void an_event_is_missed(void *arg)
{
    three_are_emitted(arg);
    gets(arg, 1, 0, 1);
    gets(arg, 1, 0, 3);
    passes(arg, 10);
}

TEST(an_event_that_is_missed_is_told)
{
    judge(an_event_is_missed,
          "events: node 1 got event 3 of node 0, and never event 2");
}

static void the_first_event_is_missed(void *arg)
{
    three_are_emitted(arg);
    gets(arg, 1, 0, 2);
    gets(arg, 1, 0, 3);
    passes(arg, 10);
}

TEST(the_first_event_may_not_be_missed)
{
    judge(the_first_event_is_missed,
          "events: node 1 got event 2 of node 0, and never event 1");
}

/* A node ends, and has counted what others missed of it. */
static void quits(struct world *world, size_t i, size_t receiver,
                  uint64_t unacknowledged)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    struct ls_node_loss loss = {.sender = (uint32_t)i,
                                .receiver = (uint32_t)receiver,
                                .unacknowledged = unacknowledged};
    (void)snprintf(loss.event, sizeof loss.event, "%s", MEMBER_EVENT);
    watch->quitting(watch->self, &loss, 1);
}

/* Node 1 ends, without the last event, and node 0 right after it. */
static void the_last_event_is_missed(void *arg, int64_t seconds,
                                     uint64_t counted)
{
    three_are_emitted(arg);
    sees(arg, 1, 0, LS_MEMBER_READY);
    gets(arg, 1, 0, 1);
    gets(arg, 1, 0, 2);
    passes(arg, seconds);
    quits(arg, 1, 0, 0);
    quits(arg, 0, 1, counted);
}

static void it_is_not_counted(void *arg)
{
    the_last_event_is_missed(arg, 3, 0);
}

static void it_is_counted(void *arg)
{
    the_last_event_is_missed(arg, 3, 1);
}

static void it_is_overdue(void *arg)
{
    the_last_event_is_missed(arg, 11, 1);
}

static void it_is_overdue_as_nobody_could_move(void *arg)
{
    struct world *world = arg;
    three_are_emitted(world);
    sees(world, 1, 0, LS_MEMBER_READY);
    gets(world, 1, 0, 1);
    checks_paused(world->lives[0]);
    passes(world, 11);
    checks_resumed(world->lives[0]);
    quits(world, 1, 0, 0);
    quits(world, 0, 1, 2);
}

/* Half of all messages are lost: so it may take longer. */
static void half_are_lost(void *arg, int64_t seconds)
{
    struct world *world = arg;
    const struct ls_network_path path = {.loss = 0.5};
    assert_ok(ls_network_shape(world->network, NULL, NULL, &path));
    the_last_event_is_missed(arg, seconds, 1);
}

static void it_is_late(void *arg)
{
    half_are_lost(arg, 11);
}

static void it_is_late_for_too_long(void *arg)
{
    half_are_lost(arg, 20);
}

static void a_listener_was_killed(void *arg)
{
    struct world *world = arg;
    three_are_emitted(world);
    sees(world, 1, 0, LS_MEMBER_READY);
    passes(world, 10);
    checks_killed(world->lives[1]);
    quits(world, 0, 1, 0);
}

TEST(the_last_event_may_not_be_missed)
{
    judge(it_is_not_counted,
          "events: node 1 missed 1 events of node 0, which counts 0");
    judge(it_is_counted, NULL);
    judge(it_is_overdue,
          "events: node 1 never got event 3 of node 0, the first of 1 that it "
          "missed");
    judge(it_is_overdue_as_nobody_could_move, NULL);
    judge(it_is_late, NULL);
    judge(it_is_late_for_too_long,
          "events: node 1 never got event 3 of node 0, the first of 1 that it "
          "missed");
    judge(a_listener_was_killed, NULL);
}

/* Two of the three events never came to node 1, which is gone. */
static void two_are_lost(void *arg, uint64_t counted)
{
    struct world *world = arg;
    three_are_emitted(world);
    gets(world, 1, 0, 1);
    passes(world, 1);
    checks_killed(world->lives[1]);
    sees(world, 0, 1, LS_MEMBER_LOST);
    quits(world, 0, 1, counted);
}

static void two_are_lost_and_counted(void *arg)
{
    two_are_lost(arg, 2);
}

static void two_are_lost_and_one_is_counted(void *arg)
{
    two_are_lost(arg, 1);
}

TEST(what_is_lost_with_a_listener_is_counted)
{
    judge(two_are_lost_and_counted, NULL);
    judge(two_are_lost_and_one_is_counted,
          "events: node 1 missed 2 events of node 0, which counts 1");
}

static void one_was_not_emitted(void *arg)
{
    struct world *world = arg;
    const struct member_watch *watch = checks_watch(world->lives[0]).member;
    all_go_through(world, 0);
    sees(world, 0, 1, LS_MEMBER_READY);
    emits(world, 0, 1);
    watch->emitting(watch->self, 100, 2);
    emits(world, 0, 3);
    gets(world, 1, 0, 1);
    gets(world, 1, 0, 3);
    passes(world, 10);
}

TEST(an_emit_that_failed_is_missed_by_nobody)
{
    judge(one_was_not_emitted, NULL);
}

/* Node 1 is killed, and nobody knows it yet when node 0 emits one more. */
static void one_waits_for_room(void *arg, bool until_it_is_lost)
{
    struct world *world = arg;
    const struct member_watch *watch = checks_watch(world->lives[0]).member;
    all_go_through(world, 0);
    sees(world, 0, 1, LS_MEMBER_READY);
    watch->emitting(watch->self, 100, 1);
    checks_killed(world->lives[1]);
    if (!until_it_is_lost)
        watch->emitted(watch->self, 1);
    passes(world, 1);
    sees(world, 0, 1, LS_MEMBER_LOST);
    if (until_it_is_lost)
        watch->emitted(watch->self, 1);
    quits(world, 0, 1, 0);
}

/* Node 0 emits as one member, and has become another when it first enters. */
static void it_rejoins_before_it_enters(void *arg)
{
    struct world *world = arg;
    const struct member_watch *watch = checks_watch(world->lives[0]).member;
    enters(world, 1);
    fails(world, 1);
    sees(world, 0, 1, LS_MEMBER_READY);
    emits(world, 0, 1);
    gets(world, 1, 0, 1);
    passes(world, 1);
    sees(world, 0, 1, LS_MEMBER_LOST);
    passes(world, 10);
    watch->entering(watch->self, 200);
    quits(world, 0, 1, 0);
    quits(world, 1, 0, 0);
}

TEST(what_was_emitted_before_it_rejoined_is_not_judged)
{
    judge(it_rejoins_before_it_enters, NULL);
}

static void one_waits_until_its_listener_is_lost(void *arg)
{
    one_waits_for_room(arg, true);
}

static void one_is_emitted_before(void *arg)
{
    one_waits_for_room(arg, false);
}

TEST(who_is_lost_while_an_emit_waits_may_miss_it)
{
    judge(one_waits_until_its_listener_is_lost, NULL);
    judge(one_is_emitted_before,
          "events: node 1 missed 1 events of node 0, which counts 0");
}

static void somebody_else_is_held_for_lost(void *arg)
{
    three_are_emitted(arg);
    sees(arg, 2, 0, LS_MEMBER_LOST);
    gets(arg, 1, 0, 1);
    gets(arg, 1, 0, 3);
    passes(arg, 10);
}

TEST(a_mistake_of_others_excuses_no_event)
{
    judge(somebody_else_is_held_for_lost,
          "events: node 1 got event 3 of node 0, and never event 2");
}

static void an_event_is_missed_by_one_held_for_lost(void *arg)
{
    three_are_emitted(arg);
    gets(arg, 1, 0, 1);
    sees(arg, 0, 1, LS_MEMBER_LOST);
    gets(arg, 1, 0, 3);
    passes(arg, 10);
}

TEST(who_is_held_for_lost_may_miss_one)
{
    judge(an_event_is_missed_by_one_held_for_lost, NULL);
}

static void an_event_is_missed_before_it_is_a_member(void *arg)
{
    struct world *world = arg;
    all_go_through(world, 0);
    for (uint64_t number = 1; number <= 3; number++)
        emits(world, 0, number);
    gets(world, 1, 0, 1);
    gets(world, 1, 0, 3);
    passes(world, 10);
}

TEST(who_is_no_member_yet_may_miss_one)
{
    judge(an_event_is_missed_before_it_is_a_member, NULL);
}

static void enters_in_vain(struct world *world, size_t i, unsigned lost)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    enters(world, i);
    watch->ended(
        watch->self,
        ls_error(LS_ELOST, "barrier \"x\", epoch 1: node %u was lost", lost),
        NULL);
}

/* Nodes 0 and 1 have long known each other, and fail in epoch 1. */
static void two_fail(struct world *world, unsigned one, unsigned other)
{
    enters_in_vain(world, 0, one);
    enters_in_vain(world, 1, other);
    passes(world, 10);
}

static void two_know_each_other(struct world *world)
{
    passes(world, 10); /* since all began */
    all_go_through(world, 0);
    sees(world, 0, 1, LS_MEMBER_READY);
    sees(world, 0, 2, LS_MEMBER_READY);
    sees(world, 1, 0, LS_MEMBER_READY);
    passes(world, 10);
}

/* The next life of node 2 is ready. */
static void meets_the_next(struct world *world, size_t i)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    const struct ls_member member = {
        .id = 2, .incarnation = 202, .state = LS_MEMBER_READY};
    watch->member(watch->self, &member);
}

static void two_name_the_same(void *arg)
{
    two_know_each_other(arg);
    two_fail(arg, 2, 2);
}

static void two_name_different_ones(void *arg)
{
    two_know_each_other(arg);
    two_fail(arg, 2, 5);
}

static void two_name_different_ones_of_two(void *arg)
{
    struct world *world = arg;
    struct check_life *again;
    two_know_each_other(world);
    checks_killed(world->lives[2]);
    assert_ok(checks_begin(world->checks, &again, 2, world->hosts[2]));
    two_fail(world, 2, 5);
}

/* It went and came back before they entered, but after their last wait. */
static void two_name_different_ones_of_two_before(void *arg)
{
    struct world *world = arg;
    struct check_life *again;
    two_know_each_other(world);
    checks_killed(world->lives[2]);
    assert_ok(checks_begin(world->checks, &again, 2, world->hosts[2]));
    passes(world, 10);
    two_fail(world, 2, 5);
}

/* Node 2 fails in epoch 1, which the others enter long after it went. */
/* In an epoch before. */
static void both_fail_before(struct world *world)
{
    for (size_t i = 0; i < 2; i++) {
        enters(world, i);
        fails(world, i);
    }
}

static void one_failed_long_before(struct world *world, unsigned lost)
{
    struct check_life *again;
    two_know_each_other(world);
    enters_in_vain(world, 2, lost);
    checks_killed(world->lives[2]);
    assert_ok(checks_begin(world->checks, &again, 2, world->hosts[2]));
    passes(world, 10);
    both_fail_before(world);
    passes(world, 10);
    two_fail(world, 7, 5);
}

static void one_was_told_long_before(void *arg)
{
    one_failed_long_before(arg, 7);
}

static void nobody_was_told_long_before(void *arg)
{
    one_failed_long_before(arg, 8);
}

/* Node 2 came back long ago; a life that nobody met goes when the others fail,
 * of which one names node 2. */
static void one_came_long_before(struct world *world, bool met)
{
    struct check_life *again, *other;
    two_know_each_other(world);
    checks_killed(world->lives[2]);
    assert_ok(checks_begin(world->checks, &other, 2, world->hosts[2]));
    passes(world, 2);
    assert_ok(checks_begin(world->checks, &again, 2, world->hosts[2]));
    passes(world, 10);
    both_fail_before(world);
    passes(world, 10);
    meets_the_next(world, 1);
    if (met)
        meets_the_next(world, 0);
    checks_killed(other);
    two_fail(world, 2, 5);
}

static void one_is_still_coming(void *arg)
{
    one_came_long_before(arg, false);
}

static void one_was_met_by_both(void *arg)
{
    one_came_long_before(arg, true);
}

static void one_lags_behind(void *arg)
{
    struct world *world = arg;
    const struct member_watch *watch = checks_watch(world->lives[1]).member;
    two_know_each_other(world);
    enters_in_vain(world, 0, 2);
    enters(world, 1);
    watch->ended(
        watch->self,
        ls_error(LS_ELOST, "barrier \"x\", epoch 1: node 0 gave it up before"),
        NULL);
    passes(world, 10);
}

TEST(failing_with_different_names_is_not_alike)
{
    judge(two_name_the_same, NULL);
    judge(two_name_different_ones,
          "alike: epoch 1: node 1 fails with LS_ELOST and names node 5, node 0 "
          "with LS_ELOST and node 2");
    judge(two_name_different_ones_of_two, NULL);
    judge(two_name_different_ones_of_two_before, NULL);
    judge(one_was_told_long_before, NULL);
    judge(nobody_was_told_long_before,
          "alike: epoch 1: node 1 fails with LS_ELOST and names node 5, node 0 "
          "with LS_ELOST and node 7");
    judge(one_is_still_coming, NULL);
    judge(one_was_met_by_both,
          "alike: epoch 1: node 1 fails with LS_ELOST and names node 5, node 0 "
          "with LS_ELOST and node 2");
    judge(one_lags_behind, NULL); /* whose reason is not kept names nobody */
}

static void times_out(struct world *world, size_t i, const char *text)
{
    const struct member_watch *watch = checks_watch(world->lives[i]).member;
    enters(world, i);
    watch->ended(watch->self,
                 ls_error(LS_ETIMEDOUT, "barrier \"x\", epoch 1: %s", text),
                 NULL);
}

/* The one names whom it missed, the other who gave up. */
static void both_time_out(void *arg)
{
    struct world *world = arg;
    two_know_each_other(world);
    times_out(world, 0, "the deadline passed; missing: node 5");
    times_out(world, 1, "node 0 gave up with LS_ETIMEDOUT");
    passes(world, 10);
}

static void one_of_two_times_out(void *arg)
{
    struct world *world = arg;
    two_know_each_other(world);
    times_out(world, 0, "the deadline passed; missing: node 5");
    enters_in_vain(world, 1, 5);
    passes(world, 10);
}

TEST(a_timeout_of_one_alone_is_not_alike)
{
    judge(both_time_out, NULL);
    judge(one_of_two_times_out,
          "alike: epoch 1: node 1 fails with LS_ELOST and names node 5, node 0 "
          "with LS_ETIMEDOUT and node 5");
}
