/* Barriers, broadcasts and gatherings. Design notes:
 *
 * - What is short lies beside the word that tells of it: one epoch, and each
 *   member reads what all have brought. Slots have two parities: what a member
 *   brings to one epoch stays until all have entered the next.
 * - What is long goes in chunks through two slots, so that writing one and
 *   reading the one before overlap. Each stage is an epoch, and the first that
 *   fails ends the operation for all.
 * - A broadcast is a stream: its root runs ahead of the readers by as many
 *   chunks as there are. An epoch before it sees that all mean the same; one
 *   after it is its end.
 * - What lies in a store is read there, between two epochs (room_lend.c). */
#include <string.h>

#include "room_inside.h"

int ls_room_barrier(ls_room *room, const char *name, int wait_ms)
{
    const int status = room_call(room, name, "barrier", 0, wait_ms);
    return status == LS_OK ? room_pass(room) : status;
}

/* ---- broadcast ---------------------------------------------------------- */

static size_t piece(const ls_room *room, size_t size, size_t at)
{
    return size - at < room->chunk_bytes ? size - at : room->chunk_bytes;
}

/* All others have taken all but `behind` of the chunks that were put out. */
static int await_readers(ls_room *room, uint32_t behind)
{
    struct room_core *const core = &room->core;
    int status = LS_OK;
    for (unsigned i = 0; i < room->n && status == LS_OK; i++)
        if (i != room->me && room_has(room, i))
            status = core_await(core, i, &core->words[i]->taken,
                                room->streamed - behind);
    return status;
}

static int put_out(ls_room *room, const unsigned char *data, size_t size)
{
    struct room_core *const core = &room->core;
    for (size_t at = 0; at < size; at += room->chunk_bytes) {
        const int status = await_readers(room, ROOM_CHUNKS - 1);
        if (status != LS_OK)
            return status;
        const unsigned slot = room->streamed % ROOM_CHUNKS;
        core_write(core, room_own(room, room_chunk(room, slot)), data + at,
                   piece(room, size, at));
        core_store(core, &core->own->told, ++room->streamed);
        core_wake(core, CORE_ASLEEP_STREAM + core->me);
    }
    return LS_OK;
}

/* What a member wants of a stream. */
struct window {
    size_t begin, end;
};

/* Copy what is wanted of the chunk that begins at `at`. */
static void copy_wanted(unsigned char *to, const struct window *want,
                        const unsigned char *chunk, size_t at, size_t size)
{
    const size_t begin = want->begin > at ? want->begin : at;
    const size_t end = want->end < at + size ? want->end : at + size;
    if (begin < end)
        memcpy(to + (begin - want->begin), chunk + (begin - at), end - begin);
}

static int take_in(ls_room *room, unsigned root, unsigned char *data,
                   const struct window *want, size_t size)
{
    struct room_core *const core = &room->core;
    for (size_t at = 0; at < size; at += room->chunk_bytes) {
        const unsigned slot = room->streamed % ROOM_CHUNKS;
        const int status = core_await(core, root, &core->words[root]->told,
                                      room->streamed + 1);
        if (status != LS_OK)
            return status;
        copy_wanted(data, want, room_at(room, root, room_chunk(room, slot)), at,
                    piece(room, size, at));
        core_store(core, &core->own->taken, ++room->streamed);
        core_wake(core, CORE_ASLEEP_STREAM + core->me);
    }
    return LS_OK;
}

/* The same of what the root has in its store. */
static int read_lent(ls_room *room, unsigned root, const unsigned char *lent,
                     void *out, const struct window *want, size_t size)
{
    const size_t most = ROOM_LENT_CHUNKS * room->chunk_bytes;
    int status = LS_OK;
    room->has_lent = root == room->me;
    for (size_t at = 0; at < size && status == LS_OK; at += most) {
        const size_t some = size - at < most ? size - at : most;
        if (root != room->me)
            copy_wanted(out, want, lent + at, at, some);
        status = room_pass(room);
    }
    return status;
}

