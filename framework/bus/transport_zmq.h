/* transport_zmq.h - what the files of the libzmq transport share. */
#ifndef LOCKSTEP_BUS_TRANSPORT_ZMQ_H
#define LOCKSTEP_BUS_TRANSPORT_ZMQ_H

#include <assert.h>
#include <stdatomic.h>
#include <zmq.h>

#include "transport.h"

#define LOOK_EVERY_NS LS_NS_PER_MS

struct transport {
    ls_runtime *runtime;
    ls_mutex lock;
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
    transport_link *dirty;     /* links to be read before waiting */
    size_t max_message_bytes;
    int linger_ms;
};

struct transport_link {
    transport *t;
    void *sub;
    void *owner;
    int fd;
    bool dirty;
    transport_link *next_dirty;
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

/* Bind a socket to `bind`, trying the ports of a range in turn; endpoint gets
 * what was bound. Errors: LS_EADDRINUSE, LS_EINVAL, LS_EIO. */
int transport_zmq_bind(void *socket, const char *bind, char *endpoint);
/* Close the socket that was bound there ("": nowhere). Afterwards the address
 * is free, and a socket file is removed. */
void transport_zmq_close(void *zctx, void *socket, const char *endpoint);
/* Whether an address is of a kind that the bus uses; libzmq has more, some of
 * which reach everyone on a network. */
bool transport_zmq_knows(const char *endpoint);

bool transport_zmq_set_int(void *socket, int option, int value);
/* What both kinds of socket need before they bind or connect. */
bool transport_zmq_set_common(const transport *t, void *socket,
                              size_t max_bytes);
int transport_zmq_fd(void *socket);
/* Have transport_poll() see when there is something to read. */
bool transport_zmq_watch(const transport *t, int fd, void *what);

#endif
