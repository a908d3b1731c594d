/* No sample is lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"

#include "checks_services.h"

static struct stored **find_stored(const checks *self, const char *data_id)
{
    struct service_checks *books = self->state;
    struct stored **at = &books->stored;
    while (*at != NULL && strcmp((*at)->data_id, data_id) != 0)
        at = &(*at)->previous;
    return at;
}

/* How often all parts of a piece of data together may be drawn. */
static uint64_t most_draws(const checks *self, const struct sample *sample)
{
    const struct replay_options *replay = &self->plan->service.fsm.replay;
    const uint64_t times = replay->max_times_sampled;
    return (times == 0 && replay->mode == REPLAY_FIFO ? 1 : times) *
           (uint64_t)sample->parts;
}

void checks_note_sample(struct service_life *by, const struct sample *sample)
{
    checks *all = by->life->all;
    struct service_checks *books = all->state;
    by->announced += (uint64_t)sample->parts;
    all->figures.samples += (uint64_t)sample->parts;
    if (*find_stored(all, sample->data_id) != NULL) {
        checks_break(all, "once", "sample %s comes twice", sample->data_id);
        return;
    }
    struct stored *made = checks_allocate(all, sizeof *made);
    if (made == NULL)
        return;
    (void)snprintf(made->data_id, sizeof made->data_id, "%s", sample->data_id);
    made->by = by;
    made->most = most_draws(all, sample);
    made->previous = books->stored;
    books->stored = made;
}

void checks_note_batch(struct service_life *by, const struct checked_call *call)
{
    checks *all = by->life->all;
    all->figures.batches++;
    for (size_t i = 0; i < call->batch.n; i++) {
        const char *data_id = call->batch.items[i].sample.data_id;
        struct stored *stored = *find_stored(all, data_id);
        if (stored == NULL)
            checks_break(all, "lost",
                         "node %" PRIu32
                         " is to learn from sample %s, which is not there",
                         call->to, data_id);
        else if (++stored->draws > stored->most && stored->most > 0)
            checks_break(all, "once",
                         "sample %s is drawn %" PRIu64
                         " times, and not %" PRIu64,
                         data_id, stored->draws, stored->most);
        else if (stored->by != by)
            all->figures.carried++;
    }
}

/* Who has yet to learn from it is robbed of it, unless the call is cancelled
 * with it. */
static void rob(const checks *self, const char *data_id)
{
    const struct service_checks *books = self->state;
    for (struct checked_call *call = books->calls; call != NULL;
         call = call->previous) {
        for (size_t i = 0; i < call->batch.n; i++) {
            if (strcmp(call->batch.items[i].sample.data_id, data_id) == 0)
                (void)snprintf(call->robbed, sizeof call->robbed, "%s",
                               data_id);
        }
    }
}

/* Where a buffer is not kept, names of an earlier life are not in the books;
 * nor are those of policies. */
void checks_note_drop(struct service_life *by, const char *data_id)
{
    struct stored **at;
    rob(by->life->all, data_id);
    while (*(at = find_stored(by->life->all, data_id)) != NULL) {
        struct stored *stored = *at;
        *at = stored->previous;
        free(stored);
    }
}

void checks_judge_batch(const struct checked_call *call,
                        enum ls_call_state state)
{
    if (call->robbed[0] != '\0' && !call->cancelled &&
        (state == LS_CALL_COMPLETED || state == LS_CALL_FAILED))
        checks_break(call->by->life->all, "lost",
                     "sample %s was dropped while node %" PRIu32 " had it",
                     call->robbed, call->to);
}

/* Of an earlier life of the coordinator, where a later one goes on with its
 * samples: it lies there, and nobody will ever drop it. What was not on the
 * disk yet when its maker lost its power does not. */
static bool is_left(const checks *self, const struct stored *stored)
{
    char path[LS_PATH_MAX + SAFE_NAME_MAX + 2];
    if (!self->plan->service.fsm.keeps_samples)
        return false;
    (void)snprintf(path, sizeof path, "%s/%s", self->plan->service.path_data,
                   stored->data_id);
    return ls_file_exists(path);
}

void checks_finish_samples(struct service_life *by,
                           const struct fsm_figures *figures)
{
    const checks *all = by->life->all;
    const struct service_checks *books = all->state;
    for (const struct stored *at = books->stored; at != NULL;
         at = at->previous) {
        if (at->by == by || is_left(all, at))
            checks_break(all, "lost",
                         "sample %s was never dropped from the store",
                         at->data_id);
    }
    if ((int64_t)by->announced >
        figures->samples + figures->refused_data + figures->late_data)
        checks_break(all, "lost",
                     "%" PRIu64 " samples came, %" PRId64
                     " were accepted, %" PRId64 " refused and %" PRId64
                     " too late",
                     by->announced, figures->samples, figures->refused_data,
                     figures->late_data);
}
