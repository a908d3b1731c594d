/* streams.h - reliable messages between nodes, from push to handler. Bus thread
 * or any, as said; the lock is held unless said. */
#ifndef LOCKSTEP_BUS_STREAMS_H
#define LOCKSTEP_BUS_STREAMS_H

#include <stdatomic.h>

#include "message.h"
#include "pace.h"
#include "payload.h"
#include "stream.h"
#include "wire.h"

/* The streams to and from a peer. A node knows many that it never has any to
 * say to: so they are made with the first message, either way, and live as long
 * as the peer. */
struct peer_streams {
    /* under the lock */
    struct stream_sender out;
    struct pace pace;
    bool latest_waits; /* a value of delivery latest has not been pushed yet */
    bool full;         /* a channel's message found no room */
    bool parts_wait;   /* a part of a body found none */
    size_t body_bytes; /* of bodies, not acknowledged */
    uint64_t carried;  /* the last that was sent over a connection */
    /* bus thread */
    struct stream_receiver in;
    bool used;      /* something has come */
    bool ack_due;   /* an acknowledgement, at once */
    int64_t ack_at; /* at the latest; LS_FOREVER: all is acknowledged */
    uint64_t n_acks;
    uint64_t repeats; /* that came more than once */
    /* Of data: what came, and how far the sender was told that it may go. */
    uint64_t got_messages, got_bytes, permitted_messages, permitted_bytes;
    uint64_t unsaid_messages, unsaid_bytes; /* since the last of them */
    uint64_t told_messages, told_bytes;     /* of room, in it */
    /* Delivered, not handled yet: the bus thread adds, and under the lock
     * whoever is done with a message takes away. */
    _Atomic uint64_t held_messages, held_bytes;
    atomic_bool room_made; /* so much that the sender must be told */
};

struct delivery;

/* What is to be sent: `size` bytes of a payload, at `offset`. */
struct parcel {
    struct payload *payload; /* shared */
    size_t offset, size;
    size_t weight;              /* in windows; 0: its size */
    enum wire_kind of;          /* EVENT, CHUNK or CHANNEL */
    const struct delivery *how; /* NULL: it is a channel's */
    uint8_t flags;              /* beside those of its row */
    uint64_t sequence;
    struct event_entry *entry; /* NULL: it is a channel's */
    char *name;                /* its, own; NULL: an event's */
    size_t *body_bytes;        /* of a part of a body: where it is counted */
};
/* NULL: there are none yet. */
struct peer_streams *streams_of(const struct peer *peer);
bool streams_room(const struct peer *peer, size_t bytes);
/* Whether all was acknowledged that was sent to it over the connection. */
bool streams_are_clear(const struct peer *peer);
/* The same for a channel's message; if there is none, channels are told when
 * there is. */
bool streams_room_control(struct peer *peer);
/* The same for a part of a body: all bodies get half of the window, so that
 * events find room, too. */
bool streams_room_part(struct peer *peer, size_t bytes);
/* The longest piece of a long message for this peer. */
size_t streams_piece(const struct peer *peer);
/* Put one into the peer's stream, and transmit it when possible.
 * parcel: copied; its payload is shared, its name moved, on success only. */
int streams_push(ls_node *node, struct peer *peer, const struct parcel *parcel);
/* Its presence is here, again or for the first time. */
void streams_present(ls_node *node, struct peer *peer);
/* It left or was lost: what is not acknowledged is counted, and told. */
void streams_gone(ls_node *node, struct peer *peer);
/* The peer begins a new life. What is still held of what it sent stays in the
 * window. */
void streams_reset(ls_node *node, struct peer *peer);
/* With the peer. */
void streams_free(ls_node *node, struct peer *peer);
void streams_acknowledged(ls_node *node, struct peer *peer,
                          const struct wire_header *header);
/* Bus thread, no lock: one came. kept: whether the message was.
 * Errors: LS_EPROTO it contradicts itself; LS_ELIMIT it is more than its sender
 *         was granted. Then it is as if it had not come. */
int streams_message(ls_node *node, struct peer *origin,
                    const struct wire_header *header, struct message *message,
                    bool *kept);
/* So much has been handled. Any thread. */
void streams_release(ls_node *node, const struct peer *peer, uint64_t messages,
                     uint64_t bytes);
/* Bus thread: acknowledge, and transmit again, what is due; returns when to
 * look again. */
int64_t streams_tick(ls_node *node, int64_t now);
/* With each heartbeat: an acknowledgement to all that sent something. */
void streams_acknowledge_all(ls_node *node);
/* Before a farewell: wait until all is acknowledged, on both sides. */
void streams_drain(ls_node *node, int64_t deadline);
/* What is not acknowledged is counted. The bus thread has ended. */
void streams_close(ls_node *node);

#endif
