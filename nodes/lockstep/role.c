#include "role.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In the flags of both ends of an iteration: the one that begins, or that comes
 * next, is the last. */
#define FLAG_LAST 16u

/* The life whose streams a node draws from. The first of a later life of the
 * run has what its environments drew in the checkpoint; if nothing had been
 * saved yet, it begins as in the first life, so that it learns the same. */
static unsigned life_of(const struct ls_plugin *plugin, unsigned generation)
{
    const bool is_saved = plugin->env->n_parts > 0;
    return is_saved && generation % PLAN_LIFE_RESTARTS == 0 ? 0 : generation;
}

/* Evaluators draw from streams of their own: agent.h. */
static int init_agent(struct role *role, unsigned generation,
                      const struct ls_plugin *plugin)
{
    const struct plan *plan = role->plan;
    const struct plan_node *node = &plan->nodes[role->index];
    uint32_t before = 0;
    if (node->role != PLAN_EVALUATOR)
        return agent_init(&role->agent, plugin, plan, node->id,
                          life_of(plugin, generation),
                          node->role == PLAN_COLLECTOR ? plan->envs : 1);
    for (size_t i = 0; i < role->index; i++)
        before += plan->nodes[i].role == PLAN_EVALUATOR;
    const int status =
        agent_init(&role->agent, plugin, plan, AGENT_EVALUATOR - before, 0, 1);
    return status == LS_OK ? agent_keep_env(&role->agent, 0, &role->first)
                           : status;
}

int role_init(struct role *out, const struct plan *plan, size_t index,
              unsigned generation, const struct ls_plugin *plugin,
              struct report_sink sink, struct node_watch watch)
{
    const struct plan_node *node = &plan->nodes[index];
    struct role role = {.plan = plan,
                        .index = index,
                        .generation = generation,
                        .resumed = {.seed = plan->seed},
                        .sink = sink};
    if (node->role == PLAN_MEMBER) {
        const int made =
            member_create(&role.member, &plan->barrier, watch.member);
        if (made == LS_OK)
            *out = role;
        return made;
    }
    int status = init_agent(&role, generation, plugin);
    if (status == LS_OK && node->role == PLAN_LEARNER)
        status =
            agent_add_replicas(&role.agent, plan, plan->learner.n_devices - 1);
    if (status == LS_OK && node->role == PLAN_LEARNER)
        weights_tidy(plan->folder);
    if (status != LS_OK) {
        role_fini(&role);
        return status;
    }
    *out = role;
    return LS_OK;
}

void role_fini(struct role *role)
{
    if (role->agent.plugin != NULL)
        agent_fini(&role->agent);
    ls_bytes_clear(&role->first);
    role_state_fini(role);
    member_destroy(&role->member);
    memset(role, 0, sizeof *role);
}

/* What a learner learns from at a time. */
static size_t batch_of(const struct plan *plan)
{
    const size_t n = plan_count(plan, PLAN_COLLECTOR) * plan->envs;
    return plan_is_shared(plan) ? n / plan_count(plan, PLAN_LEARNER) : n;
}

int role_start(struct role *role, ls_runtime *runtime)
{
    const struct plan *const plan = role->plan;
    const struct plan_node *const node = &plan->nodes[role->index];
    int status = LS_OK;
    if (node->role == PLAN_COLLECTOR)
        status = player_create(&role->player, &role->agent, plan->envs,
                               plan->envs, plan->steps);
    if (status == LS_OK && node->role == PLAN_COLLECTOR)
        status = agent_use_threads(&role->agent, runtime, plan->threads);
    if (node->role == PLAN_LEARNER)
        status = role_group_create(role);
    if (status == LS_OK && node->role == PLAN_LEARNER)
        status = training_start(&role->training, runtime, plan, &role->agent,
                                node->id, batch_of(plan), role->group);
    if (status == LS_OK && node->role == PLAN_LEARNER)
        status = role_hear_verdicts(role);
    return status;
}

void role_stop(struct role *role)
{
    role_hear_no_verdicts(role);
    agent_end_threads(&role->agent);
    player_destroy(&role->player);
    training_stop(&role->training);
    role_group_destroy(role);
}

void role_fill(const struct role *role, ls_task *task, struct report *out)
{
    if (role->member != NULL)
        member_report(role->member, out);
    (void)snprintf(out->weights, sizeof out->weights, "%s", role->weights);
    (void)snprintf(out->unsaved, sizeof out->unsaved, "%s", role->unsaved);
    if (task == NULL)
        return;
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(task));
    out->iteration = role_iterations(role);
    out->env_step = context->env_step;
    out->env_episode = context->env_episode;
    out->train_iter = context->train_iter;
    out->discarded = role->discarded;
    if (role->state.step != NULL)
        out->failed_saves = (int64_t)ls_checkpoint_failures(role->state.step);
    if (isfinite(context->last_eval_value))
        out->eval_value = context->last_eval_value;
    if (role->training == NULL)
        return;
    const struct ls_learner_counts *const counts =
        training_counts(role->training);
    out->train_ns = counts->grad_ns;
    out->load_ns = counts->load_ns;
    out->overlap_ns = counts->overlap_ns;
    out->trained = (int64_t)counts->trained;
    out->wait_ns = role->plan->learner.loaders > 0 ? counts->load_wait_ns
                                                   : counts->dequeue_ns;
    const void *published;
    size_t size;
    training_published(role->training, &published, &size);
    report_set_metrics(out, published, size);
}

