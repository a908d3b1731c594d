/* open_calls.h - calls that are open, at either side: found by the other side
 * and number, in the order in which they came, and by deadline. No lock, socket
 * or clock.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_OPEN_CALLS_H
#define LOCKSTEP_BUS_OPEN_CALLS_H

#include "deadlines.h"
#include "lockstep/call.h"

/* The life of this node, for calls to itself: it does not change when the node
 * is declared lost by others. */
#define CALL_OWN_LIFE 0

/* One; the first of what the owner keeps of it. */
struct open_call {
    struct deadline due;
    struct open_call *next; /* in its bucket */
    struct open_call *before, *after;
    uint32_t peer;   /* the other side */
    uint64_t life;   /* of it */
    uint64_t own;    /* of this node, when it was sent */
    uint64_t number; /* at the side that asks */
    /* Where it is asked: starting, started when the one that asks was told so,
     * or cancelled when nobody waits for the answer. */
    enum ls_call_state state;
    /* Of the body that comes with it: a request's at the side that is asked, an
     * answer's at the other. 0: none. */
    uint64_t body_bytes;
};

struct open_calls {
    struct open_call **buckets;
    size_t n_buckets; /* a power of two */
    struct open_call *oldest, *newest;
    struct deadlines due;
    size_t n;
};

/* What is to be done about one that has ended, or is cancelled. */
typedef void open_call_fn(void *self, struct open_call *call);

/* most: that are expected. Errors: LS_ENOMEM. */
LS_MUST_USE int open_calls_init(struct open_calls *calls, size_t most);
void open_calls_fini(struct open_calls *calls);
/* All but its places is filled; it is starting. Errors: LS_ENOMEM. */
LS_MUST_USE int open_calls_add(struct open_calls *calls,
                               struct open_call *call);
void open_calls_remove(struct open_calls *calls, struct open_call *call);
/* The one that all of this is true of, or NULL. */
struct open_call *open_calls_find(const struct open_calls *calls, uint32_t peer,
                                  uint64_t life, uint64_t own, uint64_t number);
/* One whose deadline has passed, or NULL. */
struct open_call *open_calls_due(const struct open_calls *calls, int64_t now);
/* When the next deadline passes; LS_FOREVER. */
int64_t open_calls_wake_at(const struct open_calls *calls);

#endif
