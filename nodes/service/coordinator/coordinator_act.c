/* What the machine wants, done: calls, the journal, the store, reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator_parts.h"
#include "lockstep/file.h"
#include "lockstep/log.h"

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
    int status = core_records(self->core, keep_record, &list);
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
    return core_recall(self->core, record->data, record->size);
}

int coordinator_journal_open(coordinator *self)
{
    if (self->journal_path == NULL)
        return LS_OK;
    const int status = ls_journal_open(
        &self->journal, &(struct ls_journal_options){.path = self->journal_path,
                                                     .fn = recall,
                                                     .self = self});
    return status == LS_OK ? compact(self) : status;
}

static int record(coordinator *self, const struct core_action *action)
{
    if (self->journal == NULL)
        return LS_OK;
    int status = ls_journal_append(
        self->journal, &(struct ls_journal_record){.data = action->data,
                                                   .size = action->size});
    struct ls_journal_stats stats;
    ls_journal_stats(self->journal, &stats);
    self->must_flush = self->must_flush || action->must_last;
    if (status == LS_OK && stats.records >= COMPACT_LEAST &&
        stats.records / COMPACT_FACTOR >= self->compacted)
        status = compact(self);
    return status == LS_OK ? LS_OK : ls_error_at(status, "the journal");
}

int coordinator_tell_ended(coordinator *self, uint64_t number,
                           const struct ls_call_result *result)
{
    const struct service_watch *watch = self->options.watch;
    if (watch != NULL)
        watch->call_ended(watch->self, number, result);
    return core_call_ended(self->core, ls_now(self->runtime), number, result);
}

static int not_begun(coordinator *self, uint64_t number)
{
    struct ls_call_result result = {.state = LS_CALL_START_FAILED};
    (void)snprintf(result.text, sizeof result.text, "%.*s", LS_CALL_TEXT_MAX,
                   ls_error_text());
    return coordinator_tell_ended(self, number, &result);
}

static int call(coordinator *self, const struct core_action *action)
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
            .ended = coordinator_call_ended,
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

static int snapshot(coordinator *self, const struct core_action *action)
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
    return core_snapshot_done(self->core, ls_now(self->runtime), action->name,
                              status);
}

static void drop(coordinator *self, const char *name)
{
    if (store_drop(self->options.store, name, 0) != LS_OK)
        ls_log_warn("coordinator: %s stays in the store: %s", name,
                    ls_error_text());
}

static void keep_name(service_name out, const char *name)
{
    (void)snprintf(out, sizeof(service_name), "%s", name);
}

void coordinator_clear_away(coordinator *self)
{
    if (self->evaluated[0] != '\0')
        drop(self, self->evaluated);
    if (self->policy[0] != '\0')
        drop(self, self->policy);
}

int coordinator_tell_end(coordinator *self, int status, const char *text,
                         double value)
{
    const char *evaluated, *learned;
    core_policies(self->core, &evaluated, &learned);
    const char *name = evaluated[0] != '\0' ? evaluated : learned;
    struct store_blob blob = {.data = NULL};
    struct coordinator_end end = {
        .status = status, .text = text, .eval_value = value};
    char why[LS_ERROR_TEXT_MAX] = "";
    self->done = true;
    if (name[0] != '\0')
        end.policy_status = get_policy(self, name, &blob);
    if (end.policy_status == LS_ENOENT && evaluated[0] == '\0')
        end.policy_status = LS_OK; /* it was asked for, and not yet made */
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

static int finish(coordinator *self, const struct core_action *action)
{
    const int status =
        coordinator_tell_end(self, action->status, action->text, action->value);
    if (action->status != LS_OK)
        return ls_error(action->status, "%s", action->text);
    if (status != LS_OK)
        return status;
    keep_name(self->evaluated, action->name);
    keep_name(self->policy, action->from);
    return finish_all(self);
}

static void report(coordinator *self, const struct core_action *action)
{
    const struct coordinator_options *options = &self->options;
    if (action->kind == CORE_EVALUATED && options->evaluated != NULL)
        options->evaluated(options->self, action->value, action->version);
    if (action->kind == CORE_INFO && options->info != NULL)
        options->info(options->self, action->info);
    if (action->kind == CORE_SAY)
        LS_LOG_AT((enum ls_log_level)action->level, "coordinator: %s",
                  action->text);
}

/* Records that stand in a row cost one flush. */
static int flush_before(coordinator *self, const struct core_action *action)
{
    if (!self->must_flush || action->kind == CORE_RECORD)
        return LS_OK;
    self->must_flush = false;
    const int status = ls_journal_flush(self->journal);
    return status == LS_OK ? LS_OK : ls_error_at(status, "the journal");
}

static int act(coordinator *self, const struct core_action *action)
{
    const struct service_watch *watch = self->options.watch;
    const int status = flush_before(self, action);
    if (status != LS_OK)
        return status;
    if (watch != NULL)
        watch->action(watch->self, action);
    switch (action->kind) {
    case CORE_CONNECT:
    case CORE_CALL:
        return call(self, action);
    case CORE_CANCEL:
        cancel(self, action->number);
        break;
    case CORE_RECORD:
        return record(self, action);
    case CORE_DROP:
        drop(self, action->name);
        break;
    case CORE_SNAPSHOT:
        return snapshot(self, action);
    case CORE_EVALUATED:
    case CORE_INFO:
    case CORE_SAY:
        report(self, action);
        break;
    case CORE_DONE:
        return finish(self, action);
    }
    return LS_OK;
}

int coordinator_act(coordinator *self)
{
    struct core_action action;
    int status = LS_OK;
    while (status == LS_OK && core_next(self->core, &action))
        status = act(self, &action);
    return status;
}
