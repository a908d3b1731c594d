#include "root_cause.h"

#include "lockstep/status.h"

/* What a node says when the reason lies, or may lie, with another. */
static bool follows(int status)
{
    switch (status) {
    case LS_ELOST:
    case LS_EABORTED:
    case LS_ECLOSED:
    case LS_EUNREACHABLE:
    case LS_ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

enum cause_rank cause_rank(const struct node_end *end)
{
    if (!end->over || end->told)
        return CAUSE_NOTHING;
    if (end->signal != 0)
        return CAUSE_FIRST;
    if (end->status != LS_OK)
        return follows(end->status) ? CAUSE_FOLLOWER : CAUSE_FIRST;
    if (end->reported && end->exit_code == 0)
        return CAUSE_NOTHING;
    return CAUSE_FIRST; /* gone without a word, or after its last one */
}

size_t root_cause(const struct node_end *ends, size_t n, enum cause_rank *rank)
{
    size_t first = n;
    *rank = CAUSE_NOTHING;
    for (size_t i = 0; i < n; i++) {
        const enum cause_rank mine = cause_rank(&ends[i]);
        if (mine > *rank || (mine == *rank && mine != CAUSE_NOTHING &&
                             ends[i].order < ends[first].order)) {
            first = i;
            *rank = mine;
        }
    }
    return first;
}

int node_end_exit_code(const struct node_end *end)
{
    /* LS_EINVAL is for usage: here it came from within a step. */
    if (end->signal != 0 || end->status == LS_OK || end->status == LS_EINVAL)
        return 1;
    return ls_status_exit_code(end->status);
}
