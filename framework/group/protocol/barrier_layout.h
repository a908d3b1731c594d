/* barrier_layout.h - where the members of a world stand in the tree of a
 * barrier, by the host that each is on.
 *
 * Members are counted by id. The first is the root. The first member of each
 * host stands below the first members of other hosts, and all others of a host
 * below its first: so but for one edge to each host, none leaves a host. The
 * first members make a tree of their own, and so do the members of a host, each
 * with at most `fanout` below one; so one may have twice as many below it.
 *
 * Places are given from the root down, so those just below one, and all that
 * are equally far below one, have places that follow each other. On one host,
 * or with a host for each, those below place p are p·fanout + 1 and on.
 * Thread: serial. */
#ifndef BARRIER_LAYOUT_H
#define BARRIER_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ls_layout_place {
    uint32_t member; /* who stands there, counted by id */
    uint32_t above;  /* the place just above; of the root: 0 */
    uint32_t below;  /* the first place just below; those of the next place
                      * begin where its own end */
};

struct ls_layout {
    struct ls_layout_place *places; /* own; n, and the end of the last one */
    uint64_t *hosts;                /* own; for which it was made */
    uint32_t n;                     /* 0: for nobody */
    uint32_t n_hosts;
    uint32_t fanout;
    size_t capacity; /* members that there is room for */
};

void ls_layout_fini(struct ls_layout *layout);

/* hosts:  by id; equal: on one host; 0: on a host of its own. n: at least 1.
 * fanout: at least 1. For the same as before it costs a comparison.
 * Returns false: no memory; the layout is for nobody. */
bool ls_layout_make(struct ls_layout *layout, const uint64_t *hosts, uint32_t n,
                    uint32_t fanout);

/* Whether all others stand just below the root. */
bool ls_layout_is_flat(const struct ls_layout *layout);

#endif
