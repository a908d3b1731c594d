/* Jobs, in a simulation of three nodes: what each of them promises when nothing
 * goes wrong, and what is refused. */
#include "job_world.h"

static void assert_lives(struct job_world *world)
{
    if (life(world) != LS_OK)
        for (size_t i = 0; i < SITES; i++)
            if (world->sites[i].status != LS_OK)
                fail_msg("node %zu: %s", i + 1, world->sites[i].text);
}

static void assert_ended(struct job_world *world, int64_t epoch, uint64_t run,
                         int64_t total)
{
    for (size_t i = 0; i < SITES; i++) {
        const struct site *site = &world->sites[i];
        assert_int_equal(site->result.epoch, epoch);
        assert_int_equal(site->result.n_epochs, run);
        assert_int_equal(site->total, total);
    }
}

static bool there(const char *folder, int node, int64_t epoch)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/node-%d.%06d", folder, node,
                   (int)epoch);
    return ls_file_exists(path);
}

/* On a host, since only hosts have the disk. */
struct look {
    bool all, any;
    int64_t epochs;
};

static void look_at_files(void *arg)
{
    struct look *look = arg;
    look->all = true;
    for (int node = 1; node <= SITES; node++)
        for (int64_t epoch = 0; epoch < look->epochs; epoch++) {
            const bool is = there("saved", node, epoch);
            look->all = look->all && is;
            look->any = look->any || is;
        }
}

static struct look look_for(struct job_world *world, int64_t epochs)
{
    struct look look = {.epochs = epochs};
    ls_host *host;
    ls_thread *thread;
    assert_ok(ls_host_create(&host, world->sim.simulation, "observer"));
    assert_ok(ls_disk_join(world->sim.disk, host));
    assert_ok(ls_thread_spawn(ls_host_runtime(host), &thread, "look",
                              look_at_files, &look));
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    return look;
}

/* ---- the whole of it --------------------------------------------------- */

static int64_t from;

static void resume_at(struct site *site)
{
    site->options.resume = LS_JOB_AT;
    site->options.epoch = from;
}

static void all_epochs(struct job_world *world)
{
    assert_lives(world);
    assert_ended(world, 4, 4, 145);
    assert_true(look_for(world, 5).all);
    const int64_t draw = world->sites[1].draw;
    for (size_t i = 0; i < SITES; i++)
        for (size_t j = 0; j < SITES; j++)
            assert_int_equal(world->sites[i].totals[j], 145);

    world->tune = NULL; /* the newest: the job has ended */
    assert_lives(world);
    assert_ended(world, 4, 0, 145);
    world->tune = resume_at;
    for (from = 4; from >= 1; from--) {
        assert_lives(world);
        assert_ended(world, 4, (uint64_t)(4 - from), 145);
        assert_int_equal(world->sites[1].draw, draw);
    }
    from = 5;
    assert_int_equal(life(world), LS_ENOENT);
    for (size_t i = 0; i < SITES; i++)
        assert_has(world->sites[i].text, "5");
}

TEST(four_epochs_and_going_on_from_each)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, all_epochs);
}

static void save_behind(struct site *site)
{
    site->options.saves_behind = true;
}

static void behind_body(struct job_world *world)
{
    world->tune = save_behind;
    assert_lives(world);
    assert_ended(world, 4, 4, 145);
    assert_true(look_for(world, 5).all);
    assert_lives(world);
    assert_ended(world, 4, 0, 145);
}

TEST(saves_that_go_on_behind)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, behind_body);
}

static void own_body(struct job_world *world)
{
    assert_lives(world);
    assert_lives(world);
    assert_ended(world, 4, 0, 145);
    world->tune = resume_at;
    from = 2;
    assert_lives(world);
    assert_ended(world, 4, 2, 145);
}

TEST(a_folder_for_each_node)
{
    struct job_world world = {.own_folders = true};
    world_play(&world, 1, own_body);
}

/* ---- loading ----------------------------------------------------------- */

static const char *const only_total[] = {"total", NULL};
static const char *const *load_names;

static int act_load(struct site *site)
{
    static const struct ls_blob total = {.name = "total",
                                         .form = {LS_BLOB_I64, 0, {0}}};
    struct ls_blob blob = total;
    blob.memory = &site->total;
    const int status = ls_blobs_add(ls_job_blobs(site->job), &blob);
    return status == LS_OK ? ls_job_load(site->job, from, load_names) : status;
}

