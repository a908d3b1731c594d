/* replay_tree.h - over the slots of a replay buffer: draw one in proportion to
 * its weight, and find the one with the oldest policy, both in O(log n).
 *
 * Two complete binary trees of one shape. Inner nodes hold the sum of the
 * weights below them and the least of the versions. A sum is always formed
 * anew from its two parts, so rounding does not pile up.
 * Thread: serial. */
#ifndef LOCKSTEP_REPLAY_TREE_H
#define LOCKSTEP_REPLAY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* Version of a slot that is empty. */
#define REPLAY_TREE_EMPTY INT64_MAX

struct replay_tree {
    size_t n_leaves;   /* a power of two */
    double *weights;   /* own; [1] is the root, [n_leaves + slot] a leaf */
    int64_t *versions; /* own; likewise */
};

/* All slots empty, of weight 0. Errors: LS_ENOMEM. */
LS_MUST_USE int replay_tree_init(struct replay_tree *out, size_t n_slots);
void replay_tree_fini(struct replay_tree *tree);

/* weight: finite, not negative. */
void replay_tree_weigh(struct replay_tree *tree, size_t slot, double weight);
void replay_tree_date(struct replay_tree *tree, size_t slot, int64_t version);

double replay_tree_weight(const struct replay_tree *tree, size_t slot);
double replay_tree_total(const struct replay_tree *tree);

/* The slot in whose stretch of [0, total) `at` lies; never one of weight 0.
 * The total must not be 0. */
size_t replay_tree_find(const struct replay_tree *tree, double at);

/* A slot with the least version, which is written to *version. */
size_t replay_tree_oldest(const struct replay_tree *tree, int64_t *version);

#endif
