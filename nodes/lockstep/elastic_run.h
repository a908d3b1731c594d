/* elastic_run.h - the other nodes of a plan, as one node sees them, and a run
 * that goes on when it loses one that the plan lets it lose.
 *
 * A loss ends the run of the task, here as everywhere; what the node's role has
 * learned and counted stays. When all whom the plan asks for are there again,
 * the task runs again, and the barrier brings everyone into step: a new round.
 * Nobody starts a node here: that is for `lockstep run`, or for whoever started
 * it on its host.
 * Thread: owner. */
#ifndef LOCKSTEP_ELASTIC_RUN_H
#define LOCKSTEP_ELASTIC_RUN_H

#include "lockstep/task.h"

#include "plan.h"

enum elastic_state {
    ELASTIC_WHOLE,  /* everyone is here whom the run needs */
    ELASTIC_AWAITS, /* one is not, and will come (back) */
    ELASTIC_BROKEN, /* one is lost, and the run with it */
    ELASTIC_DONE    /* one has left because the run is done */
};

/* What the members mean for a run. self: index of this node, which is not
 * among the members. which: of the node that decides, when one does. Pure. */
enum elastic_state elastic_look(const struct plan *plan, size_t self,
                                const struct ls_member *members, size_t n,
                                size_t *which);

typedef struct elastic_run elastic_run;

/* Before the node is started, and its task was built. All borrow.
 * out:    own; written on success only; destroy it before task and node.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int elastic_run_create(elastic_run **out, const struct plan *plan,
                                   size_t self, ls_task *task);
void elastic_run_destroy(elastic_run **elastic_run);

/* ls_task_run(), again and again, until the run is done, fails, or is ended.
 * From a loss to an iteration that is whole it may take as long as a start and
 * the longest back-off; the learner waits no longer than to the end of the
 * run's time (stop.minutes), which then is done.
 * Errors: those of ls_task_run(); LS_ELOST one was lost that the run needs, or
 *         did not come back in time; what elastic_run_end() was called with. */
LS_MUST_USE int elastic_run_go(elastic_run *elastic_run);

/* End elastic_run_go() soon, wherever it stands: what ls_task_cancel() does,
 * that no loss before or after can undo. The first call counts. text: copied.
 * Thread: any. */
void elastic_run_end(elastic_run *elastic_run, int status, const char *text);

/* The same, but the iteration that runs may come to its end within patience_ms:
 * who is done with it sooner calls elastic_run_end() then. */
void elastic_run_end_soon(elastic_run *elastic_run, int status,
                          const char *text, int patience_ms);

#endif
