/* Blocks as a state machine: an owner and its readers, with a network of our
 * own between them that loses, delays and doubles, and readers that are killed
 * between any two stores. No block is written while somebody may read it, and
 * none is lost for ever. */
#include <stdlib.h>
#include <string.h>

#include "base/seeds.h"
#include "block_pool.h"
#include "lockstep/random.h"
#include "test.h"

enum { PAGES = 24, READERS = 5, STEPS = 400, QUEUE = 64 };

/* ---- one reader -------------------------------------------------------- */

static struct block_pool pool;
static struct block_row rows[READERS];

static void begin(unsigned n_readers)
{
    const size_t page = ls_memory_pages(1);
    memset(rows, 0, sizeof rows);
    block_pool_init(&pool, NULL, page, (1 + PAGES) * page);
    for (unsigned i = 0; i < n_readers; i++) {
        block_row_begin(NULL, &rows[i], 1);
        block_pool_add(&pool, i, &rows[i], 1);
    }
}

static bool take(enum block_use use, size_t size, unsigned *slot)
{
    return block_pool_take(&pool, use, size, slot);
}

static unsigned taken(size_t pages)
{
    unsigned slot = BLOCK_SLOTS;
    assert_true(take(BLOCK_FOR_EVENT, pages * ls_memory_pages(1), &slot));
    return slot;
}

static bool is_free(unsigned slot)
{
    block_pool_sweep(&pool);
    return !pool.blocks[slot].used;
}

TEST(a_block_is_free_when_each_reader_has_said_that_it_is_done)
{
    begin(2);
    const unsigned slot = taken(1);
    const uint64_t number = block_pool_lend(&pool, slot, 3, false);
    assert_false(is_free(slot));
    for (unsigned i = 0; i < 2; i++) {
        block_row_take(NULL, &rows[i], slot, number);
        assert_false(is_free(slot));
        block_row_done(NULL, &rows[i], slot, number);
        assert_int_equal(is_free(slot), i == 1);
    }
}

TEST(one_that_was_lost_on_the_way_is_free_when_a_later_one_has_come)
{
    begin(1);
    const unsigned lost = taken(1), came = taken(1);
    (void)block_pool_lend(&pool, lost, 1, false);
    const uint64_t number = block_pool_lend(&pool, came, 1, false);
    assert_false(is_free(lost));
    block_row_take(NULL, &rows[0], came, number);
    assert_true(is_free(lost));
    assert_false(is_free(came));
}

TEST(or_when_the_reader_was_told_that_none_will_come)
{
    begin(1);
    const unsigned slot = taken(1);
    const uint64_t number = block_pool_lend(&pool, slot, 1, false);
    block_row_pass(NULL, &rows[0], number - 1);
    assert_false(is_free(slot));
    block_row_pass(NULL, &rows[0], number);
    assert_true(is_free(slot));
    assert_false(block_is_new(&rows[0], number)); /* it does not take it now */
}

TEST(one_that_comes_for_certain_is_free_only_when_it_is_done_with)
{
    begin(1);
    const unsigned sure = taken(1), other = taken(1);
    const uint64_t number = block_pool_lend(&pool, sure, 1, true);
    block_row_pass(NULL, &rows[0], block_pool_lend(&pool, other, 1, false));
    assert_false(is_free(sure));
    block_row_claim(NULL, &rows[0], sure, number);
    assert_false(is_free(sure));
    block_row_done(NULL, &rows[0], sure, number);
    assert_true(is_free(sure));
}

TEST(a_reader_that_has_ended_its_session_or_is_gone_reads_nothing)
{
    begin(2);
    const unsigned slot = taken(1);
    const uint64_t number = block_pool_lend(&pool, slot, 3, false);
    block_row_take(NULL, &rows[0], slot, number);
    block_row_take(NULL, &rows[1], slot, number);
    block_store(NULL, &rows[0].session, 0);
    assert_false(is_free(slot));
    assert_false(block_pool_lends(&pool, 0));
    assert_true(block_pool_lends(&pool, 1));
    block_pool_remove(&pool, 1);
    assert_true(is_free(slot));
}

