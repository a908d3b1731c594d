/* gate.h - threads that wait until they are let through. */
#ifndef GATE_H
#define GATE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lockstep/runtime.h"
#include "test.h"

/* A door that threads wait at until it is opened. */
struct gate {
    ls_mutex mutex;
    ls_cond changed;
    int waiting;
    bool open;
};

static inline void init_gate(struct gate *gate, ls_runtime *runtime)
{
    memset(gate, 0, sizeof *gate);
    assert_int_equal(ls_mutex_init(&gate->mutex, runtime), LS_OK);
    assert_int_equal(ls_cond_init(&gate->changed, runtime), LS_OK);
}

static inline void fini_gate(struct gate *gate)
{
    ls_cond_fini(&gate->changed);
    ls_mutex_fini(&gate->mutex);
}

/* Under the gate's mutex. */
static inline void await_change(struct gate *gate)
{
    const int status = ls_cond_wait(&gate->changed, &gate->mutex, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
}

static inline void pass_gate(void *arg)
{
    struct gate *gate = arg;
    ls_mutex_lock(&gate->mutex);
    gate->waiting++;
    ls_cond_broadcast(&gate->changed);
    while (!gate->open)
        await_change(gate);
    gate->waiting--;
    ls_mutex_unlock(&gate->mutex);
}

static inline void await_waiting(struct gate *gate, int n)
{
    ls_mutex_lock(&gate->mutex);
    while (gate->waiting < n)
        await_change(gate);
    ls_mutex_unlock(&gate->mutex);
}

static inline void open_gate(struct gate *gate)
{
    ls_mutex_lock(&gate->mutex);
    gate->open = true;
    ls_cond_broadcast(&gate->changed);
    ls_mutex_unlock(&gate->mutex);
}

static inline void spawn(ls_runtime *runtime, ls_thread **out,
                         void (*fn)(void *arg), void *arg)
{
    assert_int_equal(ls_thread_spawn(runtime, out, "test", fn, arg), LS_OK);
}

static inline void join(ls_thread **thread)
{
    assert_int_equal(ls_thread_join(thread, LS_FOREVER), LS_OK);
    assert_null(*thread);
}

#endif
