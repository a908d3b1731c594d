/* An evaluation: a collector's work that acts as well as it can, and brings no
 * samples but the mean return of its episodes. It is of a copy of the policy,
 * which goes on changing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fsm_state.h"
#include "lockstep/runtime.h"

enum { START, EPISODES, CLOSE, TASKS };
static const struct fsm_task tasks[TASKS];

/* When one is wanted ------------------------------------------------------- */

static int64_t expiry(const struct fsm_options *options)
{
    return options->collector_expiry;
}

static void describe(const struct fsm_options *options, char *text, size_t size)
{
    char every[64] = "";
    if (options->eval_interval > 0)
        (void)snprintf(every, sizeof every, " every %g s",
                       (double)options->eval_interval / (double)LS_NS_PER_S);
    (void)snprintf(text, size, "%" PRId64 " episode%s%s",
                   options->eval_episodes,
                   options->eval_episodes == 1 ? "" : "s", every);
}

/* The untrained policy is not worth one, unless it is all there will be. */
static bool may_be_wanted(const struct scheduler *scheduler)
{
    if (scheduler->eval_episodes == 0 || scheduler->policy_version < 0)
        return false;
    if (scheduler_is_learned(scheduler))
        return !isnan(scheduler->stop_value) && !scheduler->final_over;
    return scheduler->policy_version > scheduler->asked_version;
}

static bool wanted(const struct scheduler *scheduler,
                   const struct kind_use *own, const struct pool *pool,
                   int64_t now)
{
    (void)pool;
    return own->out == 0 && may_be_wanted(scheduler) &&
           now >= scheduler->next_at;
}

static int64_t wake_at(const struct scheduler *scheduler,
                       const struct kind_use *own, int64_t now)
{
    return own->out == 0 && may_be_wanted(scheduler) && scheduler->next_at > now
               ? scheduler->next_at
               : LS_FOREVER;
}

static void asked(struct scheduler *scheduler, int64_t now)
{
    scheduler->asked_version = scheduler->policy_version;
    scheduler->next_at =
        scheduler_is_learned(scheduler) ? now : now + scheduler->eval_interval;
}

static void freed(struct scheduler *scheduler, bool failed, int64_t now)
{
    if (failed) {
        scheduler->asked_version = 0;
        scheduler->next_at = now + scheduler->retry;
    } else if (scheduler_is_learned(scheduler)) {
        scheduler->final_over =
            scheduler->asked_version == scheduler->policy_version;
        scheduler->next_at = now;
    }
}

/* The policy goes on changing, so the work gets one that does not. */
static void ask(fsm *self, struct kind_use *own, int64_t now)
{
    struct pending_snapshot *snapshot = &self->snapshot;
    (void)now;
    snapshot->use = own;
    snapshot->number = ++self->works.last_number;
    const int n = snprintf(snapshot->name, sizeof snapshot->name,
                           "%.40s@%" PRIu64, self->policy_id, snapshot->number);
    (void)n;
    fsm_act(self, &(struct fsm_action){.kind = FSM_SNAPSHOT,
                                       .name = snapshot->name,
                                       .from = self->policy_id});
}

/* It is tried again for as long as another evaluation would be. */
static void not_kept(fsm *self, int64_t now, const char *name, int status)
{
    char why[200];
    (void)snprintf(why, sizeof why, "the policy is not kept as %s: %s", name,
                   ls_status_sentence(status));
    fsm_say(self, LS_LOG_WARN, "%s", why);
    (void)fsm_use_failed(self, self->snapshot.use, now, why);
}

int fsm_snapshot_done(fsm *self, int64_t now, const char *name, int status)
{
    const uint64_t number = self->snapshot.number;
    if (number == 0 || strcmp(name, self->snapshot.name) != 0)
        return self->status;
    self->snapshot.number = 0;
    if (status != LS_OK || self->end.begun) {
        if (status != LS_OK)
            not_kept(self, now, name, status);
        scheduler_freed(&self->scheduler, self->snapshot.use, true, now);
        if (status == LS_OK)
            fsm_drop(self, name);
    } else {
        struct work *work = fsm_work_new(self, self->snapshot.use, number, now);
        if (work != NULL) {
            memcpy(work->policy_id, self->snapshot.name,
                   sizeof work->policy_id);
            (void)snprintf(work->buffer_id, sizeof work->buffer_id, "none");
        }
    }
    fsm_settle(self, now);
    return self->status;
}

