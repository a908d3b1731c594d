/* No sample is lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks_services.h"

static struct stored **find_stored(const checks *self, const char *data_id)
{
    struct service_checks *books = self->state;
    struct stored **at = &books->stored;
    while (*at != NULL && strcmp((*at)->data_id, data_id) != 0)
        at = &(*at)->previous;
    return at;
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
    made->previous = books->stored;
    books->stored = made;
}

void checks_note_batch(struct service_life *by, const struct checked_call *call)
{
    checks *all = by->life->all;
    all->figures.batches++;
    for (size_t i = 0; i < call->batch.n; i++) {
        const char *data_id = call->batch.items[i].sample.data_id;
        if (*find_stored(all, data_id) == NULL)
            checks_break(all, "lost",
                         "node %" PRIu32
                         " is to learn from sample %s, which is not there",
                         call->to, data_id);
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

/* Names of an earlier life, and of policies, are not in the books. */
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

void checks_finish_samples(struct service_life *by,
                           const struct fsm_figures *figures)
{
    const checks *all = by->life->all;
    const struct service_checks *books = all->state;
    for (const struct stored *at = books->stored; at != NULL;
         at = at->previous) {
        if (at->by == by)
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
