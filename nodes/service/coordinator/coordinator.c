#include "coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator_parts.h"

static int init(coordinator *self)
{
    if (self->options.journal != NULL) {
        const size_t size = strlen(self->options.journal) + 1;
        self->journal_path = malloc(size);
        if (self->journal_path == NULL)
            return ls_error(LS_ENOMEM, "a coordinator");
        memcpy(self->journal_path, self->options.journal, size);
        self->options.journal = self->journal_path;
    }
    return core_create(&self->core, &self->options.core);
}

int coordinator_create(coordinator **out,
                       const struct coordinator_options *options)
{
    if (options->calls == NULL || options->store == NULL)
        return ls_error(LS_EINVAL, "a coordinator needs calls and a store");
    coordinator *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "a coordinator");
    self->options = *options;
    coordinator_inbox_init(&self->inbox);
    int status = init(self);
    if (status == LS_OK)
        status = coordinator_journal_open(self);
    if (status == LS_OK) {
        core_figures(self->core, &self->figures);
        if (options->watch != NULL)
            options->watch->opened(options->watch->self);
        self->is_open = true;
        *out = self;
    } else {
        coordinator_destroy(&self);
    }
    return status;
}

static void free_call(coordinator *self, struct coordinator_call *call)
{
    struct coordinator_call **at = &self->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    ls_call_destroy(&call->call);
    free(call);
}

void coordinator_destroy(coordinator **gone)
{
    coordinator *self = gone == NULL ? NULL : *gone;
    if (self == NULL)
        return;
    *gone = NULL;
    coordinator_unlisten(self);
    if (self->is_open && self->options.watch != NULL) {
        core_figures(self->core, &self->figures);
        self->options.watch->closed(self->options.watch->self, &self->figures);
    }
    while (self->calls != NULL)
        free_call(self, self->calls);
    coordinator_inbox_fini(&self->inbox);
    ls_journal_close(&self->journal);
    core_destroy(&self->core);
    free(self->journal_path);
    ls_cond_fini(&self->changed);
    ls_mutex_fini(&self->mutex);
    free(self);
}

/* The steps --------------------------------------------------------------- */

static int await(ls_step *step, void *owner)
{
    (void)step;
    return coordinator_wait(owner);
}

static int decide_on_member(coordinator *self, const struct ls_member *member,
                            int64_t now)
{
    const struct service_watch *watch = self->options.watch;
    const bool ready = member->state == LS_MEMBER_READY;
    if (watch != NULL)
        watch->member(watch->self, member->id, member->incarnation, ready);
    return core_member(self->core, now, member->id, member->incarnation,
                       member->role, ready);
}

/* A loss may be told by calls before it is by the node, and the other way
 * round; the machine takes both. */
static int decide_on(coordinator *self, const struct inbox *inbox)
{
    const int64_t now = ls_now(self->runtime);
    int status = inbox->status;
    if (status != LS_OK)
        return ls_error(status, "what happened to a member");
    for (const struct member_event *e = inbox->members;
         e != NULL && status == LS_OK; e = e->next)
        if (e->member.state != LS_MEMBER_SEEN)
            status = decide_on_member(self, &e->member, now);
    struct coordinator_call *next;
    for (struct coordinator_call *c = inbox->ended; c != NULL; c = next) {
        next = c->next_ended;
        if (status == LS_OK)
            status = coordinator_tell_ended(self, c->number,
                                            ls_call_result(c->call));
        free_call(self, c);
    }
    if (status == LS_OK && inbox->stop)
        status =
            core_stop(self->core, now, inbox->stop_status, inbox->stop_text);
    return status == LS_OK ? core_time(self->core, now) : status;
}

static int decide(ls_step *step, void *owner)
{
    coordinator *self = owner;
    struct inbox inbox;
    (void)step;
    coordinator_inbox_take(self, &inbox);
    const int status = decide_on(self, &inbox);
    coordinator_inbox_fini(&inbox);
    return status;
}

static int act(ls_step *step, void *owner)
{
    coordinator *self = owner;
    (void)step;
    const int status = coordinator_act(self);
    ls_mutex_lock(&self->mutex);
    core_figures(self->core, &self->figures);
    ls_mutex_unlock(&self->mutex);
    return status;
}

/* The run has failed, or was ended from outside: there is no time to close the
 * works, and they may be taken over. */
static int give_up(coordinator *self, int status)
{
    char text[LS_ERROR_TEXT_MAX];
    struct core_figures figures;
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    core_figures(self->core, &figures);
    const int told =
        coordinator_tell_end(self, status, text, figures.eval_value);
    return told == LS_OK ? LS_OK : ls_error_at(told, "%s", text);
}

static int end_of_run(void *owner, ls_task *task, int status)
{
    coordinator *self = owner;
    int told = LS_OK;
    if (status == LS_OK && self->done)
        coordinator_clear_away(self);
    else if (!self->done)
        told = give_up(self, status);
    if (!self->hears_cancel)
        return told;
    self->hears_cancel = false;
    const int unheard = ls_task_on_cancel(task, NULL, self);
    return told != LS_OK ? told : unheard;
}

int coordinator_use(coordinator *self, ls_task *task)
{
    self->task = task;
    self->node = ls_task_node(task);
    self->runtime = ls_task_runtime(task);
    if (self->node == NULL)
        return ls_error(LS_EINVAL, "a coordinator needs a task with a node");
    int status = ls_mutex_init(&self->mutex, self->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&self->changed, self->runtime);
    if (status == LS_OK)
        status = coordinator_listen(self);
    if (status != LS_OK)
        return status;
    (void)ls_task_use(task, (struct ls_middleware){.name = "await",
                                                   .fn = await,
                                                   .self = self,
                                                   .finish = end_of_run});
    (void)ls_task_use(task, (struct ls_middleware){
                                .name = "decide", .fn = decide, .self = self});
    return ls_task_use(
        task, (struct ls_middleware){.name = "act", .fn = act, .self = self});
}

void coordinator_figures(coordinator *self, struct core_figures *out)
{
    ls_mutex_lock(&self->mutex);
    *out = self->figures;
    ls_mutex_unlock(&self->mutex);
}
