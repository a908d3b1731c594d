/* The network is libzmq 4.3.4: one XPUB that is bound, one XSUB per link.
 *
 * Design notes
 * - ZMQ_FD is edge-triggered, and any call on a socket may swallow the edge.
 *   XSUBs belong to who polls alone: one is read until EAGAIN, and read
 *   again after any other call on it (`dirty`). The XPUB is shared under the
 *   lock: whoever publishes looks at ZMQ_EVENTS before letting the lock go,
 *   and wakes the bus thread when there is something to read.
 *   That look is a system call, so of publishes close together only some make
 *   it; for the others the bus thread looks a little later (`unlooked`).
 * - An XSUB can send to its publisher, and does not filter:
 *   docs/decisions/0032-up.md.
 * - No ZMTP heartbeats: with a full receive queue they abort the process on
 *   this version (libzmq issues 3937, 4767).
 * - The marks lie above what the bus has under way to any peer, so who is a
 *   member never meets them; they bound what waits for those that do not read,
 *   and what comes from those that do not stop.
 * - All nodes of a process share one context, as inproc needs; it lives while
 *   there is a node. */
#define _GNU_SOURCE /* epoll, eventfd */
#include "transport_zmq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "wire.h"

#define SUBSCRIPTIONS_MARK 1024

#ifdef TELL_TSAN
char transport_handover;
#endif

int transport_zmq_error(const char *what)
{
    const int error = zmq_errno();
    switch (error) {
    case EMFILE:
    case ENFILE:
        return ls_error(
            LS_ELIMIT, "%s: no more sockets or files; raise `ulimit -n`", what);
    case ENOMEM:
        return ls_error(LS_ENOMEM, "%s: no memory", what);
    default:
        return ls_error(LS_EIO, "%s: %s", what, zmq_strerror(error));
    }
}

/* ---- open and close ---------------------------------------------------- */

bool transport_zmq_set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

bool transport_zmq_set_common(void *socket, size_t max_bytes, int linger_ms)
{
    const int64_t max = (int64_t)max_bytes;
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof max) == 0 &&
           transport_zmq_set_int(socket, ZMQ_LINGER, linger_ms) &&
           transport_zmq_set_int(socket, ZMQ_RECONNECT_IVL, 10) &&
           transport_zmq_set_int(socket, ZMQ_RECONNECT_IVL_MAX, 500) &&
           transport_zmq_set_int(socket, ZMQ_HANDSHAKE_IVL, 3000) &&
           transport_zmq_set_int(socket, ZMQ_CONNECT_TIMEOUT, 1500) &&
           transport_zmq_set_int(socket, ZMQ_TCP_KEEPALIVE, 1) &&
           transport_zmq_set_int(socket, ZMQ_TCP_KEEPALIVE_IDLE, 1) &&
           transport_zmq_set_int(socket, ZMQ_TCP_KEEPALIVE_INTVL, 1) &&
           transport_zmq_set_int(socket, ZMQ_TCP_KEEPALIVE_CNT, 3) &&
           transport_zmq_set_int(socket, ZMQ_TCP_MAXRT, 3000);
}

bool transport_zmq_set_family(void *socket, const char *endpoint)
{
    char host[LS_ENDPOINT_MAX + 1];
    return transport_zmq_set_int(
        socket, ZMQ_IPV6,
        transport_tcp_host(endpoint, host, sizeof host) &&
            strchr(host, ':') != NULL);
}

