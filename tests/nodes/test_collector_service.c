/* collector_service.h, as a specification: what a collector, or an evaluator,
 * does with its works. */
#include "collector_bench.h"
#include "test.h"

/* Collecting ----------------------------------------------------------------
 */

TEST(it_brings_samples_until_it_is_done)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 2);
    start(bench, &work);
    const struct sample first = sample_of(begin_ask(bench, work.key, 3));
    const struct sample second = sample_of(begin_ask(bench, work.key, 3));
    has_data(bench, &first, "0/3");
    has_data(bench, &second, "1/3");
    assert_string_not_equal(first.data_id, second.data_id);
    assert_string_equal(first.task_id, "c1");
    assert_string_equal(first.buffer_id, "buffer_1");
    assert_int_equal(first.policy_version, 3);
    assert_int_equal(first.policy_iter, 3);
    assert_int_equal(first.env_id, 7);
    assert_int_equal(first.unroll_len, 8);
    assert_int_equal(first.parts, 1);
    assert_int_equal(first.size, 3);
    assert_int_equal(second.cur_sample, 2);
    assert_int_equal(second.cur_episode, 2);
    assert_int_equal(second.cur_step, 16);
    const struct collector_data last = data_of(begin_ask(bench, work.key, 3));
    assert_true(last.is_info);
    assert_true(last.info.collector_done);
    assert_int_equal(last.info.cur_sample, 2);
    const struct collector_closed closed = closes(bench, work.key);
    assert_false(closed.eval_flag);
    assert_int_equal(closed.sample_count, 2);
    assert_int_equal(closed.episode_count, 2);
    assert_int_equal(closed.step_count, 16);
    assert_true(closed.reward_mean == 100.0);
    assert_int_equal(closed.policy_version, 3);
    collector_stop(bench);
}

TEST(nothing_is_collected_before_the_first_call)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    gate_turn(&bench->toy.gate, true);
    start(bench, &work);
    assert_int_equal(closes(bench, work.key).step_count, 0);
    assert_int_equal(bench->toy.gate.waiting, 0);
    assert_int_equal(bench->toy.loads, 0);
    collector_stop(bench);
}

TEST(it_works_ahead_by_one_trajectory)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    start(bench, &work);
    (void)sample_of(begin_ask(bench, work.key, 3));
    gate_await(&bench->toy.gate, 0, 2);
    /* The second one was made without a call; a third one is not. */
    const struct collector_closed closed = closes(bench, work.key);
    assert_int_equal(closed.sample_count, 1);
    assert_int_equal(closed.step_count, 16);
    collector_stop(bench);
}

TEST(a_newer_policy_is_taken_before_it_collects_on)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    start(bench, &work);
    assert_int_equal(sample_of(begin_ask(bench, work.key, 3)).policy_version,
                     3);
    commit(bench, "policy_1", 5);
    gate_await(&bench->toy.gate, 0, 2);
    /* One was ahead of the call. */
    assert_int_equal(sample_of(begin_ask(bench, work.key, 5)).policy_version,
                     3);
    const struct sample sample = sample_of(begin_ask(bench, work.key, 5));
    assert_int_equal(sample.policy_version, 5);
    has_data(bench, &sample, "2/5");
    (void)sample_of(begin_ask(bench, work.key, 5));
    assert_int_equal(bench->toy.loads, 2);
    collector_stop(bench);
}

TEST(a_trajectory_that_is_cut_is_handed_over_as_one)
{
    struct collector_bench *bench = collector_start(0);
    struct collector_work work = work_of("c1", 1);
    work.split = 4;
    start(bench, &work);
    const struct sample sample = sample_of(begin_ask(bench, work.key, 3));
    assert_int_equal(sample.parts, 4);
    assert_int_equal(sample.unroll_len, 8);
    assert_int_equal(sample.size, 12);
    has_data(bench, &sample, "0/30/30/30/3");
    assert_true(data_of(begin_ask(bench, work.key, 3)).info.collector_done);
    assert_int_equal(closes(bench, work.key).sample_count, 4);
    collector_stop(bench);
}

TEST(it_makes_as_many_as_are_wanted_and_hands_them_over_together)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 0);
    gate_turn(&bench->toy.gate, true);
    start(bench, &work);
    ls_call *call = begin_ask_for(bench, work.key, 3, 4);
    gate_pass_one(&bench->toy.gate);
    (void)sample_of(call);
    gate_turn(&bench->toy.gate, false);
    gate_await(&bench->toy.gate, 0, 4);
    /* Three more were made, and no fourth: they come at once. */
    assert_int_equal(closes(bench, work.key).step_count, 32);
    collector_stop(bench);
}

