/* middleware.h - ready-made steps: time, ends, exchange between roles, files,
 * progress, and the barrier of barrier.h.
 *
 * Each ls_mw_*() takes the task and its options, and returns a middleware by
 * value, for ls_task_use(). If it could not be made, the error is inside, and
 * ls_task_use() returns it. On a node whose role does not need it, it is void.
 * Thread: owner; what they return runs as task.h says. */
#ifndef LOCKSTEP_MIDDLEWARE_H
#define LOCKSTEP_MIDDLEWARE_H

#include "lockstep/barrier.h"
#include "lockstep/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The times of steps, by name. */
typedef struct ls_step_times ls_step_times;

struct ls_step_time {
    const char *name; /* borrow: as long as the ls_step_times */
    uint64_t count;
    double last_ms;
    double mean_ms; /* of the last `window` runs */
};

struct ls_step_times_options {
    ls_step_times **out; /* receives the times: own; NULL after an error;
                          * destroy them after the task. Not NULL */
    unsigned every;      /* log a line per step every this many iterations; 0:
                          * never */
    unsigned window;     /* runs in the mean; 0: 10 */
};
/* Time every step of the task, whether used before or after this: forward plus
 * backward half. */
LS_API struct ls_middleware
ls_mw_timer(ls_task *task, const struct ls_step_times_options *options);
LS_API size_t ls_step_times_get(ls_step_times *times, struct ls_step_time *out,
                                size_t capacity);
/* The times of the runs in the mean of one step, in ms, oldest first: up to
 * `capacity` of them. Returns how many there are. Errors: LS_ENOENT no step of
 * this name has run. */
LS_API int ls_step_times_samples(ls_step_times *times, const char *name,
                                 double *ms, size_t capacity);
/* Errors: LS_ESTATE its task still exists: nothing was done. */
LS_API int ls_step_times_destroy(ls_step_times **times);

/* Finish the task, on all nodes, when one of these is reached (>=). Values are
 * read from the context's field of the same name, after the forward halves of
 * an iteration; a limit on a field that the context lacks, or that is no number
 * there, is LS_EINVAL, as is a negative number of steps or updates. */
struct ls_stop_options {
    int64_t env_step;   /* total steps of environments; 0: never */
    int64_t train_iter; /* updates of the policy; 0: never */
    double eval_value;  /* mean return; 0 or NaN: never (DBL_MIN for 0) */
    bool on_signal;     /* SIGINT and SIGTERM cancel the run with
                         * LS_ECANCELED; a second one kills. Call ls_mw_stop()
                         * then on the main thread, before it starts others: see
                         * signal.h. No effect in a simulation */
};
LS_API struct ls_middleware ls_mw_stop(ls_task *task,
                                       const struct ls_stop_options *options);

/* Copy fields of the context from the nodes of one role to those of others.
 *
 * A sender's backward half emits the named fields. A receiver's forward half
 * waits until it has one new message from every ready sender, and merges them
 * in order of node id, not of arrival. Lists of items and numbers are appended;
 * numbers that are named after items are indices into them, and are shifted by
 * the number of items that were there before; increments are added; any other
 * field is set to what the newest iteration sent, and among equals to what the
 * highest id sent. So in lock step the result does not depend on timing.
 *
 * The wait ends with
 *   LS_ETIMEDOUT  naming those that have not sent;
 *   LS_ELOST      naming the sender that was lost or left with an error, or
 *                 when the last one left;
 *   LS_OK         when the run finishes and every sender has sent its last
 *                 message: with what has arrived;
 *   the status that the run is cancelled with.
 * When a round begins (ls_task_round()), messages of an earlier one are
 * discarded, and counted in the log; senders lost before it are not waited for.
 * Nodes that both send and receive do not hear themselves; what nodes of other
 * roles, as they have told the world, send is thrown away. Void without a node.
 * It listens from creation on: create it before ls_node_start(), and destroy
 * the task before the node. The sender does not copy payloads. */
struct ls_exchange_options {
    const char *name;       /* the same on both sides; default "context"; also
                             * that of the step */
    const char *from;       /* roles that send: "collector" */
    const char *to;         /* roles that receive: "learner,evaluator" */
    const char *fields;     /* "trajectories,trajectory_end_idx" */
    const char *increments; /* whole numbers and doubles. Each message carries
                             * their change since the last one (the first: since
                             * this call), which is added: "env_step" */
    unsigned skip;          /* receivers take nothing in the first `skip`
                             * iterations of a round: 1 where the sender waits
                             * for the receiver */
    bool newest;            /* receivers take the newest message of any sender
                             * instead of one from each; see stale */
    int timeout_ms;         /* 0: 60000 */
    unsigned every;         /* newest: senders send every this many iterations,
                             * beginning with the first; 0: 1 */
    unsigned stale;         /* newest: the greatest age, in iterations by
                             * total_step, of what a receiver works with; it
                             * waits for newer. 0: any age, it never waits */
};
LS_API struct ls_middleware
ls_mw_exchange(ls_task *task, const struct ls_exchange_options *options);

/* Keep the context in a file: a msgpack map of its fields. Once written it is
 * on disk and always whole: the newest, or the one before. It is written at the
 * end of a run, however the run ends, and every nth iteration. Errors of the
 * run: those of ls_file_replace(). */
struct ls_save_options {
    const char *path;   /* copied; its folder must exist */
    const char *fields; /* copied: "env_step,policy"; NULL: all */
    unsigned every;     /* iterations; 0: only at the end of a run */
    bool resume; /* begin with the contents of the file, if it exists. Errors:
                  * those of ls_file_read() and ls_context_read() */
};
LS_API struct ls_middleware ls_mw_save(ls_task *task,
                                       const struct ls_save_options *options);

/* The state after an iteration. Fields that the context lacks are 0, or NaN if
 * they are doubles. */
struct ls_progress_report {
    uint32_t node;
    const char *role; /* borrow: for the call */
    uint64_t iteration;
    int64_t env_step;
    double env_steps_per_s; /* since the last report */
    int64_t train_iter;
    double eval_value; /* of the last evaluation; NaN when unknown */
    double elapsed_s;
    bool last;
};
struct ls_progress_options {
    int interval_ms; /* the shortest time between two reports; 0: report every
                      * iteration */
    /* Called in the backward half, and once at the end of the run, however it
     * ends, with `last` true. Not NULL. */
    void (*sink)(void *self, const struct ls_progress_report *report);
    void *self;
};
LS_API struct ls_middleware
ls_mw_progress(ls_task *task, const struct ls_progress_options *options);

/* The barrier as a step: wait, let the rest of the pipeline run, wait again. A
 * member that is finishing at its second wait makes all finish at the end of
 * the same iteration. A member whose run ends because it did its iterations
 * ends the others one iteration later. When a step fails or a run is cancelled,
 * the others' runs end as after ls_barrier_abort() with that status: usually
 * with LS_EABORTED, which names the node. Void in a task without a node, and on
 * a node that is not in the group. options: NULL: defaults. */
LS_API struct ls_middleware
ls_mw_barrier(ls_task *task, const struct ls_barrier_options *options);

#ifdef __cplusplus
}
#endif

#endif
