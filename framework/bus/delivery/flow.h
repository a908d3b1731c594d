/* flow.h - windows: how far each sender may go. */
#ifndef LOCKSTEP_BUS_FLOW_H
#define LOCKSTEP_BUS_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/node.h"

#include "message.h"
#include "pace.h"
#include "wire.h"

struct peer;

/* Messages that may be under way to one peer, whatever it grants; the mark of
 * the publisher lies above it. */
#define FLOW_UNDER_WAY_MAX 16384u

/* Bytes and messages, counted over the life of both ends. */
struct account {
    uint64_t messages, bytes;
};

/* A connection, both ways, and what is held for the windows of its two ends.
 * Whom a hub relays has none: its windows are the hub's. */
struct hop {
    /* Sending; under the lock. */
    struct account sent, limit, arrived;
    uint64_t carried; /* of sent: up to here went over the connection, or what
                       * lies behind has not overtaken it */
    struct pace pace;
    bool asks;   /* within an emit: flow_ask() is to follow */
    bool near;   /* whether they share memory was asked, or need not be */
    bool counts; /* bus thread: the peer counts what it sends as sent here */
    /* Receiving: got and kept by the bus thread alone; released under the lock
     * by whoever is done with a message. */
    _Atomic uint64_t got_messages, got_bytes;
    _Atomic uint64_t kept_messages, kept_bytes; /* of got: held in the window */
    _Atomic uint64_t released_messages, released_bytes; /* of kept */
    struct account seen;    /* bus thread: of released, at least */
    struct account claimed; /* by the peer, of what it sent */
    uint64_t n_losses;      /* how often something was lost; of all lives */
    struct account ahead;   /* bus thread: of got, what came through memory and
                             * may not be in the next claim yet, at most */
    _Atomic uint64_t granted_messages, granted_bytes;
    struct message_list relay; /* waits for room at its receivers */
    struct message_list early; /* of those whom this hub speaks for */
    int64_t early_at;          /* since when */
    size_t early_bytes;        /* of early, what counts in no window */
};

/* A peer has one that this node is connected to, or will be: from flow_open(),
 * flow_connected() or flow_account() on, until it is freed. But for these
 * three, and flow_begin(), all that is declared here is for peers with a hop.
 */

/* Bus thread, lock held. Errors: LS_ENOMEM. */
int flow_open(struct peer *peer);
/* The accounts of a new life. What is still held of what came stays in the
 * window, or whoever restarts often enough could have any number of windows. */
void flow_begin(struct peer *peer);

/* ---- sending; lock held ------------------------------------------------ */

/* Whether it has granted so much more. */
bool flow_room(const struct peer *peer, size_t bytes);
/* And for one more message after it. */
bool flow_room_more(const struct peer *peer, size_t bytes);
/* Whether it has, and the connection is done with what it has, as far as it
 * should be before there is more. */
bool flow_room_now(const struct peer *peer, size_t bytes);
/* So much is sent to it. Returns whether flow_ask() is to follow. */
bool flow_charge(const ls_node *node, struct peer *peer, size_t bytes);
/* Behind what was sent: it is to tell at once how much of it has come. */
void flow_ask(ls_node *node, const struct peer *peer);
/* What was charged last goes over the connection, or what is not counted. */
void flow_carry(struct peer *peer, bool counted);
/* Whether all has come that went over the connection, as far as is counted: so
 * that what goes through memory overtakes nothing. */
bool flow_is_clear(const struct peer *peer);
/* The longest piece of a long message for this peer. */
size_t flow_piece(const struct peer *peer);

/* ---- receiving --------------------------------------------------------- */

/* Bus thread. Whether so many more messages have been granted to this peer. */
bool flow_may(const ls_node *node, const struct peer *peer, uint64_t messages,
              uint64_t bytes);
/* Bus thread: so many messages from this peer came, of so many bytes in all:
 * they count, and are held if `keep`. What takes a long event back
 * (WIRE_FLAG_WITHDRAW) is counted by neither side. */
void flow_got(struct peer *peer, uint64_t messages, size_t bytes, bool keep);
/* The same of one that came through memory: before flow_got(). */
void flow_got_near(struct peer *peer, size_t bytes);
/* Lock held: so much of what was held is done with; grants more when due. */
void flow_release(ls_node *node, const struct peer *peer, uint64_t messages,
                  uint64_t bytes);
/* Over a connection that is new, tell it at once how far it may go, and what
 * has come. Bus thread. */
void flow_connected(ls_node *node, struct peer *peer);

/* ---- accounts; lock held ----------------------------------------------- */

/* What stands in this node's heartbeat about a peer. Bus thread. */
void flow_account(ls_node *node, struct peer *peer, struct wire_member *out);
/* What a peer's heartbeat says of this node. Errors: LS_EPROTO it cannot be. */
int flow_settle(ls_node *node, const struct peer *peer,
                const struct wire_member *says);
/* A credit of it. */
void flow_credit(ls_node *node, const struct peer *peer,
                 const struct wire_header *header);

#endif
