/* The learner of a service job. */
#include <stdlib.h>

#include "lockstep/random.h"

#include "agent_ops.h"
#include "learner_service.h"
#include "service_node.h"
#include "work_service.h"

struct learner {
    struct service_node base;
    struct agent_learner *agent; /* own */
    learner_service *service;    /* own */
    struct ls_rng chance;        /* of the pauses */
};

static void destroy(void *work)
{
    struct learner *self = work;
    agent_learner_destroy(&self->agent);
    free(self);
}

static int create(void **out, const struct work_options *options)
{
    const struct plan *plan = options->plan;
    struct learner *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the work of a learner");
    service_node_init(&self->base, options);
    const int status = agent_learner_create(
        &self->agent, options->plugin, plan, plan->nodes[options->index].id,
        options->generation, (size_t)plan->service.unroll,
        plan->learner.stacks);
    if (status != LS_OK) {
        destroy(self);
        return status;
    }
    *out = self;
    return LS_OK;
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
        status = learner_service_create(
            &self->service, &(struct learner_service_options){
                                .common = service_node_options(&self->base),
                                .ops = &agent_learner_ops,
                                .self = self->agent,
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

static int run(void *work)
{
    struct learner *self = work;
    return service_node_run(&self->base);
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
    out->wait_ns = figures.wait_ns;
    out->load_ns = figures.load_ns;
    out->train_ns = figures.train_ns;
    out->overlap_ns = figures.overlap_ns;
}

static void close_service(void *work)
{
    struct learner *self = work;
    learner_service_destroy(&self->service);
    service_node_close(&self->base);
}

const struct work_kind work_learner = {.create = create,
                                       .use = use,
                                       .run = run,
                                       .report = report,
                                       .close = close_service,
                                       .destroy = destroy};
