/* Reading msgpack into a document. A document keeps its own copy of the bytes,
 * and msgpack-c's strings point into it. Each gets its NUL where the next
 * value's first byte was (or the one byte more at the end): by then nobody
 * reads that byte again. */
#include "lockstep/codec.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "codec_value.h"
#include "utf8.h"

/* Up to here, comparing each key with each is quicker than sorting them. */
#define FEW_KEYS 16

struct ls_document {
    msgpack_unpacked unpacked; /* own */
    char bytes[];              /* copied */
};

static int end_string(struct ls_document *document,
                      const msgpack_object_str *string)
{
    if (string->size == 0)
        return LS_OK;
    const size_t at = (size_t)(string->ptr - document->bytes);
    if (!ls_utf8_valid(string->ptr, string->size))
        return ls_error(LS_EPROTO, "the string at byte %zu is not UTF-8", at);
    document->bytes[at + string->size] = '\0';
    return LS_OK;
}

static int end_key(struct ls_document *document, const msgpack_object *key)
{
    if (key->type != MSGPACK_OBJECT_STR)
        return ls_error(LS_EPROTO, "a map has %s for a key; keys are strings",
                        ls_value_type_name(key));
    if (ls_value_has_nul(&key->via.str))
        return ls_error(LS_EPROTO, "a map's key has a NUL inside");
    return end_string(document, &key->via.str);
}

static int compare_keys(const void *a, const void *b)
{
    const msgpack_object_str *const one = a;
    const msgpack_object_str *const other = b;
    if (one->size != other->size)
        return one->size < other->size ? -1 : 1;
    return one->size > 0 ? memcmp(one->ptr, other->ptr, one->size) : 0;
}

static int key_comes_twice(const msgpack_object_str *key)
{
    return ls_error(LS_EPROTO, "the key \"%.64s\" comes twice in a map",
                    key->size > 0 ? key->ptr : "");
}

static int check_few_keys(const msgpack_object_map *map)
{
    for (uint32_t i = 1; i < map->size; i++) {
        const msgpack_object_str *const key = &map->ptr[i].key.via.str;
        for (uint32_t j = 0; j < i; j++)
            if (compare_keys(key, &map->ptr[j].key.via.str) == 0)
                return key_comes_twice(key);
    }
    return LS_OK;
}

static int check_unique_keys(const msgpack_object_map *map)
{
    if (map->size <= FEW_KEYS)
        return check_few_keys(map);
    msgpack_object_str *const keys = malloc(map->size * sizeof *keys);
    if (keys == NULL)
        return ls_error(LS_ENOMEM, "no memory for %u keys", map->size);
    for (uint32_t i = 0; i < map->size; i++)
        keys[i] = map->ptr[i].key.via.str;
    qsort(keys, map->size, sizeof *keys, compare_keys);
    int status = LS_OK;
    for (uint32_t i = 1; i < map->size && status == LS_OK; i++)
        if (compare_keys(&keys[i - 1], &keys[i]) == 0)
            status = key_comes_twice(&keys[i]);
    free(keys);
    return status;
}

/* Recursion ends: the depth was checked. */
static int end_strings(struct ls_document *document,
                       const msgpack_object *object)
{
    int status = LS_OK;
    if (object->type == MSGPACK_OBJECT_STR) {
        status = end_string(document, &object->via.str);
    } else if (object->type == MSGPACK_OBJECT_ARRAY) {
        const msgpack_object_array *const array = &object->via.array;
        for (uint32_t i = 0; i < array->size && status == LS_OK; i++)
            status = end_strings(document, &array->ptr[i]);
    } else if (object->type == MSGPACK_OBJECT_MAP) {
        const msgpack_object_map *const map = &object->via.map;
        for (uint32_t i = 0; i < map->size && status == LS_OK; i++) {
            status = end_key(document, &map->ptr[i].key);
            if (status == LS_OK)
                status = end_strings(document, &map->ptr[i].val);
        }
        if (status == LS_OK)
            status = check_unique_keys(map);
    }
    return status;
}

static int unpack(struct ls_document *document, size_t size)
{
    size_t end = 0;
    switch (
        msgpack_unpack_next(&document->unpacked, document->bytes, size, &end)) {
    case MSGPACK_UNPACK_SUCCESS:
        return end_strings(document, &document->unpacked.data);
    case MSGPACK_UNPACK_NOMEM_ERROR:
        return ls_error(LS_ENOMEM, "no memory for a document of %zu bytes",
                        size);
    default:
        return ls_error(LS_EPROTO, "msgpack-c stops at byte %zu", end);
    }
}

int ls_document_read(ls_document **out, const void *data, size_t size,
                     const struct ls_codec_limits *limits)
{
    *out = NULL;
    ls_document *document = malloc(sizeof *document + size + 1);
    if (document == NULL)
        return ls_error(LS_ENOMEM, "no memory for a document of %zu bytes",
                        size);
    /* What is checked is the copy: the original may lie in memory of another
     * process. */
    if (size != 0)
        memcpy(document->bytes, data, size);
    msgpack_unpacked_init(&document->unpacked);
    int status = ls_codec_check(document->bytes, size, limits);
    if (status == LS_OK)
        status = unpack(document, size);
    if (status == LS_OK)
        *out = document;
    else
        ls_document_destroy(&document);
    return status;
}

void ls_document_destroy(ls_document **document)
{
    if (document == NULL || *document == NULL)
        return;
    msgpack_unpacked_destroy(&(*document)->unpacked);
    free(*document);
    *document = NULL;
}

const ls_value *ls_document_root(const ls_document *document)
{
    return ls_value_from_object(&document->unpacked.data);
}
