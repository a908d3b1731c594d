#include "sample.h"

#include <stddef.h>

#define N_OF(fields)     (sizeof(fields) / sizeof(fields)[0])
#define IN(type, member) .offset = offsetof(struct type, member)
#define NAME             .size = SAFE_NAME_MAX + 1, .check = safe_name_check
#define COUNT            .most = SERVICE_COUNT_MAX
#define PRIORITY         .high = SAMPLE_PRIORITY_MAX

static const struct ls_field sample_fields[] = {
    {"data_id", LS_FIELD_CHARS, IN(sample, data_id), NAME},
    {"task_id", LS_FIELD_CHARS, IN(sample, task_id), NAME},
    {"buffer_id", LS_FIELD_CHARS, IN(sample, buffer_id), NAME},
    {"compressor", LS_FIELD_CHARS, IN(sample, compressor), NAME},
    {"policy_iter", LS_FIELD_INT, IN(sample, policy_iter), COUNT},
    {"policy_version", LS_FIELD_INT, IN(sample, policy_version), COUNT},
    {"env_id", LS_FIELD_INT, IN(sample, env_id), COUNT},
    {"unroll_len", LS_FIELD_INT, IN(sample, unroll_len), .least = 1,
     .most = UINT32_MAX},
    {"priority", LS_FIELD_DOUBLE, IN(sample, priority), PRIORITY},
    {"cur_episode", LS_FIELD_INT, IN(sample, cur_episode), COUNT},
    {"cur_sample", LS_FIELD_INT, IN(sample, cur_sample), COUNT},
    {"cur_step", LS_FIELD_INT, IN(sample, cur_step), COUNT},
    {"size", LS_FIELD_INT, IN(sample, size), COUNT},
    {"parts", LS_FIELD_INT, IN(sample, parts), .least = 1, .most = UINT32_MAX},
    {"object_ref", LS_FIELD_CHARS, IN(sample, object_ref), NAME,
     .presence = LS_IF_SET},
};

static int check_parts(const void *data)
{
    const struct sample *sample = data;
    return sample->unroll_len % sample->parts == 0 &&
                   sample->size % sample->parts == 0
               ? LS_OK
               : ls_error(LS_EPROTO,
                          "parts: %lld do not divide %lld steps and %lld bytes",
                          (long long)sample->parts,
                          (long long)sample->unroll_len,
                          (long long)sample->size);
}

const struct ls_record sample_record = {.name = "a sample",
                                        .size = sizeof(struct sample),
                                        .fields = sample_fields,
                                        .n_fields = N_OF(sample_fields),
                                        .check = check_parts};

void sample_part(const struct sample *whole, int64_t part, struct sample *out)
{
    *out = *whole;
    out->split = whole->parts > 1;
    out->part = part;
    out->unroll_len = whole->unroll_len / whole->parts;
}

uint64_t sample_bytes(const struct sample *sample)
{
    const uint64_t size = (uint64_t)sample->size;
    return sample->split ? size / (uint64_t)sample->parts : size;
}

uint64_t sample_at(const struct sample *sample)
{
    return sample->split ? (uint64_t)sample->part * sample_bytes(sample) : 0;
}
