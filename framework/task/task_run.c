/* A run: iterations, then what is due on every way out. */
#include "context_fields.h"
#include "lockstep/log.h"
#include "task_core.h"
#include "trace_gate.h"

/* A handler's failure ends the run though no step has failed. A step that
 * waits is told by its wait. */
static void ask_handlers(ls_task *task, struct ls_failure *outcome)
{
    if (outcome->status == LS_OK && task->node != NULL)
        ls_outcome_catch(outcome, ls_node_take_error(task->node));
}

static void hand_over(struct ls_failure *to, const struct ls_failure *from)
{
    to->status = from->status;
    if (from->status < 0)
        *to = *from; /* with its text */
}

/* A recorder is to take less than 1 % of the time: where iterations are too
 * short for their records, one stands for some that follow. How long one takes
 * is known from those that were left out; they are doubled at most, so that a
 * pipeline that turns slow is soon recorded again. */
#define RECORD_NS      INT64_C(300)
#define SHARE          256
#define UNRECORDED_MAX 1023u

static void recording_begins(ls_task *task)
{
    if (task->trace == NULL)
        return;
    if (task->unrecorded > 0) {
        task->unrecorded--;
        return;
    }
    task->recording = true;
    task->began_at = ls_trace_now(task->trace);
}

static unsigned to_leave_out(const ls_task *task, int64_t ended_at)
{
    const int64_t cost = (2 * (int64_t)task->pipeline.n + 1) * RECORD_NS;
    int64_t each = ended_at - task->began_at - cost;
    if (task->left_out > 0)
        each = (task->began_at - task->ended_at) / task->left_out;
    if (each >= SHARE * cost)
        return 0;
    const int64_t wanted = each > 0 ? SHARE * cost / each : UNRECORDED_MAX;
    const unsigned most = 2 * task->left_out + 1;
    const unsigned limit = most < UNRECORDED_MAX ? most : UNRECORDED_MAX;
    return wanted < limit ? (unsigned)wanted : limit;
}

static void recording_ends(ls_task *task)
{
    if (!task->recording)
        return;
    task->recording = false;
    const struct ls_trace_record record = {.kind = LS_TRACE_ITERATION,
                                           .begin_ns = task->began_at,
                                           .end_ns = ls_trace_now(task->trace),
                                           .number =
                                               atomic_load(&task->iterations),
                                           .peer = LS_TRACE_NOBODY};
    ls_trace_add(task->trace, &record);
    if (ls_trace_all(task->trace))
        return;
    task->left_out = task->unrecorded = to_leave_out(task, record.end_ns);
    task->ended_at = record.end_ns;
}

/* The forward halves; the pipeline's outcome tells the first error. */
static void go_forward(ls_task *task)
{
    struct pipeline *pipeline = &task->pipeline;
    struct lane *lane = &task->pool.lanes[0];
    task->agreement.there = false;
    recording_begins(task);
    if (!task->async) {
        ls_pipeline_forward(pipeline, lane, NULL);
        ask_handlers(task, &pipeline->outcome);
        return;
    }
    struct group *group = &task->forwards;
    ls_group_forward(group, lane, NULL, pipeline->parts, pipeline->n, false);
    ask_handlers(task, &group->outcome);
    hand_over(&pipeline->outcome, &group->outcome);
}

/* What they have left suspended, and the end of the iteration. */
static void go_back(ls_task *task)
{
    struct pipeline *pipeline = &task->pipeline;
    struct ls_failure *outcome = &pipeline->outcome;
    if (!task->async) {
        ls_pipeline_back(pipeline);
        ask_handlers(task, outcome);
    } else {
        struct group *group = &task->forwards;
        hand_over(&group->outcome, outcome);
        ls_group_back(group, &task->pool.lanes[0], pipeline->parts, pipeline->n,
                      true);
        ask_handlers(task, &group->outcome);
        hand_over(outcome, &group->outcome);
    }
    recording_ends(task);
    if (outcome->status < 0)
        return;
    ++*ls_context_total_step(task->context);
    atomic_fetch_add(&task->iterations, 1);
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
    const struct ls_failure *outcome = &task->pipeline.outcome;
    for (uint64_t i = 0; i < n_iterations && !ls_task_finishing(task); i++) {
        if (i > 0)
            ls_context_reset(task->context);
        go_forward(task);
        go_back(task);
        if (outcome->status < 0)
            return;
    }
}

