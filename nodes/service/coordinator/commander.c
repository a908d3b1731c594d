#include "commander.h"

#include <math.h>

#include "lockstep/runtime.h"

void commander_init(struct commander *commander)
{
    commander->policy_version = -1;
    commander->value = NAN;
    commander->value_version = -1;
}

static bool is_learned(const struct commander *commander)
{
    return commander->done_infos > 0;
}

/* The untrained policy is not worth one, unless it is all there will be. */
static bool may_evaluate(const struct commander *commander)
{
    if (commander->eval_episodes == 0 || commander->out[WORK_EVALUATION] > 0 ||
        commander->policy_version < 0)
        return false;
    if (is_learned(commander))
        return !isnan(commander->stop_value) && !commander->final_over;
    return commander->policy_version > commander->asked_version;
}

static const char *reason_to_end(const struct commander *commander)
{
    if (commander->value >= commander->stop_value)
        return "the value was reached";
    if (commander->max_env_steps > 0 &&
        commander->env_steps >= commander->max_env_steps)
        return "max_env_steps were taken";
    if (is_learned(commander) &&
        (isnan(commander->stop_value) || commander->final_over))
        return "all iterations are done";
    return NULL;
}

static size_t collectors_wanted(const struct commander *commander,
                                size_t collectors)
{
    const size_t evaluate = commander->out[WORK_EVALUATION] == 0
                                ? (commander->spares_one ? 1 : 0)
                                : commander->out[WORK_EVALUATION];
    if (commander->collector_works > 0)
        return commander->collector_works;
    return collectors > evaluate ? collectors - evaluate : 0;
}

enum commander_wish commander_next(const struct commander *commander,
                                   int64_t now, size_t collectors,
                                   const char **why)
{
    const char *reason = reason_to_end(commander);
    if (reason != NULL) {
        *why = reason;
        return COMMANDER_END;
    }
    if (may_evaluate(commander) && now >= commander->next_at)
        return COMMANDER_EVALUATION;
    if (is_learned(commander))
        return COMMANDER_NOTHING;
    if (commander->out[WORK_LEARNER] == 0)
        return COMMANDER_LEARNER;
    /* Without a policy nobody can collect. */
    if (commander->policy_version >= 0 &&
        commander->out[WORK_COLLECTOR] <
            collectors_wanted(commander, collectors))
        return COMMANDER_COLLECTOR;
    return COMMANDER_NOTHING;
}

void commander_asked(struct commander *commander, enum work_kind kind,
                     int64_t now)
{
    commander->out[kind]++;
    if (kind == WORK_EVALUATION) {
        commander->asked_version = commander->policy_version;
        commander->next_at =
            is_learned(commander) ? now : now + commander->eval_interval;
    }
}

void commander_freed(struct commander *commander, enum work_kind kind,
                     bool failed, int64_t now)
{
    commander->out[kind]--;
    if (kind != WORK_EVALUATION)
        return;
    if (failed) {
        commander->asked_version = 0;
        commander->next_at = now + commander->retry;
    } else if (is_learned(commander)) {
        commander->final_over =
            commander->asked_version == commander->policy_version;
        commander->next_at = now;
    }
}

void commander_committed(struct commander *commander, int64_t version,
                         int64_t iterations)
{
    if (version <= commander->policy_version)
        return;
    commander->policy_version = version;
    commander->committed = iterations;
}

void commander_info(struct commander *commander,
                    const struct learner_info *info)
{
    commander->infos++;
    commander->learner_step = info->learner_step;
    commander_committed(commander, info->policy_version, info->learner_step);
    if (info->learner_done) {
        commander->done_infos++;
        commander->next_at = INT64_MIN; /* the last evaluation waits for none */
    }
}

void commander_evaluated(struct commander *commander, double value,
                         int64_t version)
{
    commander->evaluations++;
    commander->value = value;
    commander->value_version =
        version >= 0 ? version : commander->asked_version;
}

int64_t commander_wake_at(const struct commander *commander, int64_t now)
{
    return may_evaluate(commander) && commander->next_at > now
               ? commander->next_at
               : LS_FOREVER;
}
