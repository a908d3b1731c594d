#include "store_calls.h"

#include <stdio.h>
#include <string.h>

/* An array of `least` to `most` items. */
static int read_array(const char *what, ls_document **out, size_t least,
                      size_t most, const void *data, size_t size)
{
    ls_document *document = NULL;
    const int status = ls_document_read(&document, data, size, NULL);
    if (status != LS_OK)
        return ls_error_at(status == LS_ENOMEM ? status : LS_EPROTO, "%s",
                           what);
    const ls_value *root = ls_document_root(document);
    const size_t n = ls_value_size(root);
    if (ls_value_type(root) != LS_VALUE_ARRAY || n < least || n > most) {
        ls_document_destroy(&document);
        return ls_error(LS_EPROTO, "%s: it is no array of %zu to %zu", what,
                        least, most);
    }
    *out = document;
    return LS_OK;
}

static int read_name(const ls_value *value, char out[SAFE_NAME_MAX + 1])
{
    const char *name;
    if (ls_value_string(value, &name) != LS_OK)
        return ls_error_at(LS_EPROTO, "a store: name");
    if (!safe_name_is(name))
        return ls_error(LS_EPROTO, "a store: \"%.80s\" is no name", name);
    memcpy(out, name, strlen(name) + 1);
    return LS_OK;
}

void store_put_write(const struct store_put_call *put, ls_writer *out)
{
    ls_write_array(out, 3);
    ls_write_string(out, put->name);
    ls_write_bool(out, put->keep);
    ls_write_uint(out, put->rank);
}

static int read_put(struct store_put_call *out, const ls_value *put)
{
    if (ls_value_bool(ls_value_at(put, 1), &out->keep) != LS_OK)
        return ls_error_at(LS_EPROTO, "a put: keep");
    if (ls_value_uint(ls_value_at(put, 2), &out->rank) != LS_OK)
        return ls_error_at(LS_EPROTO, "a put: rank");
    return read_name(ls_value_at(put, 0), out->name);
}

int store_put_read(struct store_put_call *out, const void *data, size_t size)
{
    struct store_put_call put;
    ls_document *document = NULL;
    int status = read_array("a put", &document, 3, 3, data, size);
    if (status == LS_OK)
        status = read_put(&put, ls_document_root(document));
    ls_document_destroy(&document);
    if (status == LS_OK)
        *out = put;
    return status;
}

void store_names_write(const char *const *names, size_t n, ls_writer *out)
{
    ls_write_array(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        ls_write_string(out, names[i]);
}

int store_names_read(struct store_names *out, const void *data, size_t size)
{
    ls_document *document = NULL;
    int status = read_array("names", &document, 1, STORE_GET_MAX, data, size);
    const ls_value *names = status == LS_OK ? ls_document_root(document) : NULL;
    out->n = ls_value_size(names);
    for (size_t i = 0; i < out->n && status == LS_OK; i++)
        status = read_name(ls_value_at(names, i), out->at[i]);
    ls_document_destroy(&document);
    return status;
}

void store_answer_write(const struct store_answer *answer, ls_writer *out)
{
    const bool failed = answer->status != LS_OK;
    ls_write_array(out, (uint32_t)(failed ? 2 : 1 + answer->n));
    ls_write_int(out, answer->status);
    if (failed)
        ls_write_string(out, answer->text);
    for (size_t i = 0; i < answer->n && !failed; i++)
        ls_write_uint(out, answer->sizes[i]);
}

static int read_text(struct store_answer *out, const ls_value *answer)
{
    const char *text;
    if (ls_value_size(answer) != 2 ||
        ls_value_string(ls_value_at(answer, 1), &text) != LS_OK)
        return ls_error(LS_EPROTO, "an answer: it has no text");
    (void)snprintf(out->text, sizeof out->text, "%s", text);
    return LS_OK;
}

static int read_answer(struct store_answer *out, const ls_value *answer)
{
    int64_t status;
    if (ls_value_int(ls_value_at(answer, 0), &status) != LS_OK)
        return ls_error_at(LS_EPROTO, "an answer: status");
    if (status > LS_OK || status < INT16_MIN ||
        strcmp(ls_status_name((int)status), "LS_?") == 0)
        return ls_error(LS_EPROTO, "an answer: status: there is no %lld",
                        (long long)status);
    out->status = (int)status;
    out->n = 0;
    if (status != LS_OK)
        return read_text(out, answer);
    out->n = ls_value_size(answer) - 1;
    for (size_t i = 0; i < out->n; i++)
        if (ls_value_uint(ls_value_at(answer, 1 + i), &out->sizes[i]) != LS_OK)
            return ls_error_at(LS_EPROTO, "an answer: a size");
    return LS_OK;
}

int store_answer_read(struct store_answer *out, const void *data, size_t size)
{
    ls_document *document = NULL;
    int status =
        read_array("an answer", &document, 1, 1 + STORE_GET_MAX, data, size);
    if (status == LS_OK)
        status = read_answer(out, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}
