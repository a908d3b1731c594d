/* collector_parts.h - what the files of the collector service share. */
#ifndef LOCKSTEP_COLLECTOR_PARTS_H
#define LOCKSTEP_COLLECTOR_PARTS_H

#include "collector_service.h"
#include "service_work.h"

struct collector_service {
    struct collector_service_options options;
    struct service_work work;   /* whose lock guards what follows */
    struct collector_work told; /* what the start call said */
    ls_request *ask;            /* own; the open data call */
    int64_t wanted_version;     /* what the last call named */
    bool may_begin;  /* a call came, since the work or the store's failure */
    int64_t to_make; /* trajectories that may be begun, until the next call */
    bool makes;      /* one is being made */
    struct sample ready[SERVICE_DATA_MAX]; /* in the store, on their way to who
                                            * asks; the oldest first */
    size_t n_ready;
    int64_t episodes, steps, trajectories; /* of the work */
    int64_t told_episodes;                 /* by an info */
    double return_sum;                     /* of its episodes */
    int64_t samples;                       /* of the work, that calls took */
    int64_t version;                       /* of the policy; -1: none */
    struct collector_figures figures;      /* but for what `work` counts */

    /* The task's thread. */
    int64_t masters_lost; /* when it began to collect */
    bool collects;        /* there is something to collect in this iteration */
    int64_t policy_iter;
    uint64_t n_names; /* that it has given to data */
    struct ls_bytes data;
    struct collected what;
};

/* All was brought, or evaluated. Lock held. */
bool collector_is_done(const struct collector_service *service);
/* Answer the open call, if there is something to say. Lock held. */
void collector_answer(struct collector_service *service);
/* Nobody is to take what is ready. Lock held. */
void collector_discard(struct collector_service *service);

/* For service_work_ops. */
int collector_begin(void *service);
void collector_run_ended(void *service);

/* The steps, when there is a work. */
ls_step_fn collector_step_policy, collector_step_collect,
    collector_step_hand_over;

#endif
