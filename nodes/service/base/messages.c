#include "messages.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/call.h"

/* Longest trajectory, in steps. */
#define UNROLL_MAX 1048576

#define N_OF(fields)     (sizeof(fields) / sizeof(fields)[0])
#define IN(type, member) .offset = offsetof(struct type, member)
#define NAME             .size = SAFE_NAME_MAX + 1, .check = safe_name_check
#define COUNT            .most = SERVICE_COUNT_MAX
#define FROM_1           .least = 1, .most = SERVICE_COUNT_MAX
#define VERSION          .least = -1, .most = SERVICE_COUNT_MAX
#define AMOUNT           .high = DBL_MAX
#define IF(type, member)                                                       \
    .presence = LS_IF_FLAG, .flag = offsetof(struct type, member)
#define UNLESS(type, member)                                                   \
    .presence = LS_IF_NO_FLAG, .flag = offsetof(struct type, member)

/* A table of struct `type`, whose lines are type_fields. */
#define RECORD(title, type, suffix, checked)                                   \
    static const struct ls_record type##_##suffix = {                          \
        .name = (title),                                                       \
        .size = sizeof(struct type),                                           \
        .fields = type##_##suffix##_fields,                                    \
        .n_fields = N_OF(type##_##suffix##_fields),                            \
        .check = (checked)}

