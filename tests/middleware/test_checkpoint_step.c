/* The step that saves nodes that are in step: on all or on none, of the same
 * iteration, when it is told to; and where they go on. */
#include <signal.h>
#include <unistd.h>

#include "base/seeds.h"
#include "runtime_ops.h"
#include "step_world.h"

static void tune_nothing(struct site *site)
{
    (void)site;
}

/* What the nodes have after so many iterations. */
static int64_t total_after(uint32_t id, int64_t iterations)
{
    struct ls_rng random;
    int64_t total = 0;
    ls_rng_seed(&random, 9, id);
    for (int64_t i = 0; i < iterations; i++)
        total += (int64_t)(ls_rng_next(&random) % 1000);
    return total;
}

static void went_well(struct step_world *world)
{
    for (size_t i = 0; i < SITES; i++) {
        const struct site *site = &world->sites[i];
        if (site->status != LS_OK)
            fail_msg("node %zu: %s", i + 1, site->text);
    }
}

static void have_totals(struct step_world *world, int64_t iterations)
{
    for (uint32_t i = 0; i < SITES; i++)
        assert_int_equal(world->sites[i].total, total_after(i + 1, iterations));
}

static void saved_are(const struct site *site, const char *expected)
{
    char text[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < site->n_saved; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d %s",
                                 i > 0 ? ", " : "", (int)site->saved[i],
                                 site->why[i]);
    assert_string_equal(text, expected);
}

/* ---- saving -------------------------------------------------------------- */

static void save_each(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    have_totals(world, LAST);
    saved_are(&world->sites[0],
              "0 begin, 1 iteration, 2 iteration, 3 iteration, 4 iteration, "
              "5 iteration, 6 iteration, 7 end");
    for (size_t i = 0; i < SITES; i++) {
        assert_int_equal(world->sites[i].n_prepared, LAST + 1);
        assert_int_equal(world->sites[i].begun_at, 0);
        assert_int_equal(world->sites[i].failures, 0);
    }
    assert_int_equal(world->sites[0].epoch, LAST);
    assert_int_equal(world->sites[1].n_saved, 0);
}

TEST(each_iteration_is_saved_on_all_nodes)
{
    struct step_world world = {.tune = tune_nothing};
    (void)state;
    world_play(&world, 1, save_each);
}

static void behind(struct site *site)
{
    site->options.behind = true;
}

TEST(also_behind)
{
    struct step_world world = {.tune = behind};
    (void)state;
    world_play(&world, 1, save_each);
}

static void without_folder(struct site *site)
{
    site->options.behind = site->world->sim.seed == 2;
    if (site->id != 1)
        site->options.folder = NULL;
}

TEST(nodes_without_a_folder_send_theirs)
{
    struct step_world world = {.tune = without_folder};
    (void)state;
    world_play(&world, 1, save_each);
    world_play(&world, 2, save_each);
}

/* ---- when ---------------------------------------------------------------- */

static void every_third(struct site *site)
{
    site->options.every = 3;
}

static void save_every_third(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    saved_are(&world->sites[0], "0 begin, 3 iteration, 6 iteration, 7 end");
}

TEST(every_nth_iteration)
{
    struct step_world world = {.tune = every_third};
    (void)state;
    world_play(&world, 1, save_every_third);
}

/* "Never", to those who do not know that it is 0. */
static void every_last(struct site *site)
{
    site->options.every = UINT64_MAX;
}

static void save_none_between(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    saved_are(&world->sites[0], "0 begin, 7 end");
}

TEST(hardly_ever)
{
    struct step_world world = {.tune = every_last};
    (void)state;
    world_play(&world, 1, save_none_between);
}

static void each_second(struct site *site)
{
    site->options.every = 0;
    site->options.seconds = 1;
    site->rests_ns = 400 * LS_NS_PER_MS;
}

static void save_by_time(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    saved_are(&world->sites[0], "0 begin, 3 iteration, 6 iteration, 7 end");
}

TEST(after_a_time)
{
    struct step_world world = {.tune = each_second};
    (void)state;
    world_play(&world, 1, save_by_time);
}

static void by_best(struct site *site)
{
    site->options.every = 0;
    site->options.on_best = true;
    site->options.retention = (struct ls_checkpoint_retention){
        .metric = "value", .best = 3, .last = 1};
}

/* The third node knows a value: 0 1 2 3 0 1 2. */
static void save_the_best(struct step_world *world)
{
    const struct site *first = &world->sites[0];
    (void)life(world);
    went_well(world);
    saved_are(first, "0 begin, 1 iteration, 2 iteration, 3 iteration, "
                     "4 iteration, 7 end");
    assert_true(isnan(first->metric[0]));
    for (int i = 1; i <= 4; i++)
        assert_true(first->metric[i] == i - 1);
    assert_string_equal(first->kept, "3 4 7");
}

TEST(whenever_a_metric_is_better_than_ever)
{
    struct step_world world = {.tune = by_best};
    (void)state;
    world_play(&world, 1, save_the_best);
}

/* ---- what is known late -------------------------------------------------- */

