/* flow.h - windows: how far each sender may go. */
#ifndef LOCKSTEP_BUS_FLOW_H
#define LOCKSTEP_BUS_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/node.h"

struct peer;

/* Bytes and messages, counted over the life of a connection. */
struct account {
    uint64_t messages, bytes;
};

bool flow_room(const struct peer *peer, size_t bytes);
void flow_charge(struct peer *peer, size_t bytes);
/* A message from this peer came: it counts, and is held if `keep`. */
void flow_got(struct peer *peer, size_t bytes, bool keep);
/* Lock held: so much of what was held is done with; grants more when due. */
void flow_release(ls_node *node, struct peer *peer, uint64_t messages,
                  uint64_t bytes);
struct account flow_limit(const ls_node *node, const struct peer *peer);
/* The sender counts so much: what is missing was lost on the way. */
void flow_settle(ls_node *node, struct peer *peer, uint64_t messages,
                 uint64_t bytes);
void flow_raise(ls_node *node, struct peer *peer, uint64_t messages,
                uint64_t bytes);

#endif
