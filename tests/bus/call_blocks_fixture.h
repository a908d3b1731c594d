/* call_blocks_fixture.h - nodes that have calls, and what they lend. */
#ifndef CALL_BLOCKS_FIXTURE_H
#define CALL_BLOCKS_FIXTURE_H

#include <sched.h>

#include "blocks_inside.h"
#include "call_fixture.h"

static inline struct ls_node_stats node_stats(const struct caller_node *at)
{
    struct ls_node_stats stats;
    ls_node_stats(at->node, &stats);
    return stats;
}

static inline unsigned n_blocks(const struct caller_node *at)
{
    ls_node *const node = at->node;
    transport_lock(node->transport);
    blocks_reap(node);
    const unsigned n = node->blocks->pool.n;
    transport_unlock(node->transport);
    return n;
}

/* What has been read is given back a moment later. */
static inline void await_blocks(const struct caller_node *at, unsigned n)
{
    const int64_t deadline = long_deadline();
    while (n_blocks(at) != n) {
        assert_true(ls_now(ls_runtime_threads()) < deadline);
        (void)sched_yield();
    }
}

#endif
