#include "checkpoint_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lockstep/runtime.h"

#include "output.h"
#include "plan.h"
#include "run_folder.h"

/* ---- which folder -------------------------------------------------------- */

/* A run's, of which they are one folder; or theirs itself. */
static int find_path(struct checkpoint_folder *folder, const char *path)
{
    char latest[LS_PATH_MAX];
    struct run_folder_look run;
    int status = ls_file_path(latest, sizeof latest, path, PLAN_LATEST);
    if (status != LS_OK)
        return status;
    if (!ls_file_exists(latest))
        (void)snprintf(latest, sizeof latest, "%s", path);
    if (!ls_file_exists(path))
        return ls_error(LS_ENOENT,
                        "%s: there is no such folder; name a run's, such as "
                        "out/cartpole/latest, or one of checkpoints",
                        path);
    const bool is_run = run_folder_look(&run, path) == LS_OK;
    status = ls_file_path(folder->path, sizeof folder->path, latest,
                          RUN_FOLDER_STATE);
    if (status != LS_OK || (is_run && ls_file_exists(folder->path)))
        return status;
    if (is_run)
        return ls_error(LS_ENOENT,
                        "%s: the run has saved no checkpoint: one in step "
                        "does so before its first iteration, one with a "
                        "coordinator has a journal instead",
                        path);
    (void)snprintf(folder->path, sizeof folder->path, "%s", path);
    return LS_OK; /* it is shorter than what was tried above */
}

/* Of the folder whose path is in it. */
static int open_there(struct checkpoint_folder *out,
                      const struct ls_checkpoint_retention *retention)
{
    struct ls_checkpoints_options opens = {.folder = out->path,
                                           .commits = retention != NULL};
    if (retention != NULL)
        opens.retention = *retention;
    const int status = ls_checkpoints_open(&out->checkpoints, &opens);
    return status == LS_OK
               ? ls_checkpoints_list(out->checkpoints, &out->epochs, &out->n)
               : status;
}

int checkpoint_folder_open(struct checkpoint_folder *out,
                           const struct options *options,
                           const struct ls_checkpoint_retention *retention)
{
    *out = (struct checkpoint_folder){.options = options};
    const int status = find_path(out, options->checkpoint.path);
    return status == LS_OK ? open_there(out, retention) : status;
}

int checkpoint_folder_of_run(struct checkpoint_folder *out, const char *run)
{
    *out = (struct checkpoint_folder){.options = NULL};
    const int status =
        ls_file_path(out->path, sizeof out->path, run, RUN_FOLDER_STATE);
    return status == LS_OK ? open_there(out, NULL) : status;
}

void checkpoint_folder_close(struct checkpoint_folder *folder)
{
    free(folder->epochs);
    (void)ls_checkpoints_close(&folder->checkpoints); /* nothing is written */
}

/* ---- which epoch --------------------------------------------------------- */

#define LIST_TEXT 512

/* The last eight, as in "…, 3, 4, 5". Returns text. */
static const char *list_epochs(const struct checkpoint_folder *folder,
                               char text[LIST_TEXT])
{
    const size_t from = folder->n > 8 ? folder->n - 8 : 0;
    size_t used =
        (size_t)snprintf(text, LIST_TEXT, "%s", from > 0 ? "…, " : "");
    for (size_t i = from; i < folder->n; i++)
        used += (size_t)snprintf(text + used, LIST_TEXT - used, "%s%" PRId64,
                                 i > from ? ", " : "", folder->epochs[i]);
    return text;
}

/* What can be ranked by instead: the metrics of the newest that has any, as in
 * "; by another metric: --metric loss". "": none has, or it cannot be said.
 * Returns text. */
static const char *list_metrics(const struct checkpoint_folder *folder,
                                char text[LIST_TEXT])
{
    size_t used = 0;
    char said[CHECKPOINT_SAID];
    text[0] = '\0';
    for (size_t at = folder->options != NULL ? folder->n : 0;
         used == 0 && at-- > 0;) {
        struct ls_checkpoint_manifest manifest = {.n_entries = 0};
        if (ls_checkpoints_manifest(folder->checkpoints, folder->epochs[at],
                                    &manifest) != LS_OK)
            continue;
        for (size_t i = 0; i < manifest.n_metrics && used < LIST_TEXT; i++)
            used += (size_t)snprintf(
                text + used, LIST_TEXT - used, "%s%s",
                i == 0 ? "; by another metric: --metric " : " or ",
                checkpoint_said(manifest.metrics[i].name, said));
        ls_checkpoint_manifest_clear(&manifest);
    }
    return text;
}

