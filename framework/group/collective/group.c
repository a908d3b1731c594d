/* What callers ask of a group, checked and handed to its carrier. */
#include "lockstep/group.h"

#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "forked.h"
#include "over.h"

/* --- handles ------------------------------------------------------------- */

int ls_group_form(ls_group *group, int wait_ms)
{
    if (ls_forked_since(group->forks))
        return ls_forked_error("this group");
    const unsigned n = atomic_load(&group->n_started);
    if (n > 0)
        return ls_error(LS_ESTATE,
                        "group: %u operations are not destroyed; that comes "
                        "before the next generation",
                        n);
    atomic_store(&group->forms, true);
    const int status = group->ops->form(group, wait_ms);
    atomic_store(&group->forms, false);
    if (status == LS_OK)
        group->n_splits = 0;
    return status;
}

void ls_group_leave(ls_group *group, int status)
{
    if (!ls_forked_since(group->forks))
        group->ops->leave(group, status < LS_OK ? status : LS_ECANCELED);
}

bool group_is_over_by_another(ls_group *group)
{
    return !ls_forked_since(group->forks) &&
           group->ops->is_over_by_another(group);
}

int ls_group_destroy(ls_group **group_p)
{
    if (group_p == NULL || *group_p == NULL)
        return LS_OK;
    ls_group *group = *group_p;
    if (ls_forked_since(group->forks))
        return ls_forked_error("this group");
    const unsigned n = atomic_load(&group->n_started);
    const unsigned n_children = atomic_load(&group->n_children);
    if (n > 0 || n_children > 0)
        return ls_error(LS_ESTATE,
                        "group: %u operations and %u sub-groups are not "
                        "destroyed",
                        n, n_children);
    if (atomic_load(&group->forms))
        return ls_error(LS_ESTATE,
                        "group: a thread waits for its next generation");
    if (group->parent != NULL)
        atomic_fetch_sub(&group->parent->n_children, 1);
    buffers_orphan(group);
    group->ops->destroy(group);
    *group_p = NULL;
    return LS_OK;
}

uint32_t ls_group_rank(const ls_group *group)
{
    uint32_t rank, size;
    uint64_t generation;
    group->ops->place(group, &rank, &size, &generation);
    return rank;
}

uint32_t ls_group_size(const ls_group *group)
{
    uint32_t rank, size;
    uint64_t generation;
    group->ops->place(group, &rank, &size, &generation);
    return size;
}

uint64_t ls_group_generation(const ls_group *group)
{
    uint32_t rank, size;
    uint64_t generation;
    group->ops->place(group, &rank, &size, &generation);
    return generation;
}

int ls_group_id(const ls_group *group, uint32_t rank, uint32_t *id)
{
    const uint32_t size = ls_group_size(group);
    if (rank >= size)
        return ls_error(LS_EINVAL, "group: there is no rank %u among %u",
                        (unsigned)rank, (unsigned)size);
    *id = group->ops->id(group, rank);
    return LS_OK;
}

void ls_group_stats(ls_group *group, struct ls_group_stats *out)
{
    memset(out, 0, sizeof *out);
    if (!ls_forked_since(group->forks))
        group->ops->stats(group, out);
}

void ls_group_parts_free(struct ls_group_parts *parts)
{
    if (parts == NULL)
        return;
    free(parts->items);
    *parts = (struct ls_group_parts){.n = 0};
}

/* --- operations ---------------------------------------------------------- */

static int start(ls_collective **out, ls_group *group,
                 const struct ls_group_operation *operation, bool waited)
{
    struct group_call call;
    uint32_t rank, size;
    uint64_t generation;
    if (ls_forked_since(group->forks))
        return ls_forked_error("this group");
    group->ops->place(group, &rank, &size, &generation);
    if (generation == 0)
        return ls_error(LS_ESTATE, "group: call ls_group_form() first");
    if (atomic_load(&group->n_started) >= LS_GROUP_STARTED_MAX)
        return ls_error(LS_EAGAIN,
                        "group: %d operations are started and not destroyed",
                        LS_GROUP_STARTED_MAX);
    if (operation->parts != NULL)
        *operation->parts = (struct ls_group_parts){.n = 0};
    int status =
        group_call_init(&call, operation, rank, size, ls_now(group->runtime));
    call.waited = waited;
    if (status == LS_OK)
        status = group->ops->start(out, group, &call);
    if (status != LS_OK)
        return status;
    atomic_fetch_add(&group->n_started, 1);
    (*out)->uses[0] = buffer_use(group, call.in);
    (*out)->uses[1] = buffer_use(group, call.out);
    return LS_OK;
}

int ls_group_start(ls_collective **out, ls_group *group,
                   const struct ls_group_operation *operation)
{
    *out = NULL;
    return start(out, group, operation, false);
}