/* However it ends, all have counted as many chunks when the next one begins. */
static int stream(ls_room *room, unsigned root, const void *in, void *out,
                  const struct window *want, size_t size)
{
    const uint32_t end =
        room->streamed +
        (uint32_t)((size + room->chunk_bytes - 1) / room->chunk_bytes);
    room_is_to_copy(room, size);
    if (root == room->me)
        room_lend(room, in, size, NULL, 0);
    int status = room_pass(room);
    if (status != LS_OK)
        return status;
    const unsigned char *const lent = room_brings(room, root, size, 1);
    if (lent != NULL)
        return read_lent(room, root, lent, out, want, size);
    status = root == room->me ? put_out(room, in, size)
                              : take_in(room, root, out, want, size);
    room->streamed = end;
    core_store(&room->core, &room->core.own->told, end);
    core_store(&room->core, &room->core.own->taken, end);
    return status == LS_OK ? room_pass(room) : room_failed(room, status);
}

static int stream_short(ls_room *room, unsigned root, const void *in, void *out,
                        const struct window *want, size_t size)
{
    struct room_core *const core = &room->core;
    if (root == room->me)
        core_write(core, core->own->small[room_next_slot(room)], in, size);
    const int status = room_pass(room);
    if (status != LS_OK || root == room->me)
        return status;
    copy_wanted(out, want, core->words[root]->small[room_slot(room)], 0, size);
    return room_confirm(room);
}

/* An operation that has a root. */
static int call_with(ls_room *room, const char *name, const char *kind,
                     unsigned root, size_t size, int wait_ms)
{
    if (root >= room->n)
        return ls_error(LS_EINVAL, "room \"%s\": there is no place %u",
                        room->name, root);
    /* All that are counted know who is not, so they all come to this. */
    if (!room_has(room, root))
        return ls_error(LS_ELOST, "room \"%s\": node %u, the root, is lost",
                        room->name, room->members[root].id);
    return room_call(room, name, kind, room_shape(size, root), wait_ms);
}

/* Once it is called: `size` bytes from the root, for each what it wants. */
static int from_root(ls_room *room, unsigned root, const void *in, void *out,
                     const struct window *want, size_t size)
{
    return size <= ROOM_SMALL_BYTES
               ? stream_short(room, root, in, out, want, size)
               : stream(room, root, in, out, want, size);
}

int ls_room_broadcast(ls_room *room, const char *name, unsigned root,
                      void *data, size_t size, int wait_ms)
{
    const struct window all = {.end = size};
    const int status = call_with(room, name, "broadcast", root, size, wait_ms);
    return status == LS_OK ? from_root(room, root, data, data, &all, size)
                           : status;
}

int ls_room_scatter(ls_room *room, const char *name, unsigned root,
                    const void *in, size_t size, void *out, int wait_ms)
{
    const size_t whole = size * room->n;
    const struct window own = {.begin = size * room->me,
                               .end = size * (room->me + 1)};
    int status = call_with(room, name, "scatter", root, size, wait_ms);
    if (status == LS_OK)
        status = from_root(room, root, in, out, &own, whole);
    if (status == LS_OK && root == room->me && size != 0)
        memmove(out, (const unsigned char *)in + own.begin, size);
    return status;
}

/* ---- all_gather --------------------------------------------------------- */

struct gathering {
    unsigned char *out;             /* NULL: this member reads nothing */
    size_t sizes[ROOM_MEMBERS_MAX]; /* copies of what the members say */
    size_t starts[ROOM_MEMBERS_MAX];
    const unsigned char *lent[ROOM_MEMBERS_MAX]; /* where it is read; NULL: in
                                                  * chunks */
    size_t total, longest;
    bool copies; /* something goes in chunks */
};

/* All see the same sizes, so all come to the same. */
static int measure(ls_room *room, size_t capacity, struct gathering *g)
{
    const unsigned slot = room_slot(room);
    *g = (struct gathering){.out = g->out};
    for (unsigned i = 0; i < room->n; i++) {
        if (!room_has(room, i))
            continue;
        const uint64_t size = atomic_load(&room->core.words[i]->size[slot]);
        if (size > capacity - g->total)
            return ls_error(LS_ELIMIT,
                            "room \"%s\": what the members bring is more than "
                            "the %zu bytes that there is room for",
                            room->name, capacity);
        g->sizes[i] = size;
        g->starts[i] = g->total;
        g->total += size;
        if (size > g->longest)
            g->longest = size;
        g->lent[i] = room_brings(room, i, size, 1);
        g->copies = g->copies || (g->lent[i] == NULL && size != 0);
    }
    return LS_OK;
}

