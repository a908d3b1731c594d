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
    /* What this rank learns from: n_own samples from the first one on. All,
     * when it learns alone. */
    size_t first, n_own;
    /* In the first of several ranks: how the others are told of it. */
    struct ls_bytes words;            /* own */
    ls_collective *telling;           /* own */
    struct ls_group_parts told_parts; /* own */
};

/* As a rank waits for what is learned from next. */
#define RANKS_IDLE_MS 86400000

/* Learners that do a work together; the first one holds it. Under the lock,
 * unless it says otherwise. */
struct ranks {
    size_t n, own;      /* of how many, from 0, which one; task's thread, while
                         * there is no engine. n 1: it learns alone */
    ls_group *commands; /* own; what is learned from next; NULL: none */
    ls_group *steps;  /* own; the learner thread's, while there is an engine */
    bool left;        /* the groups were left, or are to be */
    int64_t newest;   /* attempt that it has begun, or joined */
    ls_request *wish; /* own; of the first rank of others */
    struct learner_work wished;
    ls_request *answering; /* own; that wish, once it was taken */
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
    struct ranks ranks;
    int engine_status; /* why the engine has failed */
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
    bool resumed; /* the policy was in the store already */
    struct learner_info info;
    uint64_t news_seen; /* calls of masters, when the store was lost */
    int run_status;     /* why the run is to end, and not the work alone */
    ls_writer *writer;  /* own */
};

void batches_init(struct batches *batches);
/* Lock held. */
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

/* learner_ranks.c: several learners. begin: ask the others, meet them, and send
 * what there is; end: close. Task's thread. Errors: those of the group, and of
 * the calls; the text names the rank. */
LS_MUST_USE int ranks_begin(struct learner_service *service);
void ranks_close(struct learner_service *service);
/* For one that is asked: the same in parts. */
LS_MUST_USE int ranks_open(struct learner_service *service);
LS_MUST_USE int ranks_meet(struct learner_service *service);
LS_MUST_USE int ranks_take_state(struct learner_service *service);
/* What is under way together fails, here and elsewhere; lock held. */
void ranks_leave(struct learner_service *service, int status);
bool ranks_are_several(const struct learner_service *service);
/* Have the others learn from this batch, too. Lock held. */
void ranks_tell(struct learner_service *service, struct batch *batch,
                const void *data, size_t size);
/* Learner thread. agree: whether all can learn from it: status LS_OK, or that
 * of the first that cannot, and which. compare: after it was learned from, that
 * all weights are equal, if there are any to compare; brings the priorities of
 * all. Errors: those of the group; LS_EMISMATCH a rank has other weights. */
LS_MUST_USE int ranks_agree(struct learner_service *service, int own,
                            size_t *who, int *status);
LS_MUST_USE int ranks_compare(struct learner_service *service,
                              struct batch *batch);

/* learner_assist.c: the same in a rank that is not the first. assist: from when
 * it is asked until it is over; task's thread. */
ls_request_fn learner_serve_rank;
bool learner_is_wanted(const void *service);
void learner_recall(void *service);
LS_MUST_USE int learner_assist(struct learner_service *service);

/* Its own hooks. */
LS_MUST_USE int learner_add_hooks(struct learner_service *service);

/* For service_work_ops. */
int learner_begin(void *service);
void learner_run_ended(void *service);

/* The steps, when there is a work. */
ls_step_fn learner_step_learn, learner_step_after;

#endif
