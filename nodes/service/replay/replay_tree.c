#include "replay_tree.h"

#include <stdlib.h>
#include <string.h>

int replay_tree_init(struct replay_tree *out, size_t n_slots)
{
    struct replay_tree tree = {.n_leaves = 1};
    while (tree.n_leaves < n_slots)
        tree.n_leaves *= 2;
    tree.weights = calloc(2 * tree.n_leaves, sizeof *tree.weights);
    tree.versions = calloc(2 * tree.n_leaves, sizeof *tree.versions);
    if (tree.weights == NULL || tree.versions == NULL) {
        replay_tree_fini(&tree);
        return ls_error(LS_ENOMEM, "a replay buffer of %zu items", n_slots);
    }
    for (size_t i = 0; i < 2 * tree.n_leaves; i++)
        tree.versions[i] = REPLAY_TREE_EMPTY;
    *out = tree;
    return LS_OK;
}

void replay_tree_fini(struct replay_tree *tree)
{
    free(tree->weights);
    free(tree->versions);
    memset(tree, 0, sizeof *tree);
}

void replay_tree_weigh(struct replay_tree *tree, size_t slot, double weight)
{
    size_t i = tree->n_leaves + slot;
    tree->weights[i] = weight;
    for (i /= 2; i > 0; i /= 2)
        tree->weights[i] = tree->weights[2 * i] + tree->weights[2 * i + 1];
}

void replay_tree_date(struct replay_tree *tree, size_t slot, int64_t version)
{
    size_t i = tree->n_leaves + slot;
    tree->versions[i] = version;
    for (i /= 2; i > 0; i /= 2) {
        const int64_t left = tree->versions[2 * i];
        const int64_t right = tree->versions[2 * i + 1];
        tree->versions[i] = left <= right ? left : right;
    }
}

double replay_tree_weight(const struct replay_tree *tree, size_t slot)
{
    return tree->weights[tree->n_leaves + slot];
}

double replay_tree_total(const struct replay_tree *tree)
{
    return tree->weights[1];
}

size_t replay_tree_find(const struct replay_tree *tree, double at)
{
    size_t i = 1;
    while (i < tree->n_leaves) {
        const double left = tree->weights[2 * i];
        /* A rounded sum may promise more to the right than there is. */
        const bool right_is_empty = tree->weights[2 * i + 1] == 0.0;
        i *= 2;
        if (at >= left && !right_is_empty) {
            at -= left;
            i++;
        }
    }
    return i - tree->n_leaves;
}

size_t replay_tree_oldest(const struct replay_tree *tree, int64_t *version)
{
    size_t i = 1;
    while (i < tree->n_leaves) {
        i *= 2;
        if (tree->versions[i + 1] < tree->versions[i])
            i++;
    }
    *version = tree->versions[i];
    return i - tree->n_leaves;
}
