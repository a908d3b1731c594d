#include "scheduler.h"

#include <math.h>
#include <string.h>

#include "lockstep/runtime.h"

void scheduler_init(struct scheduler *scheduler)
{
    scheduler->policy_version = -1;
    scheduler->value = NAN;
    scheduler->value_version = -1;
}

bool scheduler_is_learned(const struct scheduler *scheduler)
{
    return scheduler->done_infos > 0;
}

static const char *reason_to_end(const struct scheduler *scheduler)
{
    if (scheduler->value >= scheduler->stop_value)
        return "the value was reached";
    if (scheduler->max_env_steps > 0 &&
        scheduler->env_steps >= scheduler->max_env_steps)
        return "max_env_steps were taken";
    if (scheduler_is_learned(scheduler) &&
        (isnan(scheduler->stop_value) || scheduler->final_over))
        return "all iterations are done";
    return NULL;
}

size_t scheduler_others(const struct scheduler *scheduler,
                        const struct kind_use *own)
{
    size_t n = 0;
    for (size_t i = 0; i < scheduler->n_uses; i++) {
        const struct kind_use *use = &scheduler->uses[i];
        if (use != own && strcmp(use->kind->where, own->kind->where) == 0)
            n += use->out;
    }
    return n;
}

struct kind_use *scheduler_next(const struct scheduler *scheduler,
                                const struct pool *pool, int64_t now,
                                const char **why)
{
    *why = reason_to_end(scheduler);
    for (size_t i = 0; i < scheduler->n_uses && *why == NULL; i++) {
        struct kind_use *use = &scheduler->uses[i];
        if (use->kind->wanted(scheduler, use, pool, now))
            return use;
    }
    return NULL;
}

void scheduler_asked(struct scheduler *scheduler, struct kind_use *use,
                     int64_t now)
{
    use->out++;
    if (use->kind->asked != NULL)
        use->kind->asked(scheduler, now);
}

void scheduler_freed(struct scheduler *scheduler, struct kind_use *use,
                     bool failed, int64_t now)
{
    use->out--;
    if (use->kind->freed != NULL)
        use->kind->freed(scheduler, failed, now);
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
    int64_t at = LS_FOREVER;
    for (size_t i = 0; i < scheduler->n_uses; i++) {
        const struct kind_use *use = &scheduler->uses[i];
        const int64_t own = use->kind->wake_at != NULL
                                ? use->kind->wake_at(scheduler, use, now)
                                : LS_FOREVER;
        at = own < at ? own : at;
    }
    return at;
}
