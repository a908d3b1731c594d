#include "lockstep/context.h"

#include <stdlib.h>
#include <string.h>

#include "context_fields.h"
#include "lockstep/config.h"

static const size_t sizes[] = {
    [LS_FIELD_BOOL] = sizeof(bool),
    [LS_FIELD_INT] = sizeof(int64_t),
    [LS_FIELD_DOUBLE] = sizeof(double),
    [LS_FIELD_TEXT] = sizeof(char *),
    [LS_FIELD_BYTES] = sizeof(struct ls_bytes),
    [LS_FIELD_NUMBERS] = sizeof(struct ls_numbers),
    [LS_FIELD_ITEMS] = sizeof(struct ls_items),
};

static int check_field(const struct ls_context_type *type, size_t index)
{
    const struct ls_field *field = &type->fields[index];
    if (field->name == NULL ||
        (size_t)field->type >= sizeof sizes / sizeof *sizes)
        return ls_error(LS_EINVAL,
                        "context %s: field %zu of its table has no name, or no "
                        "type that there is",
                        type->name, index);
    const size_t size = sizes[field->type];
    if (size > type->size || field->offset > type->size - size)
        return ls_error(LS_EINVAL,
                        "context %s: field %s at offset %zu does not fit into "
                        "a struct of %zu bytes",
                        type->name, field->name, field->offset, type->size);
    for (size_t i = 0; i < index; i++)
        if (strcmp(type->fields[i].name, field->name) == 0)
            return ls_error(LS_EINVAL,
                            "context %s: field %s is in its table twice",
                            type->name, field->name);
    return LS_OK;
}

static int check_type(const struct ls_context_type *type)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const int status = check_field(type, i);
        if (status < 0)
            return status;
    }
    if (type->n_fields == 0 || !type->fields[0].keep ||
        type->fields[0].type != LS_FIELD_INT ||
        strcmp(type->fields[0].name, "total_step") != 0)
        return ls_error(LS_EINVAL,
                        "context %s: the first field of its table must be "
                        "total_step, an int that is kept",
                        type->name);
    return LS_OK;
}

int ls_context_create(ls_context **out, const struct ls_context_type *type)
{
    *out = NULL;
    const int status = check_type(type);
    if (status < 0)
        return status;

    ls_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return ls_error(LS_ENOMEM, "context %s: no memory", type->name);
    context->type = type;
    context->data = calloc(1, type->size);
    context->keep = calloc(type->n_fields, sizeof *context->keep);
    if (context->data == NULL || context->keep == NULL) {
        free(context->data);
        free(context->keep);
        free(context);
        return ls_error(LS_ENOMEM, "context %s: no memory", type->name);
    }
    for (size_t i = 0; i < type->n_fields; i++) {
        context->keep[i] = type->fields[i].keep;
        ls_context_field_reset(context, &type->fields[i]);
    }
    *out = context;
    return LS_OK;
}

void ls_context_destroy(ls_context **context)
{
    if (context == NULL || *context == NULL)
        return;
    const struct ls_context_type *type = (*context)->type;
    for (size_t i = 0; i < type->n_fields; i++)
        ls_context_field_reset(*context, &type->fields[i]);
    free((*context)->data);
    free((*context)->keep);
    free(*context);
    *context = NULL;
}

void ls_context_field_reset(const ls_context *context,
                            const struct ls_field *field)
{
    const union field_value value = field_value(context, field);
    switch (field->type) {
    case LS_FIELD_BOOL:
        *value.boolean = field->fallback != 0;
        break;
    case LS_FIELD_INT:
        *value.integer = (int64_t)field->fallback;
        break;
    case LS_FIELD_DOUBLE:
        *value.number = field->fallback;
        break;
    case LS_FIELD_TEXT:
        free(*value.text);
        *value.text = NULL;
        break;
    case LS_FIELD_BYTES:
        ls_bytes_clear(value.bytes);
        break;
    case LS_FIELD_NUMBERS:
        ls_numbers_clear(value.numbers);
        break;
    case LS_FIELD_ITEMS:
        ls_items_clear(value.items);
        break;
    }
}

static int find_failed(const struct ls_context_type *type, const char *name)
{
    const char **names = calloc(type->n_fields, sizeof *names);
    if (names == NULL)
        return ls_error(LS_ENOENT, "context %s has no field \"%s\"", type->name,
                        name);
    for (size_t i = 0; i < type->n_fields; i++)
        names[i] = type->fields[i].name;
    const char *near = ls_nearest(name, names, type->n_fields);
    free(names);
    if (near == NULL)
        return ls_error(LS_ENOENT, "context %s has no field \"%s\"", type->name,
                        name);
    return ls_error(LS_ENOENT,
                    "context %s has no field \"%s\"; did you mean \"%s\"?",
                    type->name, name, near);
}

int ls_context_find(const struct ls_context_type *type, const char *name,
                    size_t *index)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        if (strcmp(type->fields[i].name, name) == 0) {
            *index = i;
            return LS_OK;
        }
    }
    return find_failed(type, name);
}

bool ls_context_keeps(const ls_context *context, const char *name,
                      size_t length)
{
    for (size_t i = 0; i < context->type->n_fields; i++) {
        const char *field = context->type->fields[i].name;
        if (strncmp(field, name, length) == 0 && field[length] == '\0')
            return context->keep[i];
    }
    return false;
}

void *ls_context_data(ls_context *context)
{
    return context->data;
}

const struct ls_context_type *ls_context_type_of(const ls_context *context)
{
    return context->type;
}

int ls_context_keep(ls_context *context, const char *field)
{
    size_t index;
    const int status = ls_context_find(context->type, field, &index);
    if (status == LS_OK)
        context->keep[index] = true;
    return status;
}

int64_t *ls_context_total_step(const ls_context *context)
{
    return field_value(context, &context->type->fields[0]).integer;
}

void ls_context_reset(ls_context *context)
{
    for (size_t i = 0; i < context->type->n_fields; i++)
        if (!context->keep[i])
            ls_context_field_reset(context, &context->type->fields[i]);
    if (context->renewed != NULL)
        context->renewed(context->self, context->data);
}

void ls_context_on_renew(ls_context *context,
                         void (*fn)(void *self, void *data), void *self)
{
    context->renewed = fn;
    context->self = self;
}

void ls_context_renew(ls_context *context)
{
    ls_context_reset(context);
    ++*ls_context_total_step(context);
}
