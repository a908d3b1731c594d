#include "fsm_kinds.h"

#include <assert.h>
#include <string.h>

const struct fsm_kind *const fsm_kinds[] = {
    &fsm_kind_evaluation, &fsm_kind_learner, &fsm_kind_collector, NULL};

const char *fsm_kind_doer(const struct fsm_kind *kind)
{
    static const char by_role[] = "role:";
    return strncmp(kind->where, by_role, sizeof by_role - 1) == 0
               ? kind->where + sizeof by_role - 1
               : "member";
}

size_t fsm_kind_ranks(const struct fsm_kind *kind,
                      const struct fsm_options *options)
{
    const size_t ranks = kind->ranks != NULL ? kind->ranks(options) : 1;
    return ranks > 1 ? ranks : 1;
}

const struct fsm_task *fsm_kind_task(const struct fsm_kind *kind,
                                     enum ls_job_phase phase)
{
    size_t i = 0;
    while (i < kind->n_tasks && kind->tasks[i].phase != phase)
        i++;
    assert(i < kind->n_tasks);
    return &kind->tasks[i];
}

const struct fsm_task *fsm_kinds_task(const char *call)
{
    for (size_t k = 0; fsm_kinds[k] != NULL; k++)
        for (size_t i = 0; i < fsm_kinds[k]->n_tasks; i++)
            if (strcmp(fsm_kinds[k]->tasks[i].name, call) == 0)
                return &fsm_kinds[k]->tasks[i];
    return NULL;
}
