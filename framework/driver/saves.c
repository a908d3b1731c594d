/* Checkpoints of all ranks: each writes its own entry, rank 0 also what is
 * shared; then it commits. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_inside.h"
#include "lockstep/log.h"

#define SHARED   "shared"
#define MODEL    "model"
#define OF_MODEL "model." /* what blobs of parameters begin with */
#define RANKS    "ranks"  /* a note of the manifest */

/* Of its entry. */
static void name_rank(char out[LS_CHECKPOINT_NODE_MAX + 1], size_t rank)
{
    (void)snprintf(out, LS_CHECKPOINT_NODE_MAX + 1, "rank.%zu", rank);
}

/* ---- opening ------------------------------------------------------------- */

static int open_as(ls_checkpoints **out, const char *folder, const char *node,
                   bool commits,
                   const struct ls_checkpoint_retention *retention)
{
    return ls_checkpoints_open(
        out,
        &(struct ls_checkpoints_options){
            .folder = folder,
            .node = node,
            .commits = commits,
            .retention = retention != NULL
                             ? *retention
                             : (struct ls_checkpoint_retention){.last = 1}});
}

void driver_close_checkpoints(ls_driver *driver)
{
    (void)ls_checkpoints_close(&driver->saves.own);
    (void)ls_checkpoints_close(&driver->saves.shared);
    driver->saves.rewinds = false; /* it was of that folder */
}

int ls_driver_open_checkpoints(ls_driver *driver, const char *folder,
                               const struct ls_checkpoint_retention *retention)
{
    struct driver_saves *const saves = &driver->saves;
    char node[LS_CHECKPOINT_NODE_MAX + 1];
    int status = driver_need_all(driver);
    if (status == LS_OK && saves->own != NULL)
        status = ls_error(LS_ESTATE, "driver: checkpoints are open");
    if (status != LS_OK)
        return status;
    name_rank(node, driver->rank);
    if (driver->rank == 0)
        status = open_as(&saves->shared, folder, SHARED, true, retention);
    if (status == LS_OK)
        status = open_as(&saves->own, folder, node, false, NULL);
    status = driver_agree(driver, status);
    if (status != LS_OK)
        driver_close_checkpoints(driver);
    return status;
}

static int need_open(const ls_driver *driver)
{
    return driver->saves.own != NULL
               ? driver_need_all(driver)
               : ls_error(LS_ESTATE, "driver: no checkpoints are open: call "
                                     "ls_driver_open_checkpoints()");
}

/* ---- saving -------------------------------------------------------------- */

/* Before anybody writes: rank 0 removes manifests with the entries that they
 * name, whosever they are. */
static int rewind_all(ls_driver *driver)
{
    struct driver_saves *const saves = &driver->saves;
    int status = LS_OK;
    if (!saves->rewinds)
        return LS_OK;
    if (saves->shared != NULL)
        status = ls_checkpoints_rewind(saves->shared, saves->rewind_to);
    if (status == LS_OK)
        status = ls_checkpoints_rewind(saves->own, saves->rewind_to);
    status = driver_agree(driver, status);
    saves->rewinds = status != LS_OK;
    return status;
}

static int write_entries(ls_driver *driver, int64_t number,
                         struct ls_checkpoint_entry *shared,
                         struct ls_checkpoint_entry *own)
{
    struct driver_saves *const saves = &driver->saves;
    int status = LS_OK;
    if (saves->shared != NULL)
        status =
            ls_checkpoints_write(saves->shared, number, driver->blobs, shared);
    if (status == LS_OK)
        status =
            ls_checkpoints_write(saves->own, number, driver->rank_blobs, own);
    return status;
}

static int read_entry(struct ls_checkpoint_entry *out,
                      const ls_document *document, size_t rank)
{
    char name[LS_CHECKPOINT_NODE_MAX + 1];
    name_rank(name, rank);
    const int status =
        ls_checkpoint_entry_read(out, ls_document_root(document), name);
    return status == LS_OK ? LS_OK
                           : ls_error_at(status, "driver: rank %zu", rank);
}

/* The entries of all ranks, to rank 0. */
static int gather_entries(ls_driver *driver,
                          const struct ls_checkpoint_entry *own,
                          struct ls_checkpoint_entry *all)
{
    ls_document **documents = calloc(driver->size, sizeof documents[0]);
    ls_writer *writer = NULL;
    size_t n = 0;
    int status = documents != NULL
                     ? ls_writer_create(&writer)
                     : ls_error(LS_ENOMEM, "driver: no memory for entries");
    if (status == LS_OK) {
        ls_record_write(&ls_checkpoint_entry_record, own, writer);
        status = ls_driver_all_gather_object(driver, writer, documents, &n);
    }
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = read_entry(&all[i], documents[i], i);
    for (size_t i = 0; i < n; i++)
        ls_document_destroy(&documents[i]);
    ls_writer_destroy(&writer);
    free(documents);
    return status;
}

