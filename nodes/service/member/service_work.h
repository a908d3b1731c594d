/* service_work.h - what the services of members have in common: their kinds of
 * work, the one work that is held, who gave it, and a task that waits for what
 * comes.
 *
 * Handlers of calls come on threads of the node and never wait; the task's
 * thread does the work. A work ends when that thread lets go of it: a close, or
 * the start of a later attempt, fails its open calls at once, and is answered
 * then. So nothing of a work happens after its close was answered.
 * Thread: any; functions that want the lock held say so. */
#ifndef LOCKSTEP_SERVICE_WORK_H
#define LOCKSTEP_SERVICE_WORK_H

#include "lockstep/call.h"
#include "lockstep/job.h"
#include "lockstep/task.h"

#include "messages.h"
#include "service_options.h"

/* A task of a work: a call that the coordinator makes, as in fsm_kinds.h. */
struct service_task {
    enum ls_job_phase phase; /* of LS_JOB_INIT and LS_JOB_EXIT, one each */
    const char *name;        /* of the call; kinds may have it in common */
    ls_request_fn *fn;       /* gets `self`; without the lock; not of the exit,
                              * which is the same for all */
};

/* A step of the task that a service runs. */
struct service_work_step {
    const char *name;
    ls_step_fn *fn; /* gets `self` */
};

/* A kind of work, as members do it; with the lock held, and without waiting,
 * unless it says otherwise. */
struct service_kind {
    const struct service_task *tasks;
    size_t n_tasks;
    /* What a turn is. Kinds may have steps in common: then in the same order.
     */
    const struct service_work_step *steps;
    size_t n_steps;
    /* On the task's thread, without the lock: a work is taken, to be begun. An
     * error ends the run. NULL: nothing. */
    int (*begin)(void *self);
    int64_t (*progress)(void *self);
    /* Fail the open calls of the work with this text, and forget what waits to
     * be worked on or handed over. */
    void (*drop)(void *self, const char *text);
    /* Write the answer of its exit. */
    void (*closed)(void *self, ls_writer *out);
};

/* A service as a whole, in the same way. */
struct service_work_ops {
    const char *what;                        /* "learner" */
    const struct service_kind *const *kinds; /* ended by NULL */
    /* The coordinator is lost: forget what only it could have used. NULL:
     * nothing. */
    void (*master_lost)(void *self);
    /* On the task's thread, without the lock: the run is over, and so is what
     * was left of a work. NULL: nothing. */
    void (*run_ended)(void *self);
    /* What another member may want of it, beside its works; NULL both: nothing.
     * is_wanted: there is something to be done for one; with the lock held. The
     * task goes on to its next step then, which does it. recall: the task's
     * thread is at that (service_work_lend()): have it end, soon; with the lock
     * held. */
    bool (*is_wanted)(const void *self);
    void (*recall)(void *self);
};

/* A step, as the task has it. */
struct service_turn {
    struct service_work *work; /* borrow */
    ls_step_fn *fn;
};
enum { SERVICE_TURNS = 16 };

struct service_work {
    struct service_options options;
    const struct service_work_ops *ops; /* static */
    void *self;                         /* for ops, calls and steps. Borrow */
    ls_runtime *runtime;                /* borrow */
    ls_task *task;                      /* borrow; while it has the steps */

    ls_mutex mutex; /* guards what follows */
    ls_cond changed;
    uint64_t changes;
    ls_writer *writer; /* own */
    bool ended;        /* a run is over, and no other has begun */
    struct work_key key;
    const struct service_kind *kind; /* of the work that is held */
    bool held;
    bool closing;               /* the task's thread is to let go of it */
    bool used;                  /* the task's thread is at it */
    bool lent;                  /* the thread does something for another */
    ls_request *closer;         /* own; to be answered then */
    ls_request *successor;      /* own; to be started then */
    struct work_key failed_key; /* the work that was given back last, */
    char failure[LS_CALL_TEXT_MAX + 1]; /* and why */
    uint32_t master;
    bool has_master, master_is_lost;
    int64_t master_lost_at;
    uint64_t news; /* calls of masters, and members that became ready */
    uint64_t lost_masters;
    struct service_figures figures;

