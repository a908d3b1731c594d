/* The context that the nodes of a process share. */
#include <errno.h>

#include "transport_zmq.h"

#define MAX_SOCKETS 32768

static struct {
    atomic_flag busy; /* held for a few instructions, at open and close */
    void *zctx;
    unsigned users;
} shared = {.busy = ATOMIC_FLAG_INIT};

void *transport_zmq_context(void)
{
    while (
        atomic_flag_test_and_set_explicit(&shared.busy, memory_order_acquire))
        ;
    if (shared.users == 0 && (shared.zctx = zmq_ctx_new()) != NULL) {
        zmq_ctx_set(shared.zctx, ZMQ_BLOCKY, 0);
        zmq_ctx_set(shared.zctx, ZMQ_MAX_SOCKETS, MAX_SOCKETS);
    }
    void *zctx = shared.zctx;
    if (zctx != NULL)
        shared.users++;
    atomic_flag_clear_explicit(&shared.busy, memory_order_release);
    return zctx;
}

void transport_zmq_context_release(void)
{
    while (
        atomic_flag_test_and_set_explicit(&shared.busy, memory_order_acquire))
        ;
    void *last = NULL;
    if (--shared.users == 0) {
        last = shared.zctx;
        shared.zctx = NULL;
    }
    atomic_flag_clear_explicit(&shared.busy, memory_order_release);
    if (last != NULL)
        while (zmq_ctx_term(last) != 0 && zmq_errno() == EINTR)
            ;
}
