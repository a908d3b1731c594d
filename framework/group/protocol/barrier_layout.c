#include "barrier_layout.h"

#include <stdlib.h>
#include <string.h>

/* A member among all, those of a host together. */
struct seat {
    uint64_t host;
    uint32_t member;
    uint32_t begin, end; /* of the seats of its host */
    uint32_t number;     /* of its host, by the first member there */
};

/* Where the work is done. */
struct room {
    struct seat *seats;
    uint32_t *seat_of; /* each member */
    uint32_t *firsts;  /* the first member of each host */
};

void ls_layout_fini(struct ls_layout *layout)
{
    free(layout->places);
    free(layout->hosts);
    *layout = (struct ls_layout){.n = 0};
}

static bool has_room(struct ls_layout *layout, uint32_t n)
{
    if (n <= layout->capacity)
        return true;
    struct ls_layout_place *places =
        realloc(layout->places, ((size_t)n + 1) * sizeof *places);
    if (places != NULL)
        layout->places = places;
    uint64_t *hosts = realloc(layout->hosts, n * sizeof *hosts);
    if (hosts != NULL)
        layout->hosts = hosts;
    if (places == NULL || hosts == NULL)
        return false;
    layout->capacity = n;
    return true;
}

static int by_host(const void *left, const void *right)
{
    const struct seat *a = left, *b = right;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    return a->member < b->member ? -1 : 1;
}

static void bound_hosts(struct seat *seats, uint32_t n)
{
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        end = begin + 1;
        while (end < n && seats[begin].host != 0 &&
               seats[end].host == seats[begin].host)
            end++;
        for (uint32_t i = begin; i < end; i++) {
            seats[i].begin = begin;
            seats[i].end = end;
        }
    }
}

static void seat_all(struct room *room, struct ls_layout *layout)
{
    for (uint32_t i = 0; i < layout->n; i++)
        room->seats[i] = (struct seat){.host = layout->hosts[i], .member = i};
    qsort(room->seats, layout->n, sizeof *room->seats, by_host);
    bound_hosts(room->seats, layout->n);
    for (uint32_t i = 0; i < layout->n; i++)
        room->seat_of[room->seats[i].member] = i;
    layout->n_hosts = 0;
    for (uint32_t i = 0; i < layout->n; i++) {
        struct seat *seat = &room->seats[room->seat_of[i]];
        if (room->seat_of[i] != seat->begin)
            continue;
        seat->number = layout->n_hosts;
        room->firsts[layout->n_hosts++] = i;
    }
}

/* Those just below a place are the next that have none; returns how many have
 * one then. In a tree of the numbers 0, 1, 2 … those below i are i·fanout + 1
 * and on. */
static uint32_t put_below(struct ls_layout *layout, const struct room *room,
                          uint32_t place, uint32_t given)
{
    const uint32_t at = room->seat_of[layout->places[place].member];
    const struct seat *seat = &room->seats[at];
    const uint64_t fanout = layout->fanout;
    layout->places[place].below = given;
    uint64_t i = seat->number * fanout + 1;
    uint64_t end = at == seat->begin ? i + fanout : i;
    for (; i < end && i < layout->n_hosts; i++)
        layout->places[given++] =
            (struct ls_layout_place){.member = room->firsts[i], .above = place};
    i = seat->begin + (at - seat->begin) * fanout + 1;
    end = i + fanout;
    for (; i < end && i < seat->end; i++)
        layout->places[given++] = (struct ls_layout_place){
            .member = room->seats[i].member, .above = place};
    return given;
}

bool ls_layout_make(struct ls_layout *layout, const uint64_t *hosts, uint32_t n,
                    uint32_t fanout)
{
    if (layout->n == n && layout->fanout == fanout &&
        memcmp(layout->hosts, hosts, n * sizeof *hosts) == 0)
        return true;
    layout->n = 0;
    struct room room = {.seats = malloc(n * sizeof *room.seats),
                        .seat_of = malloc(n * sizeof *room.seat_of),
                        .firsts = malloc(n * sizeof *room.firsts)};
    const bool has_memory = room.seats != NULL && room.seat_of != NULL &&
                            room.firsts != NULL && has_room(layout, n);
    if (has_memory) {
        memcpy(layout->hosts, hosts, n * sizeof *hosts);
        layout->n = n;
        layout->fanout = fanout;
        seat_all(&room, layout);
        layout->places[0] = (struct ls_layout_place){.member = 0};
        uint32_t given = 1;
        for (uint32_t place = 0; place < n; place++)
            given = put_below(layout, &room, place, given);
        layout->places[n] = (struct ls_layout_place){.below = given};
    }
    free(room.seats);
    free(room.seat_of);
    free(room.firsts);
    return has_memory;
}

bool ls_layout_is_flat(const struct ls_layout *layout)
{
    return layout->places[1].below == layout->n;
}
