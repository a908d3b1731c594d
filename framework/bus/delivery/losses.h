/* losses.h - what was lost between whom, and who is slow. The lock is held. */
#ifndef LOCKSTEP_BUS_LOSSES_H
#define LOCKSTEP_BUS_LOSSES_H

#include <stdint.h>

#include "lockstep/event.h"

struct event_entry;
struct peer;

/* Since when a peer has no room. */
struct slowness {
    int64_t since, seen; /* 0: it is not slow */
    int64_t warned_at;
    uint64_t dropped;  /* since then */
    int64_t waited_ns; /* by emits, in all */
};

/* What is known of one that was sent an event. */
struct receiver_record {
    uint32_t id;
    uint64_t dropped;        /* by delivery */
    uint64_t unacknowledged; /* when it was lost, or left */
    /* Policy latest: the value that was pushed last, for which of its lives,
     * and its number in the stream. */
    uint64_t latest_incarnation, latest_sequence, latest_number;
};

/* The record of one receiver of an event, made if need be; NULL: no memory. */
struct receiver_record *losses_record(struct event_entry *entry, uint32_t id);
/* A listener of this node has missed it. Lock not held. */
void losses_dropped_here(ls_node *node, struct event_entry *entry);
void losses_dropped(ls_node *node, struct event_entry *entry,
                    struct peer *peer);
void losses_unacknowledged(ls_node *node, struct event_entry *entry,
                           const struct peer *peer);
/* An emit waits, since then, for room at a peer: now and then a line says so.
 * Returns when to look again. */
int64_t losses_waiting(const struct event_entry *entry, struct peer *peer,
                       int64_t since, int64_t now);

#endif
