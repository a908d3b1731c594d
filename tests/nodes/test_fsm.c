/* fsm.h, as a specification: what the coordinator decides, case by case. */
#include "fsm_hand.h"
#include "test.h"

static struct fsm_options options;

static int set_up(void **state)
{
    (void)state;
    options = hand_options();
    return 0;
}

EACH_TEST(set_up, NULL)

/* Members ---------------------------------------------------------------- */

TEST(a_member_is_connected_to_asked_and_given_a_work)
{
    struct hand *hand = hand_open(&options);
    hand_member(hand, LEARNER, 1, true);
    hand_connected(hand, LEARNER);
    hand_resource(hand, LEARNER, "", 0);
    const struct hand_call *start =
        hand_expect(hand, LEARNER, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_string_equal(work.key.task_id, "learn_1");
    assert_int_equal(work.key.attempt, 1);
    assert_string_equal(work.policy_id, "policy_1");
    assert_string_equal(work.buffer_id, "buffer_1");
    assert_int_equal(work.iterations, 10);
    assert_int_equal(work.done, 0);
    /* What it said that it has. */
    assert_true(work.cpu == 4 && work.gpu == 0.5);
    hand_close(hand);
}

/* Whoever is the first to tell. */
TEST(the_learner_with_most_gpus_gets_the_work)
{
    struct hand *hand = hand_open(&options);
    hand_member(hand, LEARNER, 1, true);
    hand_member(hand, RESERVE, 1, true);
    hand_connected(hand, LEARNER);
    hand_connected(hand, RESERVE);
    hand_offers(hand, LEARNER, &(struct service_resource){.cpu = 64});
    hand_expect_none(hand, LEARNER, CALL_LEARNER_START);
    hand_offers(hand, RESERVE, &(struct service_resource){.gpu = 1, .cpu = 4});
    (void)hand_expect(hand, RESERVE, CALL_LEARNER_START);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_START);
    hand_close(hand);
}

/* And does not keep another from it. */
TEST(who_does_not_tell_what_it_offers_gets_no_work)
{
    struct hand *hand = hand_open(&options);
    hand_member(hand, RESERVE, 1, true);
    hand_join(hand, LEARNER);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_START);
    hand_fail(hand, RESERVE, "ls.connect", LS_CALL_TIMEOUT, 0);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_START);
    hand_close(hand);
}

TEST(members_of_other_roles_get_nothing)
{
    struct hand *hand = hand_open(&options);
    const struct ls_member member = core_member(9, 1, "evaluator", true);
    assert_ok(fsm_member(hand->fsm, hand->now, &member));
    hand_take(hand);
    hand_expect_none(hand, 9, "ls.connect");
    hand_close(hand);
}

TEST(who_has_another_master_is_asked_again_later)
{
    struct hand *hand = hand_open(&options);
    hand_member(hand, LEARNER, 1, true);
    hand_fail(hand, LEARNER, "ls.connect", LS_CALL_START_FAILED,
              LS_CALL_HAS_MASTER);
    hand_expect_none(hand, LEARNER, "ls.connect");
    assert_int_equal(fsm_wake_at(hand->fsm, hand->now),
                     hand->now + 3 * LS_NS_PER_S);
    hand_wait(hand, 3 * LS_NS_PER_S);
    (void)hand_expect(hand, LEARNER, "ls.connect");
    hand_close(hand);
}

TEST(a_member_that_comes_back_is_connected_to_anew)
{
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    hand_started(hand, LEARNER);
    hand_member(hand, LEARNER, 2, true); /* its end was not told */
    hand_connected(hand, LEARNER);
    hand_fail(hand, LEARNER, CALL_LEARNER_DEMAND, LS_CALL_LOST, 0);
    hand_resource(hand, LEARNER, "", 0);
    const struct hand_call *start =
        hand_expect(hand, LEARNER, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_int_equal(work.key.attempt, 2);
    assert_int_equal(hand_figures(hand).requeued, 1);
    hand_close(hand);
}

TEST(what_a_member_holds_of_nobody_is_closed)
{
    struct hand *hand = hand_open(&options);
    hand_member(hand, LEARNER, 1, true);
    hand_connected(hand, LEARNER);
    hand_resource(hand, LEARNER, "learn_77", 3);
    const struct hand_call *close =
        hand_expect(hand, LEARNER, CALL_LEARNER_CLOSE);
    struct work_key key;
    assert_ok(work_key_read(&key, close->data, close->size));
    assert_string_equal(key.task_id, "learn_77");
    assert_int_equal(key.attempt, 3);
    hand_closed(hand, LEARNER, "learn_77", 3, 0);
    hand_resource(hand, LEARNER, "", 0);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_START);
    hand_close(hand);
}

