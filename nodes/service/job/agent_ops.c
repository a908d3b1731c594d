#include "agent_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "split.h"

/* Learning ------------------------------------------------------------------
 */

/* What a batch is learned from. */
struct agent_stack {
    struct trajectory trajectories[SERVICE_BATCH_MAX]; /* made when needed */
    size_t n_trajectories;
    struct ls_trajectory parts[SERVICE_BATCH_MAX]; /* of the batch */
};

struct agent_learner {
    struct agent agent;
    const struct plan *plan; /* borrow */
    struct trajectory_shape shape;
    struct agent_stack *stacks; /* own; n_stacks */
    size_t n_stacks;
};

static int reset_learner(void *self)
{
    struct agent_learner *learner = self;
    return agent_renew_policy(&learner->agent, learner->plan);
}

static int load_learner(void *self, const struct ls_bytes *weights)
{
    struct agent_learner *learner = self;
    return agent_load(&learner->agent, weights);
}

static int save_learner(void *self, struct ls_bytes *out)
{
    struct agent_learner *learner = self;
    return agent_save(&learner->agent, out);
}

static int make_room(const struct agent_learner *learner,
                     struct agent_stack *stack, size_t n)
{
    while (stack->n_trajectories < n) {
        const int status = trajectory_init(
            &stack->trajectories[stack->n_trajectories], &learner->shape);
        if (status != LS_OK)
            return status;
        stack->n_trajectories++;
    }
    return LS_OK;
}

/* The parts that the samples mean. */
static int read_samples(void *self, size_t index,
                        const struct learner_sample *samples, size_t n)
{
    const struct agent_learner *learner = self;
    struct agent_stack *stack = &learner->stacks[index];
    int status = make_room(learner, stack, n);
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        struct trajectory *whole = &stack->trajectories[i];
        status = trajectory_read(&whole->view, &learner->shape, samples[i].data,
                                 samples[i].size);
        if (status == LS_OK)
            status = split_trajectory(&whole->view, &learner->shape,
                                      samples[i].sample, &stack->parts[i]);
        if (status != LS_OK)
            (void)ls_error_at(status, "data %s", samples[i].sample->data_id);
    }
    return status;
}

/* A plugin names its values as it likes; on the wire names are plain. */
static void copy_name(service_name out, const char *name)
{
    size_t n = 0;
    for (; name[n] != '\0' && n < SAFE_NAME_MAX; n++) {
        const char c = name[n];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-';
        out[n] = '_';
        if (plain)
            out[n] = c;
    }
    if (n == 0)
        out[n++] = '_';
    out[n] = '\0';
}

static int learn(void *self, size_t stack, const struct learner_sample *samples,
                 size_t n, struct learner_info *values, double *priorities)
{
    struct agent_learner *learner = self;
    struct ls_learn_info info = {.n = 0, .priorities = priorities};
    (void)samples;
    const int status =
        agent_learn(&learner->agent, learner->stacks[stack].parts, n, &info);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < info.n && i < LS_LEARN_INFO_MAX &&
                       values->n_values < LEARNER_VALUES_MAX;
         i++) {
        copy_name(values->values[values->n_values].name, info.items[i].name);
        values->values[values->n_values++].value = info.items[i].value;
    }
    return LS_OK;
}

const struct learner_ops agent_learner_ops = {.reset = reset_learner,
                                              .load = load_learner,
                                              .save = save_learner,
                                              .read = read_samples,
                                              .learn = learn};

int agent_learner_create(struct agent_learner **out,
                         const struct ls_plugin *plugin,
                         const struct plan *plan, uint32_t node_id,
                         unsigned generation, size_t unroll_len,
                         size_t n_stacks)
{
    struct agent_learner *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "a learner");
    made->plan = plan;
    made->n_stacks = n_stacks;
    made->stacks = calloc(n_stacks, sizeof *made->stacks);
    const int status =
        made->stacks == NULL
            ? ls_error(LS_ENOMEM, "%zu stacks", n_stacks)
            : agent_init(&made->agent, plugin, plan, node_id, generation, 1);
    if (status != LS_OK) {
        free(made->stacks);
        free(made);
        return status;
    }
    made->shape = agent_shape(&made->agent, unroll_len);
    *out = made;
    return LS_OK;
}

