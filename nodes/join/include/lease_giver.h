/* lease_giver.h - beside the node that gives out the ids: where it is done.
 *
 * It has a node of its own there, in a world of its own, which the enrolment
 * key opens and no other; so who may only ask hears nothing of the job. What
 * was given out is in a file, OUT/leases, for its next life, and told to the
 * members as the event "ls.leases".
 *
 * Keys that KEYS/revoked names, one a line, are refused, and what they had is
 * free once nobody is there by it; the file is read at the start and each time
 * that somebody asks, whoever that is.
 * Thread: one creates and destroys it; the rest is done on threads of its own.
 */
#ifndef LOCKSTEP_LEASE_GIVER_H
#define LOCKSTEP_LEASE_GIVER_H

#include "lockstep/node.h"

#include "plan.h"

#define LEASE_FILE_NAME   "leases"
#define LEASE_REVOKED     "revoked"
#define LEASE_WAITERS_MAX 4 /* that wait for the former life of their key */

typedef struct lease_giver lease_giver;

struct lease_giver_options {
    const struct plan *plan; /* borrow, as are these two */
    ls_node *node;           /* open; it tells the members */
    ls_security *security;   /* of that node, which learns the keys */
};

/* Read the file, and begin to give out ids.
 * out:    own; written on success only; give it to lease_giver_close() before
 *         the node is stopped.
 * Errors: LS_ECONFIG the file is none; LS_EADDRINUSE; those of
 *         ls_security_giving() and ls_node_start(). */
LS_MUST_USE int lease_giver_open(lease_giver **out,
                                 const struct lease_giver_options *options);
/* NULL and a pointer to NULL are fine. */
void lease_giver_close(lease_giver **giver);

#endif
