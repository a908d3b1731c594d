/* How the threads of a learner begin, fail and end. Whatever waits in a learner
 * waits in a queue or for `changed`; so closing the queues ends all but an op
 * that does not return, and that is named. */
#include "learner_parts.h"

#include <stdarg.h>
#include <stdio.h>

int learner_spawn(ls_learner *learner)
{
    int status = ls_crew_create(&learner->crew, learner->runtime,
                                learner->options.n_devices, "compute",
                                learner_compute, learner);
    for (size_t i = 0; i < learner->options.loaders && status == LS_OK; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "load-%zu", i);
        struct loader *const loader = &learner->loaders[i];
        loader->learner = learner;
        loader->index = i;
        status = ls_thread_spawn(learner->runtime, &loader->thread, name,
                                 learner_loader_main, loader);
    }
    if (status == LS_OK)
        status = ls_thread_spawn(learner->runtime, &learner->thread, "learn",
                                 learner_main, learner);
    return status;
}

void learner_add(struct stage *stage, int64_t ns)
{
    ls_window_push(stage->recent, (double)ns);
    stage->total_ns += ns;
}

void learner_note(ls_learner *learner, struct stage *stage, int64_t ns)
{
    ls_mutex_lock(&learner->mutex);
    learner_add(stage, ns);
    ls_mutex_unlock(&learner->mutex);
}

static void close_all(ls_learner *learner)
{
    ls_queue_close(learner->in);
    ls_queue_close(learner->idle);
    ls_queue_close(learner->ready);
    results_close(learner->results);
    ls_mutex_lock(&learner->mutex);
    ls_cond_broadcast(&learner->changed);
    ls_mutex_unlock(&learner->mutex);
}

void learner_fail(ls_learner *learner, int status, const char *who, ...)
{
    char name[64];
    va_list arguments;
    va_start(arguments, who);
    (void)vsnprintf(name, sizeof name, who, arguments);
    va_end(arguments);
    if (ls_error_text()[0] == '\0')
        (void)ls_error_at(status, "%s", ls_status_sentence(status));
    (void)ls_error_at(status, "learner: %s", name);
    ls_mutex_lock(&learner->mutex);
    if (!atomic_exchange(&learner->ending, true))
        ls_failure_keep(&learner->failure, status);
    ls_mutex_unlock(&learner->mutex);
    close_all(learner);
}

int ls_learner_check(ls_learner *learner)
{
    ls_mutex_lock(&learner->mutex);
    const int status = ls_failure_return(&learner->failure);
    ls_mutex_unlock(&learner->mutex);
    return status;
}

int learner_say_ended(ls_learner *learner)
{
    const int status = ls_learner_check(learner);
    return status != LS_OK ? status
                           : ls_error(LS_ECLOSED, "learner: it is stopped");
}

/* Each that ends is joined, whatever the others do. */
static int join_all(ls_learner *learner, int64_t deadline)
{
    int status = ls_thread_join(&learner->thread, deadline);
    for (size_t i = 0; learner->loaders != NULL && i < learner->options.loaders;
         i++)
        if (ls_thread_join(&learner->loaders[i].thread, deadline) != LS_OK)
            status = LS_ETIMEDOUT;
    if (status != LS_OK || learner->crew == NULL)
        return status;
    ls_crew_dismiss(
        learner->crew); /* as the learner thread did, if there was */
    return ls_crew_join(learner->crew, deadline);
}

/* Which op it is that does not return. */
static int say_who_runs(ls_learner *learner)
{
    for (size_t i = 0; i < learner->options.loaders; i++)
        if (atomic_load(&learner->loaders[i].in_op))
            return ls_error(LS_ETIMEDOUT,
                            "learner: loader %zu does not end: its load does "
                            "not return",
                            i);
    const size_t device = ls_crew_busy(learner->crew);
    if (device != 0)
        return ls_error(LS_ETIMEDOUT,
                        "learner: the thread of device %zu does not end: its "
                        "compute does not return",
                        device);
    if (atomic_load(&learner->in_op))
        return ls_error(LS_ETIMEDOUT,
                        "learner: the learner thread does not end: the op "
                        "that it runs does not return");
    return ls_error(LS_ETIMEDOUT, "learner: its threads have not ended yet");
}

/* What is left of the batches, once no thread is. */
static void discard_batches(ls_learner *learner)
{
    uint64_t discarded = 0;
    struct queued queued;
    for (; ls_queue_get(learner->in, &queued, LS_NOW) == LS_OK; discarded++)
        if (learner->ops.drop != NULL)
            learner->ops.drop(learner->options.self, &queued.batch);
    for (size_t i = 0; i < learner->options.stacks; i++) {
        struct stack *const stack = &learner->stacks[i];
        if (stack->state == STACK_IDLE)
            continue;
        learner_drop_batch(learner, stack);
        learner_move(stack, stack->state, STACK_IDLE);
        discarded++;
    }
    ls_mutex_lock(&learner->mutex);
    learner->counts.discarded += discarded;
    ls_mutex_unlock(&learner->mutex);
}

int learner_stop_by(ls_learner *learner, int64_t deadline)
{
    ls_mutex_lock(&learner->mutex);
    atomic_store(&learner->ending, true);
    ls_mutex_unlock(&learner->mutex);
    close_all(learner);
    if (join_all(learner, deadline) != LS_OK)
        return say_who_runs(learner);
    discard_batches(learner);
    return LS_OK;
}

int ls_learner_stop(ls_learner *learner, int wait_ms)
{
    return learner_stop_by(learner, ls_deadline(learner->runtime, wait_ms));
}