static void load_body(struct job_world *world)
{
    static const int64_t totals[] = {100, 103, 115, 136, 145};
    assert_lives(world);
    world->act = act_load;
    for (int i = 0; i < 2; i++) {
        load_names = i == 0 ? only_total : NULL;
        for (from = 0; from <= 4; from++) {
            assert_lives(world);
            for (size_t j = 0; j < SITES; j++)
                assert_int_equal(world->sites[j].total, totals[from]);
        }
        assert_int_equal(life(world), LS_ENOENT); /* 5 */
    }
}

TEST(any_checkpoint_is_loaded_alone_and_in_part)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, load_body);
}

/* ---- the limiter ------------------------------------------------------- */

static int describe_limited(struct site *site)
{
    int status =
        ls_job_add(site->job, LS_JOB_INIT,
                   &(struct ls_job_task){
                       .name = "begin", .fn = begin_total, .self = site});
    if (status == LS_OK)
        status =
            ls_job_add(site->job, LS_JOB_EPOCH,
                       &(struct ls_job_task){
                           .name = "read", .fn = read_three, .self = site});
    assert_int_equal(ls_job_limit_epochs(site->job, 0), LS_EINVAL);
    if (status == LS_OK)
        status = ls_job_limit_epochs(site->job, 3);
    assert_int_equal(ls_job_limit_epochs(site->job, 3), LS_EEXIST);
    return status == LS_OK
               ? ls_job_add(site->job, LS_JOB_EXIT,
                            &(struct ls_job_task){
                                .name = "look", .fn = look, .self = site})
               : status;
}

static void limited_body(struct job_world *world)
{
    world->describe = describe_limited;
    assert_lives(world);
    assert_ended(world, 3, 3, 136);
    world->tune = resume_at;
    from = 3;
    assert_lives(world);
    assert_ended(world, 3, 0, 136);
    from = 1;
    assert_lives(world);
    assert_ended(world, 3, 2, 136);
}

TEST(a_limit_of_epochs_counts_those_before_a_resume)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, limited_body);
}

/* ---- a save that fails ------------------------------------------------- */

static int fill(void *self, ls_turn *turn)
{
    struct site *site = self;
    struct ls_disk_stats stats;
    ls_disk_stats(site->world->sim.disk, &stats);
    if (site->id == 2 && ls_turn_epoch(turn) == 2)
        ls_disk_fill(site->world->sim.disk, stats.bytes + 300);
    else if (site->id == 2)
        ls_disk_fill(site->world->sim.disk, UINT64_MAX);
    return LS_OK;
}

static int describe_full(struct site *site)
{
    const int status = describe_reader(site);
    return status == LS_OK
               ? ls_job_add(site->job, LS_JOB_EPOCH,
                            &(struct ls_job_task){
                                .name = "fill", .fn = fill, .self = site})
               : status;
}

static void go_on(struct site *site)
{
    site->options.goes_on = true;
}

static void go_on_behind(struct site *site)
{
    site->options.goes_on = true;
    site->options.saves_behind = true;
}

static void full_body(struct job_world *world)
{
    world->describe = describe_full;
    if (world->self == NULL) {
        assert_int_equal(life(world), LS_EIO);
        for (size_t i = 0; i < SITES; i++)
            assert_has(world->sites[i].text, "epoch 2 was not saved: node ");
        ls_disk_fill(world->sim.disk, UINT64_MAX);
        world->describe = describe_reader;
        assert_lives(world);
        assert_ended(world, 4, 3, 145); /* 1 was the newest */
        return;
    }
    assert_lives(world);
    assert_ended(world, 4, 4, 145);
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(world->sites[i].result.failed_saves, 1);
    world->describe = describe_reader;
    world->tune = resume_at;
    from = 2;
    assert_int_equal(life(world), LS_ENOENT);
    from = 1;
    assert_lives(world);
    assert_ended(world, 4, 3, 145);
}

TEST(a_full_disk_ends_the_job_and_leaves_the_epoch_before)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, full_body);
}

TEST(a_full_disk_costs_one_epoch_where_the_job_goes_on)
{
    struct job_world world = {.tune = go_on, .self = &world};
    world_play(&world, 1, full_body);
}

TEST(and_where_it_saves_behind)
{
    struct job_world world = {.tune = go_on_behind, .self = &world};
    world_play(&world, 1, full_body);
}

/* ---- what else may go wrong -------------------------------------------- */

