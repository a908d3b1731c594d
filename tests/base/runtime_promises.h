/* runtime_promises.h - what runtime.h promises on every runtime, as tests. Each
 * is run by a thread of the runtime that it is given, or, on that of threads,
 * by any. */
#ifndef RUNTIME_PROMISES_H
#define RUNTIME_PROMISES_H

#include "lockstep/runtime.h"

#define RUNTIME_PROMISES(X)                                                    \
    X(now_never_goes_back)                                                     \
    X(deadline_turns_a_wait_into_a_point_in_time)                              \
    X(entropy_does_not_repeat)                                                 \
    X(rest_ends_at_its_deadline)                                               \
    X(a_thread_knows_itself_from_its_start)                                    \
    X(a_thread_has_an_error_text_of_its_own)                                   \
    X(a_thread_is_current_nowhere_else)                                        \
    X(a_thread_can_be_kept_on_a_core)                                          \
    X(join_gives_up_at_its_deadline_and_may_be_tried_again)                    \
    X(a_mutex_lets_one_in_at_a_time)                                           \
    X(fini_may_come_again_or_before_init)                                      \
    X(broadcast_wakes_all_who_wait)                                            \
    X(signal_wakes_one_who_waits)                                              \
    X(a_wait_ends_at_its_deadline_with_the_mutex_held)

#define PROMISE_DECLARATION(name) void name(ls_runtime *runtime);
RUNTIME_PROMISES(PROMISE_DECLARATION)
#undef PROMISE_DECLARATION

#endif
