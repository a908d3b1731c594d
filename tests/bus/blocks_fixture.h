/* blocks_fixture.h - whether what a node has lent came back. */
#ifndef LOCKSTEP_TEST_BLOCKS_FIXTURE_H
#define LOCKSTEP_TEST_BLOCKS_FIXTURE_H

#include "blocks_inside.h"
#include "lockstep/event.h"
#include "test.h"

/* Nobody reads anything of it any more. Adds what it says of its blocks. */
static inline void assert_no_blocks(ls_node *node, uint64_t seed, size_t index,
                                    uint64_t *blocks, uint64_t *blocks_full)
{
    struct ls_node_stats stats;
    ls_node_stats(node, &stats);
    *blocks += stats.blocks;
    *blocks_full += stats.blocks_full;
    transport_lock(node->transport);
    if (node->blocks != NULL) {
        blocks_reap(node);
        if (node->blocks->pool.n != 0)
            fail_msg("seed %llu: %u blocks of node %zu did not come back",
                     (unsigned long long)seed, node->blocks->pool.n, index + 1);
    }
    transport_unlock(node->transport);
}

#endif
