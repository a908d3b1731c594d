/* haul.h - a plan on its way: what has come, what has gone, what is asked for.
 *
 * Whoever takes a flow asks for it: "I have so much, send up to there". It asks
 * again until it has all, and asks further when half of a window has come; so a
 * sender keeps nothing for repetition, and no message has to arrive for another
 * to be sent. What was sent in vain is sent again from where the asker stands.
 * No I/O, no clock: it says what to send. Thread: serial. */
#ifndef GROUP_HAUL_H
#define GROUP_HAUL_H

#include "plan.h"

/* A piece of a flow in one message, and how far ahead a taker lets a sender go;
 * multiples of every type's size. */
#define HAUL_PIECE  ((size_t)240 << 10)
#define HAUL_WINDOW (4 * HAUL_PIECE)

#define HAUL_ASK_FIRST_NS (INT64_C(40) * 1000 * 1000)
#define HAUL_ASK_LAST_NS  (INT64_C(500) * 1000 * 1000)

/* What to send. data: borrow, for the call. */
struct haul_post {
    void *self;
    void (*data)(void *self, const struct plan_move *move, size_t offset,
                 const void *data, size_t size);
    void (*want)(void *self, const struct plan_move *move, size_t have,
                 size_t upto, bool again);
};

struct haul_state {
    size_t done;    /* TAKE, FOLD, COPY: bytes that are in place */
    size_t sent;    /* SEND */
    size_t wanted;  /* SEND: up to there. TAKE: what was asked for */
    int64_t ask_at; /* TAKE: LS_FOREVER when it has all */
    int64_t ask_every;
};

struct haul {
    struct plan plan;         /* own */
    struct plan_shape shape;  /* what it points to is borrowed */
    struct haul_state *state; /* own; of each move */
    const unsigned char *in;  /* borrow, as out */
    unsigned char *out;
    unsigned char *scratch; /* own */
    size_t n_open;          /* moves but SEND that are not done */
};

/* out: own; give it to haul_fini(), also after an error. Errors: LS_ENOMEM. */
LS_MUST_USE int haul_init(struct haul *haul, const struct plan_shape *shape,
                          const void *in, void *out);
void haul_fini(struct haul *haul);

/* Copy what is here already, and ask for the rest. */
void haul_begin(struct haul *haul, int64_t now, const struct haul_post *post);

/* Whether this rank has all that it takes; it may still have to send. */
static inline bool haul_is_whole(const struct haul *haul)
{
    return haul->n_open == 0;
}

/* A piece has come. Returns false: it is none of this plan's. One that is not
 * the next is passed over: it came before, or one before it was lost. */
bool haul_take(struct haul *haul, int64_t now, uint32_t peer, uint32_t lane,
               size_t offset, const void *data, size_t size,
               const struct haul_post *post);

/* A peer asks. Returns false: for nothing that this plan sends. */
bool haul_wanted(struct haul *haul, uint32_t peer, uint32_t lane, size_t have,
                 size_t upto, bool again, const struct haul_post *post);

/* Ask again for what has not come. Returns when to call this next. */
int64_t haul_tick(struct haul *haul, int64_t now, const struct haul_post *post);

/* A rank from which something is still to come. Returns false: none. */
bool haul_lacks(const struct haul *haul, uint32_t *rank);

#endif
