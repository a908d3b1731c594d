/* coordinator_settings.h - what a coordinator, and its replay buffer, are told
 * to do: by a plan in a job (plan_service.h), by hand in tests.
 *
 * fsm_create() and replay_create() check them. */
#ifndef LOCKSTEP_SERVICE_COORDINATOR_SETTINGS_H
#define LOCKSTEP_SERVICE_COORDINATOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#include "service_sabotage.h"

enum replay_mode { REPLAY_PRIORITY, REPLAY_FIFO };

struct replay_options {
    const char *name; /* as in safe_name.h, REPLAY_NAME_MAX bytes at most;
                       * copied. Items are NAME_0, NAME_1 … */
    enum replay_mode mode;
    size_t capacity;    /* items; one more pushes the oldest out */
    uint64_t max_bytes; /* of the data of items, and of what is lent; what is
                         * more pushes the oldest out, as long as there are
                         * more than the largest batch takes; 0: however
                         * many */
    size_t max_batch;   /* the largest batch that will be asked for; at most
                         * capacity */
    int64_t staleness_limit; /* items that are so many versions behind, or more,
                              * are removed; 0: however many */
    double min_valid_ratio;  /* nothing is given out unless so many times the
                              * batch are there; from 1; 0: default 1 */
    uint64_t max_times_sampled; /* an item is removed when it was drawn so
                                 * often; 0: never; fifo: default 1 */
    size_t min_size_to_sample;  /* items; at most capacity */
    double samples_per_insert;  /* 0: no rate limiter */
    double error_buffer;        /* in samples; at least half of max_batch +
                                 * samples_per_insert, since less could refuse both for
                                 * ever; 0: default, that much */
    uint64_t seed;
};

struct fsm_options {
    /* The scheduler. */
    int64_t iterations;       /* of the learner work; 0: until stop_value */
    double stop_value;        /* mean return of an evaluation that ends the
                               * job; NaN: none does */
    int64_t eval_interval;    /* ns between evaluations; 0: always one under
                               * way when there is a new policy version */
    int64_t eval_episodes;    /* 0: no evaluations */
    int64_t max_env_steps;    /* the job ends after so many; 0: no such end */
    int64_t max_time;         /* ns after which the job ends, counted from the
                               * first input of this life; 0: no such end */
    size_t collector_works;   /* at once, evaluations not counted; 0: as many
                               * as there are collectors */
    int64_t samples_per_work; /* then a collector is free for other works; 0:
                               * never, and one is kept free to evaluate */
    int64_t unroll_len, split;
    int64_t ahead;   /* pieces of data that a collector makes before it is asked
                      * again, besides one; 0: 1; less than SERVICE_DATA_MAX */
    bool data_stays; /* whoever dies: it is in files */
    bool keeps_samples;  /* a later life goes on with what is in the buffer:
                          * each change of it is recorded. With data_stays */
    bool data_elsewhere; /* it is kept by data_home, and not by who makes it */
    uint32_t data_home;  /* id of a node */
    int64_t batch_size;  /* 1 … SERVICE_BATCH_MAX */
    int64_t learner_batches; /* that a learner may have at once; 0: 2 */
    int64_t ranks; /* learners that do a work together; each batch can be
                    * shared evenly by them; 0: 1. Up to SERVICE_RANKS_MAX */
    int64_t send_policy_freq, send_info_freq;
    struct replay_options replay; /* name, max_batch and seed are filled in */

    /* Assignment; ns; 0: the default. */
    int64_t learner_expiry;   /* queued for so long: the work is given up, and
                               * the scheduler told; default 600 s */
    int64_t collector_expiry; /* the same of collectors; default 30 s */
    int64_t retry;            /* with a member that refused, or failed, nothing
                               * is begun for so long; default 3 s */
    int64_t call_timeout;     /* of start, resource, and close at the job's end;
                               * default 10 s */
    int64_t work_timeout;     /* of get_data, learn, data, close; default 60 s.
                               * A work that is not closed within is given up */
    int64_t max_failures;     /* of works of one kind in a row, nothing done
                               * between: the job ends with LS_EHANDLER.
                               * Members that are lost are none. Default 10 */
    uint64_t seed;            /* which of several free members gets a work */
    enum service_sabotage sabotage;
};

/* Errors: LS_EINVAL an option, which the text names. Those of the buffer are
 * checked by replay_create(). */
LS_MUST_USE int coordinator_settings_check(const struct fsm_options *options);

#endif
