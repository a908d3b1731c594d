/* crew.h - calls one function for each of several members, at the same time.
 *
 * Member 0 runs on the caller's thread; each other member has its own thread,
 * always the same. Thread: owner, except ls_crew_busy(). */
#ifndef LOCKSTEP_CREW_H
#define LOCKSTEP_CREW_H

#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_crew ls_crew;

typedef void ls_crew_fn(void *self, size_t member);

/* out:    own; NULL after an error; give it to ls_crew_destroy().
 * n:      members, >= 1.
 * name:   of the threads: "NAME-1", "NAME-2" …; copied.
 * Errors: LS_EINVAL n; LS_ENOMEM; LS_EAGAIN no room for a thread. */
LS_MUST_USE LS_API int ls_crew_create(ls_crew **out, ls_runtime *runtime,
                                      size_t n, const char *name,
                                      ls_crew_fn *fn, void *self);

/* Call fn(self, member) for every member; return when all have returned. Never
 * call it after ls_crew_dismiss(). */
LS_API void ls_crew_run(ls_crew *crew);

/* The number of a thread that is in a call; 0: none. Any thread. */
LS_API size_t ls_crew_busy(ls_crew *crew);

/* Tell the threads to end, after their current call. Repeating it has no
 * effect. */
LS_API void ls_crew_dismiss(ls_crew *crew);

/* Wait for those threads.
 * Errors: LS_ETIMEDOUT. */
LS_MUST_USE LS_API int ls_crew_join(ls_crew *crew, int64_t deadline);

/* Free it; threads that were not joined are dismissed and waited for. NULL and
 * a pointer to NULL are fine. */
LS_API void ls_crew_destroy(ls_crew **crew);

#ifdef __cplusplus
}
#endif

#endif
