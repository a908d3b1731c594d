/* What the scheduler wants becomes works, and works get members. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coverage.h"
#include "fsm_state.h"
#include "policy_value.h"

static void drop_policy(fsm *self)
{
    char training[SAFE_NAME_MAX + 1];
    fsm_drop(self, self->policy_id);
    for (int64_t i = 0; i < 2; i++)
        if (policy_training_name(training, self->policy_id, i) == LS_OK)
            fsm_drop(self, training);
}

static void ask_learner(fsm *self, int64_t now)
{
    struct work *work = fsm_work_new(self, WORK_LEARNER, 0, now);
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
    scheduler_asked(&self->scheduler, WORK_LEARNER, now);
}

static void ask_collector(fsm *self, int64_t now)
{
    struct work *work = fsm_work_new(self, WORK_COLLECTOR, 0, now);
    const struct work *learner = fsm_learner(self);
    if (work == NULL)
        return;
    memcpy(work->policy_id, self->policy_id, sizeof work->policy_id);
    if (learner != NULL)
        memcpy(work->buffer_id, learner->buffer_id, sizeof work->buffer_id);
    scheduler_asked(&self->scheduler, WORK_COLLECTOR, now);
}

/* The policy goes on changing, so the work gets one that does not. */
static void ask_evaluation(fsm *self, int64_t now)
{
    struct pending_snapshot *snapshot = &self->snapshot;
    snapshot->number = ++self->works.last_number;
    const int n = snprintf(snapshot->name, sizeof snapshot->name,
                           "%.40s@%" PRIu64, self->policy_id, snapshot->number);
    (void)n;
    scheduler_asked(&self->scheduler, WORK_EVALUATION, now);
    fsm_act(self, &(struct fsm_action){.kind = FSM_SNAPSHOT,
                                       .name = snapshot->name,
                                       .from = self->policy_id});
}

int fsm_snapshot_done(fsm *self, int64_t now, const char *name, int status)
{
    const uint64_t number = self->snapshot.number;
    if (number == 0 || strcmp(name, self->snapshot.name) != 0)
        return self->status;
    self->snapshot.number = 0;
    if (status != LS_OK || self->end.begun) {
        fsm_say(self, LS_LOG_WARN, "the policy is not kept as %s: %s", name,
                ls_status_sentence(status));
        scheduler_freed(&self->scheduler, WORK_EVALUATION, true, now);
        if (status == LS_OK)
            fsm_drop(self, name);
    } else {
        struct work *work = fsm_work_new(self, WORK_EVALUATION, number, now);
        if (work != NULL) {
            memcpy(work->policy_id, self->snapshot.name,
                   sizeof work->policy_id);
            (void)snprintf(work->buffer_id, sizeof work->buffer_id, "none");
        }
    }
    fsm_settle(self, now);
    return self->status;
}

static void write_learner(fsm *self, const struct work *work)
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

static void write_collector(fsm *self, const struct work *work)
{
    const struct fsm_options *options = &self->options;
    const bool eval = row_of(work)->judges;
    struct collector_work message = {
        .key = work->key,
        .eval_flag = eval,
        .samples = eval ? 0 : options->samples_per_work,
        .episodes = eval ? options->eval_episodes : 0,
        .unroll_len = options->unroll_len,
        .split = options->split,
        .gpu = work->member->gpu,
        .cpu = work->member->cpu};
    memcpy(message.policy_id, work->policy_id, sizeof message.policy_id);
    memcpy(message.buffer_id, work->buffer_id, sizeof message.buffer_id);
    (void)snprintf(message.collector_id, sizeof message.collector_id,
                   "collector_%u", (unsigned)work->member->id);
    collector_work_write(&message, self->writer);
}

/* What is done for a kind of work, beside what its row says (work_kinds.h). */
static const struct {
    void (*ask)(fsm *self, int64_t now); /* one more is wanted */
    void (*write_start)(fsm *self, const struct work *work);
} handlers[WORK_KINDS] = {
    [WORK_LEARNER] = {ask_learner, write_learner},
    [WORK_COLLECTOR] = {ask_collector, write_collector},
    [WORK_EVALUATION] = {ask_evaluation, write_collector},
};

void fsm_drive_scheduler(fsm *self, int64_t now)
{
    const char *why = "";
    while (self->status == LS_OK) {
        const enum scheduler_wish wish =
            scheduler_next(&self->scheduler, now,
                           pool_count(&self->pool, POOL_COLLECTOR), &why);
        if (wish == SCHEDULER_END)
            fsm_end(self, now, LS_OK, why);
        if (wish == SCHEDULER_END || wish == SCHEDULER_NOTHING)
            return;
        handlers[wish].ask(self, now);
    }
}

/* "node 1, node 2"; "nobody". */
static void list_members(const fsm *self, enum pool_role role, char *out,
                         size_t size)
{
    size_t at = 0;
    (void)snprintf(out, size, "nobody");
    for (const struct pool_member *m = self->pool.first; m != NULL && at < size;
         m = m->next)
        if (m->role == role && m->state != POOL_GONE)
            at += (size_t)snprintf(out + at, size - at, "%snode %u",
                                   at > 0 ? ", " : "", (unsigned)m->id);
}