int ls_collective_wait(ls_collective *collective, int wait_ms)
{
    const ls_group *group = collective->group;
    if (ls_forked_since(group->forks))
        return ls_forked_error("this operation");
    const int64_t deadline = wait_ms == LS_WAIT_DEFAULT
                                 ? LS_FOREVER
                                 : ls_deadline(group->runtime, wait_ms);
    if (group->ops->wait(collective, deadline) != LS_OK)
        return ls_error(LS_ETIMEDOUT, "group: the operation has not ended yet");
    return ls_failure_return(&collective->end);
}

bool ls_collective_has_ended(ls_collective *collective)
{
    return !ls_forked_since(collective->group->forks) &&
           collective->group->ops->has_ended(collective);
}

void ls_collective_destroy(ls_collective **collective)
{
    if (collective == NULL || *collective == NULL)
        return;
    ls_group *group = (*collective)->group;
    if (ls_forked_since(group->forks))
        return;
    (void)group->ops->wait(*collective, LS_FOREVER);
    buffer_drop((*collective)->uses[0]);
    buffer_drop((*collective)->uses[1]);
    group->ops->free(*collective);
    atomic_fetch_sub(&group->n_started, 1);
    *collective = NULL;
}

int ls_group_do(ls_group *group, const struct ls_group_operation *operation)
{
    ls_collective *collective = NULL;
    int status = start(&collective, group, operation, true);
    if (collective == NULL)
        return status;
    status = ls_collective_wait(collective, LS_WAIT_DEFAULT);
    ls_collective_destroy(&collective);
    return status;
}

/* timeout_ms says "look only" as no wait_ms does. */
static int do_within(ls_group *group, struct ls_group_operation operation,
                     int wait_ms)
{
    operation.timeout_ms = wait_ms == 0 ? 1 : wait_ms < 0 ? 0 : wait_ms;
    return ls_group_do(group, &operation);
}

int ls_group_barrier(ls_group *group, int wait_ms)
{
    const struct ls_group_operation operation = {.kind = LS_GROUP_BARRIER};
    return do_within(group, operation, wait_ms);
}

int ls_group_broadcast(ls_group *group, void *data, size_t size, uint32_t root,
                       int wait_ms)
{
    const struct ls_group_operation operation = {.kind = LS_GROUP_BROADCAST,
                                                 .root = root,
                                                 .count = size,
                                                 .in = data,
                                                 .out = data};
    return do_within(group, operation, wait_ms);
}

int ls_group_all_gather(ls_group *group, const void *data, size_t size,
                        void *out, int wait_ms)
{
    const struct ls_group_operation operation = {
        .kind = LS_GROUP_ALL_GATHER, .count = size, .in = data, .out = out};
    return do_within(group, operation, wait_ms);
}

int ls_group_all_reduce(ls_group *group, void *numbers, size_t count,
                        enum ls_group_type type, enum ls_group_fold fold,
                        int wait_ms)
{
    const struct ls_group_operation operation = {.kind = LS_GROUP_ALL_REDUCE,
                                                 .count = count,
                                                 .type = type,
                                                 .fold = fold,
                                                 .in = numbers,
                                                 .out = numbers};
    return do_within(group, operation, wait_ms);
}

int ls_group_reduce_scatter(ls_group *group, const void *numbers, size_t count,
                            enum ls_group_type type, enum ls_group_fold fold,
                            void *out, int wait_ms)
{
    const struct ls_group_operation operation = {.kind =
                                                     LS_GROUP_REDUCE_SCATTER,
                                                 .count = count,
                                                 .type = type,
                                                 .fold = fold,
                                                 .in = numbers,
                                                 .out = out};
    return do_within(group, operation, wait_ms);
}

int ls_group_gather(ls_group *group, const void *data, size_t size, void *out,
                    uint32_t root, int wait_ms)
{
    const struct ls_group_operation operation = {.kind = LS_GROUP_GATHER,
                                                 .root = root,
                                                 .count = size,
                                                 .in = data,
                                                 .out = out};
    return do_within(group, operation, wait_ms);
}

int ls_group_scatter(ls_group *group, const void *data, size_t size, void *out,
                     uint32_t root, int wait_ms)
{
    const struct ls_group_operation operation = {.kind = LS_GROUP_SCATTER,
                                                 .root = root,
                                                 .count = size,
                                                 .in = data,
                                                 .out = out};
    return do_within(group, operation, wait_ms);
}

int ls_group_send(ls_group *group, const void *data, size_t size, uint32_t to,
                  int wait_ms)
{
    const struct ls_group_operation operation = {
        .kind = LS_GROUP_SEND, .root = to, .count = size, .in = data};
    return do_within(group, operation, wait_ms);
}

int ls_group_receive(ls_group *group, void *data, size_t size, uint32_t from,
                     int wait_ms)
{
    const struct ls_group_operation operation = {
        .kind = LS_GROUP_RECEIVE, .root = from, .count = size, .out = data};
    return do_within(group, operation, wait_ms);
}
