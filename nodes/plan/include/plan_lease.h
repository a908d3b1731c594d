/* plan_lease.h - the nodes of a plan that bring no id: who gives it to them,
 * and where.
 *
 * An item of `nodes` with `replicas: N` in place of `count: N` has N ids, and
 * any node of its role that asks gets one of them.
 * Thread: serial. */
#ifndef LOCKSTEP_PLAN_LEASE_H
#define LOCKSTEP_PLAN_LEASE_H

#include "plan.h"

/* Part of plan_read(), after nodes and security: world.leases, and what does
 * not go with replicas. */
void plan_read_leases(struct plan *plan, ls_config_section *root);

/* Whether there are any. */
bool plan_has_leases(const struct plan *plan);
/* How many of this role. */
size_t plan_n_leases(const struct plan *plan, enum plan_role role);

/* Who gives out the ids, by index: the coordinator, else the node with the
 * lowest id of those that bring theirs. */
size_t plan_lease_giver(const struct plan *plan);

/* Where he does so. Errors: LS_ECONFIG the endpoint would be too long. */
struct plan_lease_place {
    char bind[LS_ENDPOINT_MAX + 1];
    char advertise[LS_ENDPOINT_MAX + 1];
};
LS_MUST_USE int plan_lease_place(const struct plan *plan,
                                 struct plan_lease_place *out);

/* The name of the world there: who dials it by mistake is told so. */
#define PLAN_LEASE_JOB_MAX (LS_JOB_MAX + 1)
void plan_lease_job(const struct plan *plan, char out[PLAN_LEASE_JOB_MAX]);

#endif
