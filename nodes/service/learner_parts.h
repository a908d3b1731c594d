/* learner_parts.h - what the files of the learner service share. */
#ifndef LOCKSTEP_LEARNER_PARTS_H
#define LOCKSTEP_LEARNER_PARTS_H

#include "learner_service.h"
#include "service_work.h"

/* A batch with the learner: what was told of it, then its data. */
struct batch {
    struct learner_batch told;
    struct store_blob *blobs; /* own; told.n of them, once it was fetched */
    int status;               /* of fetching */
    char text[LS_CALL_TEXT_MAX + 1];
    bool fetching, fetched;
    bool dropped; /* whoever fetches it frees it */
};

void batch_destroy(struct batch *batch);

struct learner_service {
    struct learner_service_options options;
    struct service_work work; /* whose lock guards what follows */
    struct learner_work told; /* what the start call said */
    ls_request *demand;       /* own; the open get_data call */
    ls_request *answering;    /* own; the learn call of the batch that trains */
    struct batch *waiting;    /* own; the next one */
    ls_request *asking;       /* own; its learn call */
    bool wants;               /* batches may be asked for */
    bool outstanding;         /* one was, and has not come */
    bool training;
    bool finished; /* the last iteration is over */
    struct learner_info last;
    int64_t iter;           /* of the work: done, of all attempts */
    int64_t policy_version; /* the last one that was committed; -1: none */
    struct learner_figures figures; /* but for what `work` counts */
    int64_t training_since;         /* 0: nothing trains */
    bool stopping;

    ls_thread *fetcher; /* own */

    /* The task's thread. */
    struct priority_hooks hooks;
    struct learner_moment moment;
    struct batch *current; /* own; the one that trains */
    struct learner_info info;
    double priorities[SERVICE_BATCH_MAX];
    uint64_t news_seen; /* calls of masters, when the store was lost */
    int run_status;     /* why the run is to end, and not the work alone */
    ls_writer *writer;  /* own */
};

/* Answer the open get_data call, if it is time. Lock held. */
void learner_answer_demand(struct learner_service *service);

/* The thread that gets the data of the batch that waits. */
void learner_fetch(void *service);

/* learner_policy.c: the weights out of and into the store. Task's thread. */
LS_MUST_USE int learner_load(struct learner_service *service);
LS_MUST_USE int learner_commit(struct learner_service *service);

/* Its own hooks. */
LS_MUST_USE int learner_add_hooks(struct learner_service *service);

/* For service_work_ops. */
int learner_begin(void *service);
void learner_run_ended(void *service);

/* The steps, when there is a work. */
ls_step_fn learner_step_batch, learner_step_learn, learner_step_after;

#endif
