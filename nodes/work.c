#include "work.h"

const struct work_kind *work_kind_of(const struct plan *plan, size_t index)
{
    if (!plan_is_service(plan))
        return &work_in_step;
    switch (plan->nodes[index].role) {
    case PLAN_COORDINATOR:
        return &work_coordinator;
    case PLAN_LEARNER:
        return &work_learner;
    case PLAN_COLLECTOR:
    case PLAN_EVALUATOR:
    case PLAN_MEMBER:
    case PLAN_N_ROLES:
        break;
    }
    return &work_collector;
}