TEST(there_are_so_many_readers_and_the_last_of_them_counts)
{
    begin(0);
    block_row_begin(NULL, &rows[0], 1);
    block_pool_add(&pool, BLOCK_READERS - 1, &rows[0], 1);
    const unsigned slot = taken(1);
    const uint64_t last = UINT64_C(1) << (BLOCK_READERS - 1);
    const uint64_t number = block_pool_lend(&pool, slot, last, true);
    assert_false(is_free(slot));
    assert_true(block_pool_lends(&pool, BLOCK_READERS - 1));
    block_row_done(NULL, &rows[0], slot, number);
    assert_true(is_free(slot));
}

TEST(room_is_found_from_below_and_none_is_given_twice)
{
    unsigned slots[PAGES], extra;
    begin(1);
    for (unsigned i = 0; i < PAGES; i++) {
        slots[i] = taken(1);
        assert_int_equal(pool.blocks[slots[i]].offset,
                         (1 + i) * ls_memory_pages(1));
    }
    assert_false(take(BLOCK_FOR_EVENT, 1, &extra));
    block_pool_give_back(&pool, slots[3]);
    block_pool_give_back(&pool, slots[4]);
    assert_false(take(BLOCK_FOR_EVENT, 3 * ls_memory_pages(1), &extra));
    extra = taken(2);
    assert_int_equal(pool.blocks[extra].offset, 4 * ls_memory_pages(1));
    assert_false(take(BLOCK_FOR_EVENT, SIZE_MAX, &extra));
}

TEST(there_are_so_many_blocks_at_a_time_and_no_more)
{
    unsigned slot;
    bool given[BLOCK_SLOTS] = {false};
    begin(1);
    pool.end = (BLOCK_SLOTS + 8) * ls_memory_pages(1);
    for (unsigned i = 0; i < BLOCK_SLOTS; i++) {
        slot = taken(1);
        assert_in_range(slot, 0, BLOCK_SLOTS - 1);
        assert_false(given[slot]);
        given[slot] = true;
    }
    assert_false(take(BLOCK_FOR_EVENT, 1, &slot));
}

TEST(bodies_lie_in_the_upper_half_and_leave_the_lower_to_events)
{
    const size_t page = ls_memory_pages(1);
    unsigned slot;
    begin(1);
    for (unsigned i = 0; i < PAGES / 2; i++) {
        assert_true(take(BLOCK_FOR_BODY, page, &slot));
        assert_int_equal(pool.blocks[slot].offset, (1 + PAGES / 2 + i) * page);
    }
    assert_false(take(BLOCK_FOR_BODY, 1, &slot));
    assert_int_equal(pool.blocks[taken(PAGES / 2)].offset, page);
    assert_false(take(BLOCK_FOR_EVENT, 1, &slot));
}

TEST(events_may_have_all_of_it_and_bodies_half_of_the_slots)
{
    const size_t page = ls_memory_pages(1);
    unsigned slot;
    begin(1);
    const unsigned all = taken(PAGES);
    assert_false(take(BLOCK_FOR_BODY, 1, &slot));
    block_pool_give_back(&pool, all);
    (void)taken(PAGES / 2 - 2);
    (void)taken(4); /* across the middle */
    assert_true(take(BLOCK_FOR_BODY, page, &slot));
    assert_int_equal(pool.blocks[slot].offset, (1 + PAGES / 2 + 2) * page);
    begin(1);
    pool.end = (2 * BLOCK_SLOTS + 8) * page;
    for (unsigned i = 0; i < BLOCK_SLOTS / 2; i++)
        assert_true(take(BLOCK_FOR_BODY, 1, &slot));
    assert_false(take(BLOCK_FOR_BODY, 1, &slot));
    for (unsigned i = 0; i < BLOCK_SLOTS / 2; i++)
        (void)taken(1);
}

TEST(what_is_recalled_is_as_if_it_had_only_been_taken)
{
    unsigned slot;
    begin(1);
    assert_true(take(BLOCK_FOR_BODY, 1, &slot));
    const uint64_t number = block_pool_lend(&pool, slot, 1, true);
    block_pool_recall(&pool, slot);
    assert_false(is_free(slot));
    assert_false(block_pool_lends(&pool, 0));
    assert_true(block_pool_lend(&pool, slot, 1, true) > number);
    block_pool_recall(&pool, slot);
    block_pool_give_back(&pool, slot);
    assert_true(is_free(slot));
}

