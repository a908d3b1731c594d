#include "scheduler.h"

#include <math.h>

#include "lockstep/runtime.h"

void scheduler_init(struct scheduler *scheduler)
{
    scheduler->policy_version = -1;
    scheduler->value = NAN;
    scheduler->value_version = -1;
}

static bool is_learned(const struct scheduler *scheduler)
{
    return scheduler->done_infos > 0;
}

/* The untrained policy is not worth one, unless it is all there will be. */
static bool may_evaluate(const struct scheduler *scheduler)
{
    if (scheduler->eval_episodes == 0 || scheduler->out[WORK_EVALUATION] > 0 ||
        scheduler->policy_version < 0)
        return false;
    if (is_learned(scheduler))
        return !isnan(scheduler->stop_value) && !scheduler->final_over;
    return scheduler->policy_version > scheduler->asked_version;
}

static const char *reason_to_end(const struct scheduler *scheduler)
{
    if (scheduler->value >= scheduler->stop_value)
        return "the value was reached";
    if (scheduler->max_env_steps > 0 &&
        scheduler->env_steps >= scheduler->max_env_steps)
        return "max_env_steps were taken";
    if (is_learned(scheduler) &&
        (isnan(scheduler->stop_value) || scheduler->final_over))
        return "all iterations are done";
    return NULL;
}

static size_t collectors_wanted(const struct scheduler *scheduler,
                                size_t collectors)
{
    const size_t evaluate = scheduler->out[WORK_EVALUATION] == 0
                                ? (scheduler->spares_one ? 1 : 0)
                                : scheduler->out[WORK_EVALUATION];
    if (scheduler->collector_works > 0)
        return scheduler->collector_works;
    return collectors > evaluate ? collectors - evaluate : 0;
}

enum scheduler_wish scheduler_next(const struct scheduler *scheduler,
                                   int64_t now, size_t collectors,
                                   const char **why)
{
    const char *reason = reason_to_end(scheduler);
    if (reason != NULL) {
        *why = reason;
        return SCHEDULER_END;
    }
    if (may_evaluate(scheduler) && now >= scheduler->next_at)
        return SCHEDULER_EVALUATION;
    if (is_learned(scheduler))
        return SCHEDULER_NOTHING;
    if (scheduler->out[WORK_LEARNER] == 0)
        return SCHEDULER_LEARNER;
    /* Without a policy nobody can collect. */
    if (scheduler->policy_version >= 0 &&
        scheduler->out[WORK_COLLECTOR] <
            collectors_wanted(scheduler, collectors))
        return SCHEDULER_COLLECTOR;
    return SCHEDULER_NOTHING;
}

void scheduler_asked(struct scheduler *scheduler, enum work_kind kind,
                     int64_t now)
{
    scheduler->out[kind]++;
    if (kind == WORK_EVALUATION) {
        scheduler->asked_version = scheduler->policy_version;
        scheduler->next_at =
            is_learned(scheduler) ? now : now + scheduler->eval_interval;
    }
}

void scheduler_freed(struct scheduler *scheduler, enum work_kind kind,
                     bool failed, int64_t now)
{
    scheduler->out[kind]--;
    if (kind != WORK_EVALUATION)
        return;
    if (failed) {
        scheduler->asked_version = 0;
        scheduler->next_at = now + scheduler->retry;
    } else if (is_learned(scheduler)) {
        scheduler->final_over =
            scheduler->asked_version == scheduler->policy_version;
        scheduler->next_at = now;
    }
}

void scheduler_committed(struct scheduler *scheduler, int64_t version,
                         int64_t iterations)
{
    if (version <= scheduler->policy_version)
        return;
    scheduler->policy_version = version;
    scheduler->committed = iterations;
}

void scheduler_info(struct scheduler *scheduler,
                    const struct learner_info *info)
{
    scheduler->infos++;
    scheduler->learner_step = info->learner_step;
    scheduler_committed(scheduler, info->policy_version, info->learner_step);
    if (info->learner_done) {
        scheduler->done_infos++;
        scheduler->next_at = INT64_MIN; /* the last evaluation waits for none */
    }
}

void scheduler_evaluated(struct scheduler *scheduler, double value,
                         int64_t version)
{
    scheduler->evaluations++;
    scheduler->value = value;
    scheduler->value_version =
        version >= 0 ? version : scheduler->asked_version;
}

int64_t scheduler_wake_at(const struct scheduler *scheduler, int64_t now)
{
    return may_evaluate(scheduler) && scheduler->next_at > now
               ? scheduler->next_at
               : LS_FOREVER;
}
