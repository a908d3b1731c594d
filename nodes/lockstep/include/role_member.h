/* role_member.h - a member: it does nothing but keep step with the others.
 *
 * An iteration is one epoch of the barrier "step", with a pause before it, and
 * reliable events to all others, if the configuration wants them. Members end
 * together: each says in its flags whether it still has epochs to go, so all
 * see in the same epoch that nobody has. An epoch that fails is tried again, as
 * often as the plan allows. Thread: that of the node's task. */
#ifndef LOCKSTEP_ROLE_MEMBER_H
#define LOCKSTEP_ROLE_MEMBER_H

#include "lockstep/barrier.h"
#include "lockstep/event.h"
#include "lockstep/task.h"

#include "plan.h"
#include "report.h"

/* Told of each epoch of a member; for those who check what they see. Called on
 * the node's threads; must not wait. */
struct member_watch {
    void (*entering)(void *self, uint64_t incarnation);
    /* info: NULL when it failed; the reason is then ls_error_text(). */
    void (*ended)(void *self, int status,
                  const struct ls_barrier_epoch_info *info);
    /* Another member became ready, left or was lost, as seen here. */
    void (*member)(void *self, const struct ls_member *member);
    /* It emits the number-th of its events, which count from 1; the node is in
     * this life. */
    void (*emitting)(void *self, uint64_t incarnation, uint64_t number);
    /* That has returned: it is for those who were ready all the time. Without
     * this it has failed, and nobody gets it. */
    void (*emitted)(void *self, uint64_t number);
    /* An emit of policy block found no room within its time. */
    void (*blocked)(void *self);
    /* It got the number-th event of another. */
    void (*heard)(void *self, const struct ls_event *event, uint64_t number);
    /* It listens no longer, and knows of these losses. */
    void (*quitting)(void *self, const struct ls_node_loss *losses, size_t n);
    void *self;
};

/* Its data is the sender's count of them, as it lies in memory: all members of
 * such a job are one program. A client may not emit it. */
#define MEMBER_EVENT "member.event"
/* Of policy block; its data does not matter. They are few in a window of so
 * many messages. */
#define MEMBER_BLOCKING "member.blocking"
#define MEMBER_WINDOW   16

struct member;

/* watch: borrow; NULL: nobody. out: own; destroy it after the task.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int member_create(struct member **out,
                              const struct plan_barrier *plan,
                              const struct member_watch *watch);
void member_destroy(struct member **member);

/* The step, for ls_task_use(). */
struct ls_middleware member_step(struct member *member, ls_task *task);

/* Fill in epochs, failures and times. */
void member_report(struct member *member, struct report *report);

#endif
