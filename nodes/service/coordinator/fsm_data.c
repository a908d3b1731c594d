/* What a work brings by CALL_COLLECTOR_DATA: asked for, read, and kept until
 * the replay buffer has room; and what its members are told when it begins. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsm_state.h"
#include "store.h"

void fsm_collector_write_start(fsm *self, const struct work *work,
                               const struct collector_work *what)
{
    const struct fsm_options *options = &self->options;
    struct collector_work message = *what;
    message.key = work->key;
    message.unroll_len = options->unroll_len;
    message.split = options->split;
    message.gpu = work->member->gpu;
    message.cpu = work->member->cpu;
    memcpy(message.policy_id, work->policy_id, sizeof message.policy_id);
    memcpy(message.buffer_id, work->buffer_id, sizeof message.buffer_id);
    (void)snprintf(message.collector_id, sizeof message.collector_id,
                   "collector_%u", (unsigned)work->member->id);
    collector_work_write(&message, self->writer);
}

int fsm_collector_read_exit(struct work_exit *out, const void *data,
                            size_t size)
{
    struct collector_closed closed;
    const int status = collector_closed_read(&closed, data, size);
    if (status == LS_OK)
        *out = (struct work_exit){.key = closed.key,
                                  .value = closed.reward_mean,
                                  .version = closed.policy_version};
    return status;
}

/* What waits for the buffer ------------------------------------------------ */

/* What is of this data still waits for its turn; NULL: nothing. */
static struct waiting_data *rest_of(const fsm *self, const char *data_id)
{
    for (const struct work *w = self->works.first; w != NULL; w = w->next)
        for (struct waiting_data *d = w->waiting; d != NULL; d = d->next)
            if (strcmp(d->whole.data_id, data_id) == 0)
                return d;
    return NULL;
}

/* Who names the data of others, or a policy, would have it dropped. */
void fsm_data_unused(fsm *self, const char *data_id)
{
    struct waiting_data *rest = rest_of(self, data_id);
    if (rest != NULL)
        rest->owes_drop = true;
    else if (!store_is_policy(data_id) && !fsm_needs(self, data_id))
        fsm_drop(self, data_id);
}

/* Once: that fewer samples are kept than was asked for. */
static void say_if_small(fsm *self, struct work *owner)
{
    struct replay_figures figures;
    replay_figures(owner->buffer, &figures);
    if (figures.evicted_bytes == 0 || owner->is_small)
        return;
    owner->is_small = true;
    fsm_say(self, LS_LOG_WARN,
            "%s: the store has room for %zu samples, not for the %zu of "
            "coordinator.replay.capacity: the oldest go before their time; "
            "raise coordinator.data.max_mib",
            owner->buffer_id, figures.size, self->options.replay.capacity);
}

static void remove_first(struct work *work)
{
    struct waiting_data *first = work->waiting;
    work->waiting = first->next;
    free(first);
}

/* A part of what waits first; false: the buffer has no room for it. */
static bool insert_part(fsm *self, struct work *owner, struct work *work)
{
    struct waiting_data *first = work->waiting;
    struct sample sample;
    sample_part(&first->whole, first->part, &sample);
    const uint64_t number = replay_next_number(owner->buffer);
    const int status = replay_insert(owner->buffer, &sample);
    if (status == LS_EAGAIN)
        return false;
    if (status != LS_OK) {
        fsm_no_memory(self);
        return false;
    }
    fsm_record_sample(self, owner, &sample, number);
    first->owes_drop = false; /* the buffer does */
    if (++first->part == first->whole.parts)
        remove_first(work);
    self->counted.samples++;
    work->use->failures = 0;
    self->scheduler.env_steps += sample.unroll_len;
    say_if_small(self, owner);
    fsm_buffer_drain(self, owner);
    return true;
}

bool fsm_waiting_insert(fsm *self, struct work *owner, struct work *work)
{
    bool inserted = false;
    while (work->waiting != NULL && insert_part(self, owner, work))
        inserted = true;
    return inserted;
}

/* It waits for its turn: others may have been faster. */
void fsm_waiting_add(fsm *self, struct work *work, const struct sample *of,
                     uint32_t home)
{
    struct waiting_data **last = &work->waiting;
    struct waiting_data *data = calloc(1, sizeof *data);
    if (data == NULL) {
        fsm_no_memory(self);
        return;
    }
    data->whole = *of;
    data->whole.home = home;
    data->owes_drop = true;
    while (*last != NULL)
        last = &(*last)->next;
    *last = data;
}

