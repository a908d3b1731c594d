#include "lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lease_write_question(ls_writer *out, const struct lease_question *from)
{
    ls_write_map(out, 4);
    ls_write_string(out, "role");
    ls_write_string(out, from->role);
    ls_write_string(out, "key");
    ls_write_string(out, from->key);
    ls_write_string(out, "lasting");
    ls_write_bool(out, from->lasting);
    ls_write_string(out, "life");
    ls_write_uint(out, from->life);
}

void lease_write_answer(ls_writer *out, const struct lease_answer *from)
{
    ls_write_map(out, 3);
    ls_write_string(out, "id");
    ls_write_uint(out, from->id);
    ls_write_string(out, "attach");
    ls_write_string(out, from->attach);
    ls_write_string(out, "leases");
    ls_write_string(out, from->leases);
}

/* The text under a key, of at most size - 1 bytes. */
static int get_text(const ls_value *map, const char *key, char *out,
                    size_t size)
{
    const char *text = NULL;
    const int status = ls_value_string(ls_value_get(map, key), &text);
    if (status != LS_OK)
        return ls_error_at(LS_EPROTO, "%s", key);
    if (strlen(text) >= size)
        return ls_error(LS_EPROTO, "%s: over %zu bytes", key, size - 1);
    (void)snprintf(out, size, "%s", text);
    return LS_OK;
}

static int get_number(const ls_value *map, const char *key, uint64_t most,
                      uint64_t *out)
{
    uint64_t number = 0;
    if (ls_value_uint(ls_value_get(map, key), &number) != LS_OK)
        return ls_error_at(LS_EPROTO, "%s", key);
    if (number > most)
        return ls_error(LS_EPROTO, "%s: a number that is too large", key);
    *out = number;
    return LS_OK;
}

static int question_of(const ls_value *map, struct lease_question *out)
{
    int status = get_text(map, "role", out->role, sizeof out->role);
    if (status == LS_OK)
        status = get_text(map, "key", out->key, sizeof out->key);
    if (status == LS_OK && strlen(out->key) != LS_PUBLIC_KEY_MAX - 1)
        status = ls_error(LS_EPROTO, "key: it has %zu characters, not %d",
                          strlen(out->key), LS_PUBLIC_KEY_MAX - 1);
    if (status == LS_OK && strcspn(out->key, " \n") != strlen(out->key))
        status = ls_error(LS_EPROTO, "key: no key has a blank");
    if (status == LS_OK &&
        ls_value_bool(ls_value_get(map, "lasting"), &out->lasting) != LS_OK)
        status = ls_error_at(LS_EPROTO, "lasting");
    if (status == LS_OK)
        status = get_number(map, "life", UINT64_MAX, &out->life);
    return status == LS_OK && out->life == 0
               ? ls_error(LS_EPROTO, "life: it must not be 0")
               : status;
}

int lease_read_question(struct lease_question *out, const void *data,
                        size_t size)
{
    ls_document *document = NULL;
    struct lease_question question = {.life = 0};
    int status = ls_document_read(&document, data, size, NULL);
    if (status == LS_OK)
        status = question_of(ls_document_root(document), &question);
    ls_document_destroy(&document);
    if (status == LS_OK)
        *out = question;
    return status == LS_ENOMEM || status == LS_OK ? status : LS_EPROTO;
}

static int answer_of(const ls_value *map, struct lease_answer *out)
{
    uint64_t id = 0;
    const char *leases = NULL;
    int status = get_number(map, "id", UINT32_MAX, &id);
    if (status == LS_OK)
        status = get_text(map, "attach", out->attach, sizeof out->attach);
    if (status == LS_OK &&
        ls_value_string(ls_value_get(map, "leases"), &leases) != LS_OK)
        status = ls_error_at(LS_EPROTO, "leases");
    if (status != LS_OK)
        return status;
    out->id = (uint32_t)id;
    out->leases = strdup(leases);
    return out->leases != NULL ? LS_OK
                               : ls_error(LS_ENOMEM, "reading what id it is");
}

int lease_read_answer(struct lease_answer *out, const void *data, size_t size)
{
    ls_document *document = NULL;
    struct lease_answer answer = {.id = 0};
    int status = ls_document_read(&document, data, size, NULL);
    if (status == LS_OK)
        status = answer_of(ls_document_root(document), &answer);
    ls_document_destroy(&document);
    if (status == LS_OK)
        *out = answer;
    return status == LS_ENOMEM || status == LS_OK ? status : LS_EPROTO;
}

void lease_answer_fini(struct lease_answer *answer)
{
    free(answer->leases);
    answer->leases = NULL;
}
