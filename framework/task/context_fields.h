/* context_fields.h - what the files of the context share. */
#ifndef CONTEXT_FIELDS_H
#define CONTEXT_FIELDS_H

#include <stdbool.h>

#include "lockstep/context.h"

struct ls_context {
    const struct ls_context_type *type;      /* borrow */
    void *data;                              /* own; the user's struct */
    bool *keep;                              /* own; one per field */
    void (*renewed)(void *self, void *data); /* NULL: nobody is told */
    void *self;
};

/* As ls_context_field(); or LS_ENOENT and NULL, with the nearest name in the
 * text. */
int ls_context_find(const struct ls_context_type *type, const char *name,
                    const struct ls_field **out);

/* Whether the field named by name[length] survives renewal; false when there
 * is none. */
bool ls_context_keeps(const ls_context *context, const char *name,
                      size_t length);

/* Give all fields that are not kept their first values. */
void ls_context_reset(ls_context *context);

/* The field that the task counts iterations in. */
int64_t *ls_context_total_step(const ls_context *context);

#endif
