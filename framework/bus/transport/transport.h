/* transport.h - what the bus asks of a network.
 *
 * A transport publishes from one endpoint to whoever subscribed there, and has
 * one link to each peer that this node subscribed to. What is published goes
 * down a link; a little may go up, to its peer alone. libzmq is one
 * (transport_zmq.c), the simulated network of lockstep/network.h is another
 * (transport_sim.c). Which of them carries an address, its scheme says
 * (transport_address.c); a node that was bound by one dials by it. Nothing else
 * in the bus knows sockets.
 *
 * Who connects is asked who he is (lockstep/security.h), and so is who answers:
 * what a peer says comes with what the transport knows of it. Nothing that an
 * unknown connection says is lost here, but it is marked.
 *
 * The lock: transport_lock() guards publishing, and is the node's lock for all
 * that an emit looks at. Functions say whether it must be held.
 * Threads: the bus thread owns the links and polls; any thread may publish. */
#ifndef LOCKSTEP_BUS_TRANSPORT_H
#define LOCKSTEP_BUS_TRANSPORT_H

#include <stdatomic.h>

#include "lockstep/security.h"

#include "message.h"
#include "shared_memory.h"
#include "speaker.h"
#include "wire.h"

typedef struct transport transport;
typedef struct transport_link transport_link;

enum transport_probed {
    TRANSPORT_LISTENS, /* a process accepts connections there */
    TRANSPORT_REFUSES, /* its host lives and says that nobody does */
    TRANSPORT_UNKNOWN  /* no answer within a second */
};

#define TRANSPORT_NAME_MAX 64
#define TRANSPORT_UP_MAX   WIRE_TOPIC_MAX /* bytes; more would end the link */
#define TRANSPORT_WHY_MAX  640 /* it may name two or three addresses */

/* Strangers that were not let in since the last time, or one that was and took
 * too much. Borrow: in the call. */
struct transport_refusal {
    bool too_much;
    const char *who; /* the last of them: an address, or "" */
    const char *why;
    uint64_t n;
};

struct transport_events {
    /* Someone subscribed to, or unsubscribed from, this topic here. Called
     * with the lock held. */
    void (*subscription)(void *self, const uint8_t *topic, size_t size,
                         bool subscribed, const struct speaker *by);
    /* Somebody who has a link to this node sent this up. frame: borrow, in the
     * call. Called with the lock held, which may be let go of meanwhile. NULL:
     * not interested. */
    void (*said)(void *self, const uint8_t *frame, size_t size,
                 const struct speaker *by);
    /* A message came over a link; the message is moved. */
    void (*message)(void *self, void *link_owner, struct message *message);
    /* Where to take an empty message from; NULL: none to be had: what has come
     * waits for the next poll. */
    struct message *(*take)(void *self);
    /* The answer to transport_probe(). */
    void (*probed)(void *self, const char *endpoint,
                   enum transport_probed answer);
    /* Somebody connected here and was refused, or cut off. Lock not held. */
    void (*refused)(void *self, const struct transport_refusal *refusal);
    /* It is about to wait, or has waited. Returns whether to wait at all; or
     * whether it is the caller's turn now: if not, another thread polls, and it
     * waits on. Lock not held. NULL: to wait, and it is. */
    bool (*rests)(void *self, bool begins);
};
static inline void transport_said(const struct transport_events *events,
                                  void *self, const uint8_t *frame, size_t size,
                                  const struct speaker *by)
{
    if (events->said != NULL)
        events->said(self, frame, size, by);
}
static inline bool transport_rests(const struct transport_events *events,
                                   void *self, bool begins)
{
    return events->rests == NULL || events->rests(self, begins);
}

struct transport_options {
    ls_runtime *runtime;
    const char *bind;      /* as ls_node_options.bind; a range is resolved */
    const char *advertise; /* another address of it; "": none */
    uint32_t id;           /* as whom this node dials others */
    uint64_t incarnation;
    ls_security *security; /* borrow */
    size_t max_message_bytes;
    uint32_t max_under_way; /* messages that may wait for one connection: what
                             * it does not read beyond that, it misses */
    int linger_ms;
};

