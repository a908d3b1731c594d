/* A running collector work or evaluation: it is asked for data while the buffer
 * takes some, and what it brings goes there. */
#include <inttypes.h>
#include <string.h>

#include "fsm_state.h"
#include "store_pair.h"

/* Once: that fewer samples are kept than was asked for. */
static void say_if_small(fsm *self, struct work *learner)
{
    struct replay_figures figures;
    replay_figures(learner->buffer, &figures);
    if (figures.evicted_bytes == 0 || learner->is_small)
        return;
    learner->is_small = true;
    fsm_say(self, LS_LOG_WARN,
            "%s: the store has room for %zu samples, not for the %zu of "
            "coordinator.replay.capacity: the oldest go before their time; "
            "raise coordinator.data.max_mib",
            learner->buffer_id, figures.size, self->options.replay.capacity);
}

static void insert(fsm *self, struct work *learner, struct work *work,
                   const struct sample *sample)
{
    const int status = replay_insert(learner->buffer, sample);
    if (status == LS_EAGAIN) { /* others were faster: it waits for its turn */
        work->held = *sample;
        work->has_held = true;
        return;
    }
    if (status != LS_OK) {
        fsm_no_memory(self);
        return;
    }
    work->has_held = false;
    work->owes_drop = false; /* the buffer does */
    self->counted.samples++;
    self->failures[WORK_COLLECTOR] = 0;
    self->scheduler.env_steps += sample->unroll_len;
    say_if_small(self, learner);
    fsm_buffer_drain(self, learner);
}

bool fsm_collector_pump(fsm *self, struct work *work, int64_t now)
{
    if (work->state != WORK_RUNNING || work->again_at > now)
        return false;
    bool inserted = false;
    if (work->kind == WORK_COLLECTOR) {
        struct work *learner = fsm_learner(self);
        if (learner == NULL || !replay_may_insert(learner->buffer))
            return false;
        if (work->has_held) {
            insert(self, learner, work, &work->held);
            inserted = true;
        }
    }
    if (!work->has_held && self->status == LS_OK &&
        !fsm_has_call(self, work, ABOUT_DATA)) {
        const bool eval = work->kind == WORK_EVALUATION;
        const struct collector_ask ask = {
            .key = work->key,
            .policy_version = eval ? -1 : self->scheduler.policy_version};
        ls_writer_clear(self->writer);
        collector_ask_write(&ask, self->writer);
        (void)fsm_call(self, ABOUT_DATA, work->member, work);
    }
    return inserted;
}

/* Who names a policy as its data would have it dropped. */
static bool is_policy(const struct sample *sample)
{
    return strncmp(sample->data_id, STORE_PAIR_POLICY,
                   sizeof STORE_PAIR_POLICY - 1) == 0;
}

/* Data that is in no buffer is of use to nobody, unless another sample is a
 * part of the same. */
static void drop_unused(fsm *self, const struct sample *sample)
{
    if (!is_policy(sample) && !fsm_data_is_used(self, sample->data_id))
        fsm_drop(self, sample->data_id);
}

static int check_data(const fsm *self, const struct work *work,
                      const struct collector_data *data)
{
    const uint64_t most = self->options.replay.max_bytes;
    const int status = fsm_check_key(work, &data->key);
    if (status != LS_OK)
        return status;
    if (strcmp(data->buffer_id, work->buffer_id) != 0)
        return ls_error(LS_EPROTO, "buffer_id: %s, and its buffer is %s",
                        data->buffer_id, work->buffer_id);
    if (data->is_info)
        return LS_OK;
    if (work->kind == WORK_EVALUATION)
        return ls_error(LS_EPROTO, "data_id: an evaluation brings no sample");
    if (is_policy(&data->sample))
        return ls_error(LS_EPROTO, "data_id: %s is the name of a policy",
                        data->sample.data_id);
    if (strcmp(data->sample.compressor, SAMPLE_PLAIN) != 0)
        return ls_error(LS_EPROTO,
                        "compressor: %s, and learners read data that is "
                        "\"" SAMPLE_PLAIN "\" compressed",
                        data->sample.compressor);
    if (most > 0 && (uint64_t)data->sample.size > most)
        return ls_error(LS_EPROTO,
                        "size: %" PRId64 " bytes, and all samples have room "
                        "for %" PRIu64,
                        data->sample.size, most);
    if (strcmp(data->sample.task_id, work->key.task_id) != 0 ||
        strcmp(data->sample.buffer_id, work->buffer_id) != 0)
        return ls_error(LS_EPROTO, "sample %s is of work %s and buffer %s",
                        data->sample.data_id, data->sample.task_id,
                        data->sample.buffer_id);
    return LS_OK;
}

void fsm_last_data_done(fsm *self, struct work *work)
{
    if (work->owes_drop)
        fsm_data_drop(self, work->last_data);
    work->owes_drop = false;
    work->last_data[0] = '\0';
}

static void take_info(fsm *self, int64_t now, struct work *work,
                      const struct collector_info *info)
{
    work->progress =
        work->kind == WORK_EVALUATION ? info->cur_episode : info->cur_sample;
    if (info->collector_done)
        fsm_work_close(self, work, now, WORK_FINISHED);
}

void fsm_data_ended(fsm *self, int64_t now, const struct open_call *call,
                    const struct ls_call_result *result)
{
    struct work *work = call->work;
    if (fsm_work_call_failed(self, now, call, result))
        return;
    struct collector_data data;
    int status = collector_data_read(&data, result->data, result->size);
    const bool is_sample = status == LS_OK && !data.is_info;
    if (status == LS_OK)
        status = check_data(self, work, &data);
    if (status != LS_OK) {
        fsm_work_malformed(self, now, call);
        if (is_sample)
            drop_unused(self, &data.sample);
        return;
    }
    work->malformed = 0;
    if (data.is_info) {
        take_info(self, now, work, &data.info);
        return;
    }
    struct work *learner = fsm_learner(self);
    work->progress++;
    data.sample.collector = call->member->id;
    data.sample.made_at = now;
    if (strcmp(work->last_data, data.sample.data_id) != 0) {
        fsm_last_data_done(self, work);
        memcpy(work->last_data, data.sample.data_id, sizeof work->last_data);
        work->owes_drop = true; /* until it is in the buffer */
    }
    fsm_record_data(self, &data.sample);
    if (learner != NULL)
        insert(self, learner, work, &data.sample);
    else
        self->counted.late_data++;
}

void fsm_data_late(fsm *self, const struct ls_call_result *result)
{
    struct collector_data data;
    if (result->state == LS_CALL_COMPLETED &&
        collector_data_read(&data, result->data, result->size) == LS_OK &&
        !data.is_info) {
        self->counted.late_data++;
        drop_unused(self, &data.sample);
    }
}

/* Its data is dropped as the last that the work has brought. */
void fsm_held_drop(fsm *self, struct work *work)
{
    if (!work->has_held)
        return;
    work->has_held = false;
    self->counted.late_data++;
}
