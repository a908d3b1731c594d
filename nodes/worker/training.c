#include "training.h"

#include <limits.h>
#include <stdlib.h>

#include "lockstep/log.h"

#include "learn_group.h"

/* Each trajectory begins on a line of the cache. */
enum { ALIGNMENT = 64 };

/* What a stack's memory holds. */
struct loaded {
    struct ls_trajectory *trajectories; /* own; room for training->n_max */
    size_t share;                       /* of each device */
};

struct training {
    struct agent *agent; /* borrow */
    uint32_t node_id;
    struct trajectory_shape shape;
    size_t n_max;          /* trajectories in a batch */
    size_t stride;         /* bytes from one to the next in a stack */
    struct loaded *stacks; /* own; n_stacks */
    size_t n_stacks;
    size_t n_devices;
    ls_device **devices;       /* own; n_devices */
    bool *is_doubtful;         /* own; of each device's policy, and thread */
    struct learn_group *group; /* own */
    ls_learner *learner;       /* own */
    ls_learner_info *said;     /* own; in one pass */
    struct ls_learner_metrics metrics; /* its info is owned */
    ls_writer *writer;                 /* own */
    const void *published;             /* borrow; what is in the writer */
    size_t published_size;
};

static int check_items(const struct training *training,
                       const struct ls_items *items)
{
    if (items->n > training->n_max)
        return ls_error(LS_EPROTO,
                        "%zu trajectories came, and all collectors together "
                        "have %zu environments",
                        items->n, training->n_max);
    if (items->n % training->n_devices != 0)
        return ls_error(LS_EPROTO,
                        "%zu trajectories came, and %zu devices cannot share "
                        "them evenly",
                        items->n, training->n_devices);
    return LS_OK;
}

static int load(void *self, const struct ls_learner_place *place)
{
    const struct training *const training = self;
    const struct ls_items *const items = place->batch->data;
    struct loaded *const loaded = &training->stacks[place->stack];
    unsigned char *const memory = ls_device_stack_host(place->memory);
    const size_t share = items->n / training->n_devices;
    const int status = check_items(training, items);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < share; i++) {
        const size_t k = place->device * share + i;
        loaded->trajectories[k] =
            trajectory_in(memory + i * training->stride, &training->shape);
        const int read =
            trajectory_read(&loaded->trajectories[k], &training->shape,
                            items->items[k].data, items->items[k].size);
        if (read != LS_OK)
            return ls_error_at(read, "item %zu of %zu", k, items->n);
    }
    loaded->share = share;
    return ls_device_stack_upload(place->memory, 0, share * training->stride);
}

static int add_all(const struct ls_learn_info *from, ls_learner_info *info)
{
    int status = LS_OK;
    for (size_t i = 0; i < from->n && i < LS_LEARN_INFO_MAX && status == LS_OK;
         i++)
        status = ls_learner_info_add(info, from->items[i].name,
                                     from->items[i].value);
    return status;
}

static int learn(struct training *training,
                 const struct ls_learner_place *place,
                 struct ls_learn_info *said)
{
    struct agent *const agent = training->agent;
    const struct loaded *const loaded = &training->stacks[place->stack];
    const size_t device = place->device;
    if (training->n_devices == 1)
        return agent_learn(agent, loaded->trajectories, loaded->share, said);
    const int status = agent->plugin->policy->learn_in_group(
        device == 0 ? agent->policy : agent->replicas[device - 1],
        loaded->trajectories + device * loaded->share, loaded->share,
        learn_group_member(training->group, device), said);
    learn_group_leave(training->group);
    return status == LS_OK ? LS_OK
                           : ls_error_at(status, "plugin %s: policy: learn",
                                         agent->plugin->name);
}

static int compute(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info)
{
    struct training *const training = self;
    struct ls_learn_info said = {.n = 0};
    (void)pass;
    ls_log_set_node(training->node_id);
    /* Until it has gone well, there is no telling. */
    training->is_doubtful[place->device] = true;
    const int status = learn(training, place, &said);
    if (status != LS_OK)
        return status;
    training->is_doubtful[place->device] = false;
    return add_all(&said, info);
}

static const struct ls_learner_ops ops = {.load = load, .compute = compute};

static int init_stacks(struct training *training, const struct plan *plan)
{
    size_t bytes = 0;
    const int status = trajectory_bytes(&training->shape, &bytes);
    if (status != LS_OK)
        return status;
    if (bytes > SIZE_MAX / training->n_max - ALIGNMENT)
        return ls_error(LS_ENOMEM, "%zu trajectories", training->n_max);
    training->stride = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    training->stacks = calloc(plan->learner.stacks, sizeof *training->stacks);
    if (training->stacks == NULL)
        return ls_error(LS_ENOMEM, "%zu stacks", plan->learner.stacks);
    training->n_stacks = plan->learner.stacks;
    for (size_t i = 0; i < training->n_stacks; i++) {
        training->stacks[i].trajectories =
            calloc(training->n_max, sizeof(struct ls_trajectory));
        if (training->stacks[i].trajectories == NULL)
            return ls_error(LS_ENOMEM, "%zu trajectories", training->n_max);
    }
    return LS_OK;
}