TEST(who_takes_no_more_keeps_what_it_has_and_nothing_else)
{
    begin(1);
    const unsigned kept = taken(1), lost = taken(1);
    const uint64_t number = block_pool_lend(&pool, kept, 1, true);
    (void)block_pool_lend(&pool, lost, 1, true);
    block_row_claim(NULL, &rows[0], kept, number);
    block_row_end(NULL, &rows[0]);
    block_row_pass(NULL, &rows[0], UINT64_MAX / 2); /* nor does that */
    assert_true(is_free(lost));
    assert_false(is_free(kept));
    const unsigned late = taken(1); /* its owner has not heard of it */
    (void)block_pool_lend(&pool, late, 1, true);
    assert_true(is_free(late));
    block_row_done(NULL, &rows[0], kept, number);
    assert_true(is_free(kept));
}

/* ---- what its owner holds ---------------------------------------------- */

static unsigned held(size_t pages)
{
    unsigned slot = 0;
    assert_true(take(BLOCK_FOR_OWNER, pages * ls_memory_pages(1), &slot));
    assert_in_range(slot, BLOCK_SLOTS, BLOCK_ALL - 1);
    return slot;
}

static bool take_part(enum block_use use, unsigned of, size_t at, size_t size,
                      unsigned *slot)
{
    return block_pool_take_part(&pool, use, pool.blocks[of].offset + at, size,
                                slot);
}

TEST(what_its_owner_holds_lies_among_bodies_until_it_is_let_go)
{
    const size_t page = ls_memory_pages(1);
    begin(1);
    const unsigned first = held(PAGES / 2 - 1), second = held(1);
    unsigned slot;
    assert_int_equal(pool.blocks[first].offset, (1 + PAGES / 2) * page);
    assert_false(take(BLOCK_FOR_BODY, 1, &slot));
    assert_false(take(BLOCK_FOR_OWNER, 1, &slot));
    assert_int_equal(pool.blocks[taken(PAGES / 2)].offset, page);
    assert_int_equal(block_pool_held(&pool), 2);
    assert_false(is_free(second));
    block_pool_let_go(&pool, second);
    assert_int_equal(block_pool_held(&pool), 1);
    assert_true(is_free(second));
    assert_false(is_free(first));
    assert_int_equal(held(1), second);
}

TEST(each_time_that_it_is_lent_it_has_another_slot_and_stays_for_all_of_them)
{
    const size_t page = ls_memory_pages(1);
    unsigned slots[2], extra;
    uint64_t numbers[2];
    begin(1);
    const unsigned mine = held(3);
    assert_true(take_part(BLOCK_FOR_EVENT, mine, 64, 2 * page, &slots[0]));
    assert_true(take_part(BLOCK_FOR_BODY, mine, 64, 64, &slots[1]));
    assert_int_not_equal(slots[0], slots[1]);
    for (unsigned i = 0; i < 2; i++) {
        assert_in_range(slots[i], 0, BLOCK_SLOTS - 1);
        numbers[i] = block_pool_lend(&pool, slots[i], 1, true);
        block_row_claim(NULL, &rows[0], slots[i], numbers[i]);
    }
    block_pool_let_go(&pool, mine);
    assert_true(is_free(mine));
    assert_int_equal(pool.n, 2);
    assert_true(take(BLOCK_FOR_BODY, 1, &extra)); /* behind what is read */
    assert_int_equal(pool.blocks[extra].offset, (1 + PAGES / 2 + 3) * page);
    block_row_done(NULL, &rows[0], slots[0], numbers[0]);
    assert_true(take(BLOCK_FOR_BODY, 2 * page, &extra));
    assert_int_equal(pool.blocks[extra].offset, (1 + PAGES / 2 + 1) * page);
    block_row_done(NULL, &rows[0], slots[1], numbers[1]);
    assert_true(take(BLOCK_FOR_BODY, page, &extra));
    assert_int_equal(pool.blocks[extra].offset, (1 + PAGES / 2) * page);
}

static bool holds(unsigned of, ptrdiff_t at, size_t size)
{
    return block_pool_holds(&pool, pool.blocks[of].offset + (size_t)at, size);
}

TEST(only_what_lies_in_it_is_held)
{
    const size_t page = ls_memory_pages(1);
    begin(1);
    const unsigned other = taken(PAGES / 2), mine = held(2);
    assert_true(holds(mine, 0, 2 * page));
    assert_true(holds(mine, 100, 2 * page - 100));
    assert_true(holds(mine, (ptrdiff_t)(2 * page) - 1, 1));
    assert_false(holds(mine, 100, 2 * page - 99));
    assert_false(holds(mine, 0, SIZE_MAX));
    assert_false(holds(mine, (ptrdiff_t)(2 * page), 1));
    assert_false(holds(mine, -1, 2));
    assert_false(holds(other, 0, 1));
    assert_false(block_pool_holds(&pool, SIZE_MAX, 1));
}