/* What an implementation fills in; contracts are those of the functions below,
 * which forward to it, except for what is said here. A transport and its links
 * begin with these structs and continue as they like. */
struct transport_ops {
    /* Fills struct transport. */
    int (*open)(transport **out, const struct transport_options *options,
                char *endpoint);
    /* Frees the transport. */
    void (*close)(transport *t);
    void (*unbind)(transport *t);
    void (*renew)(transport *t, uint64_t incarnation);

    int (*publish)(transport *t, const void *head, size_t head_size,
                   const void *body, size_t body_size);
    int (*publish_owned)(transport *t, const void *head, size_t head_size,
                         void *body, size_t body_size,
                         void (*release)(void *data, void *hint), void *hint);
    int (*republish)(transport *t, const struct message *message);

    /* Sets (*out)->transport. */
    int (*link_open)(transport *t, transport_link **out, void *owner);
    int (*link_connect)(transport_link *link, const char *endpoint, bool known,
                        uint32_t id);
    int (*link_subscribe)(transport_link *link, const uint8_t *topic,
                          size_t size, bool subscribe);
    int (*link_send)(transport_link *link, const void *head, size_t head_size,
                     const void *body, size_t body_size);
    void (*link_trust)(transport_link *link, const struct message *message);
    /* Frees the link. */
    void (*link_close)(transport_link *link, bool linger);

    void (*name)(const transport *t, uint64_t connection,
                 char name[TRANSPORT_NAME_MAX]);
    void (*allow)(transport *t, size_t bytes);
    int64_t (*look)(transport *t, int64_t now,
                    bool (*exempt)(void *self, uint64_t connection),
                    void (*cut)(void *self, const char *name), void *self);

    int (*probe)(transport *t, const char *endpoint);
    bool (*take_in)(transport *t, int64_t deadline,
                    const struct transport_events *events, void *self);
    void (*wake)(transport *t);
    bool (*lend)(transport *t, bool lent, int64_t next);
    int (*lend_bell)(transport *t, ls_memory *memory);
    bool (*explain)(transport *t, const char *endpoint, bool known, uint32_t id,
                    char *text, size_t size);

    /* Of messages with frames; both know it by message->transport. */
    void (*copy)(struct message *copy, const struct message *of);
    void (*release)(struct message *message);
};

struct transport {
    const struct transport_ops *ops;
    ls_runtime *runtime; /* borrow */
    ls_mutex lock;
    atomic_bool crowded; /* somebody may not read: transport_look() is wanted */
};

struct transport_link {
    transport *transport;
};

/* ThreadSanitizer does not see libzmq's own synchronisation, nor that of memory
 * which one process has mapped twice: what was written before a send is visible
 * after the receive of it. */
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

extern const struct transport_ops transport_zmq_ops, transport_sim_ops;

/* By the scheme of an address to bind. Errors: LS_EINVAL there is none. */
int transport_find(const char *bind, const struct transport_ops **out);

/* Bind. endpoint: what was bound, LS_ENDPOINT_MAX + 1 bytes.
 * Errors: LS_EADDRINUSE, LS_EINVAL, LS_EIO, LS_ENOMEM. */
int transport_open(transport **out, const struct transport_options *options,
                   char *endpoint);
/* Close everything; at most linger_ms. No other thread is inside. */
void transport_close(transport **t);
/* Give the endpoint up; all else still works, publishing to nobody. What has
 * not left by then is dropped: whoever is to read it has been waited for. */
static inline void transport_unbind(transport *t)
{
    t->ops->unbind(t);
}
/* The node goes on as another life. Lock held. */
static inline void transport_renew(transport *t, uint64_t incarnation)
{
    t->ops->renew(t, incarnation);
}