static int start_learner(struct training *training, ls_runtime *runtime,
                         const struct plan_learner *plan)
{
    const struct ls_learner_options options = {
        .ops = &ops,
        .self = training,
        .queue = plan->queue,
        .stacks = plan->stacks,
        .loaders = plan->loaders,
        .passes = plan->passes,
        .held_timeout_ms =
            LS_NO_WAIT, /* the next batch comes when this one is done */
        .devices = training->devices,
        .n_devices = training->n_devices,
        .part_bytes = training->n_max / training->n_devices * training->stride,
        .batch_size = training->n_max};
    int status = LS_OK;
    for (size_t i = 0; i < training->n_devices && status == LS_OK; i++)
        status =
            ls_device_open(&training->devices[i], runtime, plan->devices[i]);
    if (status == LS_OK)
        status =
            learn_group_create(&training->group, runtime, training->n_devices);
    return status == LS_OK
               ? ls_learner_create(&training->learner, runtime, &options)
               : status;
}

/* What several devices ask of the policy and of the batch. */
static int init_devices(struct training *training,
                        const struct plan_learner *plan)
{
    const struct agent *const agent = training->agent;
    const size_t n = plan->n_devices;
    if (n > 1 && agent->plugin->policy->learn_in_group == NULL)
        return ls_error(LS_ECONFIG,
                        "the policy of plugin %s learns on one device, and "
                        "learner.device lists %zu",
                        agent->plugin->name, n);
    if (training->n_max % n != 0)
        return ls_error(LS_ECONFIG,
                        "%zu trajectories, one of each environment, cannot be "
                        "shared evenly by the %zu devices of learner.device",
                        training->n_max, n);
    training->devices = calloc(n, sizeof(ls_device *));
    training->is_doubtful = calloc(n, sizeof *training->is_doubtful);
    if (training->devices == NULL || training->is_doubtful == NULL)
        return ls_error(LS_ENOMEM, "%zu devices", n);
    training->n_devices = n;
    return agent_align_replicas(training->agent);
}

int training_start(struct training **out, ls_runtime *runtime,
                   const struct plan *plan, struct agent *agent,
                   uint32_t node_id, size_t n)
{
    struct training *training = calloc(1, sizeof *training);
    if (training == NULL)
        return ls_error(LS_ENOMEM, "training");
    training->agent = agent;
    training->node_id = node_id;
    training->shape = agent_shape(agent, plan->steps);
    training->n_max = n;
    int status = init_devices(training, &plan->learner);
    if (status == LS_OK)
        status = init_stacks(training, plan);
    if (status == LS_OK)
        status = ls_learner_info_create(&training->said);
    if (status == LS_OK)
        status = ls_learner_info_create(&training->metrics.learner);
    if (status == LS_OK)
        status = ls_writer_create(&training->writer);
    if (status == LS_OK)
        status = start_learner(training, runtime, &plan->learner);
    if (status != LS_OK) {
        training_stop(&training);
        return status;
    }
    *out = training;
    return LS_OK;
}

int training_learn(struct training *training, const struct ls_items *items,
                   ls_learner_info *info)
{
    struct ls_learner_batch batch = {.data = (void *)(uintptr_t)items};
    struct ls_learner_result result = {.info = training->said};
    /* A pass may take as long as it likes: it is the plugin's. */
    int status = ls_learner_put(training->learner, &batch, INT_MAX);
    while (status == LS_OK && !result.last) {
        status = ls_learner_get(training->learner, &result, INT_MAX);
        if (status == LS_OK)
            status = ls_learner_info_merge(info, result.info);
    }
    return status;
}

bool training_is_whole(const struct training *training)
{
    bool is_whole = true;
    for (size_t i = 0; i < training->n_devices; i++)
        is_whole = is_whole && !training->is_doubtful[i];
    return is_whole;
}

int training_publish(struct training *training, ls_node *node)
{
    struct ls_emission emission = {.event = "learner.metrics",
                                   .delivery = LS_DELIVERY_LATEST};
    int status =
        ls_learner_metrics(training->learner, &training->metrics, true);
    if (status != LS_OK)
        return status;
    training->published_size = 0;
    ls_writer_clear(training->writer);
    ls_learner_metrics_write(&training->metrics, training->writer);
    status = ls_writer_bytes(training->writer, &emission.data, &emission.size);
    if (status != LS_OK)
        return status;
    training->published = emission.data;
    training->published_size = emission.size;
    return ls_emit_with(node, &emission);
}

void training_published(const struct training *training, const void **data,
                        size_t *size)
{
    *data = training->published;
    *size = training->published_size;
}

const struct ls_learner_metrics *
training_metrics(const struct training *training)
{
    return &training->metrics;
}

void training_stop(struct training **training)
{
    if (training == NULL || *training == NULL)
        return;
    struct training *const old = *training;
    *training = NULL;
    ls_learner_destroy(&old->learner);
    for (size_t i = 0; i < old->n_devices; i++)
        ls_device_close(&old->devices[i]);
    free(old->devices);
    free(old->is_doubtful);
    learn_group_destroy(&old->group);
    ls_learner_info_destroy(&old->said);
    ls_learner_info_destroy(&old->metrics.learner);
    ls_writer_destroy(&old->writer);
    for (size_t i = 0; i < old->n_stacks; i++)
        free(old->stacks[i].trajectories);
    free(old->stacks);
    free(old);
}
