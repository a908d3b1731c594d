/* A context as a msgpack map: field name to value; bytes are a binary, numbers
 * an array of integers, items an array of binaries. */
#include <string.h>

#include "context_fields.h"

static void write_numbers(const struct ls_numbers *numbers, ls_writer *out)
{
    ls_write_array(out, (uint32_t)numbers->n);
    for (size_t i = 0; i < numbers->n; i++)
        ls_write_int(out, numbers->values[i]);
}

static void write_items(const struct ls_items *items, ls_writer *out)
{
    ls_write_array(out, (uint32_t)items->n);
    for (size_t i = 0; i < items->n; i++)
        ls_write_binary(out, items->items[i].data, items->items[i].size);
}

static void write_field(const ls_context *context, const struct ls_field *field,
                        ls_writer *out)
{
    const union field_value value = field_value(context, field);
    ls_write_string(out, field->name);
    switch (field->type) {
    case LS_FIELD_BOOL:
        ls_write_bool(out, *value.boolean);
        break;
    case LS_FIELD_INT:
        ls_write_int(out, *value.integer);
        break;
    case LS_FIELD_DOUBLE:
        ls_write_double(out, *value.number);
        break;
    case LS_FIELD_TEXT:
        ls_write_string(out, *value.text);
        break;
    case LS_FIELD_BYTES:
        ls_write_binary(out, value.bytes->data, value.bytes->size);
        break;
    case LS_FIELD_NUMBERS:
        write_numbers(value.numbers, out);
        break;
    case LS_FIELD_ITEMS:
        write_items(value.items, out);
        break;
    }
}

int ls_context_write(const ls_context *context, const char *const *names,
                     size_t n, ls_writer *out)
{
    const struct ls_context_type *type = context->type;
    size_t index;
    if (names == NULL) {
        ls_write_map(out, (uint32_t)type->n_fields);
        for (size_t i = 0; i < type->n_fields; i++)
            write_field(context, &type->fields[i], out);
        return LS_OK;
    }
    for (size_t i = 0; i < n; i++) {
        const int status = ls_context_find(type, names[i], &index);
        if (status < 0)
            return status;
    }
    ls_write_map(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        if (ls_context_find(type, names[i], &index) == LS_OK)
            write_field(context, &type->fields[index], out);
    return LS_OK;
}

/* Each of these replaces the field only when all of the value is right. */

static int read_text(char **field, const ls_value *value)
{
    const char *text = NULL;
    if (ls_value_type(value) != LS_VALUE_NIL) {
        const int status = ls_value_string(value, &text);
        if (status < 0)
            return status;
    }
    return ls_text_set(field, text);
}

static int read_bytes(struct ls_bytes *field, const ls_value *value)
{
    const void *data;
    size_t size;
    const int status = ls_value_binary(value, &data, &size);
    return status < 0 ? status : ls_bytes_set(field, data, size);
}

static int check_array(const ls_value *value)
{
    return ls_value_type(value) == LS_VALUE_ARRAY
               ? LS_OK
               : ls_error(LS_EPROTO, "it is not an array");
}

static int read_numbers(struct ls_numbers *field, const ls_value *value)
{
    struct ls_numbers read = {NULL, 0};
    int status = check_array(value);
    const size_t n = ls_value_size(value);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        int64_t number;
        status = ls_value_int(ls_value_at(value, i), &number);
        if (status == LS_OK)
            status = ls_numbers_append(&read, number);
    }
    if (status < 0) {
        ls_numbers_clear(&read);
        return status;
    }
    ls_numbers_clear(field);
    *field = read;
    return LS_OK;
}

static int read_items(struct ls_items *field, const ls_value *value)
{
    struct ls_items read = {NULL, 0};
    int status = check_array(value);
    const size_t n = ls_value_size(value);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        const void *data;
        size_t size;
        status = ls_value_binary(ls_value_at(value, i), &data, &size);
        if (status == LS_OK)
            status = ls_items_append(&read, data, size);
    }
    if (status < 0) {
        ls_items_clear(&read);
        return status;
    }
    ls_items_clear(field);
    *field = read;
    return LS_OK;
}

static int read_field(const ls_context *context, const struct ls_field *field,
                      const ls_value *value)
{
    const union field_value to = field_value(context, field);
    switch (field->type) {
    case LS_FIELD_BOOL:
        return ls_value_bool(value, to.boolean);
    case LS_FIELD_INT:
        return ls_value_int(value, to.integer);
    case LS_FIELD_DOUBLE:
        return ls_value_double(value, to.number);
    case LS_FIELD_TEXT:
        return read_text(to.text, value);
    case LS_FIELD_BYTES:
        return read_bytes(to.bytes, value);
    case LS_FIELD_NUMBERS:
        return read_numbers(to.numbers, value);
    case LS_FIELD_ITEMS:
        return read_items(to.items, value);
    }
    return LS_OK;
}

static const struct ls_field *field_of(const struct ls_context_type *type,
                                       const char *name)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return &type->fields[i];
    return NULL;
}

int ls_context_read(ls_context *context, const ls_value *map)
{
    if (ls_value_type(map) != LS_VALUE_MAP)
        return ls_error(LS_EPROTO, "context %s: it is not a map",
                        context->type->name);
    const size_t n = ls_value_size(map);
    for (size_t i = 0; i < n; i++) {
        const struct ls_field *field =
            field_of(context->type, ls_value_key(map, i));
        if (field == NULL)
            continue;
        const int status = read_field(context, field, ls_value_at(map, i));
        if (status < 0)
            return ls_error_at(status, "context %s: field %s",
                               context->type->name, field->name);
    }
    return LS_OK;
}
