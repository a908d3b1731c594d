#include "store_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "files.h"
#include "lockstep/runtime.h"
#include "store_parts.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
#define MAGIC_SIZE        8
#define TRAILER_SIZE      24
#define PART              ".part@" /* no value's name begins with a dot */
#define PATH_MAX_BYTES    (FILES_PATH_MAX - 256)
#define HOST_MAX          64
/* NAME~RANK is the file of a value with a rank, and no value's name has a ~.
 * Each rank has a file of its own, so that who comes too late can only write
 * what nobody reads any more, whenever it does. */
#define RANK '~'

static const unsigned char magic[MAGIC_SIZE] = {'l', 's', 's', 't',
                                                'o', 'r', 'e', '1'};

struct store_files {
    struct store store;
    char folder[FILES_PATH_MAX];
    size_t max_bytes;
};

/* Which process writes: names of unfinished files begin with it. A process id
 * is not enough, since in a container every life has the same. */
struct writer {
    long pid;
    uint64_t token;
    char host[HOST_MAX + 1];
};

static uint64_t own_token(void)
{
    static _Atomic uint64_t token;
    uint64_t none = 0;
    if (atomic_load(&token) == 0)
        (void)atomic_compare_exchange_strong(
            &token, &none, ls_entropy(ls_runtime_threads()) | 1);
    return atomic_load(&token);
}

static struct writer own_writer(void)
{
    struct writer writer = {.pid = (long)getpid(), .token = own_token()};
    if (gethostname(writer.host, sizeof writer.host - 1) < 0)
        writer.host[0] = '\0';
    return writer;
}

static void path_of(const struct store_files *files, const char *name,
                    uint64_t rank, char path[FILES_PATH_MAX])
{
    char suffix[24] = "";
    if (rank > 0)
        (void)snprintf(suffix, sizeof suffix, "%c%" PRIu64, RANK, rank);
    (void)snprintf(path, FILES_PATH_MAX, "%.*s/%s%s", PATH_MAX_BYTES,
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
                           char path[FILES_PATH_MAX])
{
    static _Atomic uint64_t next;
    const struct writer writer = own_writer();
    (void)snprintf(path, FILES_PATH_MAX,
                   "%.*s/" PART "%ld@%016" PRIx64 "@%" PRIu64 "@%s",
                   PATH_MAX_BYTES, files->folder, writer.pid, writer.token,
                   atomic_fetch_add(&next, 1), writer.host);
}

/* Whether a file of that name is the unfinished one of a writer of this host
 * that has died. */
static bool is_left_over(const char *name, const struct writer *self)
{
    struct writer found = {.pid = 0};
    int end = 0;
    if (sscanf(name, PART "%ld@%" SCNx64 "@%*u@%n", &found.pid, &found.token,
               &end) != 2 ||
        end == 0 || strcmp(name + end, self->host) != 0 || found.pid <= 0)
        return false;
    if (found.pid == self->pid)
        return found.token != self->token;
    return kill((pid_t)found.pid, 0) < 0 && errno == ESRCH;
}

/* Call fn with the name of each file of the folder, until it fails. */
static int each_file(struct store_files *files,
                     int (*fn)(struct store_files *files, const char *name,
                               void *self),
                     void *self)
{
    DIR *entries = opendir(files->folder);
    if (entries == NULL)
        return files_error(errno, "reading the folder", files->folder);
    int status = LS_OK;
    const struct dirent *entry = NULL;
    do {
        errno = 0;
        entry = readdir(entries);
        if (entry == NULL && errno != 0)
            status = files_error(errno, "reading the folder", files->folder);
        if (entry != NULL)
            status = fn(files, entry->d_name, self);
    } while (entry != NULL && status == LS_OK);
    (void)closedir(entries);
    return status;
}

static int clear_one(struct store_files *files, const char *name, void *self)
{
    if (!is_left_over(name, self))
        return LS_OK;
    char path[FILES_PATH_MAX + 256];
    (void)snprintf(path, sizeof path, "%s/%s", files->folder, name);
    (void)unlink(path);
    return LS_OK;
}

/* Ranks ------------------------------------------------------------------ */

struct ranks {
    const char *name;
    uint64_t highest; /* 0: there is none */
    uint64_t below;   /* these are removed */
};

static int look_at_rank(struct store_files *files, const char *file, void *self)
{
    struct ranks *ranks = self;
    char path[FILES_PATH_MAX];
    const uint64_t rank = rank_of(file, ranks->name);
    if (rank > ranks->highest)
        ranks->highest = rank;
    if (rank == 0 || rank >= ranks->below)
        return LS_OK;
    path_of(files, ranks->name, rank, path);
    return unlink(path) == 0 || errno == ENOENT
               ? LS_OK
               : files_error(errno, "removing", path);
}

/* The highest rank of a name; those below one are removed. */
static int look_at_ranks(struct store_files *files, const char *name,
                         uint64_t below, uint64_t *highest)
{
    struct ranks ranks = {.name = name, .below = below};
    const int status = each_file(files, look_at_rank, &ranks);
    *highest = ranks.highest;
    return status;
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
    char path[FILES_PATH_MAX], temporary[FILES_PATH_MAX];
    unsigned char trailer[TRAILER_SIZE];
    path_of(files, put->name, put->rank, path);
    temporary_path(files, temporary);
    write_trailer(trailer, put->data, put->size);
    const struct files_part parts[] = {{put->data, put->size},
                                       {trailer, sizeof trailer}};
    return files_replace(path, temporary, parts, 2, put->keep);
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
                     char path[FILES_PATH_MAX], void **data, size_t *size)
{
    const size_t most = files->max_bytes + TRAILER_SIZE;
    path_of(files, name, 0, path);
    int status = files_read(path, most, data, size);
    uint64_t rank, before = 0;
    while (status == LS_ENOENT) {
        if (look_at_ranks(files, name, 0, &rank) != LS_OK)
            return LS_EIO;
        if (rank <= before)
            return ls_error(LS_ENOENT, "there is no %s", path);
        before = rank;
        path_of(files, name, rank, path);
        status = files_read(path, most, data, size);
    }
    return status;
}

static int read_value(struct store_files *files, const char *name,
                      struct store_blob *out)
{
    char path[FILES_PATH_MAX];
    void *data = NULL;
    size_t size = 0;
    const int status = read_file(files, name, path, &data, &size);
    if (status != LS_OK)
        return status;
    if (!is_whole(data, size)) {
        free(data);
        return ls_error(LS_EPROTO, "%s is damaged: remove it", path);
    }
    *out = (struct store_blob){data, size - TRAILER_SIZE};
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
    char path[FILES_PATH_MAX];
    uint64_t highest;
    path_of(files, name, 0, path);
    if (unlink(path) == 0)
        return LS_OK;
    return errno == ENOENT ? look_at_ranks(files, name, UINT64_MAX, &highest)
                           : files_error(errno, "removing", path);
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
    struct writer self = own_writer();
    int status = LS_OK;
    if (!options->found)
        status = files_make_folders(files->folder);
    if (!options->found && status == LS_OK)
        status = each_file(files, clear_one, &self);
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

static int give_name(struct store_files *files, const char *name, void *self)
{
    const struct each *each = self;
    char value[SAFE_NAME_MAX + 1];
    const size_t length = strcspn(name, (const char[]){RANK, '\0'});
    (void)files;
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
    return each_file((struct store_files *)store, give_name, &each);
}