static int commit(ls_driver *driver, int64_t number, bool stopped,
                  struct ls_checkpoint_entry *entries, size_t n)
{
    char ranks[16];
    struct ls_checkpoint_note note = {.name = RANKS, .text = ranks};
    const struct ls_checkpoint_manifest manifest = {.epoch = number,
                                                    .stopped = stopped,
                                                    .entries = entries,
                                                    .n_entries = n,
                                                    .notes = &note,
                                                    .n_notes = 1};
    (void)snprintf(ranks, sizeof ranks, "%u", driver->size);
    return ls_checkpoints_commit(driver->saves.shared, &manifest);
}

/* After a commit: what it removed goes on the disks of other hosts, too. What
 * cannot be removed stays until a later one. */
static int keep_alike(ls_driver *driver)
{
    struct ls_group_parts parts = {.n = 0};
    int64_t *numbers = NULL;
    size_t n = 0;
    if (driver->size == 1)
        return LS_OK;
    if (driver->rank == 0 &&
        ls_checkpoints_list(driver->saves.shared, &numbers, &n) != LS_OK)
        n = 0; /* of which nobody removes anything */
    struct ls_group_operation broadcast = {
        .kind = LS_GROUP_BROADCAST,
        .name = "kept",
        .count = n * sizeof numbers[0],
        .in = numbers,
        .parts = &parts,
        .timeout_ms = driver->run->options->timeout_ms};
    const int status = ls_group_do(driver->group, &broadcast);
    if (status == LS_OK && driver->rank != 0)
        (void)ls_checkpoints_keep(driver->saves.own, parts.items[0].data,
                                  parts.items[0].size / sizeof numbers[0]);
    ls_group_parts_free(&parts);
    free(numbers);
    return status;
}

int ls_driver_save(ls_driver *driver, int64_t number, bool stopped)
{
    struct ls_checkpoint_entry own;
    int status = need_open(driver);
    if (status == LS_OK)
        status = rewind_all(driver);
    if (status != LS_OK)
        return status;
    struct ls_checkpoint_entry *entries =
        calloc((size_t)driver->size + 1, sizeof entries[0]);
    status = entries != NULL
                 ? write_entries(driver, number, &entries[0], &own)
                 : ls_error(LS_ENOMEM, "driver: no memory for entries");
    status = driver_agree(driver, status);
    assert(status != LS_OK || entries != NULL);
    if (status == LS_OK)
        status = gather_entries(driver, &own, entries + 1);
    int committed = LS_OK;
    if (status == LS_OK && driver->rank == 0)
        committed =
            commit(driver, number, stopped, entries, (size_t)driver->size + 1);
    if (status == LS_OK)
        status = driver_agree(driver, committed);
    free(entries);
    return status == LS_OK ? keep_alike(driver) : status;
}

/* ---- what is shared, from rank 0 to all ---------------------------------- */

/* So that all ranks speak of the same blob: the end of a long name. */
static const char *name_of(const struct ls_blob *blob)
{
    const size_t n = strlen(blob->name);
    return n <= LS_GROUP_NAME_MAX ? blob->name
                                  : blob->name + n - LS_GROUP_NAME_MAX;
}

static int send_blob(ls_driver *driver, const struct ls_blob *blob)
{
    struct ls_group_parts parts = {.n = 0};
    void *data = NULL;
    size_t size = 0;
    int packed = LS_OK;
    if (driver->rank == 0)
        packed = ls_blob_pack(blob, &data, &size);
    struct ls_group_operation broadcast = {
        .kind = LS_GROUP_BROADCAST,
        .name = name_of(blob),
        .count = size,
        .in = data,
        .parts = &parts,
        .timeout_ms = driver->run->options->timeout_ms};
    /* A blob that could not be packed is sent empty, and agreed on after. */
    int status = ls_group_do(driver->group, &broadcast);
    free(data);
    if (status == LS_OK && driver->rank != 0)
        packed = ls_blob_unpack(blob, parts.items[0].data, parts.items[0].size);
    ls_group_parts_free(&parts);
    return status == LS_OK ? driver_agree(driver, packed) : status;
}

