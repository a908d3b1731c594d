/* Saves two checkpoints in the folder strange, as a program would that has gone
 * wrong, or has been sent by somebody else: numbers that are none, integers
 * that are neighbours beyond 2^53, and names that steer a terminal. */
#include <math.h>
#include <stdio.h>

#include <lockstep/lockstep.h>

struct numbers {
    float floats[3];
    double one;
    int64_t far;
};

static int add_all(ls_blobs *blobs, struct numbers *numbers)
{
    const struct ls_blob all[] = {
        {.name = "floats",
         .form = {LS_BLOB_F32, 1, {3}},
         .memory = numbers->floats},
        {.name = "one", .form = {.type = LS_BLOB_F64}, .memory = &numbers->one},
        {.name = "far", .form = {.type = LS_BLOB_I64}, .memory = &numbers->far},
    };
    int status = LS_OK;
    for (size_t i = 0; i < 3 && status == LS_OK; i++)
        status = ls_blobs_add(blobs, &all[i]);
    return status;
}

static int save(ls_checkpoints *checkpoints, int64_t epoch,
                const ls_blobs *blobs)
{
    struct ls_checkpoint_entry entry;
    struct ls_checkpoint_metric metric = {"a\nb\033[31m", 1.0};
    char text[] = "\033]0;mine\a and \302\233 more";
    struct ls_checkpoint_note note = {"why", text};
    const struct ls_checkpoint_manifest manifest = {.epoch = epoch,
                                                    .run = "run\rname",
                                                    .entries = &entry,
                                                    .n_entries = 1,
                                                    .metrics = &metric,
                                                    .n_metrics = 1,
                                                    .notes = &note,
                                                    .n_notes = 1};
    const int status = ls_checkpoints_write(checkpoints, epoch, blobs, &entry);
    return status == LS_OK ? ls_checkpoints_commit(checkpoints, &manifest)
                           : status;
}

int main(void)
{
    const struct ls_checkpoints_options options = {
        .folder = "strange", .node = "node", .commits = true};
    struct numbers numbers = {{1, 2, 3}, 1.0, INT64_C(1) << 62};
    ls_checkpoints *checkpoints = NULL;
    ls_blobs *blobs = NULL;
    int status = ls_checkpoints_open(&checkpoints, &options);
    if (status == LS_OK)
        status = ls_blobs_create(&blobs);
    if (status == LS_OK)
        status = add_all(blobs, &numbers);
    if (status == LS_OK)
        status = save(checkpoints, 1, blobs);
    numbers = (struct numbers){{NAN, 4, 3}, NAN, (INT64_C(1) << 62) + 1};
    if (status == LS_OK)
        status = save(checkpoints, 2, blobs);
    if (status != LS_OK)
        fprintf(stderr, "strange: %s\n", ls_error_text());
    ls_blobs_destroy(&blobs);
    (void)ls_checkpoints_close(&checkpoints);
    return ls_status_exit_code(status);
}
