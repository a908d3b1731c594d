/* An earlier life's journal, read: the works are as it left them, and who has
 * one is to tell whether that is still so. */
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

static struct kind_use *find_kind(const fsm *self, int64_t number)
{
    for (size_t i = 0; i < self->scheduler.n_uses; i++)
        if (self->scheduler.uses[i].kind->number == number)
            return &self->scheduler.uses[i];
    return NULL;
}

static int recall_member(fsm *self, struct work *work,
                         const struct work_entry *entry)
{
    works_return(work);
    if (entry->held == 0)
        return LS_OK;
    struct pool_member *member = pool_add(&self->pool, (uint32_t)entry->member);
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
    struct kind_use *use = find_kind(self, entry.kind);
    if (use == NULL)
        return ls_error(LS_EPROTO,
                        "a record: kind: there is none of number %lld",
                        (long long)entry.kind);
    struct work *work = find_number(self, entry.number);
    if (work == NULL)
        work = fsm_work_new(self, use, (uint64_t)entry.number, 0);
    if (work == NULL)
        return ls_error(LS_ENOMEM, "a work of the journal");
    if (work->use != use)
        return ls_error(LS_EPROTO, "a record: kind: not that of work %lld",
                        (long long)entry.number);
    work->key.attempt = entry.attempt;
    fsm_count_attempt(self, work);
    work->progress = entry.progress;
    memcpy(work->policy_id, entry.policy_id, sizeof work->policy_id);
    memcpy(work->buffer_id, entry.buffer_id, sizeof work->buffer_id);
    if (work->buffer != NULL)
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

static int recall_end(fsm *self, const ls_value *map)
{
    const int status = recall_own(self, &fsm_end_entry, map);
    self->end.recorded = self->end.recorded || status == LS_OK;
    return status;
}

/* What was in buffers counts only where it is kept, and their works go on. */
static struct replay *buffer_of(const fsm *self, int64_t number)
{
    const struct work *work = find_number(self, number);
    return work != NULL && self->options.keeps_samples ? work->buffer : NULL;
}

/* What it gives up lies there until the journal was read: fsm_needs(). */
static void forget_dropped(struct replay *buffer)
{
    char name[SAFE_NAME_MAX + 1];
    while (replay_take_dropped(buffer, name))
        continue;
}

static int recall_sample(fsm *self, const ls_value *map)
{
    struct sample_entry entry;
    int status = ls_record_read(&fsm_sample_entry, &entry, map);
    struct replay *buffer =
        status == LS_OK ? buffer_of(self, entry.work) : NULL;
    if (buffer == NULL)
        return status;
    const struct sample whole = entry.item.sample;
    sample_part(&whole, entry.part, &entry.item.sample);
    status = replay_recall_item(buffer, &entry.item, entry.is_new);
    forget_dropped(buffer);
    return status;
}

static int recall_items(fsm *self, const ls_value *map, bool weighed)
{
    const struct ls_record *record =
        weighed ? &fsm_weighed_entry : &fsm_drawn_entry;
    struct items_entry entry;
    const int status = ls_record_read(record, &entry, map);
    if (status != LS_OK)
        return status;
    struct replay *buffer = buffer_of(self, entry.work);
    for (size_t i = 0; i < entry.n && buffer != NULL; i++) {
        const struct item_entry *item = &entry.items[i];
        if (weighed)
            replay_recall_priority(buffer, item->slot, item->number,
                                   item->priority);
        else
            replay_recall_drawn(buffer, item->slot, item->number);
    }
    if (buffer != NULL)
        forget_dropped(buffer);
    ls_record_clear(record, &entry);
    return LS_OK;
}

static int recall_buffer(fsm *self, const ls_value *map)
{
    struct buffer_entry entry = {.work = 0};
    const int status = ls_record_read(&fsm_buffer_entry, &entry, map);
    struct replay *buffer =
        status == LS_OK ? buffer_of(self, entry.work) : NULL;
    if (buffer != NULL)
        replay_recall_account(buffer, &entry.account);
    return status;
}

static int recall_drawn(fsm *self, const ls_value *map)
{
    return recall_items(self, map, false);
}

static int recall_weighed(fsm *self, const ls_value *map)
{
    return recall_items(self, map, true);
}

static int recall_figures(fsm *self, const ls_value *map)
{
    const int status = recall_own(self, &fsm_figures_entry, map);
    struct work *owner = status == LS_OK ? fsm_buffer_owner(self) : NULL;
    if (owner == NULL || !self->options.keeps_samples)
        return status;
    replay_set_version(owner->buffer, self->scheduler.policy_version);
    forget_dropped(owner->buffer);
    return LS_OK;
}

static const struct {
    const char *name;
    int (*fn)(fsm *self, const ls_value *map);
} kinds[] = {
    {"figures", recall_figures}, {"work", recall_work},
    {"over", recall_over},       {"end", recall_end},
    {"buffer", recall_buffer},   {"sample", recall_sample},
    {"drawn", recall_drawn},     {"weighed", recall_weighed},
};

static int recall(fsm *self, const ls_value *map)
{
    const char *record;
    if (ls_value_string(ls_value_get(map, "record"), &record) != LS_OK)
        return ls_error(LS_EPROTO, "a record: record: expected a name");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(record, kinds[i].name) == 0)
            return kinds[i].fn(self, map);
    return ls_error(LS_EPROTO, "a record: record: there is no kind %.40s",
                    record);
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

void fsm_check_samples(fsm *self,
                       bool (*fn)(void *owner, const struct sample *sample),
                       void *owner)
{
    struct work *work = fsm_buffer_owner(self);
    struct replay_figures before, after;
    if (work == NULL || !self->options.keeps_samples)
        return;
    replay_figures(work->buffer, &before);
    replay_check(work->buffer, fn, owner);
    fsm_buffer_drain(self, work);
    replay_figures(work->buffer, &after);
    if (before.size > 0)
        fsm_say(self, after.size < before.size ? LS_LOG_WARN : LS_LOG_INFO,
                "%s: %zu samples of an earlier life are there, %zu are lost",
                work->buffer_id, after.size, before.size - after.size);
}

const char *fsm_learned(const fsm *self, int64_t *iterations)
{
    *iterations = self->scheduler.committed;
    return *iterations > 0 && !self->end.recorded ? self->policy_id : NULL;
}

bool fsm_needs(const fsm *self, const char *data_id)
{
    const struct work *owner = fsm_buffer_owner(self);
    return owner != NULL && replay_uses(owner->buffer, data_id);
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
    for (size_t i = 0; i < self->scheduler.n_uses; i++) {
        struct kind_use *use = &self->scheduler.uses[i];
        use->out = works_count(&self->works, use);
    }
    for (struct work *w = self->works.first; w != NULL; w = w->next) {
        w->queued_at = now;
        w->until = now + self->options.call_timeout;
    }
    const struct work *owner = fsm_buffer_owner(self);
    if (owner == NULL)
        fsm_unneeded(self, now);
    else
        replay_recalled(owner->buffer);
    if (self->end.recorded)
        fsm_end(self, now, LS_OK, self->end.text);
}
