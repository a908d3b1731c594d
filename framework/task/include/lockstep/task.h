/* task.h - a pipeline of steps, run over and over, in step with other nodes.
 *
 * A step is one function. The code before ls_yield() is its forward half, the
 * code after it its backward half; locals survive. An iteration runs every
 * forward half in the order of use, then every backward half in reverse. A step
 * that never yields has no backward half.
 *
 *   static int timed(ls_step *step, void *self)
 *   {
 *       const int64_t start = ls_step_now(step);
 *       const int status = ls_yield(step);   // the rest runs here
 *       record(self, ls_step_now(step) - start);
 *       return status;
 *   }
 *
 * When a step fails, or an iteration is aborted, every step that has yielded is
 * resumed once, in reverse order, with that error, so that it can release what
 * it holds; then ls_task_run() returns the error. No step stays suspended.
 * In async mode, and in ls_parallel(), the first error also ends the waits of
 * the steps that run at the same time; a step around it cannot undo it.
 * Thread: owner, unless a function says otherwise. Steps run on the thread that
 * calls ls_task_run(), or on workers in async mode; a step stays on the thread
 * it began on. */
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

/* Return LS_OK, or a negative status with its text, which ends the iteration. A
 * backward half usually returns what ls_yield() returned. */
typedef int ls_step_fn(ls_step *step, void *self);

/* A group of middleware that never runs at the same time: see `lock` below. */
typedef struct ls_step_lock ls_step_lock;

/* A ready-made step with everything it needs. Factories (ls_mw_*) return one by
 * value; pass it to ls_task_use() at once. */
struct ls_middleware {
    const char *name;            /* copied; NULL: "step" */
    ls_step_fn *fn;              /* NULL: void, the step is skipped */
    bool wraps;                  /* fn runs around each step: see below */
    void *self;                  /* what fn gets */
    void (*release)(void *self); /* frees self when the task is destroyed; or
                                  * NULL */
    /* Runs exactly once on every way out of ls_task_run(), in reverse order of
     * use, with the run's result so far: for final checkpoints and flushes. May
     * be NULL. The context is as the last iteration left it, with total_step
     * incremented. Its error becomes the run's if that was LS_OK. */
    int (*finish)(void *self, ls_task *task, int status);
    const char *roles;  /* "learner" or "learner,collector": skipped on nodes of
                         * other roles; NULL: all. copied */
    const char *needs;  /* fields it reads, "train_data,policy"; copied */
    const char *gives;  /* fields it writes; copied */
    ls_step_lock *lock; /* borrow; held while one of its halves runs. NULL:
                         * none; LS_TASK_LOCK: the task's own */
    int status;         /* why the factory failed; LS_OK if it did not */
    char error[256];    /* the text of that error */
};

#define LS_TASK_LOCK ((ls_step_lock *)1)

struct ls_task_options {
    ls_node *node;       /* borrow, for the task's life. Create the task before
                          * ls_node_start(), so that no finish is missed. NULL:
                          * no world */
    ls_runtime *runtime; /* NULL: the node's, else ls_runtime_threads() */
    const struct ls_context_type *context; /* NULL: ls_online_context_type */
    const char *roles;  /* of this node: "learner"; NULL: every role. copied */
    const char *labels; /* "gpu,fast"; added are "standalone", or
                         * "distributed" and "node.<id>"; and "async". copied */
    bool async;         /* forward halves of an iteration run in parallel, on
                         * workers */
    unsigned n_workers; /* for async and parallel; default 3, at most 1024;
                         * started when first needed */
    size_t stack_bytes; /* of a step; default 64 KiB */
    ls_trace *trace;    /* records its steps; NULL: the node's, if it has one.
                         * Borrow: for the task's life */
};

/* out:    own; NULL after an error; give it to ls_task_destroy().
 * Errors: LS_EINVAL options; LS_ENOMEM; those of ls_context_create() and, with
 *         a node, of ls_on(). */
