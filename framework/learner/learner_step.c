/* The learner thread: whose turn it is, and one pass. */
#include "learner_parts.h"

/* ---- whose turn it is -------------------------------------------------- */

static int64_t deadline_of_wait(ls_learner *learner)
{
    const struct ls_learner_options *const options = &learner->options;
    if (ls_minibatch_ring_held(learner->ring) == 0)
        return ls_deadline(learner->runtime, options->ready_timeout_ms);
    return options->held_timeout_ms < 0
               ? LS_NOW
               : ls_deadline(learner->runtime, options->held_timeout_ms);
}

/* Errors: LS_ETIMEDOUT, LS_EAGAIN there is none; LS_ECLOSED; a load's, noted
 * already. */
static int next_loaded(ls_learner *learner, struct stack **out)
{
    const int64_t deadline = deadline_of_wait(learner);
    if (learner->options.loaders == 0)
        return learner_load_here(learner, out, deadline);
    const int64_t from = ls_now(learner->runtime);
    const int status = ls_queue_get(learner->ready, out, deadline);
    learner_note(learner, &learner->load_wait, ls_now(learner->runtime) - from);
    return status;
}

/* Errors: LS_EAGAIN nothing is loaded; LS_ECLOSED, also when something is: it
 * is left for ls_learner_stop() to discard; a load's. */
static int next_turn(ls_learner *learner, struct ls_minibatch_turn *turn)
{
    struct stack *stack = NULL;
    if (ls_minibatch_ring_wants_item(learner->ring)) {
        const int status = next_loaded(learner, &stack);
        if (status == LS_OK)
            learner_move(stack, STACK_READY, STACK_TRAINING);
        else if (status != LS_ETIMEDOUT && status != LS_EAGAIN)
            return status;
    } else if (learner->options.loaders > 0) {
        learner_note(learner, &learner->load_wait, 0);
    }
    if (atomic_load(&learner->ending))
        return LS_ECLOSED;
    return ls_minibatch_ring_next(learner->ring, stack, turn);
}

/* ---- one pass ---------------------------------------------------------- */

static int compute(ls_learner *learner, size_t device)
{
    struct stack *const stack = learner->training;
    struct computed *const computed = &learner->devices[device];
    const struct ls_learner_place place = {
        .stack = stack->index,
        .device = device,
        .memory = stack->parts != NULL ? stack->parts[device] : NULL,
        .batch = &stack->batch};
    ls_error_clear();
    if (learner->options.devices != NULL && !computed->bound) {
        const int status =
            ls_device_bind_thread(learner->options.devices[device]);
        if (status != LS_OK)
            return status;
        computed->bound = true;
    }
    ls_learner_info_clear(computed->info);
    return learner->ops.compute(learner->options.self, &place,
                                stack->passes_done, computed->info);
}

void learner_compute(void *arg, size_t device)
{
    ls_learner *const learner = arg;
    struct computed *const computed = &learner->devices[device];
    const int status = compute(learner, device);
    ls_failure_keep(&computed->failure, status);
}

/* The device whose failure is told: one that only gave up because another had
 * failed is told when there is no other. Without failures, n_devices. */
static size_t failed_device(const ls_learner *learner)
{
    const size_t n = learner->options.n_devices;
    size_t failed = n;
    for (size_t i = 0; i < n; i++) {
        const int status = learner->devices[i].failure.status;
        if (status != LS_OK && status != LS_EABORTED)
            return i;
        if (status != LS_OK && failed == n)
            failed = i;
    }
    return failed;
}

/* Errors: noted already. */
static int reduce(ls_learner *learner, ls_learner_info *info)
{
    const size_t n = learner->options.n_devices;
    size_t device = failed_device(learner);
    int status = LS_OK;
    if (device < n)
        status = ls_failure_return(&learner->devices[device].failure);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        device = i;
        status = ls_learner_info_merge(info, learner->devices[i].info);
    }
    if (status != LS_OK)
        learner_fail(learner, status, "compute on device %zu", device);
    return status;
}

/* Errors: noted already. */
static int train(ls_learner *learner, struct stack *stack,
                 ls_learner_info *info)
{
    learner->training = stack;
    ls_crew_run(learner->crew);
    int status = reduce(learner, info);
    if (status != LS_OK)
        return status;
    ls_error_clear();
    if (learner->ops.apply != NULL)
        status =
            learner->ops.apply(learner->options.self, stack->passes_done, info);
    if (status == LS_OK)
        status = ls_learner_info_merge(stack->info, info);
    if (status != LS_OK)
        learner_fail(learner, status, "apply");
    return status;
}

/* Note a pass, after which there are new weights. Before its result is put: who
 * has read that finds it in the figures. */
static void note_pass(ls_learner *learner, struct stack *stack, bool last,
                      int64_t ns)
{
    struct ls_queue_stats in;
    ls_queue_stats(learner->in, &in);
    ls_mutex_lock(&learner->mutex);
    learner_add(&learner->grad, ns);
    learner->training_since = LS_FOREVER;
    ls_window_push(learner->queue_sizes, (double)in.size);
    learner->counts.steps++;
    if (last) {
        learner->counts.trained++;
        ls_learner_info_swap(learner->latest, stack->info);
    }
    learner->weights_updated = true;
    ls_mutex_unlock(&learner->mutex);
    ls_cond_signal(&learner->changed);
}

static void release(ls_learner *learner, struct stack *stack)
{
    atomic_store(&learner->in_op, true);
    learner_drop_batch(learner, stack);
    atomic_store(&learner->in_op, false);
    learner_move(stack, STACK_TRAINING, STACK_IDLE);
    if (ls_queue_put(learner->idle, &stack, LS_NOW) != LS_OK)
        return; /* closed, and nobody will load it again */
}

/* Errors: noted already. */
static int take_turn(ls_learner *learner, struct ls_minibatch_turn turn)
{
    struct stack *const stack = turn.item;
    struct result_place *place;
    int status = results_take(learner->results, &place);
    if (status != LS_OK) {
        learner_fail(learner, status, "a result");
        return status;
    }
    const int64_t from = ls_now(learner->runtime);
    ls_mutex_lock(&learner->mutex);
    learner->training_since = from;
    ls_mutex_unlock(&learner->mutex);
    atomic_store(&learner->in_op, true);
    status = train(learner, stack, place->result.info);
    atomic_store(&learner->in_op, false);
    if (status != LS_OK) {
        results_give_back(place);
        return status;
    }
    /* All that is known of the batch, before its stack is another's. */
    place->result.env_steps = stack->batch.env_steps;
    place->result.agent_steps = stack->batch.agent_steps;
    place->result.pass = stack->passes_done++;
    place->result.last = turn.released;
    note_pass(learner, stack, turn.released, ls_now(learner->runtime) - from);
    if (turn.released)
        release(learner, stack);
    results_put(learner->results, place);
    return LS_OK;
}

static void note_not_ready(ls_learner *learner)
{
    ls_mutex_lock(&learner->mutex);
    learner->counts.not_ready++;
    ls_mutex_unlock(&learner->mutex);
}

void learner_main(void *arg)
{
    ls_learner *const learner = arg;
    for (;;) {
        struct ls_minibatch_turn turn;
        const int status = next_turn(learner, &turn);
        if (status == LS_EAGAIN)
            note_not_ready(learner);
        else if (status != LS_OK || take_turn(learner, turn) != LS_OK)
            break;
    }
    ls_crew_dismiss(learner->crew);
}
