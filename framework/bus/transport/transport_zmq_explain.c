/* Why nobody answers at an address, as far as one can see from here: its name
 * has no host, or whoever listens there does not let this node in. libzmq tries
 * on in silence, so a connection is made for this alone, and watched.
 * Source: zmq_socket_monitor(3), getaddrinfo(3). */
#include "transport_zmq.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define KNOCK_MS 300
#define EVENTS                                                                 \
    (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |     \
     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |  \
     ZMQ_EVENT_CONNECT_RETRIED)

static bool has_host(const char *endpoint, char *text, size_t size)
{
    char host[LS_ENDPOINT_MAX + 1];
    struct addrinfo *found = NULL;
    if (!transport_tcp_host(endpoint, host, sizeof host))
        return true;
    const int error = getaddrinfo(host, NULL, NULL, &found);
    if (error == 0) {
        freeaddrinfo(found);
        return true;
    }
    snprintf(text, size, "the host name \"%s\" cannot be resolved: %s", host,
             gai_strerror(error));
    return false;
}

/* Why the first connection failed: 0 when it did not, or none was made. */
static unsigned await_failure(void *monitor)
{
    unsigned kind = 0;
    int value;
    if (!transport_zmq_monitor_next(monitor, 0, &kind, &value) ||
        kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED ||
        kind == ZMQ_EVENT_CONNECT_RETRIED)
        return 0;
    return kind;
}

static unsigned knock(struct zmq_transport *t, const char *endpoint, bool known,
                      uint32_t id)
{
    struct zmq_link link = {.sub = zmq_socket(t->zctx, ZMQ_SUB)};
    unsigned failure = 0;
    if (link.sub == NULL)
        return 0;
    void *monitor = NULL;
    /* It subscribes to nothing: what is subscribed to by one that has gone may
     * be read there after its end. */
    if (transport_zmq_set_common(link.sub, t->max_message_bytes, KNOCK_MS) &&
        transport_zmq_authenticate(t, &link, endpoint, known, id) == LS_OK &&
        (monitor = transport_zmq_monitor(t->zctx, link.sub, EVENTS,
                                         KNOCK_MS)) != NULL &&
        transport_zmq_set_family(link.sub, endpoint) &&
        zmq_connect(link.sub, endpoint) == 0)
        failure = await_failure(monitor);
    zmq_socket_monitor(link.sub, NULL, 0);
    if (monitor != NULL)
        zmq_close(monitor);
    zmq_close(link.sub);
    return failure;
}

bool transport_zmq_explain(transport *base, const char *endpoint, bool known,
                           uint32_t id, char *text, size_t size)
{
    if (!has_host(endpoint, text, size) || transport_in_process(endpoint))
        return false;
    switch (knock(zmq_of(base), endpoint, known, id)) {
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        snprintf(text, size,
                 "it does not let this node in: it is of another job, or has "
                 "another secret or other keys, or another address than "
                 "the one that was dialled, or does not allow this node's "
                 "address; it logs which");
        return true;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        snprintf(text, size,
                 "what listens there is no node, or proves who it is in "
                 "another way: see `security` and `insecure`");
        return true;
    default:
        return false;
    }
}
