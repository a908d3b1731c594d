/* The manifest of a checkpoint, and what goes when there are too many.
 *
 * A manifest is removed before the entries that it names, and its name is off
 * the disk before they are: so no manifest comes back to name what is gone. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_inside.h"

static int check_commits(const ls_checkpoints *checkpoints)
{
    return checkpoints->options.commits
               ? LS_OK
               : ls_error(LS_ESTATE, "%s was not opened to commit",
                          checkpoints->folder);
}

/* Removing --------------------------------------------------------------- */

static int drop_entry(const ls_checkpoints *checkpoints, const char *node,
                      int64_t epoch)
{
    char name[LS_VAULT_NAME_MAX + 1];
    checkpoint_name(name, node, epoch);
    const int status = ls_vault_drop(checkpoints->vault, name);
    return status == LS_ENOENT ? LS_OK : status;
}

/* manifest: as it was read; one that could not be has no entries. What lies
 * elsewhere is for its node. */
static int drop_one(const ls_checkpoints *checkpoints, int64_t epoch,
                    const struct ls_checkpoint_manifest *manifest)
{
    char path[CHECKPOINT_TEXT];
    int status = drop_entry(checkpoints, MANIFEST, epoch);
    if (status == LS_OK)
        status = ls_file_sync_name(
            checkpoint_path(checkpoints, MANIFEST, epoch, path));
    for (size_t i = 0; i < manifest->n_entries && status == LS_OK; i++)
        status = drop_entry(checkpoints, manifest->entries[i].node, epoch);
    return status;
}

static int drop_epoch(ls_checkpoints *checkpoints, int64_t epoch)
{
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    int status = ls_checkpoints_manifest(checkpoints, epoch, &manifest);
    if (status == LS_OK || status == LS_EPROTO)
        status = drop_one(checkpoints, epoch, &manifest);
    ls_checkpoint_manifest_clear(&manifest);
    return status;
}

/* Which is the newest after some have gone. */
static int look_again(ls_checkpoints *checkpoints)
{
    int64_t *epochs;
    size_t n;
    const int status = checkpoint_list(checkpoints, MANIFEST, &epochs, &n);
    if (status == LS_OK)
        checkpoints->newest = n > 0 ? epochs[n - 1] : LS_CHECKPOINT_NONE;
    free(epochs);
    return status;
}

int ls_checkpoints_drop(ls_checkpoints *checkpoints, int64_t epoch)
{
    int status = check_commits(checkpoints);
    if (status == LS_OK)
        status = drop_epoch(checkpoints, epoch);
    return status == LS_OK ? look_again(checkpoints) : status;
}

int ls_checkpoints_rewind(ls_checkpoints *checkpoints, int64_t epoch)
{
    const char *const kinds[] = {MANIFEST, checkpoints->node};
    const bool has[] = {checkpoints->options.commits,
                        checkpoints->options.node != NULL};
    int status = ls_checkpoints_wait(checkpoints, LS_WAIT_DEFAULT, NULL, NULL);
    if (status == LS_ETIMEDOUT)
        return status;
    status = LS_OK;
    for (size_t kind = 0; kind < 2 && status == LS_OK; kind++) {
        int64_t *epochs = NULL;
        size_t n = 0;
        if (has[kind])
            status = checkpoint_list(checkpoints, kinds[kind], &epochs, &n);
        while (n > 0 && epochs[n - 1] > epoch && status == LS_OK) {
            n--;
            status = kind == 0
                         ? drop_epoch(checkpoints, epochs[n])
                         : drop_entry(checkpoints, kinds[kind], epochs[n]);
        }
        free(epochs);
    }
    /* Who commits may remove them later than this node looks. */
    if (status == LS_OK && checkpoints->newest > epoch)
        checkpoints->newest = epoch;
    return status;
}

static bool is_among(const int64_t *epochs, size_t n, int64_t epoch)
{
    for (size_t i = 0; i < n; i++) {
        if (epochs[i] == epoch)
            return true;
    }
    return false;
}

