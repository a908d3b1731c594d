/* results.h - the queue of results, in places that are used again.
 *
 * A result is made in a place that is taken, and put; what is dropped and what
 * was read gives its place back. There are as many places as can be under way
 * with one reader; each further reader at the same time makes one more.
 * Thread: any. */
#ifndef RESULTS_H
#define RESULTS_H

#include "lockstep/learner.h"

struct results;

struct result_place {
    struct ls_learner_result result; /* info: own, never NULL */
    struct results *results;         /* borrow */
    struct result_place *next;       /* own; of those that are free */
};

/* Errors: LS_EINVAL when_full; LS_ENOMEM. */
LS_MUST_USE int results_create(struct results **out, ls_runtime *runtime,
                               size_t capacity, enum ls_when_full when_full);

/* A place whose info is empty. Errors: LS_ENOMEM. */
LS_MUST_USE int results_take(struct results *results,
                             struct result_place **out);

/* Put what was taken, waiting for room as when_full says; without room, or
 * when it is closed, it is dropped, and counted as refused. */
void results_put(struct results *results, struct result_place *place);

/* Give back what was taken and is not put. */
void results_give_back(struct result_place *place);

/* As ls_learner_get(), but for the errors of a closed one: LS_ECLOSED. */
LS_MUST_USE int results_get(struct results *results,
                            struct ls_learner_result *out, int64_t deadline);

void results_close(struct results *results);
void results_stats(struct results *results, struct ls_queue_stats *out);

/* NULL and a pointer to NULL are fine. */
void results_destroy(struct results **results);

#endif
