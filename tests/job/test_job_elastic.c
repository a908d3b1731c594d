/* A job that goes on with other nodes than it was saved with: who has which of
 * its blobs then. */
#include "job_world.h"

/* Each node of the first life has 4 rows of "rows", 8 in all; "weights" are the
 * same on all, and "mine" is each node's own. An epoch adds 1 to both. */
struct story {
    const char *where; /* the nodes of this life */
    bool elastic, own_memory;
    int64_t at;
    int64_t n_rows[SITES], rows[SITES][8][2];
    int64_t weights[SITES], mine[SITES];
    int n_begun[SITES]; /* by the init group */
};

static int64_t spare[5][2]; /* a program's own memory */

static struct story *story_of(const struct site *site)
{
    return site->world->self;
}

static int begin(void *self, ls_turn *turn)
{
    static const struct ls_blob_form form = {LS_BLOB_I64, 2, {4, 2}};
    const struct site *site = self;
    void *memory;
    story_of(site)->n_begun[site->id - 1]++;
    if (!story_of(site)->own_memory) {
        assert_ok(ls_turn_blob(turn, "rows", &form, &memory));
        for (int64_t i = 0; i < 4; i++)
            for (int64_t j = 0; j < 2; j++)
                ((int64_t *)memory)[2 * i + j] =
                    10 * ((int64_t)(site->id - 1) * 4 + i) + j;
    }
    *number_of(turn, "weights") = 7;
    *number_of(turn, "mine") = 100 * (int64_t)site->id;
    return LS_OK;
}

static int step(void *self, ls_turn *turn)
{
    (void)self;
    ++*number_of(turn, "weights");
    ++*number_of(turn, "mine");
    return LS_OK;
}

static int see(void *self, ls_turn *turn)
{
    const struct site *site = self;
    struct story *story = story_of(site);
    struct ls_blob_form form;
    void *memory;
    assert_ok(ls_turn_form(turn, "rows", &form));
    assert_ok(ls_turn_blob(turn, "rows", &form, &memory));
    assert_int_equal(form.n_dims, 2);
    assert_true(form.shape[0] <= 8);
    story->n_rows[site->id - 1] = (int64_t)form.shape[0];
    memcpy(story->rows[site->id - 1], memory,
           (size_t)form.shape[0] * 2 * sizeof(int64_t));
    story->weights[site->id - 1] = *number_of(turn, "weights");
    story->mine[site->id - 1] = *number_of(turn, "mine");
    assert_int_equal(ls_turn_form(turn, "nothing", &form), LS_ENOENT);
    return LS_OK;
}

static int describe(struct site *site)
{
    static const enum ls_job_phase phases[] = {LS_JOB_INIT, LS_JOB_EPOCH,
                                               LS_JOB_EXIT};
    const char *where = story_of(site)->where;
    const struct ls_job_task tasks[] = {
        {.name = "begin", .where = where, .fn = begin, .self = site},
        {.name = "step", .where = where, .fn = step, .self = site},
        {.name = "see", .where = where, .fn = see, .self = site}};
    int status = LS_OK;
    for (size_t i = 0; i < 3 && status == LS_OK; i++)
        status = ls_job_add(site->job, phases[i], &tasks[i]);
    if (status == LS_OK)
        status = ls_job_share(site->job, "weights", LS_JOB_SHARED);
    if (status == LS_OK)
        status = ls_job_share(site->job, "rows", LS_JOB_SPREAD);
    assert_int_equal(ls_job_share(site->job, "rows", LS_JOB_SHARED), LS_EEXIST);
    assert_int_equal(ls_job_share(site->job, "", LS_JOB_SHARED), LS_EINVAL);
    assert_error_has("ls_job_share() takes the name of a blob");
    if (story_of(site)->own_memory)
        assert_ok(
            ls_blobs_add(ls_job_blobs(site->job),
                         &(struct ls_blob){.name = "rows",
                                           .form = {LS_BLOB_I64, 2, {5, 2}},
                                           .memory = spare}));
    return status == LS_OK ? ls_job_limit_epochs(site->job, 4) : status;
}

static bool has_part(const struct site *site)
{
    const char *where = story_of(site)->where;
    return strchr(where, '0' + (int)site->id) != NULL;
}

static int act(struct site *site)
{
    return has_part(site) ? ls_job_run(site->job, &site->result) : LS_OK;
}

