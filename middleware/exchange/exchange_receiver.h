/* exchange_receiver.h - the receiving half of an exchange: it listens from its
 * creation on, and waits for, takes and merges what the senders send. */
#ifndef LOCKSTEP_EXCHANGE_RECEIVER_H
#define LOCKSTEP_EXCHANGE_RECEIVER_H

#include "exchange_merge.h"
#include "lockstep/task.h"

typedef struct ls_exchange_receiver ls_exchange_receiver;

/* All borrowed for the life of the receiver. The rest is as in struct
 * ls_exchange_options, with defaults filled in. */
struct ls_exchange_how {
    ls_task *task;
    ls_exchange_plan *plan;
    const char *name;
    const char *event;
    const char *from;
    bool sends_too; /* this node is a sender itself */
    bool newest;
    unsigned stale;
    int timeout_ms;
};

/* out:    own; written on success only.
 * Errors: those of ls_on(); LS_ENOMEM. */
LS_MUST_USE int ls_exchange_receiver_create(ls_exchange_receiver **out,
                                            const struct ls_exchange_how *how);
void ls_exchange_receiver_destroy(ls_exchange_receiver **receiver);

/* A round begins: what the context has is of the iteration before this one. */
void ls_exchange_receiver_begin(ls_exchange_receiver *receiver, uint64_t round);

/* Wait, take and merge, as middleware.h says; run: the task's, from 1. */
LS_MUST_USE int ls_exchange_receive(ls_exchange_receiver *receiver,
                                    uint64_t run);

#endif
