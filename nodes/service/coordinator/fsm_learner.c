/* A running learner work: what it demands is drawn from its buffer, and what it
 * tells of its iterations is noted. It may demand while it learns. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsm_state.h"

struct work *fsm_learner(const fsm *self)
{
    struct work *work = self->works.first;
    while (work != NULL && work->buffer == NULL)
        work = work->next;
    return work;
}

int fsm_learner_init(fsm *self, struct work *work)
{
    (void)snprintf(work->buffer_id, sizeof work->buffer_id, "buffer_%" PRIu64,
                   work->number);
    work->lent =
        calloc((size_t)self->options.learner_batches, sizeof *work->lent);
    if (work->lent == NULL)
        return ls_error(LS_ENOMEM, "the batches of %s", work->key.task_id);
    work->n_lent = (size_t)self->options.learner_batches;
    for (size_t i = 0; i < work->n_lent; i++) {
        work->lent[i].drawn = calloc((size_t)self->options.batch_size,
                                     sizeof(struct drawn_sample));
        if (work->lent[i].drawn == NULL)
            return ls_error(LS_ENOMEM, "the batches of %s", work->key.task_id);
    }
    struct replay_options options = self->options.replay;
    options.name = work->buffer_id;
    options.seed = self->options.seed + work->number;
    options.max_batch = (size_t)self->options.batch_size;
    return replay_create(&work->buffer, &options);
}

/* What is of this data still waits for its turn; NULL: nothing. */
static struct waiting_data *rest_of(const fsm *self, const char *data_id)
{
    for (const struct work *w = self->works.first; w != NULL; w = w->next)
        for (struct waiting_data *d = w->waiting; d != NULL; d = d->next)
            if (strcmp(d->whole.data_id, data_id) == 0)
                return d;
    return NULL;
}

void fsm_buffer_drain(fsm *self, struct work *work)
{
    char name[SAFE_NAME_MAX + 1];
    while (replay_take_dropped(work->buffer, name)) {
        struct waiting_data *rest = rest_of(self, name);
        if (rest != NULL)
            rest->owes_drop = true;
        else
            fsm_drop(self, name);
    }
}

void fsm_data_lost(fsm *self, uint32_t home)
{
    struct work *work = fsm_learner(self);
    if (work == NULL || self->options.data_stays)
        return;
    replay_lose(work->buffer, home);
    for (size_t i = 0; i < work->n_lent; i++)
        for (size_t k = 0; k < work->lent[i].n; k++)
            if (work->lent[i].drawn[k].sample.home == home)
                work->lent[i].robbed = true;
    fsm_buffer_drain(self, work);
}

void fsm_buffer_close(fsm *self, struct work *work)
{
    if (work->buffer == NULL)
        return;
    replay_figures(work->buffer, &self->counted.replay);
    replay_close(work->buffer);
    fsm_buffer_drain(self, work);
    replay_destroy(&work->buffer);
}

void fsm_batch_release(fsm *self, struct work *work, struct lent_batch *batch)
{
    if (work->buffer != NULL && batch->n > 0) {
        if (replay_release(work->buffer, batch->drawn, batch->n) != LS_OK)
            fsm_say(self, LS_LOG_ERROR, "%s: %s", work->buffer_id,
                    ls_error_text());
        fsm_buffer_drain(self, work);
    }
    batch->n = 0;
    batch->robbed = false;
}

/* What it may have at once, it has. */
static struct lent_batch *unused(struct work *work)
{
    for (size_t i = 0; i < work->n_lent; i++)
        if (work->lent[i].n == 0)
            return &work->lent[i];
    return NULL;
}

static void write_batch(fsm *self, const struct work *work,
                        const struct lent_batch *batch)
{
    ls_writer_clear(self->writer);
    learner_batch_write(&(struct learner_batch){.key = work->key,
                                                .n = batch->n,
                                                .items = batch->drawn},
                        self->writer);
}

static bool give_batch(fsm *self, struct work *work)
{
    struct lent_batch *batch = unused(work);
    const size_t n = (size_t)work->demanded;
    if (batch == NULL || !replay_may_sample(work->buffer, n) ||
        replay_sample(work->buffer, n, batch->drawn) != LS_OK)
        return false;
    batch->n = n;
    work->demanded = 0;
    fsm_record_items(self, work, batch->drawn, n, NULL);
    fsm_buffer_drain(self, work);
    write_batch(self, work, batch);
    if (self->status != LS_OK)
        return false;
    struct open_call *call = fsm_call(self, ABOUT_LEARN, work->member, work);
    if (call != NULL)
        call->batch = batch;
    return true;
}

bool fsm_learner_pump(fsm *self, struct work *work, int64_t now)
{
    if (work->state != WORK_RUNNING || work->again_at > now)
        return false;
    if (work->done) {
        if (!fsm_has_call(self, work, ABOUT_LEARN))
            fsm_work_close(self, work, now, WORK_FINISHED);
        return false;
    }
    if (work->demanded > 0)
        return give_batch(self, work);
    if (unused(work) != NULL && !fsm_has_call(self, work, ABOUT_DEMAND)) {
        ls_writer_clear(self->writer);
        work_key_write(&work->key, self->writer);
        (void)fsm_call(self, ABOUT_DEMAND, work->member, work);
    }
    return false;
}

