/* checkpoint_step.h - the state of all nodes that are in step, saved together.
 *
 * The step saves the blobs of this node and of all others (lockstep/blobs.h) as
 * a checkpoint (lockstep/checkpoint.h): it is on all nodes or on none, and of
 * the end of the same iteration on each. One node leads: it decides when, and
 * writes the manifests. Started again, the nodes go on from the newest that all
 * have whole, or begin together.
 *
 *   ls_task_use(task, ls_mw_checkpoint(task, &options));   // the first step
 *   ls_task_use(task, ls_mw_barrier(task, NULL));          // then the barrier
 *   ...                                                    // what changes
 * blobs
 *
 * All that an iteration changes, and the next one depends on, belongs in blobs;
 * the step keeps total_step itself, which is the epoch of the checkpoint.
 * Without a barrier the nodes count their iterations alone: then only `every`
 * says when, and must be the same on all nodes.
 * Thread: owner, unless a function says otherwise.
 * Source: docs/checkpoints.md. */
#ifndef LOCKSTEP_CHECKPOINT_STEP_H
#define LOCKSTEP_CHECKPOINT_STEP_H

#include "lockstep/call.h"
#include "lockstep/job.h"
#include "lockstep/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For `leader`: the one with the lowest id. */
#define LS_CHECKPOINT_FIRST UINT32_MAX

/* As the epoch that a run goes on from: the one with the best metric. */
#define LS_CHECKPOINT_BEST INT64_MIN

/* A handle of the step; it lives as long as its task. */
typedef struct ls_checkpoint_step ls_checkpoint_step;

struct ls_checkpoint_step_options {
    const char *name;  /* of the step and its calls; default "checkpoint".
                        * Copied */
    ls_rpc *calls;     /* of the node; close them, or stop the node, before the
                        * task is destroyed. NULL: the task has no node */
    const char *group; /* only nodes with this word in their role or labels, as
                        * of the barrier; NULL: all. Copied */
    uint32_t leader;   /* a node of the group */
    const char *run;   /* for manifests: free text; NULL: the job. Copied */
    /* Of this node. The same folder for all nodes, or one for each. NULL: it
     * has none, and sends its blobs to the node that leads, which writes them
     * into its own; that one needs one. Copied. */
    const char *folder;
    ls_blobs *blobs; /* borrow: until the task is destroyed; NULL: none */

    /* Of the node that leads: where it begins. LS_JOB_NEWEST takes the newest
     * that all nodes have whole, and begins anew only if there is none at all.
     * A node that is not in it begins as it is; the log names it. */
    enum ls_job_resume resume;
    int64_t epoch; /* with LS_JOB_AT; or LS_CHECKPOINT_BEST: of those that all
                    * nodes have whole, by the metric below */
    /* With LS_JOB_NEWEST: not from a checkpoint of a run's end, which all nodes
     * had agreed upon, but from the one before: a run that was killed just then
     * ends in the same way again. */
    bool redo_end;

    /* When it saves, beside the beginning of a new run and the end of each run
     * that ends well: every so many iterations, this long after the last one
     * was begun, on SIGUSR2, and whenever the metric of a node is better than
     * ever. 0 and false: not so. */
    uint64_t every;
    double seconds;
    bool on_signal; /* also of other nodes; as of ls_mw_stop() */
    bool on_best;
    /* How good the state is, as far as this node knows; NaN: it does not. Asked
     * on the thread of the barrier and another one. NULL: never. */
    double (*metric)(void *self);
    /* Its name, and whether less is better; of who leads, which ones stay. */
    struct ls_checkpoint_retention retention;

    bool behind;    /* an iteration waits for a copy of the blobs only; the
                     * first one for what is saved before it */
    bool goes_on;   /* after a save that failed: it is logged, and counted; else
                     * it ends the run */
    int timeout_ms; /* of one step of a save or load; default ten minutes */

    /* The blobs are to be of this epoch: called on the task's thread before
     * they are saved. NULL: they always are. Its error is that of the save. */
    int (*before_save)(void *self, int64_t epoch);
    /* They were loaded: of this epoch. NULL: nobody is told. */
    int (*loaded)(void *self, int64_t epoch);
    /* This one now exists: where it is led; its error is that of the save. */
    int (*saved)(void *self, const struct ls_checkpoint_manifest *manifest);
    /* A save that this node had requested is over, whatever came of it: called
     * on the task's thread. NULL: nobody is told. */
    void (*granted)(void *self);
    void *self;               /* borrow: for all of these */
    ls_checkpoint_step **out; /* receives the handle; NULL: nobody needs it */
};

/* The errors of a run: LS_EIO and others of a save or a load; LS_EINVAL no node
 * has blobs to save; LS_EEXIST scratch and the folder has checkpoints, or the
 * epoch of a save is not later than all of them; LS_EAGAIN another run has the
 * folder; LS_EPROTO none of the checkpoints can be used: the log says why;
 * LS_ELOST, LS_ETIMEDOUT a node did not take part: it is named; LS_EABORTED
 * where it is not led: the run cannot begin, and why.
 * The step cannot be made: LS_EINVAL no folder where it leads, no calls of a
 * task with a node, seconds or timeout_ms is negative, the best without a
 * metric's name, an epoch below 0; LS_EEXIST these calls serve a step of this
 * name. */
LS_API struct ls_middleware
ls_mw_checkpoint(ls_task *task,
                 const struct ls_checkpoint_step_options *options);

/* Save at the end of this iteration. at_once: also where saves go behind, the
 * next iteration waits until it is on disk. Thread: any. */
LS_API void ls_checkpoint_request(ls_checkpoint_step *step, bool at_once);
/* How good the state of an epoch was, of which only this node knows, and only
 * now: the last one that was saved or loaded, or one that is saved after this
 * iteration. The checkpoint has it as its metric once the next save is made,
 * before the retention looks at it; if several nodes know it, their mean. A run
 * that is killed before that goes on from there, and may find it again. NaN
 * says nothing. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_checkpoint_judge(ls_checkpoint_step *step,
                                           int64_t epoch, double value);
/* Epoch of the last one that was saved or loaded where it is led; of the last
 * one that was loaded elsewhere. LS_CHECKPOINT_NONE: none. Thread: any. */
LS_API int64_t ls_checkpoint_epoch(ls_checkpoint_step *step);
/* Saves that failed, and after which the run went on. Thread: any. */
LS_API uint64_t ls_checkpoint_failures(ls_checkpoint_step *step);

#ifdef __cplusplus
}
#endif

#endif
