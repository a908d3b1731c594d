/* coordinator.h, as a specification: a whole job with real nodes and services,
 * in one process. */
#include "coordinator_bench.h"
#include "file_bytes.h"
#include "lockstep/journal.h"
#include "state/folder_fixture.h"
#include "test.h"

TEST(a_learner_of_100_iterations_tells_101_infos)
{
    struct job *job = job_create();
    job_start(job);
    job_ends(job);
    job_leaves_no_data(job);
    assert_int_equal(job->infos, 101);
    assert_int_equal(job->done_infos, 1);
    assert_int_equal(job->last_step, 100);
    assert_int_equal(job->end_status, LS_OK);
    assert_int_equal(job->end_weights, 100);
    struct fsm_figures figures;
    coordinator_figures(job->coordinator, &figures);
    assert_int_equal(figures.learner_step, 100);
    assert_int_equal(figures.batches, 100);
    assert_int_equal(figures.open_calls, 0);
    assert_int_equal(figures.refused_data, 0);
    assert_true(figures.env_steps == 4 * figures.samples);
    job_destroy(job);
}

TEST(the_value_ends_the_job_with_the_policy_that_has_it)
{
    struct job *job = job_create();
    job->options.fsm.iterations = 0;
    job->options.fsm.stop_value = 5;
    job->options.fsm.eval_episodes = 2;
    job_start(job);
    job_ends(job);
    job_leaves_no_data(job);
    assert_true(job->evaluations >= 1);
    assert_true(job->end_value >= 5);
    assert_int_equal(job->end_weights, job->end_value);
    assert_string_equal(job->end_text, "the value was reached");
    job_destroy(job);
}

static size_t busy_learner(struct job *job)
{
    struct learner_figures figures;
    learner_service_figures(job->parts[PART_LEARNER].learner, &figures);
    return figures.common.works > 0 ? PART_LEARNER : PART_LEARNER + 1;
}

/* Both learners stop at their n-th iteration; the busy one is waited for. */
static size_t await_busy_learner(struct job *job)
{
    struct part *first = &job->parts[PART_LEARNER];
    toy_await(job->store, n_policies, 1); /* it has begun: version 0 */
    const size_t busy = busy_learner(job);
    gate_await(&first[busy - PART_LEARNER].gate, 1, 0);
    return busy;
}

TEST(the_work_of_a_lost_learner_goes_to_the_reserve)
{
    struct job *job = job_create();
    gate_turn(&job->parts[PART_LEARNER].gate, true);
    gate_turn(&job->parts[PART_LEARNER + 1].gate, true);
    job_start(job);
    const size_t busy = await_busy_learner(job);
    const size_t reserve = busy == PART_LEARNER ? busy + 1 : PART_LEARNER;
    gate_turn(&job->parts[reserve].gate, false);
    part_kill(&job->parts[busy]);
    job_ends(job);
    job_leaves_no_data(job);
    assert_int_equal(job->done_infos, 1);
    assert_int_equal(job->last_step, 100);
    assert_int_equal(job->end_weights, 100);
    struct fsm_figures figures;
    coordinator_figures(job->coordinator, &figures);
    assert_true(figures.requeued >= 1);
    job_destroy(job);
}

TEST(a_lost_collector_is_not_missed)
{
    struct job *job = job_create();
    job_start(job);
    toy_await(job->store, n_policies, 5);
    part_kill(&job->parts[PART_COLLECTOR]);
    job_ends(job);
    assert_int_equal(job->infos, 101);
    assert_int_equal(job->end_weights, 100);
    job_destroy(job);
}

static void restart_coordinator(struct job *job)
{
    struct part *part = &job->parts[PART_COORDINATOR];
    part_kill(part);
    job->ends = 0; /* the life that is over has told its own */
    part_create_node(part, PARTS);
    job_use_coordinator(job);
    if (ls_node_start(part->at.node) != LS_OK)
        fail_msg("%s", ls_error_text());
    part_begin_run(part);
}

TEST_WITH(a_restarted_coordinator_takes_the_works_over, folder_set_up,
          folder_tear_down)
{
    const struct place *place = *state;
    struct job *job = job_create_in(place->folder);
    job->options.journal = place->path;
    gate_turn(&job->parts[PART_LEARNER].gate, true);
    gate_turn(&job->parts[PART_LEARNER + 1].gate, true);
    job_start(job);
    const size_t busy = await_busy_learner(job);
    restart_coordinator(job);
    gate_turn(&job->parts[PART_LEARNER].gate, false);
    gate_turn(&job->parts[PART_LEARNER + 1].gate, false);
    job_ends(job);
    assert_int_equal(job->done_infos, 1);
    assert_int_equal(job->end_weights, 100);
    /* It was not begun a second time. */
    struct learner_figures figures;
    learner_service_figures(job->parts[busy].learner, &figures);
    assert_int_equal(figures.common.works, 1);
    assert_int_equal(busy_learner(job), busy);
    job_destroy(job);
}

