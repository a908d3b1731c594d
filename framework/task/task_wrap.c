/* Steps inside another step's turn: wrapped middleware, and what a wrapper
 * stands around. */
#include "task_core.h"

static int no_memory(const ls_step *step)
{
    return ls_error(LS_ENOMEM, "step %s: no memory for a step inside it",
                    step->name);
}

int ls_wrap(ls_step *step, const struct ls_middleware *child, ls_wrapped **out)
{
    *out = NULL;
    if (child->status < 0)
        return ls_error(child->status, "step %s: %s", step->name, child->error);
    ls_wrapped *wrapped = ls_turn_add(step);
    if (wrapped == NULL)
        return no_memory(step);

    ls_step *inner = &wrapped->step;
    inner->name = child->name != NULL ? child->name : "step";
    inner->fn = child->fn;
    inner->self = child->self;
    inner->lock = child->lock == LS_TASK_LOCK ? &step->task->lock : child->lock;
    if (inner->fn != NULL && ls_task_takes_part(step->task, child->roles)) {
        const int status = ls_step_forward(inner);
        if (status < 0)
            return status;
    }
    *out = wrapped;
    return LS_OK;
}

int ls_wrap_back(ls_wrapped *wrapped)
{
    return ls_step_back(&wrapped->step);
}

const char *ls_around_name(const ls_step *step)
{
    return step->name;
}

int ls_around_forward(ls_step *step)
{
    if (step->level == 0)
        return ls_error(LS_ESTATE, "step %s stands around no other",
                        step->name);
    ls_wrapped *wrapped = ls_turn_add(step);
    if (wrapped == NULL)
        return no_memory(step);

    ls_step *inner = &wrapped->step;
    inner->name = step->name;
    inner->level = step->level - 1;
    if (inner->level > 0) {
        const struct around *around = &step->task->arounds[inner->level - 1];
        inner->fn = around->fn;
        inner->self = around->self;
    } else {
        inner->fn = step->part->what.fn;
        inner->self = step->part->what.self;
    }
    step->inner = inner;
    return ls_step_forward(inner);
}

int ls_around_back(ls_step *step)
{
    return step->inner != NULL ? ls_step_back(step->inner) : LS_OK;
}
