/* group_story.h - nodes of a simulation that go through the same operations,
 * while some are killed, some come back, and the network does what it may. What
 * each has seen is compared afterwards: an operation has ended alike in all, or
 * the seed is named. */
#ifndef GROUP_STORY_H
#define GROUP_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/group.h"

enum {
    STORY_NODES_MAX = 36,
    STORY_LIVES_MAX = 2 * STORY_NODES_MAX,
    STORY_STEPS = 14,
    STORY_GENERATIONS = 16
};

/* What all stories of a sweep are like. */
struct story_kind {
    uint32_t n;      /* nodes; 0: 2 to 7 */
    bool kills;      /* some nodes are killed */
    bool returns;    /* and some of these come back */
    bool quarrels;   /* ranks call different operations, or come too late */
    bool exit_ready; /* the option */
    bool shares;     /* operations go through shared memory, while they can */
};

/* Of all stories that were told. */
struct story_tally {
    uint64_t well, lost, mismatched, late; /* operations */
    uint64_t returned;
    uint64_t shared;  /* of one rank, through shared memory */
    uint64_t lent;    /* of these, of memory of the group */
    uint64_t dropped; /* where the network loses and doubles nothing */
    uint64_t dead;    /* nodes that were killed, or declared lost */
};

/* Tell the story of a seed. Returns NULL, or what was wrong: valid until the
 * next. */
const char *story_tell(const struct story_kind *kind, uint64_t seed,
                       struct story_tally *tally);

#endif