/* Works ------------------------------------------------------------------ */

TEST(a_refused_work_goes_to_another_at_once)
{
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    hand_fail(hand, LEARNER, CALL_LEARNER_START, LS_CALL_START_FAILED,
              LS_CALL_BUSY);
    assert_int_equal(hand_figures(hand).refused_starts, 1);
    hand_expect_none(hand, LEARNER, CALL_RESOURCE);
    hand_join(hand, RESERVE);
    const struct hand_call *start =
        hand_expect(hand, RESERVE, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_int_equal(work.key.attempt, 1); /* nobody has begun it */
    hand_close(hand);
}

TEST(a_refused_work_is_tried_again_after_retry)
{
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    hand_fail(hand, LEARNER, CALL_LEARNER_START, LS_CALL_START_FAILED,
              LS_CALL_REFUSED);
    hand_wait(hand, 3 * LS_NS_PER_S);
    hand_resource(hand, LEARNER, "", 0);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_START);
    hand_close(hand);
}

TEST(a_learner_work_expires_after_600_s)
{
    struct hand *hand = hand_open(&options);
    hand_wait(hand, 0);
    assert_int_equal(fsm_wake_at(hand->fsm, hand->now),
                     hand->now + 600 * LS_NS_PER_S);
    hand_wait(hand, 600 * LS_NS_PER_S - 1);
    assert_int_equal(hand_figures(hand).expired, 0);
    hand_wait(hand, 1);
    assert_int_equal(hand_figures(hand).expired, 1);
    assert_string_equal(
        hand->warning,
        "learn_1 has waited for a learner too long: it is given up");
    hand_join(hand, LEARNER); /* its space was free: there is a new one */
    const struct hand_call *start =
        hand_expect(hand, LEARNER, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_string_equal(work.key.task_id, "learn_2");
    assert_string_equal(work.policy_id, "policy_1");
    hand_close(hand);
}

TEST(a_collector_work_expires_after_30_s)
{
    options.collector_works = 2;
    struct hand *hand = hand_running(&options);
    hand_wait(hand, 30 * LS_NS_PER_S);
    assert_int_equal(hand_figures(hand).expired, 1);
    hand_close(hand);
}

TEST(a_start_that_nobody_answers_is_closed_before_it_goes_on)
{
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    hand_join(hand, RESERVE);
    hand_fail(hand, LEARNER, CALL_LEARNER_START, LS_CALL_TIMEOUT, 0);
    hand_expect_none(hand, RESERVE, CALL_LEARNER_START);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    const struct hand_call *start =
        hand_expect(hand, RESERVE, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_int_equal(work.key.attempt, 2);
    hand_close(hand);
}

TEST(a_work_that_is_not_closed_in_time_goes_to_another)
{
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    hand_join(hand, RESERVE);
    hand_fail(hand, LEARNER, CALL_LEARNER_START, LS_CALL_TIMEOUT, 0);
    hand_fail(hand, LEARNER, CALL_LEARNER_CLOSE, LS_CALL_FAILED, 0);
    hand_wait(hand, 60 * LS_NS_PER_S);
    const struct hand_call *start =
        hand_expect(hand, RESERVE, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_string_equal(work.key.task_id, "learn_1");
    assert_int_equal(work.key.attempt, 2); /* the first counts no more */
    hand_close(hand);
}

TEST(failures_in_a_row_end_the_job)
{
    options.max_failures = 2;
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    hand_fail(hand, LEARNER, CALL_LEARNER_START, LS_CALL_FAILED, 0);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    hand_wait(hand, 3 * LS_NS_PER_S);
    hand_resource(hand, LEARNER, "", 0);
    hand_fail(hand, LEARNER, CALL_LEARNER_START, LS_CALL_FAILED, 0);
    hand_closed(hand, LEARNER, "learn_1", 2, 0);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_EHANDLER);
    assert_non_null(strstr(hand->done_text, "2 times"));
    assert_non_null(strstr(hand->done_text, "it could not be"));
    hand_close(hand);
}

/* Its member does not hold it: there is nothing to be closed there. */
TEST(a_refused_turn_may_be_the_last_failure)
{
    options.max_failures = 1;
    struct hand *hand = hand_running(&options);
    hand_fail(hand, COLLECTOR, CALL_COLLECTOR_DATA, LS_CALL_START_FAILED,
              LS_CALL_REFUSED);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_EHANDLER);
    hand_close(hand);
}

TEST(who_is_busy_or_ends_has_not_failed)
{
    options.max_failures = 2;
    struct hand *hand = hand_running(&options);
    for (int i = 0; i < 6; i++) {
        hand_fail(hand, COLLECTOR, CALL_COLLECTOR_DATA, LS_CALL_START_FAILED,
                  i % 2 == 0 ? LS_CALL_BUSY : LS_CALL_SHUTTING_DOWN);
        hand_expect_none(hand, COLLECTOR, CALL_COLLECTOR_DATA);
        hand_wait(hand, 3 * LS_NS_PER_S);
        (void)hand_expect(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    }
    assert_int_equal(hand->n_done, 0);
    hand_close(hand);
}

/* Answers that are none --------------------------------------------------- */

TEST(three_answers_that_are_none_take_the_work_away)
{
    struct hand *hand = hand_running(&options);
    hand_garbage(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    assert_non_null(strstr(hand->warning, "node 3"));
    assert_non_null(strstr(hand->warning, CALL_COLLECTOR_DATA));
    hand_garbage(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    hand_expect_none(hand, COLLECTOR, CALL_COLLECTOR_CLOSE);
    hand_garbage(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    (void)hand_expect(hand, COLLECTOR, CALL_COLLECTOR_CLOSE);
    assert_int_equal(hand_figures(hand).refused_data, 3);
    hand_join(hand, OTHER);
    hand_closed(hand, COLLECTOR, "collect_2", 1, 0);
    assert_int_equal(hand_figures(hand).requeued, 1);
    hand_close(hand);
}

TEST(data_for_another_work_or_buffer_is_refused)
{
    struct hand *hand = hand_running(&options);
    const int drops = hand->n_drops;
    hand_sample(hand, COLLECTOR, "collect_99", "d1");
    assert_non_null(strstr(hand->warning, "collect_99"));
    assert_int_equal(hand_figures(hand).refused_data, 1);
    assert_int_equal(hand_figures(hand).samples, 0);
    assert_int_equal(hand->n_drops, drops + 1);      /* nobody else would */
    hand_sample(hand, COLLECTOR, "collect_2", "d2"); /* one that is right */
    assert_int_equal(hand_figures(hand).samples, 1);
    assert_int_equal(hand_figures(hand).env_steps, 4);
    hand_close(hand);
}

/* OTHER, of collect_3, has brought d1 to d3, which are in the buffer, and d4,
 * which waits for its turn; COLLECTOR is asked for data as well. */
static struct hand *four_brought(void)
{
    struct sample samples[4];
    struct collector_data data = {.key = hand_key("collect_3", 1),
                                  .buffer_id = "buffer_1",
                                  .n = 4,
                                  .samples = samples};
    options.collector_works = 2;
    options.replay.samples_per_insert = 1;
    options.replay.error_buffer = 2;
    struct hand *hand = hand_running(&options);
    hand_join(hand, OTHER);
    hand_started(hand, OTHER);
    for (size_t i = 0; i < 4; i++) {
        samples[i] = (struct sample){.buffer_id = "buffer_1",
                                     .task_id = "collect_3",
                                     .compressor = SAMPLE_PLAIN,
                                     .unroll_len = 4,
                                     .parts = 1,
                                     .size = 100};
        (void)snprintf(samples[i].data_id, sizeof samples[i].data_id, "d%zu",
                       i + 1);
    }
    collector_data_write(&data, hand->writer);
    hand_answer(hand, OTHER, CALL_COLLECTOR_DATA);
    assert_int_equal(hand_figures(hand).samples, 3);
    return hand;
}

TEST(who_is_refused_has_no_data_of_others_dropped)
{
    struct hand *hand = four_brought();
    hand_sample(hand, COLLECTOR, "collect_99", "d2");
    assert_int_equal(hand_figures(hand).refused_data, 1);
    assert_null(strstr(hand->dropped, " d2 "));
    hand_sample(hand, COLLECTOR, "collect_99", "d4");
    assert_int_equal(hand_figures(hand).refused_data, 2);
    assert_null(strstr(hand->dropped, " d4 "));
    hand_close(hand);
}

TEST(who_is_late_has_no_data_of_others_dropped)
{
    struct hand *hand = four_brought();
    hand_member(hand, COLLECTOR, 1, false);
    hand_sample(hand, COLLECTOR, "collect_2", "d2");
    assert_int_equal(hand_figures(hand).late_data, 1);
    assert_null(strstr(hand->dropped, " d2 "));
    hand_close(hand);
}

TEST(what_waits_and_is_given_up_may_be_data_of_others)
{
    struct hand *hand = four_brought();
    hand_sample(hand, COLLECTOR, "collect_2", "d2");
    assert_int_equal(hand_figures(hand).samples, 3);
    hand_member(hand, COLLECTOR, 1, false);
    assert_int_equal(hand_figures(hand).late_data, 1);
    assert_null(strstr(hand->dropped, " d2 "));
    hand_close(hand);
}

/* With the last of them. */
TEST(what_waits_twice_is_dropped_once)
{
    struct hand *hand = four_brought();
    hand_sample(hand, COLLECTOR, "collect_2", "d4");
    hand_member(hand, COLLECTOR, 1, false);
    assert_null(strstr(hand->dropped, " d4 "));
    hand_member(hand, OTHER, 1, false);
    const char *first = strstr(hand->dropped, " d4 ");
    assert_non_null(first);
    assert_null(strstr(first + 1, " d4 "));
    hand_close(hand);
}

TEST(no_sample_has_the_name_of_a_policy)
{
    struct hand *hand = hand_running(&options);
    const int drops = hand->n_drops;
    hand_sample(hand, COLLECTOR, "collect_2", "policy_1");
    assert_non_null(strstr(hand->warning, "policy_1 is the name of a policy"));
    assert_int_equal(hand_figures(hand).refused_data, 1);
    assert_int_equal(hand_figures(hand).samples, 0);
    hand_member(hand, LEARNER, 1, false); /* nor is it dropped with the rest */
    assert_int_equal(hand->n_drops, drops);
    hand_close(hand);
}

/* Else a learner would take it for what it is not. */
TEST(no_sample_is_compressed)
{
    struct hand *hand = hand_running(&options);
    const int drops = hand->n_drops;
    hand_compressed(hand, COLLECTOR, "collect_2", "d1", "lz4");
    assert_non_null(strstr(hand->warning, "compressor: lz4"));
    assert_int_equal(hand_figures(hand).refused_data, 1);
    assert_int_equal(hand_figures(hand).samples, 0);
    assert_int_equal(hand->n_drops, drops + 1);
    hand_close(hand);
}

TEST(no_sample_is_larger_than_all_may_be)
{
    struct fsm_options small = options;
    small.replay.max_bytes = 99;
    struct hand *hand = hand_running(&small);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    assert_non_null(strstr(hand->warning, "size: 100 bytes"));
    assert_int_equal(hand_figures(hand).refused_data, 1);
    hand_close(hand);
}

TEST(an_unreadable_resource_leaves_the_member_out)
{
    struct hand *hand = hand_open(&options);
    hand_member(hand, LEARNER, 1, true);
    hand_connected(hand, LEARNER);
    hand_garbage(hand, LEARNER, CALL_RESOURCE);
    assert_int_equal(hand_figures(hand).refused_data, 1);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_START);
    hand_wait(hand, 3 * LS_NS_PER_S);
    hand_resource(hand, LEARNER, "", 0);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_START);
    hand_close(hand);
}

/* Learning ---------------------------------------------------------------- */

TEST(it_demands_while_it_learns_but_has_two_at_most)
{
    struct hand *hand = hand_running(&options);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_LEARN);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    struct hand_call *first = hand_expect(hand, LEARNER, CALL_LEARNER_LEARN);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_DEMAND); /* at once */
    first->to = 99; /* so that the second can be told from it */
    hand_demand(hand, LEARNER, 1, 0, false);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_LEARN);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_DEMAND);
    first->to = LEARNER + 10;
    hand_close(hand);
}

