/* coordinator_parts.h - what the files of coordinator.h share.
 *
 * Callbacks come on threads of the node; they put what happened into the inbox
 * and wake the step, no more. An ended call is its own place in the inbox, and
 * members send few events, so the inbox is bounded by what was asked for.
 * Thread: that of the task, but for the inbox. */
#ifndef LOCKSTEP_SERVICE_COORDINATOR_PARTS_H
#define LOCKSTEP_SERVICE_COORDINATOR_PARTS_H

#include "lockstep/journal.h"

#include "coordinator.h"

struct coordinator_call {
    struct coordinator_call *next;       /* of all that are open */
    struct coordinator_call *next_ended; /* in the inbox */
    coordinator *owner;                  /* borrow */
    uint64_t number;
    ls_call *call; /* own */
};

struct member_event {
    struct member_event *next;
    struct ls_member member;
};

struct inbox {
    struct member_event *members, **last_member;  /* own */
    struct coordinator_call *ended, **last_ended; /* borrow */
    bool stop;
    int stop_status;
    char stop_text[256];
    int status; /* no memory for an event */
};

struct coordinator {
    struct coordinator_options options;
    char *journal_path; /* own; NULL: none */
    ls_runtime *runtime;
    ls_node *node;
    ls_task *task;
    core *core;                     /* own */
    ls_journal *journal;            /* own; NULL: none */
    uint64_t compacted;             /* records that it had afterwards */
    bool must_flush;                /* before the next action */
    struct coordinator_call *calls; /* own; open, or in the inbox */
    bool hears_members, hears_finish, hears_cancel;
    bool done;
    service_name evaluated, policy; /* in the store, when done; "": none */
    bool is_open;                   /* its watch was told */

    ls_mutex mutex; /* guards what follows */
    ls_cond changed;
    uint64_t changes;
    struct inbox inbox;
    struct core_figures figures;
};

/* coordinator_act.c: do what the machine wants, until it wants nothing. */
LS_MUST_USE int coordinator_act(coordinator *self);
LS_MUST_USE int coordinator_journal_open(coordinator *self);
/* Nobody will go on with what is done: but only when its end has been told, for
 * otherwise a later life has to tell it. */
void coordinator_clear_away(coordinator *self);
/* Tell the machine, and the watch. */
LS_MUST_USE int coordinator_tell_ended(coordinator *self, uint64_t number,
                                       const struct ls_call_result *result);

/* coordinator_inbox.c */
void coordinator_inbox_init(struct inbox *inbox);
LS_MUST_USE int coordinator_listen(coordinator *self);
void coordinator_unlisten(coordinator *self);
void coordinator_call_ended(void *call, ls_call *ended);
/* Wait until something has happened, or the machine wants to know the time. */
LS_MUST_USE int coordinator_wait(coordinator *self);
/* Take what has happened. */
void coordinator_inbox_take(coordinator *self, struct inbox *out);
void coordinator_inbox_fini(struct inbox *inbox);

/* Tell `ended`, with the policy. Returns what that does. */
int coordinator_tell_end(coordinator *self, int status, const char *text,
                         double value);

#endif
