/* node_run.h - the life of one node: attach, run its role, report, leave.
 *
 * Thread: one thread creates it and may destroy it; one thread calls go;
 * cancel is for any thread. */
#ifndef LOCKSTEP_NODE_RUN_H
#define LOCKSTEP_NODE_RUN_H

#include "node_watch.h"
#include "plan.h"
#include "plugin_load.h"
#include "report.h"

typedef struct node_run node_run;

struct node_run_options {
    const struct plan *plan; /* borrow */
    size_t index;
    const struct plugin *plugin; /* borrow; NULL: members need none */
    const struct plan_endpoints *endpoints; /* copied */
    struct report_sink sink;                /* called from the thread of go */
    ls_runtime *runtime;   /* borrow; NULL: ls_runtime_threads() */
    ls_security *security; /* borrow; NULL: it is known who speaks: within a
                            * process, and in a simulation */
    struct node_watch watch;
    /* As of struct ls_node_options: borrow. */
    void (*waiting)(void *self, const char *missing);
    void *waiting_self;
    bool gives_ids; /* if it is the one to do so: of nodes that are started one
                     * by one */

    /* Of a node that is started again: how often it was before, and the ids of
     * those that the run has gone on without. Copied. */
    unsigned generation;
    const uint32_t *gone;
    size_t n_gone;
};

/* Make the node's environments and policy; nothing is on any network yet.
 * out:    own; written on success only; give it to node_run_destroy().
 * Errors: those of role_init() and agent_init(); LS_ENOMEM. */
LS_MUST_USE int node_run_create(node_run **out,
                                const struct node_run_options *options);
void node_run_destroy(node_run **run);

/* Listen, attach, wait for the world, run to the end and leave. The reports
 * begin with `bound` and end with `done` or `failed`, just before it leaves.
 * Errors: those of ls_node_start(), elastic_run_go() and ls_task_run(). */
LS_MUST_USE int node_run_go(node_run *run);

/* End it soon, wherever it stands: go then returns `status`. The first call
 * counts. text: copied. */
void node_run_cancel(node_run *run, int status, const char *text);

/* What it is at, after "node 1 (collector) is": "in step collect for 3.2 s",
 * "joining its world"; for whoever has to say why it does not end. text: cut to
 * size. Thread: any, also one outside of its simulation; it waits for nothing.
 */
void node_run_where(node_run *run, char *text, size_t size);

/* Have it saved, together with the others, if its job can be. Thread: any. */
void node_run_save(node_run *run);

/* Write what its flight recorder holds to trace/node-ID.lstrace in the folder
 * of the run, and say so in the log; nothing where there is no folder or no
 * recorder, and in a simulation. Thread: any. */
void node_run_dump(node_run *run, const char *reason);

#endif
