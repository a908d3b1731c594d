/* work.h - what a node does between its start and its end, and who decides
 * what the loss of another means for it.
 *
 * There are two kinds of jobs. In one all nodes go in step: work_in_step.h.
 * In the other, a service job, a coordinator gives learners and collectors
 * their work: work_service.h. A node runs either through these calls, in this
 * order, each once:
 *   create     its environments, policy and settings; no network yet
 *   use        everything that listens, and the pipeline of its task
 *   run        the task, to its end
 *   leave      the node has stopped: what stands on the task has to go
 *   close      task and calls are gone too: what stands on the node
 *   destroy    the rest
 * and report, when it has to be told how far it is: then or after create.
 * After a failure, also of use, what follows is called as well.
 * Thread: owner. */
#ifndef LOCKSTEP_WORK_H
#define LOCKSTEP_WORK_H

#include "lockstep/call.h"
#include "lockstep/task.h"

#include "node_watch.h"
#include "plan.h"
#include "report.h"

struct work_options {
    const struct plan *plan;        /* borrow; as the others */
    size_t index;                   /* of the node in it */
    unsigned generation;            /* how often the node was started before */
    const struct ls_plugin *plugin; /* NULL: members need none */
    struct report_sink sink;
    struct node_watch watch; /* copied */
};

struct work_kind {
    int (*create)(void **out, const struct work_options *options);
    int (*use)(void *self, ls_task *task, ls_rpc *calls);
    int (*run)(void *self);
    /* From any thread: end what `run` does soon, with this status. NULL: there
     * is only the task to cancel. */
    void (*end)(void *self, int status, const char *text);
    /* From any thread: save it soon. NULL: there is nothing that could. */
    void (*save)(void *self);
    void (*report)(void *self, struct report *out); /* fills in */
    void (*leave)(void *self); /* NULL: nothing stands there; as the next */
    void (*close)(void *self);
    void (*destroy)(void *self);
    /* The step in which it may stay as long as it likes. NULL: there is none.
     */
    const char *idle_step;
};

#endif
