/* delivery.h - how events of each kind of delivery travel: one row each. What
 * they promise is in docs/concepts.md. */
#ifndef LOCKSTEP_BUS_DELIVERY_H
#define LOCKSTEP_BUS_DELIVERY_H

#include "bus.h"

struct emit;

struct delivery {
    uint8_t flags; /* WIRE_FLAG_…, of its events */
    /* The payload is kept until all have acknowledged it, which may take more
     * than one connection. */
    bool keeps;
    /* Emit to those here, if `local`, and to those elsewhere, if `remote`. */
    int (*emit)(struct emit *e, bool local, bool remote);
    /* A receiver that has no room for so many bytes, or NULL. Lock held. No
     * function: nobody is waited for; whoever has no room misses the event. */
    struct peer *(*room)(struct emit *e, size_t size);
    /* Send to those elsewhere. Lock not held. */
    int (*send)(struct emit *e);
    /* A peer has gone that has not acknowledged an event. Lock held; NULL:
     * nobody counts on it. */
    void (*lost)(ls_node *node, struct event_entry *entry,
                 const struct peer *peer);
    /* A peer listens to an event, or (entry is NULL) may hear what it listens
     * to. Lock held; NULL: it gets what is emitted from then on. */
    void (*joined)(ls_node *node, const struct event_entry *entry,
                   struct peer *peer);
};

/* By enum ls_delivery; LS_DELIVERY_DEFAULT is LS_DELIVERY_BLOCK. */
extern const struct delivery deliveries[N_DELIVERIES];

/* By which an event that came was emitted. */
enum ls_delivery delivery_of(const struct wire_header *header);
/* Of all that look after who joins. Lock held. */
void delivery_joined(ls_node *node, const struct event_entry *entry,
                     struct peer *peer);

/* emit.c: those here wait for the event in the dispatch queue, where room is
 * reserved first. */
int emit_both(struct emit *e, bool local, bool remote);
/* Policies block and drop: by the windows of flow.h. */
struct peer *emit_without_room(struct emit *e, size_t size);
int emit_published(struct emit *e);
/* emit_stream.c: by the streams of streams.h. */
struct peer *emit_without_stream_room(struct emit *e, size_t size);
int emit_reliable(struct emit *e);
int emit_latest(struct emit *e, bool local, bool remote);

#endif