static int fail_on_two(void *self, ls_turn *turn)
{
    const struct site *site = self;
    return site->id == 2 && ls_turn_epoch(turn) == 2
               ? ls_error(LS_EPROTO, "it does not like it")
               : LS_OK;
}

static int describe_failing(struct site *site)
{
    const int status = describe_reader(site);
    return status == LS_OK ? ls_job_add(site->job, LS_JOB_EPOCH,
                                        &(struct ls_job_task){.name = "sulk",
                                                              .fn = fail_on_two,
                                                              .self = site})
                           : status;
}

static void failing_body(struct job_world *world)
{
    world->describe = describe_failing;
    (void)life(world);
    for (size_t i = 0; i < SITES; i++) {
        assert_int_equal(world->sites[i].status, LS_EPROTO);
        assert_has(world->sites[i].text,
                   "node 2: epoch group, task sulk: it does not like it");
    }
}

TEST(a_task_that_fails_ends_the_job_everywhere_by_name)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, failing_body);
}

/* As the one that leads would ask it. Returns what it says. */
static int64_t ask_to(const struct site *site, uint32_t to, const char *what)
{
    ls_writer *writer;
    ls_document *document;
    const void *data;
    void *answer;
    size_t size;
    int64_t status;
    assert_ok(ls_writer_create(&writer));
    ls_write_map(writer, 3);
    ls_write_string(writer, "do");
    ls_write_string(writer, what);
    ls_write_string(writer, "epoch");
    ls_write_int(writer, 0);
    ls_write_string(writer, "phase");
    ls_write_int(writer, LS_JOB_EPOCH);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_call_ask(
        site->calls,
        &(struct ls_call_options){
            .to = to, .name = "job.reader", .data = data, .size = size},
        &answer, &size));
    assert_ok(ls_document_read(&document, answer, size, NULL));
    assert_ok(ls_value_int(ls_value_get(ls_document_root(document), "status"),
                           &status));
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    free(answer);
    return status;
}

/* Node 3 is busy meanwhile, and refuses at once. */
static int meddle(void *self, ls_turn *turn)
{
    const struct site *site = self;
    ls_runtime *runtime = ls_host_runtime(site->host);
    const int64_t now = ls_now(runtime);
    if (site->id == 1 || ls_turn_epoch(turn) != 2)
        return LS_OK;
    ls_rest_until(runtime, now + (site->id == 3 ? 4 : 1) * LS_NS_PER_S);
    if (site->id == 3)
        return LS_OK;
    assert_int_equal(ask_to(site, 3, "rewind"), LS_EPROTO);
    assert_int_equal(ask_to(site, 3, "run"), LS_EPROTO);
    assert_true(ls_now(runtime) < now + 2 * LS_NS_PER_S);
    return LS_OK;
}

static int describe_meddling(struct site *site)
{
    const int status = describe_reader(site);
    return status == LS_OK
               ? ls_job_add(site->job, LS_JOB_EPOCH,
                            &(struct ls_job_task){
                                .name = "meddle", .fn = meddle, .self = site})
               : status;
}

static void meddling_body(struct job_world *world)
{
    world->describe = describe_meddling;
    assert_lives(world);
    assert_ended(world, 4, 4, 145);
    assert_true(look_for(world, 5).all);
}

TEST(who_does_not_lead_has_nothing_done)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, meddling_body);
}

/* Node 1 leads. */
static int end_strangely(void *self, ls_turn *turn)
{
    static const uint8_t ends_with_five[] = {0x81, 0xa3, 'e', 'n', 'd', 5};
    const struct site *site = self;
    void *answer;
    size_t size;
    if (site->id != 1 || ls_turn_epoch(turn) != 2)
        return LS_OK;
    assert_ok(
        ls_call_ask(site->calls,
                    &(struct ls_call_options){.to = 3,
                                              .name = "job.reader",
                                              .data = ends_with_five,
                                              .size = sizeof ends_with_five},
                    &answer, &size));
    free(answer);
    return LS_OK;
}

static int describe_strange_end(struct site *site)
{
    const int status = describe_reader(site);
    return status == LS_OK
               ? ls_job_add(site->job, LS_JOB_EPOCH,
                            &(struct ls_job_task){.name = "end",
                                                  .fn = end_strangely,
                                                  .self = site})
               : status;
}

static void strange_end_body(struct job_world *world)
{
    world->describe = describe_strange_end;
    (void)life(world);
    assert_int_equal(world->sites[2].status, LS_EPROTO);
    assert_has(world->sites[2].text,
               "node 1, which leads, ended the job with 5, which is no status");
}

