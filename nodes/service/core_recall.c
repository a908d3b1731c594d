/* An earlier life's journal, read: the works are as it left them, and who has
 * one is to tell whether that is still so. */
#include <stdio.h>
#include <string.h>

#include "core_parts.h"
#include "coverage.h"

static int read_number(const ls_value *map, const char *key, int64_t least,
                       int64_t most, int64_t *out)
{
    const int status = ls_value_int(ls_value_get(map, key), out);
    if (status != LS_OK)
        return ls_error(LS_EPROTO, "a record: %s: expected a number", key);
    if (*out < least || *out > most)
        return ls_error(LS_EPROTO, "a record: %s: expected %lld to %lld", key,
                        (long long)least, (long long)most);
    return LS_OK;
}

/* "" is a name of what is not there. */
static int read_name(const ls_value *map, const char *key, service_name out)
{
    const char *text;
    if (ls_value_string(ls_value_get(map, key), &text) != LS_OK ||
        (text[0] != '\0' && !safe_name_is(text)))
        return ls_error(LS_EPROTO, "a record: %s: expected a name", key);
    memcpy(out, text, strlen(text) + 1);
    return LS_OK;
}

static int recall_figures(core *self, const ls_value *map)
{
    const char *name;
    int64_t *figure;
    for (size_t i = 0; (figure = core_figure(self, i, &name)) != NULL; i++)
        if (read_number(map, name, -1, SERVICE_COUNT_MAX, figure) != LS_OK)
            return LS_EPROTO;
    int64_t last;
    if (read_number(map, "last_number", 0, SERVICE_COUNT_MAX, &last) != LS_OK ||
        read_name(map, "policy_id", self->policy_id) != LS_OK ||
        read_name(map, "evaluated", self->evaluated) != LS_OK)
        return LS_EPROTO;
    self->works.last_number = (uint64_t)last;
    if (ls_value_double(ls_value_get(map, "value"), &self->commander.value) !=
        LS_OK)
        return ls_error(LS_EPROTO, "a record: value: expected a number");
    return LS_OK;
}

static struct work *find_number(const core *self, int64_t number)
{
    struct work *work = self->works.first;
    while (work != NULL && (int64_t)work->number != number)
        work = work->next;
    return work;
}

static int recall_member(core *self, struct work *work, const ls_value *map)
{
    int64_t held, id;
    uint64_t incarnation;
    if (read_number(map, "held", 0, 1, &held) != LS_OK ||
        read_number(map, "member", 0, UINT32_MAX, &id) != LS_OK)
        return LS_EPROTO;
    if (ls_value_uint(ls_value_get(map, "incarnation"), &incarnation) != LS_OK)
        return ls_error(LS_EPROTO, "a record: incarnation: expected a number");
    works_return(work);
    if (held == 0)
        return LS_OK;
    struct pool_member *member =
        pool_add(&self->pool, (uint32_t)id, work_role(work->kind));
    if (member == NULL)
        return ls_error(LS_ENOMEM, "node %u", (unsigned)id);
    /* A member has one work: the one that it was given last. */
    struct work *before = works_of(&self->works, member);
    if (before != NULL)
        works_return(before);
    member->incarnation = work->incarnation = incarnation;
    work->member = member;
    ls_take(LS_TAKES_WORK_RECALLED);
    work->state = WORK_AWAITED;
    return LS_OK;
}

static int recall_work(core *self, const ls_value *map)
{
    int64_t number, kind, attempt, progress, done, closing;
    if (read_number(map, "number", 1, SERVICE_COUNT_MAX, &number) != LS_OK ||
        read_number(map, "kind", 0, WORK_KINDS - 1, &kind) != LS_OK ||
        read_number(map, "attempt", 1, SERVICE_COUNT_MAX, &attempt) != LS_OK ||
        read_number(map, "progress", 0, SERVICE_COUNT_MAX, &progress) !=
            LS_OK ||
        read_number(map, "done", 0, 1, &done) != LS_OK ||
        read_number(map, "closing", 0, 1 + WORK_GIVEN_UP, &closing) != LS_OK)
        return LS_EPROTO;
    struct work *work = find_number(self, number);
    if (work == NULL)
        work = core_work_new(self, (enum work_kind)kind, (uint64_t)number, 0);
    if (work == NULL)
        return ls_error(LS_ENOMEM, "a work of the journal");
    if (work->kind != (enum work_kind)kind)
        return ls_error(LS_EPROTO, "a record: kind: not that of work %lld",
                        (long long)number);
    work->key.attempt = attempt;
    core_count_attempt(self, work);
    work->progress = progress;
    if (read_name(map, "policy_id", work->policy_id) != LS_OK ||
        read_name(map, "buffer_id", work->buffer_id) != LS_OK)
        return LS_EPROTO;
    if (work->kind == WORK_LEARNER)
        memcpy(self->policy_id, work->policy_id, sizeof self->policy_id);
    const int status = recall_member(self, work, map);
    work->done = done != 0;
    work->doomed = closing > 0 && work->state == WORK_AWAITED;
    if (closing > 0)
        work->end = (enum work_end)(closing - 1);
    return status;
}

