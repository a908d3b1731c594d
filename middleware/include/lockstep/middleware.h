/* middleware.h - ready-made steps: time, ends, exchange between roles, files,
 * progress. The barrier is in barrier.h.
 *
 * Each ls_mw_*() takes the task and its options, and returns a middleware by
 * value, for ls_task_use(); when it could not be made the error is inside and
 * ls_task_use() returns it. On a node
 * of a role that has nothing to do with it, it is void.
 * Thread: owner; what they return runs as task.h says. */
#ifndef LOCKSTEP_MIDDLEWARE_H
#define LOCKSTEP_MIDDLEWARE_H

#include "lockstep/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The times of steps, by their names. */
typedef struct ls_step_times ls_step_times;

struct ls_step_time {
    const char *name; /* borrow: as long as the ls_step_times */
    uint64_t count;
    double last_ms;
    double mean_ms; /* of the last `window` runs */
};

struct ls_step_times_options {
    ls_step_times **out; /* where they go: own; NULL after an error; destroy
                          * them after the task. Not NULL */
    unsigned every;      /* log a line per step every so many iterations; 0:
                          * never */
    unsigned window;     /* runs in the mean; 0: 10 */
};
/* Time every step of the task, those used before and after: forward plus
 * backward half. */
LS_API struct ls_middleware
ls_mw_timer(ls_task *task, const struct ls_step_times_options *options);
LS_API size_t ls_step_times_get(ls_step_times *times, struct ls_step_time *out,
                                size_t capacity);
/* The times of the runs in the mean of one step, in ms, the oldest first: up to
 * `capacity` of them. Returns how many there are. Errors: LS_ENOENT no step of
 * this name has run. */
LS_API int ls_step_times_samples(ls_step_times *times, const char *name,
                                 double *ms, size_t capacity);
/* Errors: LS_ESTATE its task is there still: nothing was done. */
LS_API int ls_step_times_destroy(ls_step_times **times);

/* Finish the task, everywhere, when one of these is reached (>=). Values are
 * read from the context's field of that name, after the iteration's forward
 * halves; a limit on a field that the context does not have is LS_EINVAL. */
struct ls_stop_options {
    int64_t env_step;   /* total steps of environments; 0: never */
    int64_t train_iter; /* updates of the policy; 0: never */
    double eval_value;  /* mean return; 0 or NaN: never (DBL_MIN for 0) */
    bool on_signal;     /* SIGINT and SIGTERM cancel the run with
                         * LS_ECANCELED; the second one kills. Then call this
                         * on the main thread, before it has others: see
                         * signal.h. In a simulation it does nothing */
};
LS_API struct ls_middleware ls_mw_stop(ls_task *task,
                                       const struct ls_stop_options *options);

/* Bring fields of the context from the nodes of one role to those of others.
 *
 * A sender's backward half emits the named fields; a receiver's forward half
 * waits until it has one new message of every ready sender, and merges them in
 * order of node id, whatever the order in which they came: lists of items and
 * numbers are appended; numbers that are named after items are indices into
 * them, and are shifted by the items that were there before; increments are
 * added; all else becomes what the newest iteration sent, the highest id
 * winning between equals. So in lock step the result does not depend on time.
 *
 * The wait ends with
 *   LS_ETIMEDOUT  naming who has not sent;
 *   LS_ELOST      naming the sender that was lost or left with an error, or
 *                 when the last one left;
 *   LS_OK         when the run finishes and every sender has sent its last:
 *                 with what there is;
 *   the status that the run is cancelled with.
 * When a round begins (ls_task_round()), what was sent in an earlier one is
 * thrown away, and counted in the log; who was lost before is not waited for.
 * Nodes that send and receive do not hear themselves. Without a node it is
 * void. It listens from creation on: make it before ls_node_start(), and
 * destroy the task before the node. Payloads are not copied by the sender. */
struct ls_exchange_options {
    const char *name;       /* the same on both sides; default "context" */
    const char *from;       /* roles that send: "collector" */
    const char *to;         /* roles that receive: "learner,evaluator" */
    const char *fields;     /* "trajectories,trajectory_end_idx" */
    const char *increments; /* whole numbers and doubles of which the change
                             * since the last message (at first: since this
                             * call) is sent, and added: "env_step" */
    unsigned skip;          /* receivers take nothing in the first `skip`
                             * iterations of a round: 1 where the sender waits
                             * for us */
    bool newest;            /* receivers take the newest message of any sender
                             * instead of one of each; see stale */
    int timeout_ms;         /* 0: 60000 */
    unsigned every;         /* newest: senders send once in so many
                             * iterations, the first time in the first; 0: 1 */
    unsigned stale;         /* newest: how many iterations old, by total_step,
                             * may be what a receiver works with; it waits for
                             * newer. 0: any age, it never waits */
};
LS_API struct ls_middleware
ls_mw_exchange(ls_task *task, const struct ls_exchange_options *options);

/* Keep the context in a file: a msgpack map of its fields, on disk once it is
 * written, and always whole: the newest, or the one before. It is written when
 * a run ends, however it does, and every nth iteration. Errors of the run:
 * those of ls_file_replace(). */
struct ls_save_options {
    const char *path;   /* copied; its folder must be there */
    const char *fields; /* copied: "env_step,policy"; NULL: all */
    unsigned every;     /* iterations; 0: when a run ends alone */
    bool resume; /* begin with what the file has, if there is one. Errors:
                  * those of ls_file_read() and ls_context_read() */
};
LS_API struct ls_middleware ls_mw_save(ls_task *task,
                                       const struct ls_save_options *options);

/* What an iteration has come to. Fields that the context does not have are 0,
 * or NaN where they are doubles. */
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
    int interval_ms; /* at least so long between two reports; 0: report every
                      * iteration */
    /* Called in the backward half, and once at the end of the run, however it
     * ends, with last true. Not NULL. */
    void (*sink)(void *self, const struct ls_progress_report *report);
    void *self;
};
LS_API struct ls_middleware
ls_mw_progress(ls_task *task, const struct ls_progress_options *options);

#ifdef __cplusplus
}
#endif

#endif
