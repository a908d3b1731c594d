/* The messages of a learner. */
#include <stdlib.h>
#include <string.h>

#include "message_parts.h"

/* learner_start_task ------------------------------------------------------ */

static void read_learner_cfg(struct message *message, struct learner_work *work)
{
    struct message cfg;
    message_enter(message, "learner_cfg", &cfg);
    message_int(&cfg, "batch_size", 1, SERVICE_BATCH_MAX, &work->batch_size);
    message_int(&cfg, "iterations", 0, SERVICE_COUNT_MAX, &work->iterations);
    message_int(&cfg, "send_policy_freq", 1, SERVICE_COUNT_MAX,
                &work->send_policy_freq);
    message_int(&cfg, "send_info_freq", 1, SERVICE_COUNT_MAX,
                &work->send_info_freq);
    message_leave(message, &cfg);
}

static void read_learner_work(struct message *message, void *out)
{
    struct learner_work *work = out;
    struct message info;
    message_enter(message, "task_info", &info);
    read_work_key(&info, &work->key);
    message_name(&info, "policy_id", work->policy_id);
    message_name(&info, "buffer_id", work->buffer_id);
    message_name(&info, "learner_id", work->learner_id);
    read_learner_cfg(&info, work);
    message_int(&info, "done", 0, SERVICE_COUNT_MAX, &work->done);
    read_resources(&info, &work->gpu, &work->cpu);
    message_leave(message, &info);
}

void learner_work_write(const struct learner_work *in, ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "task_info");
    ls_write_map(out, 8);
    write_key(out, &in->key);
    write_text(out, "policy_id", in->policy_id);
    write_text(out, "buffer_id", in->buffer_id);
    write_text(out, "learner_id", in->learner_id);
    ls_write_string(out, "learner_cfg");
    ls_write_map(out, 4);
    write_int(out, "batch_size", in->batch_size);
    write_int(out, "iterations", in->iterations);
    write_int(out, "send_policy_freq", in->send_policy_freq);
    write_int(out, "send_info_freq", in->send_info_freq);
    write_int(out, "done", in->done);
    write_resources(out, in->gpu, in->cpu);
}

MESSAGE_READ(learner_work, CALL_LEARNER_START)

/* Infos ------------------------------------------------------------------- */

static void read_values(struct message *message, struct learner_info *info)
{
    const ls_value *values = message_value(message, "values");
    if (values == NULL)
        return;
    const size_t n = ls_value_size(values);
    if (ls_value_type(values) != LS_VALUE_MAP || n > LEARNER_VALUES_MAX) {
        (void)ls_error(LS_EPROTO, "it is no map of up to %d numbers",
                       LEARNER_VALUES_MAX);
        message_wrong(message, "values");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = ls_value_key(values, i);
        if (!safe_name_is(name)) {
            (void)ls_error(LS_EPROTO, "value %zu has no name", i);
            message_wrong(message, "values");
            return;
        }
        if (ls_value_double(ls_value_at(values, i), &info->values[i].value) !=
            LS_OK) {
            (void)ls_error_at(LS_EPROTO, "%s", name);
            message_wrong(message, "values");
            return;
        }
        memcpy(info->values[i].name, name, strlen(name) + 1);
    }
    info->n_values = n;
}

static void read_info(struct message *message, struct learner_info *info)
{
    struct message inner;
    message_enter(message, "info", &inner);
    message_int(&inner, "learner_step", 0, SERVICE_COUNT_MAX,
                &info->learner_step);
    message_bool(&inner, "learner_done", &info->learner_done);
    message_int(&inner, "policy_version", -1, SERVICE_COUNT_MAX,
                &info->policy_version);
    read_values(&inner, info);
    message_leave(message, &inner);
}

static void write_info(ls_writer *out, const struct learner_info *info)
{
    ls_write_string(out, "info");
    ls_write_map(out, 4);
    write_int(out, "learner_step", info->learner_step);
    write_bool(out, "learner_done", info->learner_done);
    write_int(out, "policy_version", info->policy_version);
    ls_write_string(out, "values");
    ls_write_map(out, (uint32_t)info->n_values);
    for (size_t i = 0; i < info->n_values; i++)
        write_number(out, info->values[i].name, info->values[i].value);
}

/* learner_get_data_task --------------------------------------------------- */

static void read_learner_demand(struct message *message, void *out)
{
    struct learner_demand *demand = out;
    read_work_key(message, &demand->key);
    message_name(message, "buffer_id", demand->buffer_id);
    message_bool(message, "done", &demand->done);
    message_int(message, "cur_learner_iter", 0, SERVICE_COUNT_MAX,
                &demand->cur_learner_iter);
    message_int(message, "policy_version", -1, SERVICE_COUNT_MAX,
                &demand->policy_version);
    if (demand->done)
        read_info(message, &demand->info);
    else
        message_int(message, "batch_size", 1, SERVICE_BATCH_MAX,
                    &demand->batch_size);
}

