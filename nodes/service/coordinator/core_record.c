/* What the journal is told, so that a later life can take over: the figures,
 * who has which work, and which data is in the store. The last record of a
 * thing counts. Data of the buffers is dropped by the next life, which begins
 * with empty ones. */
#include <string.h>

#include "core_entries.h"

/* Leaves the record in the writer. */
static void write_record(core *self, const char *name,
                         const struct ls_record *entry, const void *data)
{
    ls_writer *out = self->writer;
    ls_writer_clear(out);
    ls_write_map_begin(out);
    ls_write_string(out, "record");
    ls_write_string(out, name);
    ls_record_write_pairs(entry, data, NULL, out);
    ls_write_map_end(out);
}

static void write_work(core *self, const struct work *work)
{
    const bool held = work->member != NULL;
    struct work_entry entry = {.number = (int64_t)work->number,
                               .kind = work->kind,
                               .attempt = work->key.attempt,
                               .held = held,
                               .member = held ? work->member->id : 0,
                               .incarnation = held ? work->incarnation : 0,
                               .progress = work->progress,
                               .done = work->done,
                               .closing =
                                   work->doomed ? 1 + (int)work->end : 0};
    memcpy(entry.policy_id, work->policy_id, sizeof entry.policy_id);
    memcpy(entry.buffer_id, work->buffer_id, sizeof entry.buffer_id);
    write_record(self, "work", &core_work_entry, &entry);
}

static void write_figures(core *self)
{
    write_record(self, "figures", &core_figures_entry, self);
}

static void write_end(core *self)
{
    write_record(self, "end", &core_end_entry, self);
}

void core_count_attempt(core *self, const struct work *work)
{
    if (work->kind == WORK_LEARNER &&
        work->key.attempt > self->commander.learner_attempts)
        self->commander.learner_attempts = work->key.attempt;
}

static void append(core *self, bool must_last)
{
    struct core_action action = {.kind = CORE_RECORD, .must_last = must_last};
    if (ls_writer_bytes(self->writer, &action.data, &action.size) != LS_OK)
        core_no_memory(self);
    else
        core_act(self, &action);
}

void core_record_work(core *self, const struct work *work)
{
    core_count_attempt(self, work);
    write_work(self, work);
    append(self, true);
}

void core_record_end(core *self)
{
    write_end(self);
    append(self, true);
}

void core_record_over(core *self, const struct work *work)
{
    const int64_t number = (int64_t)work->number;
    write_record(self, "over", &core_over_entry, &number);
    append(self, true);
}

void core_record_figures(core *self)
{
    write_figures(self);
    append(self, true);
}

void core_record_data(core *self, const struct sample *sample)
{
    struct replay_datum *datum;
    if (replay_data_use(&self->data, sample->data_id, 0, &datum) != LS_OK) {
        core_no_memory(self);
        return;
    }
    if (datum->items > 1) { /* another part of the same */
        replay_data_unuse(&self->data, datum);
        return;
    }
    write_record(self, "data", &core_data_entry, sample->data_id);
    append(self, false);
}

void core_forget_data(core *self, const char *name)
{
    struct replay_datum *datum;
    if (replay_data_use(&self->data, name, 0, &datum) != LS_OK) {
        core_no_memory(self);
        return;
    }
    while (datum->items > 0)
        replay_data_unuse(&self->data, datum);
    char taken[SAFE_NAME_MAX + 1];
    while (replay_data_take(&self->data, taken))
        ;
}

void core_record_drop(core *self, const char *name)
{
    write_record(self, "drop", &core_data_entry, name);
    append(self, false);
}

void core_data_drop(core *self, const char *name)
{
    core_forget_data(self, name);
    core_drop(self, name); /* twice is better than never */
    core_record_drop(self, name);
}

bool core_data_is_used(core *self, const char *name)
{
    struct replay_datum *datum;
    if (replay_data_use(&self->data, name, 0, &datum) != LS_OK) {
        core_no_memory(self);
        return true;
    }
    const bool used = datum->items > 1;
    replay_data_unuse(&self->data, datum);
    char taken[SAFE_NAME_MAX + 1];
    while (replay_data_take(&self->data, taken))
        ;
    return used;
}

struct record_sink {
    ls_writer *writer; /* what it holds is handed on */
    int (*fn)(void *owner, const void *record, size_t size);
    void *owner;
};

static int hand_on(const struct record_sink *sink)
{
    const void *data;
    size_t size;
    const int status = ls_writer_bytes(sink->writer, &data, &size);
    return status == LS_OK ? sink->fn(sink->owner, data, size) : status;
}

int core_records(core *self,
                 int (*fn)(void *owner, const void *record, size_t size),
                 void *owner)
{
    const struct record_sink sink = {self->writer, fn, owner};
    write_figures(self);
    int status = hand_on(&sink);
    if (self->had_ended && status == LS_OK) {
        write_end(self);
        status = hand_on(&sink);
    }
    for (const struct work *w = self->works.first; w != NULL && status == LS_OK;
         w = w->next) {
        write_work(self, w);
        status = hand_on(&sink);
    }
    for (size_t i = 0; i < self->data.n_buckets; i++) {
        for (const struct replay_datum *d = self->data.buckets[i];
             d != NULL && status == LS_OK; d = d->next_in_bucket) {
            write_record(self, "data", &core_data_entry, d->id);
            status = hand_on(&sink);
        }
    }
    return status;
}
