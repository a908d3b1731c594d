/* A run: iterations, then what is due on every way out. */
#include "context_fields.h"
#include "lockstep/log.h"
#include "task_core.h"

/* A handler's failure ends the run though no step has failed. A step that
 * waits is told by its wait. */
static void ask_handlers(ls_task *task, struct outcome *outcome)
{
    if (outcome->status == LS_OK && task->node != NULL)
        ls_outcome_catch(outcome, ls_node_take_error(task->node));
}

/* Leaves its result in the pipeline's outcome. */
static void iterate_async(ls_task *task)
{
    struct pipeline *pipeline = &task->pipeline;
    struct lane *lane = &task->pool.lanes[0];
    struct group *group = &task->forwards;
    ls_group_forward(group, lane, NULL, pipeline->parts, pipeline->n, false);
    ask_handlers(task, &group->outcome);
    ls_group_back(group, lane, pipeline->parts, pipeline->n, true);
    ask_handlers(task, &group->outcome);
    pipeline->outcome = group->outcome;
}

static void iterate_here(ls_task *task)
{
    struct pipeline *pipeline = &task->pipeline;
    ls_pipeline_forward(pipeline, &task->pool.lanes[0], NULL);
    ask_handlers(task, &pipeline->outcome);
    ls_pipeline_back(pipeline);
    ask_handlers(task, &pipeline->outcome);
}

static bool has_steps(const ls_task *task)
{
    for (size_t i = 0; i < task->pipeline.n; i++)
        if (task->pipeline.parts[i]->active)
            return true;
    return false;
}

/* What was there before the first iteration counts too: a cancel, a handler
 * that has failed, a finish. */
static int begin(ls_task *task)
{
    ls_task_decorate(task);
    int status = ls_task_check(task);
    if (status == LS_OK && task->async)
        status = ls_pool_start(task);
    if (status == LS_OK)
        status = ls_task_cancelled(task);
    if (status == LS_OK && task->node != NULL)
        status = ls_node_take_error(task->node);
    return status;
}

static void iterate(ls_task *task, uint64_t n_iterations)
{
    struct outcome *outcome = &task->pipeline.outcome;
    for (uint64_t i = 0; i < n_iterations && !ls_task_finishing(task); i++) {
        if (i > 0)
            ls_context_reset(task->context);
        if (task->async)
            iterate_async(task);
        else
            iterate_here(task);
        if (outcome->status < 0)
            return;
        ++*ls_context_total_step(task->context);
        atomic_fetch_add(&task->iterations, 1);
    }
}

int ls_pipeline_finish(const struct pipeline *pipeline, ls_task *task,
                       int status)
{
    int first = LS_OK;
    for (size_t i = pipeline->n; i-- > 0;) {
        const struct ls_middleware *what = &pipeline->parts[i]->what;
        if (!pipeline->parts[i]->active || what->finish == NULL)
            continue;
        ls_log_set_step(what->name);
        atomic_store(&task->pool.lanes[0].doing, what->name);
        const int own =
            what->finish(what->self, task, status < 0 ? status : first);
        atomic_store(&task->pool.lanes[0].doing, NULL);
        if (first == LS_OK && own < 0)
            first = ls_error_at(own, "the end of step %s", what->name);
    }
    return first;
}

static void run(ls_task *task, uint64_t n_iterations)
{
    struct outcome *outcome = &task->pipeline.outcome;
    const bool runs = n_iterations > 0 && has_steps(task);
    outcome->status = LS_OK;
    ls_outcome_catch(outcome, begin(task));
    if (runs && outcome->status == LS_OK)
        iterate(task, n_iterations);
    ls_task_settle(task, outcome);
    if (runs && outcome->status == LS_OK)
        ls_outcome_catch(outcome, ls_finish_tell_at_end(task));
    ls_outcome_catch(outcome, ls_pipeline_finish(&task->pipeline, task,
                                                 ls_outcome_return(outcome)));
    ls_context_reset(task->context);
}

int ls_task_run(ls_task *task, uint64_t n_iterations)
{
    if (ls_forked_since(task->forks))
        return ls_forked_error("this task");
    if (atomic_exchange(&task->running, true))
        return ls_error(LS_ESTATE, "task: it is running already");
    const int64_t node = ls_log_node();
    const char *step = ls_log_step();
    if (task->node != NULL)
        ls_log_set_node((int64_t)ls_node_id(task->node));

    run(task, n_iterations);

    ls_log_set_step(step);
    ls_log_set_node(node);
    atomic_fetch_add(&task->run, 1);
    atomic_store(&task->running, false);
    return ls_outcome_return(&task->pipeline.outcome);
}
