/* scheduler.h - what the job wants: one learner work, collector works, and an
 * evaluation of the policy every now and then, until it is good or done.
 *
 * It asks for works one by one and is told when one is over, which makes its
 * space free again. Pure. Thread: serial. */
#ifndef LOCKSTEP_SERVICE_SCHEDULER_H
#define LOCKSTEP_SERVICE_SCHEDULER_H

#include "assign.h"

struct scheduler {
    /* As in struct fsm_options. */
    int64_t iterations, eval_interval, eval_episodes, max_env_steps, retry;
    double stop_value;
    size_t collector_works;
    bool spares_one; /* collector works never end: a collector gets none, so
                      * that there is one to evaluate */

    size_t out[WORK_KINDS]; /* works asked for and not over */

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

/* A work; an evaluation is of the policy as it is now. */
enum scheduler_wish {
    SCHEDULER_LEARNER = WORK_LEARNER,
    SCHEDULER_COLLECTOR = WORK_COLLECTOR,
    SCHEDULER_EVALUATION = WORK_EVALUATION,
    SCHEDULER_NOTHING,
    SCHEDULER_END
};

/* The figures as at the beginning; the options are the caller's to fill in. */
void scheduler_init(struct scheduler *scheduler);

/* What it wants most now, with so many collectors there. The caller does it and
 * says so by scheduler_asked(), but for the end.
 * why: static text, written at the end. */
enum scheduler_wish scheduler_next(const struct scheduler *scheduler,
                                   int64_t now, size_t collectors,
                                   const char **why);
void scheduler_asked(struct scheduler *scheduler, enum work_kind kind,
                     int64_t now);

/* A work is over. failed: it was given up, and its space is free again. */
void scheduler_freed(struct scheduler *scheduler, enum work_kind kind,
                     bool failed, int64_t now);

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
