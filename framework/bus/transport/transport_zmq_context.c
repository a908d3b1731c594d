/* The context that the nodes of a process share, and who is bound in it. */
#include "brief_lock.h"
#include "forked.h"
#include "transport_zmq.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_SOCKETS 32768
#define FIRST_FILES 6 /* of a context, its two threads and a socket */

static struct {
    atomic_flag lock; /* taken at open and close */
    void *zctx;
    struct zmq_handler *handler;  /* of the context */
    struct zmq_transport *inproc; /* bound to such an address */
    /* Also read without it: in the child of a fork it may be held for ever. */
    atomic_uint users;
    atomic_uint forks; /* when the context was made; before there are users */
} shared = {.lock = ATOMIC_FLAG_INIT};

static void terminate(void *zctx, struct zmq_handler *handler)
{
    while (zmq_ctx_term(zctx) != 0 && zmq_errno() == EINTR)
        ;
    transport_zmq_handler_join(&handler);
}

/* Whether libzmq can have its first files: with fewer, its threads, which the
 * first socket of a context starts, abort the process. Errors: in errno. */
static bool has_first_files(void)
{
    int files[FIRST_FILES];
    int n = 0;
    while (n < FIRST_FILES && (files[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
        n++;
    const int error = n < FIRST_FILES ? errno : 0;
    for (int i = 0; i < n; i++)
        (void)close(files[i]);
    errno = error;
    return error == 0;
}

/* A context with its handler, made outside of the lock; of two that are made at
 * once one goes. Errors: in errno. */
static bool make(void **zctx, struct zmq_handler **handler)
{
    if (!has_first_files())
        return false;
    *zctx = zmq_ctx_new();
    if (*zctx == NULL)
        return false;
    zmq_ctx_set(*zctx, ZMQ_BLOCKY, 0);
    zmq_ctx_set(*zctx, ZMQ_MAX_SOCKETS, MAX_SOCKETS);
    *handler = transport_zmq_handler_start(*zctx);
    if (*handler == NULL)
        zmq_ctx_term(*zctx);
    return *handler != NULL;
}

void *transport_zmq_context(struct zmq_handler **out)
{
    void *made = NULL;
    struct zmq_handler *handler = NULL;
    if (shared.users != 0 && ls_forked_since(shared.forks))
        return NULL;
    ls_brief_lock(&shared.lock);
    const bool none = shared.users == 0;
    if (!none)
        shared.users++;
    void *zctx = shared.zctx;
    *out = shared.handler;
    ls_brief_unlock(&shared.lock);
    if (!none)
        return zctx;
    if (!make(&made, &handler))
        return NULL;
    ls_brief_lock(&shared.lock);
    const bool first = shared.users == 0;
    if (first) {
        shared.forks = ls_forks_now();
        shared.zctx = made;
        shared.handler = handler;
    }
    shared.users++;
    zctx = shared.zctx;
    *out = shared.handler;
    ls_brief_unlock(&shared.lock);
    if (!first)
        terminate(made, handler);
    return zctx;
}

void transport_zmq_context_release(void)
{
    ls_brief_lock(&shared.lock);
    void *last = NULL;
    struct zmq_handler *handler = NULL;
    if (--shared.users == 0) {
        last = shared.zctx;
        handler = shared.handler;
        shared.zctx = NULL;
        shared.handler = NULL;
    }
    ls_brief_unlock(&shared.lock);
    if (last != NULL)
        terminate(last, handler);
}

void transport_zmq_inproc_add(struct zmq_transport *t)
{
    if (strncmp(t->bound, "inproc://", 9) != 0)
        return;
    ls_brief_lock(&shared.lock);
    t->next_inproc = shared.inproc;
    shared.inproc = t;
    ls_brief_unlock(&shared.lock);
}

void transport_zmq_inproc_remove(struct zmq_transport *t)
{
    ls_brief_lock(&shared.lock);
    struct zmq_transport **at = &shared.inproc;
    while (*at != NULL && *at != t)
        at = &(*at)->next_inproc;
    if (*at != NULL)
        *at = t->next_inproc;
    ls_brief_unlock(&shared.lock);
}

bool transport_zmq_inproc_has(const char *endpoint)
{
    ls_brief_lock(&shared.lock);
    const struct zmq_transport *t = shared.inproc;
    while (t != NULL && strcmp(t->bound, endpoint) != 0)
        t = t->next_inproc;
    ls_brief_unlock(&shared.lock);
    return t != NULL;
}
