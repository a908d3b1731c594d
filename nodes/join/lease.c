#include "lease.h"

#include <string.h>

#define N_OF(fields)     (sizeof(fields) / sizeof(fields)[0])
#define IN(type, member) .offset = offsetof(struct type, member)
#define CHARS(type, member)                                                    \
    LS_FIELD_CHARS, IN(type, member), .size = sizeof((struct type *)0)->member

int lease_refusal(int status)
{
    switch (status) {
    case LS_EAGAIN:
    case LS_ENOMEM:
        return LEASE_NONE_FREE;
    case LS_EEXIST:
        return LEASE_KEY_IN_USE;
    default:
        return LEASE_NOT_FOR_YOU;
    }
}

int lease_refused(int code)
{
    switch (code) {
    case LEASE_NONE_FREE:
    case LEASE_KEY_IN_USE:
    case LS_CALL_BUSY:
    case LS_CALL_SHUTTING_DOWN:
        return LS_EAGAIN;
    default:
        return LS_ECONFIG;
    }
}

static int check_key(const void *at)
{
    const char *key = at;
    if (strlen(key) != LS_PUBLIC_KEY_MAX - 1)
        return ls_error(LS_EPROTO, "it has %zu characters, not %d", strlen(key),
                        LS_PUBLIC_KEY_MAX - 1);
    return strcspn(key, " \n") == strlen(key)
               ? LS_OK
               : ls_error(LS_EPROTO, "no key has a blank");
}

static int check_text(const void *at)
{
    return *(char *const *)at != NULL ? LS_OK
                                      : ls_error(LS_EPROTO, "it is nil");
}

static const struct ls_field question_fields[] = {
    {"role", CHARS(lease_question, role)},
    {"key", CHARS(lease_question, key), .check = check_key},
    {"lasting", LS_FIELD_BOOL, IN(lease_question, lasting)},
    {"life", LS_FIELD_UINT, IN(lease_question, life), .least = 1},
};
const struct ls_record lease_question_record = {
    .name = "a question for an id",
    .size = sizeof(struct lease_question),
    .fields = question_fields,
    .n_fields = N_OF(question_fields),
    .open = true};

static const struct ls_field answer_fields[] = {
    {"id", LS_FIELD_UINT32, IN(lease_answer, id)},
    {"attach", CHARS(lease_answer, attach)},
    {"leases", LS_FIELD_TEXT, IN(lease_answer, leases), .check = check_text},
};
const struct ls_record lease_answer_record = {.name = "an answer with an id",
                                              .size =
                                                  sizeof(struct lease_answer),
                                              .fields = answer_fields,
                                              .n_fields = N_OF(answer_fields),
                                              .open = true};

int lease_table_of_plan(const struct plan *plan, struct lease_table *out)
{
    size_t n = 0;
    const int status = lease_table_init(out, plan->n_nodes);
    for (size_t i = 0; i < plan->n_nodes && status == LS_OK; i++)
        if (plan->nodes[i].leased)
            out->leases[n++] = (struct lease){.id = plan->nodes[i].id,
                                              .role = (int)plan->nodes[i].role};
    out->n = n;
    return status;
}
