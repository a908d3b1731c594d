#include "learner_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_DEFAULT = 16,
    READY_WAIT_MS_DEFAULT = 1000,
    STAGE_WINDOW = 10,
    QUEUE_SIZE_WINDOW = 50
};

/* ---- create ------------------------------------------------------------ */

static struct ls_learner_options
without_zeros(const struct ls_learner_options *options)
{
    struct ls_learner_options full = *options;
    if (full.queue == 0)
        full.queue = QUEUE_DEFAULT;
    if (full.out_queue == 0)
        full.out_queue = QUEUE_DEFAULT;
    if (full.stacks == 0)
        full.stacks = 1;
    if (full.passes == 0)
        full.passes = 1;
    if (full.ready_timeout_ms == 0)
        full.ready_timeout_ms = READY_WAIT_MS_DEFAULT;
    if (full.held_timeout_ms == 0)
        full.held_timeout_ms = full.ready_timeout_ms;
    if (full.n_devices == 0)
        full.n_devices = 1;
    return full;
}

static int check_options(const struct ls_learner_options *options)
{
    if (options->ops == NULL || options->ops->compute == NULL)
        return ls_error(LS_EINVAL, "learner: it needs an op compute");
    if (options->devices != NULL && options->part_bytes == 0)
        return ls_error(LS_EINVAL, "learner: part_bytes must be at least 1 "
                                   "with devices");
    if (options->batch_size > 0 &&
        (options->batch_size < options->n_devices ||
         options->batch_size % options->n_devices != 0))
        return ls_error(LS_EINVAL,
                        "learner: a batch of %zu samples cannot be shared "
                        "evenly by %zu devices: choose a multiple of %zu",
                        options->batch_size, options->n_devices,
                        options->n_devices);
    return LS_OK;
}

static void drop_queued(void *item)
{
    struct queued *const queued = item;
    ls_learner *const learner = queued->learner;
    if (learner->ops.drop != NULL)
        learner->ops.drop(learner->options.self, &queued->batch);
}

static int create_queues(ls_learner *learner)
{
    const struct ls_learner_options *const options = &learner->options;
    const struct ls_queue_options in = {.capacity = options->queue,
                                        .item_size = sizeof(struct queued),
                                        .when_full = options->when_full,
                                        .drop = drop_queued};
    const struct ls_queue_options stacks = {
        .capacity = options->stacks, .item_size = sizeof(struct stack *)};
    int status = ls_queue_create(&learner->in, learner->runtime, &in);
    if (status == LS_OK)
        status = ls_queue_create(&learner->idle, learner->runtime, &stacks);
    if (status == LS_OK)
        status = ls_queue_create(&learner->ready, learner->runtime, &stacks);
    if (status == LS_OK)
        status = results_create(&learner->results, learner->runtime,
                                options->out_queue, options->out_when_full);
    return status;
}

static int create_parts(ls_learner *learner, struct stack *stack)
{
    const struct ls_learner_options *const options = &learner->options;
    if (options->devices == NULL)
        return LS_OK;
    stack->parts = calloc(options->n_devices, sizeof(ls_device_stack *));
    if (stack->parts == NULL)
        return ls_error(LS_ENOMEM, "no memory for the parts of a stack");
    int status = LS_OK;
    for (size_t i = 0; i < options->n_devices && status == LS_OK; i++)
        status = ls_device_stack_create(&stack->parts[i], options->devices[i],
                                        options->part_bytes);
    return status;
}

static int create_stacks(ls_learner *learner)
{
    const size_t n = learner->options.stacks;
    learner->stacks = calloc(n, sizeof *learner->stacks);
    if (learner->stacks == NULL)
        return ls_error(LS_ENOMEM, "no memory for %zu stacks", n);
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        struct stack *const stack = &learner->stacks[i];
        stack->index = i;
        status = ls_learner_info_create(&stack->info);
        if (status == LS_OK)
            status = create_parts(learner, stack);
        if (status == LS_OK)
            status = ls_queue_put(learner->idle, &stack, LS_NOW);
    }
    return status == LS_OK ? LS_OK : ls_error_at(status, "learner");
}

