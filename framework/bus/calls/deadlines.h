/* deadlines.h - which of many deadlines comes first: a heap.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_DEADLINES_H
#define LOCKSTEP_BUS_DEADLINES_H

#include <stddef.h>
#include <stdint.h>

/* One, in the caller's memory; never moved while it is in. */
struct deadline {
    int64_t at;
    size_t place; /* in the heap, from 1; 0: it is in none */
};

struct deadlines {
    struct deadline **heap;
    size_t n, capacity;
};

/* Errors: LS_ENOMEM. */
int deadlines_add(struct deadlines *deadlines, struct deadline *deadline);
/* Nothing, when it is not in. */
void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline);
/* All come later by as much. */
void deadlines_delay(struct deadlines *deadlines, int64_t by);
/* The earliest; NULL: there is none. */
struct deadline *deadlines_first(const struct deadlines *deadlines);
void deadlines_fini(struct deadlines *deadlines);

#endif
