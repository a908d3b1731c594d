#include "fields.h"

#include <string.h>

void *ls_field_at(ls_context *context, const struct ls_field *field)
{
    return (char *)ls_context_data(context) + field->offset;
}

double ls_field_double(ls_context *context, const char *name, double fallback)
{
    const struct ls_field *field =
        ls_context_field(ls_context_type_of(context), name);
    if (field == NULL)
        return fallback;
    const void *at = ls_field_at(context, field);
    switch (field->type) {
    case LS_FIELD_BOOL:
        return *(const bool *)at ? 1.0 : 0.0;
    case LS_FIELD_INT:
        return (double)*(const int64_t *)at;
    case LS_FIELD_DOUBLE:
        return *(const double *)at;
    default:
        return fallback;
    }
}

int64_t ls_field_int(ls_context *context, const char *name, int64_t fallback)
{
    const struct ls_field *field =
        ls_context_field(ls_context_type_of(context), name);
    if (field == NULL || field->type != LS_FIELD_INT)
        return fallback;
    return *(const int64_t *)ls_field_at(context, field);
}
