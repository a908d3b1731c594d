/* transport_zmq.h - what the files of the libzmq transport share. */
#ifndef LOCKSTEP_BUS_TRANSPORT_ZMQ_H
#define LOCKSTEP_BUS_TRANSPORT_ZMQ_H

#include <assert.h>
#include <stdatomic.h>
#include <zmq.h>

#include "transport.h"

/* A publish looks for subscriptions if none did for so long; for the others
 * whoever polls looks so much later, and does not rest for longer after such a
 * one: to be woken for each would cost more. */
#define LOOK_EVERY_NS LS_NS_PER_MS
#define LOOK_LATER_NS (2 * LS_NS_PER_MS)

/* A connection that somebody made to this node, known since it subscribed. */
struct zmq_inbound {
    uint64_t number;
    int fd;          /* libzmq's; -1: not known */
    uint64_t cookie; /* of that socket: the number may be another's by now */
    struct zmq_topic **topics; /* in force: a table of n_buckets; own */
    size_t n_buckets, n_topics;
    size_t topic_bytes; /* of them */
    uint64_t backlog;   /* the last in which it was counted; how often: */
    unsigned n_said;
    int unsent; /* bytes that its host has not taken, when looked at */
    int64_t unsent_since;
    char name[TRANSPORT_NAME_MAX];
};

/* One that had ended before what it subscribed to was read: that stands for
 * nobody, whenever it is read. */
struct zmq_early {
    int fd;          /* that it had */
    uint64_t number; /* of the connection; 0: nothing of it was read yet */
};
#define ZMQ_EARLY_MAX 64

/* Bytes that libzmq holds for those that have not read them, and one more as
 * long as there is the transport: it goes with the last of them. */
struct zmq_ledger {
    atomic_size_t held;
};

struct zmq_handler;
struct zmq_gate;

struct zmq_transport {
    struct transport base;
    void *zctx; /* shared */
    void *xpub;
    struct zmq_gate *gate; /* who may connect; NULL: inproc */
    struct zmq_ledger *ledger;
    ls_security *security; /* borrow */
    uint32_t id;
    uint64_t incarnation; /* under the lock */
    char bound[LS_ENDPOINT_MAX + 1];
    bool has_folder; /* libzmq made one for the socket file alone */
    int epoll;       /* all that is waited for */
    int stand_by;    /* that, while nobody else waits for it */
    bool lends;     /* somebody has asked for it: the bus thread is to stand by,
                     * which costs it a system call each time */
    bool stands_by; /* it does, or has last; else it waits for all itself */
    bool lent;      /* somebody does; of who polls */
    _Atomic(int64_t) stands_until; /* the bus thread, meanwhile */
    _Atomic(int64_t) due; /* when whoever has the turn is to look next */
    int wake;
    atomic_bool woken;        /* a wake is under way */
    int64_t looked_at;        /* for subscriptions, by a publisher; locked */
    atomic_bool unlooked;     /* published since, and nobody looked */
    _Atomic(int64_t) left_at; /* when the first left that to who polls */
    _Atomic(int64_t) met_at;  /* when such a one last met it at rest */
    _Atomic(int64_t) rests_until; /* who polls; LS_NOW: it does not rest */
    atomic_bool xpub_readable;    /* seen by a publisher */
    bool hears;               /* of who polls: somebody has sent something up */
    struct zmq_link *dirty;   /* links to be read before waiting */
    struct zmq_link *todo;    /* and those that are read now, one by one */
    struct zmq_link *reading; /* which; NULL: none, or it was closed */
    struct zmq_probe *probes; /* under way, oldest first */
    size_t max_message_bytes;
    int linger_ms;
    struct zmq_transport *next_inproc; /* see transport_zmq_context.c */

    /* transport_zmq_inbound.c; under the lock */
    uint64_t topic_seed; /* so that nobody can fill one bucket */
    struct zmq_inbound *inbounds;
    size_t n_inbounds, inbound_capacity;
    uint64_t backlog; /* how often there was nothing left to read */
    unsigned n_said;  /* messages that were sent up since then */
    /* bus thread: those that took too much, the last of them, and of what */
    char overfull[TRANSPORT_NAME_MAX];
    const char *overfull_of; /* static */
    uint64_t n_overfull;
    size_t allowed;        /* bytes that may be held */
    int64_t at_mark_since; /* somebody missed what lay beyond the mark; 0 */
    /* transport_zmq_monitor.c; bus thread */
    void *monitor;
    struct zmq_accepted *accepted;
    size_t n_accepted;
    size_t n_greeted; /* handshakes that succeeded, with those not ended */
    struct zmq_early early[ZMQ_EARLY_MAX]; /* a ring; under the lock */
    size_t n_early;                        /* ever */
    enum zmq_fault {
        ZMQ_FAULT_NONE,
        ZMQ_FAULT_PROTOCOL,
        ZMQ_FAULT_OTHER
    } fault; /* of the connection that ends next */
};

