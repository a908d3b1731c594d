/* The files of a vault, and who may remove what.
 *
 * Three kinds of file are in its folder. NAME is an entry: a value or nothing,
 * its manifest, a tail. NAME+INDEX+UNIQUE is a shard, and .part@UNIQUE an entry
 * that is being written.
 *
 * UNIQUE, of ls_file_unique(), says who wrote a file. So a shard needs no other
 * name while it is written: nobody looks at it before a manifest names it, no
 * two writers have the same one, and what a dead writer has left is known.
 *
 * Shards that no manifest names any more are removed by who has replaced the
 * manifest, once the new one is on disk; where that has failed, by who clears
 * the folder after the writer's death. */
#include "vault_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "disk_ops.h"

#define PART  ".part@"
#define VALUE "value" /* the shard of an entry that was put */

/* Of shards without a file, so much is held until the commit. */
#define INSIDE_MAX (4u << 20)

/* Of its folder's path: room is left for "/" and any name. */
#define FOLDER_MAX (LS_PATH_MAX - 256)

struct ls_vault {
    char folder[FOLDER_MAX + 1];
};

/* --- names and paths --- */

static void path_of(const ls_vault *vault, const char *file,
                    char path[LS_PATH_MAX])
{
    (void)snprintf(path, LS_PATH_MAX, "%.*s/%.*s", FOLDER_MAX, vault->folder,
                   VAULT_FILE_MAX, file);
}

/* What may be removed ---------------------------------------------------- */

static bool is_folder(const char *path)
{
    char inside[LS_PATH_MAX + 2];
    (void)snprintf(inside, sizeof inside, "%s/.", path);
    return ls_file_exists(inside);
}

/* A folder or a pipe in its place is damage, as other bytes are. A file that
 * the system does not give may be whole. */
static int open_to_read(ls_file **out, const char *path)
{
    bool other;
    const int status = file_open_to_read(out, path, &other);
    return other ? vault_damaged(path, is_folder(path) ? "it is a folder"
                                                       : "it is not a file")
                 : status;
}

/* The manifest that an entry has now. Errors: as vault_manifest_read(), and
 * LS_ENOENT there is no such entry. */
static int look_at(const ls_vault *vault, const char *name,
                   struct vault_manifest **out)
{
    char path[LS_PATH_MAX];
    ls_file *file;
    path_of(vault, name, path);
    int status = open_to_read(&file, path);
    if (status != LS_OK)
        return status;
    status = vault_manifest_read(file, path, name, out);
    (void)ls_file_close(&file); /* nothing was written */
    return status;
}

/* Whether a shard's file is of no entry that is there, or may be there. */
static bool is_orphan(const ls_vault *vault, const char *name, const char *file)
{
    struct vault_manifest *manifest;
    const int status = look_at(vault, name, &manifest);
    if (status != LS_OK) /* a damaged one may name it */
        return status == LS_ENOENT;
    const bool is_named = vault_manifest_names(manifest, file);
    free(manifest);
    return !is_named;
}

/* NULL: it has no shards in files of their own, or none that are known. */
static struct vault_manifest *old_shards(const ls_vault *vault,
                                         const char *name)
{
    struct vault_manifest *manifest;
    if (look_at(vault, name, &manifest) != LS_OK)
        return NULL;
    if (vault_manifest_has_files(manifest))
        return manifest;
    free(manifest);
    return NULL;
}

/* The files of shards that the entry does not name any more. What cannot be
 * removed goes when the folder is cleared. */
static void remove_shards(const ls_vault *vault, const char *name,
                          const struct vault_shard *shards, size_t n)
{
    char path[LS_PATH_MAX];
    path_of(vault, name, path);
    if (ls_file_sync_name(path) != LS_OK)
        return; /* an entry might come back that names them */
    for (size_t i = 0; i < n; i++) {
        if (shards[i].file[0] == '\0')
            continue;
        path_of(vault, shards[i].file, path);
        (void)ls_file_remove(path);
    }
}

/* Opening ---------------------------------------------------------------- */

struct clearing {
    const ls_vault *vault;
    bool synced; /* what the folder's entries are now is on disk */
};

/* A name of a shard's file; NULL: it is none. entry: of whom. */
static const char *writer_of(const char *file,
                             char entry[LS_VAULT_NAME_MAX + 1])
{
    const size_t length = strcspn(file, "+");
    if (length > LS_VAULT_NAME_MAX || file[length] == '\0')
        return NULL;
    memcpy(entry, file, length);
    entry[length] = '\0';
    const char *index = file + length + 1;
    const size_t digits = strspn(index, "0123456789");
    return vault_is_name(entry) && digits > 0 && index[digits] == '+'
               ? index + digits + 1
               : NULL;
}

