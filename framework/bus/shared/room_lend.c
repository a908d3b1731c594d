/* What an operation reads where it lies: in the stores of members. Design
 * notes:
 *
 * - A member says where its bytes are beside its call, in the slot of the first
 *   epoch. All see the same words, so all come to the same: to read there, or
 *   to have it copied. What a liar says is checked against the memory that was
 *   mapped.
 * - Whoever reads there does so before the last epoch of the operation. So when
 *   that has ended well for its owner, nobody reads there any more; when it has
 *   failed, what they read is of no use to them; and when the owner was shut
 *   out, it writes where nobody sees it (room_store.c). */
#include "room_inside.h"

static void say(const struct room_core *core, _Atomic uint64_t *word,
                uint64_t value)
{
    if (!core->touched || ls_memory_touch(core->runtime))
        atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t place_of(const ls_room *room, const void *data, size_t bytes)
{
    return room->store == NULL || data == NULL
               ? 0
               : room_store_place(room->store, data, bytes);
}

void room_lend(ls_room *room, const void *in, size_t in_bytes, const void *out,
               size_t out_bytes)
{
    struct room_core *const core = &room->core;
    const unsigned slot = room_next_slot(room);
    say(core, &core->own->brings_at[slot], place_of(room, in, in_bytes));
    say(core, &core->own->gets_at[slot], place_of(room, out, out_bytes));
}

static const unsigned char *look(const ls_room *room, unsigned place,
                                 const _Atomic uint64_t *words, size_t bytes,
                                 size_t width)
{
    const uint64_t at = atomic_load(&words[room_slot(room)]);
    const ls_memory *memory = room->members[place].store;
    if (place == room->me)
        memory = room->store != NULL ? room->store->memory : NULL;
    if (at == 0 || at % width != 0 || memory == NULL ||
        at > ls_memory_size(memory) || bytes > ls_memory_size(memory) - at)
        return NULL;
    return (const unsigned char *)ls_memory_data(memory) + at;
}

const unsigned char *room_brings(const ls_room *room, unsigned place,
                                 size_t bytes, size_t width)
{
    return look(room, place, room->core.words[place]->brings_at, bytes, width);
}

const unsigned char *room_gets(const ls_room *room, unsigned place,
                               size_t bytes, size_t width)
{
    return look(room, place, room->core.words[place]->gets_at, bytes, width);
}

bool ls_room_has_lent(const ls_room *room)
{
    return room->has_lent;
}