struct zmq_link {
    struct transport_link base;
    void *sub;
    void *owner;
    int fd;
    bool dirty;
    bool own;         /* inproc: there is one connection, for good */
    bool proved;      /* whose it is */
    zmq_msg_t proof;  /* keeps what tells its connection from others */
    const char *mark; /* that; of the connection that is proved */
    struct zmq_link *next_dirty; /* or the next to do */
};

static_assert(sizeof(zmq_msg_t) <= sizeof(struct frame), "zmq_msg_t fits");

/* The code for libzmq's last error, with its text behind `what`. */
int transport_zmq_error(const char *what);

/* The context that all nodes of a process share, as inproc needs; it lives
 * while somebody has it. Errors: LS_ELIMIT, LS_EAGAIN: no room for its files or
 * threads; LS_ESTATE in the child of a fork; LS_ENOMEM. */
int transport_zmq_context(void **zctx, struct zmq_handler **handler);
void transport_zmq_context_release(void);
/* Note that a transport is bound to an inproc address, and that it is not any
 * more; whether one is. */
void transport_zmq_inproc_add(struct zmq_transport *t);
void transport_zmq_inproc_remove(struct zmq_transport *t);
bool transport_zmq_inproc_has(const char *endpoint);

/* What publishers left to who polls, before that one waits, or ends: what it
 * has to read is due. Lock not held. */
void transport_zmq_look_at_last(struct zmq_transport *t);

/* transport_zmq_link.c: when the next poll is to return; bounded by deadline.
 * Whoever polls. */
int64_t transport_zmq_due(const struct zmq_transport *t, int64_t deadline);

/* transport_zmq_gate.c: who may connect to a bound socket; ZAP. */
int transport_zmq_gate_open(struct zmq_gate **out, struct zmq_handler *handler,
                            ls_security *security);
/* Afterwards nobody is let in. */
void transport_zmq_gate_close(struct zmq_gate **gate);
/* Set what the socket needs, before it is bound. */
bool transport_zmq_gate_guard(const struct zmq_gate *gate, void *socket);
/* Where it is bound, and advertised: others are let in from now on. */
void transport_zmq_gate_opens(struct zmq_gate *gate, const char *bound,
                              const char *advertised);
/* Who was refused since the last call. out: texts are the caller's. */
bool transport_zmq_gate_refused(struct zmq_gate *gate, char *who, char *why,
                                size_t why_size, uint64_t *n);
/* The handler of a context, which answers for all gates: begun before anything
 * is bound, ended with the context. */
int transport_zmq_handler_start(struct zmq_handler **out, void *zctx);
void transport_zmq_handler_join(struct zmq_handler **handler);

/* transport_zmq_inbound.c: those that connected. Lock held. */
/* Who sent this frame. */
struct speaker transport_zmq_speaker(const struct zmq_transport *t,
                                     zmq_msg_t *frame);
/* The same of a subscription, or one that is taken back. What it subscribes to
 * is counted for as long as that is in force; who subscribes to too much is cut
 * off. */
struct speaker transport_zmq_subscriber(struct zmq_transport *t,
                                        zmq_msg_t *frame);
void transport_zmq_name(const transport *t, uint64_t connection,
                        char name[TRANSPORT_NAME_MAX]);
void transport_zmq_allow(transport *t, size_t bytes);
int64_t transport_zmq_look(transport *t, int64_t now,
                           bool (*exempt)(void *self, uint64_t connection),
                           void (*cut)(void *self, const char *name),
                           void *self);
/* This frame was sent up. libzmq keeps what was not read yet, so who goes on
 * while others' and its own wait is cut off: returns whether it is now. */
bool transport_zmq_floods(struct zmq_transport *t, const struct speaker *by,
                          zmq_msg_t *frame);
/* There is nothing left to read. */
void transport_zmq_none_left(struct zmq_transport *t);
/* All of them are forgotten. */
void transport_zmq_inbounds_free(struct zmq_transport *t);
/* The connection with this descriptor has ended: whether it ever subscribed. */
bool transport_zmq_inbound_ended(struct zmq_transport *t, int fd);
/* It has, before anything that it subscribed to was read. */
void transport_zmq_inbound_early(struct zmq_transport *t, int fd);
/* Another connection has this descriptor now. */
void transport_zmq_inbound_reused(struct zmq_transport *t, int fd);
/* Tell of those that said too much. Lock not held. */
void transport_zmq_tell_overfull(struct zmq_transport *t,
                                 const struct transport_events *events,
                                 void *self);
