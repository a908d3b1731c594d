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
    {"split_begin", LS_FIELD_HAS, IN(sample, split)},
    {"split_begin", LS_FIELD_INT, IN(sample, split_begin), .most = UINT32_MAX,
     .presence = LS_IF_FLAG, .flag = offsetof(struct sample, split)},
    {"object_ref", LS_FIELD_CHARS, IN(sample, object_ref), NAME,
     .presence = LS_IF_SET},
};

const struct ls_record sample_record = {.name = "a sample",
                                        .size = sizeof(struct sample),
                                        .fields = sample_fields,
                                        .n_fields = N_OF(sample_fields)};

static const struct ls_field drawn_fields[] = {
    {"replay_buffer_idx", LS_FIELD_INT, IN(drawn_sample, slot), COUNT},
    {"replay_unique_id", LS_FIELD_CHARS, IN(drawn_sample, unique_id), NAME},
    {"staleness", LS_FIELD_INT, IN(drawn_sample, staleness), COUNT},
    {"sample", LS_FIELD_RECORD, IN(drawn_sample, sample),
     .record = &sample_record},
};

const struct ls_record drawn_sample_record = {.name = "a drawn sample",
                                              .size =
                                                  sizeof(struct drawn_sample),
                                              .fields = drawn_fields,
                                              .n_fields = N_OF(drawn_fields)};

static const struct ls_field update_fields[] = {
    {"replay_buffer_idx", LS_FIELD_INT, IN(priority_update, slot), COUNT},
    {"replay_unique_id", LS_FIELD_CHARS, IN(priority_update, unique_id), NAME},
    {"priority", LS_FIELD_DOUBLE, IN(priority_update, priority), PRIORITY},
};

const struct ls_record priority_update_record = {
    .name = "a priority",
    .size = sizeof(struct priority_update),
    .fields = update_fields,
    .n_fields = N_OF(update_fields)};
