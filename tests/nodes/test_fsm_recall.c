/* fsm.h, as a specification: what a coordinator's journal brings to its next
 * life, and how the job ends. */
#include "fsm_hand.h"
#include "test.h"

/* The next life, with what the one before has recorded; which is over. */
static struct hand *next_life(struct hand *before,
                              const struct fsm_options *options)
{
    struct hand *hand = hand_open(options);
    for (size_t i = 0; i < before->n_records; i++)
        if (fsm_recall(hand->fsm, before->records[i].data,
                       before->records[i].size) != LS_OK)
            fail_msg("record %zu: %s", i, ls_error_text());
    hand_close(before);
    return hand;
}

static void returns(struct hand *hand, uint32_t id, const char *task_id,
                    int64_t attempt)
{
    hand_member(hand, id, 1, true);
    hand_connected(hand, id);
    hand_resource(hand, id, task_id, attempt);
}

TEST(an_iteration_without_an_info_is_recorded)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_running(&options);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_LEARN);
    learner_result_write(&(struct learner_result){.key = hand_key("learn_1", 1),
                                                  .buffer_id = "buffer_1",
                                                  .policy_version = 1,
                                                  .cur_learner_iter = 1},
                         hand->writer);
    hand_answer(hand, LEARNER, CALL_LEARNER_LEARN);
    hand = next_life(hand, &options);
    assert_int_equal(hand_figures(hand).infos, 0);
    assert_int_equal(hand_figures(hand).learner_step, 1);
    hand_close(hand);
}

TEST(who_holds_its_work_goes_on_with_it)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = next_life(hand_running(&options), &options);
    returns(hand, LEARNER, "learn_1", 1);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_START);
    hand_demand(hand, LEARNER, 1, 0, false);
    returns(hand, COLLECTOR, "collect_2", 1);
    hand_expect_none(hand, COLLECTOR, CALL_COLLECTOR_START);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    hand_learned(hand, LEARNER, 1, 1);
    assert_int_equal(hand_figures(hand).learner_step, 1);
    assert_int_equal(hand_figures(hand).requeued, 0);
    hand_close(hand);
}

TEST(what_nobody_holds_any_more_is_the_next_attempt)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = next_life(hand_running(&options), &options);
    returns(hand, LEARNER, "", 0);
    const struct hand_call *start =
        hand_expect(hand, LEARNER, CALL_LEARNER_START);
    struct learner_work work;
    assert_ok(learner_work_read(&work, start->data, start->size));
    assert_string_equal(work.key.task_id, "learn_1");
    assert_int_equal(work.key.attempt, 2);
    hand_close(hand);
}

TEST(another_attempt_is_closed_before_it_goes_on)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = next_life(hand_running(&options), &options);
    hand_join(hand, RESERVE);
    returns(hand, LEARNER, "learn_1", 9);
    hand_expect_none(hand, RESERVE, CALL_LEARNER_START);
    hand_closed(hand, LEARNER, "learn_1", 9, 0);
    hand_resource(hand, LEARNER, "", 0);
    const bool at_reserve =
        hand_find(hand, RESERVE, CALL_LEARNER_START) != NULL;
    const bool at_learner =
        hand_find(hand, LEARNER, CALL_LEARNER_START) != NULL;
    assert_true(at_reserve != at_learner);
    hand_close(hand);
}

TEST(a_new_incarnation_holds_nothing)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = next_life(hand_running(&options), &options);
    hand_join(hand, RESERVE);
    hand_expect_none(hand, RESERVE, CALL_LEARNER_START);
    hand_member(hand, LEARNER, 2, true);
    (void)hand_expect(hand, RESERVE, CALL_LEARNER_START);
    hand_close(hand);
}

TEST(who_does_not_turn_up_is_waited_for_10_s)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = next_life(hand_running(&options), &options);
    hand_join(hand, RESERVE);
    hand_wait(hand, 10 * LS_NS_PER_S - 1);
    hand_expect_none(hand, RESERVE, CALL_LEARNER_START);
    hand_wait(hand, 1);
    (void)hand_expect(hand, RESERVE, CALL_LEARNER_START);
    hand_close(hand);
}

TEST(figures_go_on_and_the_buffer_is_empty)
{
    const struct fsm_options options = hand_options();
    struct hand *before = hand_running(&options);
    hand_sample(before, COLLECTOR, "collect_2", "d1");
    hand_sample(before, COLLECTOR, "collect_2", "d2");
    hand_learned(before, LEARNER, 1, 1);
    struct hand *hand = next_life(before, &options);
    hand_wait(hand, 0);
    assert_int_equal(hand->n_drops, 0); /* who keeps it drops it */
    assert_int_equal(hand_figures(hand).infos, 1);
    assert_int_equal(hand_figures(hand).learner_step, 1);
    assert_int_equal(hand_figures(hand).policy_version, 1);
    assert_int_equal(hand_figures(hand).env_steps, 8);
    assert_int_equal(hand_figures(hand).replay.size, 0);
    hand_close(hand);
}

