/* Nodes that run on when they lose one, on simulated hosts: a learner, a
 * collector and an evaluator, and nobody who would start again what is lost. */
#include <limits.h>
#include <unistd.h>

#include "elastic_run.h"
#include "lockstep/network.h"
#include "node_run.h"
#include "plan_reading.h"
#include "plugin_load.h"
#include "state/folder_fixture.h"
#include "test.h"

enum { LEARNER, COLLECTOR, EVALUATOR, N };

/* 11 s: world.start_timeout_s and the longest back-off. */
#define PATIENCE_NS (11 * LS_NS_PER_S)
#define SILENCE_NS  (2 * LS_NS_PER_S)
/* From the word, or the deadline, to the end. */
#define SOON_NS LS_NS_PER_S

static const char job[] = "job: lost\n"
                          "plugin: faulty\n"
                          "seed: 1\n"
                          "nodes:\n"
                          "  - {role: learner, on_loss: restart}\n"
                          "  - {role: collector, on_loss: restart}\n"
                          "  - {role: evaluator, on_loss: restart}\n"
                          "world: {start_timeout_s: 1}\n"
                          "collector: {envs: 1, steps: 10}\n"
                          "evaluator: {episodes: 1, solved: 1000}\n";

static const char pair_job[] = "job: lost\n"
                               "plugin: faulty\n"
                               "nodes:\n"
                               "  - {role: learner, on_loss: restart}\n"
                               "  - {role: collector, on_loss: restart}\n"
                               "world: {start_timeout_s: 1}\n";

struct world;

struct host {
    struct world *world;
    ls_host *host;
    node_run *run;
    ls_thread *thread;
    bool started;
    int status;
    char text[LS_ERROR_TEXT_MAX];
    int64_t ended_at;
};

struct world {
    struct plan plan;
    struct plugin *plugin;
    ls_simulation *simulation;
    ls_network *network;
    struct host hosts[N];
    int64_t lose_at;  /* a node is killed */
    int64_t end_at;   /* the others are told to end; 0: they are not */
    int64_t stand_ns; /* they stand still for so long, a second later */
};

static void put_report(void *self, const struct report *report)
{
    struct host *host = self;
    host->started = host->started || report->kind == REPORT_STARTED;
}

static void run_host(void *arg)
{
    struct host *self = arg;
    self->status = node_run_go(self->run);
    (void)snprintf(self->text, sizeof self->text, "%s",
                   self->status == LS_OK ? "" : ls_error_text());
    self->ended_at = ls_simulation_now(self->world->simulation);
}

static void begin(struct world *world, uint32_t index)
{
    struct host *host = &world->hosts[index];
    char name[16];
    struct plan_endpoints endpoints = {.n_attach = index == LEARNER ? 0 : 1};
    host->world = world;
    (void)snprintf(name, sizeof name, "node %u", (unsigned)index);
    assert_ok(ls_host_create(&host->host, world->simulation, name));
    assert_ok(ls_network_join(world->network, host->host));
    (void)snprintf(endpoints.bind, sizeof endpoints.bind, "tcp://127.0.0.1:%u",
                   21500 + (unsigned)index);
    (void)snprintf(endpoints.attach[0], sizeof endpoints.attach[0],
                   "tcp://127.0.0.1:21500");
    assert_ok(node_run_create(
        &host->run,
        &(struct node_run_options){.plan = &world->plan,
                                   .index = index,
                                   .plugin = world->plugin,
                                   .endpoints = &endpoints,
                                   .sink = {put_report, host},
                                   .runtime = ls_host_runtime(host->host)}));
    assert_ok(ls_thread_spawn(ls_host_runtime(host->host), &host->thread,
                              "node", run_host, host));
}

static void stand_still(struct world *world, ls_runtime *runtime)
{
    ls_rest_until(runtime, world->lose_at + LS_NS_PER_S);
    ls_host_pause(world->hosts[LEARNER].host);
    ls_host_pause(world->hosts[EVALUATOR].host);
    ls_rest_until(runtime, ls_now(runtime) + world->stand_ns);
    ls_host_resume(world->hosts[LEARNER].host);
    ls_host_resume(world->hosts[EVALUATOR].host);
}

