/* A learner work: it begins with the policy that was committed last, or makes
 * one; what it demands is drawn from its replay buffer, and what it tells of
 * its iterations is noted. It may demand while it learns. It ends with the last
 * iteration, and with it whatever fills its buffer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fsm_state.h"
#include "policy_value.h"

enum { START, DEMAND, LEARN, CLOSE, TASKS };
static const struct fsm_task tasks[TASKS];

/* When one is wanted ------------------------------------------------------- */

static size_t ranks(const struct fsm_options *options)
{
    return (size_t)options->ranks;
}

static int64_t expiry(const struct fsm_options *options)
{
    return options->learner_expiry;
}

static void describe(const struct fsm_options *options, char *text, size_t size)
{
    char until[64] = "until it is solved";
    if (options->iterations > 0)
        (void)snprintf(until, sizeof until, "%" PRId64 " iterations",
                       options->iterations);
    (void)snprintf(
        text, size, "%s, batches of %" PRId64 " samples of %" PRId64 " steps",
        until, options->batch_size, options->unroll_len / options->split);
}

static bool wanted(const struct scheduler *scheduler,
                   const struct kind_use *own, const struct pool *pool,
                   int64_t now)
{
    (void)pool;
    (void)now;
    return own->out == 0 && !scheduler_is_learned(scheduler);
}

static void drop_policy(fsm *self)
{
    char training[SAFE_NAME_MAX + 1];
    fsm_drop(self, self->policy_id);
    for (int64_t i = 0; i < 2; i++)
        if (policy_training_name(training, self->policy_id, i) == LS_OK)
            fsm_drop(self, training);
}

static void ask(fsm *self, struct kind_use *own, int64_t now)
{
    struct work *work = fsm_work_new(self, own, 0, now);
    if (work == NULL)
        return;
    /* One that was given up has left its policy behind. */
    if (self->policy_id[0] == '\0') {
        (void)snprintf(self->policy_id, sizeof self->policy_id,
                       "policy_%" PRIu64, work->number);
        fsm_record_figures(self);
        drop_policy(self); /* of an earlier job */
    }
    memcpy(work->policy_id, self->policy_id, sizeof work->policy_id);
    work->key.attempt = self->scheduler.learner_attempts + 1;
}

/* Whom it goes to ---------------------------------------------------------- */

/* A learner keeps its work for as long as there is a job: who is to have it
 * first is chosen when all have told what they offer. */
static bool may_go(const struct work *work, const struct pool *pool,
                   int64_t now)
{
    return work->key.attempt > 1 || !pool_is_asking(pool, kind_of(work), now);
}

static int compare(const struct pool_member *member,
                   const struct pool_member *other)
{
    if (member->gpu != other->gpu)
        return member->gpu > other->gpu ? 1 : -1;
    return pool_compare_cpu(member, other);
}

static void write_start(fsm *self, const struct work *work)
{
    const struct fsm_options *options = &self->options;
    struct learner_work message = {.key = work->key,
                                   .batch_size = options->batch_size,
                                   .iterations = options->iterations,
                                   .send_policy_freq =
                                       options->send_policy_freq,
                                   .send_info_freq = options->send_info_freq,
                                   .done = self->scheduler.committed,
                                   .gpu = work->member->gpu,
                                   .cpu = work->member->cpu};
    message.n_ranks = work->n_ranks;
    for (size_t i = 0; i < work->n_ranks; i++)
        message.ranks[i] = work->ranks[i];
    memcpy(message.policy_id, work->policy_id, sizeof message.policy_id);
    memcpy(message.buffer_id, work->buffer_id, sizeof message.buffer_id);
    (void)snprintf(message.learner_id, sizeof message.learner_id, "learner_%u",
                   (unsigned)work->member->id);
    learner_work_write(&message, self->writer);
}

/* Its turns ---------------------------------------------------------------- */

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
    fsm_ask(self, &tasks[LEARN], work, batch);
    return true;
}

static bool turn(fsm *self, struct work *work, int64_t now)
{
    if (work->done) {
        if (!fsm_has_call(self, work, &tasks[LEARN]))
            fsm_work_close(self, work, now, WORK_FINISHED);
        return false;
    }
    if (work->demanded > 0)
        return give_batch(self, work);
    if (unused(work) != NULL && !fsm_has_call(self, work, &tasks[DEMAND])) {
        ls_writer_clear(self->writer);
        work_key_write(&work->key, self->writer);
        fsm_ask(self, &tasks[DEMAND], work, NULL);
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

static void demand_ended(fsm *self, int64_t now, const struct open_call *call,
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
    work->use->failures = 0;
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

static void learn_ended(fsm *self, int64_t now, const struct open_call *call,
                        const struct ls_call_result *result)
{
    struct work *work = call->work;
    struct lent_batch *batch = call->load;
    const size_t n = batch->n;
    const bool robbed = batch->robbed;
    if (result->state == LS_CALL_START_FAILED)
        batch_refused(self, work, batch);
    else
        fsm_batch_release(self, work, batch);
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
        take_result(self, work, batch->drawn, &learned);
}

static void unload(fsm *self, struct work *work, void *load)
{
    fsm_batch_release(self, work, load);
}

/* Its end ------------------------------------------------------------------ */

static bool is_done(const struct work *work)
{
    return work->done;
}

static int read_exit(struct work_exit *out, const void *data, size_t size)
{
    struct learner_closed closed;
    const int status = learner_closed_read(&closed, data, size);
    if (status == LS_OK)
        out->key = closed.key;
    return status;
}

/* The kind ----------------------------------------------------------------- */

static const char *const brings[] = {"policy", NULL};

static const struct fsm_task tasks[TASKS] = {
    [START] = {.phase = LS_JOB_INIT, .name = CALL_LEARNER_START},
    [DEMAND] = {.phase = LS_JOB_EPOCH,
                .name = CALL_LEARNER_DEMAND,
                .ended = demand_ended},
    [LEARN] = {.phase = LS_JOB_EPOCH,
               .name = CALL_LEARNER_LEARN,
               .outputs = brings,
               .ended = learn_ended,
               .unload = unload},
    [CLOSE] = {.phase = LS_JOB_EXIT, .name = CALL_LEARNER_CLOSE},
};

const struct fsm_kind fsm_kind_learner = {.name = "learner",
                                          .verb = "learn",
                                          .number = 0,
                                          .where = "role:learner",
                                          .tasks = tasks,
                                          .n_tasks = TASKS,
                                          .ranks = ranks,
                                          .expiry = expiry,
                                          .describe = describe,
                                          .wanted = wanted,
                                          .ask = ask,
                                          .open = fsm_buffer_open,
                                          .may_go = may_go,
                                          .compare = compare,
                                          .write_start = write_start,
                                          .turn = turn,
                                          .is_done = is_done,
                                          .read_exit = read_exit};
