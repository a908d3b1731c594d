/* The owner's side of blocks. Room is looked for from below, so that as few
 * pages are touched as are in use at a time, and those are warm. There are few
 * blocks at a time: what walks over all of them is short. What lies in one that
 * its owner holds covers the same bytes once more: the room between two is
 * looked for behind all that begin before it. */
#include "block_pool.h"

#include <assert.h>
#include <string.h>

void block_pool_init(struct block_pool *pool, ls_runtime *runtime, size_t begin,
                     size_t end)
{
    *pool = (struct block_pool){.runtime = runtime,
                                .begin = begin,
                                .end = end,
                                .middle =
                                    begin + ls_memory_pages((end - begin) / 2)};
}

void block_pool_add(struct block_pool *pool, unsigned reader,
                    const struct block_row *row, uint64_t session)
{
    assert(!block_pool_lends(pool, reader));
    pool->readers[reader] =
        (struct block_reader){.row = row, .session = session};
}

static bool is_over(const struct block_pool *pool, unsigned slot,
                    unsigned reader)
{
    const struct block_reader *const r = &pool->readers[reader];
    return r->row == NULL ||
           block_is_over(pool->runtime, r->row, r->session, slot,
                         pool->blocks[slot].number, pool->blocks[slot].sure);
}

/* Who has not read it yet. */
static uint64_t left_of(const struct block_pool *pool, unsigned slot)
{
    uint64_t left = pool->blocks[slot].readers;
    for (unsigned i = 0; i < BLOCK_READERS && left >> i != 0; i++)
        if ((left >> i & 1) != 0 && is_over(pool, slot, i))
            left &= ~(UINT64_C(1) << i);
    return left;
}

static bool is_let_go(const struct block_pool *pool, unsigned slot)
{
    return slot >= BLOCK_SLOTS &&
           atomic_load(&pool->let_go[slot - BLOCK_SLOTS]);
}

void block_pool_sweep(struct block_pool *pool)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < pool->n; i++) {
        const uint8_t slot = pool->order[i];
        struct block *const block = &pool->blocks[slot];
        block->readers = left_of(pool, slot);
        block->filling = block->filling && !is_let_go(pool, slot);
        block->used = block->filling || block->readers != 0;
        if (block->used)
            pool->order[kept++] = slot;
    }
    pool->n = kept;
}

void block_pool_remove(struct block_pool *pool, unsigned reader)
{
    pool->readers[reader] = (struct block_reader){0};
    block_pool_sweep(pool);
}

bool block_pool_lends(const struct block_pool *pool, unsigned reader)
{
    for (unsigned i = 0; i < pool->n; i++)
        if ((pool->blocks[pool->order[i]].readers >> reader & 1) != 0)
            return true;
    return false;
}

/* Whether there may be one more of that use. */
static bool has_slot(const struct block_pool *pool, enum block_use use)
{
    unsigned n[1 + BLOCK_FOR_OWNER] = {0};
    for (unsigned i = 0; i < pool->n; i++)
        n[pool->blocks[pool->order[i]].use]++;
    if (use == BLOCK_FOR_OWNER)
        return n[use] < BLOCK_HELD;
    return n[BLOCK_FOR_EVENT] + n[BLOCK_FOR_BODY] < BLOCK_SLOTS &&
           (use == BLOCK_FOR_EVENT || n[use] < BLOCK_SLOTS / 2);
}

/* There is one free. */
static unsigned insert(struct block_pool *pool, unsigned place,
                       enum block_use use, size_t offset, size_t size)
{
    unsigned slot = use == BLOCK_FOR_OWNER ? BLOCK_SLOTS : 0;
    while (pool->blocks[slot].used)
        slot++;
    memmove(pool->order + place + 1, pool->order + place, pool->n - place);
    pool->order[place] = (uint8_t)slot;
    pool->n++;
    pool->blocks[slot] = (struct block){.used = true,
                                        .filling = true,
                                        .use = use,
                                        .offset = offset,
                                        .size = size};
    if (use == BLOCK_FOR_OWNER)
        atomic_store(&pool->let_go[slot - BLOCK_SLOTS], false);
    return slot;
}

bool block_pool_take(struct block_pool *pool, enum block_use use, size_t size,
                     unsigned *slot)
{
    const size_t whole = ls_memory_pages(size);
    size_t at = use == BLOCK_FOR_EVENT ? pool->begin : pool->middle;
    unsigned place = 0;
    block_pool_sweep(pool);
    for (; place < pool->n; place++) {
        const struct block *const next = &pool->blocks[pool->order[place]];
        if (next->offset >= at && next->offset - at >= whole)
            break;
        if (next->offset + next->size > at)
            at = next->offset + next->size;
    }
    if (whole < size || at > pool->end || pool->end - at < whole ||
        !has_slot(pool, use))
        return false;
    *slot = insert(pool, place, use, at, whole);
    return true;
}

/* ---- what its owner holds ---------------------------------------------- */

bool block_pool_holds(const struct block_pool *pool, size_t offset, size_t size)
{
    bool holds = false;
    for (unsigned i = 0; i < pool->n && !holds; i++) {
        const struct block *const block = &pool->blocks[pool->order[i]];
        holds = block->use == BLOCK_FOR_OWNER && block->offset <= offset &&
                size <= block->size &&
                offset - block->offset <= block->size - size;
    }
    return holds;
}

bool block_pool_take_part(struct block_pool *pool, enum block_use use,
                          size_t offset, size_t size, unsigned *slot)
{
    unsigned place = 0;
    if (!has_slot(pool, use))
        block_pool_sweep(pool);
    if (!has_slot(pool, use))
        return false;
    while (place < pool->n && pool->blocks[pool->order[place]].offset <= offset)
        place++;
    *slot = insert(pool, place, use, offset,
                   ls_memory_pages(offset + size) - offset);
    return true;
}

void block_pool_let_go(struct block_pool *pool, unsigned slot)
{
    atomic_store(&pool->let_go[slot - BLOCK_SLOTS], true);
}

unsigned block_pool_held(const struct block_pool *pool)
{
    unsigned n = 0;
    for (unsigned i = 0; i < pool->n; i++)
        n += pool->order[i] >= BLOCK_SLOTS && !is_let_go(pool, pool->order[i])
                 ? 1
                 : 0;
    return n;
}

/* ---- what is lent ------------------------------------------------------ */

uint64_t block_pool_lend(struct block_pool *pool, unsigned slot,
                         uint64_t readers, bool sure)
{
    struct block *const block = &pool->blocks[slot];
    assert(block->filling && readers != 0);
    block->filling = false;
    block->sure = sure;
    block->number = ++pool->numbers;
    block->readers = readers;
    return block->number;
}

void block_pool_recall(struct block_pool *pool, unsigned slot)
{
    pool->blocks[slot].filling = true;
    pool->blocks[slot].readers = 0;
}

void block_pool_give_back(struct block_pool *pool, unsigned slot)
{
    assert(pool->blocks[slot].filling);
    pool->blocks[slot].filling = false;
    block_pool_sweep(pool);
}
