/* State on a disk when memory runs out, at each place where some is taken: a
 * call that fails has said so and lost nothing, and what a call that succeeds
 * says is true. */
#define FOLDER_IN "/dev/shm" /* it syncs often */

#include "allocations.h"
#include "lockstep/checkpoint.h"
#include "lockstep/file.h"
#include "lockstep/journal.h"
#include "state/folder_fixture.h"

EACH_TEST(folder_set_up, folder_tear_down)

static bool worked(int status)
{
    if (status != LS_OK && (status != LS_ENOMEM || !allocation_failed()))
        fail_msg("%s: %s", ls_status_name(status), ls_error_text());
    return status == LS_OK;
}

/* ---- checkpoints ---- */

struct program {
    int64_t epoch;     /* its state */
    int64_t committed; /* the last that was said to be */
};

/* The newest is the last that was committed; or the one behind it, if it was,
 * and that could not be said. */
static void resume(struct program *program, ls_checkpoints *checkpoints,
                   const ls_blobs *blobs)
{
    struct ls_checkpoint_manifest manifest;
    int64_t newest = -1;
    const int status = ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE,
                                             false, NULL, NULL, &newest);
    if (status == LS_ENOENT) {
        assert_int_equal(program->committed, 0);
        return;
    }
    if (!worked(status))
        return;
    assert_in_range(newest, program->committed, program->committed + 1);
    if (!worked(ls_checkpoints_manifest(checkpoints, newest, &manifest)))
        return;
    if (worked(ls_checkpoints_load(checkpoints, newest, &manifest.entries[0],
                                   blobs, NULL)))
        assert_int_equal(program->epoch, newest);
    ls_checkpoint_manifest_clear(&manifest);
    program->committed = newest;
}

static int commit(ls_checkpoints *checkpoints, int64_t epoch,
                  struct ls_checkpoint_entry *entry)
{
    return ls_checkpoints_commit(
        checkpoints, &(struct ls_checkpoint_manifest){
                         .epoch = epoch, .entries = entry, .n_entries = 1});
}

static void save(struct program *program, ls_checkpoints *checkpoints,
                 const ls_blobs *blobs, bool behind)
{
    struct ls_checkpoint_entry entry;
    int64_t epoch = program->epoch = program->committed + 1;
    int status =
        behind ? ls_checkpoints_write_behind(checkpoints, epoch, blobs, 30000)
               : ls_checkpoints_write(checkpoints, epoch, blobs, &entry);
    if (behind && status == LS_OK)
        status = ls_checkpoints_wait(checkpoints, 30000, &epoch, &entry);
    if (worked(status) && worked(commit(checkpoints, epoch, &entry)))
        program->committed = epoch;
}

static void live(struct program *program, const char *folder, bool behind)
{
    const struct ls_checkpoints_options options = {
        .folder = folder,
        .node = "trainer",
        .commits = true,
        .retention = {.last = 2, .best = 1, .metric = "loss", .least = true}};
    const struct ls_blob epoch = {.name = "epoch",
                                  .form = {.type = LS_BLOB_I64},
                                  .memory = &program->epoch};
    ls_checkpoints *checkpoints = NULL;
    ls_blobs *blobs = NULL;
    if (worked(ls_blobs_create(&blobs)) &&
        worked(ls_blobs_add(blobs, &epoch)) &&
        worked(ls_checkpoints_open(&checkpoints, &options))) {
        resume(program, checkpoints, blobs);
        save(program, checkpoints, blobs, behind);
        if (program->committed > 0)
            (void)worked(ls_checkpoints_set_metric(
                checkpoints, program->committed,
                &(struct ls_checkpoint_metric){.name = "loss", .value = 1}));
    }
    (void)worked(ls_checkpoints_close(&checkpoints));
    ls_blobs_destroy(&blobs);
}

static void live_on(const struct place *place, bool behind)
{
    struct program program = {.epoch = 0};
    for (long n = 0; allocations_fail_at(n); n++)
        live(&program, place->folder, behind);
    const int64_t before = program.committed;
    live(&program, place->folder, behind);
    assert_int_equal(program.committed, before + 1);
}

TEST(the_newest_checkpoint_is_the_last_that_was_committed)
{
    live_on(*state, false);
}

TEST(so_it_is_when_they_are_written_behind)
{
    live_on(*state, true);
}

/* ---- a journal ---- */

static int next_number(void *self, const struct ls_journal_record *record)
{
    int64_t *last = self;
    assert_int_equal(record->size, sizeof *last);
    assert_int_equal(*(const int64_t *)record->data, *last + 1);
    ++*last;
    return LS_OK;
}

static void write_on(const char *path, int64_t *written)
{
    int64_t last = 0;
    ls_journal *journal = NULL;
    const struct ls_journal_options options = {path, next_number, &last};
    if (!worked(ls_journal_open(&journal, &options)))
        return;
    assert_int_equal(last, *written);
    last++;
    if (worked(ls_journal_append(
            journal, &(struct ls_journal_record){&last, sizeof last})))
        *written = last;
    int64_t all[512];
    struct ls_journal_record records[512];
    for (int64_t i = 0; i < *written; i++) {
        all[i] = i + 1;
        records[i] = (struct ls_journal_record){&all[i], sizeof all[i]};
    }
    (void)worked(ls_journal_compact(journal, records, (size_t)*written));
    ls_journal_close(&journal);
}

TEST(a_journal_has_what_was_appended)
{
    const struct place *place = *state;
    int64_t written = 0;
    for (long n = 0; allocations_fail_at(n); n++)
        write_on(place->path, &written);
    write_on(place->path, &written);
    ls_journal_remove(place->path);
}
