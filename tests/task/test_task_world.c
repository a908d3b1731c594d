/* Tasks of several nodes: events between their steps, and errors of handlers.
 * What needs processes of its own is tested with the program. */
#include "team.h"
#include "test.h"

/* Steps ------------------------------------------------------------------ */

/* Emit, then wait until as many events have come from the peer. */
struct ping {
    const char *event;
    struct counter heard;
};

static int pings(ls_step *step, void *self)
{
    struct ping *ping = self;
    const struct ls_online_context *context = ls_step_context(step);
    const struct ls_emission emission = {.event = ping->event,
                                         .scope = LS_SCOPE_REMOTE};
    const int status =
        ls_emit_with(ls_task_node(ls_step_task(step)), &emission);
    if (status < 0)
        return status;
    return counter_reaches(&ping->heard, (int)context->total_step + 1)
               ? LS_OK
               : ls_error(LS_ETIMEDOUT, "the peer's ping has not come");
}

static void ping_between_two(const char *transport, bool async)
{
    struct team team = {.async = async};
    struct ping pings_of[2] = {{.event = "ping"}, {.event = "ping"}};
    team_create(&team, 2, transport, LS_TOPOLOGY_MESH);
    for (size_t i = 0; i < 2; i++) {
        counter_init(&pings_of[i].heard);
        assert_ok(ls_on(node_at(&team, i), "ping", count, &pings_of[i].heard));
        assert_ok(ls_task_use_fn(team.members[i].task, pings, &pings_of[i]));
        team.members[i].n_iterations = 10;
    }
    world_join(&team.world);
    team_run(&team);
    assert_all_ended_well(&team);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ls_task_iterations(team.members[i].task), 10);
    team_destroy(&team);
    for (size_t i = 0; i < 2; i++)
        counter_fini(&pings_of[i].heard);
}

TEST(parallel_pipeline_hears_the_peer)
{
    ping_between_two("inproc", false);
    ping_between_two("inproc", true);
}

TEST(ping_over_ipc_and_tcp)
{
    ping_between_two("ipc", false);
    ping_between_two("tcp", false);
}

static int emits_ten(ls_step *step, void *self)
{
    ls_node *node = ls_task_node(ls_step_task(step));
    int status = LS_OK;
    for (int i = 0; i < 10 && status == LS_OK; i++)
        status = ls_emit(node, "count", NULL, 0);
    if (status < 0)
        return status;
    return counter_reaches(self, 10) ? LS_OK : LS_ETIMEDOUT;
}

TEST(ten_emits_are_ten_callbacks)
{
    struct team team = {0};
    struct counter heard;
    counter_init(&heard);
    team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 0), "count", count, &heard));
    assert_ok(ls_task_use_fn(team.members[0].task, emits_ten, &heard));
    team.members[0].n_iterations = 1;
    world_join(&team.world);
    team_run(&team);
    assert_all_ended_well(&team);
    assert_int_equal(counter_get(&heard), 10);
    team_destroy(&team);
    counter_fini(&heard);
}

/* A value of each iteration, and what was heard of them. */
struct talk {
    struct counter heard; /* the last value */
    int64_t sum;
};

static int adds(void *self, const struct ls_event *event)
{
    struct talk *talk = self;
    int64_t value;
    if (event->size != sizeof value)
        return LS_EPROTO;
    memcpy(&value, event->data, sizeof value);
    if (value > counter_get(&talk->heard)) {
        talk->sum += value;
        counter_add(&talk->heard, 1);
    }
    return LS_OK;
}

static int waits_for_value(ls_step *step, void *self)
{
    struct talk *talk = self;
    const struct ls_online_context *context = ls_step_context(step);
    int status = LS_OK;
    while (counter_get(&talk->heard) <= context->total_step && status == LS_OK)
        status = ls_wait_for(ls_task_node(ls_step_task(step)), "value", LONG_MS,
                             adds, talk);
    return status;
}

