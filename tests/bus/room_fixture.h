/* room_fixture.h - rooms without a bus: their members have memory and a store,
 * and are told of losses by the test. And operations that can be checked: what
 * each member brings follows from the operation and its place. */
#ifndef ROOM_FIXTURE_H
#define ROOM_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forked.h"
#include "room_inside.h"
#include "test.h"

enum {
    PART_CHUNK_BYTES = 4096,
    PART_ALLOC_BYTES = 1 << 20,
    PART_STORE_BYTES = 1 << 20
};

static inline void part_give_store(ls_room *room)
{
    ls_room_store *store;
    assert_ok(ls_room_store_create(&store, room->runtime, PART_STORE_BYTES));
    assert_ok(room_store_enter(store));
    room->store = store;
    ls_room_store_destroy(&store); /* the room has it */
}

/* A member that has only its own memory. Ids are 10, 13, 16 … */
static inline ls_room *part_create(ls_runtime *runtime, unsigned n, unsigned me,
                                   size_t chunk_bytes, int grace_ms)
{
    ls_room *const room = calloc(1, sizeof *room);
    assert_non_null(room);
    room->runtime = runtime;
    room->forks = ls_forks_now();
    room->n = n;
    room->me = me;
    room->grace_ms = grace_ms;
    (void)snprintf(room->name, sizeof room->name, "test");
    for (unsigned i = 0; i < n; i++)
        room->members[i].id = 10 + 3 * i;
    assert_ok(
        ls_memory_create(&room->members[me].memory, runtime, "test",
                         room_lay_out(room, chunk_bytes, PART_ALLOC_BYTES)));
    assert_ok(ls_memory_add_bell(room->members[me].memory));
    part_give_store(room);
    return room;
}

static inline void part_key(unsigned me, uint8_t *key)
{
    memset(key, (int)me + 1, LS_MEMORY_KEY_BYTES);
}

/* of: 0 its memory, 1 its store. */
static inline void part_path(char *out, size_t size, const char *folder,
                             unsigned me, unsigned of)
{
    (void)snprintf(out, size, "%s/%u.%u", folder, me, of);
}

struct part_offers {
    ls_offer *of[2];
};

static inline struct part_offers part_offer(ls_room *room, const char *folder)
{
    char path[108];
    uint8_t key[LS_MEMORY_KEY_BYTES];
    struct part_offers offers;
    ls_memory *const own[2] = {room->members[room->me].memory,
                               room->store->memory};
    part_key(room->me, key);
    for (unsigned of = 0; of < 2; of++) {
        part_path(path, sizeof path, folder, room->me, of);
        assert_ok(ls_offer_begin(&offers.of[of], own[of], path, key));
    }
    return offers;
}

static inline void part_offers_end(struct part_offers *offers)
{
    ls_offer_end(&offers->of[0]);
    ls_offer_end(&offers->of[1]);
}

/* Once all have offered theirs. */
static inline void part_join(ls_room *room, const char *folder)
{
    for (unsigned i = 0; i < room->n; i++) {
        char path[108];
        uint8_t key[LS_MEMORY_KEY_BYTES];
        ls_memory **const of[2] = {&room->members[i].memory,
                                   &room->members[i].store};
        part_key(i, key);
        for (unsigned k = 0; k < 2 && i != room->me; k++) {
            part_path(path, sizeof path, folder, i, k);
            assert_ok(ls_memory_take(of[k], room->runtime, path, key,
                                     k == 0 ? room->end : 1,
                                     ls_deadline(room->runtime, 60000)));
            if (k == 0)
                assert_ok(room_taken(room, i));
        }
    }
    room_open(room);
}

/* ---- what can be checked ------------------------------------------------- */

enum part_kind {
    PART_BARRIER,
    PART_BROADCAST,
    PART_GATHER,
    PART_REDUCE,
    PART_SCATTER,
    PART_BUFFER,
    PART_N_KINDS
};

struct part_op {
    enum part_kind kind;
    uint32_t number; /* of the operation: its bytes follow from it */
    size_t size;     /* numbers, or four bytes each */
    unsigned root;
    int wait_ms;
    uint32_t lends; /* a bit for each place: what it brings, and gets, lies in
                     * its store */
};

