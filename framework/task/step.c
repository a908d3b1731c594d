#include "step.h"

#include "fiber_inline.h"
#include "lane.h"
#include "lockstep/log.h"
#include "task_core.h"

void ls_outcome_catch(struct ls_failure *outcome, int status)
{
    if (outcome->status < 0 || status >= 0)
        return;
    ls_failure_keep(outcome, status);
}

static void step_main(struct fiber_point *point)
{
    ls_fiber *fiber = fiber_begun(point);
    ls_step *step = fiber->arg;
    step->result = step->fn(step, step->self);
    fiber_end(fiber);
}

static bool holds(const ls_step *step, const ls_step_lock *lock)
{
    for (; step != NULL; step = step->parent)
        if (step->lock == lock)
            return true;
    return false;
}

FIBER_INLINE void set_doing(struct lane *lane, const char *name)
{
    atomic_store_explicit(&lane->doing, name, memory_order_release);
}

/* Run the step until it yields or ends; true: it has yielded. inside: the step
 * whose half is running here, so that its locks are held already. */
FIBER_INLINE bool run_unrecorded(ls_step *step, const ls_step *inside)
{
    ls_step_lock *lock = step->lock;
    if (lock != NULL && holds(inside, lock))
        lock = NULL;
    if (lock != NULL)
        ls_mutex_lock(&lock->mutex);
    ls_log_set_step(step->name);
    if (inside == NULL)
        set_doing(step->lane, step->part->what.name);
    const bool more = fiber_resume(step->fiber);
    if (inside != NULL)
        ls_log_set_step(inside->name);
    else
        set_doing(step->lane, NULL);
    if (lock != NULL)
        ls_mutex_unlock(&lock->mutex);
    return more;
}

static __attribute__((noinline)) bool run_recorded(ls_step *step,
                                                   const ls_step *inside)
{
    ls_trace *const trace = step->task->trace;
    struct ls_trace_record record = {
        .kind = step->yielded ? LS_TRACE_BACKWARD : LS_TRACE_FORWARD,
        .name = ls_lane_name(step->lane, step->name),
        .begin_ns = ls_trace_now(trace),
        .number =
            atomic_load_explicit(&step->task->iterations, memory_order_relaxed),
        .peer = LS_TRACE_NOBODY};
    for (const ls_step *at = inside; at != NULL && record.depth < UINT8_MAX;
         at = at->parent)
        record.depth++;
    if (inside == NULL)
        ls_trace_mark_begin(step->lane->mark, &record);
    const bool more = run_unrecorded(step, inside);
    if (inside == NULL)
        ls_trace_mark_end(step->lane->mark);
    record.end_ns = ls_trace_now(trace);
    ls_trace_add(trace, &record);
    return more;
}

FIBER_INLINE bool run_half(ls_step *step, const ls_step *inside)
{
    return __builtin_expect(step->task->recording, false)
               ? run_recorded(step, inside)
               : run_unrecorded(step, inside);
}

/* An error, with the step's name; a misuse becomes one. */
static int bad_result(const ls_step *step)
{
    if (step->result > 0)
        return ls_error(LS_EINVAL,
                        "step %s returned %d; a step returns LS_OK or a "
                        "negative status",
                        step->name, step->result);
    if (step->result == LS_OK)
        return ls_error(LS_ESTATE, "step %s yielded a second time", step->name);
    return ls_error_at(step->result, "step %s", step->name);
}

/* What the ended step comes to. The error it was given is not its own. */
FIBER_INLINE int result_of(ls_step *step)
{
    ls_fiber_destroy(&step->fiber);
    if (step->result == step->given && !step->yielded_twice)
        return step->result;
    return step->result == LS_OK && !step->yielded_twice ? LS_OK
                                                         : bad_result(step);
}

FIBER_INLINE int step_forward(ls_step *step)
{
    const int status =
        ls_fiber_create_main(&step->fiber, step->lane->fibers, step_main, step);
    if (status < 0)
        return ls_error_at(status, "step %s", step->name);
    if (!run_half(step, step->parent))
        return result_of(step);
    step->below = step->part->suspended;
    step->part->suspended = step;
    return LS_OK;
}

int ls_step_forward(ls_step *step)
{
    return step_forward(step);
}

int ls_step_back(ls_step *step)
{
    ls_step **at = &step->part->suspended;
    while (*at != NULL && *at != step)
        at = &(*at)->below;
    if (*at == NULL)
        return LS_OK;
    *at = step->below;
    step->given = step->parent->given;
    (void)run_half(step, step->parent);
    return result_of(step);
}

