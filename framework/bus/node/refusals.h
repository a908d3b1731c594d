/* refusals.h - what peers and strangers did that is refused: counted, named,
 * and told in few lines, however often they do it. The lock is held. */
#ifndef LOCKSTEP_BUS_REFUSALS_H
#define LOCKSTEP_BUS_REFUSALS_H

#include "lockstep/node.h"

#define REFUSALS_MAX 32

struct refusal_row {
    struct ls_refusal told; /* with its count */
    int64_t said_at;        /* when a line last told of it; 0: never */
    uint64_t said;          /* its count then */
};

struct refusals {
    struct refusal_row *rows; /* own; REFUSALS_MAX, from the first on */
    size_t n;
    uint64_t total;
    int64_t lines_since; /* of the lines of this while: */
    unsigned lines;
    char last[256]; /* the reason of the last one; "" */
};

/* The reason is in ls_error_text(). who: an address, or "node 7"; "": nobody
 * can be named. */
void refusals_fini(struct refusals *refusals);
void refusals_note(struct refusals *refusals, enum ls_refusal_kind kind,
                   const char *who, uint64_t n, int64_t now);

#endif