/* From byte `at` on at most so many of each. */
static void gather_piece(ls_room *room, const struct gathering *g, size_t at,
                         size_t most)
{
    const unsigned slot = at / room->chunk_bytes % 2;
    for (unsigned i = 0; i < room->n && g->out != NULL; i++) {
        if (!room_has(room, i) || at >= g->sizes[i])
            continue;
        const size_t left = g->sizes[i] - at;
        memcpy(g->out + g->starts[i] + at,
               g->lent[i] != NULL ? g->lent[i] + at
                                  : room_at(room, i, room_chunk(room, slot)),
               left < most ? left : most);
    }
}

/* All have it in their stores. */
static int gather_lent(ls_room *room, const struct gathering *g)
{
    const size_t most = ROOM_LENT_CHUNKS * room->chunk_bytes;
    int status = LS_OK;
    for (size_t at = 0; at < g->longest && status == LS_OK; at += most) {
        gather_piece(room, g, at, most);
        status = room_pass(room);
    }
    return status;
}

static int gather_long(ls_room *room, const struct gathering *g,
                       const unsigned char *data, size_t size)
{
    room_is_to_copy(room, g->total);
    room->has_lent = g->lent[room->me] != NULL;
    if (!g->copies)
        return gather_lent(room, g);
    for (size_t at = 0; at < g->longest; at += room->chunk_bytes) {
        if (at < size && !room->has_lent)
            core_write(
                &room->core,
                room_own(room, room_chunk(room, at / room->chunk_bytes % 2)),
                data + at, piece(room, size, at));
        const int status = room_pass(room);
        if (status != LS_OK)
            return status;
        gather_piece(room, g, at, room->chunk_bytes);
    }
    return room_pass(room);
}

static int gather_short(ls_room *room, const struct gathering *g)
{
    for (unsigned i = 0; i < room->n && g->out != NULL; i++)
        if (g->sizes[i] != 0)
            memcpy(g->out + g->starts[i],
                   room->core.words[i]->small[room_slot(room)], g->sizes[i]);
    return room_confirm(room);
}

/* Once it is called. */
static int gather(ls_room *room, struct gathering *g, const void *data,
                  size_t size, size_t capacity)
{
    struct room_core *const core = &room->core;
    const unsigned next = room_next_slot(room);
    atomic_store_explicit(&core->own->size[next], size, memory_order_relaxed);
    room_lend(room, size > ROOM_SMALL_BYTES ? data : NULL, size, NULL, 0);
    if (size <= ROOM_SMALL_BYTES && size != 0)
        core_write(core, core->own->small[next], data, size);
    int status = room_pass(room);
    if (status != LS_OK)
        return status;
    status = measure(room, capacity, g);
    if (status != LS_OK)
        return core_confirm(core) == LS_OK ? status
                                           : room_failed(room, LS_ELOST);
    return g->longest > ROOM_SMALL_BYTES ? gather_long(room, g, data, size)
                                         : gather_short(room, g);
}

int ls_room_all_gather(ls_room *room, const char *name, const void *data,
                       size_t size, void *out, size_t capacity, size_t *sizes,
                       int wait_ms)
{
    struct gathering g = {.out = out};
    int status =
        room_call(room, name, "all_gather", room_shape(capacity, 0), wait_ms);
    if (status == LS_OK)
        status = gather(room, &g, data, size, capacity);
    if (status == LS_OK && sizes != NULL)
        memcpy(sizes, g.sizes, room->n * sizeof *sizes);
    return status;
}

int ls_room_gather(ls_room *room, const char *name, unsigned root,
                   const void *data, size_t size, void *out, int wait_ms)
{
    struct gathering g = {.out = root == room->me ? out : NULL};
    const int status = call_with(room, name, "gather", root, size, wait_ms);
    return status == LS_OK ? gather(room, &g, data, size, size * room->n)
                           : status;
}
