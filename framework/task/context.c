#include "lockstep/context.h"

#include <stdlib.h>
#include <string.h>

#include "context_fields.h"
#include "lockstep/config.h"

static int check_field(const struct ls_context_type *type, size_t index)
{
    const struct ls_field *field = &type->fields[index];
    if (field->name == NULL || (size_t)field->type > LS_FIELD_ITEMS)
        return ls_error(LS_EINVAL,
                        "context %s: field %zu of its table has no name, or no "
                        "type that there is",
                        type->name, index);
    const size_t size = ls_field_size(field);
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
        ls_field_reset(&type->fields[i], context->data);
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
        ls_field_reset(&type->fields[i], (*context)->data);
    free((*context)->data);
    free((*context)->keep);
    free(*context);
    *context = NULL;
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

const struct ls_field *ls_context_field(const struct ls_context_type *type,
                                        const char *name)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return &type->fields[i];
    return NULL;
}

int ls_context_find(const struct ls_context_type *type, const char *name,
                    const struct ls_field **out)
{
    *out = ls_context_field(type, name);
    return *out != NULL ? LS_OK : find_failed(type, name);
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
    const struct ls_field *found;
    const int status = ls_context_find(context->type, field, &found);
    if (found != NULL)
        context->keep[found - context->type->fields] = true;
    return status;
}

int64_t *ls_context_total_step(const ls_context *context)
{
    return (int64_t *)((char *)context->data + context->type->fields[0].offset);
}

void ls_context_reset(ls_context *context)
{
    for (size_t i = 0; i < context->type->n_fields; i++)
        if (!context->keep[i])
            ls_field_reset(&context->type->fields[i], context->data);
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