TEST(it_has_slots_of_its_own_and_what_is_lent_of_it_those_of_all)
{
    unsigned slot = 0;
    begin(1);
    pool.end = 1000 * ls_memory_pages(1);
    for (unsigned i = 0; i < BLOCK_HELD; i++)
        slot = held(1);
    const unsigned mine = slot;
    assert_false(take(BLOCK_FOR_OWNER, 1, &slot));
    for (unsigned i = 0; i < BLOCK_SLOTS / 2; i++)
        assert_true(take_part(BLOCK_FOR_BODY, mine, 0, 1, &slot));
    assert_false(take_part(BLOCK_FOR_BODY, mine, 0, 1, &slot));
    for (unsigned i = 0; i < BLOCK_SLOTS / 2; i++)
        assert_true(take_part(BLOCK_FOR_EVENT, mine, 0, 1, &slot));
    assert_false(take_part(BLOCK_FOR_EVENT, mine, 0, 1, &slot));
    assert_int_equal(block_pool_held(&pool), BLOCK_HELD);
}

/* ---- schedules --------------------------------------------------------- */

struct handle {
    uint64_t session, number;
    unsigned slot; /* BLOCK_SLOTS: it is only told that all up to number is
                    * behind it */
};

struct reader {
    bool dead;                  /* killed, and the owner does not know yet */
    bool over;                  /* it takes no more */
    uint64_t session;           /* 0: it is away */
    struct handle queue[QUEUE]; /* on their way to it */
    unsigned n_queue;
    struct handle stream[QUEUE]; /* the same, but nothing happens to them */
    unsigned n_stream;
    struct handle held[QUEUE];
    unsigned n_held;
    uint64_t last; /* that was sent to it */
    bool half;     /* the latest held is taken, and `seen` is not stored yet */
};

struct play {
    struct ls_rng rng;
    struct reader readers[READERS];
    unsigned n_readers;
    uint64_t pages[1 + PAGES]; /* what lies there */
    uint64_t sessions, contents;
    uint64_t content_of[BLOCK_ALL]; /* of the latest use of a slot */
    unsigned own[BLOCK_HELD];       /* slots that the owner holds */
    unsigned n_own;
};

static unsigned draw(struct play *play, unsigned below)
{
    return (unsigned)ls_rng_below(&play->rng, below);
}

static void write_block(struct play *play, unsigned slot)
{
    const size_t page = ls_memory_pages(1);
    const struct block *const block = &pool.blocks[slot];
    play->content_of[slot] = ++play->contents;
    for (size_t i = 0; i < block->size / page; i++)
        play->pages[block->offset / page + i] = play->contents;
}

static void check_block(const struct play *play, const struct handle *handle,
                        uint64_t content)
{
    const size_t page = ls_memory_pages(1);
    const struct block *const block = &pool.blocks[handle->slot];
    if (!block->used || block->number != handle->number)
        fail_msg("block %llu is read, and its slot has %llu",
                 (unsigned long long)handle->number,
                 (unsigned long long)block->number);
    for (size_t i = 0; i < block->size / page; i++)
        assert_int_equal(play->pages[block->offset / page + i], content);
}

static void check_all(const struct play *play)
{
    const size_t page = ls_memory_pages(1);
    for (unsigned i = 0; i < play->n_own; i++) {
        const struct block *const block = &pool.blocks[play->own[i]];
        assert_true(block->used);
        assert_int_equal(play->pages[block->offset / page],
                         play->content_of[play->own[i]]);
    }
    for (unsigned i = 0; i < play->n_readers; i++)
        for (unsigned h = 0; h < play->readers[i].n_held; h++)
            if (!play->readers[i].dead)
                check_block(play, &play->readers[i].held[h],
                            play->content_of[play->readers[i].held[h].slot]);
}

/* Of who takes no more, nothing is lent but what it has. */
static void check_over(const struct reader *r, unsigned i)
{
    block_pool_sweep(&pool);
    for (unsigned b = 0; b < pool.n; b++) {
        const struct block *const block = &pool.blocks[pool.order[b]];
        bool has = !r->over || (block->readers >> i & 1) == 0;
        for (unsigned h = 0; h < r->n_held && !has; h++)
            has = r->held[h].number == block->number;
        assert_true(has);
    }
}

