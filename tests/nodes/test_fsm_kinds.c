/* fsm_kinds.h and service_work.h: what a kind of work is, and that one more
 * takes a description at the coordinator and one at the member, and nothing
 * else. */
#include "coordinator.h"
#include "fsm_hand.h"
#include "lockstep/place.h"
#include "probe.h"
#include "service_bench.h"
#include "test.h"

static struct fsm_options options;
static struct fsm_kind probe;
static const struct fsm_kind *const kinds[] = {
    &fsm_kind_evaluation, &fsm_kind_learner, &fsm_kind_collector, &probe, NULL};

static int set_up(void **state)
{
    (void)state;
    options = hand_options();
    probe = probe_kind("role:collector");
    return 0;
}

EACH_TEST(set_up, NULL)

/* The kinds that there are ------------------------------------------------- */

/* What is written of works is read by these later. */
TEST(kinds_can_be_told_apart_and_begin_and_end)
{
    for (size_t i = 0; fsm_kinds[i] != NULL; i++) {
        const struct fsm_kind *kind = fsm_kinds[i];
        assert_ok(ls_place_check(kind->where));
        assert_int_equal(kind->tasks[0].phase, LS_JOB_INIT);
        assert_int_equal(kind->tasks[kind->n_tasks - 1].phase, LS_JOB_EXIT);
        for (size_t k = 1; k + 1 < kind->n_tasks; k++) {
            assert_int_equal(kind->tasks[k].phase, LS_JOB_EPOCH);
            assert_non_null(kind->tasks[k].ended);
        }
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(kind->number, fsm_kinds[k]->number);
            assert_string_not_equal(kind->verb, fsm_kinds[k]->verb);
        }
    }
    assert_int_equal(fsm_kind_learner.number, 0);
    assert_int_equal(fsm_kind_collector.number, 1);
    assert_int_equal(fsm_kind_evaluation.number, 2);
}

TEST(a_kind_with_no_place_is_refused)
{
    fsm *machine = NULL;
    probe.where = "somewhere";
    assert_fails(fsm_create(&machine, &options, kinds), LS_EINVAL);
    assert_error_has("probe works: \"somewhere\" is not a place");
    assert_null(machine);
}

/* One more; its first work is the second that is asked for ------------------
 */

static void looked(struct hand *hand, uint32_t id, int64_t attempt,
                   int64_t looks)
{
    struct service_resource answer = {
        .task_id = "probe_2", .attempt = attempt, .progress = looks};
    service_resource_write(&answer, hand->writer);
    hand_answer(hand, id, PROBE_LOOK);
}

static void started(struct hand *hand, uint32_t id)
{
    service_started_write("begun", hand->writer);
    hand_answer(hand, id, PROBE_START);
}

static void closed(struct hand *hand, uint32_t id, int64_t attempt)
{
    const struct collector_closed answer = {.key = hand_key("probe_2", attempt),
                                            .reward_mean = PROBE_VALUE,
                                            .policy_version = -1};
    collector_closed_write(&answer, hand->writer);
    hand_answer(hand, id, PROBE_CLOSE);
}

static void has_attempt(const struct hand_call *call, int64_t attempt)
{
    struct work_key key;
    assert_ok(work_key_read(&key, call->data, call->size));
    assert_string_equal(key.task_id, "probe_2");
    assert_int_equal(key.attempt, attempt);
}

TEST(a_work_of_a_new_kind_begins_takes_turns_and_brings_what_it_has)
{
    struct hand *hand = hand_open_with(&options, kinds);
    hand_join(hand, COLLECTOR);
    has_attempt(hand_expect(hand, COLLECTOR, PROBE_START), 1);
    hand_expect_none(hand, COLLECTOR, PROBE_LOOK);
    started(hand, COLLECTOR);
    for (int64_t looks = 1; looks <= PROBE_LOOKS; looks++) {
        has_attempt(hand_expect(hand, COLLECTOR, PROBE_LOOK), 1);
        looked(hand, COLLECTOR, 1, looks);
    }
    has_attempt(hand_expect(hand, COLLECTOR, PROBE_CLOSE), 1);
    closed(hand, COLLECTOR, 1);
    assert_true(hand_figures(hand).eval_value == PROBE_VALUE);
    hand_resource(hand, COLLECTOR, "", 0);
    hand_expect_none(hand, COLLECTOR, PROBE_START); /* one was wanted */
    hand_close(hand);
}

