/* The end of an entry's file: a msgpack map, and a binary that finds it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "plain_name.h"
#include "vault_manifest.h"

#define MANIFEST_MAX (1u << 20)
#define TAIL_HEAD    18 /* what the last field of the tail covers, too */

/* A binary of 24 bytes, as msgpack writes it. */
static const unsigned char magic[10] = {0xc4, 24,  'l', 's', 'v',
                                        'a',  'u', 'l', 't', '1'};

static void put_le(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_le(const unsigned char *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* The magic and the size are covered by being compared, and used. */
static uint64_t check_of(const void *manifest, size_t size)
{
    return XXH3_64bits_withSeed(manifest, size, size);
}

int vault_damaged(const char *path, const char *why)
{
    return ls_error(LS_EPROTO,
                    "%s is damaged (%s): put a copy in its place, or remove it",
                    path, why);
}

bool vault_is_name(const char *name)
{
    return plain_name_is(name, LS_VAULT_NAME_MAX, "._@~-") && name[0] != '.';
}

int vault_check_name(const char *what, const char *name)
{
    return vault_is_name(name)
               ? LS_OK
               : ls_error(LS_EINVAL,
                          "%s: \"%.120s\" is not a name: 1 to %d of "
                          "[A-Za-z0-9._@~-], without a dot at its beginning",
                          what, name != NULL ? name : "", LS_VAULT_NAME_MAX);
}

/* Write ------------------------------------------------------------------ */

static void write_shard(ls_writer *writer, const struct vault_shard *shard)
{
    const bool has_file = shard->file[0] != '\0';
    ls_write_map(writer, has_file ? 4 : 3);
    ls_write_string(writer, "name");
    ls_write_string(writer, shard->told.name);
    ls_write_string(writer, "size");
    ls_write_uint(writer, shard->told.size);
    ls_write_string(writer, "xxh3");
    ls_write_uint(writer, shard->told.check);
    if (has_file) {
        ls_write_string(writer, "file");
        ls_write_string(writer, shard->file);
    }
}

int vault_manifest_write(ls_writer *writer, const struct vault_shard *shards,
                         size_t n, const void **data, size_t *size,
                         unsigned char tail[VAULT_TAIL_SIZE], uint64_t *check)
{
    ls_write_map(writer, 1);
    ls_write_string(writer, "shards");
    ls_write_array(writer, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        write_shard(writer, &shards[i]);
    const int status = ls_writer_bytes(writer, data, size);
    if (status != LS_OK)
        return status;
    memcpy(tail, magic, sizeof magic);
    put_le(tail + sizeof magic, *size);
    *check = check_of(*data, *size);
    put_le(tail + TAIL_HEAD, *check);
    return LS_OK;
}

/* Read ------------------------------------------------------------------- */

/* Whether it is what the writer of this shard would have called its file. */
static bool is_file_of(const char *file, const char *entry, size_t index)
{
    char before[VAULT_FILE_MAX];
    const int n = snprintf(before, sizeof before, "%s+%zu+", entry, index);
    return strlen(file) < VAULT_FILE_MAX &&
           strncmp(file, before, (size_t)n) == 0 && file[n] != '\0' &&
           strchr(file, '/') == NULL;
}

/* Where it begins, from where the one before has ended. */
static bool read_shard(const ls_value *from, const char *entry, size_t index,
                       uint64_t *offset, struct vault_shard *out)
{
    const char *name, *file = "";
    const ls_value *has_file = ls_value_get(from, "file");
    *out = (struct vault_shard){.offset = *offset};
    if (ls_value_string(ls_value_get(from, "name"), &name) != LS_OK ||
        vault_check_name("a shard", name) != LS_OK ||
        ls_value_uint(ls_value_get(from, "size"), &out->told.size) != LS_OK ||
        ls_value_uint(ls_value_get(from, "xxh3"), &out->told.check) != LS_OK)
        return false;
    if (has_file != NULL && (ls_value_string(has_file, &file) != LS_OK ||
                             !is_file_of(file, entry, index)))
        return false;
    memcpy(out->told.name, name, strlen(name) + 1);
    memcpy(out->file, file, strlen(file) + 1);
    if (has_file != NULL)
        out->offset = 0;
    else if (out->told.size > INT64_MAX - *offset)
        return false;
    else
        *offset += out->told.size;
    return true;
}

/* in_front: bytes that stand in front of the manifest. */
static int read_shards(const ls_value *root, const char *path,
                       const char *entry, uint64_t in_front,
                       struct vault_manifest **out)
{
    const ls_value *shards = ls_value_get(root, "shards");
    const size_t n = ls_value_size(shards);
    uint64_t offset = 0;
    if (ls_value_type(shards) != LS_VALUE_ARRAY || n == 0 ||
        n > LS_VAULT_SHARDS_MAX)
        return vault_damaged(path, "its manifest names no shards");
    struct vault_manifest *manifest =
        malloc(sizeof *manifest + n * sizeof manifest->shards[0]);
    if (manifest == NULL)
        return ls_error(LS_ENOMEM, "reading %s", path);
    manifest->n = n;
    bool good = true;
    for (size_t i = 0; i < n && good; i++)
        good = read_shard(ls_value_at(shards, i), entry, i, &offset,
                          &manifest->shards[i]);
    if (!good || offset != in_front) {
        free(manifest);
        return vault_damaged(path, good ? "it has another size"
                                        : "its manifest is none of this entry");
    }
    *out = manifest;
    return LS_OK;
}

static int read_manifest(const unsigned char *bytes, size_t size,
                         const char *path, const char *entry, uint64_t in_front,
                         struct vault_manifest **out)
{
    const struct ls_codec_limits limits = {
        .max_bytes = MANIFEST_MAX, .max_depth = 8, .max_objects = 65536};
    ls_document *document;
    int status = ls_document_read(&document, bytes, size, &limits);
    if (status == LS_ENOMEM)
        return status;
    if (status != LS_OK)
        return vault_damaged(path, "its manifest cannot be read");
    status =
        read_shards(ls_document_root(document), path, entry, in_front, out);
    ls_document_destroy(&document);
    return status;
}

/* Room for all but large manifests with their tails. */
#define AT_ONCE 512

/* The end of the file in `end`: of at_once bytes, the tail last. */
static int read_end(ls_file *file, const char *path, const char *entry,
                    uint64_t size, const unsigned char *end, size_t at_once,
                    struct vault_manifest **out)
{
    const unsigned char *tail = end + at_once - VAULT_TAIL_SIZE;
    const uint64_t n = get_le(tail + sizeof magic);
    if (memcmp(tail, magic, sizeof magic) != 0 || n > size - VAULT_TAIL_SIZE ||
        n > MANIFEST_MAX)
        return vault_damaged(path, "it does not end as an entry does");
    const uint64_t at = size - VAULT_TAIL_SIZE - n;
    unsigned char *own = NULL;
    const unsigned char *bytes;
    int status = LS_OK;
    if (n <= at_once - VAULT_TAIL_SIZE) {
        bytes = tail - n;
    } else {
        bytes = own = malloc((size_t)n);
        if (own == NULL)
            return ls_error(LS_ENOMEM, "reading %s", path);
        status = ls_file_read_at(file, own, (size_t)n, at);
    }
    const uint64_t check = get_le(tail + TAIL_HEAD);
    if (status == LS_OK && check != check_of(bytes, (size_t)n))
        status = vault_damaged(path, "its manifest has another checksum");
    if (status == LS_OK)
        status = read_manifest(bytes, (size_t)n, path, entry, at, out);
    if (status == LS_OK)
        (*out)->check = check;
    free(own);
    return status;
}

int vault_manifest_read(ls_file *file, const char *path, const char *name,
                        struct vault_manifest **out)
{
    unsigned char end[AT_ONCE];
    uint64_t size;
    int status = ls_file_size(file, &size);
    if (status != LS_OK)
        return status;
    if (size < VAULT_TAIL_SIZE)
        return vault_damaged(path, "it is too short for an entry");
    const size_t at_once = size < AT_ONCE ? (size_t)size : AT_ONCE;
    status = ls_file_read_at(file, end, at_once, size - at_once);
    return status == LS_OK ? read_end(file, path, name, size, end, at_once, out)
                           : status;
}

bool vault_manifest_names(const struct vault_manifest *manifest,
                          const char *file)
{
    for (size_t i = 0; i < manifest->n; i++) {
        if (strcmp(manifest->shards[i].file, file) == 0)
            return true;
    }
    return false;
}

bool vault_manifest_has_files(const struct vault_manifest *manifest)
{
    for (size_t i = 0; i < manifest->n; i++) {
        if (manifest->shards[i].file[0] != '\0')
            return true;
    }
    return false;
}