static int no_epoch(const struct checkpoint_folder *folder, int64_t epoch)
{
    char list[LIST_TEXT];
    return folder->n == 0
               ? ls_error(LS_ENOENT, "%s has no checkpoint", folder->path)
               : ls_error(LS_ENOENT,
                          "%s has no checkpoint of epoch %" PRId64
                          "; there are %s",
                          folder->path, epoch, list_epochs(folder, list));
}

static int no_best(const struct checkpoint_folder *folder, const char *metric,
                   size_t n_damaged)
{
    char list[LIST_TEXT], metrics[LIST_TEXT];
    if (folder->n == 0)
        return no_epoch(folder, LS_CHECKPOINT_NONE);
    if (n_damaged > 0)
        return ls_error(LS_EPROTO,
                        "%s: all checkpoints with the metric %s are damaged",
                        folder->path, metric);
    return ls_error(
        LS_ENOENT,
        "%s: there is no best checkpoint: none %shas the metric "
        "%s; there are epochs %s%s",
        folder->path,
        strcmp(metric, PLAN_METRIC) == 0 ? "was evaluated, so none " : "",
        metric, list_epochs(folder, list), list_metrics(folder, metrics));
}

static int find_best(const struct checkpoint_folder *folder, const char *metric,
                     bool least, int64_t *epoch)
{
    int64_t *epochs = NULL;
    size_t n = 0, elsewhere;
    int status =
        ls_checkpoints_ranked(folder->checkpoints, metric, least, &epochs, &n);
    bool found = false;
    for (size_t i = 0; i < n && status == LS_OK && !found; i++) {
        status =
            ls_checkpoints_verify(folder->checkpoints, epochs[i], &elsewhere);
        found = status == LS_OK;
        if (found)
            *epoch = epochs[i];
        if (status != LS_EPROTO && status != LS_ENOENT)
            continue;
        output_print(stderr, "lockstep: epoch %" PRId64 " is passed over: %s\n",
                     epochs[i], ls_error_text());
        status = LS_OK;
    }
    free(epochs);
    return found || status != LS_OK ? status : no_best(folder, metric, n);
}

int checkpoint_folder_find(const struct checkpoint_folder *folder,
                           int64_t asked, const char *metric, bool least,
                           int64_t *epoch)
{
    if (asked == PLAN_FROM_BEST)
        return find_best(folder, metric != NULL ? metric : PLAN_METRIC, least,
                         epoch);
    for (size_t at = folder->n; at-- > 0;) {
        if (folder->epochs[at] != asked)
            continue;
        *epoch = asked;
        return LS_OK;
    }
    return no_epoch(folder, asked);
}

int checkpoint_folder_epoch(const struct checkpoint_folder *folder, size_t i,
                            int64_t *epoch)
{
    const struct options *options = folder->options;
    if (i < options->checkpoint.n_epochs)
        return checkpoint_folder_find(folder, options->checkpoint.epochs[i],
                                      options->checkpoint.metric,
                                      options->checkpoint.least, epoch);
    if (folder->n == 0)
        return no_epoch(folder, LS_CHECKPOINT_NONE);
    *epoch = folder->epochs[folder->n - 1];
    return LS_OK;
}

int checkpoint_folder_manifest(const struct checkpoint_folder *folder, size_t i,
                               struct ls_checkpoint_manifest *out)
{
    int64_t epoch = LS_CHECKPOINT_NONE;
    const int status = checkpoint_folder_epoch(folder, i, &epoch);
    return status == LS_OK
               ? ls_checkpoints_manifest(folder->checkpoints, epoch, out)
               : status;
}

/* ---- whether it is whole ------------------------------------------------- */

