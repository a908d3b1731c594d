/* A checkpoint outlives a loss of power and a full disk as a whole, or does not
 * exist; and neither leaves anything behind for good. */
#include <math.h>

#include "state/checkpoint_state.h"
#include "state/power_trial.h"

#define FOLDER "run/checkpoints"
#define LARGE  70000 /* so it has a file */

/* Two nodes in one folder, of which the first commits. */
struct run {
    ls_checkpoints *views[2];
    struct node_state nodes[2];
    unsigned char large[LARGE];
};

static int run_open(struct run *run)
{
    int status = LS_OK;
    for (size_t i = 0; i < 2; i++) {
        run->views[i] = NULL;
        state_make(&run->nodes[i], 0);
    }
    assert_ok(ls_blobs_add(run->nodes[1].blobs,
                           &(struct ls_blob){.name = "large",
                                             .form = {LS_BLOB_U8, 1, {LARGE}},
                                             .memory = run->large}));
    for (size_t i = 0; i < 2 && status == LS_OK; i++)
        status = ls_checkpoints_open(
            &run->views[i],
            &(struct ls_checkpoints_options){.folder = FOLDER,
                                             .node = i == 0 ? "n1" : "n2",
                                             .commits = i == 0,
                                             .retention = {.last = 2}});
    return status;
}

static void run_close(struct run *run)
{
    for (size_t i = 0; i < 2; i++) {
        (void)ls_checkpoints_close(&run->views[i]);
        state_free(&run->nodes[i]);
    }
}

static void run_fill(struct run *run, int64_t number)
{
    state_fill(&run->nodes[0], number);
    state_fill(&run->nodes[1], number + 1000);
    memset(run->large, (int)number, LARGE);
}

static int run_save(struct run *run, int64_t epoch, bool behind)
{
    struct ls_checkpoint_entry entries[2];
    int status = LS_OK;
    run_fill(run, epoch);
    for (size_t i = 0; i < 2 && status == LS_OK; i++) {
        const ls_blobs *blobs = run->nodes[i].blobs;
        if (behind)
            status = ls_checkpoints_write_behind(run->views[i], epoch, blobs,
                                                 LS_WAIT_DEFAULT);
        else
            status =
                ls_checkpoints_write(run->views[i], epoch, blobs, &entries[i]);
    }
    if (behind)
        run_fill(run, 77);
    for (size_t i = 0; i < 2 && behind && status == LS_OK; i++)
        status = ls_checkpoints_wait(run->views[i], LS_WAIT_DEFAULT, NULL,
                                     &entries[i]);
    if (status == LS_OK)
        status = ls_checkpoints_commit(
            run->views[0], &(struct ls_checkpoint_manifest){.epoch = epoch,
                                                            .entries = entries,
                                                            .n_entries = 2});
    int64_t *kept = NULL;
    size_t n = 0;
    if (status == LS_OK)
        status = ls_checkpoints_list(run->views[0], &kept, &n);
    if (status == LS_OK)
        (void)ls_checkpoints_keep(run->views[1], kept, n);
    free(kept);
    return status;
}

/* All nodes have exactly what this epoch was. */
static void run_is(struct run *run, int64_t epoch)
{
    struct ls_checkpoint_manifest manifest;
    run_fill(run, 55);
    assert_ok(ls_checkpoints_manifest(run->views[0], epoch, &manifest));
    for (size_t i = 0; i < 2; i++)
        assert_ok(ls_checkpoints_load(run->views[i], epoch,
                                      &manifest.entries[i], run->nodes[i].blobs,
                                      NULL));
    ls_checkpoint_manifest_clear(&manifest);
    assert_true(state_is(&run->nodes[0], epoch));
    assert_true(state_is(&run->nodes[1], epoch + 1000));
    assert_int_equal(run->large[0], epoch);
    assert_memory_equal(run->large, run->large + 1, LARGE - 1);
}

static int count(void *self, const char *name)
{
    *(unsigned *)self += name[0] != '.';
    return LS_OK;
}

static unsigned n_files(void)
{
    unsigned n = 0;
    assert_ok(ls_folder_each(FOLDER, count, &n));
    return n;
}

/* ---- loss of power ----------------------------------------------------- */