static void judge(struct site *site)
{
    site->judges = site->id == 3;
    site->options.metric = NULL;
    site->options.behind = site->world->sim.seed == 2;
    if (site->world->sim.seed == 3 && site->id != 1)
        site->options.folder = NULL;
    site->options.retention =
        (struct ls_checkpoint_retention){.metric = "worth", .last = 1};
    if (site->world->self != NULL)
        site->options.retention.best = *(const size_t *)site->world->self;
}

/* The third node's totals, and what they are worth: 0, which is NaN; … */
static void expect_judged(char *text, size_t size, const char *epochs)
{
    const char *at = epochs;
    for (text[0] = '\0'; *at != '\0'; at += strspn(at, " ")) {
        char *end;
        const int64_t epoch = strtol(at, &end, 10);
        const double worth = worth_of(total_after(3, epoch));
        const size_t used = strlen(text);
        at = end;
        if (isnan(worth) || epoch == LAST)
            (void)snprintf(text + used, size - used, "%s%d -",
                           used > 0 ? ", " : "", (int)epoch);
        else
            (void)snprintf(text + used, size - used, "%s%d %g",
                           used > 0 ? ", " : "", (int)epoch, worth);
    }
}

/* What the retention leaves of 0 … LAST. */
static void expect_kept(char *text, size_t size, size_t best)
{
    bool kept[LAST + 1] = {false};
    for (size_t i = 0; i < best; i++) {
        int at = -1;
        for (int epoch = 0; epoch < LAST; epoch++) {
            const double worth = worth_of(total_after(3, epoch));
            if (!kept[epoch] && !isnan(worth) &&
                (at < 0 || worth >= worth_of(total_after(3, at))))
                at = epoch;
        }
        if (at >= 0)
            kept[at] = true;
    }
    kept[LAST] = true;
    text[0] = '\0';
    for (int epoch = 0; epoch <= LAST; epoch++)
        if (kept[epoch])
            (void)snprintf(text + strlen(text), size - strlen(text), "%s%d",
                           text[0] != '\0' ? " " : "", epoch);
}

static void judge_each(struct step_world *world)
{
    const struct site *first = &world->sites[0];
    const size_t *best = world->self;
    char kept[64], judged[256];
    (void)life(world);
    went_well(world);
    have_totals(world, LAST);
    expect_kept(kept, sizeof kept, best != NULL ? *best : 0);
    if (best == NULL)
        strcpy(kept, "0 1 2 3 4 5 6 7");
    assert_string_equal(first->kept, kept);
    expect_judged(judged, sizeof judged, kept);
    assert_string_equal(first->judged, judged);
    for (size_t i = 0; i < first->n_saved; i++)
        assert_true(isnan(first->metric[i])); /* as they were saved */
}

static void all_kept(struct site *site)
{
    judge(site);
    site->options.retention.last = 0;
}

TEST(what_an_epoch_is_worth_is_known_when_the_next_is_saved)
{
    struct step_world world = {.tune = all_kept};
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        world_play(&world, seed, judge_each);
}

TEST(and_then_the_best_are_kept)
{
    (void)state;
    for (size_t best = 1; best <= LAST + 1; best++) {
        struct step_world world = {.tune = judge, .self = &best};
        world_play(&world, 1 + best % 3, judge_each);
    }
}

static void two_judge(struct site *site)
{
    all_kept(site);
    site->judges = site->id > 1;
}

static void take_the_mean(struct step_world *world)
{
    char expected[256] = "";
    (void)life(world);
    went_well(world);
    for (int epoch = 0; epoch < LAST; epoch++) {
        const double two = worth_of(total_after(2, epoch)),
                     three = worth_of(total_after(3, epoch));
        const double mean = isnan(two)     ? three
                            : isnan(three) ? two
                                           : (two + three) / 2;
        char text[16] = "-";
        if (!isnan(mean))
            (void)snprintf(text, sizeof text, "%g", mean);
        (void)snprintf(expected + strlen(expected),
                       sizeof expected - strlen(expected), "%d %s, ", epoch,
                       text);
    }
    strcat(expected, "7 -");
    assert_string_equal(world->sites[0].judged, expected);
}

TEST(if_several_know_it_by_their_mean)
{
    struct step_world world = {.tune = two_judge};
    (void)state;
    world_play(&world, 1, take_the_mean);
}

/* A save that failed took nothing of it along. */
static void fill_once(struct site *site)
{
    all_kept(site);
    site->options.goes_on = true;
    site->fills_at = site->id == 3 ? 3 : 0;
}

static void judge_with_the_next(struct step_world *world)
{
    char judged[256];
    (void)life(world);
    went_well(world);
    /* Behind, the one before is still being written. */
    assert_int_equal(world->sites[0].failures, world->sim.seed == 2 ? 2 : 1);
    expect_judged(judged, sizeof judged,
                  world->sim.seed == 2 ? "0 1 4 5 6 7" : "0 1 2 4 5 6 7");
    assert_string_equal(world->sites[0].judged, judged);
}

TEST(a_save_that_fails_loses_no_verdict)
{
    struct step_world world = {.tune = fill_once};
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        world_play(&world, seed, judge_with_the_next);
}

static void from_best(struct site *site)
{
    all_kept(site);
    if (site->world->self != NULL) {
        site->options.resume = LS_JOB_AT;
        site->options.epoch = LS_CHECKPOINT_BEST;
    }
}

