/* The role collector: plays, and gives its trajectories to the learner. */
#include "role.h"

/* The next `steps` steps of one environment; episodes go on from one
 * iteration to the next. */
static int collect_one(struct role *role, struct agent_env *env,
                       struct ls_online_context *context)
{
    const size_t n = role->plan->steps;
    double return_sum = 0.0;
    const int status = agent_collect(&role->agent, env, &role->trajectory.view,
                                     n, &context->env_episode, &return_sum);
    if (status == LS_OK)
        context->env_step += (int64_t)n;
    return status;
}

static int send_one(struct role *role, struct ls_online_context *context)
{
    const struct trajectory_shape shape =
        agent_shape(&role->agent, role->plan->steps);
    const void *data;
    size_t size;
    ls_writer_clear(role->writer);
    int status = trajectory_write(&role->trajectory.view, &shape, role->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(role->writer, &data, &size);
    if (status == LS_OK)
        status = ls_items_append(&context->trajectories, data, size);
    if (status == LS_OK)
        status = ls_numbers_append(&context->trajectory_end_idx,
                                   (int64_t)context->trajectories.n - 1);
    return status;
}

int role_collect(ls_step *step, void *self)
{
    struct role *role = self;
    struct ls_online_context *context = ls_step_context(step);
    int status = LS_OK;
    if (context->policy.size > 0)
        status = agent_load(&role->agent, &context->policy);
    for (size_t i = 0; i < role->agent.n_envs && status == LS_OK; i++) {
        status = ls_task_cancelled(ls_step_task(step));
        if (status == LS_OK)
            status = collect_one(role, &role->agent.envs[i], context);
        if (status == LS_OK)
            status = send_one(role, context);
    }
    return status;
}