/* What is emitted before the other one waits is not seen: again, until it is.
 */
static int says_value(ls_step *step, void *self)
{
    struct talk *talk = self;
    const struct ls_online_context *context = ls_step_context(step);
    const int64_t value = context->total_step + 1;
    int status = LS_OK;
    while (counter_get(&talk->heard) < value && status == LS_OK) {
        status = ls_emit(ls_task_node(ls_step_task(step)), "value", &value,
                         sizeof value);
        const int64_t soon = ls_deadline(ls_runtime_threads(), 2);
        ls_mutex_lock(&talk->heard.mutex);
        int wait = LS_OK;
        while (talk->heard.n < value && wait == LS_OK)
            wait = ls_cond_wait(&talk->heard.cond, &talk->heard.mutex, soon);
        ls_mutex_unlock(&talk->heard.mutex);
    }
    return status;
}

TEST(wait_for_is_given_ten_values)
{
    struct team team = {.async = true};
    struct talk talk = {.sum = 0};
    counter_init(&talk.heard);
    team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_task_use_fn(team.members[0].task, waits_for_value, &talk));
    assert_ok(ls_task_use_fn(team.members[0].task, says_value, &talk));
    team.members[0].n_iterations = 10;
    world_join(&team.world);
    team_run(&team);
    assert_all_ended_well(&team);
    assert_int_equal(talk.sum, 55);
    team_destroy(&team);
    counter_fini(&talk.heard);
}

static int waits_in_vain(ls_step *step, void *self)
{
    (void)self;
    return ls_wait_for(ls_task_node(ls_step_task(step)), "never", 1, NULL,
                       NULL);
}

TEST(wait_for_times_out)
{
    struct team team = {0};
    team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_task_use_fn(team.members[0].task, waits_in_vain, NULL));
    world_join(&team.world);
    team_run(&team);
    assert_int_equal(team.members[0].status, LS_ETIMEDOUT);
    assert_has(team.members[0].text, "step waits_in_vain");
    assert_has(team.members[0].text, "never");
    team_destroy(&team);
}

static int waits_for_ever(ls_step *step, void *self)
{
    (void)self;
    return ls_wait_for(ls_task_node(ls_step_task(step)), "never", -1, NULL,
                       NULL);
}

static int goes_wrong(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return ls_error(LS_EIO, "the disk is gone");
}

/* The failing step may come before or after the other one waits. */
TEST(async_error_ends_a_wait_for_an_event)
{
    for (int i = 0; i < 50; i++) {
        struct team team = {.async = true};
        team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
        ls_task *task = team.members[0].task;
        assert_ok(ls_task_use_fn(task, waits_for_ever, NULL));
        assert_ok(ls_task_use_fn(task, goes_wrong, NULL));
        world_join(&team.world);
        team_run(&team);
        assert_int_equal(team.members[0].status, LS_EIO);
        assert_has(team.members[0].text, "the disk is gone");
        assert_int_equal(ls_task_iterations(task), 0);
        team_destroy(&team);
    }
}

static void cancels(void *arg)
{
    ls_task_cancel(arg, LS_ECANCELED, "enough");
}

TEST(a_cancel_ends_with_its_task_and_leaves_an_interrupt_of_others)
{
    struct team team = {0};
    team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
    ls_task *task = team.members[0].task;
    ls_node *node = ls_task_node(task);
    assert_ok(ls_task_use_fn(task, waits_for_ever, NULL));
    ls_task_cancel(task, LS_ECANCELED, NULL);
    assert_fails(ls_node_interrupted(node), LS_ECANCELED);
    assert_fails(ls_task_run(task, 1), LS_ECANCELED);
    assert_ok(ls_node_interrupted(node));
    ls_node_interrupt(node, LS_ETIMEDOUT); /* before, and after it */
    ls_task_cancel(task, LS_ECANCELED, NULL);
    assert_fails(ls_task_run(task, 1), LS_ECANCELED);
    assert_fails(ls_node_interrupted(node), LS_ETIMEDOUT);
    ls_node_interrupt(node, LS_OK);
    ls_task_cancel(task, LS_ECANCELED, NULL);
    ls_node_interrupt(node, LS_ETIMEDOUT);
    assert_fails(ls_task_run(task, 1), LS_ECANCELED);
    assert_fails(ls_node_interrupted(node), LS_ETIMEDOUT);
    ls_node_interrupt(node, LS_OK);
    ls_task_cancel(task, LS_ECANCELED, NULL); /* and no run comes */
    assert_ok(ls_task_destroy(&team.members[0].task));
    assert_ok(ls_node_interrupted(node));
    team_destroy(&team);
}