static void go_on_from_best(struct step_world *world)
{
    char best[64];
    assert_int_equal(life(world), LS_OK);
    expect_kept(best, sizeof best, 1);
    world->self = world;
    assert_int_equal(life(world), LS_OK);
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(world->sites[i].begun_at, strtol(best, NULL, 10));
    have_totals(world, LAST);
}

TEST(a_run_can_go_on_from_the_best)
{
    struct step_world world = {.tune = from_best};
    (void)state;
    world_play(&world, 1, go_on_from_best);
}

static void from_no_best(struct site *site)
{
    from_best(site);
    site->judges = false;
}

static void find_no_best(struct step_world *world)
{
    assert_int_equal(life(world), LS_OK);
    world->self = world;
    (void)life(world);
    assert_int_equal(world->sites[0].status, LS_ENOENT);
    assert_has(world->sites[0].text, "has the metric worth");
}

TEST(if_there_is_one)
{
    struct step_world world = {.tune = from_no_best};
    (void)state;
    world_play(&world, 1, find_no_best);
}

static void on_request(struct site *site)
{
    site->options.every = 0;
    site->asks_at = site->id == 3 ? 4 : 0; /* it does not lead */
}

static void save_on_request(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    saved_are(&world->sites[0], "0 begin, 4 iteration, 7 end");
}

TEST(when_any_node_asks)
{
    struct step_world world = {.tune = on_request};
    (void)state;
    world_play(&world, 1, save_on_request);
}

static void same_count(struct site *site)
{
    site->options.every = 0;
    site->ends_after = 0;
    site->iterations = 5;
}

static void save_the_end(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    saved_are(&world->sites[0], "0 begin, 5 end");
    have_totals(world, 5);
}

TEST(a_run_of_a_number_of_iterations_is_saved_at_its_end_once)
{
    struct step_world world = {.tune = same_count};
    (void)state;
    world_play(&world, 1, save_the_end);
}

static void alone_together(struct site *site)
{
    same_count(site);
    site->options.every = 2;
    site->no_barrier = true;
    site->rests_ns = site->id * 10 * LS_NS_PER_MS;
}

static void save_without_barrier(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    saved_are(&world->sites[0], "0 begin, 2 iteration, 4 iteration, 5 end");
    have_totals(world, 5);
}

TEST(without_a_barrier_by_their_own_count)
{
    struct step_world world = {.tune = alone_together};
    (void)state;
    world_play(&world, 1, save_without_barrier);
}

static struct ls_node_options guest_options(void *host)
{
    static const char *const all[] = {"tcp://127.0.0.1:21500",
                                      "tcp://127.0.0.1:21501",
                                      "tcp://127.0.0.1:21502"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = 9;
    options.bind = "tcp://127.0.0.1:21509";
    options.attach = all;
    options.n_attach = 3;
    options.world_size = 2;
    options.world_max = SITES + 1;
    options.runtime = ls_host_runtime(host);
    return options;
}

static void look_on(void *host)
{
    const struct ls_node_options options = guest_options(host);
    for (int i = 0; i < 5; i++) {
        ls_node *node;
        assert_ok(ls_node_create(&node, &options));
        assert_ok(ls_node_start(node));
        assert_ok(ls_node_destroy(&node));
    }
}

static void save_beside(struct step_world *world, void (*guest)(void *host))
{
    ls_host *host;
    ls_thread *thread;
    assert_ok(ls_host_create(&host, world->sim.simulation, "guest"));
    assert_ok(ls_network_join(world->sim.network, host));
    life_begin(world);
    assert_ok(
        ls_thread_spawn(ls_host_runtime(host), &thread, "guest", guest, host));
    life_end(world);
    went_well(world);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
}

static void save_before_others(struct step_world *world)
{
    save_beside(world, look_on);
}

/* Who is not of the group is not waited for, nor missed. */
TEST(clients_come_and_go)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct step_world world = {.tune = tune_nothing, .has_guest = true};
        world_play(&world, seed, save_before_others);
    }
}

/* As a node does that has come to the end of its run: elsewhere than all. */
static void end_elsewhere(void *host)
{
    struct ls_node_options options = guest_options(host);
    struct ls_call_options question = {.to = 1, .name = "step.checkpoint"};
    ls_node *node;
    ls_rpc *calls;
    ls_writer *writer;
    void *answer = NULL;
    size_t size;
    options.world_size = SITES + 1;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&calls, node, NULL));
    assert_ok(ls_node_start(node));
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, 2);
    ls_write_string(writer, "do");
    ls_write_string(writer, "end");
    ls_write_string(writer, "epoch");
    ls_write_int(writer, 99);
    assert_ok(ls_writer_bytes(writer, &question.data, &question.size));
    assert_ok(ls_call_ask(calls, &question, &answer, &size));
    free(answer);
    ls_writer_destroy(&writer);
    ls_rpc_close(&calls);
    assert_ok(ls_node_destroy(&node));
}

static void slowly_together(struct site *site)
{
    alone_together(site);
    site->rests_ns *= 10;
}

