/* What fsm_world.h checks: of each event, of each piece of data that is
 * dropped, and at the end. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fsm_world.h"

void world_violate(struct world *world, const char *format, ...)
{
    if (world->violation[0] != '\0')
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(world->violation, sizeof world->violation, format, args);
    va_end(args);
}

static bool is_learned_from(struct world *world, const char *data_id)
{
    for (size_t i = 0; i < WORLD_CALLS; i++) {
        const struct world_call *call = &world->calls[i];
        struct learner_batch batch;
        if (call->number == 0 || call->answered ||
            strcmp(call->name, CALL_LEARNER_LEARN) != 0 ||
            !world_member_of(world, call->to)->alive ||
            learner_batch_read(&batch, call->data, call->size) != LS_OK)
            continue;
        bool found = false;
        for (size_t k = 0; k < batch.n; k++)
            found |= strcmp(batch.items[k].sample.data_id, data_id) == 0;
        learner_batch_fini(&batch);
        if (found)
            return true;
    }
    return false;
}

void world_drop(struct world *world, const char *name)
{
    for (size_t i = 0; i < world->n_samples; i++) {
        struct world_sample *sample = &world->samples[i];
        if (strcmp(sample->data_id, name) != 0)
            continue;
        if (sample->dropped++ > 0 && world->life == 1)
            world_violate(world, "%s is dropped twice", name);
        if (is_learned_from(world, name))
            world_violate(world, "%s is dropped, and learned from", name);
    }
}

/* How often a piece of data may be drawn; 0: as often as one likes. */
static uint64_t most_draws(const struct world *world)
{
    const struct replay_options *replay = &world->options.replay;
    const uint64_t times = replay->max_times_sampled > 0
                               ? replay->max_times_sampled
                           : replay->mode == REPLAY_FIFO ? 1
                                                         : 0;
    return times *
           (uint64_t)(world->options.split > 1 ? world->options.split : 1);
}

void world_drawn(struct world *world, const struct world_call *call)
{
    struct learner_batch batch;
    if (strcmp(call->name, CALL_LEARNER_LEARN) != 0 ||
        learner_batch_read(&batch, call->data, call->size) != LS_OK)
        return;
    for (size_t k = 0; k < batch.n; k++) {
        struct world_sample *sample = world->samples;
        const char *name = batch.items[k].sample.data_id;
        while (strcmp(sample->data_id, name) != 0)
            sample++;
        sample->draws++;
        if (most_draws(world) > 0 && sample->draws > most_draws(world))
            world_violate(world, "%s is drawn %llu times", name,
                          (unsigned long long)sample->draws);
        if (sample->dropped > 0)
            world_violate(world, "%s is dropped, and drawn", name);
    }
    learner_batch_fini(&batch);
}

void world_finish(struct world *world, const struct fsm_action *action)
{
    if (world->is_done)
        world_violate(world, "it is done twice");
    world->is_done = true;
    world->done_status = action->status;
    (void)snprintf(world->done_text, sizeof world->done_text, "%s",
                   action->text);
    (void)snprintf(world->done_name, sizeof world->done_name, "%s",
                   action->name);
    for (size_t i = 0; i < WORLD_CALLS; i++)
        if (world->calls[i].number != 0)
            world_violate(world, "it is done, and %s is open",
                          world->calls[i].name);
    for (size_t i = 0; i < world->n_members && world->clean; i++)
        if (world->members[i].alive && world->members[i].holds)
            world_violate(world, "it is done, and node %zu holds %s", i + 1,
                          world->members[i].key.task_id);
    const bool all = !world->lossy && world->life == 1;
    for (size_t i = 0; i < world->n_samples; i++)
        if (world->samples[i].dropped == 0 &&
            (world->samples[i].delivered || (all && world->samples[i].taken)))
            world_violate(world, "it is done, and %s is kept",
                          world->samples[i].data_id);
}

void world_check(struct world *world)
{
    for (size_t i = 0; i < world->n_members; i++)
        for (size_t k = 0; k < i; k++) {
            const struct world_member *a = &world->members[i];
            const struct world_member *b = &world->members[k];
            if (a->alive && b->alive && a->holds && b->holds &&
                strcmp(a->key.task_id, b->key.task_id) == 0)
                world_violate(world, "nodes %zu and %zu both have %s", i + 1,
                              k + 1, a->key.task_id);
        }
    struct fsm_figures figures;
    fsm_figures(world->fsm, &figures);
    const struct replay_figures *replay = &figures.replay;
    if (replay->inserted != replay->size + replay->evicted_stale +
                                replay->evicted_overflow +
                                replay->evicted_used + replay->evicted_lost)
        world_violate(world, "samples are lost in the buffer");
    if (world->life == 1 && figures.done_infos > 1)
        world_violate(world, "it is done %lld times",
                      (long long)figures.done_infos);
}