/* "127.0.0.1:4711", or the process at a socket file. */
void transport_zmq_peer_name(int fd, char name[TRANSPORT_NAME_MAX]);

/* transport_zmq_held.c: frames whose bytes are counted until they are read. */
struct zmq_ledger *transport_zmq_ledger_create(void);
void transport_zmq_ledger_drop(struct zmq_ledger *ledger);
/* A frame of head and body, copied, that is not counted. Returns whether there
 * was memory. */
bool transport_zmq_frame_short(zmq_msg_t *frame, const void *head,
                               size_t head_size, const void *body,
                               size_t body_size);
/* The same, counted if it is long. */
bool transport_zmq_frame(struct zmq_ledger *ledger, zmq_msg_t *frame,
                         const void *head, size_t head_size, const void *body,
                         size_t body_size);
/* One that is not copied. release is called in any case. */
bool transport_zmq_frame_owned(struct zmq_ledger *ledger, zmq_msg_t *frame,
                               void *body, size_t size,
                               void (*release)(void *data, void *hint),
                               void *hint);

/* transport_zmq_monitor.c: those that connected and went no further. Bus
 * thread. */
int transport_zmq_monitor_open(struct zmq_transport *t);
/* Any thread: where the events of a socket are read, for wait_ms at most at a
 * time. The caller's to close, after the monitor of the socket has been ended;
 * NULL: zmq_errno() says why. */
void *transport_zmq_monitor(void *zctx, void *socket, int events, int wait_ms);
/* One event: its kind, and its descriptor or error. */
bool transport_zmq_monitor_next(void *monitor, int flags, unsigned *kind,
                                int *value);
void transport_zmq_monitor_close(struct zmq_transport *t);
void transport_zmq_monitor_read(struct zmq_transport *t,
                                const struct transport_events *events,
                                void *self);
/* Wait until the port has been given up. */
void transport_zmq_monitor_unbound(struct zmq_transport *t);

/* Bind a socket to `bind`, trying the ports of a range in turn; endpoint gets
 * what was bound. Errors: LS_EADDRINUSE, LS_EINVAL, LS_EIO. */
int transport_zmq_bind(void *socket, const char *bind, char *endpoint);
/* Close the socket. Afterwards its address is free; a socket file is removed,
 * and the folder that libzmq made for it. */
void transport_zmq_close(struct zmq_transport *t);
bool transport_zmq_set_int(void *socket, int option, int value);
/* For an address with an IPv6 number, as tcp://[::1]:21500. Others, names too,
 * are IPv4's: with the option libzmq would look for no other addresses of a
 * name that has both. */
bool transport_zmq_set_family(void *socket, const char *endpoint);
/* What both kinds of socket need before they bind or connect. */
bool transport_zmq_set_common(void *socket, size_t max_bytes, int linger_ms);
int transport_zmq_fd(void *socket);
/* Whether there is something to read. */
bool transport_zmq_is_readable(void *socket);
/* Have transport_poll() see when there is something to read. */
bool transport_zmq_watch(const struct zmq_transport *t, int fd, void *what);

static inline struct zmq_transport *zmq_of(transport *t)
{
    return (struct zmq_transport *)t;
}

/* transport_zmq_link.c */
int transport_zmq_link_open(transport *t, transport_link **out, void *owner);
int transport_zmq_link_connect(transport_link *link, const char *endpoint,
                               bool known, uint32_t id);
void transport_zmq_link_trust(transport_link *link,
                              const struct message *message);
int transport_zmq_link_subscribe(transport_link *link, const uint8_t *topic,
                                 size_t size, bool subscribe);
int transport_zmq_link_send(transport_link *link, const void *head,
                            size_t head_size, const void *body,
                            size_t body_size);
void transport_zmq_link_close(transport_link *link, bool linger);
bool transport_zmq_poll(transport *t, int64_t deadline,
                        const struct transport_events *events, void *self);
void transport_zmq_copy(struct message *copy, const struct message *of);
void transport_zmq_release(struct message *message);

/* Set what shows who this node is, before `link` connects. */
int transport_zmq_authenticate(const struct zmq_transport *t,
                               struct zmq_link *link, const char *endpoint,
                               bool known, uint32_t id);

/* transport_zmq_explain.c; any thread, no lock */
bool transport_zmq_explain(transport *t, const char *endpoint, bool known,
                           uint32_t id, char *text, size_t size);

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
