/* lease_trust.h - a member hears whose key is whose among the replicas.
 *
 * Thread: serial, but for what it hears: on the dispatch thread. */
#ifndef LOCKSTEP_LEASE_TRUST_H
#define LOCKSTEP_LEASE_TRUST_H

#include "lockstep/event.h"

#include "plan.h"

/* As long as the node. */
struct lease_trust {
    const struct plan *plan; /* borrow */
    ls_security *security;   /* borrow; of the node */
    uint32_t id;             /* of the node */
};

/* Believe who gives out the ids, and nobody else. Before the node is started.
 * Errors: those of ls_node_allow() and ls_on(). */
LS_MUST_USE int lease_trust_begin(struct lease_trust *trust, ls_node *node);

/* Trust what these lines say, and no other key for an id that is given out.
 * Errors: LS_EPROTO they are none of lease_table_write(); nothing has changed.
 */
LS_MUST_USE int lease_trust_read(const struct lease_trust *trust,
                                 const void *data, size_t size);

#endif
