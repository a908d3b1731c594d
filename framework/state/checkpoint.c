/* Opening a folder of checkpoints, and writing a node's entry.
 *
 * Who writes behind has the blobs' copies to itself, on a thread that lives for
 * one entry: joining it is the only way to its result. */
#include "lockstep/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blob_flow.h"
#include "checkpoint_inside.h"

#define ALIGNED(size)                                                          \
    (((size) + 63) / 64 * 64) /* copies, as memcpy likes it                    \
                               */

const char *checkpoint_path(const ls_checkpoints *checkpoints, const char *node,
                            int64_t epoch, char out[CHECKPOINT_TEXT])
{
    char name[LS_VAULT_NAME_MAX + 1];
    checkpoint_name(name, node, epoch);
    (void)snprintf(out, CHECKPOINT_TEXT, "%s/%s", checkpoints->folder, name);
    return out;
}

/* Opening ---------------------------------------------------------------- */

static int check_options(const struct ls_checkpoints_options *options)
{
    const struct ls_checkpoint_retention *kept = &options->retention;
    if (strlen(options->folder) >= LS_PATH_MAX)
        return ls_error(LS_ELIMIT, "the folder %.80s… has too long a path",
                        options->folder);
    if ((kept->best > 0) != (kept->metric != NULL) ||
        (kept->metric != NULL &&
         strlen(kept->metric) >= LS_CHECKPOINT_TEXT_MAX))
        return ls_error(LS_EINVAL,
                        "the checkpoints in %s: the best are kept "
                        "by a number and a metric's name of up to "
                        "%d bytes, both or neither",
                        options->folder, LS_CHECKPOINT_TEXT_MAX - 1);
    if (kept->every < 0)
        return ls_error(LS_EINVAL,
                        "the checkpoints in %s: every %" PRId64
                        "th is kept, which is not a number",
                        options->folder, kept->every);
    return options->node != NULL ? checkpoint_check_node(options->node) : LS_OK;
}

/* who: the node; "": who commits. */
static int lock(const ls_checkpoints *checkpoints, const char *who,
                ls_file **out)
{
    char path[LS_PATH_MAX + LS_CHECKPOINT_NODE_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/.lock%s%s", checkpoints->folder,
                   who[0] != '\0' ? "@" : "", who);
    int status = ls_file_open(out, path, LS_FILE_WRITE | LS_FILE_CREATE);
    if (status == LS_ENOENT)
        return LS_EIO;
    if (status == LS_OK)
        status = ls_file_lock(*out, false);
    if (status != LS_EAGAIN)
        return status;
    return ls_error(LS_EAGAIN,
                    "%s is in use: another run writes checkpoints there%s%s; "
                    "end it, or give this one another folder",
                    checkpoints->folder, who[0] != '\0' ? " as " : "", who);
}

static int open_folder(ls_checkpoints *checkpoints)
{
    const bool commits = checkpoints->options.commits;
    const bool looks = !commits && checkpoints->options.node == NULL;
    const struct ls_vault_options vault = {.folder = checkpoints->folder,
                                           .found = looks};
    if (looks && !ls_file_exists(checkpoints->folder))
        return ls_error(LS_ENOENT, "there is no folder %s",
                        checkpoints->folder);
    int status = looks ? LS_OK : ls_folder_make(checkpoints->folder);
    if (status == LS_OK && commits)
        status = lock(checkpoints, "", &checkpoints->locks[0]);
    if (status == LS_OK && checkpoints->options.node != NULL)
        status = lock(checkpoints, checkpoints->node, &checkpoints->locks[1]);
    if (status == LS_OK)
        status = ls_vault_open(&checkpoints->vault, &vault);
    int64_t *epochs = NULL;
    size_t n = 0;
    if (status == LS_OK)
        status = checkpoint_list(checkpoints, MANIFEST, &epochs, &n);
    checkpoints->newest = n > 0 ? epochs[n - 1] : LS_CHECKPOINT_NONE;
    free(epochs);
    return status;
}

