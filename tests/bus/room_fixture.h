/* room_fixture.h - rooms without a bus: their members have memory, and are told
 * of losses by the test. And operations that can be checked: what each member
 * brings follows from the operation and its place. */
#ifndef ROOM_FIXTURE_H
#define ROOM_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "room_inside.h"
#include "test.h"

enum { PART_CHUNK_BYTES = 4096, PART_ALLOC_BYTES = 1 << 20 };

/* A member that has only its own memory. Ids are 10, 13, 16 … */
static inline ls_room *part_create(ls_runtime *runtime, unsigned n, unsigned me,
                                   size_t chunk_bytes, int grace_ms)
{
    ls_room *const room = calloc(1, sizeof *room);
    assert_non_null(room);
    room->runtime = runtime;
    room->n = n;
    room->me = me;
    room->grace_ms = grace_ms;
    (void)snprintf(room->name, sizeof room->name, "test");
    for (unsigned i = 0; i < n; i++)
        room->members[i].id = 10 + 3 * i;
    assert_ok(
        ls_memory_create(&room->members[me].memory, runtime, "test",
                         room_lay_out(room, chunk_bytes, PART_ALLOC_BYTES)));
    return room;
}

static inline void part_key(unsigned me, uint8_t *key)
{
    memset(key, (int)me + 1, LS_MEMORY_KEY_BYTES);
}

static inline void part_path(char *out, size_t size, const char *folder,
                             unsigned me)
{
    (void)snprintf(out, size, "%s/%u", folder, me);
}

static inline ls_offer *part_offer(ls_room *room, const char *folder)
{
    char path[108];
    uint8_t key[LS_MEMORY_KEY_BYTES];
    ls_offer *offer = NULL;
    part_path(path, sizeof path, folder, room->me);
    part_key(room->me, key);
    assert_ok(
        ls_offer_begin(&offer, room->members[room->me].memory, path, key));
    return offer;
}

/* Once all have offered theirs. */
static inline void part_join(ls_room *room, const char *folder)
{
    for (unsigned i = 0; i < room->n; i++) {
        char path[108];
        uint8_t key[LS_MEMORY_KEY_BYTES];
        part_path(path, sizeof path, folder, i);
        part_key(i, key);
        if (i != room->me)
            assert_ok(ls_memory_take(&room->members[i].memory, room->runtime,
                                     path, key, room->end,
                                     ls_deadline(room->runtime, 60000)));
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
    size_t size;     /* bytes, or numbers */
    unsigned root;
    int wait_ms;
};

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
    return place % 3 == 2 ? 0 : op->size / (place + 1);
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
};

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
    unsigned char *const data = (unsigned char *)memory->in;
    for (size_t i = 0; i < op->size; i++)
        data[i] = room->me == op->root ? part_byte(op->number, op->root, i) : 0;
    const int status =
        ls_room_broadcast(room, "b", op->root, data, op->size, op->wait_ms);
    for (size_t i = 0; i < op->size && status == LS_OK; i++)
        if (data[i] != part_byte(op->number, op->root, i))
            return part_wrong(op, i);
    return status;
}

static inline int part_do_gather(ls_room *room, const struct part_op *op,
                                 struct part_memory *memory)
{
    unsigned char *const data = (unsigned char *)memory->in;
    const unsigned char *at = (const unsigned char *)memory->out;
    size_t sizes[ROOM_MEMBERS_MAX];
    for (size_t i = 0; i < part_size(op, room->me); i++)
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
    for (size_t i = 0; i < op->size; i++)
        memory->in[i] = part_number(op->number, room->me, i);
    const int status = ls_room_all_reduce(room, "r", &part_sum, memory->in,
                                          memory->in, op->size, op->wait_ms);
    for (size_t i = 0; i < op->size && status == LS_OK; i++)
        if (memory->in[i] != part_total(room, op->number, i))
            return part_wrong(op, i);
    return status;
}

static inline int part_do_scatter(ls_room *room, const struct part_op *op,
                                  struct part_memory *memory)
{
    const size_t share = op->size / room->n;
    for (size_t i = 0; i < share * room->n; i++)
        memory->in[i] = part_number(op->number, room->me, i);
    const int status = ls_room_reduce_scatter(room, "s", &part_sum, memory->in,
                                              memory->out, share, op->wait_ms);
    for (size_t i = 0; i < share && status == LS_OK; i++)
        if (memory->out[i] !=
            part_total(room, op->number, room->me * share + i))
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

/* Do it. Errors: those of the operation; LS_EINVARIANT its result is wrong. */
static inline int part_do(ls_room *room, const struct part_op *op,
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

#endif
