/* lease.h - what is said when a node without an id asks for one.
 *
 * A replica makes a key of its own (identity.h), and asks under the enrolment
 * key, at a node that is there for nothing else (lease_asker.h, lease_giver.h).
 * Who gives out the ids keeps the table of them (lease_table.h), and tells the
 * members of the job whose key is whose (lease_trust.h). Then the replica opens
 * its node, with its id and its own key.
 *
 * With a secret in place of keys all is the same, but for the telling: a key is
 * only a name there.
 * Thread: any. */
#ifndef LOCKSTEP_LEASE_H
#define LOCKSTEP_LEASE_H

#include "lockstep/call.h"
#include "lockstep/record.h"

#include "lease_table.h"
#include "plan.h"

/* The call: {role, key, lasting, life} → {id, attach, leases}. */
#define LEASE_CALL "ls.lease"
/* The event: the lines of lease_table_write(), each time that they change. */
#define LEASE_EVENT "ls.leases"

/* Why it is refused, as the call's code. */
enum lease_refusal {
    LEASE_NONE_FREE = 1001, /* try again later; also where there is no memory */
    LEASE_KEY_IN_USE = 1002, /* the same */
    LEASE_NOT_FOR_YOU = 1003
};

/* The code for why an id was not given, and what that means for who asked.
 * status: not LS_OK. Returns: LS_EAGAIN or LS_ECONFIG. */
int lease_refusal(int status);
int lease_refused(int code);

struct lease_question {
    char role[32];
    char key[LS_PUBLIC_KEY_MAX];
    bool lasting;  /* the key outlives the node */
    uint64_t life; /* of who asks; not 0 */
};

struct lease_answer {
    uint32_t id;
    char attach[PLAN_ADDRESS_MAX]; /* where the giver's node is */
    char *leases; /* own; what the event says, so that nobody who dials this
                   * node is unknown to it */
};

/* The tables of both. Who asks may be of another version, and say more. An
 * answer that was read is given to ls_record_clear(). */
extern const struct ls_record lease_question_record, lease_answer_record;

/* A table of the ids and roles that a plan leaves open, all of them free.
 * out: own; give it to lease_table_fini(). Errors: LS_ENOMEM. */
LS_MUST_USE int lease_table_of_plan(const struct plan *plan,
                                    struct lease_table *out);

#endif
