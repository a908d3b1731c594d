/* job.h - work over many nodes that may be killed at any time and goes on where
 * it was.
 *
 * A job is made of groups of tasks. The init group runs once, or a checkpoint
 * is loaded instead; the epoch group runs over and over, with a checkpoint
 * after each run; the exit group runs once. All tasks of a group begin at the
 * same time, on the nodes where they are placed, and the group is done when the
 * last one ends.
 *
 * Every node runs the same program and describes the same job; what differs is
 * refused when the job starts. The node with the lowest id leads: it starts the
 * groups and writes the manifest of each checkpoint. A checkpoint is on all
 * nodes or on none (docs/jobs.md). A node that is lost ends the job, on all
 * others too, with an error that names it; starting all of them again with
 * LS_JOB_NEWEST goes on from the last checkpoint.
 *
 * Life: create node and calls (call.h), create the job, describe it, start the
 * node, run; close the calls before the job is destroyed.
 * Thread: owner; the functions of a turn: its task.
 * Source: docs/jobs.md. */
#ifndef LOCKSTEP_JOB_H
#define LOCKSTEP_JOB_H

#include "lockstep/call.h"
#include "lockstep/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_job ls_job;

enum ls_job_phase {
    LS_JOB_INIT,     /* once, unless a checkpoint was loaded */
    LS_JOB_EPOCH,    /* over and over, until a task stops the job */
    LS_JOB_UPLOAD,   /* after each save that succeeded */
    LS_JOB_DOWNLOAD, /* once, before the exit group */
    LS_JOB_EXIT,     /* once, at the end */
    LS_JOB_N_PHASES
};
LS_API const char *ls_job_phase_name(enum ls_job_phase phase); /* "init" */

enum ls_job_resume {
    LS_JOB_SCRATCH, /* LS_EEXIST if the folder has checkpoints */
    LS_JOB_NEWEST,  /* the newest that all nodes have whole; scratch if there
                     * is not a checkpoint at all */
    LS_JOB_AT       /* `epoch`; later ones are removed by the first save */
};

/* For programs that keep account of checkpoints elsewhere. Called where the
 * job is led. Any may be NULL. An error ends the job. */
struct ls_job_metadata {
    /* The last epoch to look for with LS_JOB_NEWEST; LS_CHECKPOINT_NONE:
     * begin from scratch, only if the folder has none. */
    int (*last_epoch)(void *self, int64_t *epoch);
    /* This checkpoint now exists. Borrow. */
    int (*saved)(void *self, const struct ls_checkpoint_manifest *manifest);
};

struct ls_job_options {
    const char *name;   /* 1 … 64 of [A-Za-z0-9._-]. Copied */
    const char *folder; /* of its checkpoints: the same for all nodes, or one
                         * for each. NULL: nothing is saved. Copied */
    enum ls_job_resume resume;
    int64_t epoch; /* with LS_JOB_AT */
    /* Whose blobs are saved, as `where` of a task. NULL: the nodes of the init
     * group. Copied. */
    const char *checkpoint;
    bool saves_behind; /* an epoch waits for a copy of the blobs only, and the
                        * next one for the previous save */
    bool goes_on;      /* after a save that failed; else it ends the job */
    struct ls_checkpoint_retention retention;
    bool elastic; /* goes on with other nodes than it was saved with, as
                   * ls_job_share() says; else that is LS_EMISMATCH */
    const struct ls_job_metadata *metadata; /* borrow; NULL: none */
    void *metadata_self;
    int start_timeout_ms; /* for all nodes to begin; default 60000 */
    int group_timeout_ms; /* of one group; default a day */
    int save_timeout_ms;  /* of one save or load; default ten minutes */
    /* For tasks to end once they are cancelled; default 60000. Whoever has not
     * is left behind: ls_job_run(). */
    int cancel_timeout_ms;
};

/* out:    own; NULL after an error; give it to ls_job_destroy().
 * node:   borrow: until destroy. calls: borrow; those of the node. The job
 *         serves "job.NAME". Do this before ls_node_start().
 * Errors: LS_EINVAL name, checkpoint, a timeout is negative, no epoch with
 *         LS_JOB_AT, no folder without LS_JOB_SCRATCH; LS_EEXIST these calls
 *         serve a job of this name; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_job_create(ls_job **out, ls_node *node, ls_rpc *calls,
                                     const struct ls_job_options *options);
/* After ls_rpc_close(). NULL and a pointer to NULL are fine.
 * Errors: LS_EAGAIN a task that ls_job_run() left behind still runs: the text
 *         names it. Nothing was done and *job is unchanged; node and calls are
 *         not needed any more, only what the task uses. */