TEST(an_end_by_what_is_no_status_is_no_success)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, strange_end_body);
}

static int describe_other(struct site *site)
{
    const int status = describe_reader(site);
    return status == LS_OK && site->id == 3
               ? ls_job_add(site->job, LS_JOB_EXIT,
                            &(struct ls_job_task){
                                .name = "extra", .fn = look, .self = site})
               : status;
}

static void other_body(struct job_world *world)
{
    world->describe = describe_other;
    (void)life(world);
    for (size_t i = 0; i < SITES; i++) {
        assert_int_equal(world->sites[i].status, LS_EMISMATCH);
        assert_has(world->sites[i].text, "node 3: it describes job reader");
        assert_has(world->sites[i].text, "extra");
    }
}

TEST(a_node_that_describes_another_job_is_named)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, other_body);
}

static void from_scratch(struct site *site)
{
    site->options.resume = LS_JOB_SCRATCH;
}

static void scratch_body(struct job_world *world)
{
    world->tune = from_scratch;
    assert_lives(world);
    assert_int_equal(life(world), LS_EEXIST);
    assert_has(world->sites[2].text, "resume, or choose another folder");
}

TEST(what_is_saved_is_not_written_over)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, scratch_body);
}

/* Who runs in a folder that another run has. */
static int act_twice(struct site *site)
{
    struct ls_job_options options = site->options;
    ls_job *second;
    ls_checkpoints *other = NULL;
    char name[16];
    (void)snprintf(name, sizeof name, "node-%u", site->id);
    assert_int_equal(ls_job_create(&second, site->node, site->calls, &options),
                     LS_EEXIST);
    if (site->id == 2)
        assert_ok(ls_checkpoints_open(
            &other, &(struct ls_checkpoints_options){.folder = options.folder,
                                                     .node = name}));
    const int status = ls_job_run(site->job, NULL);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    assert_ok(ls_checkpoints_close(&other));
    return ls_failure_return(&failure);
}

static void twice_body(struct job_world *world)
{
    world->act = act_twice;
    assert_true(life(world) != LS_OK);
    assert_int_equal(world->sites[1].status, LS_EAGAIN);
    assert_int_equal(world->sites[0].status, LS_EAGAIN);
    assert_has(world->sites[0].text, "node 2: ");
}

TEST(a_folder_that_another_run_has_is_refused)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, twice_body);
}

/* ---- who is lost ------------------------------------------------------- */

static int wait_long(void *self, ls_turn *turn)
{
    struct site *site = self;
    ls_runtime *runtime = ls_host_runtime(site->host);
    for (int i = 0; i < 10000 && !ls_turn_is_cancelled(turn); i++)
        ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_MS);
    return ls_turn_is_cancelled(turn) ? LS_OK
                                      : ls_error(LS_EINVARIANT, "not told");
}

static int describe_long(struct site *site)
{
    const int status = describe_reader(site);
    return status == LS_OK
               ? ls_job_add(site->job, LS_JOB_EPOCH,
                            &(struct ls_job_task){
                                .name = "long", .fn = wait_long, .self = site})
               : status;
}

static void lost_body(struct job_world *world)
{
    ls_runtime *runtime = ls_simulation_runtime(world->sim.simulation);
    const size_t lost = *(const size_t *)world->self;
    char name[16];
    world->describe = describe_long;
    life_begin(world);
    ls_rest_until(runtime, ls_now(runtime) + 2 * LS_NS_PER_S);
    ls_network_kill(world->sim.network, world->sites[lost].host);
    const int64_t killed_at = ls_now(runtime);
    life_end(world);
    assert_true(ls_now(runtime) - killed_at < 5 * LS_NS_PER_S);
    (void)snprintf(name, sizeof name, "node %zu", lost + 1);
    for (size_t i = 0; i < SITES; i++) {
        if (i == lost)
            continue;
        assert_int_equal(world->sites[i].status, LS_ELOST);
        assert_has(world->sites[i].text, name);
    }
}

TEST(a_lost_node_ends_the_job_and_is_named)
{
    size_t lost = 1;
    struct job_world world = {.self = &lost};
    world_play(&world, 1, lost_body);
}

TEST(so_does_the_node_that_leads)
{
    size_t lost = 0;
    struct job_world world = {.self = &lost};
    world_play(&world, 1, lost_body);
}

static int run_again(struct site *site)
{
    const int status = ls_job_run(site->job, &site->result);
    return site->id == 1 ? status : ls_job_run(site->job, &site->result);
}

