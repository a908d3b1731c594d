#include "barrier_peers.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 8

void ls_epoch_peers_fini(struct ls_epoch_peers *peers)
{
    free(peers->items);
    *peers = (struct ls_epoch_peers){0};
}

/* The place of the first peer that is not before (id, incarnation). */
static size_t place(const struct ls_epoch_peers *peers, uint32_t id,
                    uint64_t incarnation)
{
    size_t low = 0;
    size_t high = peers->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct ls_epoch_peer *peer = &peers->items[middle];
        if (peer->id < id ||
            (peer->id == id && peer->incarnation < incarnation))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct ls_epoch_peer *ls_epoch_peers_find(const struct ls_epoch_peers *peers,
                                          uint32_t id, uint64_t incarnation)
{
    const size_t at = place(peers, id, incarnation);
    if (at == peers->n || peers->items[at].id != id ||
        peers->items[at].incarnation != incarnation)
        return NULL;
    return &peers->items[at];
}

struct ls_epoch_peer *ls_epoch_peers_joined(const struct ls_epoch_peers *peers,
                                            uint32_t id)
{
    for (size_t at = place(peers, id, 0);
         at < peers->n && peers->items[at].id == id; at++) {
        if (peers->items[at].joined)
            return &peers->items[at];
    }
    return NULL;
}

bool ls_epoch_peers_has(const struct ls_epoch_peers *peers, uint32_t id)
{
    for (size_t at = place(peers, id, 0);
         at < peers->n && peers->items[at].id == id; at++) {
        if (!peers->items[at].gone)
            return true;
    }
    return false;
}

static bool has_room(struct ls_epoch_peers *peers)
{
    if (peers->n < peers->capacity)
        return true;
    const size_t capacity =
        peers->capacity == 0 ? FIRST_CAPACITY : 2 * peers->capacity;
    struct ls_epoch_peer *items =
        realloc(peers->items, capacity * sizeof *items);
    if (items == NULL)
        return false;
    peers->items = items;
    peers->capacity = capacity;
    return true;
}

struct ls_epoch_peer *ls_epoch_peers_add(struct ls_epoch_peers *peers,
                                         uint32_t id, uint64_t incarnation)
{
    if (!has_room(peers))
        return NULL;
    const size_t at = place(peers, id, incarnation);
    struct ls_epoch_peer *peer = &peers->items[at];
    memmove(peer + 1, peer, (peers->n - at) * sizeof *peer);
    *peer = (struct ls_epoch_peer){.id = id, .incarnation = incarnation};
    peers->n++;
    return peer;
}

void ls_epoch_peers_compact(struct ls_epoch_peers *peers)
{
    size_t kept = 0;
    for (size_t i = 0; i < peers->n; i++) {
        if (peers->items[i].gone && !peers->items[i].withdrew)
            continue;
        if (kept != i)
            peers->items[kept] = peers->items[i];
        kept++;
    }
    peers->n = kept;
}
