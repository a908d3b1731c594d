#include <string.h>

#include "role.h"

/* Row `i` of the trajectory takes what the last step left. */
static void note_step(struct ls_trajectory *trajectory, size_t i,
                      const struct agent *agent, const struct agent_step *step)
{
    const size_t n_observation = agent->spec.n_observation;
    const size_t n_action = agent->spec.n_action;
    const size_t n_extras = agent->plugin->policy->n_extras;
    memcpy(trajectory->next_observations + i * n_observation, agent->next,
           n_observation * sizeof(float));
    memcpy(trajectory->actions + i * n_action, agent->action,
           n_action * sizeof(float));
    if (n_extras > 0)
        memcpy(trajectory->extras + i * n_extras, agent->extras,
               n_extras * sizeof(float));
    trajectory->rewards[i] = step->reward;
    trajectory->terminated[i] = step->terminated;
    trajectory->truncated[i] = step->truncated;
}

/* The next `steps` steps of one environment; episodes go on from one
 * iteration to the next. */
static int collect_one(struct role *role, struct agent_env *env,
                       struct ls_online_context *context)
{
    struct agent *agent = &role->agent;
    struct ls_trajectory *trajectory = &role->trajectories[0].view;
    trajectory->n = role->plan->steps;
    for (size_t i = 0; i < trajectory->n; i++) {
        struct agent_step step;
        const int status = agent_step(
            agent, env, true,
            trajectory->observations + i * agent->spec.n_observation, &step);
        if (status != LS_OK)
            return status;
        note_step(trajectory, i, agent, &step);
        context->env_episode += step.terminated || step.truncated;
    }
    context->env_step += (int64_t)trajectory->n;
    return LS_OK;
}

static int send_one(struct role *role, struct ls_online_context *context)
{
    const struct trajectory_shape shape =
        agent_shape(&role->agent, role->plan->steps);
    const void *data;
    size_t size;
    ls_writer_clear(role->writer);
    int status =
        trajectory_write(&role->trajectories[0].view, &shape, role->writer);
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