TEST(the_last_info_closes_the_work_and_drops_its_data)
{
    struct hand *hand = hand_running(&options);
    const int n_drops = hand->n_drops;
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    hand_learned(hand, LEARNER, 1, 1);
    hand_demand(hand, LEARNER, 1, 1, true);
    assert_int_equal(hand->n_infos, 2);
    assert_int_equal(hand_figures(hand).done_infos, 1);
    assert_int_equal(hand_figures(hand).learner_step, 1);
    assert_int_equal(hand->n_drops, n_drops + 1);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    assert_int_equal(hand->n_done, 0); /* a collector is not closed yet */
    hand_fail(hand, COLLECTOR, CALL_COLLECTOR_DATA, LS_CALL_FAILED, 0);
    hand_closed(hand, COLLECTOR, "collect_2", 1, NAN);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_OK);
    hand_close(hand);
}

TEST(samples_weigh_what_learning_them_came_to)
{
    struct hand *hand = hand_running(&options);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_LEARN);
    const struct learner_result result = {.key = hand_key("learn_1", 1),
                                          .buffer_id = "buffer_1",
                                          .n = 1,
                                          .priorities = {7}};
    learner_result_write(&result, hand->writer);
    hand_answer(hand, LEARNER, CALL_LEARNER_LEARN);
    assert_int_equal(hand_figures(hand).replay.updates, 1);
    assert_int_equal(hand_figures(hand).replay.updates_refused, 0);
    hand_close(hand);
}

