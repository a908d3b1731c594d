/* job_parts.h - the inside of a job: what its files share. Who describes it
 * (job.c), how its tasks are placed (job_compile.c), what a node does for the
 * one that leads (job_node.c), the tasks that it runs (job_turns.c), what it
 * has of a checkpoint of others (job_reshard.c), and what the one that leads
 * does (job_run.c, job_resume.c). Messages and checkpoints: saves/. */
#ifndef LOCKSTEP_JOB_PARTS_H
#define LOCKSTEP_JOB_PARTS_H

#include "lane.h"
#include "lockstep/codec.h"
#include "lockstep/job.h"
#include "saves.h"

/* Where the limiter of epochs is: the first node whose blobs are saved. */
#define JOB_LIMITER "first"
#define LIMITER     "epoch_limiter" /* its task and its blob */

struct job_task {
    struct ls_job_task given; /* its texts are own */
    uint32_t *nodes;          /* own; where it runs, once compiled */
    size_t n_nodes;
    struct job_task *next;
};

/* Blobs that tasks have made live here. */
struct workspace {
    ls_blobs *blobs;       /* own */
    struct memory *memory; /* own; a list */
};

struct job_output {
    uint32_t node;
    char *name;
    void *data;
    size_t size;
    struct job_output *next;
};

struct ls_job {
    ls_node *node;
    ls_runtime *runtime;
    struct ls_job_options options; /* its texts are own */
    uint32_t id;
    struct job_task *groups[LS_JOB_N_PHASES]; /* in the order of adding */
    struct job_task *stops;                   /* given.name is the blob */
    struct job_task *shares[LS_JOB_N_SHARES]; /* the same */
    uint64_t limit;                           /* of epochs; 0: none */
    struct workspace global;

    /* Once compiled. */
    bool compiled;
    uint32_t *nodes, *keepers; /* own; whose blobs are saved; ascending */
    size_t n_nodes, n_keepers;
    uint32_t leader;
    char *text; /* own; the same on all nodes */

    char what[LS_JOB_MAX + 8]; /* "job NAME" */
    struct saves saves;        /* open while it runs */

    struct asker asker; /* its mutex is of what follows */
    /* That of tasks, and that of checkpoints, which work at the same time when
     * saves go behind. */
    struct lane lanes[2];
    bool ended;
    struct ls_failure failure; /* how it ended; kept: no requests any more */
    bool asked;                /* something, since it began */
    bool met;                  /* by the one that leads, in this run */
    int64_t asked_at;          /* when the last request came */
    struct turns *turns;       /* own; that run, or were left behind */

    struct job_output *outputs;
    struct ls_job_result result;
};

/* ---- job.c ---- */
bool job_list_has(const struct job_task *list, const char *name);
void job_outputs_clear(ls_job *job);
/* Takes the place of an earlier one. Errors: LS_ENOMEM. */
int job_outputs_put(ls_job *job, uint32_t node, const char *name,
                    const void *data, size_t size);

/* ---- job_compile.c ---- */
bool job_runs_on(const struct job_task *task, uint32_t id);
bool job_is_keeper(const ls_job *job);

/* ---- workspace.c ---- */
int workspace_init(struct workspace *space);
void workspace_fini(struct workspace *space);
/* Find it here or in `parent` (NULL: none), or make it here. */
int workspace_blob(struct workspace *space, const struct workspace *parent,
                   const char *name, const struct ls_blob_form *form,
                   void **memory);
/* The same, and one that a task has made with another form is made anew. */
int workspace_reform(struct workspace *space, const char *name,
                     const struct ls_blob_form *form, void **memory);

/* ---- job_turns.c: the tasks of a group that run on this node ---- */
/* Runs them, and copies what private ones put out to where it stays. A task
 * that fails, or a request that is cancelled, cancels all; whoever has not
 * ended cancel_timeout_ms later is left behind.
 * Errors: what a task returned first; LS_ETIMEDOUT one was left behind;
 *         LS_ECANCELED the job is over; LS_ESTATE some run; LS_ENOMEM. */
int turns_run(ls_job *job, ls_request *request, enum ls_job_phase phase,
              int64_t epoch);
/* With job->mutex held; if some run. */
void turns_cancel(ls_job *job);
/* Frees what is left of those that were left behind and have ended. While one
 * runs, the error is this status, and names it. */
int turns_end(ls_job *job, int status);

/* ---- job_node.c: what a node does ---- */
int job_on_request(void *self, ls_request *request);
/* Begins to work on requests, and ends that. */
void job_node_init(ls_job *job); /* before it serves */
int job_node_begin(ls_job *job);
void job_node_end(ls_job *job);
/* Answer all that waits to be worked on: nobody will. */
void job_node_refuse(ls_job *job, const struct ls_failure *why);
/* It is over: the lanes end. With the mutex held. */
void job_set_ended(ls_job *job);
extern const struct saves_ops job_saves_ops;

/* ---- job_reshard.c: what a node has of a checkpoint of other nodes ---- */
/* With the mutex of saves held. entries: all of them, as in the manifest;
 * names: only these; none: all. Errors: those of ls_checkpoints_load();
 * LS_EMISMATCH the parts of a blob that is spread do not fit together, or a
 * blob of the program's own memory has not the form that this node's part has.
 */
int reshard_load(ls_job *job, int64_t epoch,
                 const struct ls_checkpoint_entry *entries, size_t n,
                 const ls_value *names);

/* ---- job_resume.c, job_run.c: what the leader does ---- */
/* Finds the state that the epochs begin with, and has it loaded.
 * load_epoch: this one; LS_CHECKPOINT_NONE: what the options say.
 * epoch:      of which it is; LS_CHECKPOINT_NONE: none.
 * stopped:    the job has ended with it. */
int job_resume(ls_job *job, int64_t load_epoch, const char *const *names,
               int64_t *epoch, bool *stopped);
void job_took(ls_job *job, enum ls_job_operation operation, int64_t since);
#endif