LS_API int ls_job_destroy(ls_job **job);

/* The blobs of this node (lockstep/blobs.h): register what is to be saved
 * before the job runs. Tasks may make more, with ls_turn_blob(). Borrow. */
LS_API ls_blobs *ls_job_blobs(ls_job *job);

/* What a task is run with. */
typedef struct ls_turn ls_turn;
/* Returns LS_OK or an error, which ends the job and is told to all nodes. */
typedef int ls_job_fn(void *self, ls_turn *turn);

enum ls_workspace {
    LS_WORKSPACE_GLOBAL, /* blobs that it makes stay, and are saved */
    LS_WORKSPACE_PRIVATE /* they are gone after the run, but for its outputs */
};

struct ls_job_task {
    const char *name;  /* a vault's name (lockstep/vault.h). Copied */
    const char *where; /* "role:reader": lockstep/place.h. NULL: all. Copied */
    ls_job_fn *fn;
    void *self;                  /* borrow */
    enum ls_workspace workspace; /* the same for all tasks of a group */
    /* Names of blobs, ended by NULL; NULL: none. Copied. After the run their
     * bytes are sent to all nodes: ls_job_output(). At most 120 KiB each, and
     * 236 KiB of all tasks of the job on all nodes together. Those of a private
     * workspace are also copied to the node's own, where they stay. */
    const char *const *outputs;
    /* Not 0: a report. It is called this often while the tasks of its node
     * run, and once after them. */
    int report_ms;
};

/* Add a task to a group.
 * Errors: LS_EINVAL the group, the name, `where`, an output's name, report_ms,
 * or no function; LS_EMISMATCH another workspace than the tasks of this group
 * before it; LS_EEXIST the group has a task of this name; LS_ESTATE the job was
 * compiled; LS_ENOMEM. The text names job, group and task, here and below. */
LS_MUST_USE LS_API int ls_job_add(ls_job *job, enum ls_job_phase phase,
                                  const struct ls_job_task *task);

/* End the job after the epoch in which this blob is not 0, on any node that has
 * it. It is looked at after the epoch's save, and the decision is part of the
 * checkpoint. Without one the job ends only by an error. blob: copied.
 * Errors: as ls_job_add(). */
LS_MUST_USE LS_API int ls_job_stop_on(ls_job *job, const char *blob);

/* What becomes of a blob when the job goes on with other nodes (`elastic`). One
 * that is neither belongs to its node: it is left out if the node is gone, and
 * is what the init group makes of it on a node that is new. */
enum ls_job_share {
    LS_JOB_SHARED, /* the same on all nodes, as weights: all have that of the
                    * first node which has it */
    LS_JOB_SPREAD, /* a part of one array, as samples: the rows of all nodes, in
                    * the order of their ids, are divided evenly, and of what
                    * is left over each of the first has one. ls_turn_form()
                    * says how many a node has then */
    LS_JOB_N_SHARES
};
/* blob: copied.
 * Errors: LS_EINVAL the name; LS_EEXIST it is shared already; LS_ESTATE;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_job_share(ls_job *job, const char *blob,
                                    enum ls_job_share how);

/* End it after n epochs. How many are left is saved, in the blob
 * "epoch_limiter" of the first node whose blobs are.
 * Errors: LS_EINVAL n is 0; LS_EEXIST it has one; LS_ESTATE; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_job_limit_epochs(ls_job *job, uint64_t n);

/* Check the job, and find the nodes of each task. ls_job_run() does it, unless
 * it is done; nothing can be added afterwards. After ls_node_start().
 * Errors: LS_ENOENT no ready node is where a task is placed, or whose blobs are
 *         to be saved; LS_EINVAL the epoch group is empty, or this node has no
 *         part in the job; LS_ESTATE the node is not started. */
LS_MUST_USE LS_API int ls_job_compile(ls_job *job);

/* The compiled job: groups, tasks, nodes, the blobs of this node. Written to
 * text[size], cut but always NUL-terminated. Returns the length it needs; 0: it
 * is not compiled. */
