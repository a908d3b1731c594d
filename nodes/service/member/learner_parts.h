/* learner_parts.h - what the files of the learner service share. */
#ifndef LOCKSTEP_LEARNER_PARTS_H
#define LOCKSTEP_LEARNER_PARTS_H

#include "learner_service.h"
#include "service_work.h"

/* What is committed: the weights, and what their training goes on from. */
struct snapshot {
    struct ls_bytes weights, training; /* own; size 0: there is none */
};

/* A batch, from its learn call to the answer. Whose turn it is changes it:
 * a loader, then the engine's learner thread, then the task. */
struct batch {
    struct batch *next;  /* in one of the lists below; under the lock */
    ls_request *request; /* own; the learn call; under the lock */
    bool is_due;         /* its turn has come; under the lock */
    bool begun;          /* it is being trained; under the lock */
    bool forsaken;       /* nobody wants it any more; under the lock */
    struct learner_batch told;
    struct learner_sample *samples; /* own; told.n */
    struct store_blob *blobs;       /* own; told.n of them, while fetched */
    double *priorities;             /* own; told.n */
    int status;                     /* of fetching and reading */
    char text[LS_CALL_TEXT_MAX + 1];
    bool trained;     /* with all passes, and what follows is there */
    int64_t iter;     /* which iteration of the work it was, from 0 */
    bool has_weights; /* those after it are to be committed */
    struct learner_info info;
    struct snapshot after; /* own */
};

struct batches {
    struct batch *first, **last;
};

struct learner_service {
    struct learner_service_options options;
    struct service_work work; /* whose lock guards what follows */
    struct learner_work told; /* what the start call said */
    ls_request *demand;       /* own; the open get_data call */
    ls_learner *engine;       /* own; NULL: there is no work, or all is done */
    struct batches under_way; /* in the engine; it owns them */
    struct batches over;      /* own; that have left it */
    struct batch *current;    /* own; whose iteration is being closed */
    int engine_status;        /* why the engine has failed */
    char engine_text[LS_CALL_TEXT_MAX + 1];
    bool wants;       /* batches may be asked for */
    bool outstanding; /* one was, and has not come */
    bool finished;    /* the last iteration is over */
    struct learner_info last;
    int64_t iter;           /* of the work: done, of all attempts */
    int64_t policy_version; /* the last one that was committed; -1: none */
    struct learner_figures figures; /* but for what `work` counts, and the
                                     * times of the engine that there is */

    /* The engine's learner thread, while there is one. */
    size_t n_devices;
    int64_t trained;        /* iterations of the work */
    struct batch *learning; /* borrow; NULL: what came was not wanted */

    /* The task's thread. */
    struct priority_hooks hooks;
    struct learner_moment moment;
    struct learner_info info;
    uint64_t news_seen; /* calls of masters, when the store was lost */
    int run_status;     /* why the run is to end, and not the work alone */
    ls_writer *writer;  /* own */
};

void batches_init(struct batches *batches);
/* Lock held. */
void batches_add(struct batches *batches, struct batch *batch);
struct batch *batches_take(struct batches *batches);
void batch_destroy(struct batch *batch);

/* Answer the open get_data call, if it is time. Lock held. */
void learner_answer_demand(struct learner_service *service);

/* learner_engine.c: where batches are loaded and trained. begin: after the
 * weights are there; on the task's thread. Errors: those of
 * ls_learner_create().
 */
LS_MUST_USE int learner_engine_begin(struct learner_service *service);
/* Ends what is under way, waits for it, and forgets what came of it. Task's
 * thread. */
void learner_engine_end(struct learner_service *service);
/* Lock held. batch: moved, on success. Errors: what the engine failed with. */
LS_MUST_USE int learner_engine_put(struct learner_service *service,
                                   struct batch *batch);
/* Where the engine's time went until now. Lock held. */
void learner_add_times(const struct learner_service *service,
                       struct learner_figures *figures);
/* What has not begun to be trained is not wanted any more, and its calls fail.
 * Lock held. */
void learner_forsake(struct learner_service *service, const char *text);

/* What the ops do beside learning. */
LS_MUST_USE int learner_beside(const struct learner_service *service,
                               enum ls_hook_position position, int64_t iter,
                               ls_learner_info *info);

/* learner_policy.c: out of and into the store. Task's thread, but for take and
 * fini. */
LS_MUST_USE int learner_load(struct learner_service *service);
/* What there is now; nobody may be training. out: own, also after an error. */
LS_MUST_USE int snapshot_take(const struct learner_service *service,
                              struct snapshot *out);
void snapshot_fini(struct snapshot *snapshot);
LS_MUST_USE int learner_commit(struct learner_service *service,
                               const struct snapshot *snapshot);

/* Its own hooks. */
LS_MUST_USE int learner_add_hooks(struct learner_service *service);

/* For service_work_ops. */
int learner_begin(void *service);
void learner_run_ended(void *service);

/* The steps, when there is a work. */
ls_step_fn learner_step_learn, learner_step_after;

#endif