/* The same of a whole message. */
#define MESSAGE(title, type)                                                   \
    RECORD(title, type, message, NULL);                                        \
    void type##_write(const struct type *in, ls_writer *out)                   \
    {                                                                          \
        ls_record_write(&type##_message, in, out);                             \
    }                                                                          \
    int type##_read(struct type *out, const void *data, size_t size)           \
    {                                                                          \
        return ls_record_decode(&type##_message, out, data, size, &limits);    \
    }

static const struct ls_codec_limits limits = {
    .max_bytes = LS_CALL_DATA_MAX, .max_depth = 6, .max_objects = 32768};

/* What asks for nothing, and what answers a start ------------------------- */

static const struct ls_record nothing = {.name = CALL_RESOURCE, .size = 1};

void service_nothing_write(ls_writer *out)
{
    ls_record_write(&nothing, NULL, out);
}

int service_nothing_read(const void *data, size_t size)
{
    char none;
    return ls_record_decode(&nothing, &none, data, size, &limits);
}

static const struct ls_field started_fields[] = {
    {"message", LS_FIELD_STRING, .offset = 0}};
static const struct ls_record started = {.name = "start answer",
                                         .size = sizeof(const char *),
                                         .fields = started_fields,
                                         .n_fields = 1};

void service_started_write(const char *message, ls_writer *out)
{
    ls_record_write(&started, &message, out);
}

int service_started_read(const void *data, size_t size)
{
    const char *unread; /* it is for people who look at the wire */
    return ls_record_decode(&started, &unread, data, size, &limits);
}

/* What messages share ----------------------------------------------------- */

#define KEY(type)                                                              \
    {"task_id", LS_FIELD_CHARS, IN(type, key.task_id), NAME},                  \
    {                                                                          \
        "attempt", LS_FIELD_INT, IN(type, key.attempt), FROM_1                 \
    }
#define NAMED(type, member)                                                    \
    {                                                                          \
#member, LS_FIELD_CHARS, IN(type, member), NAME                        \
    }

static const struct ls_field work_key_message_fields[] = {
    {"task_id", LS_FIELD_CHARS, IN(work_key, task_id), NAME},
    {"attempt", LS_FIELD_INT, IN(work_key, attempt), FROM_1},
};
MESSAGE("work", work_key)

static const struct ls_field service_resource_message_fields[] = {
    {"gpu", LS_FIELD_DOUBLE, IN(service_resource, gpu), AMOUNT},
    {"cpu", LS_FIELD_DOUBLE, IN(service_resource, cpu), AMOUNT},
    {"task_id", LS_FIELD_CHARS, IN(service_resource, task_id), NAME,
     .presence = LS_IF_SET},
    {"attempt", LS_FIELD_INT, IN(service_resource, attempt), FROM_1,
     IF(service_resource, task_id)},
    {"progress", LS_FIELD_INT, IN(service_resource, progress), COUNT,
     IF(service_resource, task_id)},
};
MESSAGE("resource answer", service_resource)

/* The learner's ----------------------------------------------------------- */

/* resource_info and …_cfg are maps of what the struct has side by side. */
static const struct ls_field learner_work_resources_fields[] = {
    {"gpu", LS_FIELD_DOUBLE, IN(learner_work, gpu), AMOUNT},
    {"cpu", LS_FIELD_DOUBLE, IN(learner_work, cpu), AMOUNT},
};
RECORD("resource_info", learner_work, resources, NULL);

static const struct ls_field learner_work_cfg_fields[] = {
    {"batch_size", LS_FIELD_INT, IN(learner_work, batch_size), .least = 1,
     .most = SERVICE_BATCH_MAX},
    {"iterations", LS_FIELD_INT, IN(learner_work, iterations), COUNT},
    {"send_policy_freq", LS_FIELD_INT, IN(learner_work, send_policy_freq),
     FROM_1},
    {"send_info_freq", LS_FIELD_INT, IN(learner_work, send_info_freq), FROM_1},
};
RECORD("learner_cfg", learner_work, cfg, NULL);

static const struct ls_field node_id = {.type = LS_FIELD_INT,
                                        .most = UINT32_MAX};

static const struct ls_field learner_work_info_fields[] = {
    KEY(learner_work),
    NAMED(learner_work, policy_id),
    NAMED(learner_work, buffer_id),
    NAMED(learner_work, learner_id),
    {"learner_cfg", LS_FIELD_RECORD, .record = &learner_work_cfg},
    {"done", LS_FIELD_INT, IN(learner_work, done), COUNT},
    {"resource_info", LS_FIELD_RECORD, .record = &learner_work_resources},
    {"ranks", LS_FIELD_LIST, IN(learner_work, ranks), .item = &node_id,
     .count = offsetof(struct learner_work, n_ranks),
     .most = SERVICE_RANKS_MAX},
};

/* They share each batch evenly, and there are two of them, or nobody shares. */
static int check_ranks(const void *at)
{
    const struct learner_work *work = at;
    bool rises = work->n_ranks != 1;
    for (size_t i = 1; i < work->n_ranks; i++)
        rises = rises && work->ranks[i] > work->ranks[i - 1];
    if (!rises)
        return ls_error(LS_EPROTO, "ranks: expected none, or the rising ids of "
                                   "two or more");
    if (work->n_ranks > 0 && work->batch_size % (int64_t)work->n_ranks != 0)
        return ls_error(LS_EPROTO,
                        "batch_size: %lld samples cannot be shared evenly by "
                        "%zu ranks",
                        (long long)work->batch_size, work->n_ranks);
    return LS_OK;
}
RECORD("task_info", learner_work, info, check_ranks);

static const struct ls_field learner_work_message_fields[] = {
    {"task_info", LS_FIELD_RECORD, .record = &learner_work_info}};
MESSAGE(CALL_LEARNER_START, learner_work)

void learner_values_write(const struct learner_info *info, ls_writer *out)
{
    ls_write_map(out, (uint32_t)info->n_values);
    for (size_t i = 0; i < info->n_values; i++) {
        ls_write_string(out, info->values[i].name);
        ls_write_double(out, info->values[i].value);
    }
}

static void write_values(const void *at, ls_writer *out)
{
    learner_values_write(at, out);
}

static int read_values(void *at, const ls_value *values)
{
    struct learner_info *info = at;
    const size_t n = ls_value_size(values);
    if (ls_value_type(values) != LS_VALUE_MAP || n > LEARNER_VALUES_MAX)
        return ls_error(LS_EPROTO, "it is not a map of up to %d numbers",
                        LEARNER_VALUES_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *name = ls_value_key(values, i);
        if (!safe_name_is(name))
            return ls_error(LS_EPROTO, "value %zu has no name", i);
        const int status =
            ls_value_double(ls_value_at(values, i), &info->values[i].value);
        if (status != LS_OK)
            return ls_error_at(status, "%s", name);
        memcpy(info->values[i].name, name, strlen(name) + 1);
    }
    info->n_values = n;
    return LS_OK;
}

static const struct ls_field_other values = {sizeof(struct learner_info),
                                             write_values, read_values};

static const struct ls_field learner_info_map_fields[] = {
    {"learner_step", LS_FIELD_INT, IN(learner_info, learner_step), COUNT},
    {"learner_done", LS_FIELD_BOOL, IN(learner_info, learner_done)},
    {"policy_version", LS_FIELD_INT, IN(learner_info, policy_version), VERSION},
    {"values", LS_FIELD_OTHER, .other = &values},
};
RECORD("info", learner_info, map, NULL);

static const struct ls_field learner_demand_message_fields[] = {
    KEY(learner_demand),
    NAMED(learner_demand, buffer_id),
    {"done", LS_FIELD_BOOL, IN(learner_demand, done)},
    {"cur_learner_iter", LS_FIELD_INT, IN(learner_demand, cur_learner_iter),
     COUNT},
    {"policy_version", LS_FIELD_INT, IN(learner_demand, policy_version),
     VERSION},
    {"info", LS_FIELD_RECORD, IN(learner_demand, info),
     .record = &learner_info_map, IF(learner_demand, done)},
    {"batch_size", LS_FIELD_INT, IN(learner_demand, batch_size), .least = 1,
     .most = SERVICE_BATCH_MAX, UNLESS(learner_demand, done)},
};
MESSAGE(CALL_LEARNER_DEMAND " answer", learner_demand)

/* A batch as it is on the wire. */
struct batch_message {
    struct work_key key;
    size_t n_data, n, n_parts;
    struct sample *data; /* own when read; n_data */
    int64_t of[SERVICE_BATCH_MAX], part[SERVICE_BATCH_MAX]; /* n */
};

static const struct ls_field whole = {.type = LS_FIELD_RECORD,
                                      .record = &sample_record};
static const struct ls_field count = {.type = LS_FIELD_INT, COUNT};
static const struct ls_field batch_message_fields[] = {
    KEY(batch_message),
    {"data", LS_FIELD_LIST, IN(batch_message, data), .item = &whole,
     .count = offsetof(struct batch_message, n_data), .least = 1,
     .most = SERVICE_BATCH_MAX, .own = true},
    {"of", LS_FIELD_LIST, IN(batch_message, of), .item = &count,
     .count = offsetof(struct batch_message, n), .least = 1,
     .most = SERVICE_BATCH_MAX},
    {"part", LS_FIELD_LIST, IN(batch_message, part), .item = &count,
     .count = offsetof(struct batch_message, n_parts), .least = 1,
     .most = SERVICE_BATCH_MAX},
};
static const struct ls_record batch_message = {
    .name = CALL_LEARNER_LEARN,
    .size = sizeof(struct batch_message),
    .fields = batch_message_fields,
    .n_fields = N_OF(batch_message_fields)};

/* Samples of the same data mostly come one after the other. */
static size_t find_data(const struct batch_message *message,
                        const struct sample *sample)
{
    size_t i = message->n_data;
    while (i > 0 && strcmp(message->data[i - 1].data_id, sample->data_id) != 0)
        i--;
    return i;
}

void learner_batch_write(const struct learner_batch *in, ls_writer *out)
{
    struct batch_message message = {.key = in->key};
    message.data = calloc(in->n, sizeof *message.data);
    if (message.data == NULL)
        return; /* without a value it is an error */
    for (size_t i = 0; i < in->n; i++) {
        const struct sample *sample = &in->items[i].sample;
        size_t found = find_data(&message, sample);
        if (found == 0) {
            found = ++message.n_data;
            message.data[found - 1] = *sample;
            message.data[found - 1].unroll_len *=
                sample->split ? sample->parts : 1;
        }
        message.of[i] = (int64_t)found - 1;
        message.part[i] = sample->part;
    }
    message.n = message.n_parts = in->n;
    ls_record_write(&batch_message, &message, out);
    free(message.data);
}

static int take_parts(struct learner_batch *out,
                      const struct batch_message *message)
{
    if (message->n != message->n_parts)
        return ls_error(LS_EPROTO, "part: %zu for %zu samples",
                        message->n_parts, message->n);
    struct batch_message before = *message;
    for (before.n_data = 0; before.n_data < message->n_data; before.n_data++)
        if (find_data(&before, &message->data[before.n_data]) != 0)
            return ls_error(LS_EPROTO, "data: %s appears twice",
                            message->data[before.n_data].data_id);
    for (size_t i = 0; i < message->n; i++) {
        if (message->of[i] >= (int64_t)message->n_data)
            return ls_error(LS_EPROTO, "of: there is no data %lld",
                            (long long)message->of[i]);
        const struct sample *data = &message->data[message->of[i]];
        if (message->part[i] >= data->parts)
            return ls_error(LS_EPROTO, "part: %s has no part %lld",
                            data->data_id, (long long)message->part[i]);
        sample_part(data, message->part[i], &out->items[i].sample);
    }
    return LS_OK;
}

int learner_batch_read(struct learner_batch *out, const void *data, size_t size)
{
    struct batch_message message;
    int status =
        ls_record_decode(&batch_message, &message, data, size, &limits);
    if (status != LS_OK)
        return status;
    struct learner_batch batch = {
        .key = message.key,
        .n = message.n,
        .items = calloc(message.n, sizeof(struct drawn_sample))};
    status = batch.items == NULL ? ls_error(LS_ENOMEM, CALL_LEARNER_LEARN)
                                 : take_parts(&batch, &message);
    free(message.data);
    if (status == LS_OK)
        *out = batch;
    else
        free(batch.items);
    return status == LS_OK ? LS_OK : ls_error_at(status, CALL_LEARNER_LEARN);
}

void learner_batch_fini(struct learner_batch *batch)
{
    free(batch->items);
    batch->items = NULL;
    batch->n = 0;
}

static const struct ls_field priority = {.type = LS_FIELD_DOUBLE,
                                         .high = SAMPLE_PRIORITY_MAX};
static const struct ls_field learner_result_message_fields[] = {
    KEY(learner_result),
    NAMED(learner_result, buffer_id),
    {"data_lost", LS_FIELD_BOOL, IN(learner_result, data_lost)},
    {"policy_version", LS_FIELD_INT, IN(learner_result, policy_version),
     VERSION},
    {"cur_learner_iter", LS_FIELD_INT, IN(learner_result, cur_learner_iter),
     COUNT},
    {"info", LS_FIELD_HAS, IN(learner_result, has_info)},
    {"info", LS_FIELD_RECORD, IN(learner_result, info),
     .record = &learner_info_map, IF(learner_result, has_info)},
    {"priorities", LS_FIELD_LIST, IN(learner_result, priorities),
     .item = &priority, .most = SERVICE_BATCH_MAX,
     .count = offsetof(struct learner_result, n)},
};
MESSAGE(CALL_LEARNER_LEARN " answer", learner_result)

static const struct ls_field learner_closed_message_fields[] = {
    KEY(learner_closed), NAMED(learner_closed, buffer_id)};
MESSAGE(CALL_LEARNER_CLOSE " answer", learner_closed)

/* The collector's --------------------------------------------------------- */

static const struct ls_field collector_work_resources_fields[] = {
    {"gpu", LS_FIELD_DOUBLE, IN(collector_work, gpu), AMOUNT},
    {"cpu", LS_FIELD_DOUBLE, IN(collector_work, cpu), AMOUNT},
};
RECORD("resource_info", collector_work, resources, NULL);

static int check_cfg(const void *data)
{
    const struct collector_work *work = data;
    if (work->eval_flag && work->episodes == 0)
        return ls_error(LS_EPROTO, "episodes: an evaluation needs 1 or more");
    return work->unroll_len % work->split == 0
               ? LS_OK
               : ls_error(LS_EPROTO,
                          "split: %lld does not divide the %lld steps",
                          (long long)work->split, (long long)work->unroll_len);
}

static const struct ls_field collector_work_cfg_fields[] = {
    {"eval_flag", LS_FIELD_BOOL, IN(collector_work, eval_flag)},
    {"samples", LS_FIELD_INT, IN(collector_work, samples), COUNT},
    {"episodes", LS_FIELD_INT, IN(collector_work, episodes), COUNT},
    {"unroll_len", LS_FIELD_INT, IN(collector_work, unroll_len), .least = 1,
     .most = UNROLL_MAX},
    {"split", LS_FIELD_INT, IN(collector_work, split), .least = 1,
     .most = UNROLL_MAX},
};
RECORD("collector_cfg", collector_work, cfg, check_cfg);

static const struct ls_field collector_work_info_fields[] = {
    KEY(collector_work),
    NAMED(collector_work, policy_id),
    NAMED(collector_work, buffer_id),
    NAMED(collector_work, collector_id),
    {"collector_cfg", LS_FIELD_RECORD, .record = &collector_work_cfg},
    {"resource_info", LS_FIELD_RECORD, .record = &collector_work_resources},
};
RECORD("task_info", collector_work, info, NULL);

static const struct ls_field collector_work_message_fields[] = {
    {"task_info", LS_FIELD_RECORD, .record = &collector_work_info}};
MESSAGE(CALL_COLLECTOR_START, collector_work)

static const struct ls_field collector_ask_message_fields[] = {
    KEY(collector_ask),
    {"policy_version", LS_FIELD_INT, IN(collector_ask, policy_version),
     VERSION},
    {"want", LS_FIELD_INT, IN(collector_ask, want), .most = SERVICE_DATA_MAX},
};
MESSAGE(CALL_COLLECTOR_DATA, collector_ask)

static const struct ls_field collector_info_map_fields[] = {
    {"collector_done", LS_FIELD_BOOL, IN(collector_info, collector_done)},
    {"cur_episode", LS_FIELD_INT, IN(collector_info, cur_episode), COUNT},
    {"cur_sample", LS_FIELD_INT, IN(collector_info, cur_sample), COUNT},
    {"cur_step", LS_FIELD_INT, IN(collector_info, cur_step), COUNT},
};
RECORD("info", collector_info, map, NULL);

static const struct ls_field collector_data_message_fields[] = {
    KEY(collector_data),
    NAMED(collector_data, buffer_id),
    {"info", LS_FIELD_HAS, IN(collector_data, is_info)},
    {"data", LS_FIELD_LIST, IN(collector_data, samples), .item = &whole,
     .count = offsetof(struct collector_data, n), .least = 1,
     .most = SERVICE_DATA_MAX, .own = true, UNLESS(collector_data, is_info)},
    {"info", LS_FIELD_RECORD, IN(collector_data, info),
     .record = &collector_info_map, IF(collector_data, is_info)},
};
MESSAGE(CALL_COLLECTOR_DATA " answer", collector_data)

void collector_data_fini(struct collector_data *data)
{
    free(data->samples);
    data->samples = NULL;
    data->n = 0;
}

static const struct ls_field collector_closed_info_fields[] = {
    {"eval_flag", LS_FIELD_BOOL, IN(collector_closed, eval_flag)},
    {"reward_mean", LS_FIELD_DOUBLE, IN(collector_closed, reward_mean),
     .nan = true},
    {"step_count", LS_FIELD_INT, IN(collector_closed, step_count), COUNT},
    {"episode_count", LS_FIELD_INT, IN(collector_closed, episode_count), COUNT},
    {"sample_count", LS_FIELD_INT, IN(collector_closed, sample_count), COUNT},
    {"policy_version", LS_FIELD_INT, IN(collector_closed, policy_version),
     VERSION},
};
RECORD("finish_info", collector_closed, info, NULL);

static const struct ls_field collector_closed_message_fields[] = {
    KEY(collector_closed),
    {"finish_info", LS_FIELD_RECORD, .record = &collector_closed_info},
};
MESSAGE(CALL_COLLECTOR_CLOSE " answer", collector_closed)
