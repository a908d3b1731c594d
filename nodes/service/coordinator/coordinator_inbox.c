/* What happens, from the threads of the node to that of the task. */
#include <stdio.h>
#include <stdlib.h>

#include "coordinator_parts.h"
#include "lockstep/event.h"
#include "lockstep/log.h"

void coordinator_inbox_init(struct inbox *inbox)
{
    *inbox = (struct inbox){.status = LS_OK};
    inbox->last_member = &inbox->members;
    inbox->last_ended = &inbox->ended;
}

void coordinator_inbox_fini(struct inbox *inbox)
{
    while (inbox->members != NULL) {
        struct member_event *gone = inbox->members;
        inbox->members = gone->next;
        free(gone);
    }
    coordinator_inbox_init(inbox);
}

static void note_change(coordinator *self)
{
    self->changes++;
    ls_cond_broadcast(&self->changed);
}

static void on_member(void *owner, const struct ls_member *member)
{
    coordinator *self = owner;
    struct member_event *event = calloc(1, sizeof *event);
    if (event != NULL)
        event->member = *member;
    ls_mutex_lock(&self->mutex);
    if (event == NULL) {
        self->inbox.status = LS_ENOMEM;
    } else {
        *self->inbox.last_member = event;
        self->inbox.last_member = &event->next;
    }
    note_change(self);
    ls_mutex_unlock(&self->mutex);
}

void coordinator_call_ended(void *call, ls_call *ended)
{
    struct coordinator_call *open = call;
    coordinator *self = open->owner;
    (void)ended;
    ls_mutex_lock(&self->mutex);
    *self->inbox.last_ended = open;
    self->inbox.last_ended = &open->next_ended;
    note_change(self);
    ls_mutex_unlock(&self->mutex);
}

static int on_finish(void *owner, const struct ls_event *event)
{
    coordinator *self = owner;
    (void)event;
    ls_mutex_lock(&self->mutex);
    note_change(self);
    ls_mutex_unlock(&self->mutex);
    return LS_OK;
}

static void on_cancel(void *owner, int status)
{
    (void)status;
    (void)on_finish(owner, NULL);
}

void coordinator_stop(coordinator *self, int status, const char *text)
{
    ls_mutex_lock(&self->mutex);
    struct inbox *inbox = &self->inbox;
    if (!inbox->stop) {
        inbox->stop = true;
        inbox->stop_status = status;
        (void)snprintf(inbox->stop_text, sizeof inbox->stop_text, "%s", text);
    }
    note_change(self);
    ls_mutex_unlock(&self->mutex);
}

int coordinator_listen(coordinator *self)
{
    int status = LS_OK;
    if (!self->hears_members) {
        status = ls_node_on_member(self->node, on_member, self);
        self->hears_members = status == LS_OK;
    }
    if (status == LS_OK && !self->hears_finish) {
        status = ls_on(self->node, LS_FINISH_EVENT, on_finish, self);
        self->hears_finish = status == LS_OK;
    }
    return status;
}

void coordinator_unlisten(coordinator *self)
{
    if ((self->hears_members &&
         ls_node_on_member(self->node, NULL, self) < 0) ||
        (self->hears_finish &&
         ls_off(self->node, LS_FINISH_EVENT, on_finish, self) < 0))
        ls_log_debug("coordinator: a listener was gone: %s", ls_error_text());
    self->hears_members = self->hears_finish = false;
}

/* The lock must not be held when the task is asked: it calls on_cancel() under
 * one of its own. So what was learned without it is good only if nothing has
 * changed until it is held. */
static int wait_once(coordinator *self, uint64_t seen, int64_t deadline)
{
    int status = LS_OK;
    ls_mutex_lock(&self->mutex);
    const struct inbox *inbox = &self->inbox;
    while (status == LS_OK && self->changes == seen && inbox->members == NULL &&
           inbox->ended == NULL && !inbox->stop)
        status = ls_cond_wait(&self->changed, &self->mutex, deadline);
    ls_mutex_unlock(&self->mutex);
    return LS_OK; /* when the time has come, that has happened */
}

int coordinator_wait(coordinator *self)
{
    if (!self->hears_cancel) {
        const int status = ls_task_on_cancel(self->task, on_cancel, self);
        if (status != LS_OK)
            return status;
        self->hears_cancel = true;
    }
    ls_mutex_lock(&self->mutex);
    const uint64_t seen = self->changes;
    ls_mutex_unlock(&self->mutex);
    const int status = ls_task_cancelled(self->task);
    if (status != LS_OK || ls_task_finishing(self->task))
        return status;
    return wait_once(self, seen,
                     core_wake_at(self->core, ls_now(self->runtime)));
}

void coordinator_inbox_take(coordinator *self, struct inbox *out)
{
    ls_mutex_lock(&self->mutex);
    *out = self->inbox;
    coordinator_inbox_init(&self->inbox);
    ls_mutex_unlock(&self->mutex);
}
