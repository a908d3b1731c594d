/* batch.h - short events in close succession share a frame. Lock held. */
#ifndef LOCKSTEP_BUS_BATCH_H
#define LOCKSTEP_BUS_BATCH_H

#include "events.h"

#define BATCH_BYTES 16384

/* Of batch.c alone. */
struct batch {
    struct event_entry *entry; /* whose events these are; NULL: none */
    uint8_t flags;
    uint32_t n;
    int64_t published_at;  /* when an event was, last */
    int64_t shared_at;     /* when several were in a frame; 0: never */
    size_t size, payloads; /* bytes; where the payloads begin */
    uint8_t *bytes;        /* own, BATCH_BYTES; NULL before the first */
};

/* Take the event in, if it may share a frame; else false, and nothing of this
 * node is left unpublished before it. */
bool batch_add(ls_node *node, struct event_entry *entry, uint8_t flags,
               uint64_t sequence, const void *data, size_t size);
void batch_flush(ls_node *node);
/* Whether events have shared a frame a moment ago: more of them will. */
bool batch_is_recent(const ls_node *node);

#endif
