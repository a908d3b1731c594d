/* An array of numbers as one, or as all of them. */
#include <math.h>
#include <string.h>

#include "lockstep/driver.h"

/* Numbers that came in a message or a file may lie anywhere. */
#define NUMBER(type, data, at)                                                 \
    do {                                                                       \
        type value;                                                            \
        memcpy(&value, (const char *)(data) + (at) * sizeof value,             \
               sizeof value);                                                  \
        return (double)value;                                                  \
    } while (0)

static double number(enum ls_blob_type type, const void *data, size_t at)
{
    switch (type) {
    case LS_BLOB_U8:
        NUMBER(uint8_t, data, at);
    case LS_BLOB_I32:
        NUMBER(int32_t, data, at);
    case LS_BLOB_I64:
        NUMBER(int64_t, data, at);
    case LS_BLOB_F32:
        NUMBER(float, data, at);
    case LS_BLOB_F64:
    case LS_BLOB_BYTES:
    default:
        NUMBER(double, data, at);
    }
}

static double fold(enum ls_reduce reduce, double so_far, double next)
{
    switch (reduce) {
    case LS_REDUCE_MIN:
        return isnan(next) || next < so_far ? next : so_far;
    case LS_REDUCE_MAX:
        return isnan(next) || next > so_far ? next : so_far;
    case LS_REDUCE_SUM:
    case LS_REDUCE_MEAN:
    case LS_REDUCE_NONE:
    default:
        return so_far + next;
    }
}

static int reduce_all(const struct ls_blob_form *form, const void *data,
                      size_t count, enum ls_reduce reduce, double *out)
{
    if (count == 0 && reduce != LS_REDUCE_SUM)
        return ls_error(LS_EINVAL,
                        "a tensor without elements has no minimum, maximum or "
                        "mean");
    double result = count > 0 ? number(form->type, data, 0) : 0.0;
    for (size_t i = 1; i < count; i++)
        result = fold(reduce, result, number(form->type, data, i));
    *out = reduce == LS_REDUCE_MEAN ? result / (double)count : result;
    return LS_OK;
}

int ls_numeric(const struct ls_blob_form *form, const void *data,
               enum ls_reduce reduce, double *out, size_t capacity, size_t *n)
{
    uint64_t bytes;
    size_t count = 1;
    int status = ls_blob_form_bytes(form, &bytes);
    if (status == LS_OK && form->type == LS_BLOB_BYTES)
        status = ls_error(LS_EINVAL, "a blob of bytes has no numbers: "
                                     "ls_numeric() takes one of another type");
    if (status == LS_OK && (unsigned)reduce > LS_REDUCE_MEAN)
        status = ls_error(LS_EINVAL, "ls_numeric(): there is no reduction %d",
                          (int)reduce);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < form->n_dims; i++)
        count *= (size_t)form->shape[i];
    const bool is_list = reduce == LS_REDUCE_NONE || count == 1;
    const size_t written = is_list ? count : 1;
    if (written > capacity)
        return ls_error(LS_ELIMIT, "there are %zu numbers, and room for %zu",
                        written, capacity);
    for (size_t i = 0; is_list && i < count; i++)
        out[i] = number(form->type, data, i);
    if (!is_list)
        status = reduce_all(form, data, count, reduce, out);
    if (status == LS_OK)
        *n = written;
    return status;
}