/* Nobody asks anything in that run, and nobody is waited for. */
TEST(nor_is_a_job_begun_without_the_node_that_leads)
{
    size_t lost = 0;
    struct job_world world = {.self = &lost, .act = run_again};
    world_play(&world, 1, lost_body);
}

/* ---- accounts elsewhere ------------------------------------------------ */

static int64_t last_saved, last_wanted;

static int on_saved(void *self, const struct ls_checkpoint_manifest *manifest)
{
    (void)self;
    assert_int_equal(manifest->n_entries, SITES);
    last_saved = manifest->epoch;
    return LS_OK;
}

static int on_last(void *self, int64_t *epoch)
{
    (void)self;
    *epoch = last_wanted;
    return LS_OK;
}

static void account(struct site *site)
{
    static const struct ls_job_metadata metadata = {on_last, on_saved};
    site->options.metadata = &metadata;
}

static void account_body(struct job_world *world)
{
    last_wanted = LS_CHECKPOINT_NONE;
    world->tune = account;
    assert_lives(world);
    assert_int_equal(last_saved, 4);
    last_wanted = 2;
    assert_lives(world);
    assert_ended(world, 4, 2, 145);
}

TEST(metadata_say_where_to_go_on_from)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, account_body);
}

static void keep_two(struct site *site)
{
    site->options.retention.last = 2;
}

static void keep_body(struct job_world *world)
{
    world->tune = keep_two;
    assert_lives(world);
    assert_false(look_for(world, 3).any);
    world->tune = resume_at;
    from = 3;
    assert_lives(world);
    assert_ended(world, 4, 1, 145);
}

TEST(only_the_last_are_kept)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, keep_body);
}

static void only_two(struct site *site)
{
    site->options.checkpoint = "id:2";
}

static void chosen_body(struct job_world *world)
{
    world->tune = only_two;
    assert_lives(world);
    const struct look look = look_for(world, 5);
    assert_true(look.any && !look.all);
    assert_has(world->sites[0].print, "saves     the blobs of node 2;");
}

TEST(whose_blobs_are_saved_may_be_chosen)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, chosen_body);
}

/* ---- groups ------------------------------------------------------------ */

static int report(void *self, ls_turn *turn)
{
    struct site *site = self;
    (void)turn;
    site->n_reports++;
    return LS_OK;
}

static int work(void *self, ls_turn *turn)
{
    static const struct ls_blob_form other = {LS_BLOB_F32, 1, {2}};
    static const struct ls_blob_form none = {LS_BLOB_F32, 99, {2}};
    const struct site *site = self;
    struct ls_blob_form found;
    void *memory;
    ls_runtime *runtime = ls_host_runtime(site->host);
    assert_ok(ls_turn_blob(turn, "gone", &number, &memory));
    assert_int_equal(*(int64_t *)memory, 0); /* new in each run */
    *(int64_t *)memory = 7;
    assert_ok(ls_turn_blob(turn, "scratch", &number, &memory));
    assert_int_equal(*(int64_t *)memory, ls_turn_epoch(turn) - 1);
    *(int64_t *)memory = ls_turn_epoch(turn); /* stays: it is put out */
    assert_ok(ls_turn_blob(turn, "total", &number, &memory));
    *(int64_t *)memory += ls_turn_epoch(turn);
    assert_int_equal(ls_turn_blob(turn, "total", &other, &memory),
                     LS_EMISMATCH);
    assert_int_equal(ls_turn_blob(turn, "", &number, &memory), LS_EINVAL);
    assert_int_equal(ls_turn_blob(turn, "none", &none, &memory), LS_EINVAL);
    assert_int_equal(ls_turn_form(turn, "none", &found), LS_ENOENT);
    assert_int_equal(ls_turn_blob(turn, "encoded", &number, &memory),
                     LS_EMISMATCH);
    assert_error_has("no memory of its own");
    ls_rest_until(runtime, ls_now(runtime) + 2500 * LS_NS_PER_MS);
    return LS_OK;
}

