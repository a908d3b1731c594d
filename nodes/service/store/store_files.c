#include "store_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "lockstep/vault.h"

#include "store_parts.h"
#include "store_table.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
/* NAME~RANK is the entry of a value with a rank, and no value's name has a ~.
 * Each rank has an entry of its own, so that who comes too late can only write
 * what nobody reads any more, whenever it does. */
#define RANK      '~'
#define ENTRY_MAX (LS_VAULT_NAME_MAX + 1)

struct store_files {
    struct store store;
    ls_vault *vault;    /* own */
    ls_vault *policies; /* own; NULL: they are in that one, too */
    size_t max_bytes;
};

static ls_vault *vault_of(const struct store_files *files, const char *name)
{
    return files->policies != NULL && store_is_policy(name) ? files->policies
                                                            : files->vault;
}

static void entry_of(const char *name, uint64_t rank, char entry[ENTRY_MAX])
{
    char suffix[24] = "";
    if (rank > 0)
        (void)snprintf(suffix, sizeof suffix, "%c%" PRIu64, RANK, rank);
    (void)snprintf(entry, ENTRY_MAX, "%.*s%s", SAFE_NAME_MAX, name, suffix);
}

/* The rank that an entry's name tells; 0: it is not that of a value of this
 * name with a rank. Only what entry_of() writes is one: 007 is no 7. */
static uint64_t rank_of(const char *entry, const char *name)
{
    char again[24];
    const size_t length = strlen(name);
    if (strncmp(entry, name, length) != 0 || entry[length] != RANK)
        return 0;
    const uint64_t rank = strtoull(entry + length + 1, NULL, 10);
    (void)snprintf(again, sizeof again, "%" PRIu64, rank);
    return strcmp(entry + length + 1, again) == 0 ? rank : 0;
}

/* Ranks ------------------------------------------------------------------ */

struct ranks {
    ls_vault *vault;
    const char *name;
    uint64_t highest; /* 0: there is none */
    uint64_t up_to;   /* these are dropped */
};

static int look_at_rank(void *self, const char *entry)
{
    struct ranks *ranks = self;
    const uint64_t rank = rank_of(entry, ranks->name);
    if (rank > ranks->highest)
        ranks->highest = rank;
    if (rank == 0 || rank > ranks->up_to)
        return LS_OK;
    const int status = ls_vault_drop(ranks->vault, entry);
    return status == LS_ENOENT ? LS_OK : status;
}

/* The highest rank of a name; those up to one are dropped. */
static int look_at_ranks(struct store_files *files, const char *name,
                         uint64_t up_to, uint64_t *highest)
{
    struct ranks ranks = {
        .vault = vault_of(files, name), .name = name, .up_to = up_to};
    const int status = ls_vault_each(ranks.vault, look_at_rank, &ranks);
    *highest = ranks.highest;
    return status == LS_ENOENT ? LS_EIO : status;
}

/* Operations ------------------------------------------------------------- */

static int write_value(const struct store_files *files,
                       const struct store_put *put)
{
    char entry[ENTRY_MAX];
    if (put->size > files->max_bytes)
        return ls_error(LS_ELIMIT,
                        "a store: %s has %zu bytes, at most %zu are allowed",
                        put->name, put->size, files->max_bytes);
    entry_of(put->name, put->rank, entry);
    return ls_vault_put(vault_of(files, put->name), entry, put->data, put->size,
                        put->keep);
}

static int files_put(struct store *store, const struct store_put *put)
{
    struct store_files *files = (struct store_files *)store;
    uint64_t highest = 0;
    int status = LS_OK;
    if (put->rank > 0)
        status = look_at_ranks(files, put->name, 0, &highest);
    if (status == LS_OK && highest > put->rank)
        status = store_outranked(put->name, put->rank, highest);
    if (status == LS_OK)
        status = write_value(files, put);
    if (status == LS_OK && highest > 0 && highest < put->rank)
        status = look_at_ranks(files, put->name, put->rank - 1, &highest);
    store_put_release(put);
    return status;
}

static int read_entry(const struct store_files *files, const char *name,
                      uint64_t rank, struct store_bytes **out)
{
    char entry[ENTRY_MAX];
    struct ls_body body = {.release = store_free};
    entry_of(name, rank, entry);
    const int status = ls_vault_get(vault_of(files, name), entry,
                                    files->max_bytes, &body.data, &body.size);
    if (status == LS_OK && (*out = store_bytes_create(&body)) == NULL)
        return ls_error(LS_ENOMEM, "a store: %s", name);
    return status;
}