static void tune(struct site *site)
{
    const struct story *story = story_of(site);
    site->options.elastic = story->elastic;
    if (story->at < 0)
        return;
    site->options.resume = LS_JOB_AT;
    site->options.epoch = story->at;
}

static void live(struct job_world *world, const char *where, int64_t at,
                 uint64_t epochs)
{
    struct story *story = world->self;
    story->where = where;
    story->at = at;
    if (life(world) != LS_OK)
        for (size_t i = 0; i < SITES; i++)
            if (world->sites[i].status != LS_OK)
                fail_msg("node %zu: %s", i + 1, world->sites[i].text);
    for (size_t i = 0; i < SITES; i++) {
        if (!has_part(&world->sites[i]))
            continue;
        assert_int_equal(world->sites[i].result.epoch, 4);
        assert_int_equal(world->sites[i].result.n_epochs, epochs);
    }
}

static void assert_rows(const struct story *story, size_t node, int64_t first,
                        int64_t n)
{
    assert_int_equal(story->n_rows[node - 1], n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < 2; j++)
            assert_int_equal(story->rows[node - 1][i][j], 10 * (first + i) + j);
}

static void setup(struct job_world *world)
{
    world->describe = describe;
    world->act = act;
    world->tune = tune;
}

static void more_body(struct job_world *world)
{
    struct story *story = world->self;
    setup(world);
    live(world, "id:1,2", -1, 4);
    assert_rows(story, 1, 0, 4);
    assert_rows(story, 2, 4, 4);

    live(world, "id:1,2,3", 2, 2); /* 3 is new */
    assert_rows(story, 1, 0, 3);
    assert_rows(story, 2, 3, 3);
    assert_rows(story, 3, 6, 2);
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(story->weights[i], 11);
    assert_int_equal(story->mine[0], 104);
    assert_int_equal(story->mine[1], 204);
    assert_int_equal(story->mine[2], 302); /* 2 epochs */
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(story->n_begun[i], 1);

    live(world, "id:3", 3, 1); /* 1 and 2 are gone */
    assert_rows(story, 3, 0, 8);
    assert_int_equal(story->weights[2], 11);
    assert_int_equal(story->mine[2], 302);

    live(world, "id:1,2", 3, 1); /* who leads counts the epochs that are left */
    assert_rows(story, 1, 0, 4);
    assert_rows(story, 2, 4, 4);
    assert_int_equal(story->weights[0], 11);
    assert_int_equal(story->mine[0], 104);
    live(world, "id:2,3", -1, 0); /* the newest; it has ended */
    assert_rows(story, 2, 0, 4);
    assert_rows(story, 3, 4, 4);
}

TEST(rows_are_divided_anew_and_epochs_go_on)
{
    struct story story = {.elastic = true};
    struct job_world world = {.self = &story};
    world_play(&world, 1, more_body);
}

static void shown_body(struct job_world *world)
{
    setup(world);
    live(world, "id:1,2", -1, 4);
    assert_has(world->sites[0].print, "  shares    weights\n"
                                      "  spreads   rows\n");
    assert_has(world->sites[0].json,
               "\"shares\":[\"weights\"],\"spreads\":[\"rows\"]");
}

TEST(a_print_says_what_is_shared)
{
    struct story story = {.elastic = true};
    struct job_world world = {.self = &story};
    world_play(&world, 1, shown_body);
}

/* ---- loading alone ----------------------------------------------------- */

static const char *const only_rows[] = {"rows", NULL};
static const char *const no_such[] = {"nothing", NULL};

static int act_load(struct site *site)
{
    if (!has_part(site))
        return LS_OK;
    assert_int_equal(ls_job_load(site->job, 2, no_such), LS_ENOENT);
    assert_error_has("no node has saved a blob nothing");
    const int status = ls_job_load(site->job, 2, only_rows);
    const ls_blobs *blobs = ls_job_blobs(site->job);
    if (status != LS_OK)
        return status;
    const struct ls_blob *rows = ls_blobs_find(blobs, "rows");
    assert_int_equal(ls_blobs_n(blobs), 1); /* and init has not run */
    assert_int_equal(rows->form.shape[0], 8);
    assert_int_equal(((const int64_t *)rows->memory)[15], 71);
    return LS_OK;
}

