/* An earlier life's journal, read: the works are as it left them, and who has
 * one is to tell whether that is still so. */
#include <stdio.h>
#include <string.h>

#include "coverage.h"
#include "fsm_entries.h"

static struct work *find_number(const fsm *self, int64_t number)
{
    struct work *work = self->works.first;
    while (work != NULL && (int64_t)work->number != number)
        work = work->next;
    return work;
}

static int recall_member(fsm *self, struct work *work,
                         const struct work_entry *entry)
{
    works_return(work);
    if (entry->held == 0)
        return LS_OK;
    struct pool_member *member =
        pool_add(&self->pool, (uint32_t)entry->member, work_role(work->kind));
    if (member == NULL)
        return ls_error(LS_ENOMEM, "node %u", (unsigned)entry->member);
    /* A member has one work: the one that it was given last. */
    struct work *before = works_of(&self->works, member);
    if (before != NULL)
        works_return(before);
    member->incarnation = work->incarnation = entry->incarnation;
    work->member = member;
    ls_take(LS_TAKES_WORK_RECALLED);
    work->state = WORK_AWAITED;
    return LS_OK;
}

static int recall_work(fsm *self, const ls_value *map)
{
    struct work_entry entry;
    int status = ls_record_read(&fsm_work_entry, &entry, map);
    if (status != LS_OK)
        return status;
    const enum work_kind kind = (enum work_kind)entry.kind;
    struct work *work = find_number(self, entry.number);
    if (work == NULL)
        work = fsm_work_new(self, kind, (uint64_t)entry.number, 0);
    if (work == NULL)
        return ls_error(LS_ENOMEM, "a work of the journal");
    if (work->kind != kind)
        return ls_error(LS_EPROTO, "a record: kind: not that of work %lld",
                        (long long)entry.number);
    work->key.attempt = entry.attempt;
    fsm_count_attempt(self, work);
    work->progress = entry.progress;
    memcpy(work->policy_id, entry.policy_id, sizeof work->policy_id);
    memcpy(work->buffer_id, entry.buffer_id, sizeof work->buffer_id);
    if (work->kind == WORK_LEARNER)
        memcpy(self->policy_id, work->policy_id, sizeof self->policy_id);
    status = recall_member(self, work, &entry);
    work->done = entry.done != 0;
    work->doomed = entry.closing > 0 && work->state == WORK_AWAITED;
    if (entry.closing > 0)
        work->end = (enum work_end)(entry.closing - 1);
    return status;
}

static int recall_over(fsm *self, const ls_value *map)
{
    int64_t number;
    const int status = ls_record_read(&fsm_over_entry, &number, map);
    struct work *work = status == LS_OK ? find_number(self, number) : NULL;
    if (work != NULL)
        works_remove(&self->works, &work);
    return status;
}

static int recall_own(fsm *self, const struct ls_record *entry,
                      const ls_value *map)
{
    const int status = ls_record_read_into(entry, self, map);
    return status == LS_OK ? LS_OK : ls_error_at(status, "%s", entry->name);
}

static int recall(fsm *self, const ls_value *map)
{
    const char *record;
    if (ls_value_string(ls_value_get(map, "record"), &record) != LS_OK)
        return ls_error(LS_EPROTO, "a record: record: expected a name");
    if (strcmp(record, "figures") == 0)
        return recall_own(self, &fsm_figures_entry, map);
    if (strcmp(record, "work") == 0)
        return recall_work(self, map);
    if (strcmp(record, "over") == 0)
        return recall_over(self, map);
    if (strcmp(record, "end") != 0)
        return ls_error(LS_EPROTO, "a record: record: there is no kind %.40s",
                        record);
    const int status = recall_own(self, &fsm_end_entry, map);
    self->end.recorded = self->end.recorded || status == LS_OK;
    return status;
}

int fsm_recall(fsm *self, const void *record, size_t size)
{
    ls_document *document;
    int status = ls_document_read(&document, record, size, NULL);
    if (status != LS_OK)
        return ls_error_at(status, "a record");
    status = recall(self, ls_document_root(document));
    ls_document_destroy(&document);
    return status;
}

/* Whoever watches this life has not heard of it: it may end the job. */
static void tell_value(fsm *self)
{
    if (self->evaluated[0] != '\0')
        fsm_act(self,
                &(struct fsm_action){.kind = FSM_EVALUATED,
                                     .name = self->evaluated,
                                     .value = self->scheduler.value,
                                     .version = self->scheduler.value_version});
}

void fsm_begin(fsm *self, int64_t now)
{
    const int64_t max_time = self->options.max_time;
    self->end.at = max_time > 0 ? now + max_time : LS_FOREVER;
    tell_value(self);
    for (size_t kind = 0; kind < WORK_KINDS; kind++)
        self->scheduler.out[kind] =
            works_count(&self->works, (enum work_kind)kind);
    for (struct work *w = self->works.first; w != NULL; w = w->next) {
        w->queued_at = now;
        w->until = now + self->options.call_timeout;
    }
    if (fsm_learner(self) == NULL)
        fsm_close_collectors(self, now);
    if (self->end.recorded)
        fsm_end(self, now, LS_OK, self->end.text);
}
