/* rings.h - frames to the nodes of this host that the bus threads read, through
 * the memories of blocks.h: those of streams, short events, and what tells how
 * far a peer may go. */
#ifndef LOCKSTEP_BUS_RINGS_H
#define LOCKSTEP_BUS_RINGS_H

#include <stdbool.h>

#include "lockstep/node.h"

struct peer;

/* Lock held. Returns false: they are no pair, there is no room, or it is too
 * long; nothing was sent. */
bool rings_send(ls_node *node, const struct peer *peer, const void *head,
                size_t head_size, const void *body, size_t body_size);
/* Begin, or end, to leave it to the bus thread to wake those that what is sent
 * is for: who writes to many is put aside by each that it wakes, and they have
 * more to read at once when they come to run a little later. begins: false is
 * right also if it has not begun. Lock held, from the begin to the end. */
void rings_later(ls_node *node, bool begins);
/* Wake those that were left to it. Bus thread, lock not held. */
void rings_ring(ls_node *node);
/* Whether all that was sent to it was read, if they are a pair. Lock held. */
bool rings_are_read(const ls_node *node, const struct peer *peer);
/* Have this node and a peer become a pair, if they can and are none. Lock
 * held. */
void rings_want(ls_node *node, struct peer *peer);
/* Give what has come to bus_near(). Bus thread, lock not held. */
void rings_read(ls_node *node);
/* The same of one peer: what it wrote before it sent what has come over its
 * connection. */
void rings_read_of(ls_node *node, const struct peer *peer);
/* Look for a moment whether more follows, if anything has come since the last
 * time. Returns whether there is. Whoever polls, lock not held. */
bool rings_look(ls_node *node);
/* The bus thread is about to wait for its bell, or has waited. Returns false:
 * there is something to be read. Lock not held. */
bool rings_rest(ls_node *node, bool begins);

#endif
