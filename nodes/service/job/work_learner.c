/* The learner of a service job. */
#include <stdlib.h>

#include "lockstep/random.h"

#include "learner_service.h"
#include "service_node.h"
#include "teacher.h"
#include "work_service.h"

struct learner {
    struct service_node base; /* first: service_node_run() */
    struct agent agent;
    struct teacher *teacher;  /* own; of the agent; while it is used */
    struct learner_ops ops;   /* of the service */
    learner_service *service; /* own */
    struct ls_rng chance;     /* of the pauses */
};

/* What the service does its work with -------------------------------------- */

static int reset_learner(void *self)
{
    struct learner *learner = self;
    const int status = agent_renew_policy(&learner->agent, learner->base.plan);
    return status == LS_OK ? agent_align_replicas(&learner->agent) : status;
}

static int load_learner(void *self, const struct ls_bytes *weights)
{
    struct learner *learner = self;
    const int status = agent_load(&learner->agent, weights);
    return status == LS_OK ? agent_align_replicas(&learner->agent) : status;
}

static int save_learner(void *self, struct ls_bytes *out)
{
    struct learner *learner = self;
    return agent_save(&learner->agent, out);
}

/* Of which others get theirs by load_learner(), which comes next. */
static int load_training(void *self, const struct ls_bytes *training)
{
    struct learner *learner = self;
    return agent_load_training(&learner->agent, training);
}

static int save_training(void *self, struct ls_bytes *out)
{
    struct learner *learner = self;
    return agent_save_training(&learner->agent, out);
}

static void set_options(void *self, struct ls_learner_options *options)
{
    const struct learner *learner = self;
    teacher_set_options(learner->teacher, options);
}

static void set_group(void *self, ls_group *group)
{
    const struct learner *learner = self;
    teacher_set_group(learner->teacher, group);
}

/* The parts that the samples mean. */
static int read_samples(void *self, const struct ls_learner_place *place,
                        const struct learner_sample *samples, size_t n)
{
    const struct learner *learner = self;
    struct teacher_piece pieces[SERVICE_BATCH_MAX];
    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = samples[i].sample;
        pieces[i] = (struct teacher_piece){.name = sample->data_id,
                                           .data = samples[i].data,
                                           .size = samples[i].size,
                                           .n = (size_t)sample->unroll_len};
    }
    return teacher_load(learner->teacher, place, pieces, n);
}

static int learn(void *self, const struct learner_lesson *lesson)
{
    const struct learner *learner = self;
    return teacher_learn(learner->teacher, lesson->place, lesson->pass,
                         lesson->iter, lesson->info, lesson->priorities);
}

static int beside(void *self, enum ls_hook_position position, int64_t iter,
                  ls_learner_info *info)
{
    const struct learner *learner = self;
    return teacher_hooks(learner->teacher, position, iter, info);
}

static const struct learner_ops ops = {.reset = reset_learner,
                                       .load = load_learner,
                                       .save = save_learner,
                                       .set_options = set_options,
                                       .set_group = set_group,
                                       .read = read_samples,
                                       .learn = learn,
                                       .beside = beside};

/* The work ----------------------------------------------------------------- */

static void destroy(void *work)
{
    struct learner *self = work;
    teacher_destroy(&self->teacher);
    agent_fini(&self->agent);
    free(self);
}

static int create(void **out, const struct work_options *options)
{
    const struct plan *plan = options->plan;
    struct learner *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the work of a learner");
    service_node_init(&self->base, options);
    self->ops = ops;
    if (options->plugin->policy->n_parts > 0) {
        self->ops.load_training = load_training;
        self->ops.save_training = save_training;
    }
    int status =
        agent_init(&self->agent, options->plugin, plan,
                   plan->nodes[options->index].id, options->generation, 1);
    if (status == LS_OK)
        status =
            agent_add_replicas(&self->agent, plan, plan->learner.n_devices - 1);
    if (status != LS_OK) {
        destroy(self);
        return status;
    }
    *out = self;
    return LS_OK;
}

static int open_teacher(struct learner *self)
{
    const struct plan *plan = self->base.plan;
    return teacher_create(
        &self->teacher, ls_task_runtime(self->base.task),
        &(struct teacher_options){
            .agent = &self->agent,
            .devices = plan->learner.devices,
            .n_devices = plan->learner.n_devices,
            .stacks = plan->learner.stacks,
            .n = (size_t)plan->service.fsm.batch_size / plan_ranks(plan),
            .is_shared = plan_ranks(plan) > 1,
            .steps = (size_t)(plan->service.fsm.unroll_len /
                              plan->service.fsm.split),
            .node_id = plan->nodes[self->base.index].id});
}

/* In simulations: else it is over before anything can happen to it. On the
 * thread that learns. */
static int keep_pace(void *work, int64_t last_iter)
{
    struct learner *self = work;
    ls_runtime *runtime = ls_task_runtime(self->base.task);
    (void)last_iter;
    ls_rest_until(runtime, ls_now(runtime) +
                               (int64_t)ls_rng_below(
                                   &self->chance,
                                   (uint64_t)self->base.plan->service.pace_ms *
                                       (uint64_t)LS_NS_PER_MS));
    return LS_OK;
}

static int use(void *work, ls_task *task, ls_rpc *calls)
{
    struct learner *self = work;
    const struct plan *plan = self->base.plan;
    int status = service_node_open(&self->base, task, calls);
    ls_rng_seed(&self->chance, ls_entropy(ls_task_runtime(task)), 0);
    if (status == LS_OK)
        status = open_teacher(self);
    if (status == LS_OK)
        status = learner_service_create(
            &self->service, &(struct learner_service_options){
                                .common = service_node_options(&self->base),
                                .ops = &self->ops,
                                .self = self,
                                .queue = plan->learner.queue,
                                .stacks = plan->learner.stacks,
                                .loaders = plan->learner.loaders,
                                .passes = plan->learner.passes});
    if (status == LS_OK && plan->service.pace_ms > 0)
        status = learner_service_hook(
            self->service, &(struct hook){.name = "pace",
                                          .position = HOOK_BEFORE_ITER,
                                          .fn = keep_pace,
                                          .self = self});
    if (status == LS_OK)
        learner_service_use(self->service, task);
    return status;
}

static void report(void *work, struct report *out)
{
    struct learner *self = work;
    struct learner_figures figures;
    if (self->service == NULL)
        return;
    learner_service_figures(self->service, &figures);
    out->iteration = figures.iterations;
    out->train_iter = figures.iterations;
    out->infos = figures.infos;
    out->policy_only = figures.policy_only;
    out->commits = figures.commits;
    out->wait_ns = figures.wait_ns;
    out->load_ns = figures.load_ns;
    out->train_ns = figures.train_ns;
    out->overlap_ns = figures.overlap_ns;
    out->trained = figures.iterations;
    service_node_values(out, &figures.info);
    service_node_count(&self->base, &figures.common, out);
}

static void close_service(void *work)
{
    struct learner *self = work;
    learner_service_destroy(&self->service);
    service_node_close(&self->base);
}

const struct work_kind work_learner = {.create = create,
                                       .use = use,
                                       .run = service_node_run,
                                       .report = report,
                                       .close = close_service,
                                       .destroy = destroy,
                                       .idle_step = SERVICE_IDLE_STEP};
