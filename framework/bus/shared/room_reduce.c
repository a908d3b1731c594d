/* Numbers of all members made into one. Design notes:
 *
 * - They are folded in the order of places, and each number by one member
 *   alone, or by all in the same way: so all have the same bits.
 * - A long reduction has a share for each member, a stretch of the numbers. A
 *   stage takes a part of each share: every member brings its numbers of all
 *   parts, and then folds the part of its own share. Stage s is brought while
 *   s-1 is folded and s-2 collected, with an epoch between.
 * - Nothing that a member may still read is written before an epoch that it
 *   must enter: what is brought and what is folded have two slots each, and the
 *   last part is collected after the last epoch, from the slots of the folds,
 *   which nobody writes before the next operation's first epoch.
 * - If all have their numbers in stores, a share is folded where they lie, to
 *   where the result of its owner lies; the others take it from there. If only
 *   some have, those bring theirs one epoch later. */
#include <assert.h>
#include <string.h>

#include "room_inside.h"

/* Numbers are folded a block at a time: it stays in the first cache. */
enum { BLOCK_BYTES = 4096, LINE_BYTES = 64 };

/* Up to here, of all members together, each folds all of an all_reduce: that
 * takes less time than an epoch more. */
enum { SHORT_BYTES = 64 * 1024 };

/* What a member brings to a stage takes a chunk; among many, for whom it takes
 * long to meet, so many. There is room for that twice. What it folds takes one
 * at most, twice, from there on: nothing that is brought lies there, however
 * many members there are. */
enum { FEW = 8, BRING_CHUNKS = 3, FOLDED_CHUNK = 2 * BRING_CHUNKS };
_Static_assert(FOLDED_CHUNK + 2 <= ROOM_CHUNKS, "all have a place");

/* Up to here an all_reduce that copies takes less time than one epoch more. */
enum { LEND_BEYOND_BYTES = 32 * 1024 };

/* What n members have from byte `at` on, in their order. */
static void fold_block(const struct ls_room_fold *fold,
                       const unsigned char *const *from, unsigned n, size_t at,
                       unsigned char *to, size_t count)
{
    if (n == 1)
        memmove(to, from[0] + at, count * fold->width);
    else
        fold->two(fold->self, to, from[0] + at, from[1] + at, count);
    for (unsigned i = 2; i < n; i++)
        fold->two(fold->self, to, to, from[i] + at, count);
    if (fold->end != NULL)
        fold->end(fold->self, to, count, n);
}

void room_fold(const ls_room *room, const struct ls_room_fold *fold,
               size_t offset, unsigned char *to, size_t count)
{
    const unsigned char *from[ROOM_MEMBERS_MAX];
    const size_t most = BLOCK_BYTES / fold->width;
    unsigned n = 0;
    for (unsigned i = 0; i < room->n; i++)
        if (room_has(room, i))
            from[n++] = room_at(room, i, offset);
    assert(n > 0); /* this member is counted */
    for (size_t first = 0; first < count; first += most) {
        const size_t block = count - first < most ? count - first : most;
        const size_t at = first * fold->width;
        fold_block(fold, from, n, at, to + at, block);
    }
}

int room_check_fold(const ls_room *room, const struct ls_room_fold *fold)
{
    if (fold->width == 0 || fold->width > 16 ||
        (fold->width & (fold->width - 1)) != 0)
        return ls_error(LS_EINVAL,
                        "room \"%s\": numbers have 1, 2, 4, 8 or 16 bytes, "
                        "not %zu",
                        room->name, fold->width);
    return LS_OK;
}

/* Where the numbers of a member lie that fit into a slot. */
static size_t slot_offset(const struct room_words *words, unsigned slot,
                          size_t bytes)
{
    const unsigned char *const at =
        bytes <= ROOM_INLINE_BYTES ? words->in_line[slot] : words->small[slot];
    return (size_t)(at - (const unsigned char *)words);
}

/* from: the first byte that this member wants folded. */
static int reduce_short(ls_room *room, const struct ls_room_fold *fold,
                        const void *in, size_t bytes, size_t from, void *out,
                        size_t count)
{
    struct room_core *const core = &room->core;
    const size_t to = slot_offset(core->own, room_next_slot(room), bytes);
    core_write(core, room_own(room, to), in, bytes);
    const int status = room_pass(room);
    if (status != LS_OK)
        return status;
    room_fold(room, fold, to + from, out, count);
    return room_confirm(room);
}

struct reduction {
    const struct ls_room_fold *fold;
    const unsigned char *in;
    unsigned char *out;
    size_t count;                      /* of numbers that a member brings */
    unsigned n, own;                   /* shares, and which is this one's */
    unsigned owners[ROOM_MEMBERS_MAX]; /* the places of the shares */
    size_t share, part, stages;
    bool scatter; /* to each its share alone */
    /* In the order of shares, where they are in stores. */
    const unsigned char *brings[ROOM_MEMBERS_MAX], *gets[ROOM_MEMBERS_MAX];
};

