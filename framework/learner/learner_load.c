/* From the queue to a loaded stack. A loader takes a stack first and a batch
 * then: one that held a batch while no stack is idle would keep it from a
 * learner that could drop it for a newer one. */
#include "learner_parts.h"

#include <assert.h>
#include <string.h>

void learner_move(struct stack *stack, enum stack_state from,
                  enum stack_state to)
{
    assert(stack->state == from);
    (void)from;
    stack->state = to;
}

void learner_drop_batch(ls_learner *learner, struct stack *stack)
{
    if (learner->ops.drop != NULL)
        learner->ops.drop(learner->options.self, &stack->batch);
    memset(&stack->batch, 0, sizeof stack->batch);
}

/* Errors: LS_ETIMEDOUT, LS_EAGAIN; LS_ECLOSED, also when a batch has come: it
 * is in the stack then, for ls_learner_stop() to discard. */
static int fetch(ls_learner *learner, struct stack *stack, int64_t deadline)
{
    struct queued queued;
    const int64_t from = ls_now(learner->runtime);
    const int status = ls_queue_get(learner->in, &queued, deadline);
    const int64_t waited = ls_now(learner->runtime) - from;
    if (status != LS_OK) {
        learner_note(learner, &learner->dequeue, waited);
        return status;
    }
    learner_move(stack, STACK_IDLE, STACK_LOADING);
    stack->batch = queued.batch;
    stack->dequeue_ns = waited;
    stack->passes_done = 0;
    ls_learner_info_clear(stack->info);
    return atomic_load(&learner->ending) ? LS_ECLOSED : LS_OK;
}

static int load_part(ls_learner *learner, struct stack *stack, size_t device)
{
    const struct ls_learner_place place = {
        .stack = stack->index,
        .device = device,
        .memory = stack->parts != NULL ? stack->parts[device] : NULL,
        .batch = &stack->batch};
    return learner->ops.load(learner->options.self, &place);
}

/* How long was trained, until now. Under the mutex. */
static int64_t trained_ns(const ls_learner *learner, int64_t now)
{
    return learner->grad.total_ns +
           (learner->training_since < now ? now - learner->training_since : 0);
}

/* A load, and the wait for its batch: at once, since loaders and learner meet
 * at this mutex. */
static void note_load(ls_learner *learner, const struct stack *stack,
                      int64_t load_ns, int64_t trained)
{
    ls_mutex_lock(&learner->mutex);
    learner_add(&learner->dequeue, stack->dequeue_ns);
    if (learner->ops.load != NULL) {
        const int64_t overlap =
            trained_ns(learner, ls_now(learner->runtime)) - trained;
        learner_add(&learner->load, load_ns);
        learner->overlap_ns += overlap < load_ns ? overlap : load_ns;
    }
    ls_mutex_unlock(&learner->mutex);
}

static int load(ls_learner *learner, struct stack *stack, atomic_bool *in_op)
{
    const size_t n = learner->options.n_devices;
    const int64_t from = ls_now(learner->runtime);
    int status = LS_OK;
    ls_mutex_lock(&learner->mutex);
    const int64_t trained = trained_ns(learner, from);
    ls_mutex_unlock(&learner->mutex);
    ls_error_clear();
    atomic_store(in_op, true);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        if (learner->ops.load != NULL)
            status = load_part(learner, stack, i);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        if (stack->parts != NULL)
            status = ls_device_stack_wait(stack->parts[i], LS_FOREVER);
    atomic_store(in_op, false);
    note_load(learner, stack, ls_now(learner->runtime) - from, trained);
    if (status == LS_OK)
        learner_move(stack, STACK_LOADING, STACK_READY);
    return status;
}

static int load_next(struct loader *loader)
{
    ls_learner *const learner = loader->learner;
    struct stack *stack;
    int status = ls_queue_get(learner->idle, &stack, LS_FOREVER);
    if (status == LS_OK)
        status = fetch(learner, stack, LS_FOREVER);
    if (status != LS_OK)
        return status;
    status = load(learner, stack, &loader->in_op);
    if (status != LS_OK) {
        learner_fail(learner, status, "loader %zu", loader->index);
        return status;
    }
    return ls_queue_put(learner->ready, &stack, LS_NOW); /* there is room */
}

void learner_loader_main(void *arg)
{
    while (load_next(arg) == LS_OK)
        ;
}

int learner_load_here(ls_learner *learner, struct stack **out, int64_t deadline)
{
    struct stack *stack;
    int status = ls_queue_get(learner->idle, &stack, LS_NOW);
    if (status != LS_OK) /* closed: the ring has a free slot, so one is idle */
        return LS_ECLOSED;
    status = fetch(learner, stack, deadline);
    if (status == LS_ETIMEDOUT || status == LS_EAGAIN)
        return ls_queue_put(learner->idle, &stack, LS_NOW) == LS_OK
                   ? status
                   : LS_ECLOSED;
    if (status != LS_OK)
        return status;
    status = load(learner, stack, &learner->in_op);
    if (status != LS_OK)
        learner_fail(learner, status, "load");
    else
        *out = stack;
    return status;
}
