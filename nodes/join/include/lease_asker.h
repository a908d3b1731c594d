/* lease_asker.h - a node that has no id yet asks for one, and leaves again.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_LEASE_ASKER_H
#define LOCKSTEP_LEASE_ASKER_H

#include "identity.h"
#include "lease.h"
#include "run_secret.h"

struct lease_asking {
    const struct plan *plan; /* borrow, as is all of this */
    enum plan_role role;
    const struct identity *identity;
    const struct run_secret *secret; /* where the plan has no keys; or NULL */
    const char *bind, *advertise;    /* as of `lockstep node`; NULL: not said */
    /* As of struct ls_node_options. */
    void (*waiting)(void *self, const char *missing);
    void *waiting_self;
};

/* out:    written on success only.
 * Errors: LS_ECONFIG no replicas of this role are planned, the ids are given
 * out on another host and `bind` is NULL, or the key is refused; LS_EAGAIN no
 * id is free, or a living node has this key; LS_EUNREACHABLE, LS_EMISMATCH who
 * gives out ids cannot be reached, or does not let this node in; LS_ELOST;
 * LS_ETIMEDOUT; those of node_security_open_asking(). */
LS_MUST_USE int lease_ask(struct lease_answer *out,
                          const struct lease_asking *asking);

#endif