/* Who lends, out of any bits: often all, or nobody. */
static inline uint32_t part_lends(uint32_t bits)
{
    return bits % 4 == 0 ? UINT32_MAX : bits % 4 == 1 ? 0 : bits >> 2;
}

enum { PART_MOST = 3 * PART_CHUNK_BYTES }; /* bytes or numbers of an op */

static inline int64_t part_number(uint32_t number, unsigned place, size_t i)
{
    return (int64_t)((number * 2654435761u) ^ (place * 40503u + 7)) +
           (int64_t)(i * (place + 1));
}

static inline unsigned char part_byte(uint32_t number, unsigned place, size_t i)
{
    return (unsigned char)(number * 31 + place * 7 + i * (i >> 8 | 1));
}

/* What a member brings to a gathering: any size. */
static inline size_t part_size(const struct part_op *op, unsigned place)
{
    return place % 3 == 2 ? 0 : 4 * op->size / (place + 1);
}

static inline void add_two(const void *self, void *to, const void *left,
                           const void *right, size_t count)
{
    int64_t *const sum = to;
    const int64_t *const a = left, *const b = right;
    (void)self;
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

static const struct ls_room_fold part_sum = {
    .width = sizeof(int64_t), .two = add_two, .sign = 1};

/* What a member has beside its room. */
struct part_memory {
    int64_t in[PART_MOST], out[PART_MOST];
    ls_room_buffer *buffer; /* after the first PART_BUFFER */
    int64_t *lent[2];       /* in and out, in the store; NULL: not yet */
};

/* What an operation reads (0) or writes (1). */
static inline int64_t *part_place(const ls_room *room, const struct part_op *op,
                                  struct part_memory *memory, int which)
{
    void *made;
    if ((op->lends >> room->me & 1) == 0 ||
        (memory->lent[which] == NULL && ls_room_store_is_closed(room->store)))
        return which == 0 ? memory->in : memory->out;
    if (memory->lent[which] == NULL) {
        assert_ok(ls_room_store_alloc(room->store, &made, sizeof memory->in));
        memory->lent[which] = made;
    }
    return memory->lent[which];
}

/* A host that was killed writes nothing. */
static inline bool part_may_write(const ls_room *room)
{
    return !room->core.touched || ls_memory_touch(room->runtime);
}

static inline void part_end(ls_room *room, const struct part_memory *memory)
{
    ls_room_store_free(memory->lent[0]);
    room_shut(room);
    ls_room_store_free(memory->lent[1]); /* also when the room is gone */
    free(room);
}

static inline int64_t part_total(const ls_room *room, uint32_t number, size_t i)
{
    int64_t total = 0;
    for (unsigned p = 0; p < room->n; p++)
        if (ls_room_counts(room, p))
            total += part_number(number, p, i);
    return total;
}

/* Errors: LS_EINVARIANT: a result is wrong. */
static inline int part_wrong(const struct part_op *op, size_t i)
{
    return ls_error(LS_EINVARIANT, "operation %u of kind %d: %zu is wrong",
                    op->number, (int)op->kind, i);
}

static inline int part_do_broadcast(ls_room *room, const struct part_op *op,
                                    struct part_memory *memory)
{
    const size_t size = 4 * op->size;
    unsigned char *const data =
        (unsigned char *)part_place(room, op, memory, 0);
    const bool writes = part_may_write(room);
    for (size_t i = 0; i < size && writes; i++)
        data[i] = room->me == op->root ? part_byte(op->number, op->root, i) : 0;
    const int status =
        ls_room_broadcast(room, "b", op->root, data, size, op->wait_ms);
    for (size_t i = 0; i < size && status == LS_OK; i++)
        if (data[i] != part_byte(op->number, op->root, i))
            return part_wrong(op, i);
    return status;
}

static inline int part_do_gather(ls_room *room, const struct part_op *op,
                                 struct part_memory *memory)
{
    unsigned char *const data =
        (unsigned char *)part_place(room, op, memory, 0);
    const unsigned char *at = (const unsigned char *)memory->out;
    size_t sizes[ROOM_MEMBERS_MAX];
    const bool writes = part_may_write(room);
    for (size_t i = 0; i < part_size(op, room->me) && writes; i++)
        data[i] = part_byte(op->number, room->me, i);
    const int status =
        ls_room_all_gather(room, "g", data, part_size(op, room->me),
                           memory->out, sizeof memory->out, sizes, op->wait_ms);
    for (unsigned p = 0; p < room->n && status == LS_OK; p++) {
        if (sizes[p] != (ls_room_counts(room, p) ? part_size(op, p) : 0))
            return part_wrong(op, p);
        for (size_t i = 0; i < sizes[p]; i++)
            if (*at++ != part_byte(op->number, p, i))
                return part_wrong(op, i);
    }
    return status;
}

static inline int part_do_reduce(ls_room *room, const struct part_op *op,
                                 struct part_memory *memory)
{
    int64_t *const in = part_place(room, op, memory, 0);
    int64_t *const out =
        op->root % 2 == 0 ? in : part_place(room, op, memory, 1);
    const bool writes = part_may_write(room);
    for (size_t i = 0; i < op->size && writes; i++)
        in[i] = part_number(op->number, room->me, i);
    const int status = ls_room_all_reduce(room, "r", &part_sum, in, out,
                                          op->size, op->wait_ms);
    for (size_t i = 0; i < op->size && status == LS_OK; i++)
        if (out[i] != part_total(room, op->number, i))
            return part_wrong(op, i);
    return status;
}

static inline int part_do_scatter(ls_room *room, const struct part_op *op,
                                  struct part_memory *memory)
{
    const size_t share = op->size / room->n;
    int64_t *const in = part_place(room, op, memory, 0);
    int64_t *const out = part_place(room, op, memory, 1);
    const bool writes = part_may_write(room);
    for (size_t i = 0; i < share * room->n && writes; i++)
        in[i] = part_number(op->number, room->me, i);
    const int status = ls_room_reduce_scatter(room, "s", &part_sum, in, out,
                                              share, op->wait_ms);
    for (size_t i = 0; i < share && status == LS_OK; i++)
        if (out[i] != part_total(room, op->number, room->me * share + i))
            return part_wrong(op, i);
    return status;
}

static inline int part_do_buffer(ls_room *room, const struct part_op *op,
                                 struct part_memory *memory)
{
    const void *result = NULL;
    if (memory->buffer == NULL) /* all have none, or all have one */
        return ls_room_alloc(room, &memory->buffer, PART_MOST * sizeof(int64_t),
                             op->wait_ms);
    int64_t *const own = ls_room_buffer_own(memory->buffer);
    if (!room->core.touched || ls_memory_touch(room->runtime))
        for (size_t i = 0; i < op->size; i++)
            own[i] = part_number(op->number, room->me, i);
    const int status = ls_room_fold_buffer(room, "f", &part_sum, memory->buffer,
                                           op->size, &result, op->wait_ms);
    /* It is read where it lies, so one that is shut out may see it change. */
    for (size_t i = 0; i < op->size && status == LS_OK; i++)
        if (((const int64_t *)result)[i] != part_total(room, op->number, i))
            return room_confirm(room) == LS_OK ? part_wrong(op, i) : LS_ELOST;
    return status;
}

static inline int part_do_kind(ls_room *room, const struct part_op *op,
                               struct part_memory *memory)
{
    switch (op->kind) {
    case PART_BROADCAST:
        return part_do_broadcast(room, op, memory);
    case PART_GATHER:
        return part_do_gather(room, op, memory);
    case PART_REDUCE:
        return part_do_reduce(room, op, memory);
    case PART_SCATTER:
        return part_do_scatter(room, op, memory);
    case PART_BUFFER:
        return part_do_buffer(room, op, memory);
    default:
        return ls_room_barrier(room, "w", op->wait_ms);
    }
}

/* Do it, and write over what lies in the store: it is this member's again.
 * Errors: those of the operation; LS_EINVARIANT its result is wrong. */
static inline int part_do(ls_room *room, const struct part_op *op,
                          struct part_memory *memory)
{
    const int status = part_do_kind(room, op, memory);
    for (int i = 0; i < 2; i++)
        if (memory->lent[i] != NULL && part_may_write(room))
            memset(memory->lent[i], 0xee, sizeof memory->in);
    return status;
}

#endif
