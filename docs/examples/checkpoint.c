/* A program that goes on where it was: it counts, and saves after each epoch.
 * Run it again with the same folder, kill it anywhere: it resumes. */
#include <inttypes.h>
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <stdlib.h>

/* What the program's state is made of. */
struct mine {
    int64_t epoch;
    float weights[2][3];
};

static int add_blobs(struct mine *mine, ls_blobs *blobs)
{
    const struct ls_blob epoch = {
        .name = "epoch", .form = {.type = LS_BLOB_I64}, .memory = &mine->epoch};
    const struct ls_blob weights = {.name = "weights",
                                    .form = {LS_BLOB_F32, 2, {2, 3}},
                                    .memory = mine->weights};
    const int status = ls_blobs_add(blobs, &epoch);
    return status == LS_OK ? ls_blobs_add(blobs, &weights) : status;
}

static int resume(ls_checkpoints *checkpoints, const ls_blobs *blobs)
{
    struct ls_checkpoint_manifest manifest;
    int64_t epoch;
    int status = ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE, false,
                                       NULL, NULL, &epoch);
    if (status == LS_ENOENT)
        return LS_OK; /* there is none: begin */
    if (status == LS_OK)
        status = ls_checkpoints_manifest(checkpoints, epoch, &manifest);
    if (status != LS_OK)
        return status;
    printf("resumed from epoch %" PRId64 "\n", epoch);
    status = ls_checkpoints_load(checkpoints, epoch, &manifest.entries[0],
                                 blobs, NULL);
    ls_checkpoint_manifest_clear(&manifest);
    return status;
}

static int save(ls_checkpoints *checkpoints, int64_t epoch,
                const ls_blobs *blobs)
{
    struct ls_checkpoint_entry entry;
    const int status = ls_checkpoints_write(checkpoints, epoch, blobs, &entry);
    if (status != LS_OK)
        return status;
    const struct ls_checkpoint_manifest manifest = {
        .epoch = epoch, .entries = &entry, .n_entries = 1};
    return ls_checkpoints_commit(checkpoints, &manifest);
}

static int run(ls_checkpoints *checkpoints, ls_blobs *blobs)
{
    struct mine mine = {.epoch = 0};
    int status = add_blobs(&mine, blobs);
    if (status == LS_OK)
        status = resume(checkpoints, blobs);
    for (int i = 0; i < 3 && status == LS_OK; i++) {
        mine.epoch++;
        mine.weights[1][2] += 0.5f;
        status = save(checkpoints, mine.epoch, blobs);
    }
    printf("epoch %" PRId64 ", weight %g\n", mine.epoch,
           (double)mine.weights[1][2]);
    return status;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "checkpoints";
    const struct ls_checkpoints_options options = {.folder = folder,
                                                   .node = "trainer_1",
                                                   .commits = true,
                                                   .retention = {.last = 2}};
    ls_checkpoints *checkpoints = NULL;
    ls_blobs *blobs = NULL;
    int status = ls_blobs_create(&blobs);
    if (status == LS_OK)
        status = ls_checkpoints_open(&checkpoints, &options);
    if (status == LS_OK)
        status = run(checkpoints, blobs);
    if (status != LS_OK)
        fprintf(stderr, "checkpoint: %s\n", ls_error_text());
    (void)ls_checkpoints_close(&checkpoints);
    ls_blobs_destroy(&blobs);
    return ls_status_exit_code(status);
}
