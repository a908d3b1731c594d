/* Ranks on nodes, over inproc: the same as on threads. */
#include <unistd.h>

#include "line.h"
#include "lockstep/trainer.h"

enum { MOST = 4 };

struct world;

struct member {
    struct world *world;
    uint32_t index;
    ls_thread *thread;
    ls_node *node;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

struct world {
    uint32_t n;
    ls_driver_fn *fn;
    void *self;
    const char *report;
    char endpoints[MOST][64];
    struct member members[MOST];
};

/* Ids that are not ranks. */
static uint32_t id_of(uint32_t index)
{
    return 40 + 1000 * index;
}

static int live(struct member *member)
{
    struct world *world = member->world;
    const char *attach = world->endpoints[0];
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = id_of(member->index);
    options.bind = world->endpoints[member->index];
    options.attach = &attach;
    options.n_attach = 1;
    options.world_size = world->n;
    options.start_timeout_ms = 60000;
    TRY(ls_node_create(&member->node, &options));
    return ls_driver_run(&(struct ls_driver_options){.kind = LS_DRIVER_BUS,
                                                     .node = member->node,
                                                     .seed = 5,
                                                     .report = world->report},
                         world->fn, world->self);
}

static void member_main(void *arg)
{
    struct member *member = arg;
    ls_error_clear();
    member->status = live(member);
    (void)snprintf(member->text, sizeof member->text, "%s", ls_error_text());
    (void)ls_node_destroy(&member->node);
}

static void run_nodes(struct world *world)
{
    static int n_worlds;
    n_worlds++;
    for (uint32_t i = 0; i < world->n; i++)
        (void)snprintf(world->endpoints[i], sizeof world->endpoints[i],
                       "inproc://driver-%d-%d-%u", (int)getpid(), n_worlds, i);
    for (uint32_t i = 0; i < world->n; i++) {
        world->members[i] = (struct member){.world = world, .index = i};
        assert_ok(ls_thread_spawn(ls_runtime_threads(),
                                  &world->members[i].thread, "node",
                                  member_main, &world->members[i]));
    }
    for (uint32_t i = 0; i < world->n; i++)
        assert_ok(ls_thread_join(&world->members[i].thread, LS_FOREVER));
}

static void assert_all_ok(const struct world *world)
{
    for (uint32_t i = 0; i < world->n; i++) {
        if (world->members[i].status != LS_OK)
            fail_msg("node %u: %s", id_of(i), world->members[i].text);
    }
}

/* Trains with checkpoints, and notes the weights' hash. */
struct training {
    const char *folder;
    uint64_t hashes[MOST];
    uint64_t fail_at; /* step at which rank 1 fails; 0: not */
};

static int fail_or_not(void *self, ls_trainer *trainer)
{
    const struct training *training = self;
    const uint32_t rank = ls_driver_rank(ls_trainer_driver(trainer));
    return rank == 1 && training->fail_at != 0 &&
                   ls_trainer_steps(trainer) == training->fail_at
               ? ls_error(LS_EIO, "broken")
               : LS_OK;
}

static int train(void *self, ls_driver *driver)
{
    struct training *training = self;
    const struct ls_trainer_callbacks callbacks = {
        .name = "test", .after_batch = fail_or_not, .self = training};
    TRY(line_setup(driver, &line_ops));
    TRY(ls_trainer_run(driver,
                       &(struct ls_trainer_options){.data = &line_data,
                                                    .evaluation = &line_data,
                                                    .epochs = 2,
                                                    .batch_size = 5,
                                                    .folder = training->folder,
                                                    .save_every = 1,
                                                    .resume = true,
                                                    .callbacks = &callbacks,
                                                    .n_callbacks = 1},
                       NULL));
    training->hashes[ls_driver_rank(driver)] = ls_driver_hash(driver);
    return LS_OK;
}

/* The same line with so many weights that copies of them would cost. */
static bool wide_parameter(const void *model, size_t at,
                           struct ls_parameter *out)
{
    if (!line_parameter(model, at, out))
        return false;
    if (at == 0)
        out->form = (struct ls_blob_form){LS_BLOB_F64, 1, {9000}};
    return true;
}

static int count_lent(void *self, ls_driver *driver)
{
    struct ls_model_ops wide = line_ops;
    struct ls_group_stats stats;
    wide.parameter = wide_parameter;
    (void)self;
    TRY(line_setup(driver, &wide));
    ls_group_stats(ls_driver_group(driver), &stats);
    /* The values of rank 0, to all. */
    CHECK(stats.lent == (ls_driver_rank(driver) == 0 ? 1 : 0));
    TRY(ls_trainer_run(driver,
                       &(struct ls_trainer_options){
                           .data = &line_data, .epochs = 1, .batch_size = 5},
                       NULL));
    const uint64_t before = stats.lent;
    ls_group_stats(ls_driver_group(driver), &stats);
    CHECK(stats.lent >= before + 4); /* the gradients of each step */
    return LS_OK;
}

TEST(gradients_are_read_where_they_lie)
{
    struct world world = {.n = 2, .fn = count_lent};
    run_nodes(&world);
    assert_all_ok(&world);
}

static int see_place(void *self, ls_driver *driver)
{
    uint32_t *seen = self;
    const uint32_t rank = ls_driver_rank(driver);
    CHECK(ls_driver_kind_of(driver) == LS_DRIVER_BUS);
    CHECK(ls_driver_local_rank(driver) == rank); /* all on this host */
    seen[rank] = ls_driver_size(driver);
    return ls_driver_barrier(driver);
}

TEST(each_node_is_a_rank_in_the_order_of_ids)
{
    uint32_t seen[MOST] = {0};
    struct world world = {.n = 3, .fn = see_place, .self = seen};
    run_nodes(&world);
    assert_all_ok(&world);
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen[i], 3);
}