static int clear_one(void *self, const char *file)
{
    struct clearing *clearing = self;
    const ls_vault *vault = clearing->vault;
    char path[LS_PATH_MAX], entry[LS_VAULT_NAME_MAX + 1];
    const size_t part = sizeof PART - 1;
    path_of(vault, file, path);
    if (strncmp(file, PART, part) == 0) {
        if (ls_file_is_left_over(file + part))
            (void)ls_file_remove(path);
        return LS_OK;
    }
    const char *writer = writer_of(file, entry);
    if (writer == NULL || !ls_file_is_left_over(writer) ||
        !is_orphan(vault, entry, file))
        return LS_OK;
    if (!clearing->synced && ls_file_sync_name(path) != LS_OK)
        return LS_OK; /* else an entry might come back that names it */
    clearing->synced = true;
    (void)ls_file_remove(path);
    return LS_OK;
}

int ls_vault_open(ls_vault **out, const struct ls_vault_options *options)
{
    *out = NULL;
    const size_t length = strlen(options->folder);
    if (length > FOLDER_MAX)
        return ls_error(LS_ELIMIT, "the folder %.80s… has too long a name",
                        options->folder);
    ls_vault *vault = calloc(1, sizeof *vault);
    if (vault == NULL)
        return ls_error(LS_ENOMEM, "opening %s", options->folder);
    memcpy(vault->folder, options->folder, length);
    struct clearing clearing = {.vault = vault};
    int status = LS_OK;
    if (!options->found)
        status = ls_folder_make(vault->folder);
    if (!options->found && status == LS_OK)
        status = ls_folder_each(vault->folder, clear_one, &clearing);
    if (status == LS_OK)
        *out = vault;
    else
        free(vault);
    return status;
}

void ls_vault_close(ls_vault **vault)
{
    if (vault == NULL || *vault == NULL)
        return;
    free(*vault);
    *vault = NULL;
}

/* Values ----------------------------------------------------------------- */

static int replace(const ls_vault *vault, const char *name,
                   const struct ls_file_part parts[3], bool durable)
{
    char path[LS_PATH_MAX], temporary[LS_PATH_MAX];
    char part[VAULT_FILE_MAX], unique[LS_FILE_UNIQUE_MAX];
    ls_file_unique(unique);
    (void)snprintf(part, sizeof part, PART "%s", unique);
    path_of(vault, name, path);
    path_of(vault, part, temporary);
    struct vault_manifest *old = old_shards(vault, name);
    const int status = ls_file_replace(path, temporary, parts, 3, durable);
    if (status == LS_OK && old != NULL)
        remove_shards(vault, name, old->shards, old->n);
    free(old);
    return status;
}

/* Put an entry of these shards; data: what stands in front of the manifest.
 * check: that of the manifest. */
static int replace_entry(const ls_vault *vault, const char *name,
                         const struct vault_shard *shards, size_t n,
                         const struct ls_file_part *data, bool durable,
                         uint64_t *check)
{
    unsigned char tail[VAULT_TAIL_SIZE];
    struct ls_file_part parts[3] = {*data, {0}, {tail, sizeof tail}};
    ls_writer *writer;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    status = vault_manifest_write(writer, shards, n, &parts[1].data,
                                  &parts[1].size, tail, check);
    if (status == LS_OK)
        status = replace(vault, name, parts, durable);
    ls_writer_destroy(&writer);
    return status;
}

int ls_vault_put(ls_vault *vault, const char *name, const void *data,
                 size_t size, bool durable)
{
    const struct ls_file_part part = {data, size};
    const struct vault_shard value = {
        .told = {VALUE, size, XXH3_64bits(data, size)}};
    uint64_t check;
    const int status = vault_check_name(vault->folder, name);
    return status == LS_OK
               ? replace_entry(vault, name, &value, 1, &part, durable, &check)
               : status;
}

static int read_all(ls_vault_reader *reader, unsigned char *data)
{
    int status = LS_OK;
    for (size_t i = 0; i < ls_vault_reader_n(reader) && status == LS_OK; i++) {
        size_t got = 1;
        status = ls_vault_reader_begin(reader, i);
        while (status == LS_OK && got > 0) {
            const uint64_t size = ls_vault_reader_shard(reader, i)->size;
            status = ls_vault_reader_read(reader, data,
                                          size > 0 ? (size_t)size : 1, &got);
            if (status == LS_OK)
                data += got;
        }
    }
    return status;
}

