/* Tasks of a job that are told to stop: those that do, and those that do not
 * and are left behind. */
#include "job_world.h"

/* Who does what in a test; all of it is one thread. */
struct story {
    uint32_t deaf, sulks; /* nodes; 0: none */
    bool deaf_reports;    /* it is a report */
    bool ended;           /* the deaf task */
    int n_reports;        /* beside it */
    int64_t ended_at[SITES];
    int64_t told_at; /* of a task that listens */
};

static struct story *story_of(const struct site *site)
{
    return site->world->self;
}

static int64_t now_of(const struct site *site)
{
    return ls_now(ls_host_runtime(site->host));
}

static void rest_of(const struct site *site, int64_t ns)
{
    ls_rest_until(ls_host_runtime(site->host), now_of(site) + ns);
}

/* Does not look at ls_turn_is_cancelled(), and uses all that it has after it
 * was left behind. */
static int be_deaf(void *self, ls_turn *turn)
{
    struct site *site = self;
    int64_t *mine = number_of(turn, "mine");
    rest_of(site, 100 * LS_NS_PER_S);
    *mine = ls_turn_epoch(turn) + ls_turn_node(turn);
    *number_of(turn, "later") = *mine;
    assert_true(ls_turn_is_cancelled(turn));
    story_of(site)->ended = true;
    return ls_error(LS_EINVARIANT, "nobody hears this");
}

static int sulk(void *self, ls_turn *turn)
{
    (void)turn;
    rest_of(self, LS_NS_PER_S);
    return ls_error(LS_EPROTO, "it does not like it");
}

static int count(void *self, ls_turn *turn)
{
    (void)turn;
    story_of(self)->n_reports++;
    return LS_OK;
}

static int add_on(struct site *site, uint32_t id, const struct ls_job_task *was)
{
    static const char *const places[] = {"id:1", "id:2", "id:3"};
    struct ls_job_task task = *was;
    task.where = places[id - 1];
    task.self = site;
    task.workspace = LS_WORKSPACE_PRIVATE;
    return ls_job_add(site->job, LS_JOB_EPOCH, &task);
}

static int describe_deaf(struct site *site)
{
    const struct story *story = story_of(site);
    const struct ls_job_task tasks[] = {
        {.name = "count", .fn = count, .report_ms = 100},
        {.name = "deaf",
         .fn = be_deaf,
         .report_ms = story->deaf_reports ? 100 : 0},
        {.name = "sulk", .fn = sulk}};
    const uint32_t nodes[] = {story->deaf, story->deaf, story->sulks};
    int status =
        ls_job_add(site->job, LS_JOB_INIT,
                   &(struct ls_job_task){
                       .name = "begin", .fn = begin_total, .self = site});
    for (size_t i = 0; i < 3 && status == LS_OK; i++)
        if (nodes[i] != 0)
            status = add_on(site, nodes[i], &tasks[i]);
    return status;
}

static void soon(struct site *site)
{
    site->options.cancel_timeout_ms = 2000;
}

/* What remains to be done where a task was left behind: all of it is refused
 * until the task ends. */
static void see_left_behind(struct site *site)
{
    const int n_reports = story_of(site)->n_reports;
    assert_false(story_of(site)->ended);
    assert_int_equal(ls_job_run(site->job, NULL), LS_ESTATE);
    assert_error_has("job reader, epoch group, task deaf still runs");
    assert_int_equal(ls_job_load(site->job, 0, NULL), LS_ESTATE);
    assert_int_equal(ls_job_destroy(&site->job), LS_EAGAIN);
    assert_error_has("job reader, epoch group, task deaf still runs");
    assert_non_null(site->job);
    rest_of(site, 100 * LS_NS_PER_S);
    assert_true(story_of(site)->ended);
    assert_int_equal(story_of(site)->n_reports, n_reports);
    assert_int_not_equal(ls_job_run(site->job, NULL), LS_ESTATE);
}

static int act_deaf(struct site *site)
{
    struct ls_failure failure;
    ls_failure_keep(&failure, ls_job_run(site->job, &site->result));
    story_of(site)->ended_at[site->id - 1] = now_of(site);
    if (site->id == story_of(site)->deaf)
        see_left_behind(site);
    return ls_failure_return(&failure);
}

static void assert_left_behind(const struct job_world *world, const char *why)
{
    const struct story *story = world->self;
    const struct site *site = &world->sites[story->deaf - 1];
    char name[64];
    (void)snprintf(name, sizeof name,
                   "node %d: job reader, epoch group, task deaf still runs",
                   (int)story->deaf);
    assert_int_equal(site->status, LS_ETIMEDOUT);
    assert_has(site->text, name);
    assert_has(site->text, why);
}

static void deaf_body(struct job_world *world)
{
    static const char why[] = "epoch group, task sulk: it does not like it";
    const struct story *story = world->self;
    world->describe = describe_deaf;
    world->act = act_deaf;
    world->tune = soon;
    (void)life(world);
    assert_left_behind(world, why);
    for (size_t i = 0; i < SITES; i++) {
        assert_true(story->ended_at[i] < 20 * LS_NS_PER_S);
        if (i == story->deaf - 1)
            continue;
        assert_int_equal(world->sites[i].status, LS_EPROTO);
        assert_has(world->sites[i].text, why);
    }
}

