/* task.h - a pipeline of steps, run over and over, in step with other nodes.
 *
 * A step is one function. What stands before ls_yield() is its forward half,
 * what stands after it its backward half; locals survive. An iteration runs
 * every forward half in the order of use, then every backward half in reverse.
 * A step that never yields is simply done.
 *
 *   static int timed(ls_step *step, void *self)
 *   {
 *       const int64_t start = ls_step_now(step);
 *       const int status = ls_yield(step);   // the rest runs here
 *       record(self, ls_step_now(step) - start);
 *       return status;
 *   }
 *
 * When a step fails, or an iteration is ended, every step that has yielded is
 * resumed once, in reverse order, with that error, so that it can release what
 * it holds; then ls_task_run() returns the error. Nothing stays suspended.
 * In async mode, and in ls_parallel(), the first error also ends the waits of
 * the steps that run beside it; it cannot be undone by a step around it.
 * Thread: owner, unless a function says otherwise; steps run on the thread
 * that calls ls_task_run(), or on workers in async mode, and a step stays on
 * the thread it began on. */
#ifndef LOCKSTEP_TASK_H
#define LOCKSTEP_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/context.h"
#include "lockstep/event.h"
#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_task ls_task;
typedef struct ls_step ls_step; /* one run of one middleware */

/* Return LS_OK, or a negative status with its text: the iteration ends. A
 * backward half usually returns what ls_yield() gave it. */
typedef int ls_step_fn(ls_step *step, void *self);

/* A group of middleware that never run at the same time: see `lock` below. */
typedef struct ls_step_lock ls_step_lock;

/* A ready-made step with all it needs. Factories (ls_mw_*) return one by
 * value; whoever uses it passes it on to ls_task_use() at once. */
struct ls_middleware {
    const char *name;            /* copied; NULL: "step" */
    ls_step_fn *fn;              /* NULL: void, it is passed over */
    bool wraps;                  /* fn runs around each step: see below */
    void *self;                  /* what fn gets */
    void (*release)(void *self); /* frees self when the task is destroyed; or
                                  * NULL */
    /* Runs exactly once on every way out of ls_task_run(), in reverse order of
     * use, with the run's result so far: for final checkpoints and flushes. Or
     * NULL. The context is as the last iteration left it, with total_step
     * counted. An error of it becomes the run's when that was LS_OK. */
    int (*finish)(void *self, ls_task *task, int status);
    const char *roles;  /* "learner" or "learner,collector": passed over on
                         * nodes of other roles; NULL: all. copied */
    const char *needs;  /* fields it reads, "train_data,policy"; copied */
    const char *gives;  /* fields it writes; copied */
    ls_step_lock *lock; /* borrow; held while a half of it runs. NULL: none;
                         * LS_TASK_LOCK: the one of the task */
    int status;         /* why the factory failed; LS_OK when it did not */
    char error[256];    /* its sentence */
};

#define LS_TASK_LOCK ((ls_step_lock *)1)

struct ls_task_options {
    ls_node *node;       /* borrow, for the task's life: from before start, so
                          * that no finish is missed; NULL: no world */
    ls_runtime *runtime; /* NULL: the node's, else ls_runtime_threads() */
    const struct ls_context_type *context; /* NULL: ls_online_context_type */
    const char *roles;  /* of this node: "learner"; NULL: every role. copied */
    const char *labels; /* "gpu,fast"; added are "standalone", or
                         * "distributed" and "node.<id>", and "async". copied */
    bool async;         /* forwards of an iteration run at once on workers */
    unsigned n_workers; /* for async and parallel; default 3, at most 1024;
                         * they start when they are first needed */
    size_t stack_bytes; /* of a step; default 64 KiB */
};

/* out:    own; NULL after an error; give it to ls_task_destroy().
 * Errors: LS_EINVAL options; LS_ENOMEM; those of ls_context_create(). */
LS_MUST_USE LS_API int ls_task_create(ls_task **out,
                                      const struct ls_task_options *options);
/* Releases all middleware. NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE it runs, or fork(2) has brought it here: nothing was done.
 */
LS_API int ls_task_destroy(ls_task **task);

/* Append a middleware. A failed factory's error, or one of its own (LS_EINVAL,
 * LS_ENOMEM, LS_ESTATE while running), is returned and also kept: the next
 * ls_task_run() returns it before any step runs, so a pipeline can be built
 * without a check per line. */
LS_API int ls_task_use(ls_task *task, struct ls_middleware middleware);