static void write_start(fsm *self, const struct work *work)
{
    fsm_collector_write_start(
        self, work,
        &(struct collector_work){.eval_flag = true,
                                 .episodes = self->options.eval_episodes});
}

/* Its turns ---------------------------------------------------------------- */

static bool turn(fsm *self, struct work *work, int64_t now)
{
    (void)now;
    if (!fsm_has_call(self, work, &tasks[EPISODES]))
        fsm_data_ask(self, &tasks[EPISODES], work, -1, 0);
    return false;
}

static void episodes_ended(fsm *self, int64_t now, const struct open_call *call,
                           const struct ls_call_result *result)
{
    struct work *work = call->work;
    struct collector_data data;
    if (!fsm_data_read(self, now, call, result, false, &data))
        return;
    work->progress = data.info.cur_episode;
    if (data.info.collector_done)
        fsm_work_close(self, work, now, WORK_FINISHED);
    collector_data_fini(&data);
}

/* Its end ------------------------------------------------------------------ */

/* Wherever the journal ends, the next life does not evaluate, give up or drop
 * what it says was evaluated: the work is over first, and the policy of before
 * goes last. */
static void evaluated(fsm *self, struct work *work, int64_t now,
                      const struct work_exit *exit)
{
    service_name before;
    scheduler_evaluated(&self->scheduler, exit->value, exit->version);
    work->use->failures = 0;
    memcpy(before, self->evaluated, sizeof before);
    memcpy(self->evaluated, work->policy_id, sizeof self->evaluated);
    fsm_work_over(self, work, now, false);
    fsm_record_figures(self);
    fsm_act(self,
            &(struct fsm_action){.kind = FSM_EVALUATED,
                                 .name = self->evaluated,
                                 .value = self->scheduler.value,
                                 .version = self->scheduler.value_version});
    if (before[0] != '\0')
        fsm_drop(self, before);
}

static bool brings(fsm *self, struct work *work, int64_t now,
                   const struct work_exit *exit)
{
    if (exit != NULL && !isnan(exit->value)) {
        evaluated(self, work, now, exit);
        return true;
    }
    fsm_member_rests(self, work->member, now);
    (void)fsm_count_failure(self, work, now, "it brings no value");
    return false;
}

static void over(fsm *self, const struct work *work, bool failed)
{
    if (failed)
        fsm_drop(self, work->policy_id);
}

/* The kind ----------------------------------------------------------------- */

static const char *const value[] = {"value", NULL};

static const struct fsm_task tasks[TASKS] = {
    [START] = {.phase = LS_JOB_INIT, .name = CALL_COLLECTOR_START},
    [EPISODES] = {.phase = LS_JOB_EPOCH,
                  .name = CALL_COLLECTOR_DATA,
                  .ended = episodes_ended,
                  .late = fsm_data_late},
    [CLOSE] = {.phase = LS_JOB_EXIT,
               .name = CALL_COLLECTOR_CLOSE,
               .outputs = value},
};

const struct fsm_kind fsm_kind_evaluation = {.name = "evaluation",
                                             .verb = "evaluate",
                                             .number = 2,
                                             .where = "role:collector",
                                             .tasks = tasks,
                                             .n_tasks = TASKS,
                                             .expiry = expiry,
                                             .describe = describe,
                                             .wanted = wanted,
                                             .wake_at = wake_at,
                                             .asked = asked,
                                             .freed = freed,
                                             .ask = ask,
                                             .compare = pool_compare_cpu,
                                             .write_start = write_start,
                                             .turn = turn,
                                             .read_exit =
                                                 fsm_collector_read_exit,
                                             .brings = brings,
                                             .over = over};
