/* The collector of a service job. */
#include <stdlib.h>

#include "agent_ops.h"
#include "collector_service.h"
#include "service_node.h"
#include "work_service.h"

struct collector {
    struct service_node base;
    struct agent_collector *agent; /* own */
    collector_service *service;    /* own */
};

static void destroy(void *work)
{
    struct collector *self = work;
    agent_collector_destroy(&self->agent);
    free(self);
}

static int create(void **out, const struct work_options *options)
{
    const struct plan *plan = options->plan;
    struct collector *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the work of a collector");
    service_node_init(&self->base, options);
    const int status = agent_collector_create(
        &self->agent, options->plugin, plan, plan->nodes[options->index].id,
        options->generation);
    if (status != LS_OK) {
        destroy(self);
        return status;
    }
    *out = self;
    return LS_OK;
}

static int use(void *work, ls_task *task, ls_rpc *calls)
{
    struct collector *self = work;
    int status = service_node_open(&self->base, task, calls);
    if (status == LS_OK)
        status = collector_service_create(
            &self->service,
            &(struct collector_service_options){
                .common = service_node_options(&self->base),
                .ops = &agent_collector_ops,
                .self = self->agent,
                .work_ahead = (size_t)self->base.plan->service.ahead});
    if (status != LS_OK)
        return status;
    agent_collector_use(self->agent, task);
    collector_service_use(self->service, task);
    return LS_OK;
}

static int run(void *work)
{
    struct collector *self = work;
    return service_node_run(&self->base);
}

static void report(void *work, struct report *out)
{
    struct collector *self = work;
    struct collector_figures figures;
    if (self->service == NULL)
        return;
    collector_service_figures(self->service, &figures);
    out->iteration = figures.trajectories;
    out->env_step = figures.steps;
    out->env_episode = figures.episodes;
    out->samples = figures.samples;
}

static void close_service(void *work)
{
    struct collector *self = work;
    collector_service_destroy(&self->service);
    service_node_close(&self->base);
}

const struct work_kind work_collector = {.create = create,
                                         .use = use,
                                         .run = run,
                                         .report = report,
                                         .close = close_service,
                                         .destroy = destroy};
