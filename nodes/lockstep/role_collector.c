/* The role collector: plays, and gives its trajectories to the learner. */
#include "role.h"

static int send_one(struct role *role, const struct ls_trajectory *trajectory,
                    struct ls_online_context *context)
{
    const struct trajectory_shape shape =
        agent_shape(&role->agent, role->plan->steps);
    const void *data;
    size_t size;
    ls_writer_clear(role->writer);
    int status = trajectory_write(trajectory, &shape, role->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(role->writer, &data, &size);
    if (status == LS_OK)
        status = ls_items_append(&context->trajectories, data, size);
    if (status == LS_OK)
        status = ls_numbers_append(&context->trajectory_end_idx,
                                   (int64_t)context->trajectories.n - 1);
    return status;
}

/* The next `steps` steps of each environment; episodes go on from one
 * iteration to the next. */
int role_collect(ls_step *step, void *self)
{
    struct role *role = self;
    struct ls_online_context *context = ls_step_context(step);
    struct agent_played played = {.steps = 0};
    const size_t n = role->agent.n_envs;
    int status = LS_OK;
    if (context->policy.size > 0)
        status = agent_load(&role->agent, &context->policy);
    if (status == LS_OK)
        status = agent_collect(&role->agent, 0, n, role->trajectories,
                               role->plan->steps, ls_step_task(step), &played);
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = send_one(role, &role->trajectories[i], context);
    context->env_step += played.steps;
    context->env_episode += played.episodes;
    return status;
}
