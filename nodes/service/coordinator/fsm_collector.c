/* A running collector work or evaluation: it is asked for data while the buffer
 * takes some, and what it brings goes there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fsm_state.h"
#include "store.h"

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

static void remove_first(struct work *work)
{
    struct waiting_data *first = work->waiting;
    work->waiting = first->next;
    free(first);
}

/* A part of what waits first; false: the buffer has no room for it. */
static bool insert_part(fsm *self, struct work *learner, struct work *work)
{
    struct waiting_data *first = work->waiting;
    struct sample sample;
    sample_part(&first->whole, first->part, &sample);
    const uint64_t number = replay_next_number(learner->buffer);
    const int status = replay_insert(learner->buffer, &sample);
    if (status == LS_EAGAIN)
        return false;
    if (status != LS_OK) {
        fsm_no_memory(self);
        return false;
    }
    fsm_record_sample(self, learner, &sample, number);
    first->owes_drop = false; /* the buffer does */
    if (++first->part == first->whole.parts)
        remove_first(work);
    self->counted.samples++;
    self->failures[WORK_COLLECTOR] = 0;
    self->scheduler.env_steps += sample.unroll_len;
    say_if_small(self, learner);
    fsm_buffer_drain(self, learner);
    return true;
}

static bool insert(fsm *self, struct work *learner, struct work *work)
{
    bool inserted = false;
    while (work->waiting != NULL && insert_part(self, learner, work))
        inserted = true;
    return inserted;
}

/* How many pieces of data may be asked for, of all collectors together: so many
 * that each sample that comes of them is drawn, and in time. What is lent
 * raises the version, and so does what is drawn before them. */
static int64_t room(const fsm *self, const struct work *learner)
{
    const struct fsm_options *options = &self->options;
    int64_t useful =
        1 + (options->replay.staleness_limit - 1) * options->send_policy_freq;
    int64_t lent = 0;
    for (size_t i = 0; i < learner->n_lent; i++)
        lent += learner->lent[i].n > 0 ? 1 : 0;
    useful = useful > lent ? useful - lent : 0;
    int64_t samples = replay_room(learner->buffer, useful, lent == 0);
    for (const struct work *w = self->works.first; w != NULL; w = w->next) {
        samples -= w->asked * options->split;
        for (const struct waiting_data *d = w->waiting; d != NULL; d = d->next)
            samples -= d->whole.parts - d->part;
    }
    return samples > 0 ? (samples + options->split - 1) / options->split : 0;
}

/* Its share of what there is room for, and what it has not brought yet. */
static int64_t wanted(const fsm *self, const struct work *learner,
                      const struct work *work)
{
    const struct fsm_options *options = &self->options;
    const int64_t all = (int64_t)works_count(&self->works, WORK_COLLECTOR);
    const int64_t share = (room(self, learner) + all - 1) / all;
    const int64_t most = 1 + options->ahead;
    const int64_t wants =
        work->asked + share < most ? work->asked + share : most;
    const int64_t left = options->samples_per_work - work->progress;
    if (options->samples_per_work == 0 || wants <= left)
        return wants;
    return left > 0 ? left : 1; /* then it tells that it is done */
}

static void ask(fsm *self, struct work *work, int64_t want)
{
    const bool eval = row_of(work)->judges;
    const struct collector_ask question = {
        .key = work->key,
        .policy_version = eval ? -1 : self->scheduler.policy_version,
        .want = want};
    ls_writer_clear(self->writer);
    collector_ask_write(&question, self->writer);
    work->asked = want;
    (void)fsm_call(self, ABOUT_DATA, work->member, work);
}

bool fsm_collector_pump(fsm *self, struct work *work, int64_t now)
{
    if (work->state != WORK_RUNNING || work->again_at > now)
        return false;
    struct work *learner = fsm_learner(self);
    const bool collects = row_of(work)->feeds;
    if (collects && learner == NULL)
        return false;
    const bool inserted = collects && insert(self, learner, work);
    if (self->status != LS_OK || fsm_has_call(self, work, ABOUT_DATA))
        return inserted;
    const int64_t want = collects ? wanted(self, learner, work) : 0;
    if (want > 0 || !collects)
        ask(self, work, want);
    return inserted;
}

/* Data that is in no buffer is of use to nobody. Who names a policy as its data
 * would have it dropped. */
static void drop_all(fsm *self, const struct collector_data *data)
{
    for (size_t i = 0; i < data->n; i++)
        if (!store_is_policy(data->samples[i].data_id))
            fsm_drop(self, data->samples[i].data_id);
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
                      const struct collector_data *data)
{
    int status = fsm_check_key(work, &data->key);
    if (status != LS_OK)
        return status;
    if (strcmp(data->buffer_id, work->buffer_id) != 0)
        return ls_error(LS_EPROTO, "buffer_id: %s, and its buffer is %s",
                        data->buffer_id, work->buffer_id);
    if (!data->is_info && !row_of(work)->feeds)
        return ls_error(LS_EPROTO, "data_id: an evaluation brings no sample");
    for (size_t i = 0; i < data->n && status == LS_OK; i++)
        status = check_sample(self, work, &data->samples[i]);
    return status;
}

static void take_info(fsm *self, int64_t now, struct work *work,
                      const struct collector_info *info)
{
    work->progress =
        row_of(work)->judges ? info->cur_episode : info->cur_sample;
    if (info->collector_done)
        fsm_work_close(self, work, now, WORK_FINISHED);
}

/* It waits for its turn: others may have been faster. */
static void add_waiting(fsm *self, struct work *work, const struct sample *of,
                        uint32_t home, int64_t now)
{
    struct waiting_data **last = &work->waiting;
    struct waiting_data *data = calloc(1, sizeof *data);
    if (data == NULL) {
        fsm_no_memory(self);
        return;
    }
    data->whole = *of;
    data->whole.home = home;
    data->whole.made_at = now;
    data->owes_drop = true;
    while (*last != NULL)
        last = &(*last)->next;
    *last = data;
}

static void take_data(fsm *self, int64_t now, const struct open_call *call,
                      const struct collector_data *data)
{
    struct work *work = call->work;
    struct work *learner = fsm_learner(self);
    const uint32_t home = self->options.data_elsewhere ? self->options.data_home
                                                       : call->member->id;
    for (size_t i = 0; i < data->n; i++)
        add_waiting(self, work, &data->samples[i], home, now);
    work->progress += (int64_t)data->n;
    work->asked -= (int64_t)data->n;
    if (work->asked < 0)
        work->asked = 0;
    if (learner != NULL)
        (void)insert(self, learner, work);
    else
        fsm_waiting_drop(self, work);
}

void fsm_data_ended(fsm *self, int64_t now, const struct open_call *call,
                    const struct ls_call_result *result)
{
    struct work *work = call->work;
    if (fsm_work_call_failed(self, now, call, result))
        return;
    struct collector_data data = {.n = 0};
    int status = collector_data_read(&data, result->data, result->size);
    if (status == LS_OK)
        status = check_data(self, work, &data);
    if (status != LS_OK) {
        fsm_work_malformed(self, now, call);
        drop_all(self, &data);
    } else {
        work->malformed = 0;
        if (data.is_info)
            take_info(self, now, work, &data.info);
        else
            take_data(self, now, call, &data);
    }
    collector_data_fini(&data);
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

void fsm_waiting_drop(fsm *self, struct work *work)
{
    while (work->waiting != NULL) {
        const struct waiting_data *first = work->waiting;
        self->counted.late_data += first->whole.parts - first->part;
        if (first->owes_drop)
            fsm_drop(self, first->whole.data_id);
        remove_first(work);
    }
}