int ls_pipeline_finish(const struct pipeline *pipeline, ls_task *task,
                       int status)
{
    struct ls_failure first = {.status = LS_OK};
    for (size_t i = pipeline->n; i-- > 0;) {
        const struct ls_middleware *what = &pipeline->parts[i]->what;
        if (!pipeline->parts[i]->active || what->finish == NULL)
            continue;
        ls_log_set_step(what->name);
        atomic_store(&task->pool.lanes[0].doing, what->name);
        const int own =
            what->finish(what->self, task, status < 0 ? status : first.status);
        atomic_store(&task->pool.lanes[0].doing, NULL);
        if (first.status == LS_OK && own < 0)
            ls_failure_keep(&first,
                            ls_error_at(own, "the end of step %s", what->name));
    }
    /* Those after it may have left a text of their own. */
    return ls_failure_return(&first);
}

static void end(ls_task *task, bool ran)
{
    struct ls_failure *outcome = &task->pipeline.outcome;
    ls_task_settle(task, outcome);
    if (ran && outcome->status == LS_OK)
        ls_outcome_catch(outcome, ls_finish_tell_at_end(task));
    ls_outcome_catch(outcome, ls_pipeline_finish(&task->pipeline, task,
                                                 ls_failure_return(outcome)));
    ls_context_reset(task->context);
    atomic_fetch_add(&task->run, 1);
    atomic_store(&task->running, false);
}

static int take(ls_task *task)
{
    if (ls_task_check_forks(task) != LS_OK)
        return LS_ESTATE;
    if (atomic_exchange(&task->running, true))
        return ls_error(LS_ESTATE, "task: it is running already");
    task->pipeline.outcome.status = LS_OK;
    ls_outcome_catch(&task->pipeline.outcome, begin(task));
    return LS_OK;
}

/* What the log lines of the calling thread name. */
struct log_place {
    int64_t node;
    const char *step;
};

static struct log_place log_as(const ls_task *task)
{
    const struct log_place before = {ls_log_node(), ls_log_step()};
    if (task->node != NULL)
        ls_log_set_node((int64_t)ls_node_id(task->node));
    return before;
}

static void log_again_as(const struct log_place *before)
{
    ls_log_set_step(before->step);
    ls_log_set_node(before->node);
}

int ls_task_run(ls_task *task, uint64_t n_iterations)
{
    const int status = take(task);
    if (status < 0)
        return status;
    const struct log_place before = log_as(task);
    const bool runs = n_iterations > 0 && has_steps(task);
    if (runs && task->pipeline.outcome.status == LS_OK)
        iterate(task, n_iterations);
    end(task, runs);
    log_again_as(&before);
    return ls_failure_return(&task->pipeline.outcome);
}

/* ---- by hand ----------------------------------------------------------- */

int ls_task_forward(ls_task *task)
{
    struct ls_failure *outcome = &task->pipeline.outcome;
    if (ls_task_check_forks(task) != LS_OK)
        return LS_ESTATE;
    if (task->hand == HAND_FORWARD)
        return ls_error(LS_ESTATE, "task: forward again, and not backward");
    if (task->hand == HAND_NONE) {
        const int status = take(task);
        if (status < 0)
            return status;
        task->hand = HAND_BEGUN;
    } else if (outcome->status == LS_OK) {
        ls_context_reset(task->context);
    }
    const struct log_place before = log_as(task);
    if (outcome->status == LS_OK) {
        go_forward(task);
        if (outcome->status < 0)
            go_back(task);
        else
            task->hand = HAND_FORWARD;
    }
    log_again_as(&before);
    return ls_failure_return(outcome);
}

int ls_task_backward(ls_task *task)
{
    if (ls_task_check_forks(task) != LS_OK)
        return LS_ESTATE;
    if (task->hand != HAND_FORWARD)
        return ls_error(LS_ESTATE, "task: backward, and not forward before");
    const struct log_place before = log_as(task);
    go_back(task);
    task->hand = HAND_BEGUN;
    log_again_as(&before);
    return ls_failure_return(&task->pipeline.outcome);
}

int ls_task_end(ls_task *task)
{
    if (ls_task_check_forks(task) != LS_OK)
        return LS_ESTATE;
    if (task->hand == HAND_NONE)
        return ls_error(LS_ESTATE, "task: no run that was begun by hand");
    const struct log_place before = log_as(task);
    if (task->hand == HAND_FORWARD) {
        ls_outcome_catch(&task->pipeline.outcome,
                         ls_error(LS_ECANCELED,
                                  "task: it was ended before its steps were "
                                  "run backward"));
        go_back(task);
    }
    task->hand = HAND_NONE;
    end(task, has_steps(task));
    log_again_as(&before);
    return ls_failure_return(&task->pipeline.outcome);
}
