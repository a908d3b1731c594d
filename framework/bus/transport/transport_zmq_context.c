/* The context that the nodes of a process share, and who is bound in it. */
#define _GNU_SOURCE /* gettid, tgkill */
#include "brief_lock.h"
#include "forked.h"
#include "transport_zmq.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_SOCKETS 32768
/* Of a context, its two threads and a socket. */
#define FIRST_FILES   6
#define FIRST_THREADS 2

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

/* What libzmq cannot have for the first socket of a context, it aborts the
 * process for: so that is tried before. */
static int find_first_files(void)
{
    int files[FIRST_FILES];
    int n = 0, status = LS_OK;
    while (n < FIRST_FILES && (files[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
        n++;
    if (n < FIRST_FILES)
        status = transport_zmq_error("zmq_ctx_new");
    while (n > 0)
        (void)close(files[--n]);
    return status;
}

struct first_thread {
    ls_thread *thread;
    ls_mutex *held; /* until all are there */
    pid_t id;
};

static void be_there(void *self)
{
    struct first_thread *first = self;
    first->id = gettid();
    ls_mutex_lock(first->held);
    ls_mutex_unlock(first->held);
}

static int find_first_threads(void)
{
    struct first_thread first[FIRST_THREADS];
    ls_mutex held;
    int n = 0, status = ls_mutex_init(&held, ls_runtime_threads());
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&held);
    while (n < FIRST_THREADS && status == LS_OK) {
        first[n].held = &held;
        status = ls_thread_spawn(ls_runtime_threads(), &first[n].thread,
                                 "ls-first", be_there, &first[n]);
        n += status == LS_OK;
    }
    ls_mutex_unlock(&held);
    while (n-- > 0) {
        const int joined = ls_thread_join(&first[n].thread, LS_FOREVER);
        assert(joined == LS_OK);
        (void)joined;
        /* One that was joined counts until the system has forgotten it. */
        while (tgkill(getpid(), first[n].id, 0) == 0)
            ls_yield_core(ls_runtime_threads());
    }
    ls_mutex_fini(&held);
    return status;
}

/* A context with its handler, made outside of the lock; of two that are made at
 * once one goes. */
static int make(void **zctx, struct zmq_handler **handler)
{
    int status = find_first_files();
    if (status == LS_OK)
        status = find_first_threads();
    if (status != LS_OK)
        return status;
    *zctx = zmq_ctx_new();
    if (*zctx == NULL)
        return transport_zmq_error("zmq_ctx_new");
    zmq_ctx_set(*zctx, ZMQ_BLOCKY, 0);
    zmq_ctx_set(*zctx, ZMQ_MAX_SOCKETS, MAX_SOCKETS);
    status = transport_zmq_handler_start(handler, *zctx);
    if (status != LS_OK)
        zmq_ctx_term(*zctx);
    return status;
}

int transport_zmq_context(void **zctx, struct zmq_handler **out)
{
    void *made = NULL;
    struct zmq_handler *handler = NULL;
    if (shared.users != 0 && ls_forked_since(shared.forks))
        return ls_forked_error("what nodes of one process share");
    ls_brief_lock(&shared.lock);
    const bool none = shared.users == 0;
    if (!none)
        shared.users++;
    *zctx = shared.zctx;
    *out = shared.handler;
    ls_brief_unlock(&shared.lock);
    if (!none)
        return LS_OK;
    const int status = make(&made, &handler);
    if (status != LS_OK)
        return status;
    ls_brief_lock(&shared.lock);
    const bool first = shared.users == 0;
    if (first) {
        shared.forks = ls_forks_now();
        shared.zctx = made;
        shared.handler = handler;
    }
    shared.users++;
    *zctx = shared.zctx;
    *out = shared.handler;
    ls_brief_unlock(&shared.lock);
    if (!first)
        terminate(made, handler);
    return LS_OK;
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