struct story {
    bool behind;
    bool done;
    unsigned old_seen, new_seen;
};

static void begin(struct room *room)
{
    struct run run;
    (void)room;
    assert_ok(run_open(&run));
    assert_ok(run_save(&run, 1, false));
    assert_ok(run_save(&run, 2, false));
    run_close(&run);
}

static void save_third(struct room *room)
{
    struct story *story = room->self;
    struct run run;
    story->done =
        run_open(&run) == LS_OK && run_save(&run, 3, story->behind) == LS_OK;
    run_close(&run);
}

static void resume(struct room *room)
{
    struct story *story = room->self;
    struct run run;
    assert_ok(run_open(&run));
    const int64_t found = newest(run.views[0]);
    assert_true(found == 3 || (found == 2 && !story->done));
    story->old_seen += found == 2;
    story->new_seen += found == 3;
    run_is(&run, found);
    /* It goes on, and what was begun is gone. */
    for (int64_t epoch = found + 1; epoch < found + 3; epoch++)
        assert_ok(run_save(&run, epoch, false));
    run_is(&run, found + 2);
    has_epochs(run.views[0], found == 2 ? "3 4" : "4 5");
    assert_int_equal(n_files(), 2 * (1 + 1 + 2));
    run_close(&run);
}

TEST(a_loss_of_power_leaves_the_newest_whole)
{
    for (int behind = 0; behind < 2; behind++) {
        struct story story = {.behind = behind};
        play_all(&(struct trial){.before = begin,
                                 .during = save_third,
                                 .after = resume,
                                 .self = &story},
                 10);
        assert_true(story.old_seen > 20 && story.new_seen > 5);
    }
}

/* What an epoch was worth is known after it was saved. */
static void judge_second(struct room *room)
{
    struct story *story = room->self;
    struct run run;
    story->done = run_open(&run) == LS_OK &&
                  ls_checkpoints_set_metric(
                      run.views[0], 2,
                      &(struct ls_checkpoint_metric){"return", 7}) == LS_OK;
    run_close(&run);
}

static void look_at_second(struct room *room)
{
    struct story *story = room->self;
    struct ls_checkpoint_manifest manifest;
    struct run run;
    assert_ok(run_open(&run));
    assert_int_equal(newest(run.views[0]), 2);
    run_is(&run, 2);
    assert_ok(ls_checkpoints_manifest(run.views[0], 2, &manifest));
    const bool told = manifest.n_metrics == 1;
    assert_true(told || !story->done);
    assert_true(!told || manifest.metrics[0].value == 7);
    ls_checkpoint_manifest_clear(&manifest);
    story->old_seen += !told;
    story->new_seen += told;
    assert_ok(run_save(&run, 3, false));
    assert_ok(run_save(&run, 4, false));
    has_epochs(run.views[0], "3 4");
    assert_int_equal(n_files(), 2 * (1 + 1 + 2));
    run_close(&run);
}

TEST(a_loss_of_power_leaves_a_metric_or_none)
{
    struct story story = {.done = false};
    play_all(&(struct trial){.before = begin,
                             .during = judge_second,
                             .after = look_at_second,
                             .self = &story},
             10);
    assert_true(story.old_seen > 2 && story.new_seen > 0);
}

/* ---- full disks -------------------------------------------------------- */

static void fill(struct room *room)
{
    struct run run;
    unsigned refused = 0;
    assert_ok(run_open(&run));
    assert_ok(run_save(&run, 1, false));
    assert_ok(run_save(&run, 2, false));
    const unsigned files = n_files();
    for (uint64_t left = 0;; left += 1 + left / 8) {
        ls_disk_fill(room->disk, room_stats(room).bytes + left);
        const int status = run_save(&run, 3, refused % 2 == 1);
        if (status == LS_OK)
            break;
        refused++;
        assert_int_equal(status, LS_EIO);
        assert_error_has("No space");
        assert_int_equal(newest(run.views[0]), 2);
        run_is(&run, 2);
        assert_in_range(n_files(), files, files + 3); /* the other's entry */
        ls_disk_fill(room->disk, UINT64_MAX);
        for (size_t i = 0; i < 2; i++)
            assert_ok(ls_checkpoints_rewind(run.views[i], 2));
        assert_int_equal(n_files(), files);
    }
    assert_true(refused > 20);
    run_is(&run, 3);
    has_epochs(run.views[0], "2 3");
    run_close(&run);
}