static void save_the_end_of_the_group(struct step_world *world)
{
    save_beside(world, end_elsewhere);
    saved_are(&world->sites[0], "0 begin, 2 iteration, 4 iteration, 5 end");
}

TEST(who_is_not_of_the_group_may_end_where_it_likes)
{
    struct step_world world = {.tune = slowly_together, .has_guest = true};
    (void)state;
    world_play(&world, 1, save_the_end_of_the_group);
}

/* ---- going on ------------------------------------------------------------ */

/* What a run fails in is not saved; behind, the one before may not be either,
 * since a node that has failed does not wait for it. */
static void go_on_when_it_failed(struct step_world *world)
{
    static const int64_t fails[] = {4, 7, 0};
    int64_t from = 0;
    for (size_t i = 0; i < 3; i++) {
        world->self = (void *)&fails[i];
        const int status = life(world);
        const int64_t begun_at = world->sites[0].begun_at;
        assert_int_equal(status == LS_OK, fails[i] == 0);
        assert_true(begun_at == from ||
                    (world->sim.seed == 2 && begun_at == from - 1));
        for (size_t j = 0; j < SITES; j++) {
            assert_int_equal(world->sites[j].begun_at, begun_at);
            assert_int_equal(world->sites[j].loaded,
                             i == 0 ? LS_CHECKPOINT_NONE : begun_at);
        }
        from = fails[i] - 1;
    }
    have_totals(world, LAST);
}

/* Of the life that runs: one that begins while others wait for it is in the
 * world for a while before its run begins. */
struct lives {
    int64_t fails_at; /* node 2 */
    int64_t from;     /* when it began; 0: as the world did */
    bool is_next;     /* a node was killed, and begins again */
};

/* Kill a node a while later, and begin its next life. */
static void begin_again(struct step_world *world, uint32_t id)
{
    ls_runtime *runtime = ls_simulation_runtime(world->sim.simulation);
    struct site *site = &world->sites[id - 1];
    ls_rest_until(runtime, ls_now(runtime) + 3 * LS_NS_PER_S);
    ls_network_kill(world->sim.network, site->host);
    assert_ok(ls_thread_join(&site->thread, LS_FOREVER));
    ((struct lives *)world->self)->is_next = true;
    site_spawn(world, id);
}

static void all_go_on_from(struct step_world *world, int64_t epoch)
{
    went_well(world);
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(world->sites[i].begun_at, epoch);
    have_totals(world, LAST);
}

static void begin_late(struct site *site)
{
    const struct lives *lives = site->world->self;
    if (site->id == 2)
        site->fails_at = lives->fails_at;
    if (lives->from > 0 && site->id == 1)
        site->runs_at = lives->from + 30 * LS_NS_PER_S;
    if (lives->is_next)
        site->runs_at = lives->from + 31 * LS_NS_PER_S;
}

/* Node 1 has not come to the beginning of its run when node 3, which waits for
 * it there, is killed: it waits for the next life of that one, too. */
static void wait_for_next_life(struct step_world *world)
{
    struct lives lives = {.fails_at = 4};
    world->self = &lives;
    assert_true(life(world) != LS_OK);
    lives = (struct lives){.from = ls_simulation_now(world->sim.simulation)};
    life_begin(world);
    begin_again(world, 3);
    life_end(world);
    all_go_on_from(world, 3);
}

TEST(also_with_one_whose_earlier_life_waited_for_that)
{
    struct step_world world = {.tune = begin_late};
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        world_play(&world, seed, wait_for_next_life);
}

static void save_late(struct site *site)
{
    const struct lives *lives = site->world->self;
    site->options.behind = site->world->sim.seed % 2 == 0;
    if (lives->from > 0)
        return;
    site->late_at = site->id == 1 ? 3 : -1;
    site->late_until = 30 * LS_NS_PER_S;
    if (!lives->is_next)
        return;
    site->late_at = 0;
    site->late_until = 31 * LS_NS_PER_S;
}

/* Node 1 has not come to a save when node 3, which waits for it there, is
 * killed: what the next life of that one begins with is not of that epoch. */
static void save_no_beginning(struct step_world *world)
{
    struct lives lives = {.from = 0};
    world->self = &lives;
    life_begin(world);
    begin_again(world, 3);
    life_end(world);
    assert_int_equal(world->sites[0].status, LS_ESTATE);
    assert_has(world->sites[0].text, "node 3");
    assert_string_equal(world->sites[0].kept, "0 1 2");
    lives = (struct lives){.from = ls_simulation_now(world->sim.simulation)};
    (void)life(world);
    all_go_on_from(world, 2);
}

TEST(a_life_that_begins_is_not_saved_as_the_end_of_an_iteration)
{
    struct step_world world = {.tune = save_late};
    const struct seeds seeds = seeds_of(200);
    (void)state;
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++)
        world_play(&world, seed, save_no_beginning);
}

static void follow_late(struct site *site)
{
    site->late_at = site->id == 2 ? 3 : -1;
    site->late_until = 10 * LS_NS_PER_S;
}

/* Node 1, which leads, is lost and there again before node 2 comes to where it
 * waits for it: its next life knows nothing of the save. */
