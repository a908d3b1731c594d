/* plan.h - how the bytes of one operation get from rank to rank: what one of
 * them sends, takes, copies and folds, and what each of these waits for.
 *
 * Bytes move in flows: from one rank to another, in order, a range of a buffer.
 * A flow may follow another move, byte for byte, so that what has come is
 * passed on before the rest has. All ranks make their plans from the same
 * shape, so that each flow has its two ends.
 *
 *   direct  every rank works on a slice of its own: it takes the slice from all
 *           others, folds it in their order, and sends the fold to all. Two
 *           steps, whatever the number of ranks; all links are used
 *   ring    partial folds go from rank 0 up to the last, then the result goes
 *           on around: as many bytes on each link, two flows for each rank
 *   tree    of a broadcast: each rank passes on to two
 *
 * Folds are in the order of ranks in either. Short operations need no plan:
 * they ride on the messages that commit them (load.h).
 * Pure: no I/O, no clock. Thread: serial. */
#ifndef GROUP_PLAN_H
#define GROUP_PLAN_H

#include "call.h"

enum plan_buffer { PLAN_IN, PLAN_OUT, PLAN_SCRATCH };

enum plan_what {
    PLAN_SEND,    /* to the peer */
    PLAN_TAKE,    /* from the peer, and write it */
    PLAN_FOLD_IN, /* from the peer: what it sends, and this rank's own at the
                   * same place, become the fold of both */
    PLAN_FOLD,    /* of all ranks: this rank's own at `own`, the others' as the
                   * n-1 moves from `after` on take them */
    PLAN_COPY     /* from `own` of PLAN_IN: done at once */
};

struct plan_move {
    enum plan_what what;
    uint32_t peer; /* a rank */
    uint32_t lane; /* tells the flows between two ranks apart */
    enum plan_buffer buffer;
    size_t at, size; /* of the buffer, in bytes */
    size_t own;
    int32_t after; /* it follows this move; -1: nothing */
    bool ends;     /* FOLD, FOLD_IN: all ranks are in it then: fold_end() */
};

struct plan {
    struct plan_move *moves; /* own */
    size_t n;
    size_t capacity;
    size_t scratch_bytes;
};

/* What is moved. */
struct plan_shape {
    struct group_form form;
    uint32_t rank, n;
    /* Of any sizes: bytes that each rank brings, and where in the result they
     * are to lie. NULL: form.count, one after the other. */
    const size_t *sizes, *ats;
};

/* Bytes that a rank brings to a gather or a broadcast; where they are to lie.
 */
size_t plan_brings(const struct plan_shape *shape, uint32_t rank);
size_t plan_lies(const struct plan_shape *shape, uint32_t rank);

/* Up to so many ranks go direct. */
#define PLAN_DIRECT_MAX 32
/* A broadcast of at least so many bytes for each rank goes direct; a shorter
 * one by the tree. */
#define PLAN_SLICE_MIN ((size_t)16 << 10)

/* out: own; give it to plan_fini(), also after an error. Errors: LS_ENOMEM. */
LS_MUST_USE int plan_make(struct plan *out, const struct plan_shape *shape);
void plan_fini(struct plan *plan);

#endif
