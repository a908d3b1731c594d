/* The messages of a collector. */
#include <math.h>

#include "message_parts.h"

/* collector_start_task ---------------------------------------------------- */

/* Longest trajectory, in steps. */
#define UNROLL_MAX 1048576

static void check_split(struct message *message,
                        const struct collector_work *work)
{
    if (message->status != LS_OK || work->unroll_len % work->split == 0)
        return;
    (void)ls_error(LS_EPROTO, "%lld does not divide the %lld steps",
                   (long long)work->split, (long long)work->unroll_len);
    message_wrong(message, "split");
}

static void read_collector_cfg(struct message *message,
                               struct collector_work *work)
{
    struct message cfg;
    message_enter(message, "collector_cfg", &cfg);
    message_bool(&cfg, "eval_flag", &work->eval_flag);
    message_int(&cfg, "samples", 0, SERVICE_COUNT_MAX, &work->samples);
    message_int(&cfg, "episodes", work->eval_flag ? 1 : 0, SERVICE_COUNT_MAX,
                &work->episodes);
    message_int(&cfg, "unroll_len", 1, UNROLL_MAX, &work->unroll_len);
    message_int(&cfg, "split", 1, UNROLL_MAX, &work->split);
    check_split(&cfg, work);
    message_leave(message, &cfg);
}

static void read_collector_work(struct message *message, void *out)
{
    struct collector_work *work = out;
    struct message info;
    message_enter(message, "task_info", &info);
    read_work_key(&info, &work->key);
    message_name(&info, "policy_id", work->policy_id);
    message_name(&info, "buffer_id", work->buffer_id);
    message_name(&info, "collector_id", work->collector_id);
    read_collector_cfg(&info, work);
    read_resources(&info, &work->gpu, &work->cpu);
    message_leave(message, &info);
}

void collector_work_write(const struct collector_work *in, ls_writer *out)
{
    ls_write_map(out, 1);
    ls_write_string(out, "task_info");
    ls_write_map(out, 7);
    write_key(out, &in->key);
    write_text(out, "policy_id", in->policy_id);
    write_text(out, "buffer_id", in->buffer_id);
    write_text(out, "collector_id", in->collector_id);
    ls_write_string(out, "collector_cfg");
    ls_write_map(out, 5);
    write_bool(out, "eval_flag", in->eval_flag);
    write_int(out, "samples", in->samples);
    write_int(out, "episodes", in->episodes);
    write_int(out, "unroll_len", in->unroll_len);
    write_int(out, "split", in->split);
    write_resources(out, in->gpu, in->cpu);
}

MESSAGE_READ(collector_work, CALL_COLLECTOR_START)

/* collector_data_task ----------------------------------------------------- */

static void read_collector_ask(struct message *message, void *out)
{
    struct collector_ask *ask = out;
    read_work_key(message, &ask->key);
    message_int(message, "policy_version", -1, SERVICE_COUNT_MAX,
                &ask->policy_version);
}

void collector_ask_write(const struct collector_ask *in, ls_writer *out)
{
    ls_write_map(out, 3);
    write_key(out, &in->key);
    write_int(out, "policy_version", in->policy_version);
}

MESSAGE_READ(collector_ask, CALL_COLLECTOR_DATA)

static void read_collector_info(struct message *message,
                                struct collector_info *info)
{
    struct message inner;
    message_enter(message, "info", &inner);
    message_bool(&inner, "collector_done", &info->collector_done);
    message_int(&inner, "cur_episode", 0, SERVICE_COUNT_MAX,
                &info->cur_episode);
    message_int(&inner, "cur_sample", 0, SERVICE_COUNT_MAX, &info->cur_sample);
    message_int(&inner, "cur_step", 0, SERVICE_COUNT_MAX, &info->cur_step);
    message_leave(message, &inner);
}

static void read_collector_data(struct message *message, void *out)
{
    struct collector_data *data = out;
    read_work_key(message, &data->key);
    message_name(message, "buffer_id", data->buffer_id);
    data->is_info = message_has(message, "info");
    if (data->is_info) {
        read_collector_info(message, &data->info);
        return;
    }
    const ls_value *sample = message_value(message, "data");
    if (sample != NULL && sample_read(&data->sample, sample) != LS_OK)
        message_wrong(message, "data");
}

void collector_data_write(const struct collector_data *in, ls_writer *out)
{
    ls_write_map(out, 4);
    write_key(out, &in->key);
    write_text(out, "buffer_id", in->buffer_id);
    if (!in->is_info) {
        ls_write_string(out, "data");
        sample_write(&in->sample, out);
        return;
    }
    ls_write_string(out, "info");
    ls_write_map(out, 4);
    write_bool(out, "collector_done", in->info.collector_done);
    write_int(out, "cur_episode", in->info.cur_episode);
    write_int(out, "cur_sample", in->info.cur_sample);
    write_int(out, "cur_step", in->info.cur_step);
}

MESSAGE_READ(collector_data, CALL_COLLECTOR_DATA " answer")

/* collector_close_task ---------------------------------------------------- */

static void read_collector_closed(struct message *message, void *out)
{
    struct collector_closed *closed = out;
    struct message info;
    read_work_key(message, &closed->key);
    message_enter(message, "finish_info", &info);
    message_bool(&info, "eval_flag", &closed->eval_flag);
    message_double(&info, "reward_mean", &closed->reward_mean);
    message_int(&info, "step_count", 0, SERVICE_COUNT_MAX, &closed->step_count);
    message_int(&info, "episode_count", 0, SERVICE_COUNT_MAX,
                &closed->episode_count);
    message_int(&info, "sample_count", 0, SERVICE_COUNT_MAX,
                &closed->sample_count);
    message_int(&info, "policy_version", -1, SERVICE_COUNT_MAX,
                &closed->policy_version);
    message_leave(message, &info);
}

void collector_closed_write(const struct collector_closed *in, ls_writer *out)
{
    ls_write_map(out, 3);
    write_key(out, &in->key);
    ls_write_string(out, "finish_info");
    ls_write_map(out, 6);
    write_bool(out, "eval_flag", in->eval_flag);
    ls_write_string(out, "reward_mean");
    if (!isnan(in->reward_mean))
        ls_write_double(out, in->reward_mean);
    else
        ls_write_nil(out);
    write_int(out, "step_count", in->step_count);
    write_int(out, "episode_count", in->episode_count);
    write_int(out, "sample_count", in->sample_count);
    write_int(out, "policy_version", in->policy_version);
}

MESSAGE_READ(collector_closed, CALL_COLLECTOR_CLOSE " answer")