static void push(struct reader *reader, struct handle handle)
{
    if (reader->n_queue < QUEUE) /* else it is lost */
        reader->queue[reader->n_queue++] = handle;
}

/* Something that it holds, from any of its pages on. */
static bool take_own(struct play *play, enum block_use use, unsigned *slot)
{
    const size_t page = ls_memory_pages(1);
    const unsigned own = play->own[draw(play, play->n_own)];
    const size_t pages = pool.blocks[own].size / page;
    const size_t at = draw(play, (unsigned)pages);
    if (!take_part(use, own, at * page,
                   (1 + draw(play, (unsigned)(pages - at))) * page, slot))
        return false;
    play->content_of[*slot] = play->content_of[own];
    return true;
}

static bool take_new(struct play *play, enum block_use use, unsigned *slot)
{
    if (!take(use, (1 + draw(play, 6)) * ls_memory_pages(1), slot))
        return false;
    write_block(play, *slot);
    return true;
}

/* It makes something in place, or is done with it. */
static void owner_holds(struct play *play)
{
    unsigned slot;
    const unsigned which = draw(play, 6);
    if (which < play->n_own) {
        block_pool_let_go(&pool, play->own[which]);
        play->own[which] = play->own[--play->n_own];
    } else if (play->n_own < 3 && take_new(play, BLOCK_FOR_OWNER, &slot)) {
        play->own[play->n_own++] = slot;
    }
}

static void owner_lends(struct play *play)
{
    unsigned slot;
    uint64_t to = 0;
    const bool is_body = draw(play, 3) == 0;
    const unsigned one = draw(play, play->n_readers);
    const enum block_use use = is_body ? BLOCK_FOR_BODY : BLOCK_FOR_EVENT;
    const bool is_own = play->n_own != 0 && draw(play, 2) == 0;
    if (!(is_own ? take_own(play, use, &slot) : take_new(play, use, &slot)))
        return;
    check_all(play);
    for (unsigned i = 0; i < play->n_readers; i++)
        if (pool.readers[i].row != NULL &&
            (is_body ? i == one && play->readers[i].n_stream < QUEUE
                     : draw(play, 3) != 0))
            to |= UINT64_C(1) << i;
    if (to == 0) {
        block_pool_give_back(&pool, slot);
        return;
    }
    const uint64_t number = block_pool_lend(&pool, slot, to, is_body);
    if (is_body) {
        struct reader *const r = &play->readers[one];
        r->stream[r->n_stream++] =
            (struct handle){pool.readers[one].session, number, slot};
        return;
    }
    for (unsigned i = 0; i < play->n_readers; i++)
        if ((to >> i & 1) != 0) {
            play->readers[i].last = number;
            push(&play->readers[i],
                 (struct handle){pool.readers[i].session, number, slot});
        }
}

static void owner_passes(struct play *play, unsigned i)
{
    if (pool.readers[i].row != NULL)
        push(&play->readers[i],
             (struct handle){pool.readers[i].session, play->readers[i].last,
                             BLOCK_SLOTS});
}

static void reader_hears_body(struct reader *r, unsigned i)
{
    const struct handle handle = r->stream[0];
    if (r->n_held == QUEUE)
        return;
    memmove(r->stream, r->stream + 1, --r->n_stream * sizeof *r->stream);
    if (handle.session != r->session)
        return;
    block_row_claim(NULL, &rows[i], handle.slot, handle.number);
    r->held[r->n_held++] = handle;
}

/* One store of a reader. */
static void reader_hears(struct play *play, unsigned i)
{
    struct reader *const r = &play->readers[i];
    if (r->half) {
        block_row_pass(NULL, &rows[i], r->held[r->n_held - 1].number);
        r->half = false;
        return;
    }
    if (r->over || r->session == 0) {
        r->n_queue = r->n_stream = 0;
        return;
    }
    if (r->n_stream != 0 && (r->n_queue == 0 || draw(play, 2) == 0)) {
        reader_hears_body(r, i);
        return;
    }
    if (r->n_queue == 0)
        return;
    const struct handle handle = r->queue[0];
    memmove(r->queue, r->queue + 1, --r->n_queue * sizeof *r->queue);
    if (handle.session != r->session)
        return;
    if (handle.slot == BLOCK_SLOTS) {
        block_row_pass(NULL, &rows[i], handle.number);
    } else if (block_is_new(&rows[i], handle.number) && r->n_held < QUEUE) {
        block_row_claim(NULL, &rows[i], handle.slot, handle.number);
        r->held[r->n_held++] = handle;
        r->half = true;
        check_all(play);
    }
}