static void miss_the_leader(struct step_world *world)
{
    const struct site *second = &world->sites[1];
    struct lives lives = {.from = 0};
    world->self = &lives;
    life_begin(world);
    begin_again(world, 1);
    life_end(world);
    assert_int_equal(second->status, LS_ELOST);
    assert_has(second->text, "node 1");
    assert_in_range(second->ended_at, 10 * LS_NS_PER_S, 11 * LS_NS_PER_S);
    world->tune = NULL;
    (void)life(world);
    all_go_on_from(world, 2);
}

TEST(who_is_led_notices_that_the_leader_was_lost_though_it_is_there_again)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct step_world world = {.tune = follow_late};
        world_play(&world, seed, miss_the_leader);
    }
}

static void fail_sometimes(struct site *site)
{
    site->options.behind = site->world->sim.seed == 2;
    if (site->world->sim.seed == 3 && site->id != 1)
        site->options.folder = NULL;
    if (site->world->sim.seed == 4 && site->id != 1)
        site->options.folder = site->id == 2 ? "two" : "three";
    if (site->id == 2)
        site->fails_at = *(const int64_t *)site->world->self;
}

TEST(the_nodes_go_on_from_the_newest)
{
    struct step_world world = {.tune = fail_sometimes};
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        world_play(&world, seed, go_on_when_it_failed);
}

static void from_three(struct site *site)
{
    if (site->world->self != NULL) {
        site->options.resume = LS_JOB_AT;
        site->options.epoch = 3;
    }
}

static void go_on_from_three(struct step_world *world)
{
    assert_int_equal(life(world), LS_OK);
    world->self = world;
    assert_int_equal(life(world), LS_OK);
    assert_int_equal(world->sites[2].begun_at, 3);
    have_totals(world, LAST);
    saved_are(&world->sites[0], "4 iteration, 5 iteration, 6 iteration, 7 end");
    assert_string_equal(world->sites[0].kept, "0 1 2 3 4 5 6 7");
}

TEST(or_from_one_that_is_named)
{
    struct step_world world = {.tune = from_three};
    (void)state;
    world_play(&world, 1, go_on_from_three);
}

static void from_scratch(struct site *site)
{
    site->options.resume = LS_JOB_SCRATCH;
}

static void refuse_scratch(struct step_world *world)
{
    assert_int_equal(life(world), LS_OK);
    (void)life(world);
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(world->sites[i].status,
                         i == 0 ? LS_EEXIST : LS_EABORTED);
    assert_has(world->sites[0].text, "saved has 8 checkpoints");
    assert_has(world->sites[1].text, "node 1");
}

TEST(what_is_there_is_not_written_over)
{
    struct step_world world = {.tune = from_scratch};
    (void)state;
    world_play(&world, 1, refuse_scratch);
}

/* ---- what goes wrong ----------------------------------------------------- */

static void fill(struct site *site)
{
    site->options.goes_on = site->world->sim.seed == 2;
    site->fills_at = site->id == 3 ? 3 : 0;
}

static void run_out_of_space(struct step_world *world)
{
    (void)life(world);
    assert_int_equal(world->sites[0].status, LS_EIO);
    assert_has(world->sites[0].text, "epoch 3 was not saved");
    assert_string_equal(world->sites[0].kept, "0 1 2");
}

TEST(a_save_that_fails_ends_the_run)
{
    struct step_world world = {.tune = fill};
    (void)state;
    world_play(&world, 1, run_out_of_space);
}

static void live_without(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    have_totals(world, LAST);
    assert_int_equal(world->sites[0].failures, 1);
    assert_string_equal(world->sites[0].kept, "0 1 2 4 5 6 7");
}

static void be_late(struct site *site)
{
    site->options.behind = site->world->sim.seed == 2;
    if (site->id == 1)
        return;
    site->late_at = 3;
    site->late_until = 10 * LS_NS_PER_S;
}

/* Whoever cancels it, as for a loss, may have ended the iteration of others. */
static void cancel_the_leader(struct step_world *world)
{
    const int64_t at = 5 * LS_NS_PER_S;
    life_begin(world);
    ls_rest_until(ls_simulation_runtime(world->sim.simulation), at);
    ls_task_cancel(world->sites[0].task, LS_ELOST, "somebody was lost");
    life_end(world);
    assert_int_equal(world->sites[0].status, LS_ELOST);
    assert_string_equal(world->sites[0].text, "somebody was lost");
    assert_in_range(world->sites[0].ended_at, at, at + LS_NS_PER_S);
    saved_are(&world->sites[0], "0 begin, 1 iteration, 2 iteration");
}

TEST(one_that_is_cancelled_does_not_wait_for_the_others)
{
    struct step_world world = {.tune = be_late};
    (void)state;
    world_play(&world, 1, cancel_the_leader);
    world_play(&world, 2, cancel_the_leader);
}