static int keep(void *self, const void *record, size_t size)
{
    hand_record(self, record, size);
    return LS_OK;
}

TEST(a_journal_that_begins_anew_says_the_same)
{
    const struct fsm_options options = hand_options();
    struct hand *before = hand_running(&options);
    hand_sample(before, COLLECTOR, "collect_2", "d1");
    while (before->n_records > 0)
        free(before->records[--before->n_records].data);
    assert_ok(fsm_records(before->fsm, keep, before));
    struct hand *hand = next_life(before, &options);
    returns(hand, LEARNER, "learn_1", 1);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_START);
    hand_close(hand);
}

TEST(a_job_that_was_over_is_only_ended)
{
    const struct fsm_options options = hand_options();
    struct hand *before = hand_running(&options);
    assert_ok(fsm_stop(before->fsm, before->now, LS_OK, "enough"));
    hand_take(before);
    struct hand *hand = next_life(before, &options);
    hand_member(hand, RESERVE, 1, true); /* there is no work for it */
    returns(hand, LEARNER, "learn_1", 1);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    returns(hand, COLLECTOR, "collect_2", 1);
    hand_closed(hand, COLLECTOR, "collect_2", 1, NAN);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_OK);
    assert_string_equal(hand->done_text, "enough");
    hand_close(hand);
}

TEST(a_job_that_has_failed_is_gone_on_with)
{
    const struct fsm_options options = hand_options();
    struct hand *before = hand_running(&options);
    assert_ok(fsm_stop(before->fsm, before->now, LS_ELOST, "a node"));
    hand_take(before);
    struct hand *hand = next_life(before, &options);
    hand_join(hand, RESERVE);
    hand_wait(hand, 11 * LS_NS_PER_S);
    (void)hand_expect(hand, RESERVE, CALL_LEARNER_START);
    assert_int_equal(hand->n_done, 0);
    hand_close(hand);
}

static int fail_to_keep(void *self, const void *record, size_t size)
{
    (void)record;
    (void)size;
    ++*(int *)self;
    return ls_error(LS_EIO, "the disk is full");
}

TEST(a_record_that_is_not_kept_is_an_error)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_running(&options);
    int calls = 0;
    assert_fails(fsm_records(hand->fsm, fail_to_keep, &calls), LS_EIO);
    assert_int_equal(calls, 1);
    hand_close(hand);
}

TEST(a_record_that_is_none_is_refused)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_open(&options);
    assert_fails(fsm_recall(hand->fsm, "\xc1", 1), LS_EPROTO);
    ls_write_map(hand->writer, 1);
    ls_write_string(hand->writer, "record");
    ls_write_string(hand->writer, "work");
    const void *data;
    size_t size;
    assert_ok(ls_writer_bytes(hand->writer, &data, &size));
    assert_fails(fsm_recall(hand->fsm, data, size), LS_EPROTO);
    assert_error_has("number");
    ls_writer_clear(hand->writer);
    ls_write_map(hand->writer, 2);
    ls_write_string(hand->writer, "record");
    ls_write_string(hand->writer, "over");
    ls_write_string(hand->writer, "number");
    ls_write_int(hand->writer, INT64_MAX); /* one more would not fit */
    assert_ok(ls_writer_bytes(hand->writer, &data, &size));
    assert_fails(fsm_recall(hand->fsm, data, size), LS_EPROTO);
    hand_close(hand);
}

/* The end ----------------------------------------------------------------- */

TEST(stop_cancels_what_is_open_and_closes_all_works)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_running(&options);
    const int n_drops = hand->n_drops;
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    assert_ok(fsm_stop(hand->fsm, hand->now, LS_ECANCELED, "enough"));
    hand_take(hand);
    assert_true(hand_expect(hand, LEARNER, CALL_LEARNER_LEARN)->cancelled);
    assert_true(hand_expect(hand, LEARNER, CALL_LEARNER_DEMAND)->cancelled);
    hand_fail(hand, LEARNER, CALL_LEARNER_LEARN, LS_CALL_CANCELLED, 0);
    hand_fail(hand, LEARNER, CALL_LEARNER_DEMAND, LS_CALL_CANCELLED, 0);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    assert_int_equal(hand->n_drops, n_drops + 1);
    hand_sample(hand, COLLECTOR, "collect_2", "d2"); /* was on its way */
    assert_int_equal(hand->n_drops, n_drops + 2);
    assert_int_equal(hand_figures(hand).late_data, 1);
    assert_int_equal(hand->n_done, 0);
    hand_closed(hand, COLLECTOR, "collect_2", 1, NAN);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_ECANCELED);
    assert_string_equal(hand->done_text, "enough");
    assert_int_equal(hand_figures(hand).open_calls, 0);
    assert_int_equal(fsm_wake_at(hand->fsm, hand->now), LS_FOREVER);
    hand_close(hand);
}

