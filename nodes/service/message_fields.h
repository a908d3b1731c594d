/* message_fields.h - the fields of a map that a peer sent, read strictly.
 *
 * Each field is asked for by name; the first that is missing or wrong is kept
 * as the error, and the rest is passed over, so that a message is read without
 * a check per field. A field that nobody asked for is an error as well.
 * Thread: serial. */
#ifndef LOCKSTEP_MESSAGE_FIELDS_H
#define LOCKSTEP_MESSAGE_FIELDS_H

#include <stdbool.h>

#include "lockstep/codec.h"

#include "safe_name.h"

#define MESSAGE_FIELDS_MAX 16

struct message {
    char where[128];     /* what errors begin with */
    const ls_value *map; /* borrow */
    int status;
    size_t n_asked;
    const char *asked[MESSAGE_FIELDS_MAX];
};

/* What can be read from the data of a call. */
struct message_type {
    const char *name; /* "learner_start_task" */
    size_t size;      /* of the struct, zeroed before it is read */
    void (*read)(struct message *message, void *out);
    void (*fini)(void *out); /* frees what read has made; or NULL */
};

/* Read one value of this type.
 * out:    written on success only.
 * Errors: LS_EPROTO; LS_ENOMEM. */
LS_MUST_USE int message_read(const struct message_type *type, void *out,
                             const void *data, size_t size);

/* The fields. Integers are low … high; a number is finite and not negative. */
void message_bool(struct message *message, const char *field, bool *out);
void message_int(struct message *message, const char *field, int64_t low,
                 int64_t high, int64_t *out);
void message_number(struct message *message, const char *field, double *out);
/* Any double, also what is no number; nil is NaN. */
void message_double(struct message *message, const char *field, double *out);
void message_name(struct message *message, const char *field,
                  char out[SAFE_NAME_MAX + 1]);

/* Whether there is such a field; asks for nothing. */
bool message_has(const struct message *message, const char *field);
/* A field by itself; NULL: it is missing, which is noted. */
const ls_value *message_value(struct message *message, const char *field);
/* What is wrong with a field, by ls_error_text(). */
void message_wrong(struct message *message, const char *field);

/* A field that is a map: read it, then close it, whatever was wrong. */
void message_enter(struct message *outer, const char *field,
                   struct message *inner);
void message_leave(struct message *outer, struct message *inner);

#endif