/* As the one that leads would, while node 2 keeps that one waiting. */
static void ask_as_leader(void *arg)
{
    struct site *site = arg;
    ls_writer *writer;
    struct ls_call_options question = {.to = 2, .name = "step.checkpoint"};
    void *answer = NULL;
    size_t size;
    ls_rest_until(ls_host_runtime(site->host), 5 * LS_NS_PER_S);
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, 2);
    ls_write_string(writer, "do");
    ls_write_string(writer, "copy");
    ls_write_string(writer, "epoch");
    ls_write_int(writer, 3);
    assert_ok(ls_writer_bytes(writer, &question.data, &question.size));
    assert_ok(ls_call_ask(site->calls, &question, &answer, &size));
    free(answer);
    ls_writer_destroy(&writer);
    *(int64_t *)site->world->self =
        ls_simulation_now(site->world->sim.simulation);
}

static void be_asked_by_another(struct step_world *world)
{
    int64_t answered_at = 0;
    ls_thread *thread;
    world->self = &answered_at;
    life_begin(world);
    assert_ok(ls_thread_spawn(ls_host_runtime(world->sites[2].host), &thread,
                              "asker", ask_as_leader, &world->sites[2]));
    life_end(world);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    went_well(world);
    assert_in_range(answered_at, 5 * LS_NS_PER_S, 6 * LS_NS_PER_S);
}

/* It takes no place of the questions of the one that leads. */
TEST(who_does_not_lead_is_refused_at_once)
{
    struct step_world world = {.tune = be_late};
    (void)state;
    world_play(&world, 1, be_asked_by_another);
}

static void be_too_late(struct site *site)
{
    site->late_at = site->id == 3 ? 3 : -1;
    site->late_until = 60 * LS_NS_PER_S; /* thrice the time of a save */
}

static void give_up_on_one(struct step_world *world)
{
    (void)life(world);
    assert_int_equal(world->sites[0].status, LS_ETIMEDOUT);
    assert_has(world->sites[0].text, "node 3");
    assert_string_equal(world->sites[0].kept, "0 1 2");
}

TEST(one_that_does_not_come_to_a_save_is_named)
{
    struct step_world world = {.tune = be_too_late};
    (void)state;
    world_play(&world, 1, give_up_on_one);
}

TEST(or_costs_one_checkpoint)
{
    struct step_world world = {.tune = fill};
    (void)state;
    world_play(&world, 2, live_without);
}

/* The one that leads cannot be saved: the others are told so, also one that has
 * not come there yet, and whose copy is not waited for any more. */
static int cannot_be_saved(void *self, int64_t epoch)
{
    const struct site *site = self;
    if (site->no_barrier && epoch == 6) /* until all are there */
        ls_rest_until(ls_host_runtime(site->host), 11 * LS_NS_PER_S);
    return epoch == 2 || epoch == 4 ? ls_error(LS_EIO, "not this one") : LS_OK;
}

static void fail_before_all_come(struct site *site)
{
    if (site->world->sim.seed % 2 == 0) {
        alone_together(site);
        site->iterations = LAST;
    }
    site->options.behind = site->options.goes_on = true;
    if (site->id == 1)
        site->options.before_save = cannot_be_saved;
    site->late_at = site->id == 2 ? 2 : -1;
    site->late_until = 10 * LS_NS_PER_S;
}

/* Without a barrier two saves are over before node 2 comes. */
static void live_without_two(struct step_world *world)
{
    const bool alone = world->sim.seed % 2 == 0;
    (void)life(world);
    went_well(world);
    assert_int_equal(world->sites[0].failures, 2);
    assert_string_equal(world->sites[0].kept, alone ? "0 6 7" : "0 1 3 5 6 7");
}

TEST(also_where_a_node_comes_to_it_when_it_is_over)
{
    struct step_world world = {.tune = fail_before_all_come};
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        world_play(&world, seed, live_without_two);
}

/* Somebody puts a later one there. */
static int be_ahead(void *self, int64_t epoch)
{
    (void)self;
    ls_file *file;
    if (epoch != 3)
        return LS_OK;
    assert_ok(ls_file_open(&file, "saved/manifest.000005",
                           LS_FILE_WRITE | LS_FILE_CREATE));
    return ls_file_close(&file);
}

static void be_there_already(struct site *site)
{
    site->options.goes_on = true;
    site->options.behind = site->world->sim.seed % 2 == 0;
    if (site->id == 1)
        site->options.before_save = be_ahead;
    if (site->id == 3)
        site->options.folder = NULL;
    site->late_at = site->id == 2 ? 4 : -1;
    site->late_until = 10 * LS_NS_PER_S;
}

static void save_the_later(struct step_world *world)
{
    (void)life(world);
    went_well(world);
    have_totals(world, LAST);
    assert_int_equal(world->sites[0].failures, 3);
    saved_are(&world->sites[0], "0 begin, 1 iteration, 2 iteration, "
                                "6 iteration, 7 end");
}

/* All are told so, also who comes late. */
TEST(an_epoch_that_is_not_later_is_not_saved)
{
    struct step_world world = {.tune = be_there_already};
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        world_play(&world, seed, save_the_later);
}

static void no_folder(struct site *site)
{
    site->options.folder = NULL;
    site->options.leader = site->world->sim.seed == 1 ? 1 : LS_CHECKPOINT_FIRST;
}

static void need_a_folder(struct step_world *world)
{
    (void)life(world);
    assert_int_equal(world->sites[0].status, LS_EINVAL);
    assert_has(world->sites[0].text, "folder");
}

