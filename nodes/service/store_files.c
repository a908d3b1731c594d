#include "store_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lockstep/file.h"

#include "store_parts.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
#define MAGIC_SIZE        8
#define TRAILER_SIZE      24
#define PART              ".part@" /* no value's name begins with a dot */
#define PATH_MAX_BYTES    (LS_PATH_MAX - 256)
/* NAME~RANK is the file of a value with a rank, and no value's name has a ~.
 * Each rank has a file of its own, so that who comes too late can only write
 * what nobody reads any more, whenever it does. */
#define RANK '~'

static const unsigned char magic[MAGIC_SIZE] = {'l', 's', 's', 't',
                                                'o', 'r', 'e', '1'};

struct store_files {
    struct store store;
    char folder[LS_PATH_MAX];
    size_t max_bytes;
};

static void path_of(const struct store_files *files, const char *name,
                    uint64_t rank, char path[LS_PATH_MAX])
{
    char suffix[24] = "";
    if (rank > 0)
        (void)snprintf(suffix, sizeof suffix, "%c%" PRIu64, RANK, rank);
    (void)snprintf(path, LS_PATH_MAX, "%.*s/%s%s", PATH_MAX_BYTES,
                   files->folder, name, suffix);
}

/* The rank that a file's name tells; 0: it is not that of a value of this name
 * with a rank. Only what path_of() writes is one: 007 is no 7. */
static uint64_t rank_of(const char *file, const char *name)
{
    char again[24];
    const size_t length = strlen(name);
    if (strncmp(file, name, length) != 0 || file[length] != RANK)
        return 0;
    const uint64_t rank = strtoull(file + length + 1, NULL, 10);
    (void)snprintf(again, sizeof again, "%" PRIu64, rank);
    return strcmp(file + length + 1, again) == 0 ? rank : 0;
}

static void temporary_path(const struct store_files *files,
                           char path[LS_PATH_MAX])
{
    char unique[LS_FILE_UNIQUE_MAX];
    ls_file_unique(unique);
    (void)snprintf(path, LS_PATH_MAX, "%.*s/" PART "%s", PATH_MAX_BYTES,
                   files->folder, unique);
}

/* Remove what a writer that has died left unfinished. */
static int clear_one(void *self, const char *name)
{
    const struct store_files *files = self;
    char path[LS_PATH_MAX + 256];
    const size_t part = sizeof PART - 1;
    if (strncmp(name, PART, part) != 0 || !ls_file_is_left_over(name + part))
        return LS_OK;
    (void)snprintf(path, sizeof path, "%s/%s", files->folder, name);
    (void)ls_file_remove(path);
    return LS_OK;
}

/* Ranks ------------------------------------------------------------------ */

struct ranks {
    const struct store_files *files;
    const char *name;
    uint64_t highest; /* 0: there is none */
    uint64_t below;   /* these are removed */
};

static int look_at_rank(void *self, const char *file)
{
    struct ranks *ranks = self;
    char path[LS_PATH_MAX];
    const uint64_t rank = rank_of(file, ranks->name);
    if (rank > ranks->highest)
        ranks->highest = rank;
    if (rank == 0 || rank >= ranks->below)
        return LS_OK;
    path_of(ranks->files, ranks->name, rank, path);
    const int status = ls_file_remove(path);
    return status == LS_ENOENT ? LS_OK : status;
}

/* The highest rank of a name; those below one are removed. */
static int look_at_ranks(struct store_files *files, const char *name,
                         uint64_t below, uint64_t *highest)
{
    struct ranks ranks = {.files = files, .name = name, .below = below};
    const int status = ls_folder_each(files->folder, look_at_rank, &ranks);
    *highest = ranks.highest;
    return status == LS_ENOENT ? LS_EIO : status;
}

/* Operations ------------------------------------------------------------- */

