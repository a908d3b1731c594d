/* fields.h - the fields of a context by name, for steps that work on any type
 * of context. */
#ifndef LOCKSTEP_FIELDS_H
#define LOCKSTEP_FIELDS_H

#include "lockstep/context.h"

/* Where the field is. */
void *ls_field_at(ls_context *context, const struct ls_field *field);

/* The value of a bool, int or double by name; `fallback` when the type has no
 * such field, or one of another kind. */
int64_t ls_field_int(ls_context *context, const char *name, int64_t fallback);
double ls_field_double(ls_context *context, const char *name, double fallback);

#endif
