/* restart.h - when a node that failed is started again.
 *
 * Pure: it is told what happened and when, and says what to do.
 * Thread: serial. */
#ifndef LOCKSTEP_RESTART_H
#define LOCKSTEP_RESTART_H

#include "plan.h"
#include "root_cause.h"

/* A node that has worked for so long has got over what ailed it. */
#define RESTART_GOOD_WORK_NS (INT64_C(60) * 1000 * 1000 * 1000)

/* Zero-initialised: its first life. */
struct restarts {
    unsigned n;         /* so far */
    unsigned in_a_row;  /* of these, without good work between */
    int64_t working_at; /* since when this life has been in the world; 0: not */
    int64_t at[PLAN_WINDOW_RESTARTS_MAX]; /* when the last ones were: a ring */
};

enum restart_verdict {
    RESTART_FAIL,   /* the run fails */
    RESTART_LET_GO, /* it goes on without the node */
    RESTART_AGAIN   /* start the node again */
};

/* The node is in the world. */
void restart_note_working(struct restarts *restarts, int64_t now);

/* How many of its restarts count: of the whole run, or of those within its
 * window; not above max_restarts. */
unsigned restart_spent(const struct restarts *restarts,
                       const struct plan_node *node, int64_t now);

/* The node has failed. A run can go on without a node only once it was in the
 * world: until then the others wait for it. A node that has spent all of its
 * restarts gets no other, nor does one that could not begin since its
 * configuration is wrong, or what that names is missing or damaged: its next
 * life would find the same.
 * end:     of this life. wait_ms: how long to wait, with RESTART_AGAIN, which
 * is then counted. */
enum restart_verdict restart_decide(struct restarts *restarts,
                                    const struct plan_node *node,
                                    const struct node_end *end, int64_t now,
                                    int *wait_ms);

#endif
