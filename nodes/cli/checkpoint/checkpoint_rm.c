/* `lockstep checkpoint rm`: remove checkpoints, by epoch or by a rule of what
 * to keep. Only a manifest and the entries that it names are removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_folder.h"
#include "json.h"

#define NODE_LOCK ".lock@"

/* What there was before. */
struct before {
    int64_t epoch;
    uint64_t bytes; /* 0: its manifest is damaged */
};

/* A node that writes there has its lock; so has who commits, whose lock this
 * command takes itself. */
static int check_node(void *self, const char *name)
{
    const struct checkpoint_folder *folder = self;
    ls_checkpoints *as_node = NULL;
    if (strncmp(name, NODE_LOCK, sizeof NODE_LOCK - 1) != 0)
        return LS_OK;
    const int status = ls_checkpoints_open(
        &as_node,
        &(struct ls_checkpoints_options){.folder = folder->path,
                                         .node = name + sizeof NODE_LOCK - 1});
    (void)ls_checkpoints_close(&as_node);
    return status == LS_EINVAL ? LS_OK : status; /* not one of ours */
}

static int list_before(const struct checkpoint_folder *folder,
                       struct before **out)
{
    *out = calloc(folder->n + 1, sizeof **out);
    if (*out == NULL)
        return ls_error(LS_ENOMEM, "%zu checkpoints", folder->n);
    for (size_t i = 0; i < folder->n; i++) {
        struct ls_checkpoint_manifest manifest = {.n_entries = 0};
        (*out)[i].epoch = folder->epochs[i];
        if (ls_checkpoints_manifest(folder->checkpoints, folder->epochs[i],
                                    &manifest) == LS_OK)
            (*out)[i].bytes = checkpoint_bytes(&manifest);
        ls_checkpoint_manifest_clear(&manifest);
    }
    return LS_OK;
}

/* All are looked for before the first is removed. */
static int remove_named(const struct checkpoint_folder *folder)
{
    const struct options *options = folder->options;
    int64_t epoch;
    int status = LS_OK;
    for (size_t i = 0; i < options->checkpoint.n_epochs && status == LS_OK; i++)
        status = checkpoint_folder_epoch(folder, i, &epoch);
    for (size_t i = 0; i < options->checkpoint.n_epochs && status == LS_OK;
         i++) {
        status = ls_checkpoints_drop(folder->checkpoints,
                                     options->checkpoint.epochs[i]);
        if (status == LS_ENOENT) /* it was named twice */
            status = LS_OK;
    }
    return status;
}

static int print_one(const struct checkpoint_folder *folder,
                     const struct before *gone)
{
    char size[CHECKPOINT_CELL];
    ls_writer *writer = NULL;
    if (!folder->options->json) {
        printf("removed epoch %" PRId64 "  %s\n", gone->epoch,
               checkpoint_bytes_text(gone->bytes, size));
        return LS_OK;
    }
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    ls_write_map(writer, 3);
    json_string(writer, "event", "removed");
    json_int(writer, "epoch", gone->epoch);
    json_int(writer, "bytes", (int64_t)gone->bytes);
    status = json_print_line(writer);
    ls_writer_destroy(&writer);
    return status;
}

/* What is not there any more; also after an error. */
static int print_gone(const struct checkpoint_folder *folder,
                      const struct before *before)
{
    int64_t *left = NULL;
    size_t n = 0, at = 0, n_gone = 0;
    int status = ls_checkpoints_list(folder->checkpoints, &left, &n);
    for (size_t i = 0; i < folder->n && status == LS_OK; i++) {
        while (at < n && left[at] < before[i].epoch)
            at++;
        if (at < n && left[at] == before[i].epoch)
            continue;
        n_gone++;
        status = print_one(folder, &before[i]);
    }
    if (status == LS_OK && n_gone == 0 && !folder->options->json)
        printf("nothing to remove of %zu\n", n);
    free(left);
    return status;
}

static int remove_all(const struct checkpoint_folder *folder)
{
    struct ls_failure failure;
    struct before *before = NULL;
    int status = ls_folder_each(folder->path, check_node, (void *)folder);
    if (status == LS_OK)
        status = list_before(folder, &before);
    if (status != LS_OK)
        return status;
    status = folder->options->checkpoint.n_epochs > 0
                 ? remove_named(folder)
                 : ls_checkpoints_retain(folder->checkpoints);
    ls_failure_keep(&failure, status);
    status = print_gone(folder, before);
    free(before);
    return failure.status != LS_OK ? ls_failure_return(&failure) : status;
}

int checkpoint_rm(const struct options *options)
{
    struct checkpoint_folder folder;
    const char *metric = options->checkpoint.metric;
    const struct ls_checkpoint_retention retention = {
        .last = options->checkpoint.keep_last,
        .every = (int64_t)options->checkpoint.keep_every,
        .best = options->checkpoint.keep_best,
        .metric = options->checkpoint.keep_best == 0 ? NULL
                  : metric != NULL                   ? metric
                                                     : "return",
        .least = options->checkpoint.least};
    int status = checkpoint_folder_open(&folder, options, &retention);
    if (status == LS_OK)
        status = remove_all(&folder);
    checkpoint_folder_close(&folder);
    return status;
}