static size_t count_missing(const fsm *self, const struct work *work)
{
    const size_t n = self->works.ranks[work->kind];
    const size_t here = pool_count(&self->pool, row_of(work)->role);
    return n > 1 && here < n ? n - here : 0;
}

/* A work that several do may need more than there are. Those that come at the
 * same time as it are not missed. */
static void say_missing(fsm *self, int64_t now)
{
    char list[256];
    for (struct work *w = self->works.first; w != NULL; w = w->next) {
        const size_t missing = count_missing(self, w);
        const char *const role = pool_role_names[row_of(w)->role];
        if (w->state != WORK_QUEUED || w->n_missing == missing)
            continue;
        if (missing > 0 && now - w->queued_at < self->options.retry) {
            w->again_at = w->queued_at + self->options.retry;
            continue;
        }
        w->n_missing = missing;
        if (missing == 0)
            continue;
        list_members(self, row_of(w)->role, list, sizeof list);
        fsm_say(self, LS_LOG_WARN,
                "%s waits for %zu more %s%s: it has %zu ranks, and of %ss "
                "there is %s",
                w->key.task_id, missing, role, missing == 1 ? "" : "s",
                self->works.ranks[w->kind], role, list);
    }
}

static void say_given(fsm *self, const struct work *work)
{
    if (work->n_ranks == 0)
        fsm_say(self, LS_LOG_INFO, "%s, attempt %lld, goes to node %u",
                work->key.task_id, (long long)work->key.attempt,
                (unsigned)work->member->id);
    else
        fsm_say(self, LS_LOG_INFO,
                "%s, attempt %lld, goes to node %u, the first of its %zu ranks",
                work->key.task_id, (long long)work->key.attempt,
                (unsigned)work->member->id, work->n_ranks);
}

void fsm_drive_queue(fsm *self, int64_t now)
{
    struct work *work;
    while (self->status == LS_OK &&
           (work = works_assign(&self->works, &self->pool, now)) != NULL) {
        fsm_record_work(self, work);
        say_given(self, work);
        ls_writer_clear(self->writer);
        handlers[work->kind].write_start(self, work);
        (void)fsm_call(self, ABOUT_START, work->member, work);
    }
    say_missing(self, now);
}

static void refused(fsm *self, int64_t now, struct work *work,
                    const struct ls_call_result *result)
{
    struct pool_member *member = work->member;
    fsm_say(self, LS_LOG_INFO, "node %u refuses %s: %s", (unsigned)member->id,
            work->key.task_id, result->text);
    self->counted.refused_starts++;
    ls_take(LS_TAKES_WORK_REFUSED);
    member->state = POOL_CONNECTED; /* what it has may be another thing now */
    fsm_member_rests(self, member, now);
    if (work->doomed) {
        fsm_work_over(self, work, now, work->end == WORK_GIVEN_UP);
        return;
    }
    works_return(work);
    fsm_record_work(self, work);
}

void fsm_start_ended(fsm *self, int64_t now, const struct open_call *call,
                     const struct ls_call_result *result)
{
    struct work *work = call->work;
    if (result->state == LS_CALL_START_FAILED) {
        refused(self, now, work, result);
        return;
    }
    ls_take(LS_TAKES_WORK_RUNS);
    work->state = WORK_RUNNING;
    work->again_at = now;
    if (result->state == LS_CALL_COMPLETED &&
        service_started_read(result->data, result->size) != LS_OK)
        fsm_malformed(self, call); /* and begun all the same */
    if (work->doomed)
        fsm_work_close(self, work, now, work->end);
    else if (result->state != LS_CALL_COMPLETED)
        fsm_work_failed(self, work, now, result->text);
}

void fsm_close_call(fsm *self, struct work *work)
{
    ls_writer_clear(self->writer);
    work_key_write(&work->key, self->writer);
    (void)fsm_call(self, ABOUT_CLOSE, work->member, work);
}

static bool read_closed(fsm *self, const struct open_call *call,
                        const struct ls_call_result *result,
                        struct collector_closed *finish)
{
    const struct work *work = call->work;
    struct learner_closed closed;
    const struct work_key *key = &closed.key;
    int status;
    const bool learns = row_of(work)->learns;
    if (learns) {
        status = learner_closed_read(&closed, result->data, result->size);
    } else {
        status = collector_closed_read(finish, result->data, result->size);
        key = &finish->key;
    }
    if (status == LS_OK)
        status = fsm_check_key(work, key);
    if (status != LS_OK)
        fsm_malformed(self, call);
    return status == LS_OK && !learns;
}

void fsm_close_ended(fsm *self, int64_t now, const struct open_call *call,
                     const struct ls_call_result *result)
{
    struct work *work = call->work;
    struct collector_closed finish;
    if (result->state == LS_CALL_COMPLETED) {
        const bool told = read_closed(self, call, result, &finish);
        fsm_work_closed(self, work, now, told ? &finish : NULL);
    } else if (self->end.begun || (result->state == LS_CALL_START_FAILED &&
                                   (result->code == LS_CALL_REFUSED ||
                                    result->code == LS_CALL_SHUTTING_DOWN))) {
        fsm_work_closed(self, work, now, NULL); /* it does not hold it */
    } else {
        work->again_at = now + self->options.retry;
        fsm_say(self, LS_LOG_WARN, "%s is not closed: %s", work->key.task_id,
                result->text);
    }
}