static void load_body(struct job_world *world)
{
    struct story *story = world->self;
    setup(world);
    live(world, "id:1,2", -1, 4);
    world->act = act_load;
    story->where = "id:3";
    if (life(world) != LS_OK)
        fail_msg("%s", world->sites[2].text);
    story->where = "id:2"; /* it was there, with all of its blobs */
    if (life(world) != LS_OK)
        fail_msg("%s", world->sites[1].text);
}

TEST(some_blobs_are_loaded_alone)
{
    struct story story = {.elastic = true};
    struct job_world world = {.self = &story};
    world_play(&world, 1, load_body);
}

/* ---- what is refused --------------------------------------------------- */

static int try_on(struct job_world *world, const char *where, int64_t at)
{
    struct story *story = world->self;
    story->where = where;
    story->at = at;
    return life(world);
}

static void rigid_body(struct job_world *world)
{
    setup(world);
    live(world, "id:1,2", -1, 4);
    assert_int_equal(try_on(world, "id:1,2,3", 2), LS_EMISMATCH);
    for (size_t i = 0; i < SITES; i++)
        assert_has(world->sites[i].text, "epoch 2 is of 2 nodes");
    assert_int_equal(try_on(world, "id:1", 2), LS_EMISMATCH);
    assert_has(world->sites[0].text, "`elastic`");
}

TEST(other_nodes_are_refused_unless_the_job_is_elastic)
{
    struct story story = {.elastic = false};
    struct job_world world = {.self = &story};
    world_play(&world, 1, rigid_body);
}

static void memory_body(struct job_world *world)
{
    struct story *story = world->self;
    setup(world);
    live(world, "id:1,2", -1, 4);
    story->own_memory = true;
    /* The others have no part, and may be gone before all have met. */
    (void)try_on(world, "id:3", 2);
    assert_int_equal(world->sites[2].status, LS_EMISMATCH);
    assert_has(world->sites[2].text, "blob rows is i64[5,2], and not i64[8,2]");
}

TEST(memory_of_the_program_must_have_room_for_the_part)
{
    struct story story = {.elastic = true};
    struct job_world world = {.self = &story};
    world_play(&world, 1, memory_body);
}

static void apart_body(struct job_world *world)
{
    setup(world);
    live(world, "id:1,2", -1, 4);
    assert_int_equal(try_on(world, "id:1,2,3", 2), LS_ENOENT);
    assert_has(world->sites[2].text, "all need the same folder: ");
    assert_has(world->sites[2].text, ".000002");
}

TEST(nodes_with_folders_of_their_own_cannot_divide_anew)
{
    struct story story = {.elastic = true};
    struct job_world world = {.self = &story, .own_folders = true};
    world_play(&world, 1, apart_body);
}

static int begin_odd(void *self, ls_turn *turn)
{
    static const struct ls_blob_form forms[] = {{LS_BLOB_I64, 2, {4, 2}},
                                                {LS_BLOB_I64, 2, {4, 3}}};
    const struct site *site = self;
    void *memory;
    return ls_turn_blob(turn, "rows", &forms[site->id - 1], &memory);
}

static int describe_odd(struct site *site)
{
    const char *where = story_of(site)->where;
    int status = ls_job_share(site->job, "rows", LS_JOB_SPREAD);
    if (status == LS_OK)
        status = ls_job_add(site->job, LS_JOB_INIT,
                            &(struct ls_job_task){.name = "begin",
                                                  .where = where,
                                                  .fn = begin_odd,
                                                  .self = site});
    if (status == LS_OK)
        status = ls_job_add(
            site->job, LS_JOB_EPOCH,
            &(struct ls_job_task){
                .name = "step", .where = where, .fn = step, .self = site});
    return status == LS_OK ? ls_job_limit_epochs(site->job, 4) : status;
}

static void odd_body(struct job_world *world)
{
    setup(world);
    world->describe = describe_odd;
    live(world, "id:1,2", -1, 4);
    assert_int_equal(try_on(world, "id:1", 2), LS_EMISMATCH);
    assert_has(world->sites[0].text,
               "blob rows is spread, and i64[4,3] of node-2 does not go with");
}

TEST(parts_that_do_not_fit_together_are_named)
{
    struct story story = {.elastic = true};
    struct job_world world = {.self = &story};
    world_play(&world, 1, odd_body);
}
