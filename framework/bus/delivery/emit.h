/* emit.h - one emit under way; what the files of it share. */
#ifndef LOCKSTEP_BUS_EMIT_H
#define LOCKSTEP_BUS_EMIT_H

#include "bus.h"

struct emit {
    ls_node *node;
    const struct ls_emission *in;
    struct event_entry *entry;
    enum ls_delivery delivery;
    bool drop;
    bool wait;
    int64_t deadline; /* from emit_deadline() alone; 0: not yet asked for */
    struct peer *one; /* to_one */
    struct peer *one_direct;
    uint64_t sequence;
    bool under_way;          /* it is this one that is emitting in chunks */
    struct payload *payload; /* NULL: it is copied into each message */
    struct peer **missing;   /* delivery drop, in chunks: they missed a part */
    size_t n_missing;
};

/* The clock is read by an emit that has to wait, and only then. */
int64_t emit_deadline(struct emit *e);
/* A peer that has no room for so many bytes of the emit, or NULL. */
typedef struct peer *emit_full_fn(void *self, size_t size);
/* Wait until it is the turn of this emit and nobody is full, or need not have
 * room. Lock held, and let go of meanwhile.
 * Errors: LS_EAGAIN it may not wait any longer; what ended it. */
int emit_wait_room(struct emit *e, emit_full_fn *full, void *self, size_t size);

/* In what pieces a long one is sent: to one, or (NULL) to all of these. */
size_t emit_piece(const struct peer *one, const struct targets *all);

/* emit_stream.c: what goes through streams. Lock not held. */
int emit_reliable(struct emit *e);
int emit_latest(struct emit *e, bool local);

#endif