static void fill_disk(struct room *room)
{
    room_live(room, "a", fill);
}

TEST(a_full_disk_leaves_the_newest_whole)
{
    (void)room_run(1, fill_disk, NULL);
}

/* ---- syncs ------------------------------------------------------------- */

/* Small blobs cost the entry's own file. */
static void count_syncs(struct room *room)
{
    struct run run;
    assert_ok(run_open(&run));
    const uint64_t before = room_stats(room).syncs;
    assert_ok(ls_checkpoints_write(run.views[0], 1, run.nodes[0].blobs, NULL));
    assert_int_equal(room_stats(room).syncs - before, 2);
    assert_ok(ls_checkpoints_write(run.views[1], 1, run.nodes[1].blobs, NULL));
    assert_int_equal(room_stats(room).syncs - before, 2 + 4);
    run_close(&run);
}

static void live_syncs(struct room *room)
{
    room_live(room, "a", count_syncs);
}

TEST(small_blobs_cost_no_sync)
{
    (void)room_run(1, live_syncs, NULL);
}

/* ---- retention --------------------------------------------------------- */

/* Epochs 0 … 9; a metric that is best at 2, 5 and 7. */
static const double figures[] = {1, 2, 9, NAN, 3, 9, 4, 9, 5, 6};

static void keep(struct room *room)
{
    static const struct {
        struct ls_checkpoint_retention retention;
        const char *kept;
    } table[] = {
        {{.last = 0}, "0 1 2 3 4 5 6 7 8 9"},
        {{.last = 1}, "9"},
        {{.last = 3}, "7 8 9"},
        {{.last = 99}, "0 1 2 3 4 5 6 7 8 9"},
        {{.every = 4}, "0 4 8 9"},
        {{.last = 2, .every = 5}, "0 5 8 9"},
        {{.best = 1, .metric = "return"}, "7 9"}, /* of equals the newer */
        {{.best = 2, .metric = "return"}, "5 7 9"},
        {{.best = 2, .metric = "return", .least = true}, "0 1 9"},
        {{.best = 20, .metric = "return"}, "0 1 2 4 5 6 7 8 9"},
        {{.best = 2, .metric = "none"}, "9"},
        {{.last = 2, .every = 6, .best = 1, .metric = "return"}, "0 6 7 8 9"},
    };
    (void)room;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct node_state node;
        ls_checkpoints *checkpoints = open_checkpoints(
            &(struct ls_checkpoints_options){.folder = FOLDER,
                                             .node = "n1",
                                             .commits = true,
                                             .retention = table[i].retention});
        state_make(&node, 0);
        for (int64_t epoch = 0; epoch < 10; epoch++) {
            struct ls_checkpoint_metric metric = {"return", figures[epoch]};
            struct ls_checkpoint_entry entry;
            assert_ok(
                ls_checkpoints_write(checkpoints, epoch, node.blobs, &entry));
            assert_ok(ls_checkpoints_commit(
                checkpoints,
                &(struct ls_checkpoint_manifest){.epoch = epoch,
                                                 .entries = &entry,
                                                 .n_entries = 1,
                                                 .metrics = &metric,
                                                 .n_metrics = 1}));
        }
        has_epochs(checkpoints, table[i].kept);
        int64_t *own;
        size_t n;
        assert_ok(ls_checkpoints_own(checkpoints, &own, &n));
        free(own);
        assert_int_equal(n_files(), 2 * n);
        assert_int_equal(2 * n, strlen(table[i].kept) + 1);
        assert_int_equal(newest(checkpoints), 9);
        assert_ok(ls_checkpoints_rewind(checkpoints, LS_CHECKPOINT_NONE));
        assert_int_equal(n_files(), 0);
        assert_ok(ls_checkpoints_close(&checkpoints));
        state_free(&node);
    }
}

static void live_keep(struct room *room)
{
    room_live(room, "a", keep);
}

TEST(retention_keeps_what_it_says)
{
    (void)room_run(1, live_keep, NULL);
}
