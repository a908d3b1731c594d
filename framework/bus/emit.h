/* emit.h - one emit under way; what the files of it share. */
#ifndef LOCKSTEP_BUS_EMIT_H
#define LOCKSTEP_BUS_EMIT_H

#include "bus.h"

struct emit {
    ls_node *node;
    const struct ls_emission *in;
    struct event_entry *entry;
    enum ls_policy policy;
    bool drop;
    bool wait;
    int64_t deadline; /* from emit_deadline() alone; 0: not yet asked for */
    struct peer *one; /* to_one */
    struct peer *one_direct;
    uint64_t sequence;
    bool under_way;          /* it is this one that is emitting in chunks */
    struct payload *payload; /* NULL: it is copied into each message */
    struct peer **missing;   /* policy drop, in chunks: they missed a part */
    size_t n_missing;
};

/* The clock is read by an emit that has to wait, and only then. */
int64_t emit_deadline(struct emit *e);
/* A wait for room at a peer (NULL: for the turn of this emit) under the lock.
 * since: when the emit began to wait; 0: it has not yet, and does now.
 * Errors: LS_ETIMEDOUT it may not wait any longer; what ended it. */
int emit_wait(struct emit *e, struct peer *peer, int64_t *since);
/* After the last of them. */
void emit_waited(struct emit *e, struct peer *peer, int64_t since);

/* emit_stream.c: what goes through streams. Lock not held. */
int emit_reliable(struct emit *e);
int emit_latest(struct emit *e, bool local);

#endif
