/* Finding checkpoints, and reading what is in them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blob_flow.h"
#include "checkpoint_inside.h"
#include "vault_manifest.h"

#define MANIFEST_MAX (1u << 20) /* also of blob_names */

/* Which are there -------------------------------------------------------- */

struct listing {
    const char *node;
    int64_t *epochs;
    size_t n, room;
};

static int note_epoch(void *self, const char *name)
{
    struct listing *listing = self;
    int64_t epoch;
    if (!checkpoint_epoch(name, listing->node, &epoch))
        return LS_OK;
    if (listing->n == listing->room) {
        const size_t room = 2 * listing->room + 16;
        int64_t *grown = realloc(listing->epochs, room * sizeof *grown);
        if (grown == NULL)
            return ls_error(LS_ENOMEM, "no memory for %zu epochs", room);
        listing->epochs = grown;
        listing->room = room;
    }
    listing->epochs[listing->n++] = epoch;
    return LS_OK;
}

static int by_epoch(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int checkpoint_list(const ls_checkpoints *checkpoints, const char *node,
                    int64_t **epochs, size_t *n)
{
    struct listing listing = {.node = node};
    const int status = ls_vault_each(checkpoints->vault, note_epoch, &listing);
    if (status != LS_OK)
        free(listing.epochs);
    *epochs = status == LS_OK ? listing.epochs : NULL;
    *n = status == LS_OK ? listing.n : 0;
    if (*n > 0)
        qsort(*epochs, *n, sizeof **epochs, by_epoch);
    return status;
}

int ls_checkpoints_list(ls_checkpoints *checkpoints, int64_t **epochs,
                        size_t *n)
{
    return checkpoint_list(checkpoints, MANIFEST, epochs, n);
}

int ls_checkpoints_own(ls_checkpoints *checkpoints, int64_t **epochs, size_t *n)
{
    return checkpoint_list(checkpoints, checkpoints->node, epochs, n);
}

int ls_checkpoints_manifest(ls_checkpoints *checkpoints, int64_t epoch,
                            struct ls_checkpoint_manifest *out)
{
    char name[LS_VAULT_NAME_MAX + 1], path[CHECKPOINT_TEXT];
    void *data;
    size_t size;
    checkpoint_name(name, MANIFEST, epoch);
    int status =
        ls_vault_get(checkpoints->vault, name, MANIFEST_MAX, &data, &size);
    if (status != LS_OK)
        return status == LS_ELIMIT ? LS_EPROTO : status;
    (void)checkpoint_path(checkpoints, MANIFEST, epoch, path);
    *out = (struct ls_checkpoint_manifest){0};
    status =
        ls_record_decode(&ls_checkpoint_manifest_record, out, data, size, NULL);
    free(data);
    if (status != LS_OK)
        return ls_error_at(status == LS_ENOMEM ? status : LS_EPROTO, "%s",
                           path);
    if (out->epoch == epoch)
        return LS_OK;
    const int64_t of = out->epoch;
    ls_checkpoint_manifest_clear(out);
    return ls_error(LS_EPROTO, "%s is the manifest of epoch %" PRId64, path,
                    of);
}

/* Entries ---------------------------------------------------------------- */

static uint64_t size_of(const ls_vault_reader *reader)
{
    uint64_t size = 0;
    for (size_t i = 0; i < ls_vault_reader_n(reader); i++)
        size += ls_vault_reader_shard(reader, i)->size;
    return size;
}

int checkpoint_open_entry(const ls_checkpoints *checkpoints, int64_t epoch,
                          const struct ls_checkpoint_entry *expected,
                          ls_vault_reader **out)
{
    char name[LS_VAULT_NAME_MAX + 1], path[CHECKPOINT_TEXT];
    checkpoint_name(name, expected->node, epoch);
    const int status = ls_vault_reader_create(out, checkpoints->vault, name);
    if (status != LS_OK)
        return status;
    const uint64_t size = size_of(*out);
    if (size == expected->size &&
        ls_vault_reader_check(*out) == expected->check)
        return LS_OK;
    ls_vault_reader_destroy(out);
    return ls_error(LS_EPROTO,
                    "%s is not the entry that the manifest names: it has "
                    "%" PRIu64 " bytes, expected %" PRIu64 "%s",
                    checkpoint_path(checkpoints, expected->node, epoch, path),
                    size, expected->size,
                    size == expected->size ? ", and another checksum" : "");
}

/* Reading one shard. */
struct reading {
    ls_vault_reader *reader; /* own */
    unsigned char *piece;    /* own; BLOB_PIECE */
};

static int read_exactly(void *self, void *data, size_t size)
{
    const struct reading *reading = self;
    unsigned char *at = data;
    int status = LS_OK;
    while (size > 0 && status == LS_OK) {
        size_t got = 0;
        status = ls_vault_reader_read(reading->reader, at, size, &got);
        at += got;
        size -= got;
    }
    return status;
}

/* The last bytes tell whether all were right: of no bytes, too. */
static int read_to_end(struct reading *reading)
{
    size_t got = 1;
    int status = LS_OK;
    while (got > 0 && status == LS_OK)
        status = ls_vault_reader_read(reading->reader, reading->piece,
                                      BLOB_PIECE, &got);
    return status;
}

static int read_shards(struct reading *reading,
                       const struct ls_checkpoint_entry *expected)
{
    int status = LS_OK;
    for (size_t i = 0; i < ls_vault_reader_n(reading->reader); i++) {
        status = ls_vault_reader_begin(reading->reader, i);
        if (status == LS_OK)
            status = read_to_end(reading);
        if (status != LS_OK)
            return ls_error_at(status, "%s of %s",
                               ls_vault_reader_shard(reading->reader, i)->name,
                               expected->node);
    }
    return status;
}

static int open_reading(struct reading *out, const ls_checkpoints *checkpoints,
                        int64_t epoch,
                        const struct ls_checkpoint_entry *expected)
{
    *out = (struct reading){.piece = malloc(BLOB_PIECE)};
    return out->piece != NULL
               ? checkpoint_open_entry(checkpoints, epoch, expected,
                                       &out->reader)
               : ls_error(LS_ENOMEM, "reading %s", checkpoints->folder);
}

static void close_reading(struct reading *gone)
{
    ls_vault_reader_destroy(&gone->reader);
    free(gone->piece);
}

int ls_checkpoints_has(ls_checkpoints *checkpoints, int64_t epoch,
                       const struct ls_checkpoint_entry *expected)
{
    struct reading reading;
    int status = open_reading(&reading, checkpoints, epoch, expected);
    if (status == LS_OK)
        status = read_shards(&reading, expected);
    close_reading(&reading);
    return status;
}

static int verify_entries(ls_checkpoints *checkpoints, int64_t epoch,
                          const struct ls_checkpoint_manifest *manifest,
                          size_t *n_elsewhere)
{
    int status = LS_OK;
    size_t elsewhere = 0;
    for (size_t i = 0; i < manifest->n_entries && status == LS_OK; i++) {
        const struct ls_checkpoint_entry *entry = &manifest->entries[i];
        status = ls_checkpoints_has(checkpoints, epoch, entry);
        if (status == LS_ENOENT && n_elsewhere == NULL) {
            char path[CHECKPOINT_TEXT];
            return ls_error(
                LS_EPROTO, "%s is missing: the manifest names it",
                checkpoint_path(checkpoints, entry->node, epoch, path));
        }
        if (status == LS_ENOENT) {
            elsewhere++;
            status = LS_OK;
        }
    }
    if (n_elsewhere != NULL)
        *n_elsewhere = elsewhere;
    return status;
}

int ls_checkpoints_verify(ls_checkpoints *checkpoints, int64_t epoch,
                          size_t *n_elsewhere)
{
    struct ls_checkpoint_manifest manifest;
    int status = ls_checkpoints_manifest(checkpoints, epoch, &manifest);
    if (status != LS_OK)
        return status;
    status = verify_entries(checkpoints, epoch, &manifest, n_elsewhere);
    ls_checkpoint_manifest_clear(&manifest);
    return status;
}

int ls_checkpoints_newest(ls_checkpoints *checkpoints, int64_t before,
                          bool elsewhere, ls_checkpoint_passed_fn *passed,
                          void *self, int64_t *epoch)
{
    int64_t *epochs;
    size_t n, missing;
    int status = checkpoint_list(checkpoints, MANIFEST, &epochs, &n);
    if (status != LS_OK)
        return status;
    bool found = false;
    while (n > 0 && !found && status == LS_OK) {
        const int64_t one = epochs[--n];
        if (before != LS_CHECKPOINT_NONE && one >= before)
            continue;
        status = ls_checkpoints_verify(checkpoints, one,
                                       elsewhere ? &missing : NULL);
        found = status == LS_OK;
        if (found)
            *epoch = one;
        if (status == LS_EPROTO && passed != NULL)
            passed(self, one, ls_error_text());
        if (status == LS_EPROTO || status == LS_ENOENT) /* it was removed */
            status = LS_OK;
    }
    free(epochs);
    return found || status != LS_OK
               ? status
               : ls_error(LS_ENOENT, "there is no valid checkpoint in %s",
                          checkpoints->folder);
}

/* The best --------------------------------------------------------------- */

double checkpoint_value(const struct ls_checkpoint_manifest *manifest,
                        const char *metric, bool least)
{
    for (size_t i = 0; metric != NULL && i < manifest->n_metrics; i++) {
        const double value = manifest->metrics[i].value;
        if (strcmp(manifest->metrics[i].name, metric) == 0)
            return least ? -value : value;
    }
    return NAN;
}

struct ranked {
    int64_t epoch;
    double value;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? 1 : -1)
                                : (x->epoch < y->epoch ? 1 : -1);
}