TEST(the_first_stop_counts)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_open(&options);
    assert_ok(fsm_stop(hand->fsm, hand->now, LS_ECANCELED, "one"));
    assert_ok(fsm_stop(hand->fsm, hand->now, LS_OK, "two"));
    hand_take(hand);
    assert_int_equal(hand->n_done, 1);
    assert_string_equal(hand->done_text, "one");
    hand_close(hand);
}

TEST(a_start_that_is_open_is_closed_when_it_has_ended)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    assert_ok(fsm_stop(hand->fsm, hand->now, LS_OK, "enough"));
    hand_take(hand);
    hand_expect_none(hand, LEARNER, CALL_LEARNER_CLOSE);
    hand_started(hand, LEARNER);
    assert_int_equal(hand->n_done, 0);
    hand_closed(hand, LEARNER, "learn_1", 1, 0);
    assert_int_equal(hand->n_done, 1);
    hand_close(hand);
}

TEST(a_close_that_nobody_answers_holds_up_no_end)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_open(&options);
    hand_join(hand, LEARNER);
    hand_started(hand, LEARNER);
    assert_ok(fsm_stop(hand->fsm, hand->now, LS_OK, "enough"));
    hand_take(hand);
    hand_fail(hand, LEARNER, CALL_LEARNER_DEMAND, LS_CALL_CANCELLED, 0);
    assert_int_equal(hand_expect(hand, LEARNER, CALL_LEARNER_CLOSE)->wait_ns,
                     10 * LS_NS_PER_S);
    hand_fail(hand, LEARNER, CALL_LEARNER_CLOSE, LS_CALL_TIMEOUT, 0);
    assert_int_equal(hand->n_done, 1);
    hand_close(hand);
}

TEST(enough_steps_end_the_job)
{
    struct fsm_options options = hand_options();
    options.max_env_steps = 4;
    struct hand *hand = hand_running(&options);
    hand_sample(hand, COLLECTOR, "collect_2", "d1");
    (void)hand_expect(hand, LEARNER, CALL_LEARNER_CLOSE);
    (void)hand_expect(hand, COLLECTOR, CALL_COLLECTOR_CLOSE);
    hand_close(hand);
}

TEST(enough_time_ends_the_job_though_nothing_happens)
{
    struct fsm_options options = hand_options();
    options.max_time = 5 * LS_NS_PER_S;
    struct hand *hand = hand_open(&options);
    hand_wait(hand, 0);
    assert_int_equal(fsm_wake_at(hand->fsm, hand->now),
                     hand->now + 5 * LS_NS_PER_S);
    hand_wait(hand, 5 * LS_NS_PER_S - 1);
    assert_int_equal(hand->n_done, 0);
    hand_wait(hand, 1);
    assert_int_equal(hand->n_done, 1);
    assert_int_equal(hand->done_status, LS_OK);
    assert_string_equal(hand->done_text, "the time is up");
    hand_close(hand);
}

TEST(a_call_that_is_not_open_is_an_error)
{
    const struct fsm_options options = hand_options();
    struct hand *hand = hand_open(&options);
    const struct ls_call_result result = {.state = LS_CALL_LOST};
    assert_fails(fsm_call_ended(hand->fsm, hand->now, 77, &result), LS_EINVAL);
    hand_close(hand);
}

static void refuses(struct fsm_options options, const char *name)
{
    fsm *made = NULL;
    assert_fails(fsm_create(&made, &options, fsm_kinds), LS_EINVAL);
    assert_null(made);
    if (strstr(ls_error_text(), name) == NULL)
        fail_msg("%s does not name %s", ls_error_text(), name);
}

TEST(wrong_options_are_named)
{
    struct fsm_options options = hand_options();
    options.batch_size = SERVICE_BATCH_MAX + 1;
    refuses(options, "batch_size");
    options = hand_options();
    options.split = 3;
    refuses(options, "split");
    options = hand_options();
    options.samples_per_work = -1;
    refuses(options, "samples_per_work");
    options = hand_options();
    options.stop_value = 1;
    refuses(options, "eval_episodes");
    options = hand_options();
    options.keeps_samples = true;
    refuses(options, "keeps_samples");
    options = hand_options();
    options.replay.capacity = 0;
    refuses(options, "capacity");
    options = hand_options();
    options.retry = -1;
    refuses(options, "retry");
}