LS_MUST_USE LS_API int ls_task_create(ls_task **out,
                                      const struct ls_task_options *options);
/* Releases all middleware. NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE the task is running, or it came here by fork(2): nothing
 *         was done. */
LS_API int ls_task_destroy(ls_task **task);

/* Append a middleware. The error of a failed factory, or of this call
 * (LS_EINVAL, LS_ENOMEM, LS_ESTATE while running), is returned and also kept:
 * the next ls_task_run() returns it before any step runs, so you can build a
 * pipeline without a check per line. */
LS_API int ls_task_use(ls_task *task, struct ls_middleware middleware);

/* For a plain function: ls_task_use_fn(task, collect, &state). */
#define ls_task_use_fn(task, function, state)                                  \
    ls_task_use_step((task), #function, (function), (state))
/* The function behind the macro. name: copied. Errors: as ls_task_use(). */
LS_API int ls_task_use_step(ls_task *task, const char *name, ls_step_fn *fn,
                            void *self);

/* Several middleware as one step, one after the other, even in async mode;
 * their backward halves run in reverse order. Named "serial<a,b>".
 * parts: moved; void ones are skipped. */
LS_API struct ls_middleware
ls_serial(ls_task *task, const struct ls_middleware *parts, size_t n);
/* Several middleware as one step, at the same time on the workers; it ends when
 * all have ended. Backward halves also run at the same time. Named
 * "parallel<a,b>". */
LS_API struct ls_middleware
ls_parallel(ls_task *task, const struct ls_middleware *parts, size_t n);

/* A middleware with `wraps` set goes to ls_task_use() directly, and has only
 * fn, which is not NULL, self and release: with finish, roles or a lock it is
 * refused with LS_EINVAL. It decorates every step of the task,
 * used before or after it (but not the parts of a serial or parallel one): fn
 * runs in place of the step and calls ls_around_forward() to run the original;
 * ls_yield() works as in any step. The last wrapper is the outermost.
 * Inside a wrapper these return the name of the wrapped step, run its forward
 * half, and run its backward half. Call the last one after the wrapper's own
 * yield; without a call the backward half runs in its usual turn, after the
 * wrapper's. A forward half that has failed or ended may be run again.
 * Errors: the step's; LS_ESTATE no step is below; LS_ENOMEM. */
LS_API const char *ls_around_name(const ls_step *step);
LS_MUST_USE LS_API int ls_around_forward(ls_step *step);
LS_MUST_USE LS_API int ls_around_back(ls_step *step);

/* Inside a step: run the forward half of another middleware now. Its backward
 * half runs when ls_wrap_back() is called, else in reverse order with all
 * others of this iteration. ls_wrap_back() returns LS_OK if there is no
 * backward half, or it has run.
 * child:  borrow: until the iteration ends; its release and finish are not
 *         called. A void one, or one for another role, has no halves.
 * out:    borrow: until the iteration ends; NULL after an error.
 * Errors: the child's; LS_ENOMEM. */
typedef struct ls_wrapped ls_wrapped;
LS_MUST_USE LS_API int ls_wrap(ls_step *step, const struct ls_middleware *child,
                               ls_wrapped **out);
LS_MUST_USE LS_API int ls_wrap_back(ls_wrapped *wrapped);

/* A lock for a private group of middleware. Destroy it after the task; before,
 * that returns LS_ESTATE and does nothing. out: own. */
LS_MUST_USE LS_API int ls_step_lock_create(ls_step_lock **out, ls_task *task);
LS_API int ls_step_lock_destroy(ls_step_lock **lock);

/* Run up to n_iterations (UINT64_MAX: until finished). An iteration runs the
 * forward halves, then the backward halves, then increments total_step. The
 * context is renewed after every iteration, after the last one only once the
 * finish hooks have run: the hooks still see its data, the caller sees only
 * kept fields. So after n iterations total_step is n, and all other fields that
 * are not kept are fresh. A failed iteration is not counted.
 * With n 0, or no middleware for this role, no step runs and no other node is
 * told. A finish requested before the first iteration ends the run before it. A
 * task may be run again; total_step continues.
 * If the run ends with LS_OK because this node finished or did its n
 * iterations, the other nodes of the world are told to finish too, before the
 * finish hooks run; an error is not a finish.
 * Errors: a step's, with its name; a handler's on this node, with the names of
 *         node, event and handler; LS_ESTATE a second yield in a step, or
 *         the task is running already (then no hook runs); LS_EINVAL a step
 *         needs a field that no step gives; an error kept by ls_task_use();
 *         those of ls_thread_spawn() for the workers; those of ls_emit_with()
 *         if the others cannot be told. */
LS_MUST_USE LS_API int ls_task_run(ls_task *task, uint64_t n_iterations);

/* The same by hand, for programs with their own loop: forward runs the forward
 * halves of an iteration; backward runs the backward halves and counts the
 * iteration. The first forward begins a run; end ends it, with everything that
 * ls_task_run() does then. Only the caller checks whether the run should end:
 * ls_task_finishing(). All calls on one thread.
 * Errors: those of ls_task_run(): every step that had yielded has been resumed
 *         with the error; call only end now, which returns it too. LS_ESTATE
 *         called out of turn: nothing was done. End between forward and
 *         backward resumes the steps with LS_ECANCELED, and returns that. */
LS_MUST_USE LS_API int ls_task_forward(ls_task *task);
LS_MUST_USE LS_API int ls_task_backward(ls_task *task);
LS_MUST_USE LS_API int ls_task_end(ls_task *task);

/* Tells a task that its run should end: for waits that must not outlast it. */
#define LS_FINISH_EVENT "ls.finish"

/* End the run at the end of the iteration in which the request is known, here
 * and, by LS_FINISH_EVENT, on every node. Nodes number their runs, and the k-th
 * run of one ends the k-th run of the others: a late finish of the last run
 * does not end this one. Outside a run, it ends the next one. The event's data
 * is that number as msgpack; no data means the receiver's current run.
 * Thread: any. */
LS_API void ls_task_finish(ls_task *task);
/* The same for this node only: for middleware that tells the others in its own
 * way, as the barrier does; the end of this run does not tell them either.
 * Thread: any. */
LS_API void ls_task_finish_here(ls_task *task);
/* Whether the current run, or else the next one, has been asked to finish.
 * Thread: any. */
LS_API bool ls_task_finishing(const ls_task *task);

/* End the run now: the steps' waits return `status` (negative; otherwise
 * LS_ECANCELED), and so does ls_task_run(). The first cancel counts; outside a
 * run it ends the next one before any step. For signals and lost members. Until
 * the run has ended, or the task is destroyed, the node is interrupted with
 * that status, unless it was already (ls_node_interrupt()).
 * text: copied; NULL: the status's sentence. Thread: any. */
LS_API void ls_task_cancel(ls_task *task, int status, const char *text);
/* LS_OK, or the status that the run was cancelled with, or that a step running
 * at the same time has failed with. Waits in steps check it. Thread: any. */
LS_API int ls_task_cancelled(ls_task *task);

/* For a wait of your own: have fn called when ls_task_cancelled() is no longer
 * LS_OK, at once if that is so now. One function per `self`; fn NULL removes
 * it, and on return it no longer runs.
 * fn:     called under a lock of the task; it wakes the wait, and may call no
 *         ls_task_*() but ls_task_cancelled().
 * Errors: LS_ENOMEM. Thread: any. */
typedef void ls_cancel_fn(void *self, int status);
LS_MUST_USE LS_API int ls_task_on_cancel(ls_task *task, ls_cancel_fn *fn,
                                         void *self);

LS_API ls_node *ls_task_node(ls_task *task); /* may be NULL */
LS_API ls_runtime *ls_task_runtime(ls_task *task);
LS_API ls_context *ls_task_context(ls_task *task);
/* True if the node has this role, or was given none. */
LS_API bool ls_task_has_role(const ls_task *task, const char *role);
/* True if any label matches any of the globs, "gpu*,node.3" (*, ?, [a-z]). */
LS_API bool ls_task_match_labels(const ls_task *task, const char *globs);
/* Iterations completed by all runs so far. */
LS_API uint64_t ls_task_iterations(const ls_task *task);

/* The steps that have a half, or a finish, running right now: "collect"; in
 * async mode maybe "collect, learn"; "" for none. For reporting why a run does
 * not end. text: cut to size. Returns its length. Thread: any; does not wait.
 */
LS_API size_t ls_task_steps_now(const ls_task *task, char *text, size_t size);

/* The round that this node is in: all nodes that began together agree on it. It
 * grows; it is 0 before the first round, and without a barrier. A round begins
 * with a run, and when a node joins a run in progress, so what another node
 * sent in an earlier round is not meant for this one. ls_mw_barrier() sets it
 * at the beginning of an iteration. Thread: any. */
LS_API uint64_t ls_task_round(const ls_task *task);
LS_API void ls_task_set_round(ls_task *task, uint64_t round);

/* What the nodes that are in step have agreed upon at the end of an iteration:
 * ls_mw_barrier() asks each node for its wishes just before its second wait,
 * and knows those of all after it. For steps that must do something in the same
 * iteration everywhere, in the backward half of a step that is used before the
 * barrier. */
#define LS_WISH_SAVE     1u   /* ls_mw_checkpoint() */
#define LS_WISH_SAVE_NOW 2u   /* the same: and wait until it is on disk */
#define LS_WISHES_ALL    0xfu /* bits 2 and 3 are the program's */
struct ls_agreement {
    uint32_t wishes;     /* of all nodes, or-ed: the same on all of them */
    bool finishing;      /* all end with this iteration */
    const uint32_t *ids; /* the nodes that agree, this one too, in order.
                          * Borrow: until the iteration ends */
    size_t n;
};
/* Have fn called for the wishes of this node. One function per `self`; fn NULL
 * removes it. Not while the task runs. Thread: owner; fn: that of the barrier.
 * Errors: LS_ENOMEM. */
typedef uint32_t ls_wish_fn(void *self);
LS_MUST_USE LS_API int ls_task_on_wish(ls_task *task, ls_wish_fn *fn,
                                       void *self);
/* Whether somebody is to be asked; the wishes of this node. */
LS_API bool ls_task_has_wishes(const ls_task *task);
LS_API uint32_t ls_task_wishes(const ls_task *task);
/* The agreement of the iteration that is ending; NULL: there is none, as
 * without a barrier. Borrow. */
LS_API const struct ls_agreement *ls_task_agreement(const ls_task *task);
/* For barriers. what: copied, with its ids. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_task_agree(ls_task *task,
                                     const struct ls_agreement *what);

/* Inside a step ---------------------------------------------------------- */

/* Run the rest of the pipeline. Returns LS_OK, or the error that ended this
 * iteration. A second call in one step returns LS_ESTATE, and the run fails
 * with it. With another step's handle: LS_ESTATE. */
LS_API int ls_yield(ls_step *step);

/* The user's struct of the task's context. */
LS_API void *ls_step_context(ls_step *step);
LS_API ls_task *ls_step_task(ls_step *step);
LS_API const char *ls_step_name(const ls_step *step);
LS_API int64_t ls_step_now(const ls_step *step); /* ls_now() */
/* Sleep, in virtual time in a simulation. Ends early if the run is cancelled.
 * sleep_ms: under 1: only look.
 * Errors: the status of ls_task_cancelled(), or of ls_node_interrupted(). */
LS_MUST_USE LS_API int ls_step_sleep(ls_step *step, int sleep_ms);

#ifdef __cplusplus
}
#endif

#endif
