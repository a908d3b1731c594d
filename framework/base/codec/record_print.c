/* A record as text, for logs and for people. */
#include <inttypes.h>
#include <stdlib.h>

#include "lockstep/record.h"
#include "text_pieces.h"

static void add_numbers(struct text *text, const struct ls_numbers *numbers)
{
    text_add(text, "[");
    for (size_t i = 0; i < numbers->n; i++)
        text_add(text, "%s%" PRId64, i > 0 ? "," : "", numbers->values[i]);
    text_add(text, "]");
}

/* What is nested, as the JSON of its value. */
static void add_json(struct text *text, const struct ls_field *field,
                     const void *data)
{
    const struct ls_codec_limits limits = {SIZE_MAX, 32, UINT32_MAX};
    ls_writer *writer = NULL;
    ls_document *document = NULL;
    const void *bytes;
    size_t size;
    char *json = NULL;
    if (ls_writer_create(&writer) == LS_OK) {
        ls_field_write(field, data, writer);
        if (ls_writer_bytes(writer, &bytes, &size) == LS_OK &&
            ls_document_read(&document, bytes, size, &limits) == LS_OK) {
            const ls_value *value = ls_document_root(document);
            size = ls_value_print(value, NULL, 0) + 1;
            json = malloc(size);
            if (json != NULL)
                (void)ls_value_print(value, json, size);
        }
    }
    text_add(text, "%s", json != NULL ? json : "?");
    free(json);
    ls_document_destroy(&document);
    ls_writer_destroy(&writer);
}

static void add_field(struct text *text, const struct ls_field *field,
                      const void *data)
{
    const void *const at = (const char *)data + field->offset;
    const char *string = NULL;
    text_add(text, "%s%s=", text->used > 0 ? " " : "", field->name);
    switch (field->type) {
    case LS_FIELD_BOOL:
        text_add(text, "%s", *(const bool *)at ? "true" : "false");
        break;
    case LS_FIELD_DOUBLE:
        text_add(text, "%g", *(const double *)at);
        break;
    case LS_FIELD_TEXT:
    case LS_FIELD_STRING:
        string = *(const char *const *)at;
        text_add(text, "\"%s\"", string != NULL ? string : "");
        break;
    case LS_FIELD_CHARS:
        text_add(text, "\"%s\"", (const char *)at);
        break;
    case LS_FIELD_BYTES:
        text_add(text, "<%zu bytes>", ((const struct ls_bytes *)at)->size);
        break;
    case LS_FIELD_NUMBERS:
        add_numbers(text, at);
        break;
    case LS_FIELD_ITEMS:
        text_add(text, "<%zu items>", ((const struct ls_items *)at)->n);
        break;
    default:
        add_json(text, field, data);
    }
}

size_t ls_record_print(const struct ls_record *record, const void *data,
                       char *text, size_t size)
{
    struct text out = {text, size, 0};
    for (size_t i = 0; i < record->n_fields; i++)
        if (record->fields[i].type != LS_FIELD_HAS)
            add_field(&out, &record->fields[i], data);
    return out.used;
}
