/* crew.h - one call for each of several, at the same time.
 *
 * Member 0 is whoever runs the crew; each other one has a thread of its own,
 * always the same. Thread: owner, but for crew_busy(). */
#ifndef CREW_H
#define CREW_H

#include "lockstep/runtime.h"

struct crew;

typedef void crew_fn(void *self, size_t member);

/* n: members, >= 1. Errors: LS_ENOMEM; LS_EAGAIN no room for a thread. */
LS_MUST_USE int crew_create(struct crew **out, ls_runtime *runtime, size_t n,
                            crew_fn *fn, void *self);

/* Call fn(self, member) for every member; return when all calls have. Never
 * after crew_dismiss(). */
void crew_run(struct crew *crew);

/* Which thread is in a call; 0: none. Any thread. */
size_t crew_busy(struct crew *crew);

/* Let the threads end, those that are in a call after it. Again: nothing. */
void crew_dismiss(struct crew *crew);

/* Wait for those threads.
 * Errors: LS_ETIMEDOUT. */
LS_MUST_USE int crew_join(struct crew *crew, int64_t deadline);

/* They were joined. NULL and a pointer to NULL are fine. */
void crew_destroy(struct crew **crew);

#endif