static int create_devices(ls_learner *learner)
{
    const size_t n = learner->options.n_devices;
    learner->devices = calloc(n, sizeof *learner->devices);
    if (learner->devices == NULL)
        return ls_error(LS_ENOMEM, "no memory for %zu devices", n);
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = ls_learner_info_create(&learner->devices[i].info);
    return status;
}

static int create_figures(ls_learner *learner)
{
    int status = ls_mutex_init(&learner->mutex, learner->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&learner->changed, learner->runtime);
    struct stage *const stages[] = {&learner->dequeue, &learner->load,
                                    &learner->load_wait, &learner->grad};
    for (size_t i = 0; i < sizeof stages / sizeof *stages && status == LS_OK;
         i++)
        status = ls_window_create(&stages[i]->recent, STAGE_WINDOW);
    if (status == LS_OK)
        status = ls_window_create(&learner->queue_sizes, QUEUE_SIZE_WINDOW);
    if (status == LS_OK)
        status = ls_learner_info_create(&learner->latest);
    return status;
}

static int create_all(ls_learner *learner)
{
    const struct ls_learner_options *const options = &learner->options;
    const struct ls_minibatch_ring_options ring = {.size = options->stacks,
                                                   .passes = options->passes,
                                                   .first_passes =
                                                       options->first_passes};
    int status = create_figures(learner);
    if (status == LS_OK)
        status = ls_minibatch_ring_create(&learner->ring, &ring);
    if (status == LS_OK)
        status = create_queues(learner);
    if (status == LS_OK)
        status = create_stacks(learner);
    if (status == LS_OK)
        status = create_devices(learner);
    if (status == LS_OK && options->loaders > 0) {
        learner->loaders = calloc(options->loaders, sizeof *learner->loaders);
        if (learner->loaders == NULL)
            status = ls_error(LS_ENOMEM, "no memory for %zu loaders",
                              options->loaders);
    }
    return status;
}

static void free_learner(ls_learner *learner);

int ls_learner_create(ls_learner **out, ls_runtime *runtime,
                      const struct ls_learner_options *options)
{
    *out = NULL;
    const struct ls_learner_options full = without_zeros(options);
    int status = check_options(&full);
    if (status != LS_OK)
        return status;
    ls_learner *learner = calloc(1, sizeof *learner);
    if (learner == NULL)
        return ls_error(LS_ENOMEM, "no memory for a learner");
    learner->options = full;
    learner->ops = *full.ops;
    learner->runtime = runtime;
    learner->training_since = LS_FOREVER;
    status = create_all(learner);
    if (status != LS_OK) {
        free_learner(learner);
        return status;
    }
    status = learner_spawn(learner);
    if (status != LS_OK) {
        struct ls_failure failure;
        ls_failure_keep(&failure, status);
        ls_learner_destroy(&learner);
        return ls_failure_return(&failure);
    }
    *out = learner;
    return LS_OK;
}

/* ---- batches in, results out ------------------------------------------- */

int ls_learner_put(ls_learner *learner, struct ls_learner_batch *batch,
                   int wait_ms)
{
    const struct queued queued = {.batch = *batch, .learner = learner};
    const int status = ls_queue_put(learner->in, &queued,
                                    ls_deadline(learner->runtime, wait_ms));
    if (status == LS_ECLOSED)
        return learner_say_ended(learner);
    if (status != LS_OK)
        return ls_error_at(status, "learner: not ready");
    batch->data = NULL;
    return LS_OK;
}

int ls_learner_get(ls_learner *learner, struct ls_learner_result *out,
                   int wait_ms)
{
    const int status = results_get(learner->results, out,
                                   ls_deadline(learner->runtime, wait_ms));
    if (status == LS_ECLOSED)
        return learner_say_ended(learner);
    return status == LS_OK ? LS_OK : ls_error_at(status, "learner: results");
}

/* ---- weights ----------------------------------------------------------- */