TEST(cancel_ends_a_wait_for_an_event)
{
    for (int i = 0; i < 50; i++) {
        struct team team = {0};
        ls_thread *thread;
        team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
        assert_ok(ls_task_use_fn(team.members[0].task, waits_for_ever, NULL));
        world_join(&team.world);
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "cancels",
                                  cancels, team.members[0].task));
        team_run(&team);
        assert_ok(ls_thread_join(&thread, LS_FOREVER));
        assert_int_equal(team.members[0].status, LS_ECANCELED);
        assert_string_equal(team.members[0].text, "enough");
        team_destroy(&team);
    }
}

/* Handlers' errors ------------------------------------------------------- */

static int refuses(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return ls_error(LS_EPROTO, "nonsense");
}

static int emits_once(ls_step *step, void *self)
{
    ls_node *node = ls_task_node(ls_step_task(step));
    const int status = ls_emit(node, "bad", NULL, 0);
    if (status < 0)
        return status;
    return counter_reaches(self, 1) ? LS_OK : LS_ETIMEDOUT;
}

static int holds(ls_step *step, void *self)
{
    return *(int *)self = ls_yield(step);
}

/* Nobody emits or waits after it, and yet it is not lost. */
TEST(a_handlers_error_fails_the_run)
{
    struct team team = {0};
    struct counter after;
    int given = LS_OK;
    counter_init(&after);
    team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 0), "bad", refuses, NULL));
    assert_ok(ls_on(node_at(&team, 0), "bad", count, &after));
    assert_ok(ls_task_use_fn(team.members[0].task, holds, &given));
    assert_ok(ls_task_use_fn(team.members[0].task, emits_once, &after));
    team.members[0].n_iterations = 1;
    world_join(&team.world);
    team_run(&team);
    assert_int_equal(team.members[0].status, LS_EPROTO);
    assert_int_equal(given, LS_EPROTO);
    assert_has(team.members[0].text, "node 1");
    assert_has(team.members[0].text, "\"bad\"");
    assert_has(team.members[0].text, "refuses");
    assert_has(team.members[0].text, "nonsense");
    assert_int_equal(ls_task_iterations(team.members[0].task), 0);

    /* It was told, and is told once. */
    team.members[0].status = LS_OK;
    assert_ok(ls_off(node_at(&team, 0), "bad", refuses, NULL));
    team_run(&team);
    assert_all_ended_well(&team);
    team_destroy(&team);
    counter_fini(&after);
}

static int counts(ls_step *step, void *self)
{
    (void)step;
    ++*(int *)self;
    return LS_OK;
}

TEST(a_handlers_error_from_before_the_run_lets_no_step_run)
{
    struct team team = {0};
    struct counter after;
    int ran = 0;
    counter_init(&after);
    team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 0), "bad", refuses, NULL));
    assert_ok(ls_on(node_at(&team, 0), "bad", count, &after));
    assert_ok(ls_task_use_fn(team.members[0].task, counts, &ran));
    world_join(&team.world);
    assert_ok(ls_emit(node_at(&team, 0), "bad", NULL, 0));
    assert_reaches(&after, 1);
    team_run(&team);
    assert_int_equal(team.members[0].status, LS_EPROTO);
    assert_has(team.members[0].text, "refuses");
    assert_int_equal(ran, 0);
    team_destroy(&team);
    counter_fini(&after);
}

