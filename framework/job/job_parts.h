/* job_parts.h - the inside of a job: what its files share. Who describes it
 * (job.c), how its tasks are placed (job_compile.c), what a node does for the
 * one that leads (job_node.c), the tasks that it runs (job_turns.c), what it
 * has of a checkpoint of others (job_reshard.c), what the one that leads does
 * (job_run.c, job_resume.c, job_save.c), and the messages between them
 * (job_ask.c). */
#ifndef LOCKSTEP_JOB_PARTS_H
#define LOCKSTEP_JOB_PARTS_H

#include "commit.h"
#include "lockstep/codec.h"
#include "lockstep/job.h"

#define JOB_QUEUE 16   /* requests that wait; one at a time is usual */
#define JOB_IDS   1024 /* nodes of a job */
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

/* Requests for one of the two threads of a node: that of tasks, and that of
 * checkpoints, which work at the same time when saves go behind. */
struct job_lane {
    ls_request *waiting[JOB_QUEUE];
    size_t n;
    ls_thread *thread; /* own */
};

struct ls_job {
    ls_node *node;
    ls_rpc *calls;
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

    ls_mutex store_mutex;  /* of these two */
    ls_checkpoints *store; /* own; open while it runs */
    struct keeper keeper;

    ls_mutex mutex; /* of what follows */
    ls_cond cond;
    struct job_lane lanes[2];
    bool running, ended;
    struct ls_failure failure; /* how it ended; kept: no requests any more */
    bool asked;                /* something, since it began */
    int64_t asked_at;          /* when the last request came */
    struct turns *turns;       /* own; that run, or were left behind */

    struct job_output *outputs;
    struct ls_job_result result;
    int64_t round; /* of the last save */
};

/* ---- job.c ---- */
extern const char *const job_phase_names[LS_JOB_N_PHASES];
bool job_list_has(const struct job_task *list, const char *name);
void job_outputs_clear(ls_job *job);
/* Takes the place of an earlier one. Errors: LS_ENOMEM. */
int job_outputs_put(ls_job *job, uint32_t node, const char *name,
                    const void *data, size_t size);

/* ---- job_compile.c ---- */
/* NULL is all. Errors: LS_EINVAL. */
int job_where_check(const char *where);
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

/* ---- job_ask.c: one question to several nodes, and its answers ---- */
struct job_ask {
    ls_job *job;
    uint32_t to;
    ls_call *call;
    bool ended, seen;
    int status; /* of its end, and of the answer; see job_ask_end() */
    ls_document *document; /* own: of the answer */
};
/* With job->mutex held: until something has changed. */
void job_wait(ls_job *job);
/* Of a thread that ends by itself. */
void job_join(ls_thread **thread);
/* Starts one; `ended` is set and job->cond signalled when it has ended. A call
 * that cannot be started has ended, as lost. Clears the writer. */
void job_ask_begin(struct job_ask *ask, ls_job *job, uint32_t to,
                   ls_writer *writer, int timeout_ms);
/* Reads the answer of one that has ended; the status is kept in it, and the
 * text begins with the node. */
int job_ask_end(struct job_ask *ask);
void job_ask_destroy(struct job_ask *ask);
/* The same question to all of nodes[n]; the first failure cancels the others.
 * write: the question, a whole map, for node i.
 * asks:  n of them, all zero; destroy them afterwards. */
int job_ask_all(ls_job *job, const uint32_t *nodes, size_t n,
                void (*write)(void *self, ls_writer *writer, size_t i),
                void *self, int timeout_ms, struct job_ask *asks);
/* The same, where nobody needs the answers. */
int job_ask_each(ls_job *job, const uint32_t *nodes, size_t n,
                 void (*write)(void *self, ls_writer *writer, size_t i),
                 void *self, int timeout_ms);

/* ---- job_node.c: what a node does ---- */
int job_on_request(void *self, ls_request *request);
/* Begins to work on requests, and ends that. */
int job_node_begin(ls_job *job);
void job_node_end(ls_job *job);
/* Answer all that waits to be worked on: nobody will. */
void job_node_refuse(ls_job *job, const struct ls_failure *why);

/* ---- job_reshard.c: what a node has of a checkpoint of other nodes ---- */
/* With store_mutex held. entries: all of them, as in the manifest; names: only
 * these; none: all.
 * Errors: those of ls_checkpoints_load(); LS_EMISMATCH the parts of a blob that
 *         is spread do not fit together, or a blob of the program's own memory
 *         has not the form that this node's part has. */
int reshard_load(ls_job *job, int64_t epoch,
                 const struct ls_checkpoint_entry *entries, size_t n,
                 const ls_value *names);

/* ---- job_resume.c, job_save.c, job_run.c: what the leader does ---- */
void job_keeper_name(uint32_t id, char name[LS_CHECKPOINT_NODE_MAX + 1]);
/* Finds the state that the epochs begin with, and has it loaded.
 * load_epoch: this one; LS_CHECKPOINT_NONE: what the options say.
 * epoch:      of which it is; LS_CHECKPOINT_NONE: none.
 * stopped:    the job has ended with it. */
int job_resume(ls_job *job, int64_t load_epoch, const char *const *names,
               int64_t *epoch, bool *stopped);
void job_took(ls_job *job, enum ls_job_operation operation, int64_t since);
/* stopped: the job ends with this epoch. behind: what was copied. */
int job_save(ls_job *job, int64_t epoch, bool stopped, bool behind);
#endif
