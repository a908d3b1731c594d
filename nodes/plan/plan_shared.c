/* Learners that share each batch. */
#include <stdio.h>

#include "plan.h"

/* Of a work: service/messages.h. */
#define RANKS_MAX 64

const char *const plan_driver_names[] = {"single", "threads", "bus", NULL};

bool plan_is_shared(const struct plan *plan)
{
    return plan->learner.driver == PLAN_BUS && !plan_is_service(plan);
}

size_t plan_ranks(const struct plan *plan)
{
    if (plan->learner.driver != PLAN_BUS)
        return 1;
    const size_t n = plan->learner.ranks > 0 ? plan->learner.ranks
                                             : plan_count(plan, PLAN_LEARNER);
    return n > 0 ? n : 1;
}

/* Of the nodes of its role, by id. */
static size_t place_of(const struct plan *plan, size_t index)
{
    const struct plan_node *node = &plan->nodes[index];
    size_t place = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        place +=
            plan->nodes[i].role == node->role && plan->nodes[i].id < node->id;
    return place;
}

size_t plan_part(const struct plan *plan, size_t index)
{
    const enum plan_role role = plan->nodes[index].role;
    if (!plan_is_shared(plan))
        return 0;
    if (role == PLAN_LEARNER)
        return place_of(plan, index);
    return role == PLAN_COLLECTOR
               ? place_of(plan, index) * plan_count(plan, PLAN_LEARNER) /
                     plan_count(plan, PLAN_COLLECTOR)
               : 0;
}

const char *plan_role_words(const struct plan *plan, size_t index,
                            char text[PLAN_ROLE_MAX])
{
    const enum plan_role role = plan->nodes[index].role;
    const char *const name = plan_role_names[role];
    if (plan_is_shared(plan) &&
        (role == PLAN_LEARNER || role == PLAN_COLLECTOR))
        (void)snprintf(text, PLAN_ROLE_MAX, "%s,%s.%zu", name, name,
                       plan_part(plan, index));
    else
        (void)snprintf(text, PLAN_ROLE_MAX, "%s", name);
    return text;
}

/* Those beyond the ranks stand by. */
static void check_ranks(const struct plan *plan, ls_config_section *root,
                        ls_config_section *learner, size_t n)
{
    const size_t ranks = plan_ranks(plan);
    bool may_leave = false;
    for (size_t i = 0; i < plan->n_nodes; i++)
        may_leave = may_leave || (plan->nodes[i].role == PLAN_LEARNER &&
                                  plan->nodes[i].on_loss == PLAN_GO_ON);
    if (ranks < 2)
        ls_config_problem(learner, "driver",
                          "there is one learner, so it shares batches with "
                          "nobody: single or threads, or more learners");
    else if (ranks > n || ranks > RANKS_MAX)
        ls_config_problem(learner, "ranks",
                          "%zu ranks; here are %zu learners, and at most %d "
                          "share a batch",
                          ranks, n, RANKS_MAX);
    else if (ranks == n && may_leave)
        ls_config_problem(root, "nodes",
                          "nobody learns without one of the %zu ranks: "
                          "on_loss: restart for learners, or one more of them, "
                          "which stands by",
                          ranks);
}

void plan_check_learners(const struct plan *plan, ls_config_section *root)
{
    const size_t n = plan_count(plan, PLAN_LEARNER);
    const bool is_service = plan_is_service(plan);
    ls_config_section *learner = ls_config_section_at(root, "learner");
    if (plan_is_of_members(plan))
        return;
    if (!is_service && (n == 0 || (n > 1 && !plan_is_shared(plan))))
        ls_config_problem(root, "nodes",
                          "there must be exactly one learner; here are %zu%s",
                          n,
                          n > 1 ? ". To have them share each batch, set "
                                  "learner.driver: bus"
                                : "");
    else if (is_service && plan->learner.driver == PLAN_BUS)
        check_ranks(plan, root, learner, n);
    else if (plan_is_shared(plan) && n == 1)
        ls_config_problem(learner, "driver",
                          "there is one learner, so it shares batches with "
                          "nobody: single or threads, or more learners");
    else if (plan_is_shared(plan) && plan_count(plan, PLAN_COLLECTOR) % n != 0)
        ls_config_problem(root, "nodes",
                          "%zu collectors cannot be divided evenly among the "
                          "%zu learners",
                          plan_count(plan, PLAN_COLLECTOR), n);
}
