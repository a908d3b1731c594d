/* heartbeat.h - what a node says of itself by the clock. Bus thread, lock held.
 */
#ifndef LOCKSTEP_BUS_HEARTBEAT_H
#define LOCKSTEP_BUS_HEARTBEAT_H

#include "peer.h"
#include "wire.h"

/* Of heartbeat.c alone. */
struct heart {
    int64_t announced_at, due_at;
    uint64_t n;
    uint8_t *bytes; /* own; of the list of members */
    size_t capacity;
};

/* Say it, when that is due; returns when it is next. */
int64_t heartbeat_tick(ls_node *node, int64_t now);
int heartbeat_read(ls_node *node, struct peer *peer,
                   const struct wire_header *header);

#endif