TEST(the_one_that_leads_needs_a_folder)
{
    struct step_world world = {.tune = no_folder};
    (void)state;
    world_play(&world, 1, need_a_folder);
}

/* ---- alone --------------------------------------------------------------- */

struct lonely {
    char folder[64];
    int64_t total;
    int n_saved;
    ls_blobs *blobs;
    ls_task *task;
};

static int add_one(ls_step *step, void *self)
{
    (void)step;
    ((struct lonely *)self)->total++;
    return LS_OK;
}

static void begin_alone(struct lonely *lonely)
{
    strcpy(lonely->folder, "/tmp/lockstep-step-XXXXXX");
    assert_non_null(mkdtemp(lonely->folder));
}

static void end_alone(struct lonely *lonely)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", lonely->folder);
    assert_int_equal(system(command), 0);
}

static int try_alone(struct lonely *lonely, uint64_t n, int64_t *epoch)
{
    const struct ls_task_options options = {.node = NULL};
    lonely->total = 0;
    assert_ok(ls_blobs_create(&lonely->blobs));
    assert_ok(ls_blobs_add(lonely->blobs,
                           &(struct ls_blob){.name = "total",
                                             .form = {.type = LS_BLOB_I64},
                                             .memory = &lonely->total}));
    assert_ok(ls_task_create(&lonely->task, &options));
    ls_checkpoint_step *step;
    assert_ok(ls_task_use(
        lonely->task,
        ls_mw_checkpoint(lonely->task, &(struct ls_checkpoint_step_options){
                                           .folder = lonely->folder,
                                           .blobs = lonely->blobs,
                                           .resume = LS_JOB_NEWEST,
                                           .every = 2,
                                           .out = &step})));
    ls_task_use_fn(lonely->task, add_one, lonely);
    const int status = ls_task_run(lonely->task, n);
    *epoch = ls_checkpoint_epoch(step);
    ls_task_destroy(&lonely->task);
    ls_blobs_destroy(&lonely->blobs);
    return status;
}

static int64_t run_alone(struct lonely *lonely, uint64_t n)
{
    int64_t epoch;
    assert_ok(try_alone(lonely, n, &epoch));
    return epoch;
}

TEST(a_task_without_a_world_saves_as_well)
{
    struct lonely lonely = {.total = 0};
    (void)state;
    begin_alone(&lonely);
    assert_int_equal(run_alone(&lonely, 5), 5);
    assert_int_equal(lonely.total, 5);
    assert_int_equal(run_alone(&lonely, 4), 9);
    assert_int_equal(lonely.total, 9);
    end_alone(&lonely);
}

/* It would be a checkpoint of nobody. */
TEST(where_no_node_has_blobs_a_save_fails)
{
    struct lonely lonely = {.total = 0};
    (void)state;
    begin_alone(&lonely);
    assert_ok(
        ls_task_create(&lonely.task, &(struct ls_task_options){.node = NULL}));
    assert_ok(ls_task_use(
        lonely.task,
        ls_mw_checkpoint(lonely.task, &(struct ls_checkpoint_step_options){
                                          .folder = lonely.folder})));
    ls_task_use_fn(lonely.task, add_one, &lonely);
    assert_fails(ls_task_run(lonely.task, 2), LS_EINVAL);
    assert_error_has("no node has blobs");
    assert_int_equal(lonely.total, 0);
    ls_task_destroy(&lonely.task);
    end_alone(&lonely);
}

/* It ends before any step, and what is there stays. */
TEST(a_folder_of_another_run_is_refused)
{
    struct lonely lonely = {.total = 0};
    ls_checkpoints *other;
    int64_t epoch;
    (void)state;
    begin_alone(&lonely);
    assert_int_equal(run_alone(&lonely, 2), 2);
    assert_ok(ls_checkpoints_open(
        &other, &(struct ls_checkpoints_options){.folder = lonely.folder,
                                                 .commits = true}));
    assert_fails(try_alone(&lonely, 2, &epoch), LS_EAGAIN);
    assert_error_has(lonely.folder);
    assert_int_equal(lonely.total, 0);
    assert_int_equal(epoch, LS_CHECKPOINT_NONE);
    assert_ok(ls_checkpoints_close(&other));
    assert_int_equal(run_alone(&lonely, 2), 4);
    end_alone(&lonely);
}

TEST(a_run_does_not_begin_anew_where_no_checkpoint_can_be_used)
{
    struct lonely lonely = {.total = 0};
    char command[256];
    int64_t epoch;
    (void)state;
    begin_alone(&lonely);
    assert_int_equal(run_alone(&lonely, 2), 2);
    (void)snprintf(command, sizeof command,
                   "find %s -type f -size +0 -exec truncate -s 10 {} +",
                   lonely.folder);
    assert_int_equal(system(command), 0);
    assert_fails(try_alone(&lonely, 2, &epoch), LS_EPROTO);
    assert_error_has("can be used");
    assert_int_equal(lonely.total, 0);
    end_alone(&lonely);
}

