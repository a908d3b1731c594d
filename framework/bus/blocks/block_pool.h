/* block_pool.h - the books of an owner: which of its blocks are lent, to whom,
 * and where there is room for another. Nothing in it is read from shared memory
 * but whether a reader is done. A state machine: no lock, no clock.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_BLOCK_POOL_H
#define LOCKSTEP_BUS_BLOCK_POOL_H

#include "block_row.h"

/* Bodies of calls may be kept for as long as their receivers like, and what its
 * owner writes there itself for as long as it likes. So they lie in the upper
 * half of the memory, and bodies have half of the slots: events find room in
 * any case. */
enum block_use { BLOCK_FOR_EVENT, BLOCK_FOR_BODY, BLOCK_FOR_OWNER };

/* What the owner holds has slots of its own, which nobody is told: each time
 * that it is sent, it is lent in another one, which names the same bytes. */
enum { BLOCK_HELD = 64, BLOCK_ALL = BLOCK_SLOTS + BLOCK_HELD };

struct block {
    bool used;
    bool filling; /* taken, not published yet; or held by its owner */
    enum block_use use;
    bool sure;        /* its handles come in streams, for certain */
    uint64_t number;  /* of its latest use */
    uint64_t readers; /* a set, by bit: who may still read it */
    size_t offset, size;
};

struct block_reader {
    const struct block_row *row; /* borrow; NULL: there is no such reader */
    uint64_t session;
};

struct block_pool {
    ls_runtime *runtime; /* NULL: it is no simulation */
    size_t begin, end;   /* of the memory for blocks */
    size_t middle;       /* bodies lie above it */
    struct block blocks[BLOCK_ALL];
    uint8_t order[BLOCK_ALL];       /* the slots that are used, by offset */
    atomic_bool let_go[BLOCK_HELD]; /* by its owner, on any thread */
    unsigned n;
    uint64_t numbers; /* the latest that was given */
    struct block_reader readers[BLOCK_READERS];
};

void block_pool_init(struct block_pool *pool, ls_runtime *runtime, size_t begin,
                     size_t end);
/* row: borrow, until block_pool_remove(). */
void block_pool_add(struct block_pool *pool, unsigned reader,
                    const struct block_row *row, uint64_t session);
/* It reads nothing any more. */
void block_pool_remove(struct block_pool *pool, unsigned reader);
/* Whether it may still read any. */
bool block_pool_lends(const struct block_pool *pool, unsigned reader);
/* Take back what all are done with. */
void block_pool_sweep(struct block_pool *pool);
/* The lowest room for so many bytes, after a sweep. Returns false: there is
 * none. */
bool block_pool_take(struct block_pool *pool, enum block_use use, size_t size,
                     unsigned *slot);
/* Whether these bytes lie in one that its owner holds. */
bool block_pool_holds(const struct block_pool *pool, size_t offset,
                      size_t size);
/* A slot, for an event or a body, of bytes that do: they stay where they are
 * until it is free, too. Returns false: there is none. */
bool block_pool_take_part(struct block_pool *pool, enum block_use use,
                          size_t offset, size_t size, unsigned *slot);
/* Its owner holds it no more. Any thread, without a lock. */
void block_pool_let_go(struct block_pool *pool, unsigned slot);
/* How many its owner holds. */
unsigned block_pool_held(const struct block_pool *pool);
/* Lend it to these, at least one. Returns its number. */
uint64_t block_pool_lend(struct block_pool *pool, unsigned slot,
                         uint64_t readers, bool sure);
/* Its number was told to nobody: it is as if it had only been taken. */
void block_pool_recall(struct block_pool *pool, unsigned slot);
/* It was taken, and is not lent. */
void block_pool_give_back(struct block_pool *pool, unsigned slot);

#endif
