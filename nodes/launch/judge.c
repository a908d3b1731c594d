#include "judge.h"

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

enum judge_rank judge_rank(const struct judge_end *end)
{
    if (!end->over || end->told)
        return JUDGE_NOTHING;
    if (end->signal != 0)
        return JUDGE_CAUSE;
    if (end->status != LS_OK)
        return follows(end->status) ? JUDGE_FOLLOWER : JUDGE_CAUSE;
    if (end->reported && end->exit_code == 0)
        return JUDGE_NOTHING;
    return JUDGE_CAUSE; /* gone without a word, or after its last one */
}

size_t judge_first(const struct judge_end *ends, size_t n,
                   enum judge_rank *rank)
{
    size_t first = n;
    *rank = JUDGE_NOTHING;
    for (size_t i = 0; i < n; i++) {
        const enum judge_rank mine = judge_rank(&ends[i]);
        if (mine > *rank || (mine == *rank && mine != JUDGE_NOTHING &&
                             ends[i].order < ends[first].order)) {
            first = i;
            *rank = mine;
        }
    }
    return first;
}

int judge_exit_code(const struct judge_end *end)
{
    /* LS_EINVAL is for usage: here it came from within a step. */
    if (end->signal != 0 || end->status == LS_OK || end->status == LS_EINVAL)
        return 1;
    return ls_status_exit_code(end->status);
}
