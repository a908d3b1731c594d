#include "coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/event.h"
#include "lockstep/journal.h"
#include "lockstep/log.h"
#include "policy_value.h"

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
    fsm *fsm;                       /* own */
    ls_journal *journal;            /* own; NULL: none */
    uint64_t compacted;             /* records that it had afterwards */
    bool must_flush;                /* before the next action */
    struct coordinator_call *calls; /* own; open, or in the inbox */
    bool hears_members, hears_finish, hears_cancel;
    bool done;
    service_name evaluated, policy; /* in the store, when done; "": none */
    bool is_open;                   /* its watch was told */
    service_name *dropped;          /* own; names to be dropped, soon */
    size_t n_dropped, dropped_max;

    ls_mutex mutex; /* guards what follows */
    ls_cond changed;
    uint64_t changes;
    struct inbox inbox;
    struct fsm_figures figures;
};

/* ---- what happens, from the threads of the node to that of the task ----
 *
 * Callbacks come on threads of the node; they put what happened into the inbox
 * and wake the step, no more. An ended call is its own place in the inbox, and
 * members send few events, so the inbox is bounded by what was asked for. */

static void inbox_init(struct inbox *inbox)
{
    *inbox = (struct inbox){.status = LS_OK};
    inbox->last_member = &inbox->members;
    inbox->last_ended = &inbox->ended;
}

