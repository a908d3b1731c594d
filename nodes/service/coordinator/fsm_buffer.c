/* The replay buffer of a work: who has it, what it gives up, and what of it is
 * lent. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsm_state.h"

struct work *fsm_buffer_owner(const fsm *self)
{
    struct work *work = self->works.first;
    while (work != NULL && work->buffer == NULL)
        work = work->next;
    return work;
}

int fsm_buffer_open(fsm *self, struct work *work)
{
    (void)snprintf(work->buffer_id, sizeof work->buffer_id, "buffer_%" PRIu64,
                   work->number);
    work->lent =
        calloc((size_t)self->options.learner_batches, sizeof *work->lent);
    if (work->lent == NULL)
        return ls_error(LS_ENOMEM, "the batches of %s", work->key.task_id);
    work->n_lent = (size_t)self->options.learner_batches;
    for (size_t i = 0; i < work->n_lent; i++) {
        work->lent[i].drawn = calloc((size_t)self->options.batch_size,
                                     sizeof(struct drawn_sample));
        if (work->lent[i].drawn == NULL)
            return ls_error(LS_ENOMEM, "the batches of %s", work->key.task_id);
    }
    struct replay_options options = self->options.replay;
    options.name = work->buffer_id;
    options.seed = self->options.seed + work->number;
    options.max_batch = (size_t)self->options.batch_size;
    return replay_create(&work->buffer, &options);
}

void fsm_buffer_drain(fsm *self, struct work *work)
{
    char name[SAFE_NAME_MAX + 1];
    while (replay_take_dropped(work->buffer, name))
        fsm_data_unused(self, name);
}

void fsm_data_lost(fsm *self, uint32_t home)
{
    struct work *work = fsm_buffer_owner(self);
    if (work == NULL || self->options.data_stays)
        return;
    replay_lose(work->buffer, home);
    for (size_t i = 0; i < work->n_lent; i++)
        for (size_t k = 0; k < work->lent[i].n; k++)
            if (work->lent[i].drawn[k].sample.home == home)
                work->lent[i].robbed = true;
    fsm_buffer_drain(self, work);
}

void fsm_buffer_close(fsm *self, struct work *work)
{
    if (work->buffer == NULL)
        return;
    replay_figures(work->buffer, &self->counted.replay);
    replay_close(work->buffer);
    fsm_buffer_drain(self, work);
    replay_destroy(&work->buffer);
}

void fsm_batch_release(fsm *self, struct work *work, struct lent_batch *batch)
{
    if (work->buffer != NULL && batch->n > 0) {
        if (replay_release(work->buffer, batch->drawn, batch->n) != LS_OK)
            fsm_say(self, LS_LOG_ERROR, "%s: %s", work->buffer_id,
                    ls_error_text());
        fsm_buffer_drain(self, work);
    }
    batch->n = 0;
    batch->robbed = false;
}
