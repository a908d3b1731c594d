/* service_watch.h - what the nodes of a service cluster tell one who checks
 * them: members tell which works they hold and which policies they commit and
 * load, the coordinator tells every decision of its state machine and how every
 * call ended.
 *
 * Called on the node's threads, under whatever locks they hold: they must not
 * wait, nor call back. All are to be given; a watch as a whole may be NULL.
 * Source: docs/services.md, "Checks". */
#ifndef LOCKSTEP_SERVICE_WATCH_H
#define LOCKSTEP_SERVICE_WATCH_H

#include "messages.h"
#include "policy_value.h"

struct fsm_action;
struct fsm_figures;
struct ls_call_result;

struct service_watch {
    /* A learner or collector: it holds this work from now on, before it says
     * so to anyone; and does not any more, whyever. */
    void (*began)(void *self, const struct work_key *key);
    void (*ended)(void *self, const struct work_key *key);
    /* A learner: this version of the work's policy is in the store now, and
     * before it what its training goes on from. value: without its weights;
     * training: size 0: there is none. */
    void (*committed)(void *self, const struct work_key *key,
                      const char *policy_id, const struct policy_value *value,
                      const struct ls_bytes *training);
    /* A learner that does this work together with the one that holds it: from
     * now on, and not any more. */
    void (*joined)(void *self, const struct work_key *key);
    void (*parted)(void *self, const struct work_key *key);
    /* One of them, or the one that holds it: a hash of its weights after this
     * iteration, from 0, where they are to be committed. */
    void (*stepped)(void *self, const struct work_key *key, int64_t iter,
                    uint64_t weights);
    /* A member begins to get a policy from the store; and has it. training:
     * size 0: it goes on with the policy alone. */
    void (*loading)(void *self);
    void (*loaded)(void *self, const struct work_key *key,
                   const char *policy_id, const struct policy_value *value,
                   const struct ls_bytes *training);

    /* The coordinator: its state machine is made, and has read the journal;
     * what it is told next of a member, or of a call that has ended; what it
     * said, which is done next; and what all came to, before it goes. */
    void (*opened)(void *self);
    void (*member)(void *self, uint32_t id, uint64_t incarnation, bool ready);
    void (*action)(void *self, const struct fsm_action *action);
    void (*call_ended)(void *self, uint64_t number,
                       const struct ls_call_result *result);
    void (*closed)(void *self, const struct fsm_figures *figures);

    void *self;
};

#endif
