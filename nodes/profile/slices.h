/* slices.h - what is drawn of a run: per node and thread, what was inside of
 * what, and what led to what. */
#ifndef LOCKSTEP_PROFILE_SLICES_H
#define LOCKSTEP_PROFILE_SLICES_H

#include "profile_graph.h"

enum slice_kind {
    SLICE_ITERATION,
    SLICE_STEP,
    SLICE_WAIT,
    SLICE_SEND,
    SLICE_RECEIVE,
    SLICE_KINDS
};
extern const char *const slice_kinds[SLICE_KINDS];

/* One is inside of another or beside it, as far as they are of one thread. */
struct slice {
    int64_t begin, end;
    const void *of; /* a record, or a wait of the graph */
    uint16_t name, thread;
    uint8_t kind;
};

/* Those of a node, by thread, and by time; what is inside comes later.
 * out: own; free() it. Errors: LS_ENOMEM. */
LS_MUST_USE int slices_make(struct slice **out, size_t *n,
                            const struct profile_graph *graph, size_t node);

/* From a call that emitted to a handler; or from the wait of the last that
 * entered an epoch, to the end of another's. */
struct arrow {
    const void *from, *to; /* of slices */
    uint64_t id;
};

/* By `from`. out: own; free() it. Errors: LS_ENOMEM. */
LS_MUST_USE int arrows_make(struct arrow **out, size_t *n,
                            const struct profile_graph *graph);

/* The earliest time of all. */
int64_t slices_begin(const struct profile *profile);

#endif