TEST(nodes_learn_what_threads_learn_to_the_bit)
{
    for (uint32_t n = 1; n <= 4; n++) {
        struct training threads = {.folder = NULL}, nodes = {.folder = NULL};
        struct world world = {.n = n, .fn = train, .self = &nodes};
        assert_ok(run_threads(n, train, &threads));
        run_nodes(&world);
        assert_all_ok(&world);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(nodes.hashes[i], threads.hashes[0]);
    }
}

TEST_WITH(nodes_go_on_after_a_failure_that_is_reported_once, scratch_set_up,
          scratch_tear_down)
{
    const struct scratch *scratch = *state;
    char folder[128], report[128];
    (void)snprintf(folder, sizeof folder, "%s/saved", scratch->folder);
    (void)snprintf(report, sizeof report, "%s/report.json", scratch->folder);
    struct training whole = {.folder = NULL}, nodes = {.folder = folder};
    struct world world = {
        .n = 2, .fn = train, .self = &nodes, .report = report};
    assert_ok(run_threads(2, train, &whole));
    nodes.fail_at = 5;
    run_nodes(&world);
    assert_int_equal(world.members[1].status, LS_EIO);
    assert_int_equal(world.members[0].status, LS_EABORTED);
    assert_has(world.members[0].text, "1040");
    char line[1024] = "";
    FILE *file = fopen(report, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(fgetc(file), EOF);
    assert_int_equal(fclose(file), 0);
    assert_has(line, "\"exc_global_rank\":1,\"exc_local_rank\":1,\"node\":1040,"
                     "\"step\":\"after_batch\"");
    nodes.fail_at = 0;
    run_nodes(&world);
    assert_all_ok(&world);
    assert_int_equal(nodes.hashes[0], whole.hashes[0]);
    assert_int_equal(nodes.hashes[1], whole.hashes[0]);
}

TEST(a_node_that_cannot_start_says_why)
{
    struct ls_node_options options;
    ls_node *node;
    ls_node_options_init(&options);
    options.bind = "inproc://driver-alone";
    options.world_size = 2;
    options.start_timeout_ms = 1;
    assert_ok(ls_node_create(&node, &options));
    assert_fails(
        ls_driver_run(
            &(struct ls_driver_options){.kind = LS_DRIVER_BUS, .node = node},
            see_place, NULL),
        LS_EUNREACHABLE);
    assert_ok(ls_node_destroy(&node));
}