static int get(ls_vault_reader *reader, const char *folder, const char *name,
               size_t most, void **data, size_t *size)
{
    uint64_t total = 0;
    for (size_t i = 0; i < ls_vault_reader_n(reader); i++) {
        const uint64_t one = ls_vault_reader_shard(reader, i)->size;
        if (one > most - total)
            return ls_error(LS_ELIMIT, "%s/%s is longer than %zu bytes", folder,
                            name, most);
        total += one;
    }
    unsigned char *bytes = malloc(total > 0 ? (size_t)total : 1);
    if (bytes == NULL)
        return ls_error(LS_ENOMEM, "reading %s/%s, %zu bytes", folder, name,
                        (size_t)total);
    const int status = read_all(reader, bytes);
    if (status != LS_OK) {
        free(bytes);
        return status;
    }
    *data = bytes;
    *size = (size_t)total;
    return LS_OK;
}

int ls_vault_get(ls_vault *vault, const char *name, size_t most, void **data,
                 size_t *size)
{
    ls_vault_reader *reader;
    int status = ls_vault_reader_create(&reader, vault, name);
    if (status == LS_OK)
        status = get(reader, vault->folder, name, most, data, size);
    ls_vault_reader_destroy(&reader);
    return status;
}

int ls_vault_drop(ls_vault *vault, const char *name)
{
    char path[LS_PATH_MAX];
    int status = vault_check_name(vault->folder, name);
    if (status != LS_OK)
        return status;
    path_of(vault, name, path);
    struct vault_manifest *old = old_shards(vault, name);
    status = ls_file_remove(path);
    if (status == LS_EIO && is_folder(path))
        status = ls_folder_remove(path) == LS_OK
                     ? LS_OK
                     : ls_error(LS_EIO, "%s: it is a folder, and is not empty",
                                path);
    if (status == LS_OK && old != NULL)
        remove_shards(vault, name, old->shards, old->n);
    free(old);
    return status;
}

struct each {
    int (*fn)(void *self, const char *name);
    void *self;
};

static int give_name(void *self, const char *name)
{
    const struct each *each = self;
    return vault_is_name(name) ? each->fn(each->self, name) : LS_OK;
}

int ls_vault_each(ls_vault *vault, int (*fn)(void *self, const char *name),
                  void *self)
{
    struct each each = {fn, self};
    return ls_folder_each(vault->folder, give_name, &each);
}

/* --- reading an entry shard by shard --- */

/* Each time it was replaced between its manifest and its shards. */
#define TRIES 100

struct ls_vault_reader {
    struct vault_manifest *manifest; /* own */
    ls_file *entry;                  /* own */
    ls_file **files;                 /* own; NULL: in the entry; or all are */
    XXH3_state_t *hash;              /* own */
    const ls_vault *vault;           /* borrow */
    size_t at;                       /* which shard; n: none was begun */
    uint64_t done;                   /* bytes of it */
    char name[LS_VAULT_NAME_MAX + 1];
};

/* Where a shard's bytes are. */
static void shard_path(const ls_vault_reader *reader, size_t at,
                       char path[LS_PATH_MAX])
{
    const char *file = reader->manifest->shards[at].file;
    path_of(reader->vault, file[0] != '\0' ? file : reader->name, path);
}

/* Errors: LS_ENOENT it is not there. */
static int open_shard(ls_vault_reader *reader, size_t at)
{
    const struct vault_shard *shard = &reader->manifest->shards[at];
    char path[LS_PATH_MAX];
    uint64_t size;
    if (shard->file[0] == '\0')
        return LS_OK;
    shard_path(reader, at, path);
    int status = open_to_read(&reader->files[at], path);
    if (status == LS_OK)
        status = ls_file_size(reader->files[at], &size);
    return status == LS_OK && size != shard->told.size
               ? vault_damaged(path, "it has another size")
               : status;
}

/* missing: the shard that is not there, when LS_ENOENT is returned. */
static int open_shards(ls_vault_reader *reader, size_t *missing)
{
    const size_t n = reader->manifest->n;
    int status = LS_OK;
    reader->at = n;
    if (!vault_manifest_has_files(reader->manifest))
        return LS_OK;
    reader->files = calloc(n, sizeof *reader->files);
    if (reader->files == NULL)
        return ls_error(LS_ENOMEM, "reading %s/%s", reader->vault->folder,
                        reader->name);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        status = open_shard(reader, i);
        *missing = i;
    }
    return status;
}