TEST(it_goes_to_another_when_its_member_is_lost)
{
    struct hand *hand = hand_open_with(&options, kinds);
    hand_join(hand, COLLECTOR);
    started(hand, COLLECTOR);
    hand_join(hand, OTHER);
    hand_expect_none(hand, OTHER, PROBE_START);
    hand_member(hand, COLLECTOR, 1, false);
    has_attempt(hand_expect(hand, OTHER, PROBE_START), 2);
    assert_int_equal(hand_figures(hand).requeued, 1);
    hand_close(hand);
}

TEST(it_waits_for_a_member_where_it_is_placed)
{
    probe.where = "id:4";
    struct hand *hand = hand_open_with(&options, kinds);
    hand_join(hand, COLLECTOR);
    hand_expect_none(hand, COLLECTOR, PROBE_START);
    hand_join(hand, OTHER);
    (void)hand_expect(hand, OTHER, PROBE_START);
    hand_close(hand);
}

/* So there is one that evaluates, or looks, beside those that collect. */
TEST(collectors_are_spared_for_it)
{
    struct hand *hand = hand_open_with(&options, kinds);
    hand_join(hand, COLLECTOR);
    started(hand, COLLECTOR);
    hand_join(hand, LEARNER);
    hand_started(hand, LEARNER);
    hand_demand(hand, LEARNER, 1, 0, false);
    hand_join(hand, OTHER);
    const struct hand_call *start =
        hand_expect(hand, OTHER, CALL_COLLECTOR_START);
    struct collector_work work;
    assert_ok(collector_work_read(&work, start->data, start->size));
    assert_string_equal(work.key.task_id, "collect_3");
    hand_started(hand, OTHER);
    hand_wait(hand, 31 * LS_NS_PER_S);
    assert_int_equal(hand_figures(hand).expired, 0); /* nor asked for */
    for (int64_t looks = 1; looks <= PROBE_LOOKS; looks++)
        looked(hand, COLLECTOR, 1, looks);
    closed(hand, COLLECTOR, 1);
    hand_resource(hand, COLLECTOR, "", 0);
    (void)hand_expect(hand, COLLECTOR, CALL_COLLECTOR_START);
    hand_close(hand);
}

TEST(what_is_held_of_nobody_is_closed_in_the_way_of_its_kind)
{
    struct hand *hand = hand_open_with(&options, kinds);
    hand_member(hand, COLLECTOR, 1, true);
    hand_connected(hand, COLLECTOR);
    hand_resource(hand, COLLECTOR, "probe_77", 3);
    const struct hand_call *close = hand_expect(hand, COLLECTOR, PROBE_CLOSE);
    struct work_key key;
    assert_ok(work_key_read(&key, close->data, close->size));
    assert_string_equal(key.task_id, "probe_77");
    hand_close(hand);
}

TEST(a_member_that_holds_what_no_kind_has_is_left_alone)
{
    struct hand *hand = hand_open_with(&options, kinds);
    hand_member(hand, COLLECTOR, 1, true);
    hand_connected(hand, COLLECTOR);
    hand_resource(hand, COLLECTOR, "dream_77", 3);
    assert_int_equal(hand_figures(hand).refused_data, 1);
    assert_has(hand->warning, "dream_77 is no work of such a member");
    hand_expect_none(hand, COLLECTOR, CALL_RESOURCE);
    hand_wait(hand, 3 * LS_NS_PER_S);
    (void)hand_expect(hand, COLLECTOR, CALL_RESOURCE);
    hand_close(hand);
}

TEST(a_later_life_goes_on_with_it)
{
    struct hand *before = hand_open_with(&options, kinds);
    hand_join(before, COLLECTOR);
    started(before, COLLECTOR);
    struct hand *hand = hand_open_with(&options, kinds);
    fsm *stranger = NULL;
    assert_ok(fsm_create(&stranger, &options, fsm_kinds));
    int status = LS_OK;
    for (size_t i = 0; i < before->n_records; i++) {
        assert_ok(fsm_recall(hand->fsm, before->records[i].data,
                             before->records[i].size));
        if (status == LS_OK)
            status = fsm_recall(stranger, before->records[i].data,
                                before->records[i].size);
    }
    assert_int_equal(status, LS_EPROTO); /* one that has no such kind */
    assert_error_has("kind: there is none of number 17");
    hand_member(hand, COLLECTOR, 1, true);
    hand_connected(hand, COLLECTOR);
    hand_resource(hand, COLLECTOR, "probe_2", 1);
    has_attempt(hand_expect(hand, COLLECTOR, PROBE_LOOK), 1);
    fsm_destroy(&stranger);
    hand_close(hand);
    hand_close(before);
}