int ls_checkpoints_open(ls_checkpoints **out,
                        const struct ls_checkpoints_options *options)
{
    *out = NULL;
    int status = check_options(options);
    if (status != LS_OK)
        return status;
    ls_checkpoints *checkpoints = calloc(1, sizeof *checkpoints);
    if (checkpoints == NULL)
        return ls_error(LS_ENOMEM, "opening %s", options->folder);
    checkpoints->options = *options;
    const char *metric = options->retention.metric;
    memcpy(checkpoints->folder, options->folder, strlen(options->folder) + 1);
    checkpoints->options.folder = checkpoints->folder;
    if (options->node != NULL) {
        memcpy(checkpoints->node, options->node, strlen(options->node) + 1);
        checkpoints->options.node = checkpoints->node;
    }
    if (metric != NULL) {
        memcpy(checkpoints->metric, metric, strlen(metric) + 1);
        checkpoints->options.retention.metric = checkpoints->metric;
    }
    status = ls_blobs_create(&checkpoints->behind.blobs);
    if (status == LS_OK)
        status = open_folder(checkpoints);
    if (status == LS_OK) {
        *out = checkpoints;
        return LS_OK;
    }
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    (void)ls_checkpoints_close(&checkpoints);
    return ls_failure_return(&failure);
}

/* Writing ---------------------------------------------------------------- */

static int check_after(const ls_checkpoints *checkpoints, int64_t newest,
                       int64_t epoch)
{
    if (epoch < 0)
        return ls_error(LS_EINVAL, "%" PRId64 " is not an epoch", epoch);
    return epoch > newest
               ? LS_OK
               : ls_error(LS_EEXIST,
                          "%s has a checkpoint of epoch %" PRId64
                          ", and one of %" PRId64
                          " is to be written: resume from one that is there, "
                          "remove the later ones, or take another folder",
                          checkpoints->folder, newest, epoch);
}

int checkpoint_check_later(const ls_checkpoints *checkpoints, int64_t epoch)
{
    return check_after(checkpoints, checkpoints->newest, epoch);
}

int ls_checkpoints_check_later(ls_checkpoints *checkpoints, int64_t epoch)
{
    int64_t *epochs = NULL;
    size_t n = 0;
    const int status = ls_checkpoints_list(checkpoints, &epochs, &n);
    const int64_t newest = n > 0 ? epochs[n - 1] : LS_CHECKPOINT_NONE;
    free(epochs);
    if (status != LS_OK) /* it was there when it was opened */
        return status == LS_ENOENT ? LS_EIO : status;
    return check_after(checkpoints, newest, epoch);
}

/* What is written, by which writer. */
struct saving {
    ls_vault_writer *writer; /* own */
    ls_writer *names;        /* own; the first shard */
    uint64_t size;
};

static int add(void *self, const void *data, size_t size)
{
    struct saving *saving = self;
    saving->size += size;
    return ls_vault_writer_add(saving->writer, data, size);
}

static uint64_t bytes_of(const struct ls_blob_form *form)
{
    uint64_t size = 0;
    return ls_blob_form_bytes(form, &size) == LS_OK ? size : 0;
}

int checkpoint_measure(const ls_blobs *blobs, struct blob_names *out)
{
    *out = (struct blob_names){.blobs = NULL};
    out->blobs = calloc(ls_blobs_n(blobs) + 1, sizeof *out->blobs);
    if (out->blobs == NULL)
        return ls_error(LS_ENOMEM, "no memory for the names of %zu blobs",
                        ls_blobs_n(blobs));
    int status = LS_OK;
    uint64_t all = 0;
    for (size_t i = 0; i < ls_blobs_n(blobs) && status == LS_OK; i++) {
        const struct ls_blob *blob = ls_blobs_at(blobs, i);
        if (blob->is_private)
            continue;
        struct ls_checkpoint_blob *to = &out->blobs[out->n++];
        memcpy(to->name, blob->name, strlen(blob->name) + 1);
        status = blob_measure(blob, &to->form);
        if (status == LS_OK)
            all += bytes_of(&to->form);
        if (all > INT64_MAX)
            status = ls_error(LS_EINVAL, "the blobs have too many bytes "
                                         "together");
    }
    return status;
}

static int save_names(struct saving *saving, const struct blob_names *names)
{
    const void *data;
    size_t size;
    ls_record_write(&blob_names_record, names, saving->names);
    int status = ls_writer_bytes(saving->names, &data, &size);
    if (status == LS_OK)
        status = ls_vault_writer_shard(saving->writer, BLOB_NAMES);
    return status == LS_OK ? add(saving, data, size) : status;
}