LS_API size_t ls_job_print(const ls_job *job, bool json, char *text,
                           size_t size);
/* A task as ls_job_print() shows it in text, as a line of its own, on these
 * nodes; whatever runs it: fn may be NULL. Written as there. */
LS_API size_t ls_job_task_print(enum ls_job_phase phase,
                                const struct ls_job_task *task,
                                const uint32_t *nodes, size_t n_nodes,
                                char *text, size_t size);

enum ls_job_operation {
    LS_JOB_OP_INIT,
    LS_JOB_OP_LOAD,
    LS_JOB_OP_EPOCH,
    LS_JOB_OP_SAVE, /* what epochs wait for */
    LS_JOB_OP_UPLOAD,
    LS_JOB_OP_DOWNLOAD,
    LS_JOB_OP_EXIT,
    LS_JOB_N_OPS
};
LS_API const char *ls_job_operation_name(enum ls_job_operation operation);

struct ls_job_time {
    uint64_t n; /* how often */
    int64_t total_ns, last_ns;
};

struct ls_job_result {
    int64_t epoch;         /* the last one */
    uint64_t n_epochs;     /* run this time */
    uint64_t failed_saves; /* that the job went on after */
    /* Zero except where the job is led. */
    struct ls_job_time times[LS_JOB_N_OPS];
};

/* Run the job to its end, together with the other nodes. What is left of a run
 * that was killed is found here. A job that has run may run again.
 * When the job ends early, the tasks that run are cancelled. One that has not
 * returned cancel_timeout_ms later is left behind: its thread, its blobs and
 * this job live until it does. No report is called any more.
 * out:    may be NULL; what is known is written after an error too.
 * Errors: those of ls_job_compile() and ls_checkpoints_open(); LS_EMISMATCH a
 *         node describes another job: the text has the line, or its checkpoint
 *         is of other nodes and does not fit these; LS_ELOST a node was lost:
 *         the text names it; LS_EEXIST scratch, and there are checkpoints;
 *         LS_ENOENT and LS_EPROTO LS_JOB_AT, and that epoch is not there or
 *         damaged, or LS_JOB_NEWEST and all are damaged; LS_ENOENT also: an
 *         output is no blob with memory; LS_ELIMIT the outputs are too long;
 *         LS_EIO a save failed; what a task returned, with node, group and task
 *         in the text; LS_ETIMEDOUT a timeout of the options, or a task of this
 *         node was left behind: the text has node, group and task, and why it
 *         was cancelled; LS_ESTATE one of the run before still runs. */
LS_MUST_USE LS_API int ls_job_run(ls_job *job, struct ls_job_result *out);

/* Load a checkpoint and run nothing. All nodes call it, with the same epoch;
 * names: as of ls_checkpoints_load(), of the node that leads.
 * Errors: as ls_job_run(). */
LS_MUST_USE LS_API int ls_job_load(ls_job *job, int64_t epoch,
                                   const char *const *names);

/* An output of the last run of its task on a node. Borrow: until the next run.
 * Errors: LS_ENOENT there is none. */
LS_MUST_USE LS_API int ls_job_output(const ls_job *job, uint32_t node,
                                     const char *blob, const void **data,
                                     size_t *size);

/* ---- inside a task ----------------------------------------------------- */

LS_API uint32_t ls_turn_node(const ls_turn *turn);
/* 0 in the init group; the last one in the exit group. */
LS_API int64_t ls_turn_epoch(const ls_turn *turn);
/* Nobody needs the task any more: return soon, with any status, at the latest
 * cancel_timeout_ms later. */
LS_API bool ls_turn_is_cancelled(const ls_turn *turn);
/* The memory of a blob: of the private workspace, if the group has one, then of
 * the node. If there is none, one is made there, all zero, that lives as long
 * as the workspace. Borrow.
 * Errors: LS_EINVAL the name or form; LS_EMISMATCH it has another form, or no
 *         memory but ops; LS_ELIMIT; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_turn_blob(ls_turn *turn, const char *name,
                                    const struct ls_blob_form *form,
                                    void **memory);
/* The form of a blob that ls_turn_blob() would find.
 * Errors: LS_ENOENT there is none. */
LS_MUST_USE LS_API int ls_turn_form(ls_turn *turn, const char *name,
                                    struct ls_blob_form *out);

#ifdef __cplusplus
}
#endif

#endif