/* How many numbers of that share a stage takes, and which is the first. */
static size_t part_of(const struct reduction *r, unsigned share, size_t stage,
                      size_t *first)
{
    const size_t begin = share * r->share;
    size_t end = begin + r->share;
    if (end > r->count)
        end = r->count;
    *first = begin + stage * r->part;
    if (*first >= end)
        return 0;
    return end - *first < r->part ? end - *first : r->part;
}

/* Where a part lies in a chunk: the parts of all shares are side by side. */
static size_t part_offset(const ls_room *room, const struct reduction *r,
                          size_t stage, unsigned share)
{
    return room_chunk(room, stage % 2 * BRING_CHUNKS) +
           share * r->part * r->fold->width;
}

static size_t folded_offset(const ls_room *room, size_t stage)
{
    return room_chunk(room, FOLDED_CHUNK + stage % 2);
}

static void bring(ls_room *room, const struct reduction *r, size_t stage)
{
    const size_t width = r->fold->width;
    size_t first;
    for (unsigned i = 0; i < r->n; i++) {
        const size_t n = part_of(r, i, stage, &first);
        core_write(&room->core, room_own(room, part_offset(room, r, stage, i)),
                   r->in + first * width, n * width);
    }
}

static void fold_part(ls_room *room, const struct reduction *r, size_t stage)
{
    size_t first;
    const size_t n = part_of(r, r->own, stage, &first);
    unsigned char *const to = r->scatter
                                  ? r->out + stage * r->part * r->fold->width
                                  : room_own(room, folded_offset(room, stage));
    if (!room->core.touched || ls_memory_touch(room->runtime))
        room_fold(room, r->fold, part_offset(room, r, stage, r->own), to, n);
}

static void collect(ls_room *room, const struct reduction *r, size_t stage)
{
    const size_t width = r->fold->width;
    size_t first;
    for (unsigned i = 0; i < r->n; i++) {
        const size_t n = part_of(r, i, stage, &first);
        if (n != 0)
            memcpy(r->out + first * width,
                   room_at(room, r->owners[i], folded_offset(room, stage)),
                   n * width);
    }
}

/* So much of all shares together. A part begins with a line of the cache. */
static void set_stages(struct reduction *r, size_t bytes)
{
    const size_t line = LINE_BYTES / r->fold->width;
    r->part = bytes / r->fold->width / r->n / line * line;
    if (r->part > r->share) /* side by side, in one stage */
        r->part = r->share;
    r->stages = (r->share + r->part - 1) / r->part;
}

static void set_stages_to_bring(const ls_room *room, struct reduction *r)
{
    set_stages(r, (r->n > FEW ? BRING_CHUNKS : 1) * room->chunk_bytes);
}

/* How many of those that are counted have all of it in their stores. */
static unsigned find_lent(const ls_room *room, struct reduction *r)
{
    const size_t width = r->fold->width;
    unsigned n = 0, n_lent = 0;
    for (unsigned i = 0; i < room->n; i++) {
        if (!room_has(room, i))
            continue;
        r->brings[n] = room_brings(room, i, r->count * width, width);
        r->gets[n] =
            r->scatter ? NULL : room_gets(room, i, r->count * width, width);
        if (r->brings[n] != NULL && (r->scatter || r->gets[n] != NULL))
            n_lent++;
        n++;
    }
    return n_lent;
}

/* `to` may be where one of them has its numbers: each block is whole before it
 * is written. */
static void fold_lent(const struct reduction *r, unsigned n, size_t at,
                      unsigned char *to, size_t count)
{
    _Alignas(LINE_BYTES) unsigned char block[BLOCK_BYTES];
    const size_t width = r->fold->width, most = BLOCK_BYTES / width;
    for (size_t first = 0; first < count; first += most) {
        const size_t some = count - first < most ? count - first : most;
        fold_block(r->fold, r->brings, n, at + first * width, block, some);
        memcpy(to + first * width, block, some * width);
    }
}

/* Of the share that this member folds. */
static void fold_part_lent(ls_room *room, const struct reduction *r, unsigned n,
                           size_t stage)
{
    const size_t width = r->fold->width;
    size_t first;
    const size_t count = part_of(r, r->own, stage, &first);
    unsigned char *const to =
        r->out + (r->scatter ? stage * r->part : first) * width;
    if (count != 0 && (!room->core.touched || ls_memory_touch(room->runtime)))
        fold_lent(r, n, first * width, to, count);
}

/* Of those that the others have folded. */
static void collect_lent(const struct reduction *r, unsigned n, size_t stage)
{
    const size_t width = r->fold->width;
    size_t first;
    for (unsigned i = 0; i < n; i++) {
        const size_t count = i == r->own ? 0 : part_of(r, i, stage, &first);
        if (count != 0)
            memcpy(r->out + first * width, r->gets[i] + first * width,
                   count * width);
    }
}

/* Nothing is brought. A stage is collected while the next one is folded; the
 * last epoch says that nobody reads there any more. */
