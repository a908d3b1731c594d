#include "policy_value.h"

#include <stdio.h>

#include "sample.h"

#define IN(member) .offset = offsetof(struct policy_value, member)

static const struct ls_field fields[] = {
    {"iter", LS_FIELD_INT, IN(iter), .most = SERVICE_COUNT_MAX},
    {"version", LS_FIELD_INT, IN(version), .most = SERVICE_COUNT_MAX},
    {"policy", LS_FIELD_BYTES, IN(weights)},
    {"attempt", LS_FIELD_INT, IN(attempt), .most = SERVICE_COUNT_MAX,
     .presence = LS_MAY_MISS},
};
/* Who reads it wrote it, or is of the same version. */
static const struct ls_record record = {.name = "a policy",
                                        .size = sizeof(struct policy_value),
                                        .fields = fields,
                                        .n_fields = 4};

int policy_training_name(char *out, const char *policy_id, int64_t version)
{
    const int n = snprintf(out, SAFE_NAME_MAX + 1, "%s.training%d", policy_id,
                           (int)(version % 2));
    return n <= SAFE_NAME_MAX
               ? LS_OK
               : ls_error(LS_ELIMIT, "policy %s has too long a name",
                          policy_id);
}

void policy_value_write(const struct policy_value *value, ls_writer *out)
{
    ls_record_write(&record, value, out);
}

int policy_value_read(struct policy_value *out, const void *data, size_t size)
{
    const struct ls_codec_limits limits = {
        .max_bytes = (size_t)1 << 30, .max_depth = 2, .max_objects = 64};
    return ls_record_decode(&record, out, data, size, &limits);
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
