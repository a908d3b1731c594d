/* fabric.h - the inside of the switch: which frame goes where, and when. A
 * frame goes to the port that its destination was last heard from, or to all
 * others when that is not known. */
#ifndef TAPSWITCH_FABRIC_H
#define TAPSWITCH_FABRIC_H

#include "frames.h"
#include "path.h"

#define PORTS_MAX 16

struct port {
    int tap;
    bool dead; /* its host: nothing comes out and nothing goes in */
    bool known;
    unsigned char address[6]; /* of its host, when known */
};

struct fabric_stats {
    uint64_t sent; /* by hosts, each once for each port that it is for */
    uint64_t delivered;
    uint64_t lost;
    uint64_t cut; /* lost in a cut, or because a host is dead */
    uint64_t duplicated;
    uint64_t reordered;
    uint64_t overflowed; /* there was no room for it */
    uint64_t refused;    /* the host did not take it */
};

struct fabric {
    unsigned n_ports;
    struct port ports[PORTS_MAX];
    struct path paths[PORTS_MAX][PORTS_MAX]; /* from, to */
    struct frames frames;
    struct fabric_stats stats;
    int64_t heal_at; /* LS_FOREVER: not by itself */
};

/* The rest of *fabric must be zero. */
void fabric_init(struct fabric *fabric, uint64_t seed);

/* Take frames from a port, some at once, so that the other ports get a turn. */
void fabric_read(struct fabric *fabric, unsigned port, int64_t now);

/* Hand out what is due. */
void fabric_deliver(struct fabric *fabric, int64_t now);

/* Ends all cuts; the dead stay dead. */
void fabric_heal(struct fabric *fabric);

#endif