static void inbox_fini(struct inbox *inbox)
{
    while (inbox->members != NULL) {
        struct member_event *gone = inbox->members;
        inbox->members = gone->next;
        free(gone);
    }
    inbox_init(inbox);
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

static void on_call_ended(void *call, ls_call *ended)
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

static int listen_to_node(coordinator *self)
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

static void unlisten(coordinator *self)
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

/* Wait until something has happened, or the machine wants to know the time. */
static int await(ls_step *step, void *owner)
{
    coordinator *self = owner;
    (void)step;
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
    return wait_once(self, seen, fsm_wake_at(self->fsm, ls_now(self->runtime)));
}

/* Take what has happened. */
static void inbox_take(coordinator *self, struct inbox *out)
{
    ls_mutex_lock(&self->mutex);
    *out = self->inbox;
    inbox_init(&self->inbox);
    ls_mutex_unlock(&self->mutex);
}

/* ---- what the machine wants, done: calls, journal, store, reports ---- */

/* The journal is made anew when it has grown to so many times what it holds. */
enum { COMPACT_FACTOR = 4, COMPACT_LEAST = 16384 };

struct record_list {
    struct ls_journal_record *items; /* own, and their data */
    size_t n, capacity;
};

static int keep_record(void *list, const void *record, size_t size)
{
    struct record_list *self = list;
    if (self->n == self->capacity) {
        const size_t capacity = self->capacity == 0 ? 64 : 2 * self->capacity;
        struct ls_journal_record *items =
            realloc(self->items, capacity * sizeof *items);
        if (items == NULL)
            return ls_error(LS_ENOMEM, "the records of a journal");
        self->items = items;
        self->capacity = capacity;
    }
    void *kept = malloc(size);
    if (kept == NULL)
        return ls_error(LS_ENOMEM, "a record of a journal");
    memcpy(kept, record, size);
    self->items[self->n++] = (struct ls_journal_record){kept, size};
    return LS_OK;
}

static int compact(coordinator *self)
{
    struct record_list list = {.n = 0};
    int status = fsm_records(self->fsm, keep_record, &list);
    if (status == LS_OK)
        status = ls_journal_compact(self->journal, list.items, list.n);
    for (size_t i = 0; i < list.n; i++)
        free((void *)list.items[i].data);
    free(list.items);
    self->compacted = list.n;
    return status;
}

static int recall(void *owner, const struct ls_journal_record *record)
{
    coordinator *self = owner;
    return fsm_recall(self->fsm, record->data, record->size);
}

/* Whether the data of a sample of an earlier life is there, and whole. */
static bool is_whole(void *owner, const struct sample *sample)
{
    const coordinator *self = owner;
    const char *name = sample->data_id;
    struct store_blob blob = {.size = 0};
    int status = store_get(self->options.store, &name, 1, &blob, 0);
    const bool got = status == LS_OK;
    if (got && blob.size != (size_t)sample->size)
        status = ls_error(LS_EPROTO, "%s has %zu bytes, and not %lld", name,
                          blob.size, (long long)sample->size);
    if (got)
        store_blob_fini(&blob);
    if (status != LS_OK)
        ls_log_warn("coordinator: a sample is lost: %s", ls_error_text());
    return status == LS_OK;
}

/* Else the learner would begin anew, and replace what was learned. It is read
 * as a whole, since one that is damaged is no better. */
static int check_policy(coordinator *self)
{
    int64_t iterations;
    const char *const name = fsm_learned(self->fsm, &iterations);
    struct store_blob blob;
    if (name == NULL)
        return LS_OK;
    const int status = store_get(self->options.store, &name, 1, &blob, 0);
    if (status == LS_OK)
        store_blob_fini(&blob);
    return status != LS_ENOENT
               ? status
               : ls_error(LS_ENOENT,
                          "%s has no %s, of which %s says that %lld iterations "
                          "were committed: put it back, or begin anew with "
                          "--fresh",
                          self->options.policies, name, self->journal_path,
                          (long long)iterations);
}

static int open_journal(coordinator *self)
{
    if (self->journal_path == NULL)
        return LS_OK;
    int status = ls_journal_open(
        &self->journal, &(struct ls_journal_options){.path = self->journal_path,
                                                     .fn = recall,
                                                     .self = self});
    if (status == LS_OK)
        status = check_policy(self);
    if (status == LS_OK)
        fsm_check_samples(self->fsm, is_whole, self);
    return status == LS_OK ? compact(self) : status;
}

static int record(coordinator *self, const struct fsm_action *action)
{
    if (self->journal == NULL)
        return LS_OK;
    const int status = ls_journal_append(
        self->journal, &(struct ls_journal_record){.data = action->data,
                                                   .size = action->size});
    self->must_flush = true;
    return status == LS_OK ? LS_OK : ls_error_at(status, "the journal");
}

/* Only when nothing is left to be recorded. */
static int compact_if_grown(coordinator *self)
{
    struct ls_journal_stats stats;
    if (self->journal == NULL)
        return LS_OK;
    ls_journal_stats(self->journal, &stats);
    if (stats.records < COMPACT_LEAST ||
        stats.records / COMPACT_FACTOR < self->compacted)
        return LS_OK;
    const int status = compact(self);
    return status == LS_OK ? LS_OK : ls_error_at(status, "the journal");
}

/* Tell the machine, and the watch. */
static int tell_ended(coordinator *self, uint64_t number,
                      const struct ls_call_result *result)
{
    const struct service_watch *watch = self->options.watch;
    if (watch != NULL)
        watch->call_ended(watch->self, number, result);
    return fsm_call_ended(self->fsm, ls_now(self->runtime), number, result);
}

static int not_begun(coordinator *self, uint64_t number)
{
    struct ls_call_result result = {.state = LS_CALL_START_FAILED};
    (void)snprintf(result.text, sizeof result.text, "%.*s", LS_CALL_TEXT_MAX,
                   ls_error_text());
    return tell_ended(self, number, &result);
}

static int call(coordinator *self, const struct fsm_action *action)
{
    struct coordinator_call *open = calloc(1, sizeof *open);
    if (open == NULL)
        return ls_error(LS_ENOMEM, "call %s", action->name);
    *open = (struct coordinator_call){
        .next = self->calls, .owner = self, .number = action->number};
    const int status = ls_call_start(
        &open->call, self->options.calls,
        &(struct ls_call_options){
            .to = action->to,
            .channel = self->options.channel,
            .name = action->name,
            .data = action->data,
            .size = action->size,
            .timeout_ms =
                (int)((action->wait_ns + LS_NS_PER_MS - 1) / LS_NS_PER_MS),
            .ended = on_call_ended,
            .self = open});
    if (status != LS_OK) {
        free(open);
        return not_begun(self, action->number);
    }
    self->calls = open;
    return LS_OK;
}

static void cancel(coordinator *self, uint64_t number)
{
    for (struct coordinator_call *c = self->calls; c != NULL; c = c->next)
        if (c->number == number)
            ls_call_cancel(c->call);
}

static int get_policy(coordinator *self, const char *name,
                      struct store_blob *out)
{
    return store_get(self->options.store, &name, 1, out, 0);
}

static int snapshot(coordinator *self, const struct fsm_action *action)
{
    struct store_blob blob;
    int status = get_policy(self, action->from, &blob);
    if (status == LS_OK) {
        status = store_put(self->options.store,
                           &(struct store_put){.name = action->name,
                                               .data = blob.data,
                                               .size = blob.size,
                                               .keep = true});
        store_blob_fini(&blob);
    }
    if (status != LS_OK)
        ls_log_warn("coordinator: %s is not kept as %s: %s", action->from,
                    action->name, ls_error_text());
    return fsm_snapshot_done(self->fsm, ls_now(self->runtime), action->name,
                             status);
}

static void keep_name(service_name out, const char *name)
{
    (void)snprintf(out, sizeof(service_name), "%s", name);
}

/* Names of a turn go together: it is one call for each node that keeps some. */
static int drop(coordinator *self, const char *name)
{
    if (self->n_dropped == self->dropped_max) {
        const size_t most = self->dropped_max == 0 ? 64 : 2 * self->dropped_max;
        service_name *names = realloc(self->dropped, most * sizeof *names);
        if (names == NULL)
            return ls_error(LS_ENOMEM, "%zu names", most);
        self->dropped = names;
        self->dropped_max = most;
    }
    keep_name(self->dropped[self->n_dropped++], name);
    return LS_OK;
}

static void forget_dropped(coordinator *self)
{
    const char **names = calloc(self->n_dropped + 1, sizeof *names);
    for (size_t i = 0; i < self->n_dropped && names != NULL; i++)
        names[i] = self->dropped[i];
    if (names != NULL && self->n_dropped > 0)
        store_forget(self->options.store, names, self->n_dropped);
    self->n_dropped = 0;
    free((void *)names);
}

/* Nobody will go on with what is done: but only when its end has been told, for
 * otherwise a later life has to tell it. */
static void clear_away(coordinator *self)
{
    char training[2][SAFE_NAME_MAX + 1];
    const char *const names[] = {self->evaluated, self->policy, training[0],
                                 training[1]};
    for (int64_t i = 0; i < 2; i++)
        if (policy_training_name(training[i], self->policy, i) != LS_OK)
            training[i][0] = '\0';
    for (size_t i = 0; i < 4; i++)
        if (names[i][0] != '\0')
            store_forget(self->options.store, &names[i], 1);
}

/* Returns LS_OK without one: it was asked for, and not yet made. */
static int find_policy(coordinator *self, struct store_blob *blob)
{
    const char *best, *other;
    fsm_policies(self->fsm, &best, &other);
    int status = LS_ENOENT;
    if (best[0] != '\0')
        status = get_policy(self, best, blob);
    if (status != LS_OK && other[0] != '\0')
        return get_policy(self, other, blob);
    return status == LS_ENOENT ? LS_OK : status;
}

/* Tell `ended`, with the policy. Returns what that does. */
static int tell_end(coordinator *self, int status, const char *text,
                    double value)
{
    struct store_blob blob = {.data = NULL};
    struct coordinator_end end = {
        .status = status, .text = text, .eval_value = value};
    char why[LS_ERROR_TEXT_MAX] = "";
    self->done = true;
    end.policy_status = find_policy(self, &blob);
    if (blob.data != NULL) {
        end.policy = blob.data;
        end.policy_size = blob.size;
    } else if (end.policy_status != LS_OK) {
        (void)snprintf(why, sizeof why, "%s", ls_error_text());
    }
    end.policy_text = why;
    int told = LS_OK;
    if (self->options.ended != NULL)
        told = self->options.ended(self->options.self, &end);
    if (end.policy != NULL)
        store_blob_fini(&blob);
    return told;
}

/* Members count runs of their own: each is to end the one that it is in. */
static int finish_all(coordinator *self)
{
    const int status = ls_emit_with(
        self->node, &(struct ls_emission){.event = LS_FINISH_EVENT,
                                          .scope = LS_SCOPE_REMOTE,
                                          .delivery = LS_DELIVERY_RELIABLE});
    ls_task_finish_here(self->task);
    return status;
}

static int finish(coordinator *self, const struct fsm_action *action)
{
    const int status =
        tell_end(self, action->status, action->text, action->value);
    if (action->status != LS_OK)
        return ls_error(action->status, "%s", action->text);
    if (status != LS_OK)
        return status;
    keep_name(self->evaluated, action->name);
    keep_name(self->policy, action->from);
    return finish_all(self);
}

static void report(coordinator *self, const struct fsm_action *action)
{
    const struct coordinator_options *options = &self->options;
    if (action->kind == FSM_EVALUATED && options->evaluated != NULL)
        options->evaluated(options->self, action->value, action->version);
    if (action->kind == FSM_INFO && options->info != NULL)
        options->info(options->self, action->info);
    if (action->kind == FSM_SAY)
        LS_LOG_AT((enum ls_log_level)action->level, "coordinator: %s",
                  action->text);
}

/* Records that stand in a row cost one flush. */
static int flush_before(coordinator *self, const struct fsm_action *action)
{
    if (!self->must_flush || action->kind == FSM_RECORD)
        return LS_OK;
    self->must_flush = false;
    const int status = ls_journal_flush(self->journal);
    return status == LS_OK ? LS_OK : ls_error_at(status, "the journal");
}

static int do_action(coordinator *self, const struct fsm_action *action)
{
    const struct service_watch *watch = self->options.watch;
    const int status = flush_before(self, action);
    if (status != LS_OK)
        return status;
    if (watch != NULL)
        watch->action(watch->self, action);
    switch (action->kind) {
    case FSM_CONNECT:
    case FSM_CALL:
        return call(self, action);
    case FSM_CANCEL:
        cancel(self, action->number);
        break;
    case FSM_RECORD:
        return record(self, action);
    case FSM_DROP:
        return drop(self, action->name);
    case FSM_SNAPSHOT:
        return snapshot(self, action);
    case FSM_EVALUATED:
    case FSM_INFO:
    case FSM_SAY:
        report(self, action);
        break;
    case FSM_DONE:
        return finish(self, action);
    }
    return LS_OK;
}

/* What lies there of an earlier life, and nobody needs. */
static int drop_unneeded(void *owner, const char *name)
{
    coordinator *self = owner;
    uint32_t home;
    if (!store_data_home(name, &home) || fsm_needs(self->fsm, name))
        return LS_OK;
    return do_action(self,
                     &(struct fsm_action){.kind = FSM_DROP, .name = name});
}

static int tidy(coordinator *self)
{
    const struct coordinator_options *options = &self->options;
    if (!options->fsm.keeps_samples || options->each_data == NULL)
        return LS_OK;
    const int status = options->each_data(options->store, drop_unneeded, self);
    forget_dropped(self);
    return status;
}

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
    return fsm_create(&self->fsm, &self->options.fsm, self->options.kinds);
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
    inbox_init(&self->inbox);
    int status = init(self);
    if (status == LS_OK)
        status = open_journal(self);
    if (status == LS_OK) {
        fsm_figures(self->fsm, &self->figures);
        if (options->watch != NULL)
            options->watch->opened(options->watch->self);
        self->is_open = true;
        status = tidy(self);
    }
    if (status == LS_OK)
        *out = self;
    else
        coordinator_destroy(&self);
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
    unlisten(self);
    if (self->is_open && self->options.watch != NULL) {
        fsm_figures(self->fsm, &self->figures);
        self->options.watch->closed(self->options.watch->self, &self->figures);
    }
    while (self->calls != NULL)
        free_call(self, self->calls);
    inbox_fini(&self->inbox);
    ls_journal_close(&self->journal);
    fsm_destroy(&self->fsm);
    free(self->journal_path);
    free(self->dropped);
    ls_cond_fini(&self->changed);
    ls_mutex_fini(&self->mutex);
    free(self);
}

