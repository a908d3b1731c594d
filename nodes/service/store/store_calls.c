#include "store_calls.h"

#include <stddef.h>
#include <string.h>

#include "lockstep/call.h"

#define IN(type, member) .offset = offsetof(struct type, member)
#define NAME             .size = SAFE_NAME_MAX + 1, .check = safe_name_check
#define RECORD(title, type, lines)                                             \
    {                                                                          \
        .name = (title), .size = sizeof(struct type), .fields = (lines),       \
        .n_fields = sizeof(lines) / sizeof(lines)[0]                           \
    }

static const struct ls_field put_fields[] = {
    {"name", LS_FIELD_CHARS, IN(store_put_call, name), NAME},
    {"keep", LS_FIELD_BOOL, IN(store_put_call, keep)},
    {"rank", LS_FIELD_UINT, IN(store_put_call, rank)},
};
const struct ls_record store_put_record =
    RECORD(STORE_PUT_CALL, store_put_call, put_fields);

static const struct ls_field range_fields[] = {
    {"name", LS_FIELD_CHARS, IN(store_range, name), NAME},
    {"at", LS_FIELD_UINT, IN(store_range, at)},
    {"size", LS_FIELD_UINT, IN(store_range, size)},
};
static const struct ls_record range =
    RECORD("a part", store_range, range_fields);
static const struct ls_field range_item = {.type = LS_FIELD_RECORD,
                                           .record = &range};
static const struct ls_field get_fields[] = {
    {"parts", LS_FIELD_LIST, IN(store_get_call, parts), .item = &range_item,
     .count = offsetof(struct store_get_call, n), .least = 1,
     .most = STORE_GET_MAX, .own = true},
};
const struct ls_record store_get_record =
    RECORD(STORE_GET_CALL, store_get_call, get_fields);

static const struct ls_field name_item = {.type = LS_FIELD_CHARS, NAME};
static const struct ls_field drop_fields[] = {
    {"names", LS_FIELD_LIST, IN(store_drop_call, names), .item = &name_item,
     .count = offsetof(struct store_drop_call, n), .least = 1,
     .most = STORE_GET_MAX, .own = true},
};
const struct ls_record store_drop_record =
    RECORD(STORE_DROP_CALL, store_drop_call, drop_fields);

static int check_status(const void *at)
{
    const int64_t status = *(const int64_t *)at;
    return status <= LS_OK && status >= INT16_MIN &&
                   strcmp(ls_status_name((int)status), "LS_?") != 0
               ? LS_OK
               : ls_error(LS_EPROTO, "there is no %lld", (long long)status);
}

static const struct ls_field size_item = {.type = LS_FIELD_UINT};
static const struct ls_field answer_fields[] = {
    {"status", LS_FIELD_INT, IN(store_answer, status), .check = check_status},
    {"text", LS_FIELD_CHARS, IN(store_answer, text),
     .size = sizeof((struct store_answer *)0)->text},
    {"sizes", LS_FIELD_LIST, IN(store_answer, sizes), .item = &size_item,
     .count = offsetof(struct store_answer, n), .most = STORE_GET_MAX},
};
const struct ls_record store_answer_record =
    RECORD("an answer", store_answer, answer_fields);

int store_call_read(const struct ls_record *record, void *out, const void *data,
                    size_t size)
{
    static const struct ls_codec_limits limits = {
        .max_bytes = LS_CALL_DATA_MAX, .max_depth = 4, .max_objects = 8192};
    return ls_record_decode(record, out, data, size, &limits);
}
