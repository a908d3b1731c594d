#include "message_fields.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/call.h"

static void fail(struct message *message, int status)
{
    if (message->status == LS_OK)
        message->status = status;
}

void message_wrong(struct message *message, const char *field)
{
    if (message->status == LS_OK)
        fail(message, ls_error_at(LS_EPROTO, "%s: %s", message->where, field));
}

bool message_has(const struct message *message, const char *field)
{
    return ls_value_get(message->map, field) != NULL;
}

const ls_value *message_value(struct message *message, const char *field)
{
    assert(message->n_asked < MESSAGE_FIELDS_MAX);
    message->asked[message->n_asked++] = field;
    const ls_value *value = ls_value_get(message->map, field);
    if (value == NULL && message->status == LS_OK)
        fail(message, ls_error(LS_EPROTO, "%s: %s: it is missing",
                               message->where, field));
    return message->status == LS_OK ? value : NULL;
}

void message_bool(struct message *message, const char *field, bool *out)
{
    const ls_value *value = message_value(message, field);
    if (value != NULL && ls_value_bool(value, out) != LS_OK)
        message_wrong(message, field);
}

void message_int(struct message *message, const char *field, int64_t low,
                 int64_t high, int64_t *out)
{
    const ls_value *value = message_value(message, field);
    int64_t number;
    if (value == NULL)
        return;
    if (ls_value_int(value, &number) != LS_OK) {
        message_wrong(message, field);
    } else if (number < low || number > high) {
        (void)ls_error(LS_EPROTO, "it is %lld, and must be %lld to %lld",
                       (long long)number, (long long)low, (long long)high);
        message_wrong(message, field);
    } else {
        *out = number;
    }
}

void message_number(struct message *message, const char *field, double *out)
{
    const ls_value *value = message_value(message, field);
    double number;
    if (value == NULL)
        return;
    if (ls_value_double(value, &number) != LS_OK) {
        message_wrong(message, field);
    } else if (!isfinite(number) || number < 0.0) {
        (void)ls_error(LS_EPROTO, "it is %g, and must be 0 or more", number);
        message_wrong(message, field);
    } else {
        *out = number;
    }
}

void message_double(struct message *message, const char *field, double *out)
{
    const ls_value *value = message_value(message, field);
    if (value == NULL)
        return;
    if (ls_value_type(value) == LS_VALUE_NIL)
        *out = NAN;
    else if (ls_value_double(value, out) != LS_OK)
        message_wrong(message, field);
}

void message_name(struct message *message, const char *field,
                  char out[SAFE_NAME_MAX + 1])
{
    const ls_value *value = message_value(message, field);
    const char *text;
    if (value == NULL)
        return;
    if (ls_value_string(value, &text) != LS_OK) {
        message_wrong(message, field);
    } else if (!safe_name_is(text)) {
        (void)ls_error(LS_EPROTO, "it is no name of 1 to %d of [A-Za-z0-9._@-]",
                       SAFE_NAME_MAX);
        message_wrong(message, field);
    } else {
        (void)snprintf(out, SAFE_NAME_MAX + 1, "%s", text);
    }
}

static bool was_asked(const struct message *message, const char *key)
{
    for (size_t i = 0; i < message->n_asked; i++)
        if (strcmp(message->asked[i], key) == 0)
            return true;
    return false;
}

/* Look for what nobody asked for. The key is a peer's: cut, and what is not
 * printable does not reach a log. */
static int close_map(struct message *message)
{
    for (size_t i = 0;
         message->status == LS_OK && i < ls_value_size(message->map); i++) {
        const char *key = ls_value_key(message->map, i);
        if (!was_asked(message, key) && safe_name_is(key))
            fail(message, ls_error(LS_EPROTO, "%s: %s: there is no such field",
                                   message->where, key));
        else if (!was_asked(message, key))
            fail(message, ls_error(LS_EPROTO,
                                   "%s: field %zu has no name that "
                                   "is known",
                                   message->where, i));
    }
    return message->status;
}

static void open_map(struct message *message, const ls_value *map)
{
    message->map = map;
    message->n_asked = 0;
    message->status = LS_OK;
    if (ls_value_type(map) != LS_VALUE_MAP)
        message->status =
            ls_error(LS_EPROTO, "%s: it is no map", message->where);
}

void message_enter(struct message *outer, const char *field,
                   struct message *inner)
{
    const ls_value *map = message_value(outer, field);
    (void)snprintf(inner->where, sizeof inner->where, "%.80s: %.40s",
                   outer->where, field);
    if (outer->status == LS_OK) {
        open_map(inner, map);
        return;
    }
    inner->map = NULL; /* what is wrong is known: nothing is looked at */
    inner->n_asked = 0;
    inner->status = outer->status;
}

void message_leave(struct message *outer, struct message *inner)
{
    const int status = close_map(inner);
    if (status != LS_OK)
        fail(outer, status);
}

static int read_map(const struct message_type *type, void *out,
                    const ls_value *root)
{
    struct message message;
    (void)snprintf(message.where, sizeof message.where, "%s", type->name);
    open_map(&message, root);
    type->read(&message, out);
    return close_map(&message);
}

int message_read(const struct message_type *type, void *out, const void *data,
                 size_t size)
{
    const struct ls_codec_limits limits = {
        .max_bytes = LS_CALL_DATA_MAX, .max_depth = 6, .max_objects = 32768};
    ls_document *document = NULL;
    int status = ls_document_read(&document, data, size, &limits);
    if (status != LS_OK)
        return ls_error_at(status == LS_ENOMEM ? status : LS_EPROTO, "%s",
                           type->name);
    void *made = calloc(1, type->size);
    status = made == NULL
                 ? ls_error(LS_ENOMEM, "%s: %zu bytes", type->name, type->size)
                 : read_map(type, made, ls_document_root(document));
    if (status == LS_OK)
        memcpy(out, made, type->size);
    else if (made != NULL && type->fini != NULL)
        type->fini(made);
    free(made);
    ls_document_destroy(&document);
    return status;
}
