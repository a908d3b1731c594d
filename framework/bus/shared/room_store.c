/* Memory of a member that outlives rooms. Design notes:
 *
 * - It is one memory, which each room's members map anew. Its pieces lie one
 *   behind the other, each with its head before it; the first gap that is large
 *   enough is used, so pages that were taken are used again. A sealed memory
 *   cannot give pages back.
 * - Whoever holds it keeps it: a piece stays where it is until it is freed,
 *   whatever has become of rooms, and of the handle.
 * - A member that was shut out may be in the middle of an operation for the
 *   others, which read what it has brought, while its own call has returned and
 *   its owner writes there again. So the store is closed, before that call
 *   returns: the others keep what they have, and see no more of it. */
#include "room_store.h"

#include <stdlib.h>
#include <string.h>

#include "forked.h"

enum { LINE = 64 };

struct room_store_piece {
    _Alignas(LINE) ls_room_store *store;
    struct room_store_piece *next;
    size_t whole; /* with this head */
};
_Static_assert(sizeof(struct room_store_piece) == LINE,
               "a line before each piece");
_Static_assert(sizeof(struct room_store_head) == LINE, "a line before all");

static unsigned char *base_of(const ls_room_store *store)
{
    return ls_memory_own(store->memory);
}

static void release(ls_room_store *store)
{
    if (--store->held > 0)
        return;
    ls_memory_destroy(&store->memory);
    free(store);
}

/* For a simulation: a host that was killed writes nothing. */
static bool may_write(const ls_room_store *store)
{
    return !store->touched || ls_memory_touch(store->runtime);
}

int ls_room_store_create(ls_room_store **out, ls_runtime *runtime, size_t bytes)
{
    *out = NULL;
    if (bytes == 0 || bytes > PTRDIFF_MAX / 2)
        return ls_error(LS_EINVAL, "a store cannot have %zu bytes: 1 to %td",
                        bytes, PTRDIFF_MAX / 2);
    ls_room_store *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "no memory for a store");
    int status = ls_memory_create(&made->memory, runtime, "store",
                                  bytes + sizeof(struct room_store_head));
    if (status == LS_OK)
        status =
            ls_memory_reserve(made->memory, 0, sizeof(struct room_store_head));
    if (status != LS_OK) {
        ls_memory_destroy(&made->memory);
        free(made);
        return status;
    }
    made->runtime = runtime;
    made->touched = ls_memory_touched(runtime);
    made->forks = ls_forks_now();
    made->held = 1;
    made->reserved = sizeof(struct room_store_head);
    struct room_store_head *const head = ls_memory_own(made->memory);
    head->magic = ROOM_STORE_MAGIC;
    head->proof[0] = ls_entropy(runtime);
    head->proof[1] = ls_entropy(runtime);
    *out = made;
    return LS_OK;
}

void ls_room_store_destroy(ls_room_store **store)
{
    if (store == NULL || *store == NULL)
        return;
    release(*store);
    *store = NULL;
}

/* Where a piece of that size is to lie, and what is to point to it. NULL: there
 * is no room. */
static struct room_store_piece *find_gap(ls_room_store *store, size_t whole,
                                         struct room_store_piece ***link)
{
    unsigned char *at = base_of(store) + sizeof(struct room_store_head);
    const unsigned char *const end =
        base_of(store) + ls_memory_size(store->memory);
    struct room_store_piece **next = &store->first;
    while (*next != NULL && (size_t)((unsigned char *)*next - at) < whole) {
        at = (unsigned char *)*next + (*next)->whole;
        next = &(*next)->next;
    }
    if (*next == NULL && (size_t)(end - at) < whole)
        return NULL;
    *link = next;
    return (struct room_store_piece *)(void *)at;
}

/* The pages of that piece are there, and zero. Errors: LS_ENOMEM. */
static int prepare(ls_room_store *store, struct room_store_piece *piece,
                   size_t whole)
{
    const size_t begin = (size_t)((unsigned char *)piece - base_of(store));
    size_t used = store->reserved > begin ? store->reserved - begin : 0;
    if (used < whole) {
        const int status = ls_memory_reserve(store->memory, store->reserved,
                                             begin + whole - store->reserved);
        if (status != LS_OK)
            return status;
        store->reserved = begin + whole;
    } else {
        used = whole;
    }
    if (may_write(store))
        memset(piece, 0, used);
    return LS_OK;
}

int ls_room_store_alloc(ls_room_store *store, void **out, size_t size)
{
    *out = NULL;
    if (ls_forked_since(store->forks))
        return ls_forked_error("this store");
    if (atomic_load(&store->closed))
        return ls_error(LS_ESTATE, "the others have shut this member out of a "
                                   "room with this store: make another one");
    struct room_store_piece **link, *piece = NULL;
    size_t whole = 0;
    if (size < ls_memory_size(store->memory)) {
        whole = sizeof *piece + (size + LINE - 1) / LINE * LINE;
        piece = find_gap(store, whole, &link);
    }
    if (piece == NULL)
        return ls_error(LS_ELIMIT,
                        "there is no room for %zu bytes in a store of %zu",
                        size, ls_memory_size(store->memory));
    const int status = prepare(store, piece, whole);
    if (status != LS_OK)
        return status;
    piece->store = store;
    piece->whole = whole;
    piece->next = *link;
    *link = piece;
    store->held++;
    *out = piece + 1;
    return LS_OK;
}

void ls_room_store_free(void *memory)
{
    if (memory == NULL)
        return;
    struct room_store_piece *const piece =
        (struct room_store_piece *)memory - 1;
    ls_room_store *const store = piece->store;
    if (ls_forked_since(store->forks))
        return; /* it is the other process's, too */
    struct room_store_piece **link = &store->first;
    while (*link != piece)
        link = &(*link)->next;
    *link = piece->next;
    release(store);
}

bool ls_room_store_is_closed(const ls_room_store *store)
{
    return atomic_load(&store->closed);
}

int room_store_enter(ls_room_store *store)
{
    if (store->in_room)
        return ls_error(LS_ESTATE, "its store is in another room");
    store->in_room = true;
    store->held++;
    return LS_OK;
}

void room_store_leave(ls_room_store *store)
{
    store->in_room = false;
    release(store);
}

void room_store_close(ls_room_store *store)
{
    if (!atomic_exchange(&store->closed, true))
        ls_memory_sever(store->memory);
}

uint64_t room_store_place(const ls_room_store *store, const void *data,
                          size_t bytes)
{
    const uintptr_t base = (uintptr_t)base_of(store), at = (uintptr_t)data;
    const size_t size = ls_memory_size(store->memory);
    if (bytes == 0 || at < base || at - base > size ||
        bytes > size - (at - base) || atomic_load(&store->closed))
        return 0;
    return at - base;
}