TEST(a_task_that_does_not_stop_is_left_behind_and_named)
{
    struct story story = {.deaf = 2, .sulks = 3};
    struct job_world world = {.self = &story};
    world_play(&world, 1, deaf_body);
}

TEST(so_is_one_of_the_node_that_leads)
{
    struct story story = {.deaf = 1, .sulks = 3};
    struct job_world world = {.self = &story};
    world_play(&world, 1, deaf_body);
}

TEST(and_one_beside_the_task_that_failed)
{
    struct story story = {.deaf = 2, .sulks = 2};
    struct job_world world = {.self = &story};
    world_play(&world, 1, deaf_body);
}

TEST(and_a_report)
{
    struct story story = {.deaf = 2, .sulks = 3, .deaf_reports = true};
    struct job_world world = {.self = &story};
    world_play(&world, 1, deaf_body);
}

static void leaderless_body(struct job_world *world)
{
    ls_runtime *runtime = ls_simulation_runtime(world->sim.simulation);
    world->describe = describe_deaf;
    world->act = act_deaf;
    world->tune = soon;
    life_begin(world);
    ls_rest_until(runtime, ls_now(runtime) + 2 * LS_NS_PER_S);
    ls_network_kill(world->sim.network, world->sites[0].host);
    life_end(world);
    assert_left_behind(world, "node 1, which leads job reader, was lost");
    assert_int_equal(world->sites[2].status, LS_ELOST);
}

TEST(and_one_whose_leader_was_lost)
{
    struct story story = {.deaf = 2};
    struct job_world world = {.self = &story};
    world_play(&world, 1, leaderless_body);
}

/* ---- a leader that says nothing ---------------------------------------- */

static int listen(void *self, ls_turn *turn)
{
    const struct site *site = self;
    for (int i = 0; i < 1000 && !ls_turn_is_cancelled(turn); i++)
        rest_of(site, 100 * LS_NS_PER_MS);
    if (site->id == 2)
        story_of(site)->told_at = now_of(site);
    return LS_OK;
}

static int describe_listening(struct site *site)
{
    return ls_job_add(
        site->job, LS_JOB_EPOCH,
        &(struct ls_job_task){.name = "listen", .fn = listen, .self = site});
}

static void impatient(struct site *site)
{
    soon(site);
    site->options.group_timeout_ms = site->id == 2 ? 1000 : 90000;
    site->options.save_timeout_ms = 1000;
}

static void silent_body(struct job_world *world)
{
    const struct story *story = world->self;
    world->describe = describe_listening;
    world->tune = impatient;
    (void)life(world);
    assert_int_equal(world->sites[1].status, LS_ETIMEDOUT);
    assert_has(world->sites[1].text,
               "node 1, which leads it, asks nothing "
               "(group_timeout_ms and four times save_timeout_ms)");
    assert_true(story->told_at != 0 && story->told_at < 20 * LS_NS_PER_S);
}

static int act_late(struct site *site)
{
    if (site->id != 2)
        return ls_job_run(site->job, NULL);
    rest_of(site, 25 * LS_NS_PER_S);
    return LS_OK;
}

static void late_body(struct job_world *world)
{
    world->describe = describe_listening;
    world->act = act_late;
    (void)life(world);
    assert_int_equal(world->sites[0].status, LS_ETIMEDOUT);
    assert_has(world->sites[0].text, "job reader: not all nodes began it "
                                     "within 20000 ms (start_timeout_ms)");
    assert_has(world->sites[0].text, "node 2");
}

TEST(a_job_that_not_all_begin_says_for_how_long_it_waited)
{
    struct story story = {.deaf = 0};
    struct job_world world = {.self = &story};
    world_play(&world, 1, late_body);
}

TEST(a_node_that_gives_its_leader_up_cancels_its_tasks)
{
    struct story story = {.deaf = 0};
    struct job_world world = {.self = &story};
    world_play(&world, 1, silent_body);
}

static int act_wrongly(struct site *site)
{
    struct ls_job_options options = site->options;
    ls_job *job;
    static const char *const names[] = {NULL, "", "a/b", "new\nline"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        options.name = names[i];
        assert_int_equal(ls_job_create(&job, site->node, site->calls, &options),
                         LS_EINVAL);
        assert_error_has("of [A-Za-z0-9._-]");
    }
    options.name = "other";
    const struct ls_job_options right = options;
    struct ls_job_options wrong[8] = {right, right, right, right,
                                      right, right, right, right};
    wrong[0].cancel_timeout_ms = -1;
    wrong[1].start_timeout_ms = -1;
    wrong[2].group_timeout_ms = -1;
    wrong[3].save_timeout_ms = -1;
    wrong[4].resume = LS_JOB_AT;
    wrong[4].epoch = -1;
    wrong[5].resume = LS_JOB_AT;
    wrong[5].folder = NULL;
    wrong[6].folder = NULL;
    wrong[7].checkpoint = "everywhere";
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(
            ls_job_create(&job, site->node, site->calls, &wrong[i]), LS_EINVAL);
        assert_null(job);
    }
    return LS_OK;
}

static void wrong_body(struct job_world *world)
{
    world->act = act_wrongly;
    assert_int_equal(life(world), LS_OK);
}

TEST(options_that_are_none_are_refused)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, wrong_body);
}
