/* Reading an entry shard by shard. */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "vault_parts.h"

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
    vault_path(reader->vault, file[0] != '\0' ? file : reader->name, path);
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
    int status = ls_file_open(&reader->files[at], path, 0);
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
    vault_path(reader->vault, reader->name, path);
    int status = ls_file_open(&reader->entry, path, 0);
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

const struct ls_vault_shard *
ls_vault_reader_shard(const ls_vault_reader *reader, size_t at)
{
    return at < reader->manifest->n ? &reader->manifest->shards[at].told : NULL;
}

int ls_vault_reader_begin(ls_vault_reader *reader, size_t at)
{
    if (at >= reader->manifest->n)
        return ls_error(LS_EINVAL, "%s/%s: shard %zu of %zu",
                        reader->vault->folder, reader->name, at,
                        reader->manifest->n);
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
