/* What a node has of a checkpoint that other nodes have saved: its own entry,
 * if there is one, what all share, and its part of what is spread over them.
 * Entries of other nodes are read, so all nodes must have the same folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"

struct entry {
    const struct ls_checkpoint_entry *is;
    struct ls_checkpoint_blob *blobs; /* own: what it holds */
    size_t n;
};

struct reshard {
    ls_job *job;
    int64_t epoch;
    const ls_value *names; /* of an array; empty: all */
    struct entry *entries; /* own */
    size_t n;
};

/* ---- what there is ----------------------------------------------------- */

static int look(struct reshard *reshard,
                const struct ls_checkpoint_entry *entries)
{
    int status = LS_OK;
    for (size_t i = 0; i < reshard->n && status == LS_OK; i++) {
        struct entry *entry = &reshard->entries[i];
        entry->is = &entries[i];
        status =
            ls_checkpoints_blob_names(reshard->job->saves.store, reshard->epoch,
                                      entry->is, &entry->blobs, &entry->n);
    }
    return status == LS_ENOENT
               ? ls_error_at(status, "other nodes have saved it, so all need "
                                     "the same folder")
               : status;
}

static const struct ls_checkpoint_blob *find(const struct entry *entry,
                                             const char *name)
{
    for (size_t i = 0; i < entry->n; i++)
        if (strcmp(entry->blobs[i].name, name) == 0)
            return &entry->blobs[i];
    return NULL;
}

static bool is_wanted(const struct reshard *reshard, const char *name)
{
    const size_t n = ls_value_size(reshard->names);
    const char *wanted;
    for (size_t i = 0; i < n; i++)
        if (ls_value_string(ls_value_at(reshard->names, i), &wanted) == LS_OK &&
            strcmp(wanted, name) == 0)
            return true;
    return n == 0;
}

/* Whoever asks for a blob by name asks for one that was saved. */
static int check_names(const struct reshard *reshard)
{
    for (size_t i = 0; i < ls_value_size(reshard->names); i++) {
        const char *name;
        bool found = false;
        int status = ls_value_string(ls_value_at(reshard->names, i), &name);
        if (status != LS_OK)
            return status;
        for (size_t j = 0; j < reshard->n && !found; j++)
            found = find(&reshard->entries[j], name) != NULL;
        if (!found)
            return ls_error(LS_ENOENT,
                            "epoch %" PRId64 ": no node has saved a blob %s",
                            reshard->epoch, name);
    }
    return LS_OK;
}

/* ---- whole blobs ------------------------------------------------------- */

static int load_one(struct reshard *reshard, const struct entry *entry,
                    const struct ls_checkpoint_blob *blob)
{
    ls_job *job = reshard->job;
    const char *const names[] = {blob->name, NULL};
    void *memory;
    int status = LS_OK;
    if (ls_blobs_find(job->global.blobs, blob->name) == NULL)
        status = workspace_blob(&job->global, NULL, blob->name, &blob->form,
                                &memory);
    return status == LS_OK
               ? ls_checkpoints_load(job->saves.store, reshard->epoch,
                                     entry->is, job->global.blobs, names)
               : status;
}

/* What this node has saved itself. */
static int load_own(struct reshard *reshard)
{
    const ls_job *job = reshard->job;
    const struct entry *own = NULL;
    char name[LS_CHECKPOINT_NODE_MAX + 1];
    int status = LS_OK;
    saves_name(job->id, name);
    for (size_t i = 0; i < reshard->n && own == NULL; i++)
        if (strcmp(reshard->entries[i].is->node, name) == 0)
            own = &reshard->entries[i];
    for (size_t i = 0; own != NULL && i < own->n && status == LS_OK; i++)
        if (is_wanted(reshard, own->blobs[i].name) &&
            !job_list_has(job->shares[LS_JOB_SPREAD], own->blobs[i].name) &&
            !job_list_has(job->shares[LS_JOB_SHARED], own->blobs[i].name))
            status = load_one(reshard, own, &own->blobs[i]);
    return status;
}

static int load_first(struct reshard *reshard, const char *name)
{
    const struct ls_checkpoint_blob *blob = NULL;
    for (size_t i = 0; i < reshard->n; i++)
        if ((blob = find(&reshard->entries[i], name)) != NULL)
            return load_one(reshard, &reshard->entries[i], blob);
    return LS_OK; /* nobody had it yet */
}

/* ---- parts ------------------------------------------------------------- */

/* Rows of one array, over all entries. */
struct rows {
    struct ls_blob_form form; /* of all of them */
    uint64_t bytes;           /* of one */
    uint64_t first, end;      /* of this node */
    unsigned char *memory;
};

static bool fits(const struct ls_blob_form *a, const struct ls_blob_form *b)
{
    return a->type == b->type && a->n_dims == b->n_dims && a->n_dims != 0 &&
           memcmp(&a->shape[1], &b->shape[1],
                  (a->n_dims - 1) * sizeof a->shape[0]) == 0;
}

