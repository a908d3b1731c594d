#include "lockstep/vault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "vault_parts.h"

/* Names and paths -------------------------------------------------------- */

static bool is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789._@~-";
    if (name == NULL || name[0] == '\0' || name[0] == '.')
        return false;
    const size_t length = strspn(name, allowed);
    return length <= LS_VAULT_NAME_MAX && name[length] == '\0';
}

int vault_check_name(const char *what, const char *name)
{
    return is_name(name)
               ? LS_OK
               : ls_error(LS_EINVAL,
                          "%s: \"%.120s\" is no name: 1 to %d of "
                          "[A-Za-z0-9._@~-], without a dot at its beginning",
                          what, name != NULL ? name : "", LS_VAULT_NAME_MAX);
}

void vault_path(const ls_vault *vault, const char *file, char path[LS_PATH_MAX])
{
    (void)snprintf(path, LS_PATH_MAX, "%.*s/%.*s", VAULT_FOLDER_MAX,
                   vault->folder, VAULT_FILE_MAX, file);
}

/* What may be removed ---------------------------------------------------- */

/* The manifest that an entry has now. Errors: as vault_manifest_read(), and
 * LS_ENOENT there is no such entry. */
static int look_at(const ls_vault *vault, const char *name,
                   struct vault_manifest **out)
{
    char path[LS_PATH_MAX];
    ls_file *file;
    vault_path(vault, name, path);
    int status = ls_file_open(&file, path, 0);
    if (status != LS_OK)
        return status;
    status = vault_manifest_read(file, path, name, out);
    (void)ls_file_close(&file); /* nothing was written */
    return status;
}

bool vault_is_orphan(const ls_vault *vault, const char *name, const char *file)
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

void vault_remove_shards(const ls_vault *vault, const char *name,
                         const struct vault_shard *shards, size_t n)
{
    char path[LS_PATH_MAX];
    vault_path(vault, name, path);
    if (ls_file_sync_name(path) != LS_OK)
        return; /* an entry might come back that names them */
    for (size_t i = 0; i < n; i++) {
        if (shards[i].file[0] == '\0')
            continue;
        vault_path(vault, shards[i].file, path);
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
    return is_name(entry) && digits > 0 && index[digits] == '+'
               ? index + digits + 1
               : NULL;
}

static int clear_one(void *self, const char *file)
{
    struct clearing *clearing = self;
    const ls_vault *vault = clearing->vault;
    char path[LS_PATH_MAX], entry[LS_VAULT_NAME_MAX + 1];
    const size_t part = sizeof VAULT_PART - 1;
    vault_path(vault, file, path);
    if (strncmp(file, VAULT_PART, part) == 0) {
        if (ls_file_is_left_over(file + part))
            (void)ls_file_remove(path);
        return LS_OK;
    }
    const char *writer = writer_of(file, entry);
    if (writer == NULL || !ls_file_is_left_over(writer) ||
        !vault_is_orphan(vault, entry, file))
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
    if (length > VAULT_FOLDER_MAX)
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
    (void)snprintf(part, sizeof part, VAULT_PART "%s", unique);
    vault_path(vault, name, path);
    vault_path(vault, part, temporary);
    struct vault_manifest *old = old_shards(vault, name);
    const int status = ls_file_replace(path, temporary, parts, 3, durable);
    if (status == LS_OK && old != NULL)
        vault_remove_shards(vault, name, old->shards, old->n);
    free(old);
    return status;
}

int vault_replace(const ls_vault *vault, const char *name,
                  const struct vault_shard *shards, size_t n,
                  const struct ls_file_part *data, bool durable)
{
    unsigned char tail[VAULT_TAIL_SIZE];
    struct ls_file_part parts[3] = {*data, {0}, {tail, sizeof tail}};
    ls_writer *writer;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    status = vault_manifest_write(writer, shards, n, &parts[1].data,
                                  &parts[1].size, tail);
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
        .told = {VAULT_VALUE, size, XXH3_64bits(data, size)}};
    const int status = vault_check_name(vault->folder, name);
    return status == LS_OK
               ? vault_replace(vault, name, &value, 1, &part, durable)
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
    vault_path(vault, name, path);
    struct vault_manifest *old = old_shards(vault, name);
    status = ls_file_remove(path);
    if (status == LS_OK && old != NULL)
        vault_remove_shards(vault, name, old->shards, old->n);
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
    return is_name(name) ? each->fn(each->self, name) : LS_OK;
}

int ls_vault_each(ls_vault *vault, int (*fn)(void *self, const char *name),
                  void *self)
{
    struct each each = {fn, self};
    return ls_folder_each(vault->folder, give_name, &each);
}
