#include "policy_value.h"

#include <string.h>

#include "sample.h"

static int read_fields(const ls_value *map, struct policy_value *out,
                       const void **data)
{
    int status = ls_value_int(ls_value_get(map, "iter"), &out->iter);
    if (status == LS_OK)
        status = ls_value_int(ls_value_get(map, "version"), &out->version);
    if (status == LS_OK)
        status = ls_value_binary(ls_value_get(map, "policy"), data,
                                 &out->weights.size);
    if (status == LS_OK &&
        (out->iter < 0 || out->version < 0 || out->iter > SERVICE_COUNT_MAX ||
         out->version > SERVICE_COUNT_MAX))
        status = ls_error(LS_EPROTO, "a count is negative, or too large");
    if (status == LS_OK && ls_value_size(map) != 3)
        status = ls_error(LS_EPROTO, "there are other fields");
    return status;
}

void policy_value_write(const struct policy_value *value, ls_writer *out)
{
    ls_write_map(out, 3);
    ls_write_string(out, "iter");
    ls_write_int(out, value->iter);
    ls_write_string(out, "version");
    ls_write_int(out, value->version);
    ls_write_string(out, "policy");
    ls_write_binary(out, value->weights.data, value->weights.size);
}

int policy_value_read(struct policy_value *out, const void *data, size_t size)
{
    const struct ls_codec_limits limits = {
        .max_bytes = (size_t)1 << 30, .max_depth = 2, .max_objects = 64};
    struct policy_value value = {.iter = 0};
    const void *weights = NULL;
    ls_document *document = NULL;
    int status = ls_document_read(&document, data, size, &limits);
    if (status == LS_OK)
        status = read_fields(ls_document_root(document), &value, &weights);
    struct ls_bytes copy = {NULL, 0};
    if (status == LS_OK)
        status = ls_bytes_set(&copy, weights, value.weights.size);
    ls_document_destroy(&document);
    if (status != LS_OK)
        return ls_error_at(status == LS_ENOMEM ? status : LS_EPROTO,
                           "a policy");
    value.weights = copy;
    *out = value;
    return LS_OK;
}

int policy_value_load(struct policy_value *out, const void *data, size_t size,
                      int (*load)(void *self, const struct ls_bytes *weights),
                      void *self)
{
    struct policy_value value;
    int status = policy_value_read(&value, data, size);
    if (status != LS_OK)
        return status;
    status = load(self, &value.weights);
    ls_bytes_clear(&value.weights);
    if (status == LS_OK)
        *out = value;
    return status;
}

int64_t policy_value_iterations(const struct policy_value *value)
{
    return value->version == 0 ? 0 : value->iter + 1;
}
