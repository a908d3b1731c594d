/* transport.h - what the bus asks of a network.
 *
 * A transport publishes from one endpoint to whoever subscribed there, and has
 * one link to each peer that this node subscribed to. libzmq is one
 * (transport_zmq.c), the simulated network of lockstep/network.h is another
 * (transport_sim.c): the runtime says which, and nothing else in the bus knows
 * sockets.
 *
 * The lock: transport_lock() guards publishing, and is the node's lock for all
 * that an emit looks at. Functions say whether it must be held.
 * Threads: the bus thread owns the links and polls; any thread may publish. */
#ifndef LOCKSTEP_BUS_TRANSPORT_H
#define LOCKSTEP_BUS_TRANSPORT_H

#include "message.h"

typedef struct transport transport;
typedef struct transport_link transport_link;

enum transport_probed {
    TRANSPORT_LISTENS, /* a process accepts connections there */
    TRANSPORT_REFUSES, /* its host lives and says that nobody does */
    TRANSPORT_UNKNOWN  /* no answer within a second */
};

struct transport_events {
    /* Someone subscribed to, or unsubscribed from, this topic here. Called
     * with the lock held. */
    void (*subscription)(void *self, const uint8_t *topic, size_t size,
                         bool subscribed);
    /* A message came over a link; the message is moved. */
    void (*message)(void *self, void *link_owner, struct message *message);
    /* Where to take an empty message from; NULL: none to be had, the message
     * is dropped and counted by the caller. */
    struct message *(*take)(void *self);
    /* The answer to transport_probe(). */
    void (*probed)(void *self, const char *endpoint,
                   enum transport_probed answer);
};

/* Bind. endpoint: what was bound, LS_ENDPOINT_MAX + 1 bytes.
 * bind: as ls_node_options.bind, with a range of ports resolved here.
 * Errors: LS_EADDRINUSE, LS_EINVAL, LS_EIO, LS_ENOMEM. */
int transport_open(transport **out, ls_runtime *runtime, const char *bind,
                   size_t max_message_bytes, int linger_ms, char *endpoint);
/* Close everything; at most linger_ms. No other thread is inside. */
void transport_close(transport **t);
/* Give the endpoint up, and wait at most linger_ms for what is unsent; all
 * else still works, publishing to nobody. */
void transport_unbind(transport *t);

void transport_lock(transport *t);
void transport_unlock(transport *t);
/* The lock itself, for conditions that are waited for under it. */
ls_mutex *transport_mutex(transport *t);

/* Publish one message: `head` is copied, then `body` is copied behind it in
 * the same frame. Lock held. Errors: LS_ENOMEM, LS_EIO. */
int transport_publish(transport *t, const void *head, size_t head_size,
                      const void *body, size_t body_size);
/* The same with `body` as a second frame that is not copied; release(data,
 * hint) is called on any thread when nobody needs it, also on failure. */
int transport_publish_owned(transport *t, const void *head, size_t head_size,
                            void *body, size_t body_size,
                            void (*release)(void *data, void *hint),
                            void *hint);
/* Pass a received message on as it is. Lock held; the message stays valid. */
int transport_republish(transport *t, const struct message *message);

/* A link to a peer's endpoint, not yet connected. Bus thread.
 * Errors: LS_EINVAL the address; LS_ELIMIT no more sockets; LS_ENOMEM. */
int transport_link_open(transport *t, transport_link **out, void *owner);
int transport_link_connect(transport_link *link, const char *endpoint);
int transport_link_subscribe(transport_link *link, const uint8_t *topic,
                             size_t size, bool subscribe);
/* Not from inside transport_poll(). */
void transport_link_close(transport_link **link);

/* Ask whether anyone listens at an endpoint, to tell a broken connection from a
 * process that is gone: events->probed() is called once from transport_poll().
 * A host name is not looked up: it is TRANSPORT_UNKNOWN. Bus thread. Errors:
 * LS_EINVAL; LS_ELIMIT; LS_ENOMEM. */
int transport_probe(transport *t, const char *endpoint);

/* Wait until something comes or the deadline passes, and hand it on. Bus
 * thread, lock not held. Returns whether messages may be left unread, so that
 * it should be called again at once. */
bool transport_poll(transport *t, int64_t deadline,
                    const struct transport_events *events, void *self);
/* Make transport_poll() return. Thread: any. */
void transport_wake(transport *t);

/* Make `copy`, an empty message, share the frames of another. Thread: any that
 * has the other. */
void transport_copy(struct message *copy, const struct message *of);

/* At the start of a release function: what others did with the payload before
 * they let it go is done. (libzmq's own counting is hidden from
 * ThreadSanitizer.) */
void transport_released(void);

/* Release the frames of a message. Thread: any. */
void transport_release(struct message *message);

/* Why nobody may have answered at an address, into text: "" when nothing is
 * known against it. May ask the resolver. */
void transport_explain(transport *t, const char *endpoint, char *text,
                       size_t size);

/* Whether an address reaches beyond this host: tcp to other than loopback. */
bool transport_leaves_host(const char *endpoint);

/* The host of a tcp address into host[size], without brackets. Returns false:
 * it is another kind of address. */
bool transport_tcp_host(const char *endpoint, char *host, size_t size);
/* Whether an address is of a kind that the bus uses; libzmq has more, some of
 * which reach everyone on a network. */
bool transport_knows(const char *endpoint);
/* "tcp://host:21500-21999" into its parts: host with its tcp://. */
bool transport_port_range(const char *bind, char *host, size_t size,
                          unsigned *first, unsigned *last);

#endif