    /* The task's thread. */
    const struct service_kind *at; /* of the work that it took last; NULL: of
                                    * none */
    struct service_turn turns[SERVICE_TURNS];
    size_t n_turns;
};

/* options: copied. Errors: LS_ENOMEM; those of ls_node_on_member(). */
LS_MUST_USE int service_work_init(struct service_work *work,
                                  const struct service_options *options,
                                  const struct service_work_ops *ops,
                                  void *self);

/* Serve "resource", and the tasks of its kinds. Errors: those of
 * ls_rpc_serve(); LS_EEXIST there is a service already. */
LS_MUST_USE int service_work_serve(struct service_work *work);
/* The calls are closed by then, or none was served. One that was not
 * initialised may be all zero. */
void service_work_fini(struct service_work *work);

/* For handlers. Each takes the request when it returns false. ---------------
 */

/* Refuse a request, with ls_error_text(). Lock held. */
void service_work_refuse(struct service_work *work, ls_request **request);
/* Its data was no message: count and log it, by ls_error_text(). Returns
 * `status`, for the handler to return. Without the lock. */
int service_work_malformed(struct service_work *work, const ls_request *request,
                           int status);
/* The data of a call that is nothing but a key. Errors: LS_EPROTO, LS_ENOMEM;
 * that was counted and logged. Without the lock. */
LS_MUST_USE int service_work_read_key(struct service_work *work,
                                      const ls_request *request,
                                      struct work_key *out);
/* A work of this kind is offered. Returns whether it is held now: keep what it
 * says; the request was answered. Lock held. */
bool service_work_start(struct service_work *work, ls_request **request,
                        const struct service_kind *kind,
                        const struct work_key *key);
/* Whether a call is for the work that is held. Lock held. */
bool service_work_admits(struct service_work *work, ls_request **request,
                         const struct work_key *key);
/* Answer with what is in work->writer. Returns LS_ECANCELED when nobody waits
 * for it any more. Lock held. */
int service_work_answer(struct service_work *work, ls_request **request);
/* Fail a call; NULL is fine. Lock held. */
void service_work_fail_call(ls_request **request, const char *text);
/* Something has changed that a wait may be for. Lock held. */
void service_work_changed(struct service_work *work);

/* The coordinator may have left before anybody could be told. Without the lock.
 */
void service_work_look(struct service_work *work);

/* For the task's thread, without the lock. ----------------------------------
 */

/* Give a task the steps of all kinds, behind one that waits for a work; those
 * of other kinds than that of the work are passed over. The task keeps the
 * first error. */
void service_work_use(struct service_work *work, ls_task *task);

/* Wait until ready(arg), asked with the lock held; or until the task finishes.
 * Errors: what the task is cancelled with; those of ls_node_take_error(), such
 *         as LS_ELOST when this node was taken for dead; LS_ELOST the
 *         coordinator is lost, and patience is over: it is named. */
LS_MUST_USE int service_work_wait(struct service_work *work,
                                  bool (*ready)(void *arg), void *arg);
/* Whether there is a work that the thread is at. */
bool service_work_is_used(struct service_work *work);
/* Whether it is to be let go. */
bool service_work_is_closing(struct service_work *work);
/* Fail its open calls: it is given back. failure: why; NULL: it is not. It may
 * take a while yet until it is let go of. */
void service_work_give_back(struct service_work *work, const char *failure);
/* Be done with it; the same first. */
void service_work_let_go(struct service_work *work, const char *failure);
/* The thread does something for another member from here on, and not any more.
 * Meanwhile a start recalls it, and is answered after the second. The first,
 * with the lock held, returns false when there is a work. */
LS_MUST_USE bool service_work_lend(struct service_work *work);
void service_work_return(struct service_work *work);
/* Have it end, if there is anything. Lock held. */
void service_work_recall(struct service_work *work);
/* Wait until ready(arg), asked with the lock held, or until the task finishes,
 * or until it is later than `until`. Errors: as those of service_work_wait();
 * LS_ETIMEDOUT. */
LS_MUST_USE int service_work_wait_until(struct service_work *work,
                                        bool (*ready)(void *arg), void *arg,
                                        int64_t until);
/* The run is over. */
void service_work_end_run(struct service_work *work, int status);

#endif
