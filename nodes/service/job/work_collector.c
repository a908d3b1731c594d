/* The collector of a service job. */
#include <stdlib.h>
#include <string.h>

#include "collector_service.h"
#include "player.h"
#include "service_node.h"
#include "work_service.h"

struct collector {
    struct service_node base; /* first: service_node_run() */
    struct agent agent;       /* its last environment is for evaluations */
    struct player *player;    /* own; of the others */
    size_t next;              /* the environment whose turn it is */
    size_t played, handed;    /* trajectories of the player: made, given out */
    collector_service *service; /* own */
};

/* What the service does its work with -------------------------------------- */

static int reset(void *self)
{
    struct collector *collector = self;
    player_reset(collector->player);
    collector->next = collector->played = collector->handed = 0;
    return LS_OK;
}

/* What was played by the policy before is given to nobody. */
static int load(void *self, const struct ls_bytes *weights)
{
    struct collector *collector = self;
    collector->played = collector->handed = 0;
    return agent_load(&collector->agent, weights);
}

/* One behind the other: of as many steps, they have as many bytes. */
static int write_parts(struct collector *collector, size_t index, size_t steps,
                       size_t n_parts, struct collected_data *out)
{
    const size_t n = steps / n_parts;
    int status = LS_OK;
    for (size_t i = 0; i < n_parts && status == LS_OK; i++) {
        const void *data = NULL;
        size_t size = 0;
        status = player_part(collector->player, index, i * n, n, &data, &size);
        if (status == LS_OK && i == 0)
            status = collected_room(out, n_parts * size);
        if (status == LS_OK)
            memcpy((char *)out->bytes + i * size, data, size);
    }
    return status;
}

/* As many environments as there are threads, are left in this turn of theirs,
 * and are wanted. */
static int play(struct collector *collector, int64_t unroll_len, int64_t more,
                struct agent_played *played)
{
    const struct plan *plan = collector->base.plan;
    size_t n = plan->envs - collector->next;
    n = n < plan->threads ? n : plan->threads;
    n = (int64_t)n < more + 1 ? n : (size_t)more + 1;
    collector->played = collector->handed = 0;
    const int status = player_collect(collector->player, n, (size_t)unroll_len,
                                      NULL, played, NULL);
    if (status != LS_OK)
        return status;
    collector->played = n;
    collector->next = (collector->next + n) % plan->envs;
    return LS_OK;
}

/* Of one environment after the other, each by the newest policy. What several
 * have done is said with the first of them. */
static int collect(void *self, int64_t unroll_len, int64_t parts, int64_t more,
                   struct collected_data *out, struct collected *what)
{
    struct collector *collector = self;
    const size_t envs = collector->base.plan->envs;
    struct agent_played played = {.steps = 0};
    int status = LS_OK;
    if (collector->handed == collector->played)
        status = play(collector, unroll_len, more, &played);
    if (status == LS_OK)
        status = write_parts(collector, collector->handed, (size_t)unroll_len,
                             (size_t)parts, out);
    if (status != LS_OK)
        return status;
    const size_t left = collector->played - collector->handed++;
    *what = (struct collected){
        .steps = played.steps,
        .episodes = played.episodes,
        .return_sum = played.return_sum,
        .env_id = (int64_t)((collector->next + envs - left) % envs)};
    return LS_OK;
}

static int evaluate(void *self, double *episode_return, int64_t *steps)
{
    struct collector *collector = self;
    struct agent_played played = {.steps = 0};
    const int status =
        player_evaluate(&collector->agent, collector->base.plan->envs, 1,
                        collector->base.task, &played);
    if (status != LS_OK)
        return status;
    *episode_return = played.return_sum;
    *steps = played.steps;
    return LS_OK;
}

static const struct collector_ops ops = {
    .reset = reset, .load = load, .collect = collect, .evaluate = evaluate};

/* The work ----------------------------------------------------------------- */

static void destroy(void *work)
{
    struct collector *self = work;
    player_destroy(&self->player);
    agent_fini(&self->agent);
    free(self);
}

static int create(void **out, const struct work_options *options)
{
    const struct plan *plan = options->plan;
    struct collector *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the work of a collector");
    service_node_init(&self->base, options);
    int status = agent_init(&self->agent, options->plugin, plan,
                            plan->nodes[options->index].id, options->generation,
                            plan->envs + 1);
    if (status == LS_OK)
        status = player_create(&self->player, &self->agent, plan->envs,
                               plan->threads < plan->envs ? plan->threads
                                                          : plan->envs,
                               (size_t)plan->service.fsm.unroll_len);
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
        status = agent_use_threads(&self->agent, ls_task_runtime(task),
                                   self->base.plan->threads);
    if (status == LS_OK)
        status = collector_service_create(
            &self->service,
            &(struct collector_service_options){
                .common = service_node_options(&self->base),
                .ops = &ops,
                .self = self,
                .elsewhere = self->base.plan->service.fsm.data_elsewhere,
                .home = self->base.plan->service.fsm.data_home});
    if (status != LS_OK)
        return status;
    collector_service_use(self->service, task);
    return LS_OK;
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
    out->dropped_samples = figures.dropped;
    service_node_count(&self->base, &figures.common, out);
}

static void close_service(void *work)
{
    struct collector *self = work;
    collector_service_destroy(&self->service);
    agent_end_threads(&self->agent);
    service_node_close(&self->base);
}

const struct work_kind work_collector = {.create = create,
                                         .use = use,
                                         .run = service_node_run,
                                         .report = report,
                                         .close = close_service,
                                         .destroy = destroy,
                                         .idle_step = SERVICE_IDLE_STEP};