static int emits_bad(ls_step *step, void *self)
{
    (void)self;
    return ls_emit(ls_task_node(ls_step_task(step)), "bad", NULL, 0);
}

TEST(a_handlers_error_ends_a_wait_for_an_event)
{
    struct team team = {0};
    team_create(&team, 1, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 0), "bad", refuses, NULL));
    assert_ok(ls_task_use_fn(team.members[0].task, emits_bad, NULL));
    assert_ok(ls_task_use_fn(team.members[0].task, waits_for_ever, NULL));
    world_join(&team.world);
    team_run(&team);
    assert_int_equal(team.members[0].status, LS_EPROTO);
    assert_has(team.members[0].text, "refuses");
    team_destroy(&team);
}

/* Nodes ------------------------------------------------------------------ */

TEST(a_task_knows_its_node)
{
    struct team team = {0};
    team_create(&team, 2, NULL, LS_TOPOLOGY_MESH);
    ls_task *task = team.members[1].task;
    assert_ptr_equal(ls_task_node(task), node_at(&team, 1));
    assert_ptr_equal(ls_task_runtime(task), ls_node_runtime(node_at(&team, 1)));
    assert_true(ls_task_match_labels(task, "distributed"));
    assert_true(ls_task_match_labels(task, "node.[2-9]"));
    assert_false(ls_task_match_labels(task, "node.1,standalone"));
    world_join(&team.world);
    team_destroy(&team);
}

/* Emits until its peer has gone, and goes on. */
static int emits_on(ls_step *step, void *self)
{
    (void)self;
    return ls_emit(ls_task_node(ls_step_task(step)), "data", "x", 1);
}

static void leaves(void *self, const struct ls_member *member)
{
    if (member->state == LS_MEMBER_LEFT || member->state == LS_MEMBER_LOST)
        counter_add(self, 1);
}

TEST(a_sender_survives_its_receivers_exit)
{
    struct team team = {0};
    struct counter heard, left;
    counter_init(&heard);
    counter_init(&left);
    team_create(&team, 2, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 1), "data", count, &heard));
    assert_ok(ls_node_on_member(node_at(&team, 0), leaves, &left));
    assert_ok(ls_task_use_fn(team.members[0].task, emits_on, NULL));
    world_join(&team.world);
    assert_ok(ls_task_run(team.members[0].task, 10));
    assert_reaches(&heard, 10);
    ls_task_destroy(&team.members[1].task);
    ls_node_stop(node_at(&team, 1), LS_OK);
    assert_ok(ls_task_run(team.members[0].task, 10));
    assert_reaches(&left, 1);
    assert_ok(ls_task_run(team.members[0].task, 10));
    assert_int_equal(ls_task_iterations(team.members[0].task), 30);
    team_destroy(&team);
    counter_fini(&heard);
    counter_fini(&left);
}

/* Half made, in each of its halves: the node is as if it had not been. */
TEST(a_task_that_cannot_be_made_holds_nothing)
{
    static const struct ls_context_type no_fields = {.name = "none"};
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_task *task;
    ls_node_options_init(&options);
    options.bind = "inproc://half-made";
    options.world_size = 1;
    assert_ok(ls_node_create(&node, &options));
    const struct ls_task_options bad[] = {
        {.node = node, .roles = "learner", .context = &no_fields},
        {.node = node, .n_workers = 3, .stack_bytes = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(ls_task_create(&task, &bad[i]), LS_EINVAL);
        assert_true(strlen(ls_error_text()) > 0 && task == NULL);
    }
    ls_node_interrupt(node, LS_ECANCELED); /* wakes none of them */
    ls_node_stop(node, LS_OK);
    assert_fails(ls_task_create(&task, &(struct ls_task_options){.node = node}),
                 LS_ECLOSED);
    assert_ok(ls_node_destroy(&node));
}