static void on_progress(void *self, const struct ls_progress_report *progress)
{
    const struct role *role = self;
    struct report report = {
        .kind = REPORT_PROGRESS,
        .node = role->plan->nodes[role->index].id,
        /* of the run, also in a later life of the node */
        .iteration = role_iterations(role) + (progress->last ? 0 : 1),
        .env_step = progress->env_step,
        .train_iter = progress->train_iter,
        .env_steps_per_s = progress->env_steps_per_s,
        .eval_value = progress->eval_value,
    };
    if (role->member != NULL)
        member_report(role->member, &report);
    role->sink.put(role->sink.self, &report);
}

/* Whether the learner has reached a limit of the run. */
static bool is_over(const struct role *role)
{
    const struct plan *plan = role->plan;
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    const double minutes =
        (double)(ls_now(ls_task_runtime(role->task)) - role->started_at) /
        (60.0 * (double)LS_NS_PER_S);
    return (plan->stop_env_step > 0 &&
            context->env_step >= plan->stop_env_step) ||
           (plan->stop_minutes > 0.0 && role->started_at != 0 &&
            minutes >= plan->stop_minutes);
}

/* As an iteration ends. */
static uint32_t say_last(void *self)
{
    const struct role *role = self;
    return role->training != NULL && is_over(role) ? FLAG_LAST : 0;
}

static void hear_last(void *self, const struct ls_barrier_epoch_info *info)
{
    struct role *role = self;
    role->is_last = (info->flags & FLAG_LAST) != 0;
}

static int end_welcome(void *self, ls_task *task, int status)
{
    struct role *role = self;
    role_group_leave(role, status);
    return role->welcome.fn != NULL
               ? role->welcome.finish(role->welcome.self, task, status)
               : LS_OK;
}

static void release_welcome(void *self)
{
    struct role *role = self;
    if (role->welcome.fn != NULL)
        role->welcome.release(role->welcome.self);
}

/* Who says what is learned, and how much was collected for it: learners that
 * share each batch have the same. */
static const char *speaker(const struct plan *plan)
{
    return plan_is_shared(plan) ? "learner.0" : "learner";
}

/* A step that holds the exchange: only the first iteration of a round has it.
 */