/* ---- the steps ---- */

static int decide_on_member(coordinator *self, const struct ls_member *member,
                            int64_t now)
{
    const struct service_watch *watch = self->options.watch;
    const bool ready = member->state == LS_MEMBER_READY;
    if (watch != NULL)
        watch->member(watch->self, member->id, member->incarnation, ready);
    return fsm_member(self->fsm, now, member);
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
            status = tell_ended(self, c->number, ls_call_result(c->call));
        free_call(self, c);
    }
    if (status == LS_OK && inbox->stop)
        status = fsm_stop(self->fsm, now, inbox->stop_status, inbox->stop_text);
    return status == LS_OK ? fsm_time(self->fsm, now) : status;
}

static int decide(ls_step *step, void *owner)
{
    coordinator *self = owner;
    struct inbox inbox;
    (void)step;
    inbox_take(self, &inbox);
    const int status = decide_on(self, &inbox);
    inbox_fini(&inbox);
    return status;
}

static int act(ls_step *step, void *owner)
{
    coordinator *self = owner;
    struct fsm_action action;
    int status = LS_OK;
    (void)step;
    while (status == LS_OK && fsm_next(self->fsm, &action))
        status = do_action(self, &action);
    if (status == LS_OK)
        status = compact_if_grown(self);
    forget_dropped(self);
    ls_mutex_lock(&self->mutex);
    fsm_figures(self->fsm, &self->figures);
    ls_mutex_unlock(&self->mutex);
    return status;
}

