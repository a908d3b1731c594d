#include "role.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t n_collectors(const struct plan *plan)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        n += plan->nodes[i].role == PLAN_COLLECTOR;
    return n;
}

static int init_trajectories(struct role *role, size_t n)
{
    const struct trajectory_shape shape =
        agent_shape(&role->agent, role->plan->steps);
    role->trajectories = calloc(n, sizeof *role->trajectories);
    role->batch = calloc(n, sizeof *role->batch);
    if (role->trajectories == NULL || role->batch == NULL)
        return ls_error(LS_ENOMEM, "%zu trajectories", n);
    while (role->n_trajectories < n) {
        const int status =
            trajectory_init(&role->trajectories[role->n_trajectories], &shape);
        if (status != LS_OK)
            return status;
        role->n_trajectories++;
    }
    return LS_OK;
}

int role_init(struct role *out, const struct plan *plan, size_t index,
              unsigned generation, const struct ls_plugin *plugin,
              struct report_sink sink, const struct member_watch *watch)
{
    const struct plan_node *node = &plan->nodes[index];
    struct role role = {.plan = plan, .index = index, .sink = sink};
    const bool collects = node->role == PLAN_COLLECTOR;
    if (node->role == PLAN_MEMBER) {
        const int made = member_create(&role.member, &plan->barrier, watch);
        if (made == LS_OK)
            *out = role;
        return made;
    }
    int status = agent_init(&role.agent, plugin, plan, node->id, generation,
                            collects ? plan->envs : 1);
    if (status != LS_OK)
        return status;
    status = ls_writer_create(&role.writer);
    if (status == LS_OK && collects)
        status = init_trajectories(&role, 1);
    if (status == LS_OK && node->role == PLAN_LEARNER)
        status = init_trajectories(&role, n_collectors(plan) * plan->envs);
    if (status == LS_OK && node->role == PLAN_LEARNER)
        status = role_resume(&role, generation);
    if (status != LS_OK) {
        role_fini(&role);
        return status;
    }
    *out = role;
    return LS_OK;
}

void role_fini(struct role *role)
{
    for (size_t i = 0; i < role->n_trajectories; i++)
        trajectory_fini(&role->trajectories[i]);
    free(role->trajectories);
    free(role->batch);
    ls_writer_destroy(&role->writer);
    agent_fini(&role->agent);
    member_destroy(&role->member);
    memset(role, 0, sizeof *role);
}

struct report role_report(const struct role *role, ls_task *task,
                          enum report_kind kind)
{
    struct report report = {
        .kind = kind,
        .node = role->plan->nodes[role->index].id,
        .eval_value = NAN,
    };
    if (role->member != NULL)
        member_report(role->member, &report);
    if (task == NULL)
        return report;
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(task));
    report.iteration = context->total_step;
    report.env_step = context->env_step;
    report.env_episode = context->env_episode;
    report.train_iter = context->train_iter;
    if (isfinite(context->last_eval_value))
        report.eval_value = context->last_eval_value;
    return report;
}

static void on_progress(void *self, const struct ls_progress_report *progress)
{
    const struct role *role = self;
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    struct report report = {
        .kind = REPORT_PROGRESS,
        .node = role->plan->nodes[role->index].id,
        /* of the run, also in a later life of the node */
        .iteration = context->total_step + (progress->last ? 0 : 1),
        .env_step = progress->env_step,
        .train_iter = progress->train_iter,
        .env_steps_per_s = progress->env_steps_per_s,
        .eval_value = progress->eval_value,
    };
    if (role->member != NULL)
        member_report(role->member, &report);
    role->sink.put(role->sink.self, &report);
}

/* End everywhere when the time is up. A step of its own, since it is the one
 * end that does not follow from the seed. */
static int stop_in_time(ls_step *step, void *self)
{
    struct role *role = self;
    if (role->started_at == 0)
        role->started_at = ls_step_now(step);
    const int status = ls_yield(step);
    const double minutes = (double)(ls_step_now(step) - role->started_at) /
                           (60.0 * (double)LS_NS_PER_S);
    if (minutes >= role->plan->stop_minutes)
        ls_task_finish_here(ls_step_task(step));
    return status;
}

static void use_ends(struct role *role, ls_task *task)
{
    const struct plan *plan = role->plan;
    const enum plan_role kind = plan->nodes[role->index].role;
    if (kind != PLAN_LEARNER)
        return;
    if (plan->stop_env_step > 0)
        (void)ls_task_use(task,
                          ls_mw_stop(task, &(struct ls_stop_options){
                                               .env_step = plan->stop_env_step,
                                               .eval_value = NAN}));
    if (plan->stop_minutes > 0.0)
        (void)ls_task_use_fn(task, stop_in_time, role);
}

