/* coordinator.h - the coordinator as a task: the machine of fsm.h, with the
 * bus, the journal and the store around it.
 *
 * An iteration of the task is: wait for what happened, decide, act. It ends
 * when the machine says that the job is done: with LS_OK the task is finished,
 * everywhere, else it fails with the machine's status.
 *
 * With a journal it can be killed and started again: what the journal tells is
 * taken over, and members that still hold their works go on with them.
 * Thread: owner, unless a function says otherwise.
 * Source: docs/services.md. */
#ifndef LOCKSTEP_SERVICE_COORDINATOR_H
#define LOCKSTEP_SERVICE_COORDINATOR_H

#include "lockstep/call.h"
#include "lockstep/task.h"

#include "fsm.h"
#include "service_watch.h"
#include "store.h"

typedef struct coordinator coordinator;

/* How the job ended. Borrow: until the callback returns. */
struct coordinator_end {
    int status; /* LS_OK: the value was reached, or all that was asked for is
                 * done */
    const char *text;
    double eval_value; /* of the last evaluation; NaN: there was none */
    /* The policy that reached the value, or else the one that the learner
     * committed last, as it lies in the store. NULL: there is none, or it
     * cannot be had: policy_status */
    const void *policy;
    size_t policy_size;
    int policy_status;       /* LS_OK: nobody has learned one; or why not */
    const char *policy_text; /* the same in words */
};

/* The step in which it waits for what happens. */
#define COORDINATOR_IDLE_STEP "await"

struct coordinator_options {
    ls_rpc *calls;        /* of the task's node. Borrow */
    struct store *store;  /* borrow */
    const char *policies; /* where that keeps policies, for a text; borrow, in
                           * coordinator_create() */
    const char *journal;  /* path of a file, which it goes on from when it is
                           * there; copied; NULL: none */
    uint32_t channel;     /* that learners and collectors serve */
    struct fsm_options fsm;
    const struct fsm_kind *const *kinds; /* of works, as fsm_kinds. Borrow */
    /* With fsm.keeps_samples: call fn with the name of all data in the store.
     * A later life drops what it does not go on with. */
    int (*each_data)(struct store *store,
                     int (*fn)(void *self, const char *name), void *self);
    const struct service_watch *watch; /* borrow; NULL: nobody */

    /* On the task's thread; each may be NULL. */
    void (*evaluated)(void *self, double value, int64_t version);
    void (*info)(void *self, const struct learner_info *info);
    /* However the run ends, also when its task is cancelled; once. An error is
     * that of the task, when the job itself ended with LS_OK. */
    int (*ended)(void *self, const struct coordinator_end *end);
    void *self;
};

/* Members that a kind is for get works; others none.
 * out:    own; written on success only; destroy it after its task, and before
 *         calls and node.
 * Errors: those of fsm_create(), ls_journal_open(), fsm_recall() and
 * store_get(); LS_ENOENT: the policy that the journal says was committed
 * is not there; LS_EINVAL; LS_ENOMEM. */
LS_MUST_USE int coordinator_create(coordinator **out,
                                   const struct coordinator_options *options);
void coordinator_destroy(coordinator **gone);

/* Add its steps to a task of the calls' node; once, and before that is started.
 * Errors: LS_EINVAL the task has no node; LS_ENOMEM; those of ls_task_use() and
 * ls_on(). */
int coordinator_use(coordinator *self, ls_task *task);

/* End the job soon, with this status, all works closed. The first call counts.
 * text: copied. Thread: any, once coordinator_use() has returned. */
void coordinator_stop(coordinator *self, int status, const char *text);

/* Thread: any, once coordinator_use() has returned. */
void coordinator_figures(coordinator *self, struct fsm_figures *out);

#endif