static int recall_data(core *self, const ls_value *map, bool is_there)
{
    service_name name;
    struct replay_datum *datum;
    if (read_name(map, "data_id", name) != LS_OK || name[0] == '\0')
        return ls_error(LS_EPROTO, "a record: data_id: expected a name");
    if (!is_there) {
        core_forget_data(self, name);
        return self->status;
    }
    const int status = replay_data_use(&self->data, name, 0, &datum);
    if (status == LS_OK && datum->items > 1)
        replay_data_unuse(&self->data, datum);
    return status;
}

static int recall_end(core *self, const ls_value *map)
{
    const char *text;
    if (ls_value_string(ls_value_get(map, "text"), &text) != LS_OK)
        return ls_error(LS_EPROTO, "a record: text: expected a text");
    (void)snprintf(self->stop_text, sizeof self->stop_text, "%s", text);
    self->had_ended = true;
    return LS_OK;
}

static int recall(core *self, const ls_value *map)
{
    const char *record;
    if (ls_value_string(ls_value_get(map, "record"), &record) != LS_OK)
        return ls_error(LS_EPROTO, "a record: record: expected a name");
    if (strcmp(record, "figures") == 0)
        return recall_figures(self, map);
    if (strcmp(record, "work") == 0)
        return recall_work(self, map);
    if (strcmp(record, "data") == 0 || strcmp(record, "drop") == 0)
        return recall_data(self, map, record[1] == 'a');
    if (strcmp(record, "end") == 0)
        return recall_end(self, map);
    int64_t number;
    if (strcmp(record, "over") != 0)
        return ls_error(LS_EPROTO, "a record: record: %.40s is none", record);
    const int status =
        read_number(map, "number", 1, SERVICE_COUNT_MAX, &number);
    struct work *work = status == LS_OK ? find_number(self, number) : NULL;
    if (work != NULL)
        works_remove(&self->works, &work);
    return status;
}

int core_recall(core *self, const void *record, size_t size)
{
    ls_document *document;
    int status = ls_document_read(&document, record, size, NULL);
    if (status != LS_OK)
        return ls_error_at(status, "a record");
    status = recall(self, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

/* The buffers are empty now, so nobody will ask for what was in them. */
static void drop_data(core *self)
{
    char name[SAFE_NAME_MAX + 1];
    replay_data_release_all(&self->data);
    while (replay_data_take(&self->data, name)) {
        core_drop(self, name);
        core_record_drop(self, name);
    }
}

/* Whoever watches this life has not heard of it: it may end the job. */
static void tell_value(core *self)
{
    if (self->evaluated[0] != '\0')
        core_act(self, &(struct core_action){
                           .kind = CORE_EVALUATED,
                           .name = self->evaluated,
                           .value = self->commander.value,
                           .version = self->commander.value_version});
}

void core_begin(core *self, int64_t now)
{
    const int64_t max_time = self->options.max_time;
    self->ends_at = max_time > 0 ? now + max_time : LS_FOREVER;
    drop_data(self);
    tell_value(self);
    for (size_t kind = 0; kind < WORK_KINDS; kind++)
        self->commander.out[kind] =
            works_count(&self->works, (enum work_kind)kind);
    for (struct work *w = self->works.first; w != NULL; w = w->next) {
        w->queued_at = now;
        w->until = now + self->options.call_timeout;
    }
    if (core_learner(self) == NULL)
        core_close_collectors(self, now);
    if (self->had_ended)
        core_end(self, now, LS_OK, self->stop_text);
}
