/* message.h - a received message on its way to a handler, and the pool that it
 * comes from and goes back to.
 *
 * The frames are the transport's and opaque here; data and size point into
 * them. In the steady state nothing is allocated: the bus thread takes
 * messages from the pool in batches and the dispatch thread returns them in
 * batches. */
#ifndef LOCKSTEP_BUS_MESSAGE_H
#define LOCKSTEP_BUS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/event.h"

struct peer;
struct event_entry;
struct transport_ops;

enum message_kind {
    MESSAGE_EVENT,
    MESSAGE_MEMBER,  /* members became ready, left or were lost */
    MESSAGE_CHANNEL, /* a channel's op is to run */
    MESSAGE_MARK     /* listeners have come: dispatch_mark() */
};

/* Room for the transport's own form of a frame. */
struct frame {
    union {
        max_align_t align;
        unsigned char bytes[64];
    } os;
};

#define MESSAGE_SMALL 192 /* bytes in a message itself */

struct message {
    struct message *next;
    struct frame frames[2];
    unsigned n_frames; /* that the transport filled and must release */
    const struct transport_ops *transport; /* that one, when n_frames != 0 */
    const uint8_t *head;                   /* the first frame */
    size_t head_size;
    const uint8_t *tail; /* the second; NULL when there is none */
    size_t tail_size;
    bool trusted; /* it came over a connection that has proved whose it is */

    enum message_kind kind;
    struct peer *peer;      /* whose window it is held in; NULL: nobody's */
    bool local;             /* emitted by this node: held in its own window */
    bool stream;            /* held in the window of the peer's stream */
    bool latest;            /* delivery latest: not handled when a later came */
    size_t held_bytes;      /* of that window, until it has been handled */
    unsigned held_messages; /* 1; or chunks, of which there may be none; or
                             * events of a batch */
    unsigned more;          /* events of a batch that follow this one, and */
    const uint8_t *next_at; /* where the next of them lies */
    struct event_entry *entry;
    struct ls_event event;
    void *owned; /* freed with it: a long payload, or a copy; or NULL */
    void (*release)(void *data, void *hint); /* instead of free() */
    void *hint;
    struct ls_member *members; /* MESSAGE_MEMBER; own, as they were then */
    size_t n_members;
    uint64_t watch; /* that alone is told; 0: all. Or a channel, or a mark */
    int what;       /* MESSAGE_CHANNEL: for the op */
    uint8_t small[MESSAGE_SMALL]; /* short payloads of local emits */
};

/* A list with its end at hand. */
struct message_list {
    struct message *first, **last;
    size_t n; /* the events of a batch one by one */
};
void message_list_init(struct message_list *list);
void message_list_append(struct message_list *list, struct message *message);
/* Put it in front. */
void message_list_prepend(struct message_list *list, struct message *message);
/* Move all of `from` to the end of `to`. */
void message_list_splice(struct message_list *to, struct message_list *from);
struct message *message_list_take(struct message_list *list);

typedef struct message_pool message_pool;
int message_pool_create(message_pool **out, ls_runtime *runtime);
void message_pool_destroy(message_pool **pool);

/* Take one, with nothing in it. batch: a list of the caller's that is refilled
 * from the pool when it is empty. NULL: no memory. */
struct message *message_take(message_pool *pool, struct message_list *batch);
/* The same for a thread that takes one now and then. */
struct message *message_take_one(message_pool *pool);
/* Give all of the list back, released and empty. */
void message_give_back(message_pool *pool, struct message_list *list);
void message_give_back_one(message_pool *pool, struct message *message);
/* What it owns beside its frames. */
void message_release_owned(struct message *message);
/* Without a pool. Any thread. */
void message_free(struct message *message);

#endif
