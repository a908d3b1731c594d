/* What does not fit whole - a character, an escape, a number - is left out,
 * and everything after it: a cut text is still text. */
#include "codec_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec_depth.h"
#include "utf8.h"

struct sink {
    char *text;
    size_t room; /* its NUL not counted */
    size_t used;
    size_t wanted;
};

static void put(struct sink *sink, const char *piece, size_t size)
{
    if (sink->text != NULL && sink->used == sink->wanted &&
        size <= sink->room - sink->used) {
        memcpy(sink->text + sink->used, piece, size);
        sink->used += size;
    }
    sink->wanted += size;
}

static void put_text(struct sink *sink, const char *piece)
{
    put(sink, piece, strlen(piece));
}

static void put_escaped(struct sink *sink, unsigned char character)
{
    char escape[8];
    const char *const named = "\b\f\n\r\t";
    const char *const found =
        character != '\0' ? strchr(named, character) : NULL;
    if (character == '"' || character == '\\')
        snprintf(escape, sizeof escape, "\\%c", character);
    else if (found != NULL)
        snprintf(escape, sizeof escape, "\\%c", "bfnrt"[found - named]);
    else
        snprintf(escape, sizeof escape, "\\u%04x", character);
    put_text(sink, escape);
}

static void put_string(struct sink *sink, const msgpack_object_str *string)
{
    put_text(sink, "\"");
    for (size_t i = 0; i < string->size;) {
        const unsigned char first = (unsigned char)string->ptr[i];
        const size_t size =
            ls_utf8_character(string->ptr + i, string->size - i);
        if (first < 0x20 || first == '"' || first == '\\' || first == 0x7F)
            put_escaped(sink, first);
        else
            put(sink, string->ptr + i, size);
        i += size;
    }
    put_text(sink, "\"");
}

/* The shortest form that reads back as the same number, with a point or an
 * exponent, so that it is seen to be a double. */
static void put_double(struct sink *sink, double number)
{
    if (isnan(number)) {
        put_text(sink, "\"NaN\"");
        return;
    }
    if (isinf(number)) {
        put_text(sink, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    /* The locale may say ','. */
    char *const point = text + strcspn(text, ",");
    if (*point == ',')
        *point = '.';
    put_text(sink, text);
    if (strpbrk(text, ".e") == NULL)
        put_text(sink, ".0");
}

static void put_value(struct sink *sink, const msgpack_object *object);

static void put_array(struct sink *sink, const msgpack_object_array *array)
{
    put_text(sink, "[");
    for (uint32_t i = 0; i < array->size; i++) {
        if (i > 0)
            put_text(sink, ",");
        put_value(sink, &array->ptr[i]);
    }
    put_text(sink, "]");
}

static void put_map(struct sink *sink, const msgpack_object_map *map)
{
    put_text(sink, "{");
    for (uint32_t i = 0; i < map->size; i++) {
        if (i > 0)
            put_text(sink, ",");
        put_string(sink, &map->ptr[i].key.via.str);
        put_text(sink, ":");
        put_value(sink, &map->ptr[i].val);
    }
    put_text(sink, "}");
}

static void put_value(struct sink *sink, const msgpack_object *object)
{
    char text[40];
    switch (object->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        put_text(sink, object->via.boolean ? "true" : "false");
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        snprintf(text, sizeof text, "%" PRIu64, object->via.u64);
        put_text(sink, text);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        snprintf(text, sizeof text, "%" PRId64, object->via.i64);
        put_text(sink, text);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        put_double(sink, object->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        put_string(sink, &object->via.str);
        break;
    case MSGPACK_OBJECT_BIN:
        snprintf(text, sizeof text, "{\"binary\":%" PRIu32 "}",
                 object->via.bin.size);
        put_text(sink, text);
        break;
    case MSGPACK_OBJECT_ARRAY:
        put_array(sink, &object->via.array);
        break;
    case MSGPACK_OBJECT_MAP:
        put_map(sink, &object->via.map);
        break;
    default:
        put_text(sink, "null");
    }
}

size_t ls_value_print(const ls_value *value, char *text, size_t size)
{
    struct sink sink = {.text = text, .room = size > 0 ? size - 1 : 0};
    if (value != NULL)
        put_value(&sink, ls_value_object(value));
    else
        put_text(&sink, "null");
    if (size > 0)
        text[sink.used] = '\0';
    return sink.wanted;
}

static int print(const ls_value *value, char **out)
{
    const size_t size = ls_value_print(value, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL)
        return ls_error(LS_ENOMEM, "printing JSON");
    (void)ls_value_print(value, text, size);
    *out = text;
    return LS_OK;
}

int ls_writer_print(ls_writer *writer, char **out)
{
    /* This program has written it: a writer has no other bounds. */
    static const struct ls_codec_limits any = {.max_bytes = SIZE_MAX,
                                               .max_depth = LS_CODEC_DEPTH_MAX,
                                               .max_objects = UINT32_MAX};
    const void *data;
    size_t size;
    int status = ls_writer_bytes(writer, &data, &size);
    if (status != LS_OK)
        return status;
    ls_document *document = NULL;
    status = ls_document_read(&document, data, size, &any);
    if (status == LS_OK)
        status = print(ls_document_root(document), out);
    ls_document_destroy(&document);
    return status;
}