static int save_all(struct saving *saving, const ls_blobs *blobs,
                    const struct blob_names *names)
{
    int status = save_names(saving, names);
    for (size_t i = 0; i < names->n && status == LS_OK; i++) {
        const struct ls_checkpoint_blob *to = &names->blobs[i];
        ls_blob_sink sink = {
            .add = add, .self = saving, .left = bytes_of(&to->form)};
        status = ls_vault_writer_shard(saving->writer, to->name);
        if (status == LS_OK)
            status = blob_save(ls_blobs_find(blobs, to->name), &sink);
    }
    return status == LS_OK ? ls_vault_writer_commit(saving->writer) : status;
}

static int write_entry(const ls_checkpoints *checkpoints, int64_t epoch,
                       const ls_blobs *blobs, struct ls_checkpoint_entry *out)
{
    struct saving saving = {.writer = NULL};
    struct blob_names names;
    char name[LS_VAULT_NAME_MAX + 1];
    checkpoint_name(name, checkpoints->node, epoch);
    int status = checkpoint_measure(blobs, &names);
    if (status == LS_OK)
        status =
            ls_vault_writer_create(&saving.writer, checkpoints->vault, name);
    if (status == LS_OK)
        status = ls_writer_create(&saving.names);
    if (status == LS_OK) {
        ls_vault_writer_set_small(saving.writer, SMALL_BLOB);
        status = save_all(&saving, blobs, &names);
    }
    if (status == LS_OK && out != NULL) {
        *out = (struct ls_checkpoint_entry){.size = saving.size};
        memcpy(out->node, checkpoints->node, sizeof out->node);
        out->check = ls_vault_writer_check(saving.writer);
    }
    ls_writer_destroy(&saving.names);
    ls_vault_writer_destroy(&saving.writer);
    free(names.blobs);
    return status;
}

/* The result of the one before, if nobody has taken it: its entry is of no use
 * any more, its error is. */
static int settle(ls_checkpoints *checkpoints, int wait_ms)
{
    const int status = ls_checkpoints_wait(checkpoints, wait_ms, NULL, NULL);
    return status == LS_ENOENT ? LS_OK : status;
}

static int begin(ls_checkpoints *checkpoints, int64_t epoch, int wait_ms)
{
    if (checkpoints->options.node == NULL)
        return ls_error(LS_ESTATE, "%s was opened without a node",
                        checkpoints->folder);
    const int status = settle(checkpoints, wait_ms);
    return status == LS_OK ? checkpoint_check_later(checkpoints, epoch)
                           : status;
}

int ls_checkpoints_write(ls_checkpoints *checkpoints, int64_t epoch,
                         const ls_blobs *blobs, struct ls_checkpoint_entry *out)
{
    const int status = begin(checkpoints, epoch, LS_WAIT_DEFAULT);
    return status == LS_OK ? write_entry(checkpoints, epoch, blobs, out)
                           : status;
}

/* Behind ----------------------------------------------------------------- */

static void write_behind(void *arg)
{
    ls_checkpoints *checkpoints = arg;
    struct behind *behind = &checkpoints->behind;
    const int status =
        write_entry(checkpoints, behind->epoch, behind->blobs, &behind->entry);
    ls_failure_keep(&behind->failure, status);
    if (checkpoints->options.done != NULL)
        checkpoints->options.done(checkpoints->options.self);
}

/* Have room for them. The old copies are of no use. */
static int reserve(struct behind *behind, const struct blob_names *names,
                   bool touch)
{
    uint64_t size = 0;
    for (size_t i = 0; i < names->n; i++)
        size += ALIGNED(bytes_of(&names->blobs[i].form));
    if (size <= behind->room)
        return LS_OK;
    free(behind->buffer);
    behind->room = 0;
    behind->buffer = aligned_alloc(64, (size_t)size);
    if (behind->buffer == NULL)
        return ls_error(LS_ENOMEM,
                        "no memory for a copy of the blobs, %" PRIu64 " bytes",
                        size);
    behind->room = (size_t)size;
    if (touch)
        memset(behind->buffer, 0, (size_t)size);
    return LS_OK;
}