static void live(void *arg)
{
    struct world *world = arg;
    ls_runtime *runtime = ls_simulation_runtime(world->simulation);
    for (uint32_t i = 0; i < N; i++)
        begin(world, i);
    ls_rest_until(runtime, world->lose_at);
    for (size_t i = 0; i < N; i++)
        assert_true(world->hosts[i].started);
    ls_network_kill(world->network, world->hosts[COLLECTOR].host);
    node_run_cancel(world->hosts[COLLECTOR].run, LS_ECANCELED, "killed");
    if (world->stand_ns != 0)
        stand_still(world, runtime);
    if (world->end_at != 0) {
        ls_rest_until(runtime, world->end_at);
        node_run_cancel(world->hosts[LEARNER].run, LS_ECANCELED, "told");
        node_run_cancel(world->hosts[EVALUATOR].run, LS_ECANCELED, "told");
    }
    for (size_t i = 0; i < N; i++) {
        struct host *host = &world->hosts[i];
        assert_ok(ls_thread_join(&host->thread, LS_FOREVER));
        node_run_destroy(&host->run);
    }
}

/* minutes: of stop; 0: none. */
static void run_world(struct world *world, const struct place *place,
                      uint64_t seed, double minutes)
{
    const struct ls_simulation_options options = {
        .seed = seed, .limit_ns = 120 * LS_NS_PER_S};
    const struct ls_network_path path = {.delay_ns = LS_NS_PER_MS};
    read_good(&world->plan, job);
    free(world->plan.out);
    world->plan.out = strdup(place->folder);
    assert_non_null(world->plan.out);
    world->plan.stop_minutes = minutes;
    assert_ok(plugin_load(&world->plugin, "faulty", ""));
    assert_ok(ls_simulation_create(&world->simulation, &options));
    assert_ok(ls_network_create(&world->network, world->simulation, &path));
    if (ls_simulation_run(world->simulation, live, world) != LS_OK) {
        ls_simulation_print(world->simulation, stderr);
        fail_msg("seed %llu: %s", (unsigned long long)seed, ls_error_text());
    }
    ls_network_destroy(&world->network);
    ls_simulation_destroy(&world->simulation);
    plugin_unload(&world->plugin);
    plan_fini(&world->plan);
}

static void awaits_one_that_stays_away(struct world *world,
                                       const struct place *place)
{
    run_world(world, place, 1, 0.0);
    for (size_t i = 0; i < N; i++) {
        const struct host *host = &world->hosts[i];
        if (i == COLLECTOR)

            continue;
        assert_int_equal(host->status, LS_ELOST);
        if (strstr(host->text, "node 1 (collector) did not come back within") ==
            NULL)
            fail_msg("%s", host->text);
        const int64_t by = world->lose_at + world->stand_ns + PATIENCE_NS;
        assert_true(host->ended_at >= by);
        assert_true(host->ended_at <= by + SILENCE_NS + SOON_NS);
    }
}

TEST_WITH(who_does_not_come_back_in_time_is_given_up_once, folder_set_up,
          folder_tear_down)
{
    struct world world = {.lose_at = LS_NS_PER_S};
    awaits_one_that_stays_away(&world, *state);
}

TEST_WITH(who_stands_still_meanwhile_waits_for_as_long_as_it_runs,
          folder_set_up, folder_tear_down)
{
    struct world world = {.lose_at = LS_NS_PER_S, .stand_ns = 30 * LS_NS_PER_S};
    awaits_one_that_stays_away(&world, *state);
}

TEST_WITH(whoever_waits_can_be_ended, folder_set_up, folder_tear_down)
{
    struct world world = {.lose_at = LS_NS_PER_S, .end_at = 5 * LS_NS_PER_S};
    run_world(&world, *state, 1, 0.0);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(world.hosts[i].status, LS_ECANCELED);
        assert_true(world.hosts[i].ended_at <= world.end_at + SOON_NS);
    }
}

/* ---- a learner with one step, and a collector that is only there ------- */

enum { LOST_AT = 1, TOLD_AT = 2, WORKS_UNTIL = 3 }; /* s */

struct pair {
    struct plan plan;
    ls_simulation *simulation;
    ls_network *network;
    ls_host *hosts[2];
    ls_node *nodes[2];
    ls_thread *threads[2];
    elastic_run *elastic_run;
    ls_step_fn *step;
    bool ends;       /* the other is lost, and then this one told to end */
    int64_t goes_at; /* the other is lost once all are there; this one's run
                      * begins then. 0: neither */
    int64_t lost_at; /* when this one has noticed */
    int patience_ms, granted_ms; /* it is told to end soon, and may at once so
                                  * much later, if that is not 0 */
    int n_steps, status;
    int64_t ended_at;
};