static bool take_weights(ls_learner *learner)
{
    const bool updated = learner->weights_updated;
    learner->weights_updated = false;
    return updated;
}

bool ls_learner_take_weights_updated(ls_learner *learner)
{
    ls_mutex_lock(&learner->mutex);
    const bool updated = take_weights(learner);
    ls_mutex_unlock(&learner->mutex);
    return updated;
}

int ls_learner_await_weights(ls_learner *learner, int wait_ms)
{
    const int64_t deadline = ls_deadline(learner->runtime, wait_ms);
    int status = LS_OK;
    ls_mutex_lock(&learner->mutex);
    bool updated = take_weights(learner);
    while (!updated && !atomic_load(&learner->ending) && status == LS_OK) {
        status = ls_cond_wait(&learner->changed, &learner->mutex, deadline);
        updated = take_weights(learner);
    }
    ls_mutex_unlock(&learner->mutex);
    if (updated)
        return LS_OK;
    if (status == LS_OK)
        return learner_say_ended(learner);
    return ls_error(wait_ms == 0 ? LS_EAGAIN : status,
                    "learner: no new weights");
}

/* ---- figures ----------------------------------------------------------- */

void ls_learner_counts(ls_learner *learner, struct ls_learner_counts *out)
{
    struct ls_queue_stats in, results;
    /* Each after what it follows from, so that no sum comes out short. */
    results_stats(learner->results, &results);
    ls_mutex_lock(&learner->mutex);
    *out = learner->counts;
    out->dequeue_ns = learner->dequeue.total_ns;
    out->load_ns = learner->load.total_ns;
    out->overlap_ns = learner->overlap_ns;
    out->load_wait_ns = learner->load_wait.total_ns;
    out->grad_ns = learner->grad.total_ns;
    ls_mutex_unlock(&learner->mutex);
    ls_queue_stats(learner->in, &in);
    out->put = in.put;
    out->refused = in.refused;
    out->dropped = in.dropped;
    out->queued = in.size;
    out->got = results.got;
    out->results_dropped = results.dropped + results.refused;
}

/* ---- destroy ----------------------------------------------------------- */

static void free_stacks(ls_learner *learner)
{
    for (size_t i = 0; learner->stacks != NULL && i < learner->options.stacks;
         i++) {
        struct stack *const stack = &learner->stacks[i];
        for (size_t k = 0;
             stack->parts != NULL && k < learner->options.n_devices; k++)
            ls_device_stack_destroy(&stack->parts[k]);
        free(stack->parts);
        ls_learner_info_destroy(&stack->info);
    }
    free(learner->stacks);
}

static void free_devices(ls_learner *learner)
{
    for (size_t i = 0;
         learner->devices != NULL && i < learner->options.n_devices; i++)
        ls_learner_info_destroy(&learner->devices[i].info);
    free(learner->devices);
}

static void free_learner(ls_learner *learner)
{
    ls_crew_destroy(&learner->crew);
    free(learner->loaders);
    free_devices(learner);
    free_stacks(learner);
    results_destroy(&learner->results);
    ls_queue_destroy(&learner->ready);
    ls_queue_destroy(&learner->idle);
    ls_queue_destroy(&learner->in);
    ls_minibatch_ring_destroy(&learner->ring);
    ls_learner_info_destroy(&learner->latest);
    ls_window_destroy(&learner->queue_sizes);
    ls_window_destroy(&learner->grad.recent);
    ls_window_destroy(&learner->load_wait.recent);
    ls_window_destroy(&learner->load.recent);
    ls_window_destroy(&learner->dequeue.recent);
    ls_cond_fini(&learner->changed);
    ls_mutex_fini(&learner->mutex);
    free(learner);
}

void ls_learner_destroy(ls_learner **learner)
{
    if (learner == NULL || *learner == NULL)
        return;
    ls_learner *const old = *learner;
    *learner = NULL;
    if (learner_stop_by(old, LS_FOREVER) == LS_OK)
        free_learner(old);
}