/* The run has failed, or was ended from outside: there is no time to close the
 * works, and they may be taken over. */
static int give_up(coordinator *self, int status)
{
    char text[LS_ERROR_TEXT_MAX];
    struct fsm_figures figures;
    (void)snprintf(text, sizeof text, "%s", ls_error_text());
    fsm_figures(self->fsm, &figures);
    const int told = tell_end(self, status, text, figures.eval_value);
    return told == LS_OK ? LS_OK : ls_error_at(told, "%s", text);
}

static int end_of_run(void *owner, ls_task *task, int status)
{
    coordinator *self = owner;
    int told = LS_OK;
    if (status == LS_OK && self->done)
        clear_away(self);
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
        status = listen_to_node(self);
    if (status != LS_OK)
        return status;
    (void)ls_task_use(task,
                      (struct ls_middleware){.name = COORDINATOR_IDLE_STEP,
                                             .fn = await,
                                             .self = self,
                                             .finish = end_of_run});
    (void)ls_task_use(task, (struct ls_middleware){
                                .name = "decide", .fn = decide, .self = self});
    return ls_task_use(
        task, (struct ls_middleware){.name = "act", .fn = act, .self = self});
}

void coordinator_figures(coordinator *self, struct fsm_figures *out)
{
    ls_mutex_lock(&self->mutex);
    *out = self->figures;
    ls_mutex_unlock(&self->mutex);
}
