/* work_kinds.h - the kinds of work that a coordinator gives out: a row says
 * what sets one apart. How one is asked for and begun: fsm_assign.c.
 *
 * Thread: any. */
#ifndef LOCKSTEP_SERVICE_WORK_KINDS_H
#define LOCKSTEP_SERVICE_WORK_KINDS_H

#include "coordinator_settings.h"

/* Of members, as by their nodes. */
enum pool_role { POOL_LEARNER, POOL_COLLECTOR };
extern const char *const pool_role_names[]; /* "learner" */

enum work_kind { WORK_LEARNER, WORK_COLLECTOR, WORK_EVALUATION };
enum { WORK_KINDS = 3 };

struct work_row {
    const char *name;    /* "learner" */
    const char *verb;    /* in its task_id: "learn" */
    enum pool_role role; /* of the members that may hold it */
    bool learns;         /* it has a replay buffer */
    bool feeds;          /* it fills that, and is over when nobody learns */
    bool judges;         /* it brings a value, of a copy of the policy that is
                          * its own: over without one, that goes */
    bool first;          /* of those that wait it is given before the others */
    bool shared;         /* several may do one together, as ranks of it */
    bool by_offer;       /* its first attempt goes to who offers most of all, so
                          * not before all have told */
};
extern const struct work_row work_rows[WORK_KINDS];
/* How long one may wait for a member, in ns. */
int64_t work_expiry(const struct fsm_options *options, enum work_kind kind);

#endif