/* What a name stands for. A higher rank may come, and the one that was there
 * go, at any time. */
static int read_value(struct store_files *files, const char *name,
                      struct store_bytes **out)
{
    uint64_t rank, before = 0;
    int status = read_entry(files, name, 0, out);
    while (status == LS_ENOENT) {
        if (look_at_ranks(files, name, 0, &rank) != LS_OK)
            return LS_EIO;
        if (rank <= before)
            break;
        before = rank;
        status = read_entry(files, name, rank, out);
    }
    return status;
}

/* Parts of one value mostly come one after the other, and are read once. */
static int get_parts(struct store_files *files, const struct store_part *parts,
                     size_t n, struct store_blob *out)
{
    struct store_bytes *whole = NULL;
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        uint64_t size = parts[i].size;
        if (i == 0 || strcmp(parts[i].name, parts[i - 1].name) != 0) {
            store_bytes_release(whole);
            whole = NULL;
            status = read_value(files, parts[i].name, &whole);
        }
        if (status == LS_OK)
            status = store_check_part(parts[i].name, parts[i].at, &size,
                                      whole->size);
        if (status == LS_OK)
            out[i] = store_bytes_blob(whole, parts[i].at, (size_t)size);
    }
    store_bytes_release(whole);
    return status;
}

static int files_get(struct store *store, const struct store_part *parts,
                     size_t n, struct store_blob *out, int wait_ms)
{
    (void)wait_ms; /* a file is there or not */
    struct store_blob *blobs = calloc(n, sizeof *blobs);
    if (blobs == NULL)
        return ls_error(LS_ENOMEM, "getting %zu files", n);
    const int status = get_parts((struct store_files *)store, parts, n, blobs);
    for (size_t i = 0; i < n && status != LS_OK; i++)
        store_blob_fini(&blobs[i]);
    if (status == LS_OK)
        memcpy(out, blobs, n * sizeof *blobs);
    free(blobs);
    return status;
}

static int files_drop(struct store *store, const char *name, int wait_ms)
{
    (void)wait_ms;
    struct store_files *files = (struct store_files *)store;
    char entry[ENTRY_MAX];
    uint64_t highest;
    entry_of(name, 0, entry);
    const int status = ls_vault_drop(vault_of(files, name), entry);
    return status == LS_ENOENT
               ? look_at_ranks(files, name, UINT64_MAX, &highest)
               : status;
}

static void files_forget(struct store *store, const char *const *names,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (safe_name_is(names[i]) && files_drop(store, names[i], 0) != LS_OK)
            ls_log_warn("a store: %s stays: %s", names[i], ls_error_text());
}

static void files_close(struct store *store)
{
    struct store_files *files = (struct store_files *)store;
    ls_vault_close(&files->vault);
    ls_vault_close(&files->policies);
    free(files);
}

static const struct store_ops operations = {.put = files_put,
                                            .get = files_get,
                                            .drop = files_drop,
                                            .forget = files_forget,
                                            .close = files_close};

int store_files_open(struct store **out,
                     const struct store_files_options *options)
{
    struct store_files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return ls_error(LS_ENOMEM, "a store");
    files->store.ops = &operations;
    files->max_bytes =
        options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES;
    struct ls_vault_options vault = {.folder = options->folder,
                                     .found = options->found};
    int status = ls_vault_open(&files->vault, &vault);
    vault.folder = options->policies;
    if (status == LS_OK && vault.folder != NULL)
        status = ls_vault_open(&files->policies, &vault);
    if (status != LS_OK) {
        files_close(&files->store);
        return status;
    }
    *out = &files->store;
    return LS_OK;
}

struct each {
    int (*fn)(void *self, const char *name);
    void *self;
};

static int give_name(void *self, const char *name)
{
    const struct each *each = self;
    char value[SAFE_NAME_MAX + 1];
    const size_t length = strcspn(name, (const char[]){RANK, '\0'});
    if (length > SAFE_NAME_MAX)
        return LS_OK;
    memcpy(value, name, length);
    value[length] = '\0';
    if (!safe_name_is(value) ||
        (name[length] != '\0' && rank_of(name, value) == 0))
        return LS_OK;
    return each->fn(each->self, value);
}

int store_files_each(struct store *store,
                     int (*fn)(void *self, const char *name), void *self)
{
    struct each each = {fn, self};
    const struct store_files *files = (const struct store_files *)store;
    return ls_vault_each(files->vault, give_name, &each);
}
