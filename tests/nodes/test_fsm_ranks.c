/* fsm.h, as a specification: a learner work that several learners do together.
 */
#include "fsm_hand.h"

static struct hand *open_with(int64_t ranks)
{
    struct fsm_options options = hand_options();
    options.ranks = ranks;
    options.batch_size = ranks;
    return hand_open(&options);
}

static struct learner_work started_at(struct hand *hand, uint32_t id)
{
    struct learner_work work;
    const struct hand_call *start = hand_expect(hand, id, CALL_LEARNER_START);
    assert_ok(learner_work_read(&work, start->data, start->size));
    return work;
}

static void closed(struct hand *hand, uint32_t id, int64_t attempt)
{
    const struct learner_closed answer = {.key = hand_key("learn_1", attempt),
                                          .buffer_id = "buffer_1"};
    learner_closed_write(&answer, hand->writer);
    hand_answer(hand, id, CALL_LEARNER_CLOSE);
}

/* Both are there, and the first one has begun. */
static struct hand *begun(void)
{
    struct hand *hand = open_with(2);
    hand_join(hand, RESERVE);
    hand_join(hand, LEARNER);
    hand_started(hand, LEARNER);
    return hand;
}

TEST(it_is_given_to_the_first_of_them_when_all_are_free)
{
    struct hand *hand = open_with(2);
    hand_join(hand, RESERVE);
    hand_expect_none(hand, RESERVE, CALL_LEARNER_START);
    hand_join(hand, LEARNER);
    const struct learner_work work = started_at(hand, LEARNER);
    assert_int_equal(work.n_ranks, 2);
    assert_int_equal(work.ranks[0], LEARNER);
    assert_int_equal(work.ranks[1], RESERVE);
    hand_expect_none(hand, RESERVE, CALL_LEARNER_START);
    hand_close(hand);
}

TEST(one_alone_is_told_of_no_ranks)
{
    struct hand *hand = open_with(1);
    hand_join(hand, LEARNER);
    assert_int_equal(started_at(hand, LEARNER).n_ranks, 0);
    hand_close(hand);
}

TEST(who_is_missing_is_said_once_when_it_has_waited)
{
    struct hand *hand = open_with(2);
    hand_join(hand, RESERVE);
    assert_string_equal(hand->warning, "");
    assert_int_equal(fsm_wake_at(hand->fsm, hand->now),
                     hand->now + 3 * LS_NS_PER_S);
    hand_wait(hand, 3 * LS_NS_PER_S);
    assert_string_equal(hand->warning,
                        "learn_1 waits for 1 more learner: it has 2 ranks, and "
                        "of learners there is node 2");
    hand->warning[0] = '\0';
    hand_wait(hand, 3 * LS_NS_PER_S);
    assert_string_equal(hand->warning, "");
    hand_member(hand, RESERVE, 1, false);
    assert_string_equal(hand->warning,
                        "learn_1 waits for 2 more learners: it has 2 ranks, "
                        "and of learners there is nobody");
    hand_close(hand);
}

TEST(it_expires_as_one_that_a_single_learner_does)
{
    struct hand *hand = open_with(2);
    hand_join(hand, LEARNER);
    hand_wait(hand, 600 * LS_NS_PER_S);
    assert_int_equal(hand_figures(hand).expired, 1);
    hand_close(hand);
}

TEST(when_a_rank_is_lost_it_is_closed_and_waits_for_another)
{
    struct hand *hand = begun();
    hand_member(hand, RESERVE, 1, false);
    assert_string_equal(hand->warning,
                        "node 2 is lost, a rank of learn_1, attempt 1: it is "
                        "closed");
    closed(hand, LEARNER, 1);
    hand_resource(hand, LEARNER, "", 0);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_START);
    hand_member(hand, RESERVE, 2, true);
    hand_connected(hand, RESERVE);
    hand_resource(hand, RESERVE, "", 0);
    assert_int_equal(started_at(hand, LEARNER).key.attempt, 2);
    assert_int_equal(hand_figures(hand).requeued, 1);
    hand_close(hand);
}

TEST(the_same_when_it_comes_back_before_its_loss_was_told)
{
    struct hand *hand = begun();
    hand_member(hand, RESERVE, 2, true);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_CLOSE);
    hand_close(hand);
}

TEST(a_rank_that_is_lost_before_the_start_is_answered_too)
{
    struct hand *hand = open_with(2);
    hand_join(hand, RESERVE);
    hand_join(hand, LEARNER);
    hand_member(hand, RESERVE, 1, false);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_CLOSE);
    hand_started(hand, LEARNER);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_CLOSE);
    hand_close(hand);
}

/* Of one that is not a rank, or not any more, nothing follows. */
TEST(who_stands_by_may_be_lost)
{
    struct fsm_options options = hand_options();
    options.ranks = 2;
    options.batch_size = 2;
    struct hand *hand = hand_open(&options);
    for (uint32_t id = 0; id <= RESERVE; id++) {
        hand_member(hand, id, 1, true);
        hand_connected(hand, id);
    }
    hand_offers(hand, 0, &(struct service_resource){.cpu = 1});
    hand_offers(hand, LEARNER, &(struct service_resource){.cpu = 8});
    hand_offers(hand, RESERVE, &(struct service_resource){.cpu = 8});
    hand_started(hand, LEARNER); /* those that offer most */
    hand_member(hand, 0, 1, false);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_CLOSE);
    hand_close(hand);
}

/* That it cannot go on without the other is no failure of the first one. */
TEST(what_fails_by_the_loss_of_a_rank_is_not_counted)
{
    struct hand *hand = begun();
    for (int64_t attempt = 1; attempt <= 12; attempt++) {
        hand_fail(hand, LEARNER, CALL_LEARNER_DEMAND, LS_CALL_FAILED, 0);
        hand_member(hand, RESERVE, (uint64_t)attempt, false);
        closed(hand, LEARNER, attempt);
        hand_member(hand, RESERVE, (uint64_t)attempt + 1, true);
        hand_connected(hand, RESERVE);
        hand_resource(hand, RESERVE, "", 0);
        hand_wait(hand, 3 * LS_NS_PER_S); /* who failed rests */
        hand_resource(hand, LEARNER, "", 0);
        hand_started(hand, LEARNER);
    }
    assert_int_equal(hand->n_done, 0);
    hand_close(hand);
}

TEST(options_that_cannot_be_are_refused)
{
    struct fsm_options options = hand_options();
    fsm *machine;
    options.ranks = SERVICE_RANKS_MAX + 1;
    assert_fails(fsm_create(&machine, &options, fsm_kinds), LS_EINVAL);
    options.ranks = 2;
    options.batch_size = 3;
    assert_fails(fsm_create(&machine, &options, fsm_kinds), LS_EINVAL);
    assert_string_equal(ls_error_text(), "a coordinator: batch_size: expected "
                                         "a multiple of ranks");
}
