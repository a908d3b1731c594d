/* emit.h - one emit under way; what the files of it share. */
#ifndef LOCKSTEP_BUS_EMIT_H
#define LOCKSTEP_BUS_EMIT_H

#include "delivery.h"

/* Whom an emit through streams goes to, as they were when it began: nobody is
 * to get the second half of a long one. */
struct receiver {
    struct peer *peer;
    uint64_t life;
    bool gone;
};

struct emit {
    ls_node *node;
    const struct ls_emission *in;
    struct event_entry *entry;
    const struct delivery *how;
    bool wait;
    struct ls_due due; /* at 0: it has not had to wait yet */
    struct peer *one;  /* to_one */
    struct peer *one_direct;
    uint64_t one_life; /* in which it was found */
    uint64_t sequence;
    int64_t waited_at;       /* it began to wait for room then; 0: it did not */
    int64_t traced_at;       /* it was published then; 0: not recorded */
    bool by_block;           /* its payload lies in shared memory */
    bool under_way;          /* it is this one that is emitting in chunks */
    struct payload *payload; /* NULL: it is copied into each message */
    struct peer **missing;   /* delivery drop, in chunks: they missed a part */
    size_t n_missing;
    struct receiver *to; /* through streams; NULL: not chosen yet */
    size_t n_to;
    struct receiver one_to; /* for a single one nothing is allocated */
};

/* Whether the one that it is for is still there. Lock held.
 * Errors: LS_ENOENT it has left or was lost since. */
int emit_check_one(const struct emit *e);
/* Wait until it is the turn of this emit and all have room for so many bytes,
 * or need not have it. Lock held, and let go of meanwhile.
 * Errors: LS_EAGAIN it may not wait any longer; what ended it; LS_ENOENT as
 *         above, but where the payload is kept. */
int emit_wait_room(struct emit *e, size_t size);
/* Reliable and latest ones keep the payload: there is one copy for all.
 * Errors: LS_ENOMEM. */
int emit_keep_payload(struct emit *e);
/* Emit a large payload through shared memory, if it can. done: whether it went
 * this way, or the emit has failed; if not, for want of a block, or since one
 * of those who listen can read none, it is to go as others do. Lock held, and
 * let go of while the payload is copied, if it does not lie there. */
int emit_block(struct emit *e, bool *done);
void emit_by(struct emit *e, enum ls_delivery delivery);
/* The next of those that are numbered: those to all. */
void emit_number(struct emit *e);
/* It has its sequence, and is about to be published. Lock held. */
void emit_traced(struct emit *e);
/* A long one begins, or has ended: no other of its name goes between. */
void emit_under_way(struct emit *e, bool begins);

#endif
