/* scheduler.h - what the job wants, until the policy is good or done: its kinds
 * say by what was learned whether one more work is wanted (fsm_kinds.h).
 *
 * It asks for works one by one and is told when one is over, which makes its
 * space free again. Pure. Thread: serial. */
#ifndef LOCKSTEP_SERVICE_SCHEDULER_H
#define LOCKSTEP_SERVICE_SCHEDULER_H

#include "assign.h"

struct scheduler {
    /* As in struct fsm_options. */
    int64_t eval_interval, eval_episodes, max_env_steps, retry;
    double stop_value;
    size_t collector_works;
    bool spares_one; /* collector works never end: of several collectors one
                      * gets none, so that there is one to evaluate */

    struct kind_use *uses; /* borrow; of all kinds, in their order */
    size_t n_uses;

    /* What was learned. */
    int64_t policy_version; /* that is known to be committed; -1: none */
    int64_t learner_step, committed, infos, done_infos, env_steps;
    int64_t learner_attempts; /* at all learner works: the policy goes on from
                               * one to the next */

    /* Evaluations. */
    int64_t asked_version; /* that the last one was to be of */
    int64_t next_at;       /* not before */
    int64_t evaluations;
    double value; /* the last; NaN: none */
    int64_t value_version;
    bool final_over; /* what was learned at last has been evaluated */
};

/* The figures as at the beginning; options and kinds are the caller's to fill
 * in. */
void scheduler_init(struct scheduler *scheduler);

/* The kind of which it wants one more now; NULL: none. The caller does it and
 * says so by scheduler_asked(). why: static text: the job is to end; else NULL.
 */
struct kind_use *scheduler_next(const struct scheduler *scheduler,
                                const struct pool *pool, int64_t now,
                                const char **why);
void scheduler_asked(struct scheduler *scheduler, struct kind_use *use,
                     int64_t now);

/* A work is over. failed: it was given up, and its space is free again. */
void scheduler_freed(struct scheduler *scheduler, struct kind_use *use,
                     bool failed, int64_t now);

/* For kinds: no iteration is left to be done; and how many works of other kinds
 * are out that are for the same members. */
bool scheduler_is_learned(const struct scheduler *scheduler);
size_t scheduler_others(const struct scheduler *scheduler,
                        const struct kind_use *own);

/* An info of the learner. */
void scheduler_info(struct scheduler *scheduler,
                    const struct learner_info *info);
/* It tells that this version is committed, at this iteration. */
void scheduler_committed(struct scheduler *scheduler, int64_t version,
                         int64_t iterations);
/* An evaluation has brought this value; version: -1: it is not known. */
void scheduler_evaluated(struct scheduler *scheduler, double value,
                         int64_t version);

/* When it may want something that it does not want now; LS_FOREVER: not. */
int64_t scheduler_wake_at(const struct scheduler *scheduler, int64_t now);

#endif
