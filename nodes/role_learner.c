#include <stdio.h>

#include "lockstep/log.h"

#include "role.h"
#include "weights.h"

static int read_batch(struct role *role, const struct ls_items *items)
{
    const struct trajectory_shape shape =
        agent_shape(&role->agent, role->plan->steps);
    if (items->n > role->n_trajectories)
        return ls_error(LS_EPROTO,
                        "%zu trajectories came, and all collectors together "
                        "have %zu environments",
                        items->n, role->n_trajectories);
    for (size_t i = 0; i < items->n; i++) {
        const int status =
            trajectory_read(&role->trajectories[i], &shape,
                            items->items[i].data, items->items[i].size);
        if (status != LS_OK)
            return ls_error_at(status, "item %zu of %zu", i, items->n);
        role->batch[i] = role->trajectories[i].view;
    }
    return LS_OK;
}

static void log_info(const struct ls_learn_info *info, int64_t train_iter)
{
    if (!ls_log_enabled(LS_LOG_INFO))
        return;
    char line[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < info->n && i < LS_LEARN_INFO_MAX; i++) {
        const int n = snprintf(line + used, sizeof line - used, "  %s %.5g",
                               info->items[i].name, info->items[i].value);
        if (n < 0 || (size_t)n >= sizeof line - used)
            break;
        used += (size_t)n;
    }
    ls_log_info("update %lld%s", (long long)train_iter, line);
}

/* iterations: that are over, or will be when these weights are the result. */
static int save(struct role *role, const char *name, int64_t iterations,
                char *path, size_t size)
{
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    const struct weights_note note = {.seed = role->plan->seed,
                                      .iteration = iterations,
                                      .train_iter = context->train_iter,
                                      .env_step = context->env_step,
                                      .env_episode = context->env_episode};
    return weights_save(&role->agent, &note, role->plan->out, name, path, size);
}

int role_resume(struct role *role, unsigned generation)
{
    const struct plan *plan = role->plan;
    weights_tidy(plan->out);
    if (generation == 0 && plan->checkpoint_every > 0)
        weights_remove(plan->out, WEIGHTS_CHECKPOINT);
    if (generation == 0)
        return LS_OK;
    int status = plan->checkpoint_every > 0
                     ? weights_load(&role->agent, plan->seed, plan->out,
                                    WEIGHTS_CHECKPOINT, &role->resumed)
                     : ls_error(LS_ENOENT, "learner.checkpoint_every is 0");
    if (status == LS_ENOENT) {
        ls_log_warn("restart %u begins with nothing learned: %s", generation,
                    ls_error_text());
        return LS_OK;
    }
    if (status != LS_OK)
        return status;
    role->learned = true;
    ls_log_info("restart %u goes on after update %lld", generation,
                (long long)role->resumed.train_iter);
    return LS_OK;
}

static int checkpoint(struct role *role,
                      const struct ls_online_context *context)
{
    char path[REPORT_PATH_MAX];
    const int64_t every = role->plan->checkpoint_every;
    return every > 0 && context->train_iter % every == 0
               ? save(role, WEIGHTS_CHECKPOINT, context->total_step + 1, path,
                      sizeof path)
               : LS_OK;
}

int role_learn(ls_step *step, void *self)
{
    struct role *role = self;
    struct ls_online_context *context = ls_step_context(step);
    if (context->trajectories.n == 0)
        return LS_OK; /* the run was finished while waiting for them */
    int status = read_batch(role, &context->trajectories);
    if (status != LS_OK)
        return status;
    struct ls_learn_info info = {.n = 0};
    role->learned = false; /* until it has gone well, there is no telling */
    status = role->agent.plugin->policy->learn(role->agent.policy, role->batch,
                                               context->trajectories.n, &info);
    if (status != LS_OK)
        return ls_error_at(status, "plugin %s: policy: learn",
                           role->agent.plugin->name);
    role->learned = true;
    context->train_iter++;
    log_info(&info, context->train_iter);
    status = checkpoint(role, context);
    return status == LS_OK ? agent_save(&role->agent, &context->policy)
                           : status;
}

int role_save_weights(void *self, ls_task *task, int status)
{
    struct role *role = self;
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(task));
    if (!role->learned)
        return LS_OK;
    /* Whatever ended the run, what was learned is worth having. */
    const int saved = save(role, WEIGHTS_FINAL, context->total_step,
                           role->weights, sizeof role->weights);
    if (saved == LS_OK && status == LS_OK && role->plan->checkpoint_every > 0)
        weights_remove(role->plan->out, WEIGHTS_CHECKPOINT);
    return saved;
}