static int send_blobs(ls_driver *driver, const char *prefix)
{
    int status = LS_OK;
    for (size_t i = 0; i < ls_blobs_n(driver->blobs) && status == LS_OK; i++) {
        const struct ls_blob *const blob = ls_blobs_at(driver->blobs, i);
        if (driver->size > 1 && !blob->is_private &&
            strncmp(blob->name, prefix, strlen(prefix)) == 0)
            status = send_blob(driver, blob);
    }
    /* One that has more blobs sends the next: that is to fail here, in all. */
    return status == LS_OK ? driver_agree(driver, LS_OK) : status;
}

/* ---- loading ------------------------------------------------------------- */

static bool has_ranks(const struct ls_checkpoint_manifest *manifest,
                      uint32_t ranks)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", ranks);
    for (size_t i = 0; i < manifest->n_notes; i++) {
        if (strcmp(manifest->notes[i].name, RANKS) == 0)
            return strcmp(manifest->notes[i].text, text) == 0;
    }
    return false;
}

/* A manifest, as rank 0 has it, in all ranks. */
static int send_manifest(ls_driver *driver,
                         struct ls_checkpoint_manifest *manifest)
{
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        if (driver->rank == 0)
            ls_record_write(&ls_checkpoint_manifest_record, manifest, writer);
        status = ls_driver_broadcast_object(driver, writer, 0, &document);
    }
    if (status == LS_OK && driver->rank != 0)
        status = ls_record_read(&ls_checkpoint_manifest_record, manifest,
                                ls_document_root(document));
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
    return status;
}

static int count(ls_checkpoints *checkpoints, size_t *n)
{
    int64_t *numbers = NULL;
    const int status = ls_checkpoints_list(checkpoints, &numbers, n);
    free(numbers);
    return status;
}

/* None is whole in all ranks: fine if there is none. */
static int refuse_damaged(ls_checkpoints *checkpoints)
{
    size_t n = 0;
    const int status = count(checkpoints, &n);
    return status != LS_OK || n == 0
               ? status
               : ls_error(LS_EPROTO,
                          "driver: all %zu checkpoints are damaged: remove "
                          "them to begin anew",
                          n);
}

int driver_is_empty(ls_driver *driver, bool *out)
{
    size_t n = 0;
    int64_t total;
    int status = LS_OK;
    if (driver->rank == 0)
        status = count(driver->saves.shared, &n);
    status = driver_agree(driver, status);
    total = (int64_t)n;
    if (status == LS_OK)
        status = ls_group_broadcast(driver->group, &total, sizeof total, 0,
                                    driver->run->timeout_ms);
    if (status == LS_OK)
        *out = total == 0;
    return status;
}

/* Whoever goes on from an earlier one is to know it. */
static void passed_over(void *self, int64_t number, const char *why)
{
    (void)self;
    ls_log_warn("driver: checkpoint %" PRId64 " is passed over: %s", number,
                why);
}

/* Rank 0's choice; LS_CHECKPOINT_NONE in `number`: there is none. */
static int choose(ls_driver *driver, int64_t before, int64_t *number,
                  struct ls_checkpoint_manifest *manifest)
{
    struct driver_saves *const saves = &driver->saves;
    int64_t chosen = *number;
    int status = LS_OK;
    if (driver->rank == 0 && chosen == LS_CHECKPOINT_NONE)
        status = ls_checkpoints_newest(saves->shared, before, true, passed_over,
                                       NULL, &chosen);
    if (status == LS_ENOENT)
        status = refuse_damaged(saves->shared);
    if (status == LS_OK && driver->rank == 0 && chosen != LS_CHECKPOINT_NONE)
        status = ls_checkpoints_manifest(saves->shared, chosen, manifest);
    status = driver_agree(driver, status);
    if (status == LS_OK)
        status = ls_group_broadcast(driver->group, &chosen, sizeof chosen, 0,
                                    driver->run->timeout_ms);
    if (status == LS_OK && chosen != LS_CHECKPOINT_NONE)
        status = send_manifest(driver, manifest);
    if (status == LS_OK)
        *number = chosen;
    return status;
}

static int find_own(const ls_driver *driver,
                    const struct ls_checkpoint_manifest *manifest,
                    const struct ls_checkpoint_entry **out)
{
    char node[LS_CHECKPOINT_NODE_MAX + 1];
    name_rank(node, driver->rank);
    *out = ls_checkpoint_manifest_entry(manifest, node);
    return *out != NULL ? LS_OK
                        : ls_error(LS_EMISMATCH,
                                   "checkpoint %" PRId64 " has no entry \"%s\"",
                                   manifest->epoch, node);
}