static void refuse_tasks(struct site *site)
{
    static const char *const none[] = {"a\"b", NULL};
    const struct ls_job_task right = {.name = "right", .fn = report};
    struct ls_job_task wrong = right;
    wrong.name = "a b";
    assert_int_equal(ls_job_add(site->job, LS_JOB_INIT, &wrong), LS_EINVAL);
    wrong = right;
    wrong.fn = NULL;
    assert_int_equal(ls_job_add(site->job, LS_JOB_INIT, &wrong), LS_EINVAL);
    wrong = right;
    wrong.report_ms = -1;
    assert_int_equal(ls_job_add(site->job, LS_JOB_INIT, &wrong), LS_EINVAL);
    wrong = right;
    wrong.outputs = none;
    assert_int_equal(ls_job_add(site->job, LS_JOB_INIT, &wrong), LS_EINVAL);
    assert_error_has("init group, task right: \"a\"b\" is not a blob's name");
    assert_int_equal(ls_job_add(site->job, LS_JOB_N_PHASES, &right), LS_EINVAL);
    assert_int_equal(ls_job_stop_on(site->job, "a b"), LS_EINVAL);
    assert_int_equal(ls_job_compile(site->job), LS_ESTATE);
    assert_error_has("start the node");
}

static int describe_groups(struct site *site)
{
    static const char *const outputs[] = {"scratch", NULL};
    const struct ls_job_task tasks[] = {
        {.name = "begin", .fn = begin_total, .self = site},
        {.name = "work",
         .where = "role:first,none",
         .fn = work,
         .self = site,
         .workspace = LS_WORKSPACE_PRIVATE,
         .outputs = outputs},
        {.name = "watch",
         .where = "role:first",
         .fn = report,
         .self = site,
         .workspace = LS_WORKSPACE_PRIVATE,
         .report_ms = 1000},
        {.name = "up", .where = "label:last", .fn = report, .self = site},
        {.name = "down", .where = "id:2", .fn = report, .self = site},
        {.name = "look", .fn = look, .self = site}};
    static const enum ls_job_phase phases[] = {LS_JOB_INIT,     LS_JOB_EPOCH,
                                               LS_JOB_EPOCH,    LS_JOB_UPLOAD,
                                               LS_JOB_DOWNLOAD, LS_JOB_EXIT};
    struct ls_job_task mixed = tasks[5];
    int status = LS_OK;
    for (size_t i = 0; i < 6 && status == LS_OK; i++)
        status = ls_job_add(site->job, phases[i], &tasks[i]);
    assert_int_equal(ls_job_add(site->job, LS_JOB_EPOCH, &mixed), LS_EMISMATCH);
    assert_error_has("all global or all private");
    assert_int_equal(ls_job_add(site->job, LS_JOB_EXIT, &mixed), LS_EEXIST);
    mixed.where = "label";
    assert_int_equal(ls_job_add(site->job, LS_JOB_INIT, &mixed), LS_EINVAL);
    refuse_tasks(site);
    return status == LS_OK ? ls_job_limit_epochs(site->job, 2) : status;
}

static int save_byte(void *self, ls_blob_sink *sink)
{
    (void)self;
    return ls_blob_sink_add(sink, "x", 1);
}

static int load_byte(void *self, ls_blob_source *source)
{
    char byte;
    (void)self;
    return ls_blob_source_read(source, &byte, 1);
}

static int describe_groups_and_a_blob(struct site *site)
{
    static const struct ls_blob_ops ops = {.save = save_byte,
                                           .load = load_byte};
    const int status = ls_blobs_add(
        ls_job_blobs(site->job),
        &(struct ls_blob){.name = "encoded", .form = flag, .ops = &ops});
    return status == LS_OK ? describe_groups(site) : status;
}

static void groups_body(struct job_world *world)
{
    world->describe = describe_groups_and_a_blob;
    assert_lives(world);
    assert_int_equal(world->sites[0].total, 103);
    assert_int_equal(world->sites[1].total, 100);
    assert_int_equal(world->sites[0].n_reports, 6); /* twice, and at the end */
    assert_int_equal(world->sites[1].n_reports, 1);
    assert_int_equal(world->sites[2].n_reports, 3); /* epochs 0 to 2 */
    const struct ls_job_time *times = world->sites[0].result.times;
    assert_int_equal(times[LS_JOB_OP_EPOCH].n, 2);
    assert_true(times[LS_JOB_OP_EPOCH].total_ns >= 5 * LS_NS_PER_S);
    assert_int_equal(times[LS_JOB_OP_SAVE].n, 3);
    assert_int_equal(times[LS_JOB_OP_EXIT].n, 1);
}

TEST(tasks_are_where_they_are_placed_and_reports_beside_them)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, groups_body);
}

