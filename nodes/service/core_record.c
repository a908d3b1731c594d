/* What the journal is told, so that a later life can take over: the figures,
 * who has which work, and which data is in the store. The last record of a
 * thing counts. Data of the buffers is dropped by the next life, which begins
 * with empty ones. */
#include <string.h>

#include "core_parts.h"

static void write_string(ls_writer *out, const char *key, const char *value)
{
    ls_write_string(out, key);
    ls_write_string(out, value);
}

static void write_int(ls_writer *out, const char *key, int64_t value)
{
    ls_write_string(out, key);
    ls_write_int(out, value);
}

static void begin(core *self, uint32_t n, const char *record)
{
    ls_writer_clear(self->writer);
    ls_write_map(self->writer, n);
    write_string(self->writer, "record", record);
}

static void write_work(core *self, const struct work *work)
{
    const bool held = work->member != NULL;
    begin(self, 12, "work");
    ls_writer *out = self->writer;
    write_int(out, "number", (int64_t)work->number);
    write_int(out, "kind", work->kind);
    write_int(out, "attempt", work->key.attempt);
    write_int(out, "held", held);
    write_int(out, "member", held ? work->member->id : 0);
    ls_write_string(out, "incarnation");
    ls_write_uint(out, held ? work->incarnation : 0);
    write_int(out, "progress", work->progress);
    write_int(out, "done", work->done);
    write_int(out, "closing", work->doomed ? 1 + (int)work->end : 0);
    write_string(out, "policy_id", work->policy_id);
    write_string(out, "buffer_id", work->buffer_id);
}

static void write_over(core *self, const struct work *work)
{
    begin(self, 2, "over");
    write_int(self->writer, "number", (int64_t)work->number);
}

static void write_data(core *self, const char *record, const char *name)
{
    begin(self, 2, record);
    write_string(self->writer, "data_id", name);
}

void core_count_attempt(core *self, const struct work *work)
{
    if (work->kind == WORK_LEARNER &&
        work->key.attempt > self->commander.learner_attempts)
        self->commander.learner_attempts = work->key.attempt;
}

int64_t *core_figure(core *self, size_t index, const char **name)
{
    struct commander *commander = &self->commander;
    struct core_figures *counted = &self->counted;
    const struct {
        const char *name;
        int64_t *value;
    } figures[] = {
        {"policy_version", &commander->policy_version},
        {"learner_step", &commander->learner_step},
        {"committed", &commander->committed},
        {"infos", &commander->infos},
        {"done_infos", &commander->done_infos},
        {"env_steps", &commander->env_steps},
        {"asked_version", &commander->asked_version},
        {"evaluations", &commander->evaluations},
        {"value_version", &commander->value_version},
        {"samples", &counted->samples},
        {"batches", &counted->batches},
        {"requeued", &counted->requeued},
        {"expired", &counted->expired},
        {"refused_starts", &counted->refused_starts},
        {"refused_data", &counted->refused_data},
        {"late_data", &counted->late_data},
        {"learner_attempts", &commander->learner_attempts},
    };
    if (index >= sizeof figures / sizeof figures[0])
        return NULL;
    *name = figures[index].name;
    return figures[index].value;
}

static void write_figures(core *self)
{
    const char *name;
    uint32_t n = 0;
    while (core_figure(self, n, &name) != NULL)
        n++;
    begin(self, n + 5, "figures");
    ls_writer *out = self->writer;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *value = core_figure(self, i, &name);
        write_int(out, name, *value);
    }
    write_int(out, "last_number", (int64_t)self->works.last_number);
    ls_write_string(out, "value");
    ls_write_double(out, self->commander.value);
    write_string(out, "policy_id", self->policy_id);
    write_string(out, "evaluated", self->evaluated);
}

static void write_end(core *self, const char *text)
{
    begin(self, 2, "end");
    write_string(self->writer, "text", text);
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
    write_end(self, self->stop_text);
    append(self, true);
}

void core_record_over(core *self, const struct work *work)
{
    write_over(self, work);
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
    write_data(self, "data", sample->data_id);
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
    write_data(self, "drop", name);
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
        write_end(self, self->stop_text);
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
            write_data(self, "data", d->id);
            status = hand_on(&sink);
        }
    }
    return status;
}