/* Those of n epochs that have it take the first places. */
static int rank(ls_checkpoints *checkpoints, const char *metric, bool least,
                int64_t *epochs, size_t *n)
{
    struct ranked *all = calloc(*n + 1, sizeof *all);
    size_t n_ranked = 0;
    int status = all != NULL ? LS_OK : ls_error(LS_ENOMEM, "%zu epochs", *n);
    for (size_t i = 0; i < *n && status == LS_OK; i++) {
        struct ls_checkpoint_manifest manifest = {.n_entries = 0};
        status = ls_checkpoints_manifest(checkpoints, epochs[i], &manifest);
        const double value =
            status == LS_OK ? checkpoint_value(&manifest, metric, least) : NAN;
        if (!isnan(value))
            all[n_ranked++] = (struct ranked){epochs[i], value};
        if (status == LS_EPROTO || status == LS_ENOENT)
            status = LS_OK;
        ls_checkpoint_manifest_clear(&manifest);
    }
    if (n_ranked > 0)
        qsort(all, n_ranked, sizeof *all, by_rank);
    for (size_t i = 0; i < n_ranked; i++)
        epochs[i] = all[i].epoch;
    *n = n_ranked;
    free(all);
    return status;
}

int ls_checkpoints_ranked(ls_checkpoints *checkpoints, const char *metric,
                          bool least, int64_t **epochs, size_t *n)
{
    int status = checkpoint_list(checkpoints, MANIFEST, epochs, n);
    if (status == LS_OK)
        status = rank(checkpoints, metric, least, *epochs, n);
    if (status == LS_OK && *n > 0)
        return LS_OK;
    free(*epochs);
    *epochs = NULL;
    *n = 0;
    return status;
}