static int reduce_lent(ls_room *room, struct reduction *r, unsigned n)
{
    room->has_lent = true;
    set_stages(r, ROOM_LENT_CHUNKS * room->chunk_bytes);
    for (size_t s = 0; s < r->stages; s++) {
        fold_part_lent(room, r, n, s);
        if (s >= 1 && !r->scatter)
            collect_lent(r, n, s - 1);
        const int status = room_pass(room);
        if (status != LS_OK)
            return status;
    }
    if (r->scatter)
        return LS_OK;
    collect_lent(r, n, r->stages - 1);
    return room_pass(room);
}

/* Say where this member has its numbers. Returns whether all of it is in its
 * store, so that it need not bring them if the others have theirs there. */
static bool lend(ls_room *room, const struct reduction *r)
{
    const size_t bytes = r->count * r->fold->width;
    const unsigned next = room_next_slot(room);
    const bool may = (r->scatter || bytes > LEND_BEYOND_BYTES) &&
                     (uintptr_t)r->in % r->fold->width == 0 &&
                     (uintptr_t)r->out % r->fold->width == 0;
    room_lend(room, may ? r->in : NULL, bytes, r->scatter ? NULL : r->out,
              bytes);
    return room->core.own->brings_at[next] != 0 &&
           (r->scatter || room->core.own->gets_at[next] != 0);
}

/* The first stage is brought, unless all have their numbers in stores: *lent is
 * how many they are then. */
static int begin_long(ls_room *room, struct reduction *r, unsigned *lent)
{
    unsigned counted = 0;
    *lent = 0;
    for (unsigned i = 0; i < room->n; i++)
        counted += room_has(room, i) ? 1 : 0;
    const bool lends = lend(room, r);
    if (!lends)
        bring(room, r, 0);
    const int status = room_pass(room);
    if (status != LS_OK)
        return status;
    const unsigned n = find_lent(room, r);
    if (n == counted)
        *lent = n;
    if (n == 0 || n == counted)
        return LS_OK;
    if (lends)
        bring(room, r, 0);
    return room_pass(room);
}

static int reduce_long(ls_room *room, struct reduction *r)
{
    unsigned lent;
    room_is_to_copy(room, r->count * r->fold->width);
    int status = begin_long(room, r, &lent);
    if (status != LS_OK || lent > 0)
        return status == LS_OK ? reduce_lent(room, r, lent) : status;
    for (size_t s = 1; s <= r->stages; s++) {
        if (s < r->stages)
            bring(room, r, s);
        fold_part(room, r, s - 1);
        if (s >= 2 && !r->scatter)
            collect(room, r, s - 2);
        status = room_pass(room);
        if (status != LS_OK)
            return status;
    }
    if (r->scatter)
        return LS_OK;
    collect(room, r, r->stages - 1);
    return room_confirm(room);
}

int ls_room_all_reduce(ls_room *room, const char *name,
                       const struct ls_room_fold *fold, const void *in,
                       void *out, size_t count, int wait_ms)
{
    int status = room_check_fold(room, fold);
    if (status == LS_OK)
        status = room_call(
            room, name, "all_reduce",
            room_shape(count, (unsigned)fold->width) ^ fold->sign, wait_ms);
    if (status != LS_OK)
        return status;
    const size_t bytes = count * fold->width;
    if (bytes <= ROOM_SMALL_BYTES && bytes * room->n <= SHORT_BYTES)
        return reduce_short(room, fold, in, bytes, 0, out, count);
    struct reduction r = {.fold = fold, .in = in, .out = out, .count = count};
    for (unsigned i = 0; i < room->n; i++) {
        if (i == room->me)
            r.own = r.n;
        if (room_has(room, i))
            r.owners[r.n++] = i;
    }
    const size_t line = LINE_BYTES / fold->width;
    assert(r.n > 0); /* this member is counted */
    r.share = ((count + r.n - 1) / r.n + line - 1) / line * line;
    set_stages_to_bring(room, &r);
    return reduce_long(room, &r);
}

int ls_room_reduce_scatter(ls_room *room, const char *name,
                           const struct ls_room_fold *fold, const void *in,
                           void *out, size_t count, int wait_ms)
{
    int status = room_check_fold(room, fold);
    if (status == LS_OK)
        status = room_call(
            room, name, "reduce_scatter",
            room_shape(count, (unsigned)fold->width) ^ fold->sign, wait_ms);
    if (status != LS_OK)
        return status;
    const size_t bytes = count * room->n * fold->width;
    if (bytes <= ROOM_SMALL_BYTES)
        return reduce_short(room, fold, in, bytes,
                            room->me * count * fold->width, out, count);
    /* The share of a place that is empty is brought, and folded by nobody. */
    struct reduction r = {.fold = fold,
                          .in = in,
                          .out = out,
                          .count = count * room->n,
                          .n = room->n,
                          .own = room->me,
                          .share = count,
                          .scatter = true};
    set_stages_to_bring(room, &r);
    return reduce_long(room, &r);
}