static int work(ls_step *step, void *self)
{
    (void)self;
    ls_rest_until(ls_task_runtime(ls_step_task(step)),
                  WORKS_UNTIL * LS_NS_PER_S);
    return LS_OK;
}

static void make_pair(struct pair *pair)
{
    static const uint32_t members[2] = {LEARNER, COLLECTOR};
    const char *first = "tcp://127.0.0.1:21500";
    for (uint32_t i = 0; i < 2; i++) {
        struct ls_node_options options;
        assert_ok(ls_host_create(&pair->hosts[i], pair->simulation, "host"));
        assert_ok(ls_network_join(pair->network, pair->hosts[i]));
        plan_node_options(&pair->plan, &options);
        options.id = i;
        options.bind = i == 0 ? first : "tcp://127.0.0.1:21501";
        options.attach = &first;
        options.n_attach = 1;
        options.world_size = 2;
        options.members = members;
        options.runtime = ls_host_runtime(pair->hosts[i]);
        assert_ok(ls_node_create(&pair->nodes[i], &options));
    }
}

static void run_other(void *arg)
{
    struct pair *pair = arg;
    assert_ok(ls_node_start(pair->nodes[1]));
}

static void note_loss(void *self, const struct ls_member *member)
{
    struct pair *pair = self;
    if (member->state == LS_MEMBER_LOST)
        pair->lost_at = ls_simulation_now(pair->simulation);
}

static void run_company(void *arg)
{
    struct pair *pair = arg;
    assert_ok(ls_node_start(pair->nodes[0]));
    if (pair->goes_at != 0) {
        ls_network_kill(pair->network, pair->hosts[1]);
        ls_rest_until(ls_host_runtime(pair->hosts[0]), pair->goes_at);
    }
    pair->status = elastic_run_go(pair->elastic_run);
    pair->ended_at = ls_simulation_now(pair->simulation);
}

static void live_as_pair(void *arg)
{
    struct pair *pair = arg;
    ls_runtime *runtime = ls_simulation_runtime(pair->simulation);
    ls_task *task;
    make_pair(pair);
    assert_ok(ls_task_create(
        &task, &(struct ls_task_options){.node = pair->nodes[0]}));
    assert_ok(ls_task_use_fn(task, pair->step, pair));
    assert_ok(elastic_run_create(&pair->elastic_run, &pair->plan, 0, task));
    assert_ok(ls_node_on_member(pair->nodes[0], note_loss, pair));
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_thread_spawn(ls_host_runtime(pair->hosts[i]),
                                  &pair->threads[i], "node",
                                  i == 0 ? run_company : run_other, pair));
    if (pair->ends) {
        ls_rest_until(runtime, LOST_AT * LS_NS_PER_S);
        ls_network_kill(pair->network, pair->hosts[1]);
        ls_rest_until(runtime, TOLD_AT * LS_NS_PER_S);
        elastic_run_end(pair->elastic_run, LS_ECANCELED, "told");
    }
    if (pair->patience_ms > 0) {
        ls_rest_until(runtime, TOLD_AT * LS_NS_PER_S);
        elastic_run_end_soon(pair->elastic_run, LS_ECANCELED, "told",
                             pair->patience_ms);
    }
    if (pair->granted_ms > 0) {
        ls_rest_until(runtime,
                      TOLD_AT * LS_NS_PER_S + pair->granted_ms * LS_NS_PER_MS);
        elastic_run_end(pair->elastic_run, LS_ECANCELED, "granted");
    }
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_thread_join(&pair->threads[i], LS_FOREVER));
    elastic_run_destroy(&pair->elastic_run);
    ls_task_destroy(&task);
    ls_node_destroy(&pair->nodes[0]);
    ls_node_destroy(&pair->nodes[1]);
}

static void run_pair(struct pair *pair)
{
    const struct ls_network_path path = {.delay_ns = LS_NS_PER_MS};
    read_good(&pair->plan, pair_job);
    assert_ok(ls_simulation_create(&pair->simulation, NULL));
    assert_ok(ls_network_create(&pair->network, pair->simulation, &path));
    assert_ok(ls_simulation_run(pair->simulation, live_as_pair, pair));
    ls_network_destroy(&pair->network);
    ls_simulation_destroy(&pair->simulation);
    plan_fini(&pair->plan);
}