static inline void transport_lock(transport *t)
{
    ls_mutex_lock(&t->lock);
}
static inline void transport_unlock(transport *t)
{
    ls_mutex_unlock(&t->lock);
}
/* The lock itself, for conditions that are waited for under it. */
static inline ls_mutex *transport_mutex(transport *t)
{
    return &t->lock;
}

/* Publish one message: `head` is copied, then `body` is copied behind it in
 * the same frame. Lock held. Errors: LS_ENOMEM, LS_EIO. */
static inline int transport_publish(transport *t, const void *head,
                                    size_t head_size, const void *body,
                                    size_t body_size)
{
    return t->ops->publish(t, head, head_size, body, body_size);
}
/* The same with `body` as a second frame that is not copied; release(data,
 * hint) is called on any thread when nobody needs it, also on failure. */
static inline int
transport_publish_owned(transport *t, const void *head, size_t head_size,
                        void *body, size_t body_size,
                        void (*release)(void *data, void *hint), void *hint)
{
    return t->ops->publish_owned(t, head, head_size, body, body_size, release,
                                 hint);
}
/* Pass a received message on as it is. Lock held; the message stays valid. */
static inline int transport_republish(transport *t,
                                      const struct message *message)
{
    return t->ops->republish(t, message);
}

/* A link to a peer's endpoint, not yet connected. Bus thread.
 * Errors: LS_EINVAL the address; LS_ELIMIT no more sockets; LS_ENOMEM. */
static inline int transport_link_open(transport *t, transport_link **out,
                                      void *owner)
{
    return t->ops->link_open(t, out, owner);
}
/* known: the node that is to answer there is `id`, and nobody else may.
 * Errors: and LS_ENOENT there is no key for it; LS_EINVAL where keys are asked
 *         for and it is not known. */
int transport_link_connect(transport_link *link, const char *endpoint,
                           bool known, uint32_t id);
static inline int transport_link_subscribe(transport_link *link,
                                           const uint8_t *topic, size_t size,
                                           bool subscribe)
{
    return link->transport->ops->link_subscribe(link, topic, size, subscribe);
}
/* Send up the link: `head` is copied, then `body`, at most TRANSPORT_UP_MAX
 * bytes of both, and the first is none of those that begin a subscription (0,
 * 1). Not in the order of what is published. It is lost with the connection, or
 * waits for the next one. Whoever polls. Errors: LS_EAGAIN there is no
 * connection, if that is known; LS_ENOMEM; LS_EIO. */
static inline int transport_link_send(transport_link *link, const void *head,
                                      size_t head_size, const void *body,
                                      size_t body_size)
{
    return link->transport->ops->link_send(link, head, head_size, body,
                                           body_size);
}
/* Whoever sent this message over the link has proved to be who he should be:
 * what comes over the same connection is `trusted`, until it is made again. */
static inline void transport_link_trust(transport_link *link,
                                        const struct message *message)
{
    link->transport->ops->link_trust(link, message);
}
/* linger: what was subscribed and taken back is still told, for a moment. From
 * inside transport_poll(), too: what it has not read yet of this link it does
 * not tell. */
void transport_link_close(transport_link **link, bool linger);

/* ---- those that connected here; lock held ------------------------------ */

/* Its address, for people: "" when it is not known. */
static inline void transport_name(const transport *t, uint64_t connection,
                                  char name[TRANSPORT_NAME_MAX])
{
    t->ops->name(t, connection, name);
}
/* So many bytes may wait for those that are to read them. Whoever else does not
 * read is cut off when more than that waits. */
static inline void transport_allow(transport *t, size_t bytes)
{
    t->ops->allow(t, bytes);
}
/* Whether transport_look() is to be called soon. Thread: any. */
static inline bool transport_is_crowded(const transport *t)
{
    return atomic_load_explicit(&t->crowded, memory_order_relaxed);
}
/* Look for them, if need be; exempt: tells who is to have patience with. Each
 * that is cut off is told. Returns when to look again. */
