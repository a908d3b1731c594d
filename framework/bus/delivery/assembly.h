/* assembly.h - long events on their way in, put together from chunks. Bus
 * thread. */
#ifndef LOCKSTEP_BUS_ASSEMBLY_H
#define LOCKSTEP_BUS_ASSEMBLY_H

#include "bus.h"

/* A long event on its way in, put together on the bus thread. */
struct assembly {
    struct assembly *next;
    struct peer *origin;
    struct peer *direct; /* in whose window it is held */
    struct event_entry *entry;
    uint64_t sequence;
    uint8_t *data;
    uint32_t total, filled;
    struct account held;
    bool stream; /* it comes through its origin's stream */
};

/* Add a chunk (of a kind CHUNK, or one from a stream); NULL until the event is
 * whole. direct: over whose connection it came; keep: in, whether its window
 * may hold it; out, whether it does. */
struct message *assembly_add(ls_node *node, struct peer *origin,
                             struct peer *direct, struct event_entry *entry,
                             const struct wire_header *header,
                             const uint8_t *data, size_t size, bool *keep);
void assembly_drop(ls_node *node, const struct peer *origin);

#endif