static void close_all(ls_vault_reader *reader)
{
    for (size_t i = 0; reader->files != NULL && i < reader->manifest->n; i++)
        (void)ls_file_close(&reader->files[i]); /* nothing was written */
    free(reader->files);
    reader->files = NULL;
    free(reader->manifest);
    reader->manifest = NULL;
    (void)ls_file_close(&reader->entry);
}

/* Errors: LS_EAGAIN a shard is not there that was not missed before: missed is
 * the manifest that names it; 0: none. */
static int open_all(ls_vault_reader *reader, uint64_t *missed)
{
    char path[LS_PATH_MAX];
    size_t missing = 0;
    path_of(reader->vault, reader->name, path);
    int status = open_to_read(&reader->entry, path);
    if (status != LS_OK)
        return status;
    status = vault_manifest_read(reader->entry, path, reader->name,
                                 &reader->manifest);
    if (status != LS_OK)
        return status;
    status = open_shards(reader, &missing);
    if (status != LS_ENOENT)
        return status;
    /* The manifest that took its place names others. */
    const bool again = *missed == reader->manifest->check;
    *missed = reader->manifest->check;
    if (!again)
        return ls_error(LS_EAGAIN, "%s is being replaced", path);
    shard_path(reader, missing, path);
    return vault_damaged(path, "it is missing");
}

int ls_vault_reader_create(ls_vault_reader **out, ls_vault *vault,
                           const char *name)
{
    *out = NULL;
    uint64_t missed = 0;
    int status = vault_check_name(vault->folder, name);
    if (status != LS_OK)
        return status;
    ls_vault_reader *reader = calloc(1, sizeof *reader);
    if (reader != NULL)
        reader->hash = XXH3_createState();
    if (reader == NULL || reader->hash == NULL) {
        free(reader);
        return ls_error(LS_ENOMEM, "reading %s/%s", vault->folder, name);
    }
    reader->vault = vault;
    memcpy(reader->name, name, strlen(name) + 1);
    for (unsigned i = 0; i < TRIES; i++) {
        status = open_all(reader, &missed);
        if (status != LS_EAGAIN)
            break;
        close_all(reader);
    }
    *out = reader;
    if (status != LS_OK)
        ls_vault_reader_destroy(out);
    return status;
}

size_t ls_vault_reader_n(const ls_vault_reader *reader)
{
    return reader->manifest->n;
}

uint64_t ls_vault_reader_check(const ls_vault_reader *reader)
{
    return reader->manifest->check;
}

const struct ls_vault_shard *
ls_vault_reader_shard(const ls_vault_reader *reader, size_t at)
{
    return at < reader->manifest->n ? &reader->manifest->shards[at].told : NULL;
}

int ls_vault_reader_begin(ls_vault_reader *reader, size_t at)
{
    if (at >= reader->manifest->n)
        return ls_error(
            LS_EINVAL, "%s/%s has no shard %zu: there are %zu, from 0 on",
            reader->vault->folder, reader->name, at, reader->manifest->n);
    reader->at = at;
    reader->done = 0;
    (void)XXH3_64bits_reset(reader->hash);
    return LS_OK;
}

int ls_vault_reader_read(ls_vault_reader *reader, void *data, size_t size,
                         size_t *got)
{
    if (reader->at >= reader->manifest->n)
        return ls_error(LS_ESTATE, "%s/%s: no shard was begun",
                        reader->vault->folder, reader->name);
    const struct vault_shard *shard = &reader->manifest->shards[reader->at];
    const uint64_t left = shard->told.size - reader->done;
    const size_t n = left < size ? (size_t)left : size;
    ls_file *file =
        shard->file[0] != '\0' ? reader->files[reader->at] : reader->entry;
    const int status =
        ls_file_read_at(file, data, n, shard->offset + reader->done);
    if (status != LS_OK)
        return status;
    (void)XXH3_64bits_update(reader->hash, data, n);
    reader->done += n;
    if (reader->done == shard->told.size &&
        XXH3_64bits_digest(reader->hash) != shard->told.check) {
        char path[LS_PATH_MAX];
        shard_path(reader, reader->at, path);
        return vault_damaged(path, "its bytes have another checksum");
    }
    *got = n;
    return LS_OK;
}