/* What was loaded of one that is passed over would stay, if the one before is
 * of another number of ranks. */
static int check_own(const ls_driver *driver,
                     const struct ls_checkpoint_manifest *manifest)
{
    const struct ls_checkpoint_entry *entry;
    const int status = find_own(driver, manifest, &entry);
    return status == LS_OK
               ? ls_checkpoints_has(driver->saves.own, manifest->epoch, entry)
               : status;
}

/* This rank's entry, if there are as many ranks; rank 0 also what is shared. */
static int load_entries(ls_driver *driver,
                        const struct ls_checkpoint_manifest *manifest,
                        bool is_same_ranks)
{
    struct driver_saves *const saves = &driver->saves;
    const struct ls_checkpoint_entry *entry;
    int status = LS_OK;
    if (driver->rank == 0) {
        entry = ls_checkpoint_manifest_entry(manifest, SHARED);
        status = entry != NULL
                     ? ls_checkpoints_load(saves->shared, manifest->epoch,
                                           entry, driver->blobs, NULL)
                     : ls_error(LS_EMISMATCH,
                                "checkpoint %" PRId64 " has no entry \"" SHARED
                                "\": it is not one of a driver",
                                manifest->epoch);
    }
    if (status != LS_OK || !is_same_ranks)
        return status;
    status = find_own(driver, manifest, &entry);
    return status == LS_OK
               ? ls_checkpoints_load(saves->own, manifest->epoch, entry,
                                     driver->rank_blobs, NULL)
               : status;
}

static int load_chosen(ls_driver *driver,
                       const struct ls_checkpoint_manifest *manifest,
                       struct ls_driver_loaded *out)
{
    const bool is_same = has_ranks(manifest, driver->size);
    int status = LS_OK;
    if (is_same)
        status = driver_agree(driver, check_own(driver, manifest));
    if (status == LS_OK)
        status = driver_agree(driver, load_entries(driver, manifest, is_same));
    if (status == LS_OK)
        status = send_blobs(driver, "");
    if (status == LS_OK)
        *out = (struct ls_driver_loaded){.number = manifest->epoch,
                                         .stopped = manifest->stopped,
                                         .is_same_ranks = is_same};
    return status;
}

/* What is damaged in any rank, or not there, may be whole one save earlier. */
static bool is_damage(int status)
{
    const int cause = status == LS_EABORTED ? ls_error_cause() : status;
    return cause == LS_EPROTO || cause == LS_ENOENT;
}

int ls_driver_load(ls_driver *driver, int64_t number,
                   struct ls_driver_loaded *out)
{
    int64_t before = LS_CHECKPOINT_NONE;
    bool is_over = false;
    int status = need_open(driver);
    if (status == LS_OK) /* what an earlier load was to remove stays */
        driver->saves.rewinds = false;
    while (status == LS_OK && !is_over) {
        struct ls_checkpoint_manifest manifest = {.epoch = 0};
        int64_t chosen = number;
        status = choose(driver, before, &chosen, &manifest);
        is_over = true;
        if (status == LS_OK && chosen == LS_CHECKPOINT_NONE) {
            *out = (struct ls_driver_loaded){.number = LS_CHECKPOINT_NONE,
                                             .is_same_ranks = true};
        } else if (status == LS_OK) {
            status = load_chosen(driver, &manifest, out);
            is_over = number != LS_CHECKPOINT_NONE || !is_damage(status);
            before = chosen;
            if (status == LS_OK) {
                driver->saves.rewinds = true;
                driver->saves.rewind_to = chosen;
            }
        }
        ls_checkpoint_manifest_clear(&manifest);
        if (!is_over) {
            if (driver->rank == 0)
                passed_over(NULL, chosen, ls_error_text());
            status = LS_OK;
        }
    }
    return status;
}

/* ---- the model alone --------------------------------------------------- */

/* The blobs of the parameters, and what a model has beside them under such a
 * name, as a registry of their own. */
static int list_weights(ls_driver *driver, ls_blobs **out)
{
    int status = ls_blobs_create(out);
    for (size_t i = 0; i < ls_blobs_n(driver->blobs) && status == LS_OK; i++) {
        const struct ls_blob *const blob = ls_blobs_at(driver->blobs, i);
        if (!blob->is_private &&
            strncmp(blob->name, OF_MODEL, strlen(OF_MODEL)) == 0)
            status = ls_blobs_add(*out, blob);
    }
    return status;
}

