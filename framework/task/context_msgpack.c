/* A context as a msgpack map, some of it or all, and as text. */
#include <string.h>

#include "context_fields.h"

static void write_field(const ls_context *context, const struct ls_field *field,
                        ls_writer *out)
{
    ls_write_string(out, field->name);
    ls_field_write(field, context->data, out);
}

int ls_context_write(const ls_context *context, const char *const *names,
                     size_t n, ls_writer *out)
{
    const struct ls_context_type *type = context->type;
    const struct ls_field *field;
    if (names == NULL) {
        ls_write_map(out, (uint32_t)type->n_fields);
        for (size_t i = 0; i < type->n_fields; i++)
            write_field(context, &type->fields[i], out);
        return LS_OK;
    }
    for (size_t i = 0; i < n; i++) {
        const int status = ls_context_find(type, names[i], &field);
        if (status < 0)
            return status;
    }
    ls_write_map(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        if (ls_context_find(type, names[i], &field) == LS_OK)
            write_field(context, field, out);
    return LS_OK;
}

int ls_context_read(ls_context *context, const ls_value *map)
{
    if (ls_value_type(map) != LS_VALUE_MAP)
        return ls_error(LS_EPROTO, "context %s: it is not a map",
                        context->type->name);
    const size_t n = ls_value_size(map);
    for (size_t i = 0; i < n; i++) {
        const struct ls_field *field =
            ls_context_field(context->type, ls_value_key(map, i));
        if (field == NULL)
            continue;
        const int status =
            ls_field_read(field, context->data, ls_value_at(map, i));
        if (status < 0)
            return ls_error_at(status, "context %s: field %s",
                               context->type->name, field->name);
    }
    return LS_OK;
}

size_t ls_context_print(const ls_context *context, char *text, size_t size)
{
    const struct ls_context_type *type = context->type;
    const struct ls_record record = {.name = type->name,
                                     .size = type->size,
                                     .fields = type->fields,
                                     .n_fields = type->n_fields};
    return ls_record_print(&record, context->data, text, size);
}
