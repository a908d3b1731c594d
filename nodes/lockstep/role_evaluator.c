/* The role evaluator: plays whole episodes, and ends the run once solved. */
#include "role.h"

int role_evaluate(ls_step *step, void *self)
{
    struct role *role = self;
    ls_task *task = ls_step_task(step);
    struct ls_online_context *context = ls_step_context(step);
    if (context->policy.size == 0 ||
        context->train_iter % role->plan->every != 0)
        return LS_OK;
    int status = agent_load(&role->agent, &context->policy);
    if (status == LS_OK) /* policies are compared by the same episodes */
        status = agent_restore_env(&role->agent, 0, &role->first);
    struct agent_played played = {.steps = 0};
    if (status == LS_OK)
        status = player_evaluate(&role->agent, 0, role->plan->episodes, task,
                                 &played);
    if (status != LS_OK)
        return status;
    context->eval_value = played.return_sum / (double)played.episodes;
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