TEST(what_was_made_unasked_comes_with_one_call)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = work_of("c1", 5);
    gate_turn(&bench->toy.gate, true);
    start(bench, &work);
    ls_call *call = begin_ask_for(bench, work.key, 3, 5);
    gate_pass_one(&bench->toy.gate);
    (void)sample_of(call);
    for (int i = 1; i < 4; i++)
        gate_pass_one(&bench->toy.gate);
    gate_await(&bench->toy.gate, 1, 4); /* in the fifth */
    const struct collector_data data =
        data_of(begin_ask_for(bench, work.key, 3, 1));
    assert_int_equal(data.n, 3);
    assert_int_equal(data.samples[0].cur_sample, 2);
    assert_int_equal(data.samples[2].cur_sample, 4);
    free(data.samples);
    gate_turn(&bench->toy.gate, false);
    collector_stop(bench);
}

/* Evaluating ----------------------------------------------------------------
 */

TEST(an_evaluation_brings_the_mean_of_its_episodes)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = evaluation_of("e1", 4);
    struct collector_data data;
    int64_t episodes = 0;
    start(bench, &work);
    do {
        /* Each call is told how far it is. */
        data = data_of(begin_ask(bench, work.key, 3));
        assert_true(data.is_info);
        assert_true(data.info.cur_episode > episodes);
        episodes = data.info.cur_episode;
        assert_int_equal(data.info.collector_done, episodes == 4);
    } while (!data.info.collector_done);
    const struct collector_closed closed = closes(bench, work.key);
    assert_true(closed.eval_flag);
    assert_true(closed.reward_mean == 25.0); /* 10, 20, 30, 40 */
    assert_int_equal(closed.episode_count, 4);
    assert_int_equal(closed.step_count, 20);
    assert_int_equal(closed.sample_count, 0);
    assert_int_equal(closed.policy_version, 3);
    collector_stop(bench);
}

TEST(an_episode_that_ends_is_told_while_others_go_on)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = evaluation_of("e1", 2);
    gate_turn(&bench->toy.gate, true);
    start(bench, &work);
    ls_call *ask = begin_ask(bench, work.key, 3);
    gate_await(&bench->toy.gate, 1, 0);
    gate_pass_one(&bench->toy.gate);
    const struct collector_data data = data_of(ask);
    assert_false(data.info.collector_done);
    assert_int_equal(data.info.cur_episode, 1);
    assert_int_equal(data.info.cur_step, 5);
    collector_stop(bench);
}

TEST(a_close_ends_an_evaluation_between_episodes)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work work = evaluation_of("e1", 1000000);
    gate_turn(&bench->toy.gate, true);
    start(bench, &work);
    ls_call *ask = begin_ask(bench, work.key, 3);
    gate_await(&bench->toy.gate, 1, 0);
    ls_call *close = begin_close(bench, work.key);
    fails_with(ask, "work e1 is closed");
    gate_turn(&bench->toy.gate, false);
    assert_true(closed_by(close).episode_count <= 1);
    collector_stop(bench);
}

/* One after the other -------------------------------------------------------
 */

TEST(a_close_drops_what_nobody_took)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work first = work_of("c1", 0);
    const struct collector_work second = work_of("c2", 1);
    start(bench, &first);
    (void)sample_of(begin_ask(bench, first.key, 3));
    gate_await(&bench->toy.gate, 0, 2);
    assert_int_equal(closes(bench, first.key).sample_count, 1);
    assert_int_equal(bench->bench->store->n, 2); /* the policy, and one */
    start(bench, &second);
    const struct sample sample = sample_of(begin_ask(bench, second.key, 3));
    assert_string_equal(sample.task_id, "c2");
    assert_int_equal(sample.cur_sample, 1);
    assert_int_equal(bench->toy.resets, 2);
    collector_stop(bench);
}

TEST(a_close_while_it_collects_is_answered_when_it_is_over)
{
    struct collector_bench *bench = collector_start(0);
    const struct collector_work first = work_of("c1", 0);
    const struct collector_work second = work_of("c2", 1);
    gate_turn(&bench->toy.gate, true);
    start(bench, &first);
    ls_call *ask = begin_ask(bench, first.key, 3);
    gate_await(&bench->toy.gate, 1, 0);
    ls_call *close = begin_close(bench, first.key);
    fails_with(ask, "work c1 is closed");
    is_refused(begin_ask(bench, first.key, 3), LS_CALL_REFUSED,
               "work c1 is being closed");
    is_refused(begin_start(bench, &second), LS_CALL_BUSY,
               "the collector holds work c1, attempt 1");
    gate_turn(&bench->toy.gate, false);
    (void)closed_by(close);
    assert_int_equal(bench->bench->store->n, 1); /* the policy */
    start(bench, &second);
    is_refused(begin_ask(bench, first.key, 3), LS_CALL_REFUSED,
               "it is for work c1, attempt 1, and the collector holds work c2, "
               "attempt 1");
    (void)sample_of(begin_ask(bench, second.key, 3));
    assert_int_equal(figures_of(bench).common.refused, 3);
    collector_stop(bench);
}
