/* collector_parts.h - what the files of the collector service share. */
#ifndef LOCKSTEP_COLLECTOR_PARTS_H
#define LOCKSTEP_COLLECTOR_PARTS_H

#include "collector_service.h"
#include "service_work.h"

struct collector_service;

/* A kind of work that is begun by the collector's start call, and has its turns
 * by the data call: what it makes in one, and what of that it hands over. */
struct collector_kind {
    struct service_kind of; /* first */
    /* With the lock held: all was brought; something may be made now, of a work
     * that is asked for it; there is more to tell than was. */
    bool (*is_done)(const struct collector_service *service);
    bool (*may_make)(const struct collector_service *service);
    bool (*has_news)(const struct collector_service *service);
    /* On the task's thread, without the lock. make: into `what` and `data`; so
     * many more may be made after it. An error gives the work back. */
    int (*make)(struct collector_service *service, int64_t more);
    int (*hand_over)(struct collector_service *service);
};
extern const struct collector_kind service_kind_collect, service_kind_evaluate;

struct collector_service {
    struct collector_service_options options;
    struct service_work work;          /* whose lock guards what follows */
    struct collector_work told;        /* what the start call said */
    const struct collector_kind *kind; /* of that work; NULL: of none yet */
    ls_request *ask;                   /* own; the open data call */
    int64_t wanted_version;            /* what the last call named */
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
    uint64_t masters_lost; /* when it began to collect */
    bool collects;         /* there is something to collect in this iteration */
    int64_t policy_iter;
    uint64_t n_names; /* that it has given to data */
    struct collected_data data;
    struct collected what;
};

/* Answer the open call, if there is something to say. Lock held. */
void collector_answer(struct collector_service *service);
/* Nobody is to take what is ready. Lock held. */
void collector_discard(struct collector_service *service);

/* For the kinds: what they have in common of a service_kind. */
#define COLLECTOR_TASKS 3
#define COLLECTOR_STEPS 3
#define COLLECTOR_KIND                                                         \
    .tasks = collector_tasks, .n_tasks = COLLECTOR_TASKS,                      \
    .steps = collector_steps, .n_steps = COLLECTOR_STEPS,                      \
    .begin = collector_begin, .drop = collector_drop,                          \
    .closed = collector_closed
extern const struct service_task collector_tasks[COLLECTOR_TASKS];
extern const struct service_work_step collector_steps[COLLECTOR_STEPS];
int collector_begin(void *service);
void collector_drop(void *service, const char *text);
void collector_closed(void *service, ls_writer *out);
/* What was made counts from now on. Lock held. */
void collector_count(struct collector_service *service);
/* The store has failed: whoever asks is told, by ls_error_text(), and the next
 * call is waited for. Returns LS_OK. */
int collector_fail_ask(struct collector_service *service);

/* For service_work_ops. */
void collector_run_ended(void *service);

#endif
