#include "agent_ops.h"

#include <stdlib.h>
#include <string.h>

#include "teacher.h"

/* Learning ------------------------------------------------------------------
 */

struct agent_learner {
    struct agent agent;
    const struct plan *plan; /* borrow */
    struct teacher *teacher; /* own; from agent_learner_start() on */
};

static int reset_learner(void *self)
{
    struct agent_learner *learner = self;
    const int status = agent_renew_policy(&learner->agent, learner->plan);
    return status == LS_OK ? agent_align_replicas(&learner->agent) : status;
}

static int load_learner(void *self, const struct ls_bytes *weights)
{
    struct agent_learner *learner = self;
    const int status = agent_load(&learner->agent, weights);
    return status == LS_OK ? agent_align_replicas(&learner->agent) : status;
}

static int save_learner(void *self, struct ls_bytes *out)
{
    struct agent_learner *learner = self;
    return agent_save(&learner->agent, out);
}

static void set_options(void *self, struct ls_learner_options *options)
{
    const struct agent_learner *learner = self;
    teacher_set_options(learner->teacher, options);
}

/* The parts that the samples mean. */
static int read_samples(void *self, const struct ls_learner_place *place,
                        const struct learner_sample *samples, size_t n)
{
    const struct agent_learner *learner = self;
    struct teacher_piece pieces[SERVICE_BATCH_MAX];
    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = samples[i].sample;
        pieces[i] = (struct teacher_piece){
            .name = sample->data_id,
            .data = samples[i].data,
            .size = samples[i].size,
            .begin = sample->split ? (size_t)sample->split_begin : 0,
            .n = (size_t)sample->unroll_len,
            .whole = !sample->split};
    }
    return teacher_load(learner->teacher, place, pieces, n);
}

static int learn(void *self, const struct learner_lesson *lesson)
{
    const struct agent_learner *learner = self;
    return teacher_learn(learner->teacher, lesson->place, lesson->pass,
                         lesson->iter, lesson->info, lesson->priorities);
}

static int beside(void *self, enum ls_hook_position position, int64_t iter,
                  ls_learner_info *info)
{
    const struct agent_learner *learner = self;
    return teacher_hooks(learner->teacher, position, iter, info);
}

const struct learner_ops agent_learner_ops = {.reset = reset_learner,
                                              .load = load_learner,
                                              .save = save_learner,
                                              .set_options = set_options,
                                              .read = read_samples,
                                              .learn = learn,
                                              .beside = beside};

int agent_learner_create(struct agent_learner **out,
                         const struct ls_plugin *plugin,
                         const struct plan *plan, uint32_t node_id,
                         unsigned generation)
{
    struct agent_learner *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "a learner");
    made->plan = plan;
    int status = agent_init(&made->agent, plugin, plan, node_id, generation, 1);
    if (status == LS_OK)
        status =
            agent_add_replicas(&made->agent, plan, plan->learner.n_devices - 1);
    if (status != LS_OK) {
        agent_learner_destroy(&made);
        return status;
    }
    *out = made;
    return LS_OK;
}

int agent_learner_start(struct agent_learner *learner, ls_runtime *runtime,
                        uint32_t node_id)
{
    const struct plan *plan = learner->plan;
    return teacher_create(
        &learner->teacher, runtime,
        &(struct teacher_options){.agent = &learner->agent,
                                  .devices = plan->learner.devices,
                                  .n_devices = plan->learner.n_devices,
                                  .stacks = plan->learner.stacks,
                                  .n = (size_t)plan->service.batch,
                                  .steps = (size_t)plan->service.unroll,
                                  .node_id = node_id});
}

void agent_learner_destroy(struct agent_learner **learner)
{
    if (learner == NULL || *learner == NULL)
        return;
    teacher_destroy(&(*learner)->teacher);
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
    struct agent_played played = {.steps = 0};
    int status = make_trajectory(collector, (size_t)unroll_len);
    if (status == LS_OK)
        status = agent_collect(&collector->agent, collector->next, 1,
                               &collector->trajectory.view, (size_t)unroll_len,
                               NULL, &played);
    if (status == LS_OK)
        status = write_trajectory(collector, out);
    if (status != LS_OK)
        return status;
    *what = (struct collected){.steps = played.steps,
                               .episodes = played.episodes,
                               .return_sum = played.return_sum,
                               .env_id = (int64_t)collector->next};
    collector->next = (collector->next + 1) % collector->n_envs;
    return LS_OK;
}

static int evaluate(void *self, double *episode_return, int64_t *steps)
{
    struct agent_collector *collector = self;
    struct agent_played played = {.steps = 0};
    const int status = agent_episode(&collector->agent, collector->n_envs,
                                     collector->task, &played);
    if (status != LS_OK)
        return status;
    *episode_return = played.return_sum;
    *steps = played.steps;
    return LS_OK;
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
