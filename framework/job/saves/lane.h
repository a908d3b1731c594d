/* lane.h - a thread that works on requests, one at a time, in the order in
 * which they came. Those that come before it begins wait for it. */
#ifndef LOCKSTEP_SAVES_LANE_H
#define LOCKSTEP_SAVES_LANE_H

#include "ask.h"

#define LANE_MAX 16 /* requests that wait; one at a time is usual */

struct lane {
    struct asker *asker; /* borrow: its mutex guards what follows */
    question_fn *fn;
    void *self; /* borrow */
    uint32_t id;
    ls_request *waiting[LANE_MAX];
    size_t n;
    bool running;
    ls_thread *thread; /* own */
};

/* All fields but the first four are zero. Errors: those of ls_thread_spawn().
 */
LS_MUST_USE int lane_begin(struct lane *lane, const char *name);
/* With the mutex held. false: too many wait. */
bool lane_put(struct lane *lane, ls_request *request);
/* The last of them, for somebody else to answer; NULL: none waits. With the
 * mutex held. */
ls_request *lane_pop(struct lane *lane);
/* Ends it after the request that it works on. With the mutex held. */
void lane_stop(struct lane *lane);
/* Waits for that. */
void lane_join(struct lane *lane);

#endif