static void use_welcome(struct role *role, ls_task *task)
{
    role->welcome = ls_mw_exchange(
        task, &(struct ls_exchange_options){
                  .name = "welcome",
                  .from = speaker(role->plan),
                  .to = "collector,evaluator",
                  .fields = "policy,train_iter,total_step,env_step,env_episode",
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

/* An iteration that was saved is over, even if it was broken after that. */
static void count_saved(const struct role *role,
                        struct ls_online_context *context)
{
    const int64_t saved = role->index == role->plan->first
                              ? ls_checkpoint_epoch(role->state.step)
                              : LS_CHECKPOINT_NONE;
    if (context->total_step < saved)
        context->total_step = saved;
}

int64_t role_iterations(const struct role *role)
{
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    return role->has_ended ? role->before.iteration : context->total_step;
}

/* Everyone works with the learner's weights from here on. What a collector has
 * counted is its own. */
static int begin_round(ls_step *step, struct role *role)
{
    struct ls_online_context *context = ls_step_context(step);
    const enum plan_role kind = role->plan->nodes[role->index].role;
    const int64_t steps = context->env_step, episodes = context->env_episode;
    ls_wrapped *wrapped;
    int status = kind == PLAN_LEARNER ? role_begin_training(role) : LS_OK;
    count_saved(role, context);
    if (status == LS_OK)
        status = role_group_begin_round(role);
    if (status == LS_OK && kind == PLAN_LEARNER)
        status = ls_bytes_set(&context->policy,
                              training_policy(role->training)->data,
                              training_policy(role->training)->size);
    if (status == LS_OK && role->welcome.fn != NULL) {
        status = ls_wrap(step, &role->welcome, &wrapped);
        if (status == LS_OK)
            status = ls_wrap_back(wrapped);
    }
    if (kind == PLAN_LEARNER)
        ls_bytes_clear(&context->policy);
    if (kind == PLAN_COLLECTOR) {
        context->env_step = steps;
        context->env_episode = episodes;
    }
    return status;
}

int role_welcome(ls_step *step, void *self)
{
    struct role *role = self;
    const struct ls_online_context *context = ls_step_context(step);
    const uint64_t round = ls_task_round(role->task);
    int status = LS_OK;
    if (role->started_at == 0)
        role->started_at = ls_step_now(step);
    if (round != role->round) {
        role->round = round;
        status = begin_round(step, role);
    }
    role->before = (struct weights_note){.iteration = context->total_step,
                                         .train_iter = context->train_iter,
                                         .env_step = context->env_step,
                                         .env_episode = context->env_episode};
    return status;
}

int role_end(void *self, ls_task *task, int status)
{
    struct role *role = self;
    struct ls_online_context *context = ls_context_data(ls_task_context(task));
    const struct weights_note *before = &role->before;
    role->has_ended =
        status == LS_OK && context->total_step == before->iteration + 1;
    if (!role->has_ended)
        return LS_OK;
    /* An evaluator has those of the weights that it evaluated. */
    if (role->plan->nodes[role->index].role == PLAN_EVALUATOR)
        return role_judge_end(role);
    role->discarded = context->env_step - before->env_step;
    context->env_step = before->env_step;
    context->env_episode = before->env_episode;
    return LS_OK;
}

/* What collectors bring goes to the learner that learns from it, and how much
 * it was to all. */
static void use_parts(struct role *role, ls_task *task)
{
    const int timeout_ms = role->plan->world.step_timeout_ms;
    const size_t part = plan_part(role->plan, role->index);
    char name[32], from[32], to[32];
    (void)snprintf(name, sizeof name, "trajectories.%zu", part);
    (void)snprintf(from, sizeof from, "collector.%zu", part);
    (void)snprintf(to, sizeof to, "learner.%zu", part);
    (void)ls_task_use(
        task, ls_mw_exchange(task, &(struct ls_exchange_options){
                                       .name = "collected",
                                       .from = "collector",
                                       .to = "learner",
                                       .increments = "env_step,env_episode",
                                       .timeout_ms = timeout_ms}));
    (void)ls_task_use(
        task,
        ls_mw_exchange(task, &(struct ls_exchange_options){
                                 .name = name,
                                 .from = from,
                                 .to = to,
                                 .fields = "trajectories,trajectory_end_idx",
                                 .timeout_ms = timeout_ms}));
}

static void use_trajectories(struct role *role, ls_task *task)
{
    const struct ls_exchange_options options = {
        .name = "trajectories",
        .from = "collector",
        .to = "learner",
        .fields = "trajectories,trajectory_end_idx",
        .increments = "env_step,env_episode",
        .timeout_ms = role->plan->world.step_timeout_ms};
    if (plan_is_shared(role->plan))
        use_parts(role, task);
    else
        (void)ls_task_use(task, ls_mw_exchange(task, &options));
}

static void use_exchange(struct role *role, ls_task *task)
{
    const int timeout_ms = role->plan->world.step_timeout_ms;
    (void)ls_task_use(task,
                      ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "policy",
                                               .from = speaker(role->plan),
                                               .to = "collector,evaluator",
                                               .fields = "policy,train_iter",
                                               .skip = 1,
                                               .timeout_ms = timeout_ms}));
    (void)ls_task_use(task,
                      ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "counters",
                                               .from = speaker(role->plan),
                                               .to = "evaluator",
                                               .fields = "env_step,env_episode",
                                               .skip = 1,
                                               .timeout_ms = timeout_ms}));
    use_trajectories(role, task);
}

/* Who has to be there, the node that runs the task makes sure of. */
static void use_barrier(struct role *role, ls_task *task)
{
    const struct ls_barrier_options options = {
        .group = PLAN_LABEL,
        .expected = plan_can_lose_nodes(role->plan)
                        ? LS_BARRIER_ANY
                        : ls_node_world_size(ls_task_node(task)),
        .timeout_ms = role->plan->world.step_timeout_ms,
        .left = hear_last,
        .flags = say_last,
        .self = role};
    (void)ls_task_use(task, ls_mw_barrier(task, &options));
}

/* What a node of this role does in an iteration. */
static struct ls_middleware step_of(struct role *role)
{
    struct ls_middleware step = {.name = "evaluate",
                                 .fn = role_evaluate,
                                 .self = role,
                                 .finish = role_end};
    switch (role->plan->nodes[role->index].role) {
    case PLAN_LEARNER:
        step.name = "learn";
        step.fn = role_learn;
        step.finish = role_save_weights;
        break;
    case PLAN_COLLECTOR:
        step.name = "collect";
        step.fn = role_collect;
        break;
    case PLAN_EVALUATOR:
    case PLAN_MEMBER:
    case PLAN_COORDINATOR:
    case PLAN_N_ROLES:
        break;
    }
    return step;
}

void role_use(struct role *role, ls_task *task, ls_rpc *calls)
{
    role->task = task;
    if (role->member != NULL) {
        (void)ls_task_use(
            task, ls_mw_progress(
                      task, &(struct ls_progress_options){.interval_ms = 200,
                                                          .sink = on_progress,
                                                          .self = role}));
        (void)ls_task_use(task, member_step(role->member, task));
        return;
    }
    role_use_state(role, task, calls);
    use_barrier(role, task);
    (void)ls_task_use(task, ls_mw_progress(task, &(struct ls_progress_options){
                                                     .interval_ms = 200,
                                                     .sink = on_progress,
                                                     .self = role}));
    use_welcome(role, task);
    use_exchange(role, task);
    (void)ls_task_use(task, step_of(role));
}