/* A run is over as soon as it was cancelled, though no step has failed. */
FIBER_INLINE int cancelled(ls_task *task)
{
    const int status =
        atomic_load_explicit(&task->ending.status, memory_order_relaxed);
    return status < 0 ? ls_task_cancelled(task) : LS_OK;
}

FIBER_INLINE int turn_forward(struct part *part, struct lane *lane,
                              ls_step *parent)
{
    ls_step *step = &part->step;
    step->lane = lane;
    step->parent = parent;
    step->inner = NULL;
    step->yielded = false;
    step->yielded_twice = false;
    step->given = LS_OK;
    const int status = step_forward(step);
    return status < 0 ? status : cancelled(lane->task);
}

/* Give the top of the turn's stack what has gone wrong so far. */
FIBER_INLINE void resume_top(struct part *part, struct ls_failure *outcome)
{
    ls_step *step = part->suspended;
    part->suspended = step->below;
    step->given = ls_failure_return(outcome);
    /* Its own parent has left the half that it was started in. */
    (void)run_half(step, part->step.parent);
    int status = result_of(step);
    if (status < 0 && outcome->status < 0 && status != outcome->status)
        ls_log_warn("while the iteration was being given up: %s",
                    ls_error_text());
    if (status == LS_OK)
        status = cancelled(step->task);
    if (status < 0)
        ls_outcome_catch(outcome, status);
}

static void drop_inside(struct part *part)
{
    while (part->inside != NULL) {
        ls_wrapped *wrapped = part->inside;
        part->inside = wrapped->next;
        ls_lane_give_step(part->step.lane, wrapped);
    }
}

FIBER_INLINE void turn_back(struct part *part, struct ls_failure *outcome)
{
    while (part->suspended != NULL)
        resume_top(part, outcome);
    if (part->inside != NULL)
        drop_inside(part);
}

int ls_turn_forward(struct part *part, struct lane *lane, ls_step *parent)
{
    return turn_forward(part, lane, parent);
}

void ls_turn_back(struct part *part, struct ls_failure *outcome)
{
    turn_back(part, outcome);
}

/* The switch is inlined into these two loops: see fiber_inline.h. */

void ls_pipeline_forward(struct pipeline *pipeline, struct lane *lane,
                         ls_step *parent)
{
    pipeline->outcome.status = LS_OK;
    for (pipeline->begun = 0; pipeline->begun < pipeline->n;) {
        struct part *part = pipeline->parts[pipeline->begun++];
        if (!part->active)
            continue;
        const int status = turn_forward(part, lane, parent);
        if (status < 0) {
            ls_outcome_catch(&pipeline->outcome, status);
            return;
        }
    }
}

void ls_pipeline_back(struct pipeline *pipeline)
{
    while (pipeline->begun > 0)
        turn_back(pipeline->parts[--pipeline->begun], &pipeline->outcome);
}

bool ls_pipeline_suspended(const struct pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->begun; i++)
        if (pipeline->parts[i]->suspended != NULL)
            return true;
    return false;
}

ls_wrapped *ls_turn_add(ls_step *parent)
{
    ls_wrapped *wrapped = ls_lane_take_step(parent->lane);
    if (wrapped == NULL)
        return NULL;
    wrapped->step = (ls_step){
        .task = parent->task,
        .lane = parent->lane,
        .part = parent->part,
        .parent = parent,
    };
    wrapped->next = parent->part->inside;
    parent->part->inside = wrapped;
    return wrapped;
}

static int bad_yield(ls_step *step)
{
    step->yielded_twice = step->yielded;
    return ls_error(LS_ESTATE,
                    step->yielded ? "step %s yielded a second time"
                                  : "step %s was yielded by another step",
                    step->name);
}

int ls_yield(ls_step *step)
{
    if (step->yielded || step->fiber != ls_fiber_running)
        return bad_yield(step);
    step->yielded = true;
    fiber_yield(step->fiber);
    return step->given;
}

void *ls_step_context(ls_step *step)
{
    return ls_context_data(step->task->context);
}

ls_task *ls_step_task(ls_step *step)
{
    return step->task;
}

const char *ls_step_name(const ls_step *step)
{
    return step->name;
}

int64_t ls_step_now(const ls_step *step)
{
    return ls_now(step->task->runtime);
}
