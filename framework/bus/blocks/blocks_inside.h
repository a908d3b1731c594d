/* blocks_inside.h - what the files of this room share. */
#ifndef LOCKSTEP_BUS_BLOCKS_INSIDE_H
#define LOCKSTEP_BUS_BLOCKS_INSIDE_H

#include "block_pool.h"
#include "blocks.h"
#include "bus.h"
#include "line.h"
#include "patience.h"
#include "ring.h"

#define BLOCKS_MAGIC UINT64_C(0x36636f6c62736c00) /* "\0lsbloc6" */

/* How a memory begins; blocks follow. What is of a pair has pages when there is
 * one. */
struct block_words {
    uint64_t magic;
    uint64_t proof[2];             /* what its owner has told on the bus */
    _Alignas(64) ls_word asleep;   /* threads that wait for lines */
    _Alignas(64) block_word rests; /* the number of the rest in which its bus
                                    * thread waits for its bell; 0: in none */
    struct block_row rows[BLOCK_READERS]; /* by the place of a pair here */
    struct line lines[BLOCK_READERS];     /* what it says; by the same place */
    struct ring rings[BLOCK_READERS];     /* by the same place */
};

/* What is said on the channel. */
enum block_said {
    BLOCKS_OFFER,  /* this is where my memory is offered, and its key */
    BLOCKS_TAKEN,  /* I have yours; in this row of mine I say what I read */
    BLOCKS_PASSED, /* all up to this number has been sent */
    BLOCKS_N_SAID
};
struct block_notice {
    uint32_t said;                    /* enum block_said */
    uint64_t to;                      /* the incarnation that it is meant for */
    uint64_t session;                 /* TAKEN, PASSED: of the reader's row */
    uint64_t number;                  /* PASSED */
    uint64_t window;                  /* TAKEN: the reader's, in bytes */
    uint32_t row;                     /* TAKEN */
    uint64_t key[2], proof[2];        /* OFFER, as the next */
    char socket[LS_OFFER_NAME_BYTES]; /* its name in the folder */
};

/* A block that this node reads. */
struct block_hold {
    struct block_pair *pair;
    _Atomic uint64_t number; /* 0: it does not */
};

/* This node and another, which had these lives when they met. */
struct block_pair {
    struct blocks *home;
    atomic_uint users; /* the node, and each block that is read: it may be
                        * read when the node is no more */
    unsigned place;    /* in struct blocks, and of its row */
    unsigned forks;    /* of its node */
    uint32_t id;
    uint64_t life;
    bool over;                  /* a life of one of them is */
    bool wanted;                /* they are to become a pair */
    bool offered;               /* this node's memory, to the other */
    bool tried;                 /* its memory was asked for */
    bool busy;                  /* the worker has it */
    bool here;                  /* both are in this process */
    struct blocks *theirs;      /* then: whose memory it is; held */
    ls_memory *memory;          /* its; own, or of theirs; NULL: not taken */
    struct block_notice offer;  /* its; .socket "": none came yet */
    struct block_notice answer; /* TAKEN; .session 0: none came yet */

    /* as a reader of its blocks */
    struct block_row *row; /* in this node's memory; NULL: it is not one yet */
    uint64_t session;
    ls_runtime *touched; /* NULL: it is no simulation */
    struct block_hold holds[BLOCK_SLOTS];

    uint32_t heard; /* of its line */
    uint64_t taken; /* of its ring; bus thread */

    unsigned listened; /* threads that have its memory before them */

    /* as the owner of blocks */
    bool lends;
    uint64_t last;         /* that was sent to it */
    uint64_t seen_then;    /* by it, when it was last looked */
    _Atomic uint64_t rung; /* the last of its rests that its bell was rung in */
};

/* Made with the first pair. */
struct blocks {
    atomic_uint users; /* the node, each pair, each block that is held, and
                        * each other of this process that is a pair with it */
    struct blocks *next_here; /* of blocks_here.c */
    ls_memory *memory;        /* own; made by the worker, as the next */
    ls_offer *offer;          /* own; NULL: nobody is to take it now */
    int64_t offer_until;
    char folder[LS_OFFER_PATH_BYTES];
    struct block_notice own;
    struct block_pool pool;
    size_t reserved[2];                      /* what lies below has pages; of
                                              * each half */
    struct block_pair *pairs[BLOCK_READERS]; /* own */
    ls_runtime *touched;                     /* NULL: it is no simulation */
    ls_cond work;                            /* for the worker */
    ls_thread *worker;                       /* of blocks_meet.c */
    bool stopping;
    int64_t tick_at;
    ls_word news; /* a pair has come, or is over */
    /* of who has the turn: whose rings it looks at, what news it knows, how
     * often it has rested, and whether there was a frame since it looked for
     * more */
    struct block_pair *watched[BLOCK_READERS]; /* loop.n_watched */
    uint32_t watched_since;
    uint64_t n_rests;
    bool heard;
    struct patience patience;
    bool rings_later;         /* whoever writes does not ring, but notes here */
    _Atomic uint64_t to_ring; /* whom the bus thread is to: a set of places */
    unsigned ear;             /* the place whose line was read last */
};

static inline size_t blocks_begin(void)
{
    return ls_memory_pages(sizeof(struct block_words));
}

/* The pair with a peer, in these lives; made if need be. NULL: there is none,
 * and cannot be. */
struct block_pair *blocks_pair(ls_node *node, struct peer *peer);
/* Whether they are a pair; if not yet, the other is asked. */
bool blocks_is_pair(ls_node *node, struct peer *peer);
/* Have those that listen look who is there. */
void blocks_tell_news(ls_node *node);
/* Whether its lines and rings are read. */
static inline bool blocks_is_near(const struct block_pair *pair)
{
    return pair != NULL && pair->lends && !pair->over;
}
/* It has written what it may not, as ls_error_text() says: count that as if it
 * had come over a connection. Lock held. */
void blocks_refuse(ls_node *node, const struct block_pair *pair);
/* Pages for a draft, so that to write there cannot fail. Lock not held. Returns
 * false: there are none, which is counted. */
bool blocks_reserve(ls_node *node, const struct block_draft *draft);
/* The node, a pair, one that was its pair, or who holds a block of its own is
 * done with it. Any thread. */
void blocks_drop(struct blocks *blocks);
/* Let go of pairs that are over. */
void blocks_reap_pairs(struct blocks *blocks);
/* And take back what all are done with. */
void blocks_reap(ls_node *node);

/* blocks_here.c: nodes of this process may take its memory; until that. */
void blocks_here_offer(struct blocks *blocks);
void blocks_here_end(struct blocks *blocks);
/* What is offered so by the node that says this; held, until blocks_drop().
 * NULL: nobody offers it. */
struct blocks *blocks_here_take(const struct block_notice *offer);

/* blocks_meet.c: have the worker look, which is begun with the first pair. */
void blocks_meet(ls_node *node);
/* Tell the other that it has got all up to `last`, or never will. */
void blocks_say_passed(ls_node *node, const struct block_pair *pair);

#endif