TEST(a_batch_that_fails_is_given_back)
{
    struct hand *hand = hand_running(&options);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    hand_fail(hand, LEARNER, CALL_LEARNER_LEARN, LS_CALL_FAILED, 0);
    assert_int_equal(hand_figures(hand).replay.lent, 0);
    hand_demand(hand, LEARNER, 1, 0, false);
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_LEARN);
    hand_close(hand);
}

TEST(the_next_attempt_is_told_what_was_committed)
{
    struct hand *hand = hand_running(&options);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    hand_learned(hand, LEARNER, 1, 1);
    hand_join(hand, RESERVE);
    hand_member(hand, LEARNER, 1, false);
    const struct hand_call *start =
        hand_expect(hand, RESERVE, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_int_equal(work.key.attempt, 2);
    assert_int_equal(work.done, 1);
    hand_close(hand);
}

/* What the open call for data tells a collector. */
static struct collector_ask data_ask(struct hand *hand)
{
    const struct hand_call *call =
        hand_expect(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    struct collector_ask ask;
    assert_ok(collector_ask_read(&ask, call->data, call->size));
    return ask;
}

/* And one more, when it has brought all: that answer is that it is done. */
TEST(a_collector_is_asked_for_no_more_than_its_work_has)
{
    options.ahead = 2;
    options.samples_per_work = 2;
    options.replay.staleness_limit = 10;
    struct hand *hand = hand_running(&options);
    assert_int_equal(data_ask(hand).want, 2);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    assert_int_equal(data_ask(hand).want, 1);
    hand_sample(hand, COLLECTOR, "collect_2", "d2");
    assert_int_equal(data_ask(hand).want, 1);
    hand_close(hand);

    options.samples_per_work = 0;
    hand = hand_running(&options);
    assert_int_equal(data_ask(hand).want, 3);
    hand_close(hand);
}

/* Evaluations -------------------------------------------------------------- */

/* A new policy is there, COLLECTOR is free: it evaluates, if the policy is kept
 * for it. */
static struct hand *evaluating_if(int keeps)
{
    options.stop_value = 100;
    options.eval_episodes = 2;
    struct hand *hand = hand_running(&options);
    hand->keeps = keeps;
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    hand_learned(hand, LEARNER, 1, 1);
    const struct collector_data done = {.key = hand_key("collect_2", 1),
                                        .buffer_id = "buffer_1",
                                        .is_info = true,
                                        .info = {.collector_done = true}};
    collector_data_write(&done, hand->writer);
    hand_answer(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    hand_closed(hand, COLLECTOR, "collect_2", 1, NAN);
    hand_resource(hand, COLLECTOR, "", 0);
    return hand;
}

static struct hand *evaluating(void)
{
    return evaluating_if(LS_OK);
}

static int64_t asked_version(struct hand *hand)
{
    return data_ask(hand).policy_version;
}

TEST(a_collector_is_told_what_is_committed_an_evaluation_not)
{
    struct hand *hand = evaluating();
    hand_started(hand, COLLECTOR);
    assert_int_equal(asked_version(hand), -1); /* its policy does not change */
    hand_close(hand);

    hand = hand_running(&options);
    assert_int_equal(asked_version(hand), 0);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    hand_learned(hand, LEARNER, 1, 1);
    hand_sample(hand, COLLECTOR, "collect_2", "d2");
    assert_int_equal(asked_version(hand), 1);
    hand_close(hand);
}

static void evaluate(struct hand *hand, double value)
{
    hand_started(hand, COLLECTOR);
    const struct collector_data done = {.key = hand_key("evaluate_3", 1),
                                        .buffer_id = "none",
                                        .is_info = true,
                                        .info = {.collector_done = true}};
    collector_data_write(&done, hand->writer);
    hand_answer(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    hand_closed(hand, COLLECTOR, "evaluate_3", 1, value);
}

TEST(an_evaluation_goes_first_and_has_its_own_policy)
{
    struct hand *hand = evaluating();
    const struct hand_call *start =
        hand_expect(hand, COLLECTOR, CALL_COLLECTOR_START);
    struct collector_work work;
    assert_ok(collector_work_read(&work, start->data, start->size));
    assert_true(work.eval_flag);
    assert_int_equal(work.episodes, 2);
    assert_string_equal(work.policy_id, "policy_1@3");
    assert_true(work.cpu == 4 && work.gpu == 0.5);
    hand_close(hand);
}

/* ---- where collector works never end ---- */

/* Version 1 is committed, and is to be evaluated. */
static void commit_one(struct hand *hand)
{
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    hand_learned(hand, LEARNER, 1, 1);
}

static struct fsm_options endless(void)
{
    struct fsm_options endless = options;
    endless.samples_per_work = 0;
    endless.stop_value = 100;
    endless.eval_episodes = 2;
    return endless;
}

static void assert_gets(struct hand *hand, uint32_t member, const char *task_id)
{
    struct collector_work work;
    const struct hand_call *start =
        hand_expect(hand, member, CALL_COLLECTOR_START);
    assert_ok(collector_work_read(&work, start->data, start->size));
    assert_string_equal(work.key.task_id, task_id);
}

TEST(one_of_several_collectors_is_free_to_evaluate)
{
    const struct fsm_options how = endless();
    struct hand *hand = hand_running(&how);
    hand_join(hand, OTHER);
    hand_expect_none(hand, OTHER, CALL_COLLECTOR_START);
    commit_one(hand);
    assert_gets(hand, OTHER, "evaluate_3");
    hand_close(hand);
}

TEST(a_single_collector_collects_and_evaluates_in_turn)
{
    const struct fsm_options how = endless();
    struct hand *hand = hand_running(&how);
    commit_one(hand);
    hand_fail(hand, COLLECTOR, CALL_COLLECTOR_DATA, LS_CALL_FAILED, 0);
    hand_closed(hand, COLLECTOR, "collect_2", 1, NAN);
    hand_resource(hand, COLLECTOR, "", 0);
    assert_gets(hand, COLLECTOR, "evaluate_3");
    evaluate(hand, 1);
    hand_resource(hand, COLLECTOR, "", 0);
    assert_gets(hand, COLLECTOR, "collect_4");
    hand_close(hand);
}

TEST(who_collects_evaluates_when_the_free_one_is_lost)
{
    const struct fsm_options how = endless();
    struct hand *hand = hand_running(&how);
    hand_join(hand, OTHER);
    commit_one(hand);
    hand_member(hand, OTHER, 1, false);
    hand_closed(hand, COLLECTOR, "collect_2", 1, NAN);
    hand_resource(hand, COLLECTOR, "", 0);
    assert_gets(hand, COLLECTOR, "evaluate_3");
    hand_close(hand);
}

static bool is_closed_at(struct hand *hand, uint32_t member)
{
    return hand_find(hand, member, CALL_COLLECTOR_CLOSE) != NULL;
}

TEST(one_of_several_ends_its_work_and_only_for_an_evaluation)
{
    enum { THIRD = OTHER + 1 };
    const struct fsm_options how = endless();
    struct hand *hand = hand_running(&how);
    hand_join(hand, OTHER);
    hand_join(hand, THIRD);
    const bool other = hand_find(hand, OTHER, CALL_COLLECTOR_START) != NULL;
    const uint32_t second = other ? OTHER : THIRD, free = other ? THIRD : OTHER;
    hand_started(hand, second);
    hand_member(hand, free, 1, false);
    assert_false(is_closed_at(hand, COLLECTOR) || is_closed_at(hand, second));
    commit_one(hand);
    assert_true(is_closed_at(hand, COLLECTOR) != is_closed_at(hand, second));
    hand_close(hand);
}

static int recall(void *next, const void *record, size_t size)
{
    return fsm_recall(next, record, size);
}

TEST(the_next_life_tells_the_value_again)
{
    struct hand *hand = evaluating();
    evaluate(hand, 99);
    struct hand *next = hand_open(&options);
    assert_ok(fsm_records(hand->fsm, recall, next->fsm));
    hand_close(hand);
    next->evaluated = NAN;
    hand_wait(next, 0);
    assert_true(next->evaluated == 99);
    hand_close(next);
}

/* The life after one that recorded so much. */
static struct hand *life_after(const struct hand *before, size_t n_records)
{
    struct hand *hand = hand_open(&options);
    for (size_t i = 0; i < n_records; i++)
        assert_ok(fsm_recall(hand->fsm, before->records[i].data,
                             before->records[i].size));
    memcpy(hand->dropped, before->dropped, sizeof hand->dropped);
    hand_member(hand, LEARNER, 1, true);
    hand_connected(hand, LEARNER);
    hand_resource(hand, LEARNER, "learn_1", 1);
    hand_join(hand, COLLECTOR);
    return hand;
}

/* COLLECTOR does the evaluation that it is given, if it is given one. */
static void evaluate_again(struct hand *hand, double value)
{
    const struct hand_call *start =
        hand_find(hand, COLLECTOR, CALL_COLLECTOR_START);
    struct collector_work work;
    assert_non_null(start);
    assert_ok(collector_work_read(&work, start->data, start->size));
    if (!work.eval_flag)
        return;
    hand_started(hand, COLLECTOR);
    const struct collector_data done = {.key = work.key,
                                        .buffer_id = "none",
                                        .is_info = true,
                                        .info = {.collector_done = true}};
    collector_data_write(&done, hand->writer);
    hand_answer(hand, COLLECTOR, CALL_COLLECTOR_DATA);
    hand_closed(hand, COLLECTOR, work.key.task_id, work.key.attempt, value);
}

/* The job ends, and what it is told to keep. */
static void end_of_job(struct hand *hand)
{
    const char *kept[2];
    assert_ok(fsm_stop(hand->fsm, hand->now, LS_OK, "enough"));
    hand_wait(hand, 60 * LS_NS_PER_S);
    hand_wait(hand, 60 * LS_NS_PER_S);
    fsm_policies(hand->fsm, &kept[0], &kept[1]);
    for (size_t i = 0; i < 2; i++) {
        char word[80];
        (void)snprintf(word, sizeof word, " %s ", kept[i]);
        if (kept[i][0] != '\0' && strstr(hand->dropped, word) != NULL)
            fail_msg("it is to keep%s, and has dropped%s", word, hand->dropped);
    }
}

/* Killed after any record, its next life has the policy that the job ends with.
 */
TEST(no_life_drops_the_policy_that_it_keeps)
{
    struct hand *hand = evaluating();
    const size_t first = hand->n_records;
    hand->dropped[0] = '\0'; /* policy_1 was made since */
    evaluate(hand, 99);
    for (size_t n = first; n <= hand->n_records; n++) {
        struct hand *ends = life_after(hand, n);
        end_of_job(ends);
        hand_close(ends);
        struct hand *next = life_after(hand, n);
        evaluate_again(next, 100);
        end_of_job(next);
        hand_close(next);
    }
    hand_close(hand);
}

/* Returns the policy that the job would end with now. */
static const char *best(const struct hand *hand)
{
    const char *first, *other;
    fsm_policies(hand->fsm, &first, &other);
    return first;
}

/* What was learned since the last evaluation is not lost with the job. */
TEST(a_job_ends_with_what_was_learned_last_unless_the_value_was_enough)
{
    struct hand *hand = evaluating();
    assert_string_equal(best(hand), "policy_1");
    evaluate(hand, 99);
    assert_string_equal(best(hand), "policy_1");
    hand_close(hand);
    hand = evaluating();
    evaluate(hand, 100);
    assert_string_equal(best(hand), "policy_1@3");
    hand_close(hand);
}

TEST(the_value_ends_the_job)
{
    struct hand *hand = evaluating();
    evaluate(hand, 100);
    assert_true(hand->evaluated == 100);
    hand_fail(hand, LEARNER, CALL_LEARNER_DEMAND, LS_CALL_CANCELLED, 0);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_OK);
    assert_string_equal(hand->done_name, "policy_1@3");
    hand_close(hand);
}

TEST(a_lower_value_does_not)
{
    struct hand *hand = evaluating();
    evaluate(hand, 99);
    assert_true(hand->evaluated == 99);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_CLOSE);
    assert_int_equal(hand_figures(hand).evaluations, 1);
    hand_close(hand);
}

TEST(an_evaluation_without_a_value_is_done_again)
{
    struct hand *hand = evaluating();
    evaluate(hand, NAN);
    assert_int_equal(hand_figures(hand).evaluations, 0);
    assert_int_equal(hand_figures(hand).requeued, 1);
    hand_close(hand);
}

/* And is held by nobody, so nobody is waited for. */
TEST(one_that_never_has_a_value_ends_the_job)
{
    options.max_failures = 1;
    struct hand *hand = evaluating();
    evaluate(hand, NAN);
    hand_fail(hand, LEARNER, CALL_LEARNER_DEMAND, LS_CALL_CANCELLED, 0);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_EHANDLER);
    assert_non_null(strstr(hand->done_text, "it brings no value"));
    hand_close(hand);
}

TEST(a_policy_that_is_never_kept_for_one_ends_the_job)
{
    options.max_failures = 2;
    struct hand *hand = evaluating_if(LS_EIO);
    assert_non_null(strstr(hand->warning, "the policy is not kept as"));
    hand_wait(hand, 3 * LS_NS_PER_S);
    hand_fail(hand, LEARNER, CALL_LEARNER_DEMAND, LS_CALL_CANCELLED, 0);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    hand_fail(hand, COLLECTOR, CALL_COLLECTOR_START, LS_CALL_CANCELLED, 0);
    hand_closed(hand, COLLECTOR, "collect_4", 1, NAN);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_EHANDLER);
    assert_non_null(strstr(hand->done_text, "the policy is not kept as"));
    hand_close(hand);
}