void agent_learner_destroy(struct agent_learner **learner)
{
    if (learner == NULL || *learner == NULL)
        return;
    for (size_t i = 0; i < (*learner)->n_stacks; i++) {
        struct agent_stack *stack = &(*learner)->stacks[i];
        while (stack->n_trajectories > 0)
            trajectory_fini(&stack->trajectories[--stack->n_trajectories]);
    }
    free((*learner)->stacks);
    agent_fini(&(*learner)->agent);
    free(*learner);
    *learner = NULL;
}

/* Collecting ----------------------------------------------------------------
 */

struct agent_collector {
    struct agent agent; /* its last environment is for evaluations */
    size_t n_envs;      /* the others */
    size_t next;        /* whose turn it is */
    ls_task *task;      /* borrow; may be NULL */
    struct trajectory trajectory;
    size_t room; /* steps; 0: it is not made */
    ls_writer *writer;
};

static int reset_collector(void *self)
{
    struct agent_collector *collector = self;
    for (size_t i = 0; i < collector->agent.n_envs; i++)
        collector->agent.envs[i].begun = false;
    collector->next = 0;
    return LS_OK;
}

static int load_collector(void *self, const struct ls_bytes *weights)
{
    struct agent_collector *collector = self;
    return agent_load(&collector->agent, weights);
}

static int make_trajectory(struct agent_collector *collector, size_t n)
{
    const struct trajectory_shape shape = agent_shape(&collector->agent, n);
    struct trajectory made;
    if (n <= collector->room)
        return LS_OK;
    const int status = trajectory_init(&made, &shape);
    if (status != LS_OK)
        return status;
    if (collector->room > 0)
        trajectory_fini(&collector->trajectory);
    collector->trajectory = made;
    collector->room = n;
    return LS_OK;
}

static int write_trajectory(struct agent_collector *collector,
                            struct ls_bytes *out)
{
    const struct ls_trajectory *view = &collector->trajectory.view;
    const struct trajectory_shape shape =
        agent_shape(&collector->agent, view->n);
    const void *data;
    size_t size;
    ls_writer_clear(collector->writer);
    int status = trajectory_write(view, &shape, collector->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(collector->writer, &data, &size);
    return status == LS_OK ? ls_bytes_set(out, data, size) : status;
}

static int collect(void *self, int64_t unroll_len, struct ls_bytes *out,
                   struct collected *what)
{
    struct agent_collector *collector = self;
    struct collected collected = {.steps = unroll_len,
                                  .env_id = (int64_t)collector->next};
    struct agent_env *env = &collector->agent.envs[collector->next];
    int status = make_trajectory(collector, (size_t)unroll_len);
    if (status == LS_OK)
        status = agent_collect(&collector->agent, env,
                               &collector->trajectory.view, (size_t)unroll_len,
                               &collected.episodes, &collected.return_sum);
    if (status == LS_OK)
        status = write_trajectory(collector, out);
    if (status != LS_OK)
        return status;
    collector->next = (collector->next + 1) % collector->n_envs;
    *what = collected;
    return LS_OK;
}

static int evaluate(void *self, double *episode_return, int64_t *steps)
{
    struct agent_collector *collector = self;
    return agent_episode(&collector->agent,
                         &collector->agent.envs[collector->n_envs],
                         collector->task, episode_return, steps);
}

const struct collector_ops agent_collector_ops = {.reset = reset_collector,
                                                  .load = load_collector,
                                                  .collect = collect,
                                                  .evaluate = evaluate};

int agent_collector_create(struct agent_collector **out,
                           const struct ls_plugin *plugin,
                           const struct plan *plan, uint32_t node_id,
                           unsigned generation)
{
    struct agent_collector *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "a collector");
    made->n_envs = plan->envs > 0 ? plan->envs : 1;
    int status = ls_writer_create(&made->writer);
    if (status == LS_OK)
        status = agent_init(&made->agent, plugin, plan, node_id, generation,
                            made->n_envs + 1);
    if (status != LS_OK) {
        ls_writer_destroy(&made->writer);
        free(made);
        return status;
    }
    *out = made;
    return LS_OK;
}

void agent_collector_use(struct agent_collector *collector, ls_task *task)
{
    collector->task = task;
}

void agent_collector_destroy(struct agent_collector **collector)
{
    if (collector == NULL || *collector == NULL)
        return;
    struct agent_collector *old = *collector;
    if (old->room > 0)
        trajectory_fini(&old->trajectory);
    ls_writer_destroy(&old->writer);
    agent_fini(&old->agent);
    free(old);
    *collector = NULL;
}