/* Killed when all was done, before anybody could know. */
TEST_WITH(a_job_that_has_ended_is_not_done_again, folder_set_up,
          folder_tear_down)
{
    const struct place *place = *state;
    for (int life = 0; life < 2; life++) {
        struct job *job = job_create();
        job->options.journal = place->path;
        job->options.fsm.iterations = 5;
        job_start(job);
        job_ends(job);
        assert_int_equal(job->infos, life == 0 ? 6 : 0);
        assert_int_equal(job->end_status, LS_OK);
        job_destroy(job);
    }
}

TEST_WITH(a_journal_that_is_none_is_an_error, folder_set_up, folder_tear_down)
{
    const struct place *place = *state;
    static const char other[] = "something else, which is long enough";
    write_bytes(place->path, other, sizeof other - 1);
    struct job *job = job_create();
    job->options.journal = place->path;
    job->options.calls = job->parts[PART_COORDINATOR].at.calls;
    job->options.store = &job->store->base;
    assert_fails(coordinator_create(&job->coordinator, &job->options),
                 LS_EPROTO);
    assert_null(job->coordinator);
    job_destroy(job);
}

static int recall_record(void *machine, const struct ls_journal_record *record)
{
    return fsm_recall(machine, record->data, record->size);
}

/* What a later life would know of the buffer. */
static struct replay_figures recalled(const struct job *job)
{
    fsm *machine;
    ls_journal *journal;
    struct fsm_figures figures;
    assert_ok(fsm_create(&machine, &job->options.fsm, fsm_kinds));
    assert_ok(ls_journal_open(
        &journal, &(struct ls_journal_options){.path = job->options.journal,
                                               .fn = recall_record,
                                               .self = machine}));
    fsm_figures(machine, &figures);
    ls_journal_close(&journal);
    fsm_destroy(&machine);
    return figures.replay;
}

/* Each piece of data is a thousand samples, which are recorded in a row: the
 * journal begins anew in the middle of them. */
TEST_WITH(a_journal_that_begins_anew_counts_nothing_twice, folder_set_up,
          folder_tear_down)
{
    const struct place *place = *state;
    struct job *job = job_create();
    struct fsm_options *options = &job->options.fsm;
    job->options.journal = place->path;
    options->keeps_samples = options->data_stays = true;
    options->unroll_len = 4096;
    options->split = 1024;
    options->replay =
        (struct replay_options){.capacity = 2048, .min_size_to_sample = 2048};
    job_start(job);
    toy_await(job->store, n_puts, 60);
    struct part *part = &job->parts[PART_COORDINATOR];
    ls_task_cancel(part->task, LS_ECANCELED, "killed");
    part_ends(part, LS_ECANCELED);
    struct fsm_figures figures;
    coordinator_figures(job->coordinator, &figures);
    part_destroy(part, LS_ECANCELED);
    const struct replay_figures after = recalled(job);
    assert_true(figures.replay.inserted > 17408);
    assert_int_equal(after.inserted, figures.replay.inserted);
    assert_int_equal(after.evicted_overflow, figures.replay.evicted_overflow);
    assert_int_equal(after.evicted_lost, 0);
    for (size_t i = PART_LEARNER; i < PARTS; i++)
        part_kill(&job->parts[i]);
    job_destroy(job);
}

TEST(stop_closes_all_works_and_ends_with_its_status)
{
    struct job *job = job_create();
    job->options.fsm.iterations = 0;
    job_start(job);
    toy_await(job->store, n_policies, 3);
    coordinator_stop(job->coordinator, LS_EABORTED, "that is enough");
    coordinator_stop(job->coordinator, LS_OK, "this comes too late");
    part_ends(&job->parts[PART_COORDINATOR], LS_EABORTED);
    assert_non_null(
        strstr(job->parts[PART_COORDINATOR].text, "that is enough"));
    assert_int_equal(job->ends, 1);
    assert_int_equal(job->end_status, LS_EABORTED);
    for (size_t i = PART_LEARNER; i < PARTS; i++)
        ls_task_cancel(job->parts[i].task, LS_ECANCELED, "the test is over");
    for (size_t i = PART_LEARNER; i < PARTS; i++)
        part_ends(&job->parts[i], LS_ECANCELED);
    job_destroy(job);
}

TEST(stop_with_ok_finishes_the_task_everywhere)
{
    struct job *job = job_create();
    job->options.fsm.iterations = 0;
    job_start(job);
    toy_await(job->store, n_policies, 3);
    coordinator_stop(job->coordinator, LS_OK, "the time is up");
    job_ends(job);
    job_leaves_no_data(job);
    assert_string_equal(job->end_text, "the time is up");
    job_destroy(job);
}

TEST(wrong_options_are_refused)
{
    struct job *job = job_create();
    job->options.calls = job->parts[PART_COORDINATOR].at.calls;
    assert_fails(coordinator_create(&job->coordinator, &job->options),
                 LS_EINVAL);
    job->options.store = &job->store->base;
    job->options.fsm.batch_size = 0;
    assert_fails(coordinator_create(&job->coordinator, &job->options),
                 LS_EINVAL);
    assert_error_has("batch_size");
    job_destroy(job);
}