void ls_vault_reader_destroy(ls_vault_reader **gone)
{
    ls_vault_reader *reader = gone == NULL ? NULL : *gone;
    if (reader == NULL)
        return;
    *gone = NULL;
    close_all(reader);
    XXH3_freeState(reader->hash);
    free(reader);
}

/* --- writing an entry shard by shard --- */

struct ls_vault_writer {
    ls_vault *vault;            /* borrow */
    XXH3_state_t *hash;         /* own; of the shard that is written */
    ls_file *file;              /* own; likewise; NULL: it has none yet */
    struct vault_shard *shards; /* own */
    size_t n;                   /* the last one may be written still */
    size_t small;               /* larger shards have a file */
    unsigned char *inside;      /* own; the others, one after another */
    size_t inside_size, inside_room;
    uint64_t check; /* of the manifest, once committed */
    bool ended;     /* it was committed, or that was tried, or cannot be */
    char unique[LS_FILE_UNIQUE_MAX];
    char name[LS_VAULT_NAME_MAX + 1];
};

int ls_vault_writer_create(ls_vault_writer **out, ls_vault *vault,
                           const char *name)
{
    *out = NULL;
    const int status = vault_check_name(vault->folder, name);
    if (status != LS_OK)
        return status;
    ls_vault_writer *writer = calloc(1, sizeof *writer);
    if (writer != NULL)
        writer->hash = XXH3_createState();
    if (writer == NULL || writer->hash == NULL) {
        free(writer);
        return ls_error(LS_ENOMEM, "writing %s/%s", vault->folder, name);
    }
    writer->vault = vault;
    ls_file_unique(writer->unique);
    memcpy(writer->name, name, strlen(name) + 1);
    *out = writer;
    return LS_OK;
}

void ls_vault_writer_set_small(ls_vault_writer *writer, size_t size)
{
    writer->small = size;
}

/* What was begun is complete, and on disk but for its name, or it will be with
 * the manifest. */
static int finish_shard(ls_vault_writer *writer)
{
    if (writer->n == 0)
        return LS_OK;
    writer->shards[writer->n - 1].told.check = XXH3_64bits_digest(writer->hash);
    if (writer->file == NULL)
        return LS_OK;
    const int status = ls_file_sync(writer->file);
    const int closed = ls_file_close(&writer->file);
    return status == LS_OK ? closed : status;
}

static int check_goes_on(const ls_vault_writer *writer)
{
    return writer->ended ? ls_error(LS_ESTATE,
                                    "%s/%s was committed, or an error ended it",
                                    writer->vault->folder, writer->name)
                         : LS_OK;
}

static int check_new(const ls_vault_writer *writer, const char *name)
{
    const int status = check_goes_on(writer);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < writer->n; i++) {
        if (strcmp(writer->shards[i].told.name, name) == 0)
            return ls_error(LS_EINVAL, "%s/%s has a shard %s already",
                            writer->vault->folder, writer->name, name);
    }
    return writer->n < LS_VAULT_SHARDS_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT, "%s/%s: more than %d shards",
                          writer->vault->folder, writer->name,
                          LS_VAULT_SHARDS_MAX);
}

/* The shard is not small: it gets a file, with what there is of it. */
static int make_file(ls_vault_writer *writer)
{
    struct vault_shard *shard = &writer->shards[writer->n - 1];
    char path[LS_PATH_MAX];
    (void)snprintf(shard->file, sizeof shard->file, "%s+%zu+%s", writer->name,
                   writer->n - 1, writer->unique);
    path_of(writer->vault, shard->file, path);
    const int status = ls_file_open(
        &writer->file, path, LS_FILE_WRITE | LS_FILE_CREATE | LS_FILE_EMPTY);
    if (status != LS_OK)
        return status == LS_ENOENT ? LS_EIO : status;
    const size_t size = (size_t)shard->told.size;
    if (size == 0)
        return LS_OK;
    writer->inside_size -= size;
    return ls_file_write_at(writer->file, writer->inside + writer->inside_size,
                            size, 0);
}

static int begin_shard(ls_vault_writer *writer, const char *name)
{
    struct vault_shard *grown =
        realloc(writer->shards, (writer->n + 1) * sizeof *grown);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "writing %s/%s", writer->vault->folder,
                        writer->name);
    writer->shards = grown;
    struct vault_shard *shard = &grown[writer->n++];
    memset(shard, 0, sizeof *shard);
    memcpy(shard->told.name, name, strlen(name) + 1);
    (void)XXH3_64bits_reset(writer->hash);
    return writer->small == 0 ? make_file(writer) : LS_OK;
}