int ls_checkpoints_keep(ls_checkpoints *checkpoints, const int64_t *epochs,
                        size_t n)
{
    int64_t *own, newest = LS_CHECKPOINT_NONE;
    size_t n_own;
    for (size_t i = 0; i < n; i++)
        newest = epochs[i] > newest ? epochs[i] : newest;
    int status = checkpoint_list(checkpoints, checkpoints->node, &own, &n_own);
    for (size_t i = 0; i < n_own && own[i] < newest && status == LS_OK; i++) {
        if (!is_among(epochs, n, own[i]))
            status = drop_entry(checkpoints, checkpoints->node, own[i]);
    }
    free(own);
    return status;
}

/* Retention -------------------------------------------------------------- */

struct candidate {
    struct ls_checkpoint_manifest manifest;
    double value; /* of the metric, the larger the better; NaN: it has none */
    bool kept;
};

/* Ascending epochs: of equals the last one. */
static void keep_best(struct candidate *all, size_t n, size_t best)
{
    bool *taken = calloc(n + 1, sizeof *taken);
    for (; taken != NULL && best > 0; best--) {
        size_t at = n;
        for (size_t i = 0; i < n; i++) {
            if (!taken[i] && !isnan(all[i].value) &&
                (at == n || all[i].value >= all[at].value))
                at = i;
        }
        if (at == n)
            break;
        taken[at] = all[at].kept = true;
    }
    for (size_t i = 0; taken == NULL && i < n; i++)
        all[i].kept = true; /* without memory, none is removed */
    free(taken);
}

static void choose(struct candidate *all, size_t n,
                   const struct ls_checkpoint_retention *retention)
{
    const size_t last = retention->last > 0 ? retention->last : 1;
    for (size_t i = 0; i < n; i++)
        all[i].kept =
            n - i <= last || (retention->every > 0 &&
                              all[i].manifest.epoch % retention->every == 0);
    keep_best(all, n, retention->best);
}

/* Damaged ones are neither counted nor removed: they are for people. */
static int remove_others(ls_checkpoints *checkpoints, const int64_t *epochs,
                         size_t n_epochs)
{
    const struct ls_checkpoint_retention *retention =
        &checkpoints->options.retention;
    struct ls_failure failure = {.status = LS_OK};
    struct candidate *all = calloc(n_epochs + 1, sizeof *all);
    if (all == NULL)
        return ls_error(LS_ENOMEM, "looking at %zu checkpoints", n_epochs);
    size_t n = 0;
    for (size_t i = 0; i < n_epochs; i++) {
        if (ls_checkpoints_manifest(checkpoints, epochs[i], &all[n].manifest) !=
            LS_OK)
            continue;
        all[n].value = checkpoint_value(&all[n].manifest, retention->metric,
                                        retention->least);
        n++;
    }
    choose(all, n, retention);
    for (size_t i = 0; i < n; i++) {
        const int status = all[i].kept
                               ? LS_OK
                               : drop_one(checkpoints, all[i].manifest.epoch,
                                          &all[i].manifest);
        if (status != LS_OK && failure.status == LS_OK)
            ls_failure_keep(&failure, status);
        ls_checkpoint_manifest_clear(&all[i].manifest);
    }
    free(all);
    return ls_failure_return(&failure);
}

int ls_checkpoints_retain(ls_checkpoints *checkpoints)
{
    const struct ls_checkpoint_retention *retention =
        &checkpoints->options.retention;
    int64_t *epochs = NULL;
    size_t n = 0;
    int status = check_commits(checkpoints);
    if (status != LS_OK ||
        (retention->last == 0 && retention->every == 0 && retention->best == 0))
        return status;
    status = checkpoint_list(checkpoints, MANIFEST, &epochs, &n);
    if (status == LS_OK)
        status = remove_others(checkpoints, epochs, n);
    free(epochs);
    if (status != LS_OK || checkpoints->options.node == NULL)
        return status;
    /* Entries whose checkpoint was never committed. */
    status = checkpoint_list(checkpoints, MANIFEST, &epochs, &n);
    if (status == LS_OK)
        status = ls_checkpoints_keep(checkpoints, epochs, n);
    free(epochs);
    return status;
}

/* Committing ------------------------------------------------------------- */

