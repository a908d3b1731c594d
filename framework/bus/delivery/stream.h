/* stream.h - messages to one peer, each exactly once and in order, whatever
 * the network loses, doubles or puts out of order.
 *
 * Both ends are state machines without socket, lock or clock: a sender keeps
 * what the receiver has not acknowledged and says what to transmit next; a
 * receiver says what to deliver next. Numbers count from 1 over the life of
 * both nodes. docs/decisions/0010-reliable.md says why it is as it is.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_STREAM_H
#define LOCKSTEP_BUS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"

/* So far beyond what it has in order a receiver keeps messages, and a sender
 * transmits beyond what is acknowledged. */
#define STREAM_REACH 4096
/* So many at most are transmitted again before an acknowledgement shows that it
 * is of use. */
#define STREAM_BURST         256
#define STREAM_RESEND_NS     (20 * LS_NS_PER_MS)
#define STREAM_RESEND_MAX_NS (500 * LS_NS_PER_MS)
/* Until it is known how fast a network is, it is taken for one that carries a
 * byte in this time. */
#define STREAM_BYTE_NS (LS_NS_PER_S / 20000)
/* On a network that is known to take longer, that long. */
#define STREAM_PATIENCE_NS (10 * LS_NS_PER_S)
/* What every receiver has room for; an acknowledgement says more. */
#define STREAM_FIRST_MESSAGES 16
#define STREAM_FIRST_BYTES    (2u << 20)
/* Control messages that one peer has not acknowledged. */
#define STREAM_CONTROL_MAX 1024

/* ---- sending ----------------------------------------------------------- */

struct stream_item {
    void *content; /* the caller's; given back when it is acknowledged */
    size_t bytes;
    bool control;    /* outside the window */
    bool arrived;    /* the receiver has it, behind one that is missing */
    bool again;      /* it was transmitted more than once */
    int64_t sent_at; /* for the first time */
};

struct stream_sender {
    struct stream_item *items; /* a ring; NULL before the first */
    size_t capacity;           /* a power of two */
    uint64_t base;             /* the oldest that is not acknowledged */
    uint64_t cursor;           /* the first that was never transmitted */
    uint64_t next;             /* the number of the next new one */
    uint64_t again, again_to;  /* to be transmitted again */
    uint64_t burst;            /* so many, before an acknowledgement */
    uint64_t clocked;          /* those below were under way at a time-out */
    uint64_t repaired;         /* gaps below were filled */
    int64_t filled_at;         /* when any was, last */
    size_t n_data, n_control;  /* not acknowledged */
    size_t data_bytes;
    uint64_t room_messages, room_bytes; /* of the receiver, beyond base */
    uint64_t last_ack;
    uint64_t repeats; /* that the receiver counts */
    size_t most;      /* bytes that may be under way; set by the owner */
    uint64_t sent_bytes, acked_bytes; /* in all: of those transmitted */
    size_t again_bytes;               /* transmitted again, this time round */
    int64_t interval, resend_at;      /* LS_FOREVER: nothing is under way */
    int64_t round_trip;               /* smoothed; 0: not known yet */
    int64_t spread;   /* how far round trips are from it, smoothed */
    int64_t patience; /* what repeats taught, until a round trip is known */
    uint64_t taught;  /* what was transmitted before teaches no more */
};

/* What a receiver says; docs/wire-format.md. */
struct stream_ack {
    uint64_t sequence;                  /* of the acknowledgement */
    uint64_t number;                    /* it has all up to this */
    uint64_t also;                      /* bit i: and number + 1 + i */
    uint64_t repeats;                   /* how many came more than once */
    uint64_t room_messages, room_bytes; /* for more than those up to number */
};

typedef void stream_free_fn(void *self, void *content);

void stream_sender_init(struct stream_sender *s);
/* fn: gets what is not acknowledged. */
void stream_sender_fini(struct stream_sender *s, stream_free_fn *fn,
                        void *self);

static inline bool stream_is_idle(const struct stream_sender *s)
{
    return s->base == s->next;
}

/* Whether one more may be pushed. */
bool stream_has_room(const struct stream_sender *s, size_t bytes, bool control);
/* Take one in; its number is next - 1 afterwards. Errors: LS_ENOMEM. */
int stream_push(struct stream_sender *s, void *content, size_t bytes,
                bool control);
/* The next to be transmitted now, or NULL; again: it was before. */
const struct stream_item *stream_next(struct stream_sender *s, int64_t now,
                                      uint64_t *number, bool *again);
/* Heed an acknowledgement. Returns whether it said anything new. */
bool stream_acknowledge(struct stream_sender *s, const struct stream_ack *ack,
                        int64_t now, stream_free_fn *fn, void *self);
/* When it is time, transmit again what is not acknowledged, by stream_next().
 * Returns when it is time next. */
int64_t stream_tick(struct stream_sender *s, int64_t now);
/* The connection is a new one: what was under way may be lost. */
void stream_rewind(struct stream_sender *s);

/* ---- receiving --------------------------------------------------------- */

struct stream_slot {
    void *content;
    size_t bytes;
};

struct stream_receiver {
    uint64_t next;             /* the number that is to be delivered next */
    struct stream_slot *slots; /* beyond it: a ring; NULL: none ever came */
    size_t n_held, held_bytes;
};

enum stream_verdict {
    STREAM_DELIVER, /* it is next */
    STREAM_HOLD,    /* kept, until those before it have come */
    STREAM_REPEATED,
    STREAM_BEYOND /* no room to keep it: it will come again */
};

void stream_receiver_init(struct stream_receiver *r);
/* fn: gets what is kept. */
void stream_receiver_fini(struct stream_receiver *r, stream_free_fn *fn,
                          void *self);
/* What to do with a message of this number. max_bytes: kept at most. Afterwards
 * stream_take() is to be called until it returns NULL. */
enum stream_verdict stream_receive(struct stream_receiver *r, uint64_t number,
                                   void *content, size_t bytes,
                                   size_t max_bytes);
/* The next of those kept that can be delivered now, or NULL. */
void *stream_take(struct stream_receiver *r);
/* The bits of stream_ack.also. */
uint64_t stream_also(const struct stream_receiver *r);

#endif
