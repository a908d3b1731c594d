/* peer.h - another node: what it is to the world, and what is sent and got. */
#ifndef LOCKSTEP_BUS_PEER_H
#define LOCKSTEP_BUS_PEER_H

#include "flow.h"
#include "losses.h"
#include "membership.h"
#include "streams.h"

struct block_pair;
struct link;

/* Another node: what it is to the world, and what is sent and got. Freed with
 * the node; one that was never a member may become another. A node in a star
 * knows many that it is not connected to and never talks to: so only those of
 * the others have a hop, or streams. */
struct peer {
    struct member member; /* the first: membership.h makes peers */
    struct link *link;
    struct hop *hop;                        /* own; see flow_open() */
    _Atomic(struct peer_streams *) streams; /* own; made under the lock */
    struct block_pair *blocks; /* borrow; NULL: none. Under the lock */
    struct slowness slow;
    bool relayed; /* a leaf, of which its hub has told the others */
};

static inline struct peer *peer_of(struct member *member)
{
    return (struct peer *)member;
}

/* Over whose connection it is reached: its own, or its hub's. */
static inline struct peer *peer_direct(struct peer *peer)
{
    struct member *via = peer->member.via;
    return via != NULL ? peer_of(via) : peer;
}

#endif
