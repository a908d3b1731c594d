/* What the journal is told, so that a later life can take over: the figures,
 * who has which work, and which data is in the store. The last record of a
 * thing counts. Data of the buffers is dropped by the next life, which begins
 * with empty ones. */
#include <string.h>

#include "fsm_entries.h"

/* Leaves the record in the writer. */
static void write_record(fsm *self, const char *name,
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

static void write_work(fsm *self, const struct work *work)
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
    write_record(self, "work", &fsm_work_entry, &entry);
}

static void write_figures(fsm *self)
{
    write_record(self, "figures", &fsm_figures_entry, self);
}

static void write_end(fsm *self)
{
    write_record(self, "end", &fsm_end_entry, self);
}

void fsm_count_attempt(fsm *self, const struct work *work)
{
    if (work->kind == WORK_LEARNER &&
        work->key.attempt > self->scheduler.learner_attempts)
        self->scheduler.learner_attempts = work->key.attempt;
}

static void append(fsm *self, bool must_last)
{
    struct fsm_action action = {.kind = FSM_RECORD, .must_last = must_last};
    if (ls_writer_bytes(self->writer, &action.data, &action.size) != LS_OK)
        fsm_no_memory(self);
    else
        fsm_act(self, &action);
}

void fsm_record_work(fsm *self, const struct work *work)
{
    fsm_count_attempt(self, work);
    write_work(self, work);
    append(self, true);
}

void fsm_record_end(fsm *self)
{
    write_end(self);
    append(self, true);
}

void fsm_record_over(fsm *self, const struct work *work)
{
    const int64_t number = (int64_t)work->number;
    write_record(self, "over", &fsm_over_entry, &number);
    append(self, true);
}

void fsm_record_figures(fsm *self)
{
    write_figures(self);
    append(self, true);
}

void fsm_record_data(fsm *self, const struct sample *sample)
{
    struct replay_datum *datum;
    if (replay_data_use(&self->data, sample->data_id, 0, &datum) != LS_OK) {
        fsm_no_memory(self);
        return;
    }
    if (datum->items > 1) { /* another part of the same */
        replay_data_unuse(&self->data, datum);
        return;
    }
    write_record(self, "data", &fsm_data_entry, sample->data_id);
    append(self, false);
}

void fsm_forget_data(fsm *self, const char *name)
{
    struct replay_datum *datum;
    if (replay_data_use(&self->data, name, 0, &datum) != LS_OK) {
        fsm_no_memory(self);
        return;
    }
    while (datum->items > 0)
        replay_data_unuse(&self->data, datum);
    char taken[SAFE_NAME_MAX + 1];
    while (replay_data_take(&self->data, taken))
        ;
}

void fsm_record_drop(fsm *self, const char *name)
{
    write_record(self, "drop", &fsm_data_entry, name);
    append(self, false);
}

void fsm_data_drop(fsm *self, const char *name)
{
    fsm_forget_data(self, name);
    fsm_drop(self, name); /* twice is better than never */
    fsm_record_drop(self, name);
}

bool fsm_data_is_used(fsm *self, const char *name)
{
    struct replay_datum *datum;
    if (replay_data_use(&self->data, name, 0, &datum) != LS_OK) {
        fsm_no_memory(self);
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

int fsm_records(fsm *self,
                int (*fn)(void *owner, const void *record, size_t size),
                void *owner)
{
    const struct record_sink sink = {self->writer, fn, owner};
    write_figures(self);
    int status = hand_on(&sink);
    if (self->end.recorded && status == LS_OK) {
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
            write_record(self, "data", &fsm_data_entry, d->id);
            status = hand_on(&sink);
        }
    }
    return status;
}
