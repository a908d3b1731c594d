/* Writing an entry shard by shard. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "vault_parts.h"

struct ls_vault_writer {
    ls_vault *vault;            /* borrow */
    XXH3_state_t *hash;         /* own; of the shard that is written */
    ls_file *file;              /* own; likewise; NULL: none */
    struct vault_shard *shards; /* own */
    size_t n;                   /* the last one may be written still */
    bool committed;             /* or it was tried */
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

/* What was begun is complete, and on disk but for its name. */
static int finish_shard(ls_vault_writer *writer)
{
    if (writer->file == NULL)
        return LS_OK;
    writer->shards[writer->n - 1].told.check = XXH3_64bits_digest(writer->hash);
    const int status = ls_file_sync(writer->file);
    const int closed = ls_file_close(&writer->file);
    return status == LS_OK ? closed : status;
}

static int check_new(const ls_vault_writer *writer, const char *name)
{
    if (writer->committed)
        return ls_error(LS_ESTATE, "%s/%s was committed", writer->vault->folder,
                        writer->name);
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

static int begin_shard(ls_vault_writer *writer, const char *name)
{
    char path[LS_PATH_MAX];
    struct vault_shard *grown =
        realloc(writer->shards, (writer->n + 1) * sizeof *grown);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "writing %s/%s", writer->vault->folder,
                        writer->name);
    writer->shards = grown;
    struct vault_shard *shard = &grown[writer->n];
    memset(shard, 0, sizeof *shard);
    memcpy(shard->told.name, name, strlen(name) + 1);
    (void)snprintf(shard->file, sizeof shard->file, "%s+%zu+%s", writer->name,
                   writer->n, writer->unique);
    vault_path(writer->vault, shard->file, path);
    const int status = ls_file_open(
        &writer->file, path, LS_FILE_WRITE | LS_FILE_CREATE | LS_FILE_EMPTY);
    if (status != LS_OK)
        return status == LS_ENOENT ? LS_EIO : status;
    writer->n++;
    (void)XXH3_64bits_reset(writer->hash);
    return LS_OK;
}

int ls_vault_writer_shard(ls_vault_writer *writer, const char *name)
{
    int status = vault_check_name("a shard", name);
    if (status == LS_OK)
        status = check_new(writer, name);
    if (status == LS_OK)
        status = finish_shard(writer);
    return status == LS_OK ? begin_shard(writer, name) : status;
}

int ls_vault_writer_add(ls_vault_writer *writer, const void *data, size_t size)
{
    if (writer->file == NULL)
        return ls_error(LS_ESTATE, "%s/%s: no shard was begun",
                        writer->vault->folder, writer->name);
    struct ls_vault_shard *shard = &writer->shards[writer->n - 1].told;
    const int status = ls_file_write_at(writer->file, data, size, shard->size);
    if (status != LS_OK)
        return status;
    (void)XXH3_64bits_update(writer->hash, data, size);
    shard->size += size;
    return LS_OK;
}

int ls_vault_writer_commit(ls_vault_writer *writer)
{
    const struct ls_file_part nothing = {NULL, 0};
    char path[LS_PATH_MAX];
    if (writer->committed || writer->n == 0)
        return ls_error(LS_ESTATE, "%s/%s %s", writer->vault->folder,
                        writer->name,
                        writer->committed ? "was committed" : "has no shards");
    writer->committed = true;
    int status = finish_shard(writer);
    vault_path(writer->vault, writer->name, path);
    /* Their names, before one is on disk that names them. */
    if (status == LS_OK)
        status = ls_file_sync_name(path);
    return status == LS_OK
               ? vault_replace(writer->vault, writer->name, writer->shards,
                               writer->n, &nothing, true)
               : status;
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
    if (writer->n > 0 &&
        vault_is_orphan(writer->vault, writer->name, writer->shards[0].file))
        vault_remove_shards(writer->vault, writer->name, writer->shards,
                            writer->n);
    (void)ls_error(LS_OK, "%s", why);
    XXH3_freeState(writer->hash);
    free(writer->shards);
    free(writer);
}
