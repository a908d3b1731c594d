/* thread_state.h - what the framework remembers for each thread.
 *
 * A thread of a simulation is not one of the system's, so what belongs to it
 * cannot lie in thread-local variables: a scheduler puts the thread's own
 * record in place before it lets the thread run. */
#ifndef THREAD_STATE_H
#define THREAD_STATE_H

#include <stdint.h>

#include "lockstep/runtime.h"

struct thread_state {
    ls_runtime *runtime; /* borrow; NULL: that of threads */
    int64_t node;        /* for the log; negative: none */
    int64_t named;       /* 1 + that which the thread is named after; 0: none */
    const char *step;    /* for the log; NULL: none */
    const char *name;    /* borrow; NULL: nobody spawned it */
    uint64_t trace;      /* the recorder that it last recorded to; 0: none */
    uint16_t trace_name; /* its own, there */
    struct ls_failure error; /* the last one; its status is not used */
};

/* The record of whoever runs here; NULL: nobody has asked for it yet.
 * initial-exec: the general model is a function call on each use. */
extern _Thread_local struct thread_state *ls_thread_state_now
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Put the record of a thread in place that the runtime did not spawn:
 * runtime_threads_record.c. */
struct thread_state *ls_thread_state_begin(void);

static inline struct thread_state *thread_state(void)
{
    struct thread_state *const state = ls_thread_state_now;
    return state != NULL ? state : ls_thread_state_begin();
}

#endif