/* Returns LS_OK if the status is one of a damage, which is noted. */
static int note_damage(struct checkpoint_health *health,
                       void (*damaged)(const char *text), int status)
{
    if (status != LS_EPROTO && status != LS_EIO)
        return status;
    if (health->n_damaged++ == 0)
        (void)snprintf(health->why, sizeof health->why, "%s", ls_error_text());
    health->n_unreadable += status == LS_EIO;
    if (damaged != NULL)
        damaged(ls_error_text());
    return LS_OK;
}

int checkpoint_folder_verify(const struct checkpoint_folder *folder,
                             int64_t epoch, void (*damaged)(const char *text),
                             struct checkpoint_health *out)
{
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    *out = (struct checkpoint_health){.n_damaged = 0};
    int status = ls_checkpoints_manifest(folder->checkpoints, epoch, &manifest);
    status = note_damage(out, damaged, status);
    for (size_t i = 0; i < manifest.n_entries && status == LS_OK; i++) {
        status = ls_checkpoints_has(folder->checkpoints, epoch,
                                    &manifest.entries[i]);
        out->n_elsewhere += status == LS_ENOENT;
        status =
            status == LS_ENOENT ? LS_OK : note_damage(out, damaged, status);
    }
    ls_checkpoint_manifest_clear(&manifest);
    return status;
}

const char *checkpoint_health_text(const struct checkpoint_health *health,
                                   size_t n_entries, char text[64])
{
    if (health->n_damaged > 0)
        return health->n_damaged == health->n_unreadable ? "unreadable"
                                                         : "damaged";
    if (health->n_elsewhere == 0)
        return "whole";
    (void)snprintf(text, 64, "%zu of %zu here", n_entries - health->n_elsewhere,
                   n_entries);
    return text;
}

/* ---- what is in it ------------------------------------------------------- */

int checkpoint_folder_load(const struct checkpoint_folder *folder,
                           int64_t epoch,
                           const struct ls_checkpoint_entry *entry,
                           const struct ls_checkpoint_blob *blob, void **data)
{
    const char *const names[] = {blob->name, NULL};
    ls_blobs *blobs = NULL;
    uint64_t size = 0;
    int status = ls_blob_form_bytes(&blob->form, &size);
    void *memory = status == LS_OK ? malloc((size_t)size + 1) : NULL;
    if (status == LS_OK && memory == NULL)
        status =
            ls_error(LS_ENOMEM, "%" PRIu64 " bytes of %s", size, blob->name);
    if (status == LS_OK)
        status = ls_blobs_create(&blobs);
    if (status == LS_OK)
        status = ls_blobs_add(blobs, &(struct ls_blob){.name = blob->name,
                                                       .form = blob->form,
                                                       .memory = memory});
    if (status == LS_OK)
        status = ls_checkpoints_load(folder->checkpoints, epoch, entry, blobs,
                                     names);
    ls_blobs_destroy(&blobs);
    if (status == LS_OK)
        *data = memory;
    else
        free(memory);
    return status;
}

uint64_t checkpoint_bytes(const struct ls_checkpoint_manifest *manifest)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < manifest->n_entries; i++)
        bytes += manifest->entries[i].size;
    return bytes;
}

/* ---- how it is shown ----------------------------------------------------- */

const char *checkpoint_bytes_text(uint64_t bytes, char text[CHECKPOINT_CELL])
{
    if (bytes < 1000)
        (void)snprintf(text, CHECKPOINT_CELL, "%" PRIu64 " B", bytes);
    else if (bytes < 1000000)
        (void)snprintf(text, CHECKPOINT_CELL, "%.1f kB", (double)bytes / 1e3);
    else
        (void)snprintf(text, CHECKPOINT_CELL, "%.1f MB", (double)bytes / 1e6);
    return text;
}

const char *checkpoint_time_text(int64_t time_ns, char text[CHECKPOINT_CELL])
{
    const time_t s = (time_t)(time_ns / LS_NS_PER_S);
    struct tm utc;
    if (gmtime_r(&s, &utc) == NULL ||
        strftime(text, CHECKPOINT_CELL, "%Y-%m-%d %H:%M:%S", &utc) == 0)
        (void)snprintf(text, CHECKPOINT_CELL, "?");
    return text;
}

const char *checkpoint_said(const char *said, char text[CHECKPOINT_SAID])
{
    return output_said(said, false, text, CHECKPOINT_SAID);
}