static int newest_of(ls_checkpoints *checkpoints,
                     struct ls_checkpoint_manifest *manifest)
{
    int64_t newest;
    const int status = ls_checkpoints_newest(checkpoints, LS_CHECKPOINT_NONE,
                                             true, NULL, NULL, &newest);
    return status == LS_OK
               ? ls_checkpoints_manifest(checkpoints, newest, manifest)
               : status;
}

/* The save replaces what is there: that must not be something else. */
static int check_is_model(ls_checkpoints *checkpoints, const char *folder,
                          int64_t number)
{
    struct ls_checkpoint_manifest manifest = {.epoch = 0};
    int status = ls_checkpoints_manifest(checkpoints, number, &manifest);
    if (status == LS_EPROTO) /* nobody can load it, and it stays */
        return LS_OK;
    if (status == LS_OK &&
        ls_checkpoint_manifest_entry(&manifest, MODEL) == NULL)
        status = ls_error(LS_EMISMATCH,
                          "%s has checkpoints of a run: save the model in a "
                          "folder of its own",
                          folder);
    ls_checkpoint_manifest_clear(&manifest);
    return status;
}

static int next_number(ls_checkpoints *checkpoints, const char *folder,
                       int64_t *number)
{
    int64_t *numbers = NULL;
    size_t n = 0;
    int status = ls_checkpoints_list(checkpoints, &numbers, &n);
    *number = n > 0 ? numbers[n - 1] + 1 : 0;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = check_is_model(checkpoints, folder, numbers[i]);
    free(numbers);
    return status;
}

static int write_model(ls_checkpoints *checkpoints, const char *folder,
                       const ls_blobs *weights)
{
    struct ls_checkpoint_entry entry;
    int64_t number;
    int status = next_number(checkpoints, folder, &number);
    if (status == LS_OK)
        status = ls_checkpoints_write(checkpoints, number, weights, &entry);
    if (status == LS_OK)
        status = ls_checkpoints_commit(
            checkpoints, &(struct ls_checkpoint_manifest){.epoch = number,
                                                          .entries = &entry,
                                                          .n_entries = 1});
    return status;
}

/* Weights that were saved alone, or in a checkpoint with all the rest. */
static int read_model(ls_checkpoints *checkpoints, const char *folder,
                      const ls_blobs *weights)
{
    struct ls_checkpoint_manifest manifest = {.epoch = 0};
    const size_t n = ls_blobs_n(weights);
    const char **names = calloc(n + 1, sizeof names[0]);
    int status = names != NULL ? newest_of(checkpoints, &manifest)
                               : ls_error(LS_ENOMEM,
                                          "driver: no memory for %zu names", n);
    if (status != LS_OK) {
        free(names);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        names[i] = ls_blobs_at(weights, i)->name;
    const struct ls_checkpoint_entry *entry =
        ls_checkpoint_manifest_entry(&manifest, MODEL);
    if (entry == NULL)
        entry = ls_checkpoint_manifest_entry(&manifest, SHARED);
    status = entry != NULL ? ls_checkpoints_load(checkpoints, manifest.epoch,
                                                 entry, weights, names)
                           : ls_error(LS_EMISMATCH,
                                      "%s has no weights of a driver", folder);
    ls_checkpoint_manifest_clear(&manifest);
    free(names);
    return status;
}

/* In rank 0; then all know how it went. */
static int with_model(ls_driver *driver, const char *folder, bool writes,
                      int (*what)(ls_checkpoints *, const char *,
                                  const ls_blobs *))
{
    ls_checkpoints *checkpoints = NULL;
    ls_blobs *weights = NULL;
    int status = driver_need_all(driver);
    if (status == LS_OK && !driver->is_ready)
        status = ls_error(LS_ESTATE, "driver: there is no model");
    if (status != LS_OK)
        return status;
    if (driver->rank == 0) {
        status = list_weights(driver, &weights);
        if (status == LS_OK)
            status = open_as(&checkpoints, folder, writes ? MODEL : NULL,
                             writes, NULL);
        if (status == LS_OK)
            status = what(checkpoints, folder, weights);
        (void)ls_checkpoints_close(&checkpoints);
        ls_blobs_destroy(&weights);
    }
    return driver_agree(driver, status);
}

int ls_driver_save_model(ls_driver *driver, const char *folder)
{
    return with_model(driver, folder, true, write_model);
}

int ls_driver_load_model(ls_driver *driver, const char *folder)
{
    const int status = with_model(driver, folder, false, read_model);
    return status == LS_OK ? send_blobs(driver, OF_MODEL) : status;
}