static int check_entries(const ls_checkpoints *checkpoints,
                         const struct ls_checkpoint_manifest *manifest)
{
    int status = LS_OK;
    for (size_t i = 0; i < manifest->n_entries && status == LS_OK; i++) {
        ls_vault_reader *reader = NULL;
        status = checkpoint_open_entry(checkpoints, manifest->epoch,
                                       &manifest->entries[i], &reader);
        if (status == LS_ENOENT)
            status = LS_OK;
        ls_vault_reader_destroy(&reader);
    }
    return status;
}

/* It must be readable, too. */
static int encode(const struct ls_checkpoint_manifest *manifest,
                  ls_writer *writer, const void **data, size_t *size)
{
    struct ls_checkpoint_manifest again = {.n_entries = 0};
    ls_record_write(&ls_checkpoint_manifest_record, manifest, writer);
    int status = ls_writer_bytes(writer, data, size);
    if (status == LS_OK)
        status = ls_record_decode(&ls_checkpoint_manifest_record, &again, *data,
                                  *size, NULL);
    ls_checkpoint_manifest_clear(&again);
    return status == LS_EPROTO ? LS_EINVAL : status;
}

static int put(ls_checkpoints *checkpoints,
               const struct ls_checkpoint_manifest *manifest)
{
    char name[LS_VAULT_NAME_MAX + 1];
    ls_writer *writer;
    const void *data;
    size_t size;
    checkpoint_name(name, MANIFEST, manifest->epoch);
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    status = encode(manifest, writer, &data, &size);
    if (status == LS_OK)
        status = ls_vault_put(checkpoints->vault, name, data, size, true);
    ls_writer_destroy(&writer);
    return status;
}

int ls_checkpoints_commit(ls_checkpoints *checkpoints,
                          const struct ls_checkpoint_manifest *manifest)
{
    struct ls_checkpoint_manifest timed = *manifest;
    timed.time_ns = ls_wall_now(ls_runtime_current());
    int status = check_commits(checkpoints);
    if (status == LS_OK)
        status = checkpoint_check_later(checkpoints, manifest->epoch);
    if (status == LS_OK)
        status = check_entries(checkpoints, &timed);
    if (status == LS_OK)
        status = put(checkpoints, &timed);
    if (status != LS_OK)
        return status;
    checkpoints->newest = manifest->epoch;
    /* What cannot be removed stays until a later commit. */
    (void)ls_checkpoints_retain(checkpoints);
    return LS_OK;
}

/* What is known later ---------------------------------------------------- */

/* changed: false: it says so already. */
static int set_metric(struct ls_checkpoint_manifest *manifest,
                      const struct ls_checkpoint_metric *metric, bool *changed)
{
    const size_t n = manifest->n_metrics;
    size_t at = 0;
    while (at < n && strcmp(manifest->metrics[at].name, metric->name) != 0)
        at++;
    *changed = at == n || manifest->metrics[at].value != metric->value;
    if (at == LS_CHECKPOINT_VALUES_MAX)
        return ls_error(LS_ELIMIT, "epoch %" PRId64 " has %zu metrics already",
                        manifest->epoch, n);
    if (at == n) {
        struct ls_checkpoint_metric *more =
            realloc(manifest->metrics, (n + 1) * sizeof *more);
        if (more == NULL)
            return ls_error(LS_ENOMEM, "%zu metrics", n + 1);
        manifest->metrics = more;
        manifest->n_metrics++;
    }
    manifest->metrics[at] = *metric;
    return LS_OK;
}

int ls_checkpoints_set_metric(ls_checkpoints *checkpoints, int64_t epoch,
                              const struct ls_checkpoint_metric *metric)
{
    struct ls_checkpoint_manifest manifest = {.n_entries = 0};
    bool changed = false;
    int status = check_commits(checkpoints);
    if (status == LS_OK &&
        (metric->name[0] == '\0' ||
         memchr(metric->name, '\0', sizeof metric->name) == NULL))
        status = ls_error(LS_EINVAL, "a metric's name has 1 to %d bytes",
                          LS_CHECKPOINT_TEXT_MAX - 1);
    if (status == LS_OK)
        status = ls_checkpoints_manifest(checkpoints, epoch, &manifest);
    if (status == LS_OK)
        status = set_metric(&manifest, metric, &changed);
    if (status == LS_OK && changed)
        status = put(checkpoints, &manifest);
    ls_checkpoint_manifest_clear(&manifest);
    return status;
}