int ls_vault_writer_shard(ls_vault_writer *writer, const char *name)
{
    int status = vault_check_name("a shard", name);
    if (status == LS_OK)
        status = check_new(writer, name);
    if (status != LS_OK)
        return status;
    status = finish_shard(writer);
    if (status == LS_OK)
        status = begin_shard(writer, name);
    writer->ended = status != LS_OK; /* what it has is not known */
    return status;
}

static int add_inside(ls_vault_writer *writer, const void *data, size_t size)
{
    if (writer->inside_size + size > writer->inside_room) {
        const size_t room = 2 * writer->inside_room + size;
        unsigned char *grown = realloc(writer->inside, room);
        if (grown == NULL)
            return ls_error(LS_ENOMEM, "writing %s/%s", writer->vault->folder,
                            writer->name);
        writer->inside = grown;
        writer->inside_room = room;
    }
    memcpy(writer->inside + writer->inside_size, data, size);
    writer->inside_size += size;
    return LS_OK;
}

int ls_vault_writer_add(ls_vault_writer *writer, const void *data, size_t size)
{
    int status = check_goes_on(writer);
    if (status == LS_OK && writer->n == 0)
        status = ls_error(LS_ESTATE, "%s/%s: no shard was begun",
                          writer->vault->folder, writer->name);
    if (status != LS_OK || size == 0)
        return status;
    struct ls_vault_shard *shard = &writer->shards[writer->n - 1].told;
    const bool small = writer->file == NULL && size <= writer->small &&
                       shard->size <= writer->small - size &&
                       writer->inside_size + size <= INSIDE_MAX;
    if (!small && writer->file == NULL)
        status = make_file(writer);
    if (status == LS_OK)
        status = small
                     ? add_inside(writer, data, size)
                     : ls_file_write_at(writer->file, data, size, shard->size);
    writer->ended = status != LS_OK;
    if (status != LS_OK)
        return status;
    (void)XXH3_64bits_update(writer->hash, data, size);
    shard->size += size;
    return LS_OK;
}

/* The first shard that has a file; NULL: none has. */
static const struct vault_shard *first_file(const ls_vault_writer *writer)
{
    for (size_t i = 0; i < writer->n; i++) {
        if (writer->shards[i].file[0] != '\0')
            return &writer->shards[i];
    }
    return NULL;
}

int ls_vault_writer_commit(ls_vault_writer *writer)
{
    char path[LS_PATH_MAX];
    int status = check_goes_on(writer);
    if (status == LS_OK && writer->n == 0)
        status = ls_error(LS_ESTATE, "%s/%s has no shards",
                          writer->vault->folder, writer->name);
    if (status != LS_OK)
        return status;
    writer->ended = true;
    status = finish_shard(writer);
    const struct ls_file_part inside = {writer->inside, writer->inside_size};
    path_of(writer->vault, writer->name, path);
    /* Their names, before one is on disk that names them. */
    if (status == LS_OK && first_file(writer) != NULL)
        status = ls_file_sync_name(path);
    return status == LS_OK
               ? replace_entry(writer->vault, writer->name, writer->shards,
                               writer->n, &inside, true, &writer->check)
               : status;
}

uint64_t ls_vault_writer_check(const ls_vault_writer *writer)
{
    return writer->check;
}

void ls_vault_writer_destroy(ls_vault_writer **gone)
{
    ls_vault_writer *writer = gone == NULL ? NULL : *gone;
    if (writer == NULL)
        return;
    *gone = NULL;
    char why[LS_ERROR_TEXT_MAX]; /* it is given up: that is to be told */
    (void)snprintf(why, sizeof why, "%s", ls_error_text());
    (void)ls_file_close(&writer->file); /* if it is open, it is not wanted */
    /* What was committed may have been replaced since by who did not see it:
     * then no entry names these, either. */
    const struct vault_shard *first = first_file(writer);
    if (first != NULL && is_orphan(writer->vault, writer->name, first->file))
        remove_shards(writer->vault, writer->name, writer->shards, writer->n);
    (void)ls_error(LS_OK, "%s", why);
    XXH3_freeState(writer->hash);
    free(writer->inside);
    free(writer->shards);
    free(writer);
}
