/* Learners that share each batch: they are a group, in which each learns from a
 * part. All begin a round with what the first of them has; from there on they
 * change their weights by the same numbers, and stay alike. Design notes:
 *
 * - A learner begins a pass only when all have their parts: what breaks a run
 *   while data is under way, such as a collector that is lost, breaks nobody's
 *   learning. Only the loss of a learner does, and that ends the job; or one
 * that is told to end, after which the others go back to before the batch.
 * - A learner whose run is broken leaves the group, so that no other waits for
 *   it; the next round forms it again. */
#include <inttypes.h>
#include <stdlib.h>

#include <xxhash.h>

#include "lockstep/log.h"

#include "role.h"

static void on_cancel(void *self, int status)
{
    role_group_leave(self, status);
}

/* A round begins when all are there again. */
static enum ls_on_loss comes_back(const struct plan *plan)
{
    bool comes_back = false;
    for (size_t i = 0; i < plan->n_nodes; i++)
        comes_back = comes_back || (plan->nodes[i].role == PLAN_LEARNER &&
                                    plan->nodes[i].on_loss == PLAN_RESTART);
    return comes_back ? LS_ON_LOSS_GO_ON : LS_ON_LOSS_FAIL;
}

int role_group_create(struct role *role)
{
    const struct plan *plan = role->plan;
    const uint32_t n = (uint32_t)plan_count(plan, PLAN_LEARNER);
    if (!plan_is_shared(plan) || plan->nodes[role->index].role != PLAN_LEARNER)
        return LS_OK;
    const int status = ls_group_create(
        &role->group, ls_task_node(role->task),
        &(struct ls_group_options){.name = "learners",
                                   .word = "learner",
                                   .expected = n,
                                   .on_loss = comes_back(plan),
                                   /* A run is recorded, and played again, by
                                    * its messages. */
                                   .room = LS_GROUP_ROOM_NEVER});
    return status == LS_OK ? ls_task_on_cancel(role->task, on_cancel, role)
                           : status;
}

void role_group_destroy(struct role *role)
{
    if (role->group == NULL)
        return;
    if (ls_task_on_cancel(role->task, NULL, role) != LS_OK ||
        ls_group_destroy(&role->group) != LS_OK)
        ls_log_error("%s", ls_error_text());
}

/* The bytes of the first one's weights, in all. */
static int share(struct role *role, struct ls_group_parts *parts)
{
    struct ls_bytes bytes = {.size = 0};
    const struct weights_note note = role_note(role);
    const int status = ls_group_rank(role->group) == 0
                           ? training_write(role->training, &note, &bytes)
                           : LS_OK;
    if (status != LS_OK) {
        ls_group_leave(role->group, LS_EABORTED);
        return status;
    }
    const int shared = ls_group_do(
        role->group, &(struct ls_group_operation){
                         .kind = LS_GROUP_BROADCAST,
                         .name = "weights",
                         .count = bytes.size,
                         .in = bytes.data,
                         .parts = parts,
                         .timeout_ms = role->plan->world.step_timeout_ms});
    ls_bytes_clear(&bytes);
    return shared;
}

static int adopt(struct role *role, const struct ls_group_part *part)
{
    struct ls_online_context *context =
        ls_context_data(ls_task_context(role->task));
    struct weights_note note;
    const int status = weights_read(&role->agent, role->plan->seed, part->data,
                                    part->size, &note);
    if (status != LS_OK)
        return status;
    context->total_step = note.iteration;
    context->train_iter = note.train_iter;
    context->env_step = note.env_step;
    context->env_episode = note.env_episode;
    return training_adopt(role->training, &note);
}

int role_group_begin_round(struct role *role)
{
    struct ls_group_parts parts = {.n = 0};
    if (role->group == NULL)
        return LS_OK;
    int status = ls_group_form(role->group, role->plan->world.step_timeout_ms);
    if (status == LS_OK)
        status = share(role, &parts);
    if (status == LS_OK && ls_group_rank(role->group) != 0)
        status = adopt(role, &parts.items[0]);
    ls_group_parts_free(&parts);
    return status;
}

/* What a learner has before it learns. */
struct stand {
    uint64_t weights; /* a checksum */
    uint64_t n;       /* trajectories, to learn from */
};

static int compare(const struct role *role, const struct stand *stands,
                   size_t *least)
{
    const uint32_t n = ls_group_size(role->group);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = 0, id = 0;
        *least = *least < stands[i].n ? *least : stands[i].n;
        if (stands[i].weights == stands[0].weights)
            continue;
        if (ls_group_id(role->group, 0, &first) != LS_OK ||
            ls_group_id(role->group, i, &id) != LS_OK)
            return LS_ESTATE;
        return ls_error(LS_EMISMATCH,
                        "learner %" PRIu32 " has other weights than learner "
                        "%" PRIu32 ": the plugin's learn() changes them by "
                        "more than what all learners share, or their machines "
                        "round differently",
                        id, first);
    }
    return LS_OK;
}

int role_group_meet(struct role *role, size_t *n)
{
    if (role->group == NULL)
        return LS_OK;
    const struct ls_bytes *policy = training_policy(role->training);
    const struct stand stand = {XXH3_64bits(policy->data, policy->size), *n};
    struct stand *stands = calloc(ls_group_size(role->group), sizeof *stands);
    if (stands == NULL)
        return ls_error(LS_ENOMEM, "the learners");
    int status = ls_group_all_gather(role->group, &stand, sizeof stand, stands,
                                     role->plan->world.step_timeout_ms);
    if (status == LS_OK)
        status = compare(role, stands, n);
    free(stands);
    return status;
}

/* It was no learner that was lost, or the group would know. */
void role_group_leave(struct role *role, int status)
{
    if (role->group != NULL && status != LS_OK)
        ls_group_leave(role->group, LS_EABORTED);
}
