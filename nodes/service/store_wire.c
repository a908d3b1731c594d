#include "store_wire.h"

#include <stdio.h>
#include <string.h>

#include <xxhash.h>

struct store_value store_value_of(const void *data, size_t size)
{
    return (struct store_value){size, XXH3_64bits(size > 0 ? data : "", size)};
}

bool store_value_equal(struct store_value a, struct store_value b)
{
    return a.size == b.size && a.hash == b.hash;
}

/* Fields ----------------------------------------------------------------- */

static int missing(const char *what, const char *field)
{
    return ls_error_at(LS_EPROTO, "%s: %s", what, field);
}

static int read_name(const ls_value *value, char out[SAFE_NAME_MAX + 1])
{
    const char *name;
    if (ls_value_string(value, &name) != LS_OK)
        return LS_EPROTO;
    if (!safe_name_is(name))
        return ls_error(LS_EPROTO, "\"%.80s\" is no name", name);
    memcpy(out, name, strlen(name) + 1);
    return LS_OK;
}

/* A map of exactly `n` pairs. */
static int read_map(const char *what, ls_document **out, size_t n,
                    const void *data, size_t size)
{
    ls_document *document = NULL;
    const int status = ls_document_read(&document, data, size, NULL);
    if (status != LS_OK)
        return ls_error_at(status == LS_ENOMEM ? status : LS_EPROTO, "%s",
                           what);
    const ls_value *map = ls_document_root(document);
    if (ls_value_type(map) != LS_VALUE_MAP || ls_value_size(map) != n) {
        ls_document_destroy(&document);
        return ls_error(LS_EPROTO, "%s: it is no map of %zu fields", what, n);
    }
    *out = document;
    return LS_OK;
}

/* A claim ---------------------------------------------------------------- */

void store_claim_write(const struct store_claim *claim, ls_writer *out)
{
    ls_write_map(out, 6);
    ls_write_string(out, "name");
    ls_write_string(out, claim->name);
    ls_write_string(out, "size");
    ls_write_uint(out, claim->value.size);
    ls_write_string(out, "hash");
    ls_write_uint(out, claim->value.hash);
    ls_write_string(out, "keep");
    ls_write_bool(out, claim->keep);
    ls_write_string(out, "rank");
    ls_write_uint(out, claim->rank);
    ls_write_string(out, "home");
    ls_write_uint(out, claim->home);
}

static int read_claim(struct store_claim *out, const ls_value *map)
{
    static const char what[] = "a put";
    if (read_name(ls_value_get(map, "name"), out->name) != LS_OK)
        return missing(what, "name");
    if (ls_value_uint(ls_value_get(map, "size"), &out->value.size) != LS_OK)
        return missing(what, "size");
    if (ls_value_uint(ls_value_get(map, "hash"), &out->value.hash) != LS_OK)
        return missing(what, "hash");
    if (ls_value_bool(ls_value_get(map, "keep"), &out->keep) != LS_OK)
        return missing(what, "keep");
    if (ls_value_uint(ls_value_get(map, "rank"), &out->rank) != LS_OK)
        return missing(what, "rank");
    if (ls_value_uint(ls_value_get(map, "home"), &out->home) != LS_OK)
        return missing(what, "home");
    return LS_OK;
}

int store_claim_read(struct store_claim *out, const void *data, size_t size)
{
    struct store_claim claim;
    ls_document *document = NULL;
    int status = read_map("a put", &document, 6, data, size);
    if (status == LS_OK)
        status = read_claim(&claim, ls_document_root(document));
    ls_document_destroy(&document);
    if (status == LS_OK)
        *out = claim;
    return status;
}

/* Names ------------------------------------------------------------------ */

void store_names_write(const char *const *names, size_t n, ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "names");
    ls_write_array(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        ls_write_string(out, names[i]);
}

static int read_names(struct store_names *out, const ls_value *names)
{
    out->n = ls_value_size(names);
    if (ls_value_type(names) != LS_VALUE_ARRAY || out->n == 0 ||
        out->n > STORE_GET_MAX)
        return ls_error(LS_EPROTO,
                        "a get: names: it is no array of 1 to %d names",
                        STORE_GET_MAX);
    for (size_t i = 0; i < out->n; i++) {
        if (read_name(ls_value_at(names, i), out->at[i]) != LS_OK)
            return missing("a get", "names");
    }
    return LS_OK;
}

int store_names_read(struct store_names *out, const void *data, size_t size)
{
    ls_document *document = NULL;
    int status = read_map("a get", &document, 1, data, size);
    if (status == LS_OK)
        status =
            read_names(out, ls_value_get(ls_document_root(document), "names"));
    ls_document_destroy(&document);
    return status;
}

void store_drop_write(const char *name, ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "name");
    ls_write_string(out, name);
}

int store_drop_read(char name[SAFE_NAME_MAX + 1], const void *data, size_t size)
{
    ls_document *document = NULL;
    int status = read_map("a drop", &document, 1, data, size);
    if (status == LS_OK &&
        read_name(ls_value_get(ls_document_root(document), "name"), name) !=
            LS_OK)
        status = missing("a drop", "name");
    ls_document_destroy(&document);
    return status;
}

/* Answers ---------------------------------------------------------------- */

void store_answer_write(const struct store_answer *answer, ls_writer *out)
{
    ls_write_map(out, 2);
    ls_write_string(out, "status");
    ls_write_int(out, answer->status);
    if (answer->status != LS_OK) {
        ls_write_string(out, "text");
        ls_write_string(out, answer->text);
        return;
    }
    ls_write_string(out, "values");
    ls_write_array(out, (uint32_t)(2 * answer->n));
    for (size_t i = 0; i < answer->n; i++) {
        ls_write_uint(out, answer->values[i].size);
        ls_write_uint(out, answer->values[i].hash);
    }
}

static int read_values(struct store_answer *out, const ls_value *values)
{
    static const char what[] = "an answer";
    const size_t n = ls_value_size(values);
    if (ls_value_type(values) != LS_VALUE_ARRAY || n % 2 != 0 ||
        n / 2 > STORE_GET_MAX)
        return ls_error(LS_EPROTO, "%s: values: it is no array of pairs", what);
    out->n = n / 2;
    for (size_t i = 0; i < out->n; i++) {
        struct store_value *value = &out->values[i];
        if (ls_value_uint(ls_value_at(values, 2 * i), &value->size) != LS_OK ||
            ls_value_uint(ls_value_at(values, 2 * i + 1), &value->hash) !=
                LS_OK)
            return missing(what, "values");
    }
    return LS_OK;
}

static int read_answer(struct store_answer *out, const ls_value *map)
{
    static const char what[] = "an answer";
    int64_t status;
    const char *text;
    if (ls_value_int(ls_value_get(map, "status"), &status) != LS_OK)
        return missing(what, "status");
    if (status > LS_OK || status < INT16_MIN ||
        strcmp(ls_status_name((int)status), "LS_?") == 0)
        return ls_error(LS_EPROTO, "%s: status: there is no %lld", what,
                        (long long)status);
    out->status = (int)status;
    if (status == LS_OK)
        return read_values(out, ls_value_get(map, "values"));
    if (ls_value_string(ls_value_get(map, "text"), &text) != LS_OK)
        return missing(what, "text");
    (void)snprintf(out->text, sizeof out->text, "%s", text);
    return LS_OK;
}

int store_answer_read(struct store_answer *out, const void *data, size_t size)
{
    ls_document *document = NULL;
    int status = read_map("an answer", &document, 2, data, size);
    if (status == LS_OK)
        status = read_answer(out, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}
