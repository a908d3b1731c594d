#include "codec_value.h"

#include <string.h>

const char *ls_value_type_name(const msgpack_object *object)
{
    switch (object->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        return "a boolean";
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return "an integer";
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return "a double";
    case MSGPACK_OBJECT_STR:
        return "a string";
    case MSGPACK_OBJECT_BIN:
        return "a binary";
    case MSGPACK_OBJECT_ARRAY:
        return "an array";
    case MSGPACK_OBJECT_MAP:
        return "a map";
    default:
        return "nil";
    }
}

bool ls_value_has_nul(const msgpack_object_str *string)
{
    return string->size > 0 && memchr(string->ptr, '\0', string->size) != NULL;
}

enum ls_value_type ls_value_type(const ls_value *value)
{
    if (value == NULL)
        return LS_VALUE_NIL;
    switch (ls_value_object(value)->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        return LS_VALUE_BOOL;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return LS_VALUE_INT;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return LS_VALUE_DOUBLE;
    case MSGPACK_OBJECT_STR:
        return LS_VALUE_STRING;
    case MSGPACK_OBJECT_BIN:
        return LS_VALUE_BINARY;
    case MSGPACK_OBJECT_ARRAY:
        return LS_VALUE_ARRAY;
    case MSGPACK_OBJECT_MAP:
        return LS_VALUE_MAP;
    default:
        return LS_VALUE_NIL;
    }
}

static int not_wanted(const ls_value *value, const char *wanted)
{
    if (value == NULL)
        return ls_error(LS_ENOENT, "there is no value where %s was expected",
                        wanted);
    return ls_error(LS_EPROTO, "found %s where %s was expected",
                    ls_value_type_name(ls_value_object(value)), wanted);
}

/* The object when it has the type; else NULL. */
static const msgpack_object *of_type(const ls_value *value,
                                     enum ls_value_type type)
{
    return value != NULL && ls_value_type(value) == type
               ? ls_value_object(value)
               : NULL;
}

int ls_value_bool(const ls_value *value, bool *out)
{
    const msgpack_object *const object = of_type(value, LS_VALUE_BOOL);
    if (object == NULL)
        return not_wanted(value, "a boolean");
    *out = object->via.boolean;
    return LS_OK;
}

int ls_value_int(const ls_value *value, int64_t *out)
{
    const msgpack_object *const object = of_type(value, LS_VALUE_INT);
    if (object == NULL)
        return not_wanted(value, "an integer");
    if (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER &&
        object->via.u64 > INT64_MAX)
        return ls_error(LS_EPROTO, "the integer %llu is over 2^63 - 1",
                        (unsigned long long)object->via.u64);
    *out = object->via.i64;
    return LS_OK;
}

int ls_value_uint(const ls_value *value, uint64_t *out)
{
    const msgpack_object *const object = of_type(value, LS_VALUE_INT);
    if (object == NULL)
        return not_wanted(value, "an integer");
    if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return ls_error(LS_EPROTO, "the integer %lld is negative",
                        (long long)object->via.i64);
    *out = object->via.u64;
    return LS_OK;
}

int ls_value_double(const ls_value *value, double *out)
{
    if (value == NULL)
        return not_wanted(value, "a number");
    const msgpack_object *const object = ls_value_object(value);
    switch (object->type) {
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        *out = (double)object->via.u64;
        return LS_OK;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        *out = (double)object->via.i64;
        return LS_OK;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        *out = object->via.f64;
        return LS_OK;
    default:
        return not_wanted(value, "a number");
    }
}

int ls_value_string(const ls_value *value, const char **text)
{
    const msgpack_object *const object = of_type(value, LS_VALUE_STRING);
    if (object == NULL)
        return not_wanted(value, "a string");
    const msgpack_object_str *const string = &object->via.str;
    if (ls_value_has_nul(string))
        return ls_error(LS_EPROTO, "a string has a NUL inside");
    *text = string->size > 0 ? string->ptr : "";
    return LS_OK;
}