/* Blobs ------------------------------------------------------------------ */

/* The first shard, which fits the others. */
static int check_names(const struct blob_names *names,
                       const ls_vault_reader *reader)
{
    bool fits = names->n + 1 == ls_vault_reader_n(reader);
    for (size_t i = 0; i < names->n && fits; i++) {
        const struct ls_vault_shard *shard =
            ls_vault_reader_shard(reader, i + 1);
        uint64_t size;
        fits = strcmp(shard->name, names->blobs[i].name) == 0 &&
               ls_blob_form_bytes(&names->blobs[i].form, &size) == LS_OK &&
               size == shard->size;
    }
    return fits ? LS_OK
                : ls_error(LS_EPROTO,
                           "its " BLOB_NAMES " are not those of its shards");
}

static int read_names(struct reading *reading, struct blob_names *out)
{
    const struct ls_vault_shard *first =
        ls_vault_reader_shard(reading->reader, 0);
    *out = (struct blob_names){.blobs = NULL};
    if (strcmp(first->name, BLOB_NAMES) != 0 || first->size > MANIFEST_MAX)
        return ls_error(LS_EPROTO, "it does not begin with " BLOB_NAMES);
    const size_t size = (size_t)first->size;
    unsigned char *bytes = malloc(size + 1);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "no memory for " BLOB_NAMES);
    int status = ls_vault_reader_begin(reading->reader, 0);
    if (status == LS_OK)
        status = read_exactly(reading, bytes, size);
    if (status == LS_OK)
        status = read_to_end(reading);
    if (status == LS_OK)
        status = ls_record_decode(&blob_names_record, out, bytes, size, NULL);
    free(bytes);
    if (status == LS_OK)
        status = check_names(out, reading->reader);
    if (status != LS_OK)
        ls_record_clear(&blob_names_record, out);
    return status;
}

