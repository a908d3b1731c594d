/* Finish: who is told, and what it ends. */
#include "bus/node_fixture.h"
#include "task_help.h"
#include "team.h"
#include "test.h"

static int does_nothing(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    return LS_OK;
}

/* In the fifth iteration: wait until the finish has come. */
static int waits_in_fifth(ls_step *step, void *self)
{
    const struct ls_online_context *context = ls_step_context(step);
    if (context->total_step < 4)
        return LS_OK;
    return counter_reaches(self, 1) ? LS_OK : LS_ETIMEDOUT;
}

TEST(early_stop_stops_the_others)
{
    struct team team = {0};
    struct counter finished;
    counter_init(&finished);
    team_create(&team, 2, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 1), "ls.finish", count, &finished));
    assert_ok(ls_task_use_fn(team.members[0].task, does_nothing, NULL));
    assert_ok(ls_task_use_fn(team.members[1].task, waits_in_fifth, &finished));
    team.members[0].n_iterations = 2;
    team.members[1].n_iterations = 10;
    world_join(&team.world);
    team_run(&team);
    assert_all_ended_well(&team);
    assert_int_equal(ls_task_iterations(team.members[0].task), 2);
    assert_true(ls_task_iterations(team.members[1].task) < 7);
    team_destroy(&team);
    counter_fini(&finished);
}

static int finishes(ls_step *step, void *self)
{
    (void)self;
    ls_task_finish(ls_step_task(step));
    return LS_OK;
}

static void finish_of_three(enum ls_topology topology, size_t who)
{
    struct team team = {0};
    team_create(&team, 3, NULL, topology);
    for (size_t i = 0; i < 3; i++)
        assert_ok(ls_task_use_fn(team.members[i].task, does_nothing, NULL));
    assert_ok(ls_task_use_fn(team.members[who].task, finishes, NULL));
    world_join(&team.world);
    team_run(&team);
    assert_all_ended_well(&team);
    assert_int_equal(ls_task_iterations(team.members[who].task), 1);
    team_destroy(&team);
}

/* The first node is the hub, and the one that the others attach to. */
TEST(broadcast_finish_reaches_every_node)
{
    finish_of_three(LS_TOPOLOGY_STAR, 0);
    finish_of_three(LS_TOPOLOGY_STAR, 2);
    finish_of_three(LS_TOPOLOGY_MESH, 1);
}

static int goes_wrong_first(ls_step *step, void *self)
{
    (void)step;
    return *(int *)self == 0 ? ls_error(LS_EIO, "a crash") : LS_OK;
}

TEST(an_error_is_not_a_finish)
{
    struct team team = {0};
    struct counter finished;
    int well = 0;
    counter_init(&finished);
    team_create(&team, 2, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 1), "ls.finish", count, &finished));
    assert_ok(ls_task_use_fn(team.members[0].task, goes_wrong_first, &well));
    assert_ok(ls_task_use_fn(team.members[1].task, does_nothing, NULL));
    team.members[0].n_iterations = 1;
    team.members[1].n_iterations = 1;
    world_join(&team.world);
    assert_fails(ls_task_run(team.members[0].task, 1), LS_EIO);
    well = 1;
    assert_ok(ls_task_run(team.members[0].task, 1));
    assert_reaches(&finished, 1);
    assert_int_equal(counter_get(&finished), 1); /* FIFO: it was the first */
    team_destroy(&team);
    counter_fini(&finished);
}

static int finishes_here(ls_step *step, void *self)
{
    (void)self;
    ls_task_finish_here(ls_step_task(step));
    return LS_OK;
}

