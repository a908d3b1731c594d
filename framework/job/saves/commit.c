/* The state machines of commit.h. What is dangerous is to remove an entry that
 * a manifest names: so the verdict is `drop` only where no manifest was begun,
 * or it is certainly gone; and a node ignores verdicts of other rounds, which
 * may be about another entry of the same epoch. */
#include "commit.h"

static void tell_all(struct commit *commit, enum commit_verdict verdict)
{
    commit->phase = COMMIT_TELLING;
    commit->verdict = verdict;
    bool all = true;
    for (size_t i = 0; i < commit->n; i++)
        all = all && commit->nodes[i].gone;
    for (size_t i = 0; i < commit->n; i++)
        if (!commit->nodes[i].gone && commit->phase == COMMIT_TELLING)
            commit->ops->tell(commit->self, i, verdict);
    if (all)
        commit->phase = COMMIT_ENDED;
}

static void init(struct commit *commit, const struct commit_ops *ops,
                 void *self, struct commit_node *nodes, size_t n)
{
    *commit = (struct commit){.ops = ops, .self = self, .nodes = nodes, .n = n};
    for (size_t i = 0; i < n; i++)
        nodes[i] = (struct commit_node){.written = false};
}

void commit_begin(struct commit *commit, const struct commit_ops *ops,
                  void *self, struct commit_node *nodes, size_t n)
{
    init(commit, ops, self, nodes, n);
    for (size_t i = 0; i < n && commit->phase == COMMIT_WRITING; i++)
        ops->write(self, i);
}

static void give_up(struct commit *commit, int status)
{
    ls_failure_keep(&commit->failure, status);
    tell_all(commit, COMMIT_DROP);
}

void commit_refuse(struct commit *commit, const struct commit_ops *ops,
                   void *self, struct commit_node *nodes, size_t n, int status)
{
    init(commit, ops, self, nodes, n);
    give_up(commit, status);
}

void commit_written(struct commit *commit, size_t node, int status)
{
    if (commit->phase != COMMIT_WRITING || commit->nodes[node].written)
        return;
    if (status != LS_OK) {
        give_up(commit, status);
        return;
    }
    commit->nodes[node].written = true;
    for (size_t i = 0; i < commit->n; i++)
        if (!commit->nodes[i].written)
            return;
    commit->phase = COMMIT_NAMING;
    commit->ops->name(commit->self);
}

void commit_named(struct commit *commit, int status, bool gone)
{
    if (commit->phase != COMMIT_NAMING)
        return;
    commit->saved = status == LS_OK;
    if (!commit->saved)
        ls_failure_keep(&commit->failure, status);
    tell_all(commit, !commit->saved && gone ? COMMIT_DROP : COMMIT_KEEP);
}

static void end_if_told(struct commit *commit)
{
    if (commit->phase != COMMIT_TELLING)
        return;
    for (size_t i = 0; i < commit->n; i++)
        if (!commit->nodes[i].told && !commit->nodes[i].gone)
            return;
    commit->phase = COMMIT_ENDED;
}

void commit_told(struct commit *commit, size_t node)
{
    commit->nodes[node].told = true;
    end_if_told(commit);
}

void commit_lost(struct commit *commit, size_t node)
{
    commit->nodes[node].gone = true;
    if (commit->phase == COMMIT_WRITING && !commit->nodes[node].written)
        give_up(commit, LS_ELOST);
    end_if_told(commit);
}

void commit_late(struct commit *commit)
{
    if (commit->phase == COMMIT_WRITING)
        give_up(commit, LS_ETIMEDOUT);
    else if (commit->phase == COMMIT_TELLING)
        commit->phase = COMMIT_ENDED;
}

void keeper_wrote(struct keeper *keeper, int64_t epoch, int64_t round)
{
    *keeper = (struct keeper){.waits = true, .epoch = epoch, .round = round};
}

bool keeper_drops(struct keeper *keeper, int64_t round,
                  enum commit_verdict verdict)
{
    if (!keeper->waits || keeper->round != round)
        return false;
    keeper->waits = false;
    return verdict == COMMIT_DROP;
}