static int copy_all(struct behind *behind, const ls_blobs *blobs,
                    const struct blob_names *names)
{
    unsigned char *at = behind->buffer;
    int status = LS_OK;
    while (ls_blobs_n(behind->blobs) > 0)
        (void)ls_blobs_remove(
            behind->blobs,
            ls_blobs_at(behind->blobs, ls_blobs_n(behind->blobs) - 1)->name);
    for (size_t i = 0; i < names->n && status == LS_OK; i++) {
        const struct ls_checkpoint_blob *one = &names->blobs[i];
        const uint64_t size = bytes_of(&one->form);
        /* No bytes: any address will do, which is not read. */
        const struct ls_blob to = {.name = one->name,
                                   .form = one->form,
                                   .memory =
                                       size > 0 ? (void *)at : (void *)behind};
        ls_blob_sink sink = {.add = blob_copy, .self = &at, .left = size};
        unsigned char *const next = at + ALIGNED(size);
        status = ls_blobs_add(behind->blobs, &to);
        if (status == LS_OK)
            status = blob_save(ls_blobs_find(blobs, one->name), &sink);
        at = next;
    }
    return status;
}

int ls_checkpoints_prepare(ls_checkpoints *checkpoints, const ls_blobs *blobs)
{
    struct blob_names names;
    int status = settle(checkpoints, LS_WAIT_DEFAULT);
    if (status != LS_OK)
        return status;
    status = checkpoint_measure(blobs, &names);
    if (status == LS_OK)
        status = reserve(&checkpoints->behind, &names, true);
    free(names.blobs);
    return status;
}

int ls_checkpoints_write_behind(ls_checkpoints *checkpoints, int64_t epoch,
                                const ls_blobs *blobs, int wait_ms)
{
    struct behind *behind = &checkpoints->behind;
    struct blob_names names;
    int status = begin(checkpoints, epoch, wait_ms);
    if (status != LS_OK)
        return status;
    status = checkpoint_measure(blobs, &names);
    if (status == LS_OK)
        status = reserve(behind, &names, false);
    if (status == LS_OK)
        status = copy_all(behind, blobs, &names);
    free(names.blobs);
    behind->epoch = epoch;
    return status == LS_OK
               ? ls_thread_spawn(ls_runtime_current(), &behind->thread,
                                 "checkpoint", write_behind, checkpoints)
               : status;
}

int ls_checkpoints_wait(ls_checkpoints *checkpoints, int wait_ms,
                        int64_t *epoch, struct ls_checkpoint_entry *out)
{
    struct behind *behind = &checkpoints->behind;
    if (behind->thread == NULL)
        return ls_error(LS_ENOENT, "%s: nothing was written behind",
                        checkpoints->folder);
    int status = ls_thread_join(&behind->thread,
                                ls_deadline(ls_runtime_current(), wait_ms));
    if (status != LS_OK)
        return ls_error(status,
                        "%s: the checkpoint of epoch %" PRId64
                        " is still being written",
                        checkpoints->folder, behind->epoch);
    if (epoch != NULL)
        *epoch = behind->epoch;
    status = ls_failure_return(&behind->failure);
    if (status != LS_OK)
        return ls_error_at(status,
                           "the checkpoint of epoch %" PRId64
                           ", which was written behind",
                           behind->epoch);
    if (out != NULL)
        *out = behind->entry;
    return LS_OK;
}

int ls_checkpoints_close(ls_checkpoints **gone)
{
    ls_checkpoints *checkpoints = gone == NULL ? NULL : *gone;
    if (checkpoints == NULL)
        return LS_OK;
    *gone = NULL;
    struct behind *behind = &checkpoints->behind;
    int status = LS_OK;
    if (behind->thread != NULL) {
        status = ls_thread_join(&behind->thread, LS_FOREVER);
        if (status == LS_OK)
            status = ls_failure_return(&behind->failure);
    }
    ls_blobs_destroy(&behind->blobs);
    free(behind->buffer);
    ls_vault_close(&checkpoints->vault);
    for (size_t i = 0; i < 2; i++)
        (void)ls_file_close(&checkpoints->locks[i]); /* nothing was written */
    free(checkpoints);
    return status;
}