/* For a plain function: ls_task_use_fn(task, collect, &state). */
#define ls_task_use_fn(task, function, state)                                  \
    ls_task_use_step((task), #function, (function), (state))
/* What it stands for. name: copied. Errors: as ls_task_use(). */
LS_API int ls_task_use_step(ls_task *task, const char *name, ls_step_fn *fn,
                            void *self);

/* Several as one step, each after the other, also in async mode; their
 * backward halves run in reverse when it is its turn. Named "serial<a,b>".
 * parts: moved; void ones are passed over. */
LS_API struct ls_middleware
ls_serial(ls_task *task, const struct ls_middleware *parts, size_t n);
/* Several as one step, at the same time on the workers; it ends when all have.
 * Backward halves run at the same time too. Named "parallel<a,b>". */
LS_API struct ls_middleware
ls_parallel(ls_task *task, const struct ls_middleware *parts, size_t n);

/* A middleware that `wraps` is given to ls_task_use() alone, and has only fn,
 * which is not NULL, self and release. It decorates every step that is used,
 * before and after (not the parts of a serial or parallel one): fn runs in the
 * step's place and calls ls_around_forward() where the original should run;
 * ls_yield() works there as in any step. The last wrapper is the outermost.
 * Inside of one: the name of the step it stands around, and its forward
 * half, respectively its backward half after the wrapper's own yield (unless
 * called, it runs in its usual turn: after the wrapper's). A forward half that
 * has failed or ended may be run again.
 * Errors: the step's; LS_ESTATE there is nothing below; LS_ENOMEM. */
LS_API const char *ls_around_name(const ls_step *step);
LS_MUST_USE LS_API int ls_around_forward(ls_step *step);
LS_MUST_USE LS_API int ls_around_back(ls_step *step);

/* Inside a step: run the forward half of another middleware now. Its backward
 * half runs when ls_wrap_back() is called, else in reverse order with all the
 * others of this iteration. ls_wrap_back() on one that has no backward half,
 * or whose backward half ran, is LS_OK.
 * child:  borrow: until the iteration ends; its release and finish are not
 *         called. A void one, or one for another role, has no halves.
 * out:    borrow: until the iteration ends.
 * Errors: the child's; LS_ENOMEM. */
typedef struct ls_wrapped ls_wrapped;
LS_MUST_USE LS_API int ls_wrap(ls_step *step, const struct ls_middleware *child,
                               ls_wrapped **out);
LS_MUST_USE LS_API int ls_wrap_back(ls_wrapped *wrapped);

/* out: own. A lock for a private group of middleware. Destroy it after the
 * task: before, that is LS_ESTATE, and nothing is done. */
LS_MUST_USE LS_API int ls_step_lock_create(ls_step_lock **out, ls_task *task);
LS_API int ls_step_lock_destroy(ls_step_lock **lock);

/* Run up to n_iterations (UINT64_MAX: until finished). An iteration: forwards,
 * backwards, total_step + 1. Every iteration is followed by renewal, the last
 * one's after the finish hooks: they still see its data, the caller does not
 * but for kept fields. So after n iterations total_step is n and all that is
 * not kept is fresh. An iteration that failed is not counted.
 * With n 0, or no middleware for this role, no step runs and nobody is told
 * anything. A finish that is known before the first iteration ends the run
 * before it. A task may be run again; it goes on counting.
 * When the run ends with LS_OK because this node finished or did its n
 * iterations, the others of the world are told to finish too, before the
 * finish hooks run; an error is not a finish.
 * Errors: a step's, with its name; a handler's on this node, with the names of
 *         node, event and handler; LS_ESTATE a second yield in a step, or
 *         running already (then no hook runs); LS_EINVAL a step needs a field
 *         that no step gives; what ls_task_use() kept; those of
 *         ls_thread_spawn() for the workers; those of ls_emit_with() when the
 *         others cannot be told. */
LS_MUST_USE LS_API int ls_task_run(ls_task *task, uint64_t n_iterations);

/* The same by hand, for programs with a loop of their own: forward runs the
 * forward halves of an iteration; backward the other halves, and the iteration
 * counts. The first forward begins a run, and end ends it, with all that
 * ls_task_run() does there. Nobody looks whether the run is to end but the
 * caller: ls_task_finishing(). All on one thread.
 * Errors: those of ls_task_run(): every step that had yielded has been resumed
 *         with it, and only end is left to call, which returns it, too.
 *         LS_ESTATE out of turn: nothing was done. End between forward and
 *         backward resumes the steps with LS_ECANCELED, and returns that. */
LS_MUST_USE LS_API int ls_task_forward(ls_task *task);
LS_MUST_USE LS_API int ls_task_backward(ls_task *task);
LS_MUST_USE LS_API int ls_task_end(ls_task *task);

/* Tells a task that its run is to end: for a wait that must not outlast it. */
#define LS_FINISH_EVENT "ls.finish"

/* End the run at the end of the iteration in which it is known, here and, by
 * LS_FINISH_EVENT, on every node. Nodes count their runs, and the k-th
 * run of one ends the k-th run of the others: what comes late from the last
 * run does not end this one. Outside of a run: the next one. The event's data
 * is that number as msgpack; none means the run that the receiver is in.
 * Thread: any. */
LS_API void ls_task_finish(ls_task *task);
/* The same for this node alone: for middleware that tells the others by a way
 * of its own, as the barrier does; the end of this run tells nobody either.
 * Thread: any. */
LS_API void ls_task_finish_here(ls_task *task);
/* Whether the run that runs now, or else the next one, is to end so.
 * Thread: any. */
LS_API bool ls_task_finishing(const ls_task *task);

/* End the run now: the steps' waits return `status` (negative; otherwise
 * LS_ECANCELED), and so does ls_task_run(). The first cancel counts; outside
 * of a run it ends the next one before any step. For signals and for losses.
 * text: copied; NULL: the status's sentence. Thread: any. */
LS_API void ls_task_cancel(ls_task *task, int status, const char *text);
/* LS_OK, or what the run was cancelled with, or what a step beside this one
 * has failed with. Waits in steps look at it. Thread: any. */
LS_API int ls_task_cancelled(ls_task *task);

/* For a wait of one's own: be told when ls_task_cancelled() is no longer
 * LS_OK, at once if that is so now. One function may be set per `self`; fn
 * NULL takes it away, and returns only when it does not run any more.
 * fn:     called under a lock of the task: it wakes the wait, and of ls_task_*
 *         calls ls_task_cancelled() at most.
 * Errors: LS_ENOMEM. Thread: any. */
typedef void ls_cancel_fn(void *self, int status);
LS_MUST_USE LS_API int ls_task_on_cancel(ls_task *task, ls_cancel_fn *fn,
                                         void *self);

LS_API ls_node *ls_task_node(ls_task *task); /* may be NULL */
LS_API ls_runtime *ls_task_runtime(ls_task *task);
LS_API ls_context *ls_task_context(ls_task *task);
/* True when the node has this role, or when it was given none. */
LS_API bool ls_task_has_role(const ls_task *task, const char *role);
/* True when any label matches any of the globs, "gpu*,node.3" (*, ?, [a-z]). */
LS_API bool ls_task_match_labels(const ls_task *task, const char *globs);
/* Iterations completed by all runs so far. */
LS_API uint64_t ls_task_iterations(const ls_task *task);

/* Which steps a half, or the finish, of runs right now: "collect"; in async
 * mode maybe "collect, learn"; "" for none. For whoever has to say why a run
 * does not end. text: cut to size. Returns its length. Thread: any; it waits
 * for nothing. */
LS_API size_t ls_task_steps_now(const ls_task *task, char *text, size_t size);

/* The round that this node is in: what all nodes that began together call it.
 * It grows; 0 before the first, and without a barrier. A round begins with a
 * run, and when a node joins one that goes on, so what another node sent in an
 * earlier round is not meant for this one. ls_mw_barrier() sets it at the
 * beginning of an iteration. Thread: any. */
LS_API uint64_t ls_task_round(const ls_task *task);
LS_API void ls_task_set_round(ls_task *task, uint64_t round);

/* Inside a step ---------------------------------------------------------- */

/* Let the rest of the pipeline run. Returns LS_OK, or the error that ended
 * this iteration. A second call in one step: LS_ESTATE, and the run fails with
 * it. With another step's handle: LS_ESTATE. */
LS_API int ls_yield(ls_step *step);

/* The user's struct of the task's context. */
LS_API void *ls_step_context(ls_step *step);
LS_API ls_task *ls_step_task(ls_step *step);
LS_API const char *ls_step_name(const ls_step *step);
LS_API int64_t ls_step_now(const ls_step *step); /* ls_now() */
/* Sleep, in virtual time in a simulation. Ends early when the run is cancelled.
 * sleep_ms: under 1: it only looks.
 * Errors: what ls_task_cancelled() says, or ls_node_interrupted(). */
LS_MUST_USE LS_API int ls_step_sleep(ls_step *step, int sleep_ms);

#ifdef __cplusplus
}
#endif

#endif