int ls_value_binary(const ls_value *value, const void **data, size_t *size)
{
    const msgpack_object *const object = of_type(value, LS_VALUE_BINARY);
    if (object == NULL)
        return not_wanted(value, "a binary");
    *data = object->via.bin.ptr;
    *size = object->via.bin.size;
    return LS_OK;
}

static int copy_numbers(const ls_value *value, void *values, size_t n,
                        size_t number_size)
{
    const void *data = NULL;
    size_t size = 0;
    const int status = ls_value_binary(value, &data, &size);
    if (status != LS_OK)
        return status;
    if (size % number_size != 0 || size / number_size != n)
        return ls_error(LS_EPROTO,
                        "a binary of %zu bytes is not %zu numbers of %zu bytes",
                        size, n, number_size);
    if (size > 0)
        memcpy(values, data, size);
    return LS_OK;
}

int ls_value_doubles(const ls_value *value, double *values, size_t n)
{
    return copy_numbers(value, values, n, sizeof *values);
}

int ls_value_floats(const ls_value *value, float *values, size_t n)
{
    return copy_numbers(value, values, n, sizeof *values);
}

int ls_value_rng(const ls_value *value, struct ls_rng *out)
{
    struct ls_rng read;
    const size_t n = sizeof read.state / sizeof *read.state;
    if (value == NULL)
        return ls_error(LS_ENOENT, "there is no generator");
    if (ls_value_type(value) != LS_VALUE_ARRAY || ls_value_size(value) != n)
        return ls_error(LS_EPROTO, "not a generator, which is an array of four "
                                   "numbers");
    for (size_t i = 0; i < n; i++)
        if (ls_value_uint(ls_value_at(value, i), &read.state[i]) != LS_OK)
            return ls_error_at(LS_EPROTO, "number %zu of a generator", i);
    if (!ls_rng_is_valid(&read))
        return ls_error(LS_EPROTO, "a generator of nothing but zeros, which "
                                   "would draw 0 for ever");
    *out = read;
    return LS_OK;
}

size_t ls_value_size(const ls_value *value)
{
    if (value == NULL)
        return 0;
    const msgpack_object *const object = ls_value_object(value);
    switch (object->type) {
    case MSGPACK_OBJECT_STR:
        return object->via.str.size;
    case MSGPACK_OBJECT_BIN:
        return object->via.bin.size;
    case MSGPACK_OBJECT_ARRAY:
        return object->via.array.size;
    case MSGPACK_OBJECT_MAP:
        return object->via.map.size;
    default:
        return 0;
    }
}

const ls_value *ls_value_at(const ls_value *value, size_t index)
{
    const msgpack_object *object = of_type(value, LS_VALUE_ARRAY);
    if (object != NULL && index < object->via.array.size)
        return ls_value_from_object(&object->via.array.ptr[index]);
    object = of_type(value, LS_VALUE_MAP);
    if (object != NULL && index < object->via.map.size)
        return ls_value_from_object(&object->via.map.ptr[index].val);
    return NULL;
}

const char *ls_value_key(const ls_value *value, size_t index)
{
    const msgpack_object *const object = of_type(value, LS_VALUE_MAP);
    if (object == NULL || index >= object->via.map.size)
        return NULL;
    const msgpack_object_str *const key =
        &object->via.map.ptr[index].key.via.str;
    return key->size > 0 ? key->ptr : "";
}

const ls_value *ls_value_get(const ls_value *value, const char *key)
{
    const msgpack_object *const object = of_type(value, LS_VALUE_MAP);
    if (object == NULL)
        return NULL;
    const size_t size = strlen(key);
    for (uint32_t i = 0; i < object->via.map.size; i++) {
        const msgpack_object_kv *const pair = &object->via.map.ptr[i];
        if (pair->key.via.str.size == size &&
            (size == 0 || memcmp(pair->key.via.str.ptr, key, size) == 0))
            return ls_value_from_object(&pair->val);
    }
    return NULL;
}