static int measure(const struct reshard *reshard, const char *name,
                   struct rows *rows)
{
    char here[LS_BLOB_FORM_TEXT_MAX], there[LS_BLOB_FORM_TEXT_MAX];
    bool some = false;
    for (size_t i = 0; i < reshard->n; i++) {
        const struct ls_checkpoint_blob *blob =
            find(&reshard->entries[i], name);
        if (blob == NULL)
            continue;
        if (!some) {
            rows->form = blob->form;
            rows->form.shape[0] = 0;
        }
        if (!fits(&rows->form, &blob->form) ||
            blob->form.shape[0] > INT64_MAX - rows->form.shape[0])
            return ls_error(LS_EMISMATCH,
                            "blob %s is spread, and %s of %s does not go with "
                            "the %s before it",
                            name, ls_blob_form_print(&blob->form, there),
                            reshard->entries[i].is->node,
                            ls_blob_form_print(&rows->form, here));
        rows->form.shape[0] += blob->form.shape[0];
        some = true;
    }
    struct ls_blob_form one = rows->form;
    one.shape[0] = 1;
    return some ? ls_blob_form_bytes(&one, &rows->bytes) : LS_OK;
}

/* This node's part, where it is to be. */
static int place(struct reshard *reshard, const char *name, struct rows *rows)
{
    ls_job *job = reshard->job;
    const uint64_t all = rows->form.shape[0], n = job->n_keepers;
    struct ls_blob_form form = rows->form;
    uint64_t index = 0;
    void *memory;
    while (job->keepers[index] != job->id)
        index++;
    rows->first = all / n * index + (index < all % n ? index : all % n);
    rows->end = rows->first + all / n + (index < all % n ? 1 : 0);
    form.shape[0] = rows->end - rows->first;
    const int status = workspace_reform(&job->global, name, &form, &memory);
    rows->memory = memory;
    return status;
}

/* The rows from `first` on are those of this entry. */
static int copy_part(struct reshard *reshard, const struct entry *entry,
                     const struct ls_checkpoint_blob *blob, uint64_t first,
                     const struct rows *rows)
{
    const char *const names[] = {blob->name, NULL};
    const uint64_t end = first + blob->form.shape[0];
    const uint64_t from = first > rows->first ? first : rows->first;
    const uint64_t to = end < rows->end ? end : rows->end;
    ls_blobs *blobs = NULL;
    uint64_t size;
    if (from >= to)
        return LS_OK;
    int status = ls_blob_form_bytes(&blob->form, &size);
    if (status != LS_OK)
        return status;
    unsigned char *part = malloc((size_t)size + 1);
    if (part == NULL)
        return ls_error(LS_ENOMEM, "blob %s, %" PRIu64 " bytes", blob->name,
                        size);
    status = ls_blobs_create(&blobs);
    if (status == LS_OK)
        status = ls_blobs_add(blobs, &(struct ls_blob){.name = blob->name,
                                                       .form = blob->form,
                                                       .memory = part});
    if (status == LS_OK)
        status = ls_checkpoints_load(reshard->job->saves.store, reshard->epoch,
                                     entry->is, blobs, names);
    if (status == LS_OK)
        memcpy(rows->memory + (from - rows->first) * rows->bytes,
               part + (from - first) * rows->bytes, (to - from) * rows->bytes);
    ls_blobs_destroy(&blobs);
    free(part);
    return status;
}

static int load_part(struct reshard *reshard, const char *name)
{
    struct rows rows = {.bytes = 0};
    uint64_t first = 0;
    int status = measure(reshard, name, &rows);
    if (status != LS_OK || rows.form.n_dims == 0)
        return status; /* nobody had it yet */
    status = place(reshard, name, &rows);
    for (size_t i = 0; i < reshard->n && status == LS_OK; i++) {
        const struct entry *entry = &reshard->entries[i];
        const struct ls_checkpoint_blob *blob = find(entry, name);
        if (blob == NULL)
            continue;
        status = copy_part(reshard, entry, blob, first, &rows);
        first += blob->form.shape[0];
    }
    return status;
}

/* ---- all --------------------------------------------------------------- */

static int load_all(struct reshard *reshard)
{
    const ls_job *job = reshard->job;
    const struct job_task *at;
    int status = load_own(reshard);
    for (at = job->shares[LS_JOB_SHARED]; at != NULL && status == LS_OK;
         at = at->next)
        if (is_wanted(reshard, at->given.name))
            status = load_first(reshard, at->given.name);
    for (at = job->shares[LS_JOB_SPREAD]; at != NULL && status == LS_OK;
         at = at->next)
        if (is_wanted(reshard, at->given.name))
            status = load_part(reshard, at->given.name);
    /* Of a node that was the first once, it may be of then. */
    if (status == LS_OK && job->limit != 0 && job->keepers[0] == job->id &&
        is_wanted(reshard, LIMITER))
        status = load_first(reshard, LIMITER);
    return status;
}

int reshard_load(ls_job *job, int64_t epoch,
                 const struct ls_checkpoint_entry *entries, size_t n,
                 const ls_value *names)
{
    struct reshard reshard = {
        .job = job, .epoch = epoch, .names = names, .n = n};
    if (!job_is_keeper(job))
        return ls_error(LS_ESTATE, "job %s saves no blobs of this node",
                        job->options.name);
    reshard.entries = calloc(n + 1, sizeof *reshard.entries);
    if (reshard.entries == NULL)
        return ls_error(LS_ENOMEM, "%zu entries", n);
    int status = look(&reshard, entries);
    if (status == LS_OK)
        status = check_names(&reshard);
    if (status == LS_OK)
        status = load_all(&reshard);
    for (size_t i = 0; i < n; i++)
        free(reshard.entries[i].blobs);
    free(reshard.entries);
    return status;
}