int transport_zmq_fd(void *socket)
{
    int fd = -1;
    size_t size = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

bool transport_zmq_is_readable(void *socket)
{
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 &&
           (events & ZMQ_POLLIN) != 0;
}

bool transport_zmq_watch(const struct zmq_transport *t, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int open_files(struct zmq_transport *t)
{
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (t->epoll < 0)
        return ls_error_from(errno, "epoll_create1");
    t->stand_by = epoll_create1(EPOLL_CLOEXEC);
    if (t->stand_by < 0)
        return ls_error_from(errno, "epoll_create1");
    t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->wake < 0)
        return ls_error_from(errno, "eventfd");
    struct epoll_event all = {.events = EPOLLIN};
    if (!transport_zmq_watch(t, t->wake, &t->wake) ||
        epoll_ctl(t->stand_by, EPOLL_CTL_ADD, t->epoll, &all) != 0)
        return ls_error_from(errno, "epoll_ctl");
    return LS_OK;
}

/* Subscriptions alone come in at the publisher. Their length must be bounded:
 * this version walks its table of them with one stack frame per byte, and a
 * topic of some 100,000 bytes overflows the stack. And how many wait to be
 * read, or one connection could fill the memory with them. */
static bool set_publisher(struct zmq_transport *t, uint32_t max_under_way)
{
    /* libzmq hears of what was read in halves of the mark. */
    const int mark = 2 * (int)max_under_way;
    return transport_zmq_set_common(t->xpub, WIRE_TOPIC_MAX + 64,
                                    t->linger_ms) &&
           transport_zmq_set_int(t->xpub, ZMQ_SNDHWM, mark) &&
           transport_zmq_set_int(t->xpub, ZMQ_RCVHWM, SUBSCRIPTIONS_MARK) &&
           transport_zmq_set_int(t->xpub, ZMQ_XPUB_VERBOSER, 1) &&
           transport_zmq_set_int(t->xpub, ZMQ_XPUB_NODROP, 1) &&
           (t->gate == NULL || transport_zmq_gate_guard(t->gate, t->xpub));
}

static int bind_publisher(struct zmq_transport *t,
                          const struct transport_options *options,
                          char *endpoint)
{
    int status = transport_zmq_bind(t->xpub, options->bind, endpoint);
    if (status != LS_OK)
        return status;
    memcpy(t->bound, endpoint, sizeof t->bound);
    t->has_folder = strcmp(options->bind, "ipc://*") == 0;
    transport_zmq_inproc_add(t);
    if (t->gate != NULL)
        transport_zmq_gate_opens(t->gate, t->bound, options->advertise);
    if (!transport_zmq_watch(t, transport_zmq_fd(t->xpub), t->xpub) ||
        (t->monitor != NULL &&
         !transport_zmq_watch(t, transport_zmq_fd(t->monitor), t->monitor)))
        return ls_error_from(errno, "epoll_ctl");
    atomic_store(&t->xpub_readable, true);
    return LS_OK;
}

static int open_publisher(struct zmq_transport *t,
                          const struct transport_options *options,
                          char *endpoint)
{
    struct zmq_handler *handler = NULL;
    const bool own = transport_in_process(options->bind);
    int status = transport_zmq_context(&t->zctx, &handler);
    if (status != LS_OK)
        return status;
    if ((t->ledger = transport_zmq_ledger_create()) == NULL)
        return ls_error(LS_ENOMEM, "no memory for a transport");
    if (!own)
        status = transport_zmq_gate_open(&t->gate, handler, options->security);
    if (status != LS_OK)
        return status;
    if ((t->xpub = zmq_socket(t->zctx, ZMQ_XPUB)) == NULL)
        return transport_zmq_error("zmq_socket");
    if (!set_publisher(t, options->max_under_way))
        return transport_zmq_error("zmq_setsockopt");
    if (!own)
        status = transport_zmq_monitor_open(t);
    return status == LS_OK ? bind_publisher(t, options, endpoint) : status;
}

static void unbind_transport(transport *base)
{
    struct zmq_transport *t = zmq_of(base);
    transport_lock(base);
    if (t->xpub != NULL) {
        transport_zmq_inproc_remove(t);
        transport_zmq_close(t);
    }
    t->xpub = NULL;
    transport_unlock(base);
}

static void close_transport(transport *base)
{
    struct zmq_transport *t = zmq_of(base);
    unbind_transport(base);
    transport_zmq_gate_close(&t->gate);
    transport_zmq_probes_free(t);
    if (t->zctx != NULL)
        transport_zmq_context_release();
    transport_zmq_ledger_drop(t->ledger);
    transport_zmq_inbounds_free(t);
    if (t->wake >= 0)
        close(t->wake);
    if (t->stand_by >= 0)
        close(t->stand_by);
    if (t->epoll >= 0)
        close(t->epoll);
    ls_mutex_fini(&base->lock);
    free(t);
}

static int open_transport(transport **out,
                          const struct transport_options *options,
                          char *endpoint)
{
    struct zmq_transport *t = calloc(1, sizeof *t);
    if (t == NULL)
        return ls_error(LS_ENOMEM, "no memory for a transport");
    t->base.ops = &transport_zmq_ops;
    t->base.runtime = options->runtime;
    atomic_init(&t->base.crowded, false);
    t->security = options->security;
    t->id = options->id;
    t->incarnation = options->incarnation;
    t->max_message_bytes = options->max_message_bytes;
    t->linger_ms = options->linger_ms;
    t->topic_seed = ls_entropy(options->runtime);
    t->allowed = SIZE_MAX;
    atomic_init(&t->left_at, LS_NOW);
    atomic_init(&t->met_at, LS_NOW);
    atomic_init(&t->rests_until, LS_NOW);
    atomic_init(&t->stands_until, LS_NOW);
    atomic_init(&t->due, LS_FOREVER);
    t->epoll = t->stand_by = t->wake = -1;
    int status = ls_mutex_init(&t->base.lock, options->runtime);
    if (status != LS_OK) {
        free(t);
        return status;
    }
    status = open_files(t);
    if (status == LS_OK)
        status = open_publisher(t, options, endpoint);
    if (status != LS_OK) {
        close_transport(&t->base);
        return status;
    }
    *out = &t->base;
    return LS_OK;
}

static void renew_transport(transport *base, uint64_t incarnation)
{
    zmq_of(base)->incarnation = incarnation;
}

/* ---- publishing -------------------------------------------------------- */

static void wake(transport *base)
{
    struct zmq_transport *t = zmq_of(base);
    if (atomic_exchange(&t->woken, true))
        return;
    const uint64_t one = 1;
    const ssize_t written = write(t->wake, &one, sizeof one);
    assert(written == sizeof one);
    (void)written;
}

static int lend_bell(transport *base, ls_memory *memory)
{
    return ls_memory_set_bell(memory, zmq_of(base)->wake, NULL, NULL);
}

/* Returns whether there is what nobody has seen. Lock held. */
static bool look(struct zmq_transport *t, int64_t now)
{
    t->looked_at = now;
    atomic_store(&t->unlooked, false);
    return t->xpub != NULL && transport_zmq_is_readable(t->xpub) &&
           !atomic_exchange(&t->xpub_readable, true);
}

/* To who polls, which is woken if it rests for longer. */
static void leave_look(struct zmq_transport *t, int64_t now)
{
    atomic_store(&t->left_at, now);
    atomic_store(&t->unlooked, true);
    const int64_t rests_until = atomic_load(&t->rests_until);
    if (rests_until != LS_NOW)
        atomic_store(&t->met_at, now);
    if (rests_until > now + LOOK_LATER_NS)
        wake(&t->base);
}

/* Lock held, after every call on the XPUB. */
static void look_for_subscriptions(struct zmq_transport *t)
{
    const int64_t now = ls_now(t->base.runtime);
    if (now - t->looked_at < LOOK_EVERY_NS) {
        if (!atomic_load(&t->unlooked))
            leave_look(t, now);
    } else if (look(t, now)) {
        wake(&t->base);
    }
}

void transport_zmq_look_at_last(struct zmq_transport *t)
{
    if (!atomic_load(&t->unlooked))
        return;
    transport_lock(&t->base);
    (void)look(t, ls_now(t->base.runtime));
    transport_unlock(&t->base);
}

static bool lend(transport *base, bool lent, int64_t next)
{
    struct zmq_transport *t = zmq_of(base);
    struct epoll_event all = {.events = lent ? 0 : EPOLLIN};
    if (!t->stands_by) { /* it does so from the next time on */
        t->lends = true;
        wake(base);
        return false;
    }
    const int failed = epoll_ctl(t->stand_by, EPOLL_CTL_MOD, t->epoll, &all);
    assert(failed == 0);
    (void)failed;
    t->lent = lent;
    atomic_store(&t->rests_until,
                 lent ? LS_NOW : atomic_load(&t->stands_until));
    if (lent)
        return true;
    transport_zmq_look_at_last(t);
    const int64_t due = transport_zmq_due(t, next);
    atomic_store(&t->due, due);
    if (due < atomic_load(&t->stands_until))
        wake(base);
    return true;
}

/* What one connection has not read beyond the mark it misses: the others must
 * not wait for it. That it comes to that is told once: then libzmq leaves it
 * out, until it reads again. */
static int send_lossy(struct zmq_transport *t, zmq_msg_t *frame, int flags)
{
    t->at_mark_since = ls_now(t->base.runtime);
    atomic_store(&t->base.crowded, true);
    wake(&t->base);
    (void)transport_zmq_set_int(t->xpub, ZMQ_XPUB_NODROP, 0);
    const int sent = zmq_msg_send(frame, t->xpub, flags | ZMQ_DONTWAIT);
    (void)transport_zmq_set_int(t->xpub, ZMQ_XPUB_NODROP, 1);
    return sent;
}

static int send_frame(struct zmq_transport *t, zmq_msg_t *frame, int flags)
{
    HANDED_OVER();
    if (t->xpub == NULL) {
        zmq_msg_close(frame);
        return ls_error(LS_ECLOSED, "the endpoint is closed");
    }
    if (zmq_msg_send(frame, t->xpub, flags | ZMQ_DONTWAIT) >= 0 ||
        (zmq_errno() == EAGAIN && send_lossy(t, frame, flags) >= 0))
        return LS_OK;
    const int status = transport_zmq_error("zmq_msg_send");
    zmq_msg_close(frame);
    return status;
}

/* Lock held: have somebody look who does not read, when too much waits. */
static void look_for_crowd(struct zmq_transport *t)
{
    if (atomic_load_explicit(&t->ledger->held, memory_order_relaxed) <=
            t->allowed ||
        transport_is_crowded(&t->base))
        return;
    atomic_store(&t->base.crowded, true);
    wake(&t->base);
}

static void published(struct zmq_transport *t)
{
    look_for_subscriptions(t);
    look_for_crowd(t);
}

static int publish(transport *base, const void *head, size_t head_size,
                   const void *body, size_t body_size)
{
    struct zmq_transport *t = zmq_of(base);
    zmq_msg_t frame;
    if (!transport_zmq_frame(t->ledger, &frame, head, head_size, body,
                             body_size))
        return ls_error(LS_ENOMEM, "no memory for a message");
    const int status = send_frame(t, &frame, 0);
    published(t);
    return status;
}

static int publish_owned(transport *base, const void *head, size_t head_size,
                         void *body, size_t body_size,
                         void (*release)(void *data, void *hint), void *hint)
{
    struct zmq_transport *t = zmq_of(base);
    zmq_msg_t first, second;
    if (!transport_zmq_frame_owned(t->ledger, &second, body, body_size, release,
                                   hint))
        return ls_error(LS_ENOMEM, "no memory for a message");
    if (!transport_zmq_frame_short(&first, head, head_size, NULL, 0)) {
        zmq_msg_close(&second);
        return transport_zmq_error("zmq_msg_init_size");
    }
    int status = send_frame(t, &first, ZMQ_SNDMORE);
    if (status == LS_OK)
        status = send_frame(t, &second, 0);
    else
        zmq_msg_close(&second);
    published(t);
    return status;
}

static int republish(transport *base, const struct message *message)
{
    struct zmq_transport *t = zmq_of(base);
    for (unsigned i = 0; i < message->n_frames; i++) {
        zmq_msg_t copy;
        zmq_msg_init(&copy);
        zmq_msg_copy(&copy, (zmq_msg_t *)(uintptr_t)&message->frames[i]);
        const int status =
            send_frame(t, &copy, i + 1 < message->n_frames ? ZMQ_SNDMORE : 0);
        if (status != LS_OK)
            return status;
    }
    published(t);
    return LS_OK;
}

const struct transport_ops transport_zmq_ops = {
    .open = open_transport,
    .close = close_transport,
    .unbind = unbind_transport,
    .renew = renew_transport,
    .publish = publish,
    .publish_owned = publish_owned,
    .republish = republish,
    .link_open = transport_zmq_link_open,
    .link_connect = transport_zmq_link_connect,
    .link_subscribe = transport_zmq_link_subscribe,
    .link_send = transport_zmq_link_send,
    .link_trust = transport_zmq_link_trust,
    .link_close = transport_zmq_link_close,
    .name = transport_zmq_name,
    .allow = transport_zmq_allow,
    .look = transport_zmq_look,
    .probe = transport_zmq_probe,
    .take_in = transport_zmq_poll,
    .wake = wake,
    .lend = lend,
    .lend_bell = lend_bell,
    .explain = transport_zmq_explain,
    .copy = transport_zmq_copy,
    .release = transport_zmq_release,
};