TEST(finish_here_tells_nobody)
{
    struct team team = {0};
    struct counter finished;
    counter_init(&finished);
    team_create(&team, 2, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 1), "ls.finish", count, &finished));
    assert_ok(ls_on(node_at(&team, 1), "after", count, &finished));
    assert_ok(ls_task_use_fn(team.members[0].task, finishes_here, NULL));
    world_join(&team.world);
    assert_ok(ls_task_run(team.members[0].task, 5));
    assert_int_equal(ls_task_iterations(team.members[0].task), 1);
    assert_ok(ls_emit(node_at(&team, 0), "after", NULL, 0));
    assert_reaches(&finished, 1);
    assert_int_equal(counter_get(&finished), 1);
    assert_false(ls_task_finishing(team.members[1].task));
    team_destroy(&team);
    counter_fini(&finished);
}

static int leaves(ls_step *step, void *self)
{
    (void)self;
    ls_node_stop(ls_task_node(ls_step_task(step)), LS_OK);
    return LS_OK;
}

/* Its farewell has told the others all that there is to be told. */
TEST(a_run_whose_node_has_left_ends_well)
{
    struct team team = {0};
    team_create(&team, 2, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_task_use_fn(team.members[0].task, leaves, NULL));
    world_join(&team.world);
    assert_ok(ls_task_run(team.members[0].task, 1));
    team_destroy(&team);
}

/* The gate of a node whose emits all fail, while *self says so. */
static int finds_no_room(void *self, const struct ls_emission *emission,
                         const void **data, size_t *size)
{
    const bool *full = self;
    (void)emission, (void)data, (void)size;
    return *full ? ls_error(LS_EAGAIN, "no room") : LS_OK;
}

static bool handles_all(void *self, const struct ls_event *event)
{
    (void)self, (void)event;
    return true;
}

/* Its hooks know, and the next run ends well. */
TEST(a_run_that_cannot_tell_the_others_fails)
{
    bool full = true;
    int known = LS_OK;
    const struct ls_event_gate gate = {&full, finds_no_room, handles_all};
    struct ls_node_options options = usual(1);
    options.gate = &gate;
    ls_node *node = create(&options);
    ls_task *task = NULL;
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.node = node}));
    assert_ok(ls_task_use(task, (struct ls_middleware){.fn = does_nothing,
                                                       .finish = keeps_status,
                                                       .self = &known}));
    assert_ok(ls_node_start(node));
    assert_fails(ls_task_run(task, 1), LS_EAGAIN);
    assert_error_has("task: the other nodes were not told that the run is "
                     "finished: no room");
    assert_int_equal(known, LS_EAGAIN);
    assert_int_equal(ls_task_iterations(task), 1);
    full = false;
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(known, LS_OK);
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_node_destroy(&node));
}

/* Node 1 emits a finish of its own making; node 2 says what it made of it. */
static void assert_finish_is_read(const void *data, size_t size,
                                  uint64_t runs_before, bool finishing,
                                  int status)
{
    struct team team = {0};
    struct counter heard;
    counter_init(&heard);
    team_create(&team, 2, NULL, LS_TOPOLOGY_MESH);
    assert_ok(ls_on(node_at(&team, 1), "ls.finish", count, &heard));
    world_join(&team.world);
    for (uint64_t i = 0; i < runs_before; i++)
        assert_ok(ls_task_run(team.members[1].task, 1));
    assert_ok(ls_emit(node_at(&team, 0), "ls.finish", data, size));
    assert_reaches(&heard, 1);
    assert_int_equal(ls_task_finishing(team.members[1].task), finishing);
    assert_int_equal(ls_node_take_error(node_at(&team, 1)), status);
    team_destroy(&team);
    counter_fini(&heard);
}

TEST(a_finish_is_for_one_run)
{
    assert_finish_is_read("\1", 1, 0, true, LS_OK);
    assert_finish_is_read("\1", 1, 1, false, LS_OK); /* of the last run */
    assert_finish_is_read("\2", 1, 1, true, LS_OK);
    assert_finish_is_read(NULL, 0, 1, true, LS_OK);
}

TEST(a_malformed_finish_is_an_error_not_a_finish)
{
    assert_finish_is_read("\xc1", 1, 0, false, LS_EPROTO);
    assert_finish_is_read("\xff", 1, 0, false, LS_EPROTO); /* -1 */
}