static void reader_is_done(struct play *play, unsigned i)
{
    struct reader *const r = &play->readers[i];
    if (r->n_held == 0 || r->half)
        return;
    const unsigned which = draw(play, r->n_held);
    block_row_done(NULL, &rows[i], r->held[which].slot, r->held[which].number);
    r->held[which] = r->held[--r->n_held];
}

static void network_fails(struct play *play, unsigned i)
{
    struct reader *const r = &play->readers[i];
    if (r->n_queue == 0)
        return;
    const unsigned a = draw(play, r->n_queue), b = draw(play, r->n_queue);
    const struct handle handle = r->queue[a];
    switch (draw(play, 4)) {
    case 0: /* a connection breaks */
        r->n_queue = a;
        break;
    case 1: /* one is late */
        r->queue[a] = r->queue[b];
        r->queue[b] = handle;
        break;
    case 2: /* one is lost */
        r->queue[a] = r->queue[--r->n_queue];
        break;
    default: /* one comes twice */
        push(r, handle);
    }
}

/* It is killed; some time after that its memory has no owner; and another one
 * begins in its place. Or it ends its session, when it reads nothing. */
static void life(struct play *play, unsigned i)
{
    struct reader *const r = &play->readers[i];
    if (r->dead) {
        block_pool_remove(&pool, i);
        r->dead = false;
        r->n_held = r->n_stream = 0;
        r->half = r->over = false;
        r->session = 0;
    } else if (r->session == 0) {
        if (pool.readers[i].row != NULL)
            block_pool_remove(&pool, i);
        r->session = ++play->sessions;
        block_row_begin(NULL, &rows[i], r->session);
        block_pool_add(&pool, i, &rows[i], r->session);
    } else if (draw(play, 2) == 0) {
        r->dead = true;
    } else if (!r->over && !r->half) {
        r->over = true;
        r->n_queue = r->n_stream = 0;
        block_row_end(NULL, &rows[i]);
    } else if (r->n_held == 0) {
        block_store(NULL, &rows[i].session, 0);
        r->session = 0;
        r->over = false;
    }
}

static void step(struct play *play)
{
    const unsigned i = draw(play, play->n_readers);
    const bool dead = play->readers[i].dead;
    switch (draw(play, 17)) {
    case 0:
        life(play, i);
        break;
    case 16:
        owner_holds(play);
        break;
    case 1:
        network_fails(play, i);
        break;
    case 2:
        owner_passes(play, i);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
        owner_lends(play);
        break;
    case 8:
    case 9:
    case 10:
    case 11:
        if (!dead)
            reader_hears(play, i);
        break;
    default:
        if (!dead)
            reader_is_done(play, i);
    }
    check_all(play);
    if (!play->readers[i].dead)
        check_over(&play->readers[i], i);
}

/* All that is on its way comes, all is read, all who died are known. */
static void settle(struct play *play)
{
    for (unsigned i = 0; i < play->n_readers; i++) {
        struct reader *const r = &play->readers[i];
        if (r->dead)
            life(play, i);
        r->n_queue = 0;
        owner_passes(play, i);
        while (r->n_queue != 0 || r->n_stream != 0 || r->half) {
            reader_hears(play, i);
            if (!r->half)
                reader_is_done(play, i);
        }
        while (r->n_held != 0)
            reader_is_done(play, i);
    }
    block_pool_sweep(&pool);
    assert_int_equal(pool.n, play->n_own);
    while (play->n_own != 0)
        block_pool_let_go(&pool, play->own[--play->n_own]);
    block_pool_sweep(&pool);
    assert_int_equal(pool.n, 0);
}

TEST(in_every_schedule_none_is_overwritten_and_none_is_lost)
{
    const struct seeds seeds = seeds_of(2000);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct play *const play = calloc(1, sizeof *play);
        assert_non_null(play);
        ls_rng_seed(&play->rng, seed, 11);
        play->n_readers = 1 + draw(play, READERS);
        begin(0);
        for (unsigned i = 0; i < STEPS; i++)
            step(play);
        settle(play);
        free(play);
    }
}
