/* node_run.h - the life of one node: attach, run its role, report, leave.
 *
 * Thread: one thread creates it and may destroy it; one thread calls go;
 * cancel is for any thread. */
#ifndef LOCKSTEP_NODE_RUN_H
#define LOCKSTEP_NODE_RUN_H

#include "plan.h"
#include "plugin_load.h"
#include "report.h"

typedef struct node_run node_run;

/* Make the node's environments and policy; nothing is on any network yet.
 * plan, plugin: borrow. endpoints: copied. sink: called from the thread of go.
 * out:    own; written on success only; give it to node_run_destroy().
 * Errors: what the plugin's init returns; LS_ENOMEM. */
LS_MUST_USE int node_run_create(node_run **out, const struct plan *plan,
                                size_t index, const struct plugin *plugin,
                                const struct plan_endpoints *endpoints,
                                struct report_sink sink);
void node_run_destroy(node_run **run);

/* Listen, attach, wait for the world, run to the end and leave. The reports
 * begin with `bound` and end with `done` or `failed`, just before it leaves.
 * Errors: those of ls_node_start() and ls_task_run(). */
LS_MUST_USE int node_run_go(node_run *run);

/* End it soon, wherever it stands: go then returns `status`. The first call
 * counts. text: copied. */
void node_run_cancel(node_run *run, int status, const char *text);

#endif
