/* The role learner: learns from what the collectors bring. */
#include <stdio.h>

#include "lockstep/log.h"

#include "role.h"
#include "weights.h"

static void log_info(const ls_learner_info *info, int64_t train_iter)
{
    if (!ls_log_enabled(LS_LOG_INFO))
        return;
    char line[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < ls_learner_info_count(info); i++) {
        const int n = snprintf(line + used, sizeof line - used, "  %s %.5g",
                               ls_learner_info_name(info, i),
                               ls_learner_info_value(info, i));
        if (n < 0 || (size_t)n >= sizeof line - used)
            break;
        used += (size_t)n;
    }
    ls_log_info("update %lld%s", (long long)train_iter, line);
}

/* iterations, updates: that are over, or will be when these weights are the
 * result. */
static struct weights_note note_of(const struct role *role, int64_t iterations,
                                   int64_t updates)
{
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    return (struct weights_note){.seed = role->plan->seed,
                                 .iteration = iterations,
                                 .train_iter = updates,
                                 .env_step = context->env_step,
                                 .env_episode = context->env_episode};
}

/* An update is over, of this iteration or an earlier one. */
static int take_update(struct role *role, struct ls_online_context *context,
                       const ls_learner_info *info)
{
    log_info(info, context->train_iter + 1);
    int status = training_publish(role->training, ls_task_node(role->task));
    if (status != LS_OK)
        return status;
    context->train_iter++;
    const struct ls_bytes *policy = training_policy(role->training);
    return ls_bytes_set(&context->policy, policy->data, policy->size);
}

int role_learn(ls_step *step, void *self)
{
    struct role *role = self;
    struct ls_online_context *context = ls_step_context(step);
    if (context->trajectories.n == 0)
        return LS_OK; /* the run was finished while waiting for them */
    const struct weights_note note = note_of(
        role, context->total_step + 1,
        context->train_iter + 1 + (int64_t)training_under_way(role->training));
    ls_learner_info *info = NULL;
    bool is_over = false;
    int status = ls_learner_info_create(&info);
    if (status != LS_OK)
        return status;
    status = training_learn(role->training, &context->trajectories, &note, info,
                            &is_over);
    role->learned =
        training_is_whole(role->training) && (is_over || role->learned);
    if (is_over)
        status = take_update(role, context, info);
    else
        ls_bytes_clear(&context->policy); /* there is nothing newer */
    ls_learner_info_destroy(&info);
    return status;
}

int role_save_weights(void *self, ls_task *task, int status)
{
    struct role *role = self;
    const struct ls_online_context *context =
        ls_context_data(ls_task_context(task));
    if (!role->learned)
        return LS_OK;
    /* Whatever ended the run, what was learned is worth having. */
    const struct weights_note note =
        note_of(role, context->total_step, context->train_iter);
    const int saved =
        training_save(role->training, &note, role->plan->folder, WEIGHTS_FINAL,
                      role->weights, sizeof role->weights);
    return saved == LS_OK && status == LS_OK ? training_end(role->training)
                                             : saved;
}
