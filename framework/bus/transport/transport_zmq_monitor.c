/* Those that connected and went no further: what speaks another protocol, or
 * another mechanism, never comes to the gate, and only the monitor of the
 * socket sees it.
 *
 * libzmq tells of a connection by the descriptor when it is accepted and when
 * it ends, and of what was wrong in between without it; one thread of libzmq
 * tells all of it in order, so what was wrong is that of the connection that
 * ends next. Of a peer of ZMTP 1.0 or 2.0 it tells nothing but the end: no
 * handshake with it has succeeded. That of a client that leaves while it comes
 * has: so those are counted, against the connections that have subscribed. What
 * it had subscribed to may be read after its end, and does not count then.
 * What the bus itself probes with connects and says nothing, and whom the gate
 * refuses it has counted: neither counts here.
 * Source: zmq_socket_monitor(3). */
#include "transport_zmq.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNBIND_WAIT_MS 1000
#define EVENTS                                                                 \
    (ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED |          \
     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |   \
     ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_SUCCEEDED)

struct zmq_accepted {
    int fd;
    char name[TRANSPORT_NAME_MAX];
};

void *transport_zmq_monitor(void *zctx, void *socket, int events, int wait_ms)
{
    /* libzmq gives an address up some time after its socket was closed. */
    static atomic_uint_fast64_t n_monitors;
    char address[64];
    snprintf(address, sizeof address, "inproc://ls-monitor-%" PRIuFAST64,
             atomic_fetch_add(&n_monitors, 1));
    if (zmq_socket_monitor(socket, address, events) != 0)
        return NULL;
    void *monitor = zmq_socket(zctx, ZMQ_PAIR);
    /* Without a mark: libzmq's own thread must never wait here. */
    if (monitor != NULL && transport_zmq_set_int(monitor, ZMQ_RCVHWM, 0) &&
        transport_zmq_set_int(monitor, ZMQ_LINGER, 0) &&
        transport_zmq_set_int(monitor, ZMQ_RCVTIMEO, wait_ms) &&
        zmq_connect(monitor, address) == 0)
        return monitor;
    if (monitor != NULL)
        zmq_close(monitor);
    return NULL;
}

bool transport_zmq_monitor_next(void *monitor, int flags, unsigned *kind,
                                int *value)
{
    uint8_t event[6] = {0};
    char address[LS_ENDPOINT_MAX + 1];
    if (zmq_recv(monitor, event, sizeof event, flags) != (int)sizeof event)
        return false;
    (void)zmq_recv(monitor, address, sizeof address, flags);
    uint16_t number;
    int32_t what;
    memcpy(&number, event, sizeof number);
    memcpy(&what, event + sizeof number, sizeof what);
    *kind = number;
    *value = what;
    return true;
}

int transport_zmq_monitor_open(struct zmq_transport *t)
{
    t->monitor =
        transport_zmq_monitor(t->zctx, t->xpub, EVENTS, UNBIND_WAIT_MS);
    if (t->monitor == NULL)
        return transport_zmq_error("zmq_socket_monitor");
    /* ZMQ_FD tells of what comes after a look that found nothing, and of
     * nothing before: zmq_getsockopt(3). Nobody can have come yet. */
    unsigned kind;
    int value;
    (void)transport_zmq_monitor_next(t->monitor, ZMQ_DONTWAIT, &kind, &value);
    return LS_OK;
}

void transport_zmq_monitor_close(struct zmq_transport *t)
{
    if (t->xpub != NULL)
        zmq_socket_monitor(t->xpub, NULL, 0);
    if (t->monitor != NULL)
        zmq_close(t->monitor);
    t->monitor = NULL;
    free(t->accepted);
    t->accepted = NULL;
    t->n_accepted = t->n_greeted = 0;
}

static struct zmq_accepted *find(struct zmq_transport *t, int fd)
{
    for (size_t i = 0; i < t->n_accepted; i++)
        if (t->accepted[i].fd == fd)
            return &t->accepted[i];
    return NULL;
}

static void accepted(struct zmq_transport *t, int fd)
{
    struct zmq_accepted *one = find(t, fd);
    transport_lock(&t->base);
    transport_zmq_inbound_reused(t, fd);
    transport_unlock(&t->base);
    if (one == NULL) {
        struct zmq_accepted *grown =
            realloc(t->accepted, (t->n_accepted + 1) * sizeof *grown);
        if (grown == NULL)
            return;
        t->accepted = grown;
        one = &grown[t->n_accepted++];
    }
    one->fd = fd;
    transport_zmq_peer_name(fd, one->name); /* it may be gone already */
}

/* Whether the handshake with one that has ended had succeeded. Lock held. */
static bool had_greeted(struct zmq_transport *t, int fd)
{
    if (t->n_greeted < t->n_inbounds)
        t->n_greeted = t->n_inbounds; /* one of them was mistaken for another */
    if (!transport_zmq_inbound_ended(t, fd)) {
        if (t->n_greeted == t->n_inbounds)
            return false;
        transport_zmq_inbound_early(t, fd);
    }
    t->n_greeted--;
    return true;
}

static void ended(struct zmq_transport *t, int fd,
                  const struct transport_events *events, void *self)
{
    struct zmq_accepted *one = find(t, fd);
    bool stranger = t->fault == ZMQ_FAULT_PROTOCOL;
    if (t->fault == ZMQ_FAULT_NONE) {
        transport_lock(&t->base);
        stranger = !had_greeted(t, fd);
        transport_unlock(&t->base);
    }
    if (stranger)
        events->refused(self, &(struct transport_refusal){
                                  .who = one != NULL ? one->name : "",
                                  .why = "it does not speak as a member does",
                                  .n = 1});
    t->fault = ZMQ_FAULT_NONE;
    if (one != NULL)
        *one = t->accepted[--t->n_accepted];
}

void transport_zmq_monitor_read(struct zmq_transport *t,
                                const struct transport_events *events,
                                void *self)
{
    unsigned kind;
    int value;
    while (t->monitor != NULL &&
           transport_zmq_monitor_next(t->monitor, ZMQ_DONTWAIT, &kind, &value))
        if (kind == ZMQ_EVENT_ACCEPTED)
            accepted(t, value);
        else if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
            t->fault = ZMQ_FAULT_PROTOCOL;
        else if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
                 kind == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
            t->fault = ZMQ_FAULT_OTHER;
        else if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
            t->n_greeted++;
        else if (kind == ZMQ_EVENT_DISCONNECTED)
            ended(t, value, events, self);
}

void transport_zmq_monitor_unbound(struct zmq_transport *t)
{
    unsigned kind;
    int value;
    while (t->monitor != NULL &&
           transport_zmq_monitor_next(t->monitor, 0, &kind, &value))
        if (kind == ZMQ_EVENT_CLOSED)
            return;
}