static inline int64_t
transport_look(transport *t, int64_t now,
               bool (*exempt)(void *self, uint64_t connection),
               void (*cut)(void *self, const char *name), void *self)
{
    return t->ops->look(t, now, exempt, cut, self);
}

/* Ask whether anyone listens at an endpoint, to tell a broken connection from a
 * process that is gone: events->probed() is called once from transport_poll().
 * A host name is not looked up: it is TRANSPORT_UNKNOWN. Bus thread. Errors:
 * LS_EINVAL; LS_ELIMIT; LS_ENOMEM. */
int transport_probe(transport *t, const char *endpoint);

/* Wait until something comes or the deadline passes, and hand it on. Bus
 * thread, lock not held. Returns whether messages may be left unread, so that
 * it should be called again at once. */
static inline bool transport_poll(transport *t, int64_t deadline,
                                  const struct transport_events *events,
                                  void *self)
{
    return t->ops->take_in(t, deadline, events, self);
}
/* Make transport_poll() return. Thread: any. */
static inline void transport_wake(transport *t)
{
    t->ops->wake(t);
}

/* From now on another thread than the bus thread polls, while that goes on to
 * wait and is not woken by what comes; or the bus thread alone does again: it
 * is woken if something is left, or is to be done before its own deadline;
 * next: when. Bus thread waiting, and whoever polls now. Returns false: not
 * this time, the first. */
static inline bool transport_lend(transport *t, bool lent, int64_t next)
{
    return t->ops->lend(t, lent, next);
}

/* Let whoever takes this memory make it return, too. Afterwards wakes must end
 * before the transport is closed: ls_memory_set_bell(). Errors: LS_ELIMIT. */
static inline int transport_lend_bell(transport *t, ls_memory *memory)
{
    return t->ops->lend_bell(t, memory);
}

/* Make `copy`, an empty message, share the frames of another. Thread: any that
 * has the other. */
static inline void transport_copy(struct message *copy,
                                  const struct message *of)
{
    of->transport->copy(copy, of);
}

/* At the start of a release function: what others did with the payload before
 * they let it go is done. (libzmq's own counting is hidden from
 * ThreadSanitizer.) */
void transport_released(void);

/* Release the frames of a message. Thread: any. */
static inline void transport_release(struct message *message)
{
    if (message->n_frames != 0)
        message->transport->release(message);
}

/* Why nobody may have answered at an address, dialled as node `id` if known,
 * into text: "" when nothing is known against it. Returns whether somebody
 * listens there who does not let this node in. May ask the resolver, and waits
 * for an answer for a third of a second. Lock not held. */
bool transport_explain(transport *t, const char *endpoint, bool known,
                       uint32_t id, char *text, size_t size);

/* Whether an address reaches beyond this host: tcp to other than loopback. */
bool transport_leaves_host(const char *endpoint);

/* Whether it is an address within this process. */
bool transport_in_process(const char *endpoint);

/* The host of a tcp address into host[size], without brackets. Returns false:
 * it is another kind of address. */
bool transport_tcp_host(const char *endpoint, char *host, size_t size);
/* Whether an address is of a scheme that this transport carries; libzmq has
 * more, some of which reach everyone on a network. */
bool transport_carries(const transport *t, const char *endpoint);
/* The same, and one port, if it has ports. */
bool transport_can_dial(const transport *t, const char *endpoint);
/* The ports of a tcp address: "21500", or "21500-21999" to bind; 0 and 0: any,
 * "*" or "0". Returns false: not 1 to 65535, the lower first. libzmq would take
 * of any number what is left in 16 bits, and pass over what follows it. */
bool transport_ports(const char *endpoint, unsigned *first, unsigned *last);
/* The error of such an address. */
int transport_no_ports(const char *bind);
/* The one spelling of an address of this host, so that who dials it and who
 * listens there mean the same: into out[LS_ENDPOINT_MAX + 1]. */
void transport_canonical(const char *endpoint, char *out);

#endif
