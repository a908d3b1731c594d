/* run_failure.h - why a run failed, told to programs in its folder.
 *
 * It is failure.json, one object on one line, of the first cause; docs/runs.md
 * lists its keys. A run that goes on removes the one of its earlier life.
 * Thread: serial. */
#ifndef LOCKSTEP_RUN_FAILURE_H
#define LOCKSTEP_RUN_FAILURE_H

#include "plan.h"

#define RUN_FAILURE_NAME "failure.json"

/* Texts: borrow, of any origin. */
struct run_failure {
    const char *type;  /* "LS_EHANDLER", "SIGKILL", "exit" */
    const char *value; /* what the node said, or what became of it */
    const char *text;  /* the sentence that is shown */
    const char *where; /* begins with the step, see run_failure_step() */
    int64_t wall_ns;   /* when: since 1970-01-01 UTC */
    size_t index;      /* of the node; n_nodes: it is not a node's */
};

/* Replace the file of this plan. Nothing for a plan whose folder is not its
 * own: PLAN_LATEST.
 * Errors: LS_EIO, which names it; LS_ELIMIT; LS_ENOMEM. */
LS_MUST_USE int run_failure_write(const struct plan *plan,
                                  const struct run_failure *failure);
/* Remove it, if this life of the run is not its first. */
void run_failure_remove(const struct plan *plan);

/* The name of the step that a text begins with: an error of a step, "step
 * collect: …", or where a node is, "in step collect for 2.0 s". step: "" when
 * it does not; cut to size. */
void run_failure_step(const char *text, char *step, size_t size);

#endif