/* With a member that does it ----------------------------------------------- */

struct ending {
    int n, status;
    double value;
    char text[64];
};

static int ended(void *self, const struct coordinator_end *end)
{
    struct ending *ending = self;
    ending->n++;
    ending->status = end->status;
    ending->value = end->eval_value;
    (void)snprintf(ending->text, sizeof ending->text, "%s", end->text);
    return LS_OK;
}

static void start_all(struct bench *bench)
{
    struct bench_node *nodes[] = {&bench->member, &bench->coordinator,
                                  &bench->successor};
    for (size_t i = 0; i < 3; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &nodes[i]->starter,
                                  "start", bench_start_node, nodes[i]));
    for (size_t i = 0; i < 3; i++) {
        assert_ok(ls_thread_join(&nodes[i]->starter, bench_deadline()));
        assert_ok(nodes[i]->status);
    }
}

/* Another kind of the same member, whose turns are not for works of this one.
 */
static int step_of_another(ls_step *step, void *self)
{
    struct prober *prober = self;
    (void)step;
    return service_work_is_used(&prober->work)
               ? ls_error(LS_EHANDLER, "a step of another kind")
               : LS_OK;
}

static const struct service_work_step other_steps[] = {
    {"another", step_of_another}};
static const struct service_task other_tasks[] = {
    {LS_JOB_INIT, "other_start_task", prober_start},
    {LS_JOB_EXIT, "other_close_task", NULL}};
static const struct service_kind other_kind = {.tasks = other_tasks,
                                               .n_tasks = 2,
                                               .steps = other_steps,
                                               .n_steps = 1,
                                               .progress = prober_progress,
                                               .drop = prober_drop,
                                               .closed = prober_closed};

/* Its only kind is one that neither the coordinator nor the member's service
 * was made with. */
TEST(a_job_of_a_new_kind_is_done_by_a_real_coordinator_and_member)
{
    static const struct service_kind *const member_kinds[] = {
        &other_kind, &prober_kind, NULL};
    static const struct service_work_ops ops = {.what = "prober",
                                                .kinds = member_kinds};
    const struct fsm_kind *const only[] = {&probe, NULL};
    struct bench *bench = bench_create();
    const struct service_options common = bench_options(bench, 0);
    struct prober prober = {.looks = 0};
    struct ending ending = {.n = 0};
    coordinator *master = NULL;
    ls_task *task = NULL;
    probe.where = "id:1"; /* MEMBER */
    options.stop_value = PROBE_VALUE;
    options.eval_episodes = 1;
    options.max_time = BENCH_MS * LS_NS_PER_MS; /* or it would wait for ever */
    assert_ok(service_work_init(&prober.work, &common, &ops, &prober));
    assert_ok(service_work_serve(&prober.work));
    service_work_use(&prober.work, bench->task);
    assert_ok(coordinator_create(&master, &(struct coordinator_options){
                                              .calls = bench->coordinator.calls,
                                              .store = &bench->store->base,
                                              .fsm = options,
                                              .kinds = only,
                                              .ended = ended,
                                              .self = &ending}));
    assert_ok(ls_task_create(
        &task, &(struct ls_task_options){.node = bench->coordinator.node}));
    assert_ok(coordinator_use(master, task));
    start_all(bench);
    bench_begin_run(bench);
    assert_ok(ls_task_run(task, UINT64_MAX));
    bench_ends(bench, LS_OK);
    bench->runner = NULL;
    assert_int_equal(ending.n, 1);
    assert_int_equal(ending.status, LS_OK);
    assert_true(ending.value == PROBE_VALUE);
    assert_string_equal(ending.text, "the value was reached");
    assert_int_equal(prober.looks, PROBE_LOOKS);
    assert_int_equal(prober.work.figures.works, 1);
    ls_task_destroy(&task);
    coordinator_destroy(&master);
    bench_stop(bench);
    service_work_fini(&prober.work);
    bench_destroy(bench);
}
