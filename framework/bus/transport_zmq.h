/* transport_zmq.h - what the files of the libzmq transport share. */
#ifndef LOCKSTEP_BUS_TRANSPORT_ZMQ_H
#define LOCKSTEP_BUS_TRANSPORT_ZMQ_H

#include <assert.h>
#include <stdatomic.h>
#include <zmq.h>

#include "transport_ops.h"

#define LOOK_EVERY_NS LS_NS_PER_MS

struct zmq_transport {
    struct transport base;
    void *zctx; /* shared */
    void *xpub;
    char bound[LS_ENDPOINT_MAX + 1];
    int epoll;
    int wake;
    atomic_bool woken;         /* a wake is under way */
    int64_t looked_at;         /* for subscriptions, by a publisher; locked */
    int64_t read_at;           /* by the bus thread */
    atomic_bool unlooked;      /* published since, and nobody looked */
    atomic_bool xpub_readable; /* seen by a publisher */
    struct zmq_link *dirty;    /* links to be read before waiting */
    struct zmq_probe *probes;  /* under way, oldest first */
    size_t max_message_bytes;
    int linger_ms;
    struct zmq_transport *next_inproc; /* see transport_zmq_context.c */
};

struct zmq_link {
    struct transport_link base;
    void *sub;
    void *owner;
    int fd;
    bool dirty;
    struct zmq_link *next_dirty;
};

static_assert(sizeof(zmq_msg_t) <= sizeof(struct frame), "zmq_msg_t fits");

/* ThreadSanitizer does not see libzmq's own synchronisation: what was written
 * before a send is visible after the receive of it. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TELL_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define TELL_TSAN 1
#endif
#ifdef TELL_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
extern char transport_handover;
#define HANDED_OVER() __tsan_release(&transport_handover)
#define TAKEN_OVER()  __tsan_acquire(&transport_handover)
#else
#define HANDED_OVER() ((void)0)
#define TAKEN_OVER()  ((void)0)
#endif

/* The code for libzmq's last error, with its text behind `what`. */
int transport_zmq_error(const char *what);

/* The context that all nodes of a process share, as inproc needs; it lives
 * while somebody has it. NULL: none could be made. */
void *transport_zmq_context(void);
void transport_zmq_context_release(void);
/* Note that a transport is bound to an inproc address, and that it is not any
 * more; whether one is. */
void transport_zmq_inproc_add(struct zmq_transport *t);
void transport_zmq_inproc_remove(struct zmq_transport *t);
bool transport_zmq_inproc_has(const char *endpoint);

/* Bind a socket to `bind`, trying the ports of a range in turn; endpoint gets
 * what was bound. Errors: LS_EADDRINUSE, LS_EINVAL, LS_EIO. */
int transport_zmq_bind(void *socket, const char *bind, char *endpoint);
/* Close the socket that was bound there ("": nowhere). Afterwards the address
 * is free, and a socket file is removed. */
void transport_zmq_close(void *zctx, void *socket, const char *endpoint);
bool transport_zmq_set_int(void *socket, int option, int value);
/* What both kinds of socket need before they bind or connect. */
bool transport_zmq_set_common(const struct zmq_transport *t, void *socket,
                              size_t max_bytes);
int transport_zmq_fd(void *socket);
/* Have transport_poll() see when there is something to read. */
bool transport_zmq_watch(const struct zmq_transport *t, int fd, void *what);

static inline struct zmq_transport *zmq_of(transport *t)
{
    return (struct zmq_transport *)t;
}

/* transport_zmq.c */
void transport_zmq_wake(transport *t);

/* transport_zmq_link.c */
int transport_zmq_link_open(transport *t, transport_link **out, void *owner);
int transport_zmq_link_connect(transport_link *link, const char *endpoint);
int transport_zmq_link_subscribe(transport_link *link, const uint8_t *topic,
                                 size_t size, bool subscribe);
void transport_zmq_link_close(transport_link *link);
bool transport_zmq_poll(transport *t, int64_t deadline,
                        const struct transport_events *events, void *self);
void transport_zmq_copy(struct message *copy, const struct message *of);
void transport_zmq_release(struct message *message);

/* transport_zmq_bind.c */
void transport_zmq_explain(transport *t, const char *endpoint, char *text,
                           size_t size);

/* transport_zmq_probe.c */
int transport_zmq_probe(transport *t, const char *endpoint);
/* When the first of the probes has its answer at the latest. */
int64_t transport_zmq_probes_due(const struct zmq_transport *t);
/* Something happened to `what`: whether it is a probe, which notes it. */
bool transport_zmq_probe_ready(struct zmq_transport *t, const void *what);
/* Tell the answers that are there. */
void transport_zmq_probes_tell(struct zmq_transport *t,
                               const struct transport_events *events,
                               void *self);
void transport_zmq_probes_free(struct zmq_transport *t);

#endif