/* The loss ends the run of the task first, which then does not know of the
 * word. */
TEST(a_loss_does_not_swallow_the_word_to_end)
{
    struct pair pair = {.step = work, .ends = true};
    run_pair(&pair);
    assert_int_equal(pair.status, LS_ECANCELED);
    assert_true(pair.ended_at <= WORKS_UNTIL * LS_NS_PER_S + SOON_NS);
}

static int work_a_little(ls_step *step, void *self)
{
    struct pair *pair = self;
    ls_runtime *runtime = ls_task_runtime(ls_step_task(step));
    pair->n_steps++;
    ls_rest_until(runtime, ls_now(runtime) + 10 * LS_NS_PER_MS);
    return LS_OK;
}

TEST(who_is_to_end_soon_goes_on_for_as_long_as_that)
{
    struct pair pair = {.step = work_a_little, .patience_ms = 700};
    run_pair(&pair);
    const int64_t at = TOLD_AT * LS_NS_PER_S + 700 * LS_NS_PER_MS;
    assert_int_equal(pair.status, LS_ECANCELED);
    assert_true(pair.ended_at >= at && pair.ended_at <= at + SOON_NS);
    assert_true(pair.n_steps > 200);
}

TEST(who_is_to_end_soon_can_be_ended_before)
{
    struct pair pair = {
        .step = work_a_little, .patience_ms = 70000, .granted_ms = 300};
    run_pair(&pair);
    const int64_t at = TOLD_AT * LS_NS_PER_S + 300 * LS_NS_PER_MS;
    assert_int_equal(pair.status, LS_ECANCELED);
    assert_true(pair.ended_at >= at && pair.ended_at <= at + SOON_NS);
}

/* It is lost before the run begins, or while that looks who is there. No
 * barrier would miss it. */
TEST(who_is_lost_as_a_run_begins_is_missed)
{
    struct pair first = {.step = work_a_little, .goes_at = LS_NS_PER_S};
    run_pair(&first);
    assert_true(first.lost_at != 0 && first.lost_at < first.goes_at);
    assert_int_equal(first.status, LS_ELOST);
    assert_int_equal(first.n_steps, 0);
    for (int i = -500; i < 50; i++) {
        struct pair pair = {.step = work_a_little,
                            .goes_at = first.lost_at + 10 * i};
        run_pair(&pair);
        assert_int_equal(pair.status, LS_ELOST);
        assert_in_range(pair.n_steps, 0, 1);
    }
}

/* As a barrier does whose members differ in who is there. */
static int differ(ls_step *step, void *self)
{
    struct pair *pair = self;
    (void)step;
    pair->n_steps++;
    return ls_error(LS_EMISMATCH, "they differ");
}

TEST(who_fails_at_once_does_not_try_all_the_time)
{
    struct pair pair = {.step = differ};
    run_pair(&pair);
    assert_int_equal(pair.status, LS_ELOST);
    assert_true(pair.ended_at >= PATIENCE_NS);
    assert_true(pair.ended_at <= PATIENCE_NS + SOON_NS);
    assert_in_range(pair.n_steps, 10, 120); /* each 100 ms, and for news */
}

TEST_WITH(the_time_of_a_run_ends_while_one_is_awaited, folder_set_up,
          folder_tear_down)
{
    const int64_t stops_at = 6 * LS_NS_PER_S;
    struct world world = {.lose_at = LS_NS_PER_S};
    run_world(&world, *state, 1, 0.1);
    for (size_t i = 0; i < N; i++) {
        const struct host *host = &world.hosts[i];
        if (i == COLLECTOR)

            continue;
        assert_int_equal(host->status, LS_OK);
        assert_true(host->ended_at >= stops_at);
        assert_true(host->ended_at <= stops_at + SILENCE_NS);
    }
}

static int find_plugins(void **state)
{
    (void)state;
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    assert_true(n > 0);
    path[n] = '\0';
    memcpy(strrchr(path, '/'), "/plugins", sizeof "/plugins");
    return setenv("LOCKSTEP_PLUGIN_PATH", path, 1);
}

int main(void)
{
    return tests_run_with(find_plugins, NULL);
}