void fsm_waiting_drop(fsm *self, struct work *work)
{
    while (work->waiting != NULL) {
        const struct waiting_data first = *work->waiting;
        self->counted.late_data += first.whole.parts - first.part;
        remove_first(work);
        if (first.owes_drop)
            fsm_data_unused(self, first.whole.data_id);
    }
}

/* The calls ---------------------------------------------------------------- */

void fsm_data_ask(fsm *self, const struct fsm_task *task, struct work *work,
                  int64_t version, int64_t want)
{
    const struct collector_ask question = {
        .key = work->key, .policy_version = version, .want = want};
    ls_writer_clear(self->writer);
    collector_ask_write(&question, self->writer);
    work->asked = want;
    fsm_ask(self, task, work, NULL);
}

/* Data that is in no buffer is of use to nobody. */
static void drop_all(fsm *self, const struct collector_data *data)
{
    for (size_t i = 0; i < data->n; i++)
        fsm_data_unused(self, data->samples[i].data_id);
}

static int check_sample(const fsm *self, const struct work *work,
                        const struct sample *sample)
{
    const uint64_t most = self->options.replay.max_bytes;
    if (store_is_policy(sample->data_id))
        return ls_error(LS_EPROTO, "data_id: %s is the name of a policy",
                        sample->data_id);
    if (strcmp(sample->compressor, SAMPLE_PLAIN) != 0)
        return ls_error(LS_EPROTO,
                        "compressor: %s, and learners read data that is "
                        "\"" SAMPLE_PLAIN "\" compressed",
                        sample->compressor);
    if (most > 0 && (uint64_t)sample->size > most)
        return ls_error(LS_EPROTO,
                        "size: %" PRId64 " bytes, and all samples have room "
                        "for %" PRIu64,
                        sample->size, most);
    if (sample->parts != self->options.split)
        return ls_error(LS_EPROTO,
                        "parts: %" PRId64 ", but it was told %" PRId64,
                        sample->parts, self->options.split);
    if (strcmp(sample->task_id, work->key.task_id) != 0 ||
        strcmp(sample->buffer_id, work->buffer_id) != 0)
        return ls_error(LS_EPROTO, "sample %s is of work %s and buffer %s",
                        sample->data_id, sample->task_id, sample->buffer_id);
    return LS_OK;
}

static int check_data(const fsm *self, const struct work *work,
                      const struct collector_data *data, bool brings_samples)
{
    int status = fsm_check_key(work, &data->key);
    if (status != LS_OK)
        return status;
    if (strcmp(data->buffer_id, work->buffer_id) != 0)
        return ls_error(LS_EPROTO, "buffer_id: %s, and its buffer is %s",
                        data->buffer_id, work->buffer_id);
    if (!data->is_info && !brings_samples)
        return ls_error(LS_EPROTO, "data_id: such a work brings no sample");
    for (size_t i = 0; i < data->n && status == LS_OK; i++)
        status = check_sample(self, work, &data->samples[i]);
    return status;
}

bool fsm_data_read(fsm *self, int64_t now, const struct open_call *call,
                   const struct ls_call_result *result, bool brings_samples,
                   struct collector_data *out)
{
    if (fsm_work_call_failed(self, now, call, result))
        return false;
    struct collector_data data = {.n = 0};
    int status = collector_data_read(&data, result->data, result->size);
    if (status == LS_OK)
        status = check_data(self, call->work, &data, brings_samples);
    if (status == LS_OK) {
        call->work->malformed = 0;
        *out = data;
        return true;
    }
    fsm_work_malformed(self, now, call);
    drop_all(self, &data);
    collector_data_fini(&data);
    return false;
}

void fsm_data_late(fsm *self, const struct ls_call_result *result)
{
    struct collector_data data;
    if (result->state != LS_CALL_COMPLETED ||
        collector_data_read(&data, result->data, result->size) != LS_OK)
        return;
    for (size_t i = 0; i < data.n; i++)
        self->counted.late_data += data.samples[i].parts;
    drop_all(self, &data);
    collector_data_fini(&data);
}
