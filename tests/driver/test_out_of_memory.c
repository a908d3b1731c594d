/* Ranks whose memory runs out, at each place where they take some: a run that
 * fails says so in all of them, no rank waits for one that has failed, and what
 * was saved is whole. */
#define FOLDER_IN "/dev/shm" /* it syncs often */

#include "allocations.h"
#include "line.h"
#include "lockstep/trainer.h"
#include "state/folder_fixture.h"

/* Nobody may wait for as long as this. */
#define NEVER_MS 600000

EACH_TEST(folder_set_up, folder_tear_down)

/* What all runs of one folder have come to. */
struct story {
    const char *folder;
    int64_t number; /* to save next */
    int64_t own[2]; /* a blob of each rank */
    int64_t saved;  /* the last that rank 0 was told is */
    int64_t loaded; /* by this run */
};

static int load(struct story *story, ls_driver *driver)
{
    const uint32_t rank = ls_driver_rank(driver);
    struct ls_driver_loaded loaded;
    TRY(ls_driver_open_checkpoints(driver, story->folder, NULL));
    TRY(ls_driver_load(driver, LS_CHECKPOINT_NONE, &loaded));
    if (loaded.number != LS_CHECKPOINT_NONE)
        assert_int_equal(story->own[rank], 10 * loaded.number + rank);
    if (rank == 0)
        story->loaded = loaded.number;
    return LS_OK;
}

static int train(void *self, ls_driver *driver)
{
    struct story *story = self;
    const uint32_t rank = ls_driver_rank(driver);
    bool any = false;
    TRY(line_setup(driver, &line_ops));
    TRY(ls_blobs_add(ls_driver_rank_blobs(driver),
                     &(struct ls_blob){.name = "own",
                                       .form = {.type = LS_BLOB_I64},
                                       .memory = &story->own[rank]}));
    TRY(load(story, driver));
    TRY(ls_driver_any(driver, rank == 1, &any));
    assert_true(any);
    story->own[rank] = 10 * story->number + rank;
    TRY(ls_driver_save(driver, story->number, false));
    if (rank == 0)
        story->saved = story->number;
    return ls_driver_barrier(driver);
}

static int run(struct story *story)
{
    const struct ls_driver_options options = {
        .kind = LS_DRIVER_THREADS, .n_threads = 2, .timeout_ms = NEVER_MS};
    story->loaded = LS_CHECKPOINT_NONE;
    story->number++;
    return ls_driver_run(&options, train, story);
}

TEST(no_rank_waits_for_one_that_has_no_memory)
{
    const struct place *place = *state;
    struct story story = {.folder = place->folder};
    for (long n = 0; allocations_fail_at(n); n++) {
        const int status = run(&story);
        if (status != LS_OK && !allocation_failed())
            fail_msg("%s", ls_error_text());
    }
    const int64_t saved = story.saved;
    assert_ok(run(&story));
    assert_in_range(story.loaded, saved, story.number - 1);
}

static int train_all(void *self, ls_driver *driver)
{
    const struct place *place = self;
    char folder[300], metrics[300], model[300];
    (void)snprintf(folder, sizeof folder, "%s/saves", place->folder);
    (void)snprintf(metrics, sizeof metrics, "%s/figures", place->folder);
    (void)snprintf(model, sizeof model, "%s/model", place->folder);
    TRY(line_setup(driver, &line_ops));
    TRY(ls_trainer_run(driver,
                       &(struct ls_trainer_options){.data = &line_data,
                                                    .evaluation = &line_data,
                                                    .epochs = 1,
                                                    .batch_size = 20,
                                                    .folder = folder,
                                                    .metrics = metrics},
                       NULL));
    TRY(ls_driver_save_model(driver, model));
    return ls_driver_load_model(driver, model);
}

TEST(a_training_without_memory_ends_in_all_ranks)
{
    struct place *place = *state;
    const struct ls_driver_options options = {
        .kind = LS_DRIVER_THREADS, .n_threads = 2, .timeout_ms = NEVER_MS};
    for (long n = 0; allocations_fail_at(n); n++) {
        char command[320];
        (void)snprintf(command, sizeof command, "rm -rf %s/saves %s/model",
                       place->folder, place->folder);
        const int status = ls_driver_run(&options, train_all, place);
        if (status != LS_OK && !allocation_failed())
            fail_msg("%s", ls_error_text());
        assert_int_equal(system(command), 0);
    }
}