TEST(operations_have_names)
{
    static const char *const names[LS_JOB_N_OPS] = {
        "init", "load", "epoch", "save", "upload", "download", "exit"};
    for (int i = 0; i < LS_JOB_N_OPS; i++)
        assert_string_equal(ls_job_operation_name((enum ls_job_operation)i),
                            names[i]);
    assert_string_equal(ls_job_operation_name(LS_JOB_N_OPS), "?");
}

static const char printed[] =
    "job reader on node 1, 2, 3, led by node 1\n"
    "  init      begin on node 1, 2, 3 (all)\n"
    "  init      epoch_limiter on node 1 (first)\n"
    "  epoch     work on node 1 (role:first,none), private, puts out scratch\n"
    "  epoch     watch on node 1 (role:first), private, every 1000 ms\n"
    "  epoch     epoch_limiter on node 1 (first)\n"
    "  upload    up on node 3 (label:last)\n"
    "  download  down on node 2 (id:2)\n"
    "  exit      look on node 1, 2, 3 (all)\n"
    "  saves     the blobs of node 1, 2, 3; after a failed save it ends\n"
    "  stops     after 2 epochs\n";

static int act_compile(struct site *site)
{
    int status = ls_job_compile(site->job);
    if (status != LS_OK)
        return status;
    const struct ls_job_task task = {.name = "late", .fn = report};
    const void *data;
    size_t size;
    assert_int_equal(ls_job_stop_on(site->job, "done"), LS_ESTATE);
    assert_error_has("is compiled");
    assert_int_equal(ls_job_add(site->job, LS_JOB_EPOCH, &task), LS_ESTATE);
    assert_int_equal(ls_job_share(site->job, "total", LS_JOB_SHARED),
                     LS_ESTATE);
    assert_int_equal(ls_job_output(site->job, 1, "scratch", &data, &size),
                     LS_ENOENT); /* it has not run */
    assert_error_has("no task on node 1 has put out scratch");
    return LS_OK;
}

static void compiled_body(struct job_world *world)
{
    world->describe = describe_groups;
    world->act = act_compile;
    assert_lives(world);
    for (size_t i = 0; i < SITES; i++)
        assert_string_equal(world->sites[i].print, printed);
    assert_has(
        world->sites[0].json,
        "{\"group\":\"upload\",\"task\":\"up\",\"where\":\"label:last\","
        "\"private\":false,\"report_ms\":0,\"outputs\":[],\"nodes\":[3]}");
}

TEST(a_compiled_job_is_printed_and_takes_nothing_more)
{
    struct job_world world = {.together = true};
    world_play(&world, 1, compiled_body);
}

TEST(a_task_of_another_job_is_printed_in_the_same_form)
{
    static const char *const outputs[] = {"value", NULL};
    static const uint32_t nodes[] = {3, 4};
    const struct ls_job_task task = {
        .name = "close", .where = "role:collector", .outputs = outputs};
    static const char line[] =
        "  exit      close on node 3, 4 (role:collector), puts out value\n";
    char text[128], cut[8];
    assert_int_equal(
        ls_job_task_print(LS_JOB_EXIT, &task, nodes, 2, text, sizeof text),
        sizeof line - 1);
    assert_string_equal(text, line);
    assert_int_equal(
        ls_job_task_print(LS_JOB_EXIT, &task, nodes, 2, cut, sizeof cut),
        sizeof line - 1);
    assert_string_equal(cut, "  exit ");
    assert_string_equal(ls_job_phase_name(LS_JOB_DOWNLOAD), "download");
    assert_string_equal(ls_job_phase_name(LS_JOB_N_PHASES), "?");
}

static int act_print_blobs(struct site *site)
{
    static float weights[3][4];
    static unsigned char scratch;
    ls_blobs *blobs = ls_job_blobs(site->job);
    assert_ok(
        ls_blobs_add(blobs, &(struct ls_blob){.name = "weights",
                                              .form = {LS_BLOB_F32, 2, {3, 4}},
                                              .memory = weights}));
    assert_ok(ls_blobs_add(blobs, &(struct ls_blob){.name = "scratch",
                                                    .form = flag,
                                                    .is_private = true,
                                                    .memory = &scratch}));
    assert_int_equal(ls_job_print(site->job, false, NULL, 0), 0);
    const int status = ls_job_compile(site->job);
    assert_int_equal(ls_job_limit_epochs(site->job, 3), LS_ESTATE);
    return status;
}

