/* The role collector: plays, and gives its trajectories to the learner. */
#include "role.h"

static int send_one(struct role *role, size_t i,
                    struct ls_online_context *context)
{
    const void *data;
    size_t size;
    int status = player_bytes(role->player, i, &data, &size);
    if (status == LS_OK)
        status = ls_items_append(&context->trajectories, data, size);
    if (status == LS_OK)
        status = ls_numbers_append(&context->trajectory_end_idx,
                                   (int64_t)context->trajectories.n - 1);
    return status;
}

/* The next steps of each environment. */
int role_collect(ls_step *step, void *self)
{
    struct role *role = self;
    struct ls_online_context *context = ls_step_context(step);
    struct agent_played played = {.steps = 0};
    const size_t n = role->agent.n_envs;
    int status = LS_OK;
    if (role->is_last)
        return LS_OK;
    if (context->policy.size > 0)
        status = agent_load(&role->agent, &context->policy);
    if (status == LS_OK)
        status = player_collect(role->player, n, role->plan->steps,
                                ls_step_task(step), &played, NULL);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = send_one(role, i, context);
    context->env_step += played.steps;
    context->env_episode += played.episodes;
    return status;
}
