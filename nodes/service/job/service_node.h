/* service_node.h - what the three roles of a service job have in common: a
 * store, and a task that they run.
 *
 * Thread: owner. */
#ifndef LOCKSTEP_SERVICE_NODE_H
#define LOCKSTEP_SERVICE_NODE_H

#include "messages.h"
#include "service_options.h"
#include "work.h"

struct service_node {
    const struct plan *plan; /* borrow */
    size_t index;
    struct report_sink sink;
    const struct service_watch *watch; /* borrow; NULL: nobody */
    ls_task *task;                     /* borrow */
    ls_rpc *calls;                     /* borrow */
    struct store *store;               /* own */
};

void service_node_init(struct service_node *out,
                       const struct work_options *options);
/* Keep the task and the calls, and open the store, with its home where that is.
 * Errors: those of opening them. */
LS_MUST_USE int service_node_open(struct service_node *node, ls_task *task,
                                  ls_rpc *calls);
/* For work_kind, of what begins with a struct service_node: run the task; for a
 * member that was declared lost and has rejoined, again, as long as a
 * coordinator may come back. Errors: those of ls_task_run(). */
LS_MUST_USE int service_node_run(void *base);
void service_node_close(struct service_node *node);
/* What its service, and its store, have counted. */
void service_node_count(const struct service_node *node,
                        const struct service_figures *figures,
                        struct report *out);

/* What learn() reported last, for the summary; none: nothing. */
void service_node_values(struct report *report,
                         const struct learner_info *info);

/* Remove the data that is left in the folder of the run: nobody asks for what
 * an earlier life of the coordinator has heard of. Errors: those of
 * store_files.h.
 */
LS_MUST_USE int service_node_clear_data(const struct plan *plan);

/* Of the service of a member, once it is open. */
struct service_options service_node_options(const struct service_node *node);

/* Where the coordinator keeps its journal. Errors: LS_ELIMIT. */
LS_MUST_USE int service_node_journal(const struct plan *plan, char *out,
                                     size_t size);

#endif