static void put_le(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static void write_trailer(unsigned char trailer[TRAILER_SIZE], const void *data,
                          size_t size)
{
    memcpy(trailer, magic, MAGIC_SIZE);
    put_le(trailer + 8, size);
    put_le(trailer + 16, XXH3_64bits(data, size));
}

static int write_value(const struct store_files *files,
                       const struct store_put *put)
{
    if (put->size > files->max_bytes)
        return ls_error(LS_ELIMIT,
                        "%s: %s has %zu bytes, at most %zu are allowed",
                        files->folder, put->name, put->size, files->max_bytes);
    char path[LS_PATH_MAX], temporary[LS_PATH_MAX];
    unsigned char trailer[TRAILER_SIZE];
    path_of(files, put->name, put->rank, path);
    temporary_path(files, temporary);
    write_trailer(trailer, put->data, put->size);
    const struct ls_file_part parts[] = {{put->data, put->size},
                                         {trailer, sizeof trailer}};
    return ls_file_replace(path, temporary, parts, 2, put->keep);
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
        status = look_at_ranks(files, put->name, put->rank, &highest);
    store_put_release(put);
    return status;
}

static bool is_whole(const unsigned char *data, size_t size)
{
    unsigned char trailer[TRAILER_SIZE];
    if (size < TRAILER_SIZE)
        return false;
    write_trailer(trailer, data, size - TRAILER_SIZE);
    return memcmp(trailer, data + size - TRAILER_SIZE, TRAILER_SIZE) == 0;
}

/* What a name stands for; path: of its file. A higher rank may come, and the
 * one that was there go, at any time. */
static int read_file(struct store_files *files, const char *name,
                     char path[LS_PATH_MAX], void **data, size_t *size)
{
    const size_t most = files->max_bytes + TRAILER_SIZE;
    path_of(files, name, 0, path);
    int status = ls_file_read(path, most, data, size);
    uint64_t rank, before = 0;
    while (status == LS_ENOENT) {
        if (look_at_ranks(files, name, 0, &rank) != LS_OK)
            return LS_EIO;
        if (rank <= before)
            return ls_error(LS_ENOENT, "there is no %s", path);
        before = rank;
        path_of(files, name, rank, path);
        status = ls_file_read(path, most, data, size);
    }
    return status;
}

static int read_value(struct store_files *files, const char *name,
                      struct store_blob *out)
{
    char path[LS_PATH_MAX];
    void *data = NULL;
    size_t size = 0;
    const int status = read_file(files, name, path, &data, &size);
    if (status != LS_OK)
        return status;
    if (!is_whole(data, size)) {
        free(data);
        return ls_error(LS_EPROTO, "%s is damaged: remove it", path);
    }
    *out = (struct store_blob){.data = data, .size = size - TRAILER_SIZE};
    return LS_OK;
}

static int files_get(struct store *store, const char *const *names, size_t n,
                     struct store_blob *out, int wait_ms)
{
    (void)wait_ms; /* a file is there or not */
    struct store_blob *blobs = calloc(n, sizeof *blobs);
    if (blobs == NULL)
        return ls_error(LS_ENOMEM, "getting %zu files", n);
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = read_value((struct store_files *)store, names[i], &blobs[i]);
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
    char path[LS_PATH_MAX];
    uint64_t highest;
    path_of(files, name, 0, path);
    const int status = ls_file_remove(path);
    return status == LS_ENOENT
               ? look_at_ranks(files, name, UINT64_MAX, &highest)
               : status;
}

static void files_close(struct store *store)
{
    free(store);
}

static const struct store_ops operations = {.put = files_put,
                                            .get = files_get,
                                            .drop = files_drop,
                                            .close = files_close};

int store_files_open(struct store **out,
                     const struct store_files_options *options)
{
    if (strlen(options->folder) >= PATH_MAX_BYTES)
        return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                        options->folder);
    struct store_files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return ls_error(LS_ENOMEM, "a store");
    files->store.ops = &operations;
    files->max_bytes =
        options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES;
    memcpy(files->folder, options->folder, strlen(options->folder) + 1);
    int status = LS_OK;
    if (!options->found)
        status = ls_folder_make(files->folder);
    if (!options->found && status == LS_OK)
        status = ls_folder_each(files->folder, clear_one, files);
    if (status != LS_OK) {
        free(files);
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
    return ls_folder_each(files->folder, give_name, &each);
}
