/* The role evaluator: plays whole episodes, and ends the run once solved. */
#include "role.h"

/* Mean return of whole episodes, with the best choice at every step. */
static int evaluate(struct role *role, ls_task *task, double *mean)
{
    struct agent_env *env = &role->agent.envs[0];
    double sum = 0.0;
    for (size_t episode = 0; episode < role->plan->episodes; episode++) {
        double episode_return;
        int64_t steps;
        const int status =
            agent_episode(&role->agent, env, task, &episode_return, &steps);
        if (status != LS_OK)
            return status;
        sum += episode_return;
    }
    *mean = sum / (double)role->plan->episodes;
    return LS_OK;
}

int role_evaluate(ls_step *step, void *self)
{
    struct role *role = self;
    ls_task *task = ls_step_task(step);
    struct ls_online_context *context = ls_step_context(step);
    if (context->policy.size == 0 ||
        context->train_iter % role->plan->every != 0)
        return LS_OK;
    int status = agent_load(&role->agent, &context->policy);
    if (status == LS_OK)
        status = evaluate(role, task, &context->eval_value);
    if (status != LS_OK)
        return status;
    context->last_eval_value = context->eval_value;
    context->last_eval_iter = context->train_iter;
    struct report report =
        report_of(role->plan->nodes[role->index].id, REPORT_EVALUATION);
    role_fill(role, task, &report);
    report.iteration++; /* the one that is under way */
    report.episodes = (int64_t)role->plan->episodes;
    role->sink.put(role->sink.self, &report);
    /* The barrier takes it to everyone, for the end of this very iteration; an
     * event could overtake the weights that another evaluator waits for. */
    if (context->eval_value >= role->plan->solved)
        ls_task_finish_here(task);
    return LS_OK;
}