/* Both: what is read from, and what is there. */
static int open_names(ls_checkpoints *checkpoints, int64_t epoch,
                      const struct ls_checkpoint_entry *expected,
                      struct reading *reading, struct blob_names *names)
{
    char path[CHECKPOINT_TEXT];
    int status = open_reading(reading, checkpoints, epoch, expected);
    if (status != LS_OK)
        return status;
    status = read_names(reading, names);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(
                     status, "%s",
                     checkpoint_path(checkpoints, expected->node, epoch, path));
}

int ls_checkpoints_blob_names(ls_checkpoints *checkpoints, int64_t epoch,
                              const struct ls_checkpoint_entry *expected,
                              struct ls_checkpoint_blob **blobs, size_t *n)
{
    struct reading reading;
    struct blob_names names;
    const int status =
        open_names(checkpoints, epoch, expected, &reading, &names);
    close_reading(&reading);
    *blobs = status == LS_OK ? names.blobs : NULL;
    *n = status == LS_OK ? names.n : 0;
    return status;
}

static const struct ls_blob *find_global(const ls_blobs *blobs,
                                         const char *name)
{
    const struct ls_blob *found = ls_blobs_find(blobs, name);
    return found != NULL && !found->is_private ? found : NULL;
}

static bool is_asked_for(const char *const *asked, const char *name)
{
    for (; asked != NULL && *asked != NULL; asked++) {
        if (strcmp(*asked, name) == 0)
            return true;
    }
    return asked == NULL;
}

/* Whether each that is asked for is on both sides. */
static int check_asked(const ls_blobs *blobs, const struct blob_names *names,
                       const char *name)
{
    bool found = false;
    for (size_t i = 0; i < names->n && !found; i++)
        found = strcmp(names->blobs[i].name, name) == 0;
    if (!found)
        return ls_error(LS_ENOENT, "there is no blob %s in it", name);
    return find_global(blobs, name) != NULL
               ? LS_OK
               : ls_error(LS_ENOENT,
                          "the blob %s is asked for, and not registered", name);
}

int checkpoint_check_load(const ls_blobs *blobs, const struct blob_names *names,
                          const char *const *asked)
{
    int status = LS_OK;
    for (size_t i = 0; asked != NULL && asked[i] != NULL && status == LS_OK;
         i++)
        status = check_asked(blobs, names, asked[i]);
    for (size_t i = 0;
         asked == NULL && i < ls_blobs_n(blobs) && status == LS_OK; i++) {
        const struct ls_blob *blob = ls_blobs_at(blobs, i);
        if (!blob->is_private)
            status = check_asked(blobs, names, blob->name);
    }
    for (size_t i = 0; i < names->n && status == LS_OK; i++) {
        const struct ls_checkpoint_blob *one = &names->blobs[i];
        if (!is_asked_for(asked, one->name))
            continue;
        const struct ls_blob *to = find_global(blobs, one->name);
        status = to != NULL
                     ? blob_check_form(to, &one->form)
                     : ls_error(LS_EMISMATCH,
                                "it has a blob %s, which is not registered",
                                one->name);
    }
    return status;
}

static int load_one(struct reading *reading, size_t at,
                    const struct ls_blob *to)
{
    ls_blob_source source = {
        .read = read_exactly,
        .self = reading,
        .size = ls_vault_reader_shard(reading->reader, at)->size};
    int status = ls_vault_reader_begin(reading->reader, at);
    if (status == LS_OK)
        status = blob_load(to, &source);
    return status == LS_OK ? read_to_end(reading) : status;
}

int ls_checkpoints_load(ls_checkpoints *checkpoints, int64_t epoch,
                        const struct ls_checkpoint_entry *expected,
                        const ls_blobs *blobs, const char *const *names)
{
    char path[CHECKPOINT_TEXT];
    struct reading reading;
    struct blob_names found = {.blobs = NULL};
    int status = open_names(checkpoints, epoch, expected, &reading, &found);
    if (status == LS_OK) {
        status = checkpoint_check_load(blobs, &found, names);
        for (size_t i = 0; i < found.n && status == LS_OK; i++) {
            if (is_asked_for(names, found.blobs[i].name))
                status = load_one(&reading, i + 1,
                                  find_global(blobs, found.blobs[i].name));
        }
        if (status != LS_OK)
            status = ls_error_at(
                status, "%s",
                checkpoint_path(checkpoints, expected->node, epoch, path));
    }
    ls_record_clear(&blob_names_record, &found);
    close_reading(&reading);
    return status;
}
