/* What the journal is told, so that a later life can take over: the figures,
 * and who has which work. The last record of a thing counts. */
#include <stdlib.h>
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
                               .kind = kind_of(work)->number,
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
    if (work->buffer != NULL &&
        work->key.attempt > self->scheduler.learner_attempts)
        self->scheduler.learner_attempts = work->key.attempt;
}

static void append(fsm *self)
{
    struct fsm_action action = {.kind = FSM_RECORD};
    if (ls_writer_bytes(self->writer, &action.data, &action.size) != LS_OK)
        fsm_no_memory(self);
    else
        fsm_act(self, &action);
}

void fsm_record_work(fsm *self, const struct work *work)
{
    fsm_count_attempt(self, work);
    write_work(self, work);
    append(self);
}

void fsm_record_end(fsm *self)
{
    write_end(self);
    append(self);
}

void fsm_record_over(fsm *self, const struct work *work)
{
    const int64_t number = (int64_t)work->number;
    write_record(self, "over", &fsm_over_entry, &number);
    append(self);
}

void fsm_record_figures(fsm *self)
{
    write_figures(self);
    append(self);
}

/* ---- the buffer of a work ---- */

static void write_item(fsm *self, const struct work *work,
                       const struct replay_item *item, bool is_new)
{
    struct sample_entry entry = {.work = (int64_t)work->number,
                                 .is_new = is_new,
                                 .part = item->sample.part,
                                 .item = *item};
    if (item->sample.split)
        entry.item.sample.unroll_len *= item->sample.parts;
    write_record(self, "sample", &fsm_sample_entry, &entry);
}

void fsm_record_sample(fsm *self, const struct work *work,
                       const struct sample *sample, uint64_t number)
{
    struct replay_item item;
    if (!self->options.keeps_samples)
        return;
    replay_newest(work->buffer, number, &item);
    if (item.slot < 0)
        item.sample = *sample;
    write_item(self, work, &item, true);
    append(self);
}

/* Its name is that of the buffer, _ and the number. */
static uint64_t number_of(const struct drawn_sample *drawn)
{
    return strtoull(strrchr(drawn->unique_id, '_') + 1, NULL, 10);
}

/* priorities: NULL: they were drawn. */
void fsm_record_items(fsm *self, const struct work *work,
                      const struct drawn_sample *drawn, size_t n,
                      const double *priorities)
{
    struct items_entry entry = {.work = (int64_t)work->number, .n = n};
    if (!self->options.keeps_samples || n == 0)
        return;
    entry.items = calloc(n, sizeof *entry.items);
    if (entry.items == NULL) {
        fsm_no_memory(self);
        return;
    }
    for (size_t i = 0; i < n; i++)
        entry.items[i] = (struct item_entry){
            .slot = drawn[i].slot,
            .number = number_of(&drawn[i]),
            .priority = priorities != NULL ? priorities[i] : 0.0};
    write_record(self, priorities != NULL ? "weighed" : "drawn",
                 priorities != NULL ? &fsm_weighed_entry : &fsm_drawn_entry,
                 &entry);
    append(self);
    free(entry.items);
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

struct item_sink {
    const struct record_sink *sink;
    fsm *fsm;
    const struct work *work;
};

static int hand_on_item(void *arg, const struct replay_item *item)
{
    const struct item_sink *to = arg;
    write_item(to->fsm, to->work, item, false);
    return hand_on(to->sink);
}

static int hand_on_buffer(fsm *self, const struct record_sink *sink,
                          const struct work *work)
{
    struct buffer_entry entry = {.work = (int64_t)work->number};
    struct item_sink items = {sink, self, work};
    if (!self->options.keeps_samples || work->buffer == NULL)
        return LS_OK;
    replay_account(work->buffer, &entry.account);
    write_record(self, "buffer", &fsm_buffer_entry, &entry);
    const int status = hand_on(sink);
    return status == LS_OK ? replay_each(work->buffer, hand_on_item, &items)
                           : status;
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
        if (status == LS_OK)
            status = hand_on_buffer(self, &sink, w);
    }
    return status;
}