void learner_demand_write(const struct learner_demand *in, ls_writer *out)
{
    ls_write_map(out, 7);
    write_key(out, &in->key);
    write_text(out, "buffer_id", in->buffer_id);
    write_bool(out, "done", in->done);
    write_int(out, "cur_learner_iter", in->cur_learner_iter);
    write_int(out, "policy_version", in->policy_version);
    if (in->done)
        write_info(out, &in->info);
    else
        write_int(out, "batch_size", in->batch_size);
}

MESSAGE_READ(learner_demand, CALL_LEARNER_DEMAND " answer")

/* learner_learn_task ------------------------------------------------------ */

/* A list of 1 (or 0) to SERVICE_BATCH_MAX maps; NULL: it is none. */
static const ls_value *read_list(struct message *message, const char *field,
                                 size_t least, size_t *n)
{
    const ls_value *list = message_value(message, field);
    if (list == NULL)
        return NULL;
    *n = ls_value_size(list);
    if (ls_value_type(list) == LS_VALUE_ARRAY && *n >= least &&
        *n <= SERVICE_BATCH_MAX)
        return list;
    (void)ls_error(LS_EPROTO, "it is no list of %zu to %d", least,
                   SERVICE_BATCH_MAX);
    message_wrong(message, field);
    return NULL;
}

static void read_learner_batch(struct message *message, void *out)
{
    struct learner_batch *batch = out;
    size_t n = 0;
    read_work_key(message, &batch->key);
    const ls_value *list = read_list(message, "data", 1, &n);
    if (list == NULL)
        return;
    batch->items = calloc(n, sizeof *batch->items);
    if (batch->items == NULL) {
        message->status = ls_error(LS_ENOMEM, "a batch of %zu samples", n);
        return;
    }
    for (; batch->n < n; batch->n++) {
        if (drawn_sample_read(&batch->items[batch->n],
                              ls_value_at(list, batch->n)) != LS_OK) {
            (void)ls_error_at(LS_EPROTO, "sample %zu", batch->n);
            message_wrong(message, "data");
            return;
        }
    }
}

static void fini_batch(void *batch)
{
    learner_batch_fini(batch);
}

void learner_batch_fini(struct learner_batch *batch)
{
    free(batch->items);
    batch->items = NULL;
    batch->n = 0;
}

void learner_batch_write(const struct learner_batch *in, ls_writer *out)
{
    ls_write_map(out, 3);
    write_key(out, &in->key);
    ls_write_string(out, "data");
    ls_write_array(out, (uint32_t)in->n);
    for (size_t i = 0; i < in->n; i++)
        drawn_sample_write(&in->items[i], out);
}

int learner_batch_read(struct learner_batch *out, const void *data, size_t size)
{
    static const struct message_type kind = {CALL_LEARNER_LEARN,
                                             sizeof(struct learner_batch),
                                             read_learner_batch, fini_batch};
    return message_read(&kind, out, data, size);
}

static void read_priorities(struct message *message,
                            struct priority_info *priorities)
{
    size_t n = 0;
    const ls_value *list = read_list(message, "priority_info", 0, &n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        if (priority_update_read(&priorities->items[i], ls_value_at(list, i)) !=
            LS_OK) {
            (void)ls_error_at(LS_EPROTO, "item %zu", i);
            message_wrong(message, "priority_info");
            return;
        }
    }
    priorities->n = n;
}

static void read_learner_result(struct message *message, void *out)
{
    struct learner_result *result = out;
    read_work_key(message, &result->key);
    message_name(message, "buffer_id", result->buffer_id);
    result->has_info = message_has(message, "info");
    if (result->has_info)
        read_info(message, &result->info);
    read_priorities(message, &result->priority_info);
}

void learner_result_write(const struct learner_result *in, ls_writer *out)
{
    ls_write_map(out, in->has_info ? 5 : 4);
    write_key(out, &in->key);
    write_text(out, "buffer_id", in->buffer_id);
    if (in->has_info)
        write_info(out, &in->info);
    ls_write_string(out, "priority_info");
    ls_write_array(out, (uint32_t)in->priority_info.n);
    for (size_t i = 0; i < in->priority_info.n; i++)
        priority_update_write(&in->priority_info.items[i], out);
}

MESSAGE_READ(learner_result, CALL_LEARNER_LEARN " answer")

/* learner_close_task ------------------------------------------------------ */

static void read_learner_closed(struct message *message, void *out)
{
    struct learner_closed *closed = out;
    read_work_key(message, &closed->key);
    message_name(message, "buffer_id", closed->buffer_id);
}

void learner_closed_write(const struct learner_closed *in, ls_writer *out)
{
    ls_write_map(out, 3);
    write_key(out, &in->key);
    write_text(out, "buffer_id", in->buffer_id);
}

MESSAGE_READ(learner_closed, CALL_LEARNER_CLOSE " answer")