static int end_welcome(void *self, ls_task *task, int status)
{
    struct role *role = self;
    return role->welcome.finish(role->welcome.self, task, status);
}

static void release_welcome(void *self)
{
    struct role *role = self;
    role->welcome.release(role->welcome.self);
}

/* A step that holds the exchange: only the first iteration of a round has it.
 */
static void use_welcome(struct role *role, ls_task *task)
{
    role->welcome = ls_mw_exchange(
        task, &(struct ls_exchange_options){
                  .name = "welcome",
                  .from = "learner",
                  .to = "collector,evaluator",
                  .fields = "policy,train_iter,total_step",
                  .timeout_ms = role->plan->world.step_timeout_ms});
    struct ls_middleware step = role->welcome;
    if (step.status == LS_OK) {
        step.name = "welcome";
        step.fn = role_welcome;
        step.self = role;
        step.release = release_welcome;
        step.finish = end_welcome;
    }
    (void)ls_task_use(task, step);
}

int role_welcome(ls_step *step, void *self)
{
    struct role *role = self;
    struct ls_online_context *context = ls_step_context(step);
    const enum plan_role kind = role->plan->nodes[role->index].role;
    const uint64_t round = ls_task_round(role->task);
    ls_wrapped *wrapped;
    if (round == role->round)
        return LS_OK;
    role->round = round;
    int status = LS_OK;
    if (kind == PLAN_LEARNER)
        status = agent_save(&role->agent, &context->policy);
    if (status == LS_OK)
        status = ls_wrap(step, &role->welcome, &wrapped);
    if (status == LS_OK)
        status = ls_wrap_back(wrapped);
    /* The others use the weights of the iteration itself. */
    if (kind != PLAN_COLLECTOR)
        ls_bytes_clear(&context->policy);
    return status;
}

static void use_exchange(struct role *role, ls_task *task)
{
    const enum plan_role kind = role->plan->nodes[role->index].role;
    const int timeout_ms = role->plan->world.step_timeout_ms;
    (void)ls_task_use(task,
                      ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "policy",
                                               .from = "learner",
                                               .to = "collector,evaluator",
                                               .fields = "policy,train_iter",
                                               .skip = kind == PLAN_COLLECTOR,
                                               .timeout_ms = timeout_ms}));
    (void)ls_task_use(task,
                      ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "counters",
                                               .from = "learner",
                                               .to = "evaluator",
                                               .fields = "env_step,env_episode",
                                               .timeout_ms = timeout_ms}));
    (void)ls_task_use(
        task,
        ls_mw_exchange(task, &(struct ls_exchange_options){
                                 .name = "trajectories",
                                 .from = "collector",
                                 .to = "learner",
                                 .fields = "trajectories,trajectory_end_idx",
                                 .increments = "env_step,env_episode",
                                 .timeout_ms = timeout_ms}));
}

/* Who has to be there, the node that runs the task makes sure of. */
static void use_barrier(struct role *role, ls_task *task)
{
    const struct ls_barrier_options any = {.expected = LS_BARRIER_ANY};
    (void)ls_task_use(
        task, ls_mw_barrier(task, plan_can_lose_nodes(role->plan) ? &any : NULL,
                            role->plan->world.step_timeout_ms));
}

/* The counters go on where the checkpoint was made. */
static void set_counters(const struct weights_note *from, ls_task *task)
{
    struct ls_online_context *context = ls_context_data(ls_task_context(task));
    context->total_step = from->iteration;
    context->train_iter = from->train_iter;
    context->env_step = from->env_step;
    context->env_episode = from->env_episode;
}

void role_use(struct role *role, ls_task *task)
{
    role->task = task;
    if (role->member != NULL) {
        (void)ls_task_use(task, ls_mw_progress(task, 200, on_progress, role));
        (void)ls_task_use(task, member_step(role->member, task));
        return;
    }
    set_counters(&role->resumed, task);
    use_barrier(role, task);
    use_ends(role, task);
    (void)ls_task_use(task, ls_mw_progress(task, 200, on_progress, role));
    use_welcome(role, task);
    use_exchange(role, task);
    switch (role->plan->nodes[role->index].role) {
    case PLAN_LEARNER:
        (void)ls_task_use(task,
                          (struct ls_middleware){.name = "learn",
                                                 .fn = role_learn,
                                                 .self = role,
                                                 .finish = role_save_weights});
        break;
    case PLAN_COLLECTOR:
        (void)ls_task_use(task, (struct ls_middleware){.name = "collect",
                                                       .fn = role_collect,
                                                       .self = role});
        break;
    case PLAN_EVALUATOR:
    case PLAN_MEMBER:
    case PLAN_N_ROLES:
        (void)ls_task_use(task, (struct ls_middleware){.name = "evaluate",
                                                       .fn = role_evaluate,
                                                       .self = role});
        break;
    }
}