/* It runs until the save that the signal asks for is there. */
static int ask_by_signal(ls_step *step, void *self)
{
    struct lonely *lonely = self;
    const struct ls_online_context *context = ls_step_context(step);
    if (context->total_step == 0)
        assert_int_equal(kill(getpid(), SIGUSR2), 0);
    if (lonely->n_saved == 2)
        ls_task_finish(ls_step_task(step));
    return LS_OK;
}

static int count_saved(void *self,
                       const struct ls_checkpoint_manifest *manifest)
{
    struct lonely *lonely = self;
    lonely->n_saved++;
    assert_int_equal(manifest->n_entries, 1);
    return LS_OK;
}

TEST(a_signal_asks_for_one)
{
    struct lonely lonely = {.total = 0};
    const struct ls_task_options options = {.node = NULL};
    char command[128];
    (void)state;
    strcpy(lonely.folder, "/tmp/lockstep-step-XXXXXX");
    assert_non_null(mkdtemp(lonely.folder));
    assert_ok(ls_blobs_create(&lonely.blobs));
    assert_ok(ls_task_create(&lonely.task, &options));
    assert_ok(ls_task_use(
        lonely.task,
        ls_mw_checkpoint(lonely.task, &(struct ls_checkpoint_step_options){
                                          .folder = lonely.folder,
                                          .blobs = lonely.blobs,
                                          .on_signal = true,
                                          .saved = count_saved,
                                          .self = &lonely})));
    ls_task_use_fn(lonely.task, ask_by_signal, &lonely);
    assert_ok(ls_task_run(lonely.task, UINT64_MAX));
    assert_int_equal(lonely.n_saved, 3); /* and the end */
    ls_task_destroy(&lonely.task);
    ls_blobs_destroy(&lonely.blobs);
    (void)snprintf(command, sizeof command, "rm -r %s", lonely.folder);
    assert_int_equal(system(command), 0);
}

/* ---- options ------------------------------------------------------------- */

TEST(options_that_cannot_be_are_refused)
{
    static const struct {
        struct ls_checkpoint_step_options options;
        const char *text;
    } rows[] = {
        {{.folder = NULL}, "needs a folder"},
        {{.folder = "/tmp/x", .seconds = -1}, "negative"},
        {{.folder = "/tmp/x", .timeout_ms = -1}, "negative"},
        {{.folder = "/tmp/x", .on_best = true}, "of a metric"},
        {{.folder = "/tmp/x", .resume = LS_JOB_AT, .epoch = LS_CHECKPOINT_BEST},
         "of a metric"},
        {{.folder = "/tmp/x", .resume = LS_JOB_AT, .epoch = -2}, "epoch -2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ls_task *task;
        assert_ok(
            ls_task_create(&task, &(struct ls_task_options){.node = NULL}));
        assert_fails(
            ls_task_use(task, ls_mw_checkpoint(task, &rows[i].options)),
            LS_EINVAL);
        assert_error_has(rows[i].text);
        ls_task_destroy(&task);
    }
}

TEST(a_step_needs_calls_and_a_name_there)
{
    struct ls_node_options options;
    struct ls_checkpoint_step_options step = {.folder = "/tmp/x"};
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_task *task = NULL;
    (void)state;
    ls_node_options_init(&options);
    options.bind = "inproc://checkpoint-step-alone";
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&calls, node, NULL));
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.node = node}));
    assert_fails(ls_task_use(task, ls_mw_checkpoint(task, &step)), LS_EINVAL);
    assert_error_has("needs its calls");
    step.calls = calls;
    assert_ok(ls_task_use(task, ls_mw_checkpoint(task, &step)));
    assert_fails(ls_task_use(task, ls_mw_checkpoint(task, &step)), LS_EEXIST);
    assert_error_has("checkpoint");
    step.name = "another";
    assert_ok(ls_task_use(task, ls_mw_checkpoint(task, &step)));
    assert_ok(ls_rpc_close(&calls));
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_node_destroy(&node));
}

static int refuse_thread(ls_runtime *runtime, ls_thread **out, const char *name,
                         void (*fn)(void *arg), void *arg)
{
    if (strcmp(name, "checkpoint") == 0)
        return ls_error(LS_EAGAIN, "no thread");
    return ls_runtime_threads()->ops->thread_spawn(runtime, out, name, fn, arg);
}

/* Its calls would reach what is no more. */
TEST(a_step_that_cannot_be_made_serves_nothing)
{
    struct ls_runtime_ops ops = *ls_runtime_threads()->ops;
    ls_runtime runtime = {.ops = &ops};
    struct ls_node_options options;
    struct ls_checkpoint_step_options step = {.folder = "/tmp/x"};
    ls_node *node = NULL;
    ls_task *task = NULL;
    (void)state;
    ls_node_options_init(&options);
    options.bind = "inproc://checkpoint-step-without-thread";
    options.runtime = &runtime;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&step.calls, node, NULL));
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.node = node}));
    ops.thread_spawn = refuse_thread;
    assert_fails(ls_task_use(task, ls_mw_checkpoint(task, &step)), LS_EAGAIN);
    ops.thread_spawn = ls_runtime_threads()->ops->thread_spawn;
    assert_ok(ls_task_use(task, ls_mw_checkpoint(task, &step)));
    assert_ok(ls_rpc_close(&step.calls));
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_node_destroy(&node));
}
