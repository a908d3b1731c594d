#include "fabric.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/runtime.h>

#define ADDRESS_BYTES 6
#define HEADER_BYTES  14 /* to, from, type */
#define READ_AT_ONCE  64

void fabric_init(struct fabric *fabric, uint64_t seed)
{
    fabric->heal_at = LS_FOREVER;
    for (unsigned i = 0; i < PORTS_MAX; i++)
        for (unsigned j = 0; j < PORTS_MAX; j++)
            ls_rng_seed(&fabric->paths[i][j].random, seed, i * PORTS_MAX + j);
}

static void push(struct fabric *fabric, int64_t due, unsigned from, unsigned to,
                 const unsigned char *bytes, size_t size)
{
    if (!frames_push(&fabric->frames, due, from, to, bytes, size))
        fabric->stats.overflowed++;
}

static void send_on(struct fabric *fabric, int64_t now, unsigned from,
                    unsigned to, const unsigned char *bytes, size_t size)
{
    int64_t due[PATH_COPIES_MAX];
    struct fabric_stats *stats = &fabric->stats;
    stats->sent++;
    const enum path_fate fate = path_send(&fabric->paths[from][to], now, due);
    switch (fate) {
    case PATH_IS_CUT:
        stats->cut++;
        return;
    case PATH_LOSES:
        stats->lost++;
        return;
    case PATH_PASSES_TWICE:
        stats->duplicated++;
        push(fabric, due[1], from, to, bytes, size);
        break;
    case PATH_PASSES_LATE:
        stats->reordered++;
        break;
    case PATH_PASSES:
        break;
    }
    push(fabric, due[0], from, to, bytes, size);
}

static bool is_for(const struct port *port, const unsigned char *address)
{
    return port->known && memcmp(port->address, address, ADDRESS_BYTES) == 0;
}

static void forward(struct fabric *fabric, int64_t now, unsigned from,
                    const unsigned char *bytes, size_t size)
{
    struct port *source = &fabric->ports[from];
    memcpy(source->address, bytes + ADDRESS_BYTES, ADDRESS_BYTES);
    source->known = true;
    for (unsigned to = 0; to < fabric->n_ports; to++) {
        if (is_for(&fabric->ports[to], bytes)) {
            if (to != from)
                send_on(fabric, now, from, to, bytes, size);
            return;
        }
    }
    for (unsigned to = 0; to < fabric->n_ports; to++)
        if (to != from)
            send_on(fabric, now, from, to, bytes, size);
}

void fabric_read(struct fabric *fabric, unsigned port, int64_t now)
{
    unsigned char bytes[FRAME_BYTES_MAX];
    for (int i = 0; i < READ_AT_ONCE; i++) {
        const ssize_t size = read(fabric->ports[port].tap, bytes, sizeof bytes);
        if (size < 0)
            return;
        if (size < HEADER_BYTES)
            continue;
        if (fabric->ports[port].dead)
            fabric->stats.cut++;
        else
            forward(fabric, now, port, bytes, (size_t)size);
    }
}

void fabric_deliver(struct fabric *fabric, int64_t now)
{
    struct frame frame;
    while (frames_pop(&fabric->frames, now, &frame)) {
        /* What is in a cable when it is cut does not come out. */
        if (fabric->ports[frame.to].dead || fabric->ports[frame.from].dead ||
            fabric->paths[frame.from][frame.to].cut)
            fabric->stats.cut++;
        else if (write(fabric->ports[frame.to].tap, frame.bytes, frame.size) <
                 0)
            fabric->stats.refused++;
        else
            fabric->stats.delivered++;
        free(frame.bytes);
    }
}

void fabric_heal(struct fabric *fabric)
{
    fabric->heal_at = LS_FOREVER;
    for (unsigned i = 0; i < fabric->n_ports; i++)
        for (unsigned j = 0; j < fabric->n_ports; j++)
            fabric->paths[i][j].cut = false;
}
