/* The role evaluator: plays whole episodes, and ends the run once solved. */
#include "lockstep/codec.h"
#include "lockstep/log.h"

#include "role.h"

/* So that nobody goes on with what comes after. */
static int emit_verdict(const struct role *role, ls_writer *writer,
                        int64_t updates)
{
    struct ls_emission emission = {.event = ROLE_VERDICT,
                                   .scope = LS_SCOPE_REMOTE,
                                   .delivery = LS_DELIVERY_RELIABLE};
    ls_write_int(writer, updates);
    const int status = ls_writer_bytes(writer, &emission.data, &emission.size);
    return status == LS_OK ? ls_emit_with(ls_task_node(role->task), &emission)
                           : status;
}

static void give_verdict(const struct role *role, int64_t updates)
{
    ls_writer *writer = NULL;
    if (role->plan->record != NULL || role->plan->tape != NULL)
        return;
    int status = ls_writer_create(&writer);
    if (status == LS_OK)
        status = emit_verdict(role, writer, updates);
    ls_writer_destroy(&writer);
    if (status != LS_OK)
        ls_log_debug("the learner hears of the verdict when it has learned: %s",
                     ls_error_text());
}

static bool is_due(const struct role *role,
                   const struct ls_online_context *context)
{
    return context->policy.size > 0 && context->train_iter > 0 &&
           context->train_iter % role->plan->every == 0;
}

int role_evaluate(ls_step *step, void *self)
{
    struct role *role = self;
    ls_task *task = ls_step_task(step);
    struct ls_online_context *context = ls_step_context(step);
    if (!is_due(role, context))
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
    status = role_judge(role);
    if (status != LS_OK)
        return status;
    struct report report =
        report_of(role->plan->nodes[role->index].id, REPORT_EVALUATION);
    role_fill(role, task, &report);
    report.episodes = (int64_t)role->plan->episodes;
    role->sink.put(role->sink.self, &report);
    /* The barrier takes it to everyone, for the end of this very iteration; an
     * event could come when a node has begun the next. */
    if (context->eval_value >= role->plan->solved) {
        ls_task_finish_here(task);
        give_verdict(role, context->train_iter);
    }
    return LS_OK;
}