static void note_info(fsm *self, struct work *work,
                      const struct learner_info *info)
{
    scheduler_info(&self->scheduler, info);
    if (work->buffer != NULL)
        replay_set_version(work->buffer, self->scheduler.policy_version);
    fsm_buffer_drain(self, work);
    work->progress = info->learner_step;
    fsm_act(self, &(struct fsm_action){.kind = FSM_INFO, .info = info});
}

static int check_demand(const fsm *self, const struct work *work,
                        const struct learner_demand *demand)
{
    const int status = fsm_check_key(work, &demand->key);
    if (status != LS_OK)
        return status;
    if (strcmp(demand->buffer_id, work->buffer_id) != 0)
        return ls_error(LS_EPROTO, "buffer_id: %s, and its buffer is %s",
                        demand->buffer_id, work->buffer_id);
    if (!demand->done && demand->batch_size != self->options.batch_size)
        return ls_error(LS_EPROTO, "batch_size: %lld, but it was told %lld",
                        (long long)demand->batch_size,
                        (long long)self->options.batch_size);
    if (demand->done && !demand->info.learner_done)
        return ls_error(LS_EPROTO,
                        "info: it is done, but learner_done is not set");
    return LS_OK;
}

void fsm_demand_ended(fsm *self, int64_t now, const struct open_call *call,
                      const struct ls_call_result *result)
{
    struct work *work = call->work;
    if (fsm_work_call_failed(self, now, call, result))
        return;
    struct learner_demand demand;
    int status = learner_demand_read(&demand, result->data, result->size);
    if (status == LS_OK)
        status = check_demand(self, work, &demand);
    if (status != LS_OK) {
        fsm_work_malformed(self, now, call);
        return;
    }
    work->malformed = 0;
    scheduler_committed(&self->scheduler, demand.policy_version,
                        demand.cur_learner_iter);
    if (demand.done) {
        work->done = true;
        note_info(self, work, &demand.info);
        fsm_record_figures(self);
        fsm_record_work(self, work);
    } else {
        work->demanded = demand.batch_size;
    }
}

static int check_result(const struct work *work, size_t n,
                        const struct learner_result *result)
{
    const int status = fsm_check_key(work, &result->key);
    if (status != LS_OK)
        return status;
    if (strcmp(result->buffer_id, work->buffer_id) != 0)
        return ls_error(LS_EPROTO, "buffer_id: %s, and its buffer is %s",
                        result->buffer_id, work->buffer_id);
    if (result->has_info && result->info.learner_done)
        return ls_error(LS_EPROTO, "info: learner_done is for the last demand");
    if (result->n != 0 && result->n != n)
        return ls_error(LS_EPROTO, "priorities: %zu for %zu samples", result->n,
                        n);
    return LS_OK;
}

/* The learner waits for another one, so the batch goes back. */
static void batch_refused(fsm *self, struct work *work,
                          struct lent_batch *batch)
{
    work->demanded = (int64_t)batch->n;
    fsm_batch_release(self, work, batch);
}

/* An item that is gone meanwhile is counted there. */
static void take_result(fsm *self, struct work *work,
                        const struct drawn_sample *drawn,
                        const struct learner_result *result)
{
    self->failures[WORK_LEARNER] = 0;
    self->counted.batches++;
    scheduler_committed(&self->scheduler, result->policy_version,
                        result->cur_learner_iter);
    replay_set_version(work->buffer, self->scheduler.policy_version);
    fsm_buffer_drain(self, work);
    for (size_t i = 0; i < result->n; i++) {
        struct priority_update update = {.slot = drawn[i].slot,
                                         .priority = result->priorities[i]};
        memcpy(update.unique_id, drawn[i].unique_id, sizeof update.unique_id);
        (void)replay_update_priority(work->buffer, &update);
    }
    fsm_record_items(self, work, drawn, result->n, result->priorities);
    work->progress = self->scheduler.learner_step = result->cur_learner_iter;
    if (result->has_info)
        note_info(self, work, &result->info);
    fsm_record_figures(self);
}

void fsm_learn_ended(fsm *self, int64_t now, const struct open_call *call,
                     const struct ls_call_result *result)
{
    struct work *work = call->work;
    const size_t n = call->batch->n;
    const bool robbed = call->batch->robbed;
    if (result->state == LS_CALL_START_FAILED)
        batch_refused(self, work, call->batch);
    else
        fsm_batch_release(self, work, call->batch);
    if (result->state == LS_CALL_FAILED) { /* that batch alone */
        if (!robbed)
            (void)fsm_count_failure(self, work, now, result->text);
        return;
    }
    if (fsm_work_call_failed(self, now, call, result))
        return;
    struct learner_result learned;
    int status = learner_result_read(&learned, result->data, result->size);
    if (status == LS_OK)
        status = check_result(work, n, &learned);
    if (status != LS_OK) {
        fsm_work_malformed(self, now, call);
        return;
    }
    work->malformed = 0;
    if (!learned.data_lost)
        take_result(self, work, call->batch->drawn, &learned);
}
