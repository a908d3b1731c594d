/* context.h - the record that a task carries through its steps, described by a
 * table of its fields.
 *
 * The user's own struct holds the values; the table (lockstep/record.h)
 * describes its fields. It drives renewal between iterations (kept fields stay,
 * the rest starts afresh), printing, and msgpack in both directions. A field of
 * text, bytes, numbers or items owns its memory; set it with ls_text_set() and
 * similar functions.
 * Thread: serial. */
#ifndef LOCKSTEP_CONTEXT_H
#define LOCKSTEP_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Static: outlives every context of the type. The first field must be
 * {"total_step", LS_FIELD_INT, …, keep}: the task counts iterations in it. The
 * types are those from LS_FIELD_BOOL to LS_FIELD_ITEMS.
 * Members of the struct that are not in the table are the program's own:
 * initially zero, never printed, sent or renewed. Use them for private
 * pointers. */
struct ls_context_type {
    const char *name;
    size_t size; /* sizeof the user's struct */
    const struct ls_field *fields;
    size_t n_fields;
};

typedef struct ls_context ls_context;

/* out:    own; NULL after an error; give it to ls_context_destroy().
 * type:   borrow, for the life of the context.
 * Errors: LS_EINVAL the table: total_step is not first, or has another type; an
 *         offset beyond size; a duplicate name; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_context_create(ls_context **out,
                                         const struct ls_context_type *type);
LS_API void ls_context_destroy(ls_context **context);

/* The user's struct. Borrow: as long as the context; its address is fixed. */
LS_API void *ls_context_data(ls_context *context);
LS_API const struct ls_context_type *
ls_context_type_of(const ls_context *context);
/* The field of that name; NULL: the type has none. */
LS_API const struct ls_field *
ls_context_field(const struct ls_context_type *type, const char *name);

/* Keep a field from now on, for the life of the context.
 * Errors: LS_ENOENT no such field (the text has the nearest name). */
LS_MUST_USE LS_API int ls_context_keep(ls_context *context, const char *field);

/* Have fn called after each renewal, with the user's struct: for members
 * outside the table, and for defaults that a fallback cannot express. NULL:
 * not called. */
LS_API void ls_context_on_renew(ls_context *context,
                                void (*fn)(void *self, void *data), void *self);

/* Begin the next iteration: total_step + 1, kept fields unchanged, all others
 * at their initial values. */
LS_API void ls_context_renew(ls_context *context);

/* Write the fields named in names[n] (NULL, 0: all) as a map.
 * Errors: LS_ENOENT; the writer keeps its own. */
LS_MUST_USE LS_API int ls_context_write(const ls_context *context,
                                        const char *const *names, size_t n,
                                        ls_writer *out);
/* Set the fields that the map has; others stay. Unknown keys are ignored:
 * another version may have them.
 * Errors: LS_EPROTO a value of another type: the text names the field; fields
 *         before it are set; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_context_read(ls_context *context,
                                       const ls_value *map);

/* Print "name=value" pairs into text[size], cut but NUL-terminated. Returns
 * the length it needs. */
LS_API size_t ls_context_print(const ls_context *context, char *text,
                               size_t size);

/* Ready-made: training while collecting. */
struct ls_online_context {
    int64_t total_step;     /* kept */
    int64_t env_step;       /* kept; steps of environments so far */
    int64_t env_episode;    /* kept; episodes ended so far */
    int64_t train_iter;     /* kept; updates of the policy so far */
    int64_t last_eval_iter; /* kept; train_iter at the last evaluation, -1 */
    double last_eval_value; /* kept; its mean return, starts at -infinity */
    struct ls_bytes policy; /* weights as one value, when there are new ones */
    struct ls_bytes collect_kwargs;
    struct ls_items trajectories;
    struct ls_items episodes;
    struct ls_numbers trajectory_end_idx; /* into trajectories */
    struct ls_items train_data;
    struct ls_bytes train_output;
    struct ls_items eval_output;
    double eval_value; /* mean return of this step's evaluation, else NaN */
};
LS_API extern const struct ls_context_type ls_online_context_type;

/* Ready-made: training from data that is there already. */
struct ls_offline_context {
    int64_t total_step;       /* kept */
    int64_t trained_env_step; /* kept */
    int64_t train_epoch;      /* kept */
    int64_t train_iter;       /* kept */
    int64_t last_eval_iter;   /* kept; -1 before the first */
    double last_eval_value;   /* kept; starts at -infinity */
    struct ls_items train_data;
    struct ls_bytes train_output;
    struct ls_items eval_output;
    double eval_value; /* else NaN */
};
LS_API extern const struct ls_context_type ls_offline_context_type;

#ifdef __cplusplus
}
#endif

#endif