static void blobs_body(struct job_world *world)
{
    world->act = act_print_blobs;
    assert_lives(world);
    assert_has(world->sites[0].print, "  stops     on done\n"
                                      "  blob      weights f32[3,4]\n"
                                      "  blob      scratch u8, private\n");
    assert_has(world->sites[0].json,
               "\"blobs\":[{\"name\":\"weights\",\"form\":\"f32[3,4]\"},"
               "{\"name\":\"scratch\",\"form\":\"u8\"}]}\n");
}

TEST(a_print_ends_with_the_blobs_of_this_node)
{
    struct job_world world = {.own_folders = false};
    world_play(&world, 1, blobs_body);
}

static int describe_nowhere(struct site *site)
{
    return ls_job_add(
        site->job, LS_JOB_EPOCH,
        &(struct ls_job_task){
            .name = "work", .where = "role:nobody", .fn = look, .self = site});
}

static void nowhere_body(struct job_world *world)
{
    world->describe = describe_nowhere;
    assert_int_equal(life(world), LS_ENOENT);
    assert_has(world->sites[0].text,
               "job reader, epoch group, task work: no ready node is at "
               "\"role:nobody\"");
}

TEST(a_task_without_a_node_is_named)
{
    struct job_world world = {.together = true};
    world_play(&world, 1, nowhere_body);
}

static int describe_no_epochs(struct site *site)
{
    return ls_job_add(site->job, LS_JOB_INIT,
                      &(struct ls_job_task){
                          .name = "begin", .fn = begin_total, .self = site});
}

static void no_epochs_body(struct job_world *world)
{
    world->describe = describe_no_epochs;
    assert_int_equal(life(world), LS_EINVAL);
    for (size_t i = 0; i < SITES; i++) {
        assert_int_equal(world->sites[i].status, LS_EINVAL);
        assert_has(world->sites[i].text, "its epoch group has no task");
    }
}

TEST(a_job_without_epochs_is_refused)
{
    struct job_world world = {.together = true};
    world_play(&world, 1, no_epochs_body);
}

static int describe_for_two(struct site *site)
{
    const int status = ls_job_add(
        site->job, LS_JOB_EPOCH,
        &(struct ls_job_task){.name = "work", .where = "id:1,2", .fn = report});
    return status == LS_OK ? ls_job_limit_epochs(site->job, 3) : status;
}

static int act_compile_twice(struct site *site)
{
    assert_int_equal(ls_job_compile(site->job),
                     site->id == 3 ? LS_EINVAL : LS_OK);
    return ls_job_compile(site->job);
}

static void for_two_body(struct job_world *world)
{
    world->describe = describe_for_two;
    world->act = act_compile_twice;
    assert_int_equal(life(world), LS_EINVAL);
    assert_int_equal(world->sites[0].status, LS_OK);
    assert_has(world->sites[2].text, "node 3 has no part in job reader");
}

TEST(a_node_without_a_part_is_named)
{
    struct job_world world = {.together = true};
    world_play(&world, 1, for_two_body);
}

/* What is put out: 0: there is no such blob; else its size. */
struct putting {
    uint64_t size;
    int status;
    const char *text;
};

static const struct putting *putting;

static int make_long(void *self, ls_turn *turn)
{
    const struct ls_blob_form form = {LS_BLOB_U8, 1, {putting->size}};
    void *memory;
    (void)self;
    return putting->size > 0 ? ls_turn_blob(turn, "long", &form, &memory)
                             : LS_OK;
}

static int describe_outputs(struct site *site)
{
    static const char *const outputs[] = {"long", NULL};
    const int status = ls_job_limit_epochs(site->job, 1);
    return status == LS_OK
               ? ls_job_add(site->job, LS_JOB_EPOCH,
                            &(struct ls_job_task){.name = "put",
                                                  .fn = make_long,
                                                  .outputs = outputs})
               : status;
}

static void outputs_body(struct job_world *world)
{
    world->describe = describe_outputs;
    assert_int_equal(life(world), putting->status);
    for (size_t i = 0; i < SITES; i++) {
        assert_int_equal(world->sites[i].status, putting->status);
        assert_has(world->sites[i].text, putting->text);
    }
}

TEST(what_cannot_be_put_out_ends_the_job)
{
    static const struct putting cases[] = {
        {0, LS_ENOENT, "task put: output long: no blob of this node"},
        {122881, LS_ELIMIT, "task put: output long: 122881 bytes, over 122880"},
        {122880, LS_ELIMIT, "all outputs together have"},
        {80000, LS_OK, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_world world = {.own_folders = false};
        putting = &cases[i];
        world_play(&world, 1, outputs_body);
    }
}
