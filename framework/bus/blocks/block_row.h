/* block_row.h - what a reader says of the blocks of one owner, in memory of its
 * own, which the owner reads.
 *
 * Each word has one writer, the reader, and nothing there is ever counted up or
 * down by two: so a reader may be killed between any two stores, and what it
 * has said stays true. A block has a slot, and a number that grows with each
 * use of any block of its owner.
 *
 * The reader takes block `number`: state[slot] = 2 * number, then
 * seen = number. It is done with it: state[slot] = 2 * number + 1. So a block
 * that is behind `seen` and that its slot does not name was never taken, and
 * never will be: the reader takes none that is not ahead of `seen`. One whose
 * handle comes in a stream, exactly once, is only claimed and done with; but
 * when the reader takes no more, `seen` is BLOCK_SEEN_ALL, and what its slot
 * does not name then was never taken, in a stream or not.
 * Thread: the reader's bus thread writes all of it, but for what is done, which
 * any of its threads says.
 * Source: docs/shared-memory.md#payloads. */
#ifndef LOCKSTEP_BUS_BLOCK_ROW_H
#define LOCKSTEP_BUS_BLOCK_ROW_H

#include "shared_memory.h"

enum {
    BLOCK_SLOTS = 128,  /* blocks of one owner at a time */
    BLOCK_READERS = 64, /* of one owner: a set of them is a word */
};

/* Larger than any number. */
#define BLOCK_SEEN_ALL UINT64_MAX

typedef _Atomic uint64_t block_word;

struct block_row {
    _Alignas(64) block_word session; /* with this owner; 0: it has none, and
                                      * holds nothing */
    block_word seen;
    block_word state[BLOCK_SLOTS];
};

/* In a simulation another thread may run before each load and store, and a
 * host that was killed makes none. runtime: NULL: it is none. */
static inline uint64_t block_load(ls_runtime *runtime, const block_word *word)
{
    if (runtime != NULL)
        (void)ls_memory_touch(runtime);
    return atomic_load(word);
}

static inline void block_store(ls_runtime *runtime, block_word *word,
                               uint64_t value)
{
    if (runtime == NULL || ls_memory_touch(runtime))
        atomic_store(word, value);
}

/* Whether a block may be taken: it is ahead of all that came. */
static inline bool block_is_new(const struct block_row *row, uint64_t number)
{
    return number > atomic_load(&row->seen);
}

static inline void block_row_begin(ls_runtime *runtime, struct block_row *row,
                                   uint64_t session)
{
    for (unsigned i = 0; i < BLOCK_SLOTS; i++)
        block_store(runtime, &row->state[i], 0);
    block_store(runtime, &row->seen, 0);
    block_store(runtime, &row->session, session);
}

/* All up to this number that was not taken never will be. */
static inline void block_row_pass(ls_runtime *runtime, struct block_row *row,
                                  uint64_t number)
{
    if (block_is_new(row, number))
        block_store(runtime, &row->seen, number);
}

/* It takes none any more, and is done with those that it has when it says so.
 */
static inline void block_row_end(ls_runtime *runtime, struct block_row *row)
{
    block_store(runtime, &row->seen, BLOCK_SEEN_ALL);
}

static inline void block_row_claim(ls_runtime *runtime, struct block_row *row,
                                   unsigned slot, uint64_t number)
{
    block_store(runtime, &row->state[slot], 2 * number);
}

/* In this order: what is passed and not claimed is free. */
static inline void block_row_take(ls_runtime *runtime, struct block_row *row,
                                  unsigned slot, uint64_t number)
{
    block_row_claim(runtime, row, slot, number);
    block_row_pass(runtime, row, number);
}

static inline void block_row_done(ls_runtime *runtime, struct block_row *row,
                                  unsigned slot, uint64_t number)
{
    block_store(runtime, &row->state[slot], 2 * number + 1);
}

/* What its owner asks: whether this reader will not read it any more. The order
 * of the loads is that of the stores, turned round.
 * sure: its handle comes for certain, so what else has come says nothing,
 * unless nothing comes any more. */
static inline bool block_is_over(ls_runtime *runtime,
                                 const struct block_row *row, uint64_t session,
                                 unsigned slot, uint64_t number, bool sure)
{
    const uint64_t seen = block_load(runtime, &row->seen);
    const uint64_t state = block_load(runtime, &row->state[slot]);
    if (block_load(runtime, &row->session) != session)
        return true;
    return state == 2 * number + 1 || (seen >= number && state != 2 * number &&
                                       (!sure || seen == BLOCK_SEEN_ALL));
}

#endif
