/* The context that the nodes of a process share. */
#include "transport_zmq.h"

#include <errno.h>
#include <string.h>

#define MAX_SOCKETS 32768

static struct {
    atomic_flag busy; /* held for a few instructions, at open and close */
    void *zctx;
    unsigned users;
    struct zmq_transport *inproc; /* bound to such an address */
} shared = {.busy = ATOMIC_FLAG_INIT};

static void take_shared(void)
{
    while (
        atomic_flag_test_and_set_explicit(&shared.busy, memory_order_acquire))
        ;
}

static void let_go_of_shared(void)
{
    atomic_flag_clear_explicit(&shared.busy, memory_order_release);
}

void *transport_zmq_context(void)
{
    take_shared();
    if (shared.users == 0 && (shared.zctx = zmq_ctx_new()) != NULL) {
        zmq_ctx_set(shared.zctx, ZMQ_BLOCKY, 0);
        zmq_ctx_set(shared.zctx, ZMQ_MAX_SOCKETS, MAX_SOCKETS);
    }
    void *zctx = shared.zctx;
    if (zctx != NULL)
        shared.users++;
    let_go_of_shared();
    return zctx;
}

void transport_zmq_context_release(void)
{
    take_shared();
    void *last = NULL;
    if (--shared.users == 0) {
        last = shared.zctx;
        shared.zctx = NULL;
    }
    let_go_of_shared();
    if (last != NULL)
        while (zmq_ctx_term(last) != 0 && zmq_errno() == EINTR)
            ;
}

void transport_zmq_inproc_add(struct zmq_transport *t)
{
    if (strncmp(t->bound, "inproc://", 9) != 0)
        return;
    take_shared();
    t->next_inproc = shared.inproc;
    shared.inproc = t;
    let_go_of_shared();
}

void transport_zmq_inproc_remove(struct zmq_transport *t)
{
    take_shared();
    struct zmq_transport **at = &shared.inproc;
    while (*at != NULL && *at != t)
        at = &(*at)->next_inproc;
    if (*at != NULL)
        *at = t->next_inproc;
    let_go_of_shared();
}

bool transport_zmq_inproc_has(const char *endpoint)
{
    take_shared();
    const struct zmq_transport *t = shared.inproc;
    while (t != NULL && strcmp(t->bound, endpoint) != 0)
        t = t->next_inproc;
    let_go_of_shared();
    return t != NULL;
}
