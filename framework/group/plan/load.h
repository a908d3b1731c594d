/* load.h - short operations, which ride on the messages that commit them.
 *
 * Each rank's first message of an epoch carries what it brings; whoever has
 * heard all makes the result, and it goes back with the word that all have
 * entered. So a short operation costs what a barrier costs. The result of an
 * epoch is the same whoever makes it: what a rank brings to it never changes.
 * Pure. Thread: serial. */
#ifndef GROUP_LOAD_H
#define GROUP_LOAD_H

#include "plan.h"

/* The longest that a rank brings, and the longest result. */
#define LOAD_BRINGS_MAX ((size_t)32 << 10)
#define LOAD_RESULT_MAX ((size_t)128 << 10)
/* Among more ranks nothing rides: messages go through a tree. */
#define LOAD_RANKS_MAX 32

/* What a rank brings to an epoch. */
struct load {
    uint64_t rounds; /* the epoch, plus 1; 0: none */
    struct group_form form;
    unsigned char *bytes; /* own */
    size_t size, capacity;
};

/* Errors: LS_ENOMEM; nothing was changed. */
LS_MUST_USE int load_set(struct load *load, uint64_t epoch,
                         const struct group_form *form, const void *bytes,
                         size_t size);
void load_fini(struct load *load);

/* Whether an operation of this shape rides: the same in all ranks. */
bool load_rides(const struct plan_shape *shape);
size_t load_brings(const struct plan_shape *shape, uint32_t rank);
size_t load_result(const struct plan_shape *shape);

/* Make the result of what all bring: loads[n], each load_brings() long. */
void load_make(const struct plan_shape *shape, const struct load *const *loads,
               unsigned char *result);

/* Give this rank its part of the result. */
void load_deliver(const struct plan_shape *shape, const unsigned char *result,
                  unsigned char *out);

#endif
