/* lines.h - control messages between the nodes of a host, through the memories
 * of blocks.h: for threads that wait for them. They go to who is a pair with
 * this node, and are read by a thread that listens, which runs the ops; nobody
 * else looks. */
#ifndef LOCKSTEP_BUS_LINES_H
#define LOCKSTEP_BUS_LINES_H

#include <stdbool.h>

#include "lockstep/node.h"

#include "patience.h"

struct peer;

/* A thread that may listen. Of the channel that it listens for. */
struct line_listener {
    ls_word bell;
    atomic_bool asleep;
    uint32_t heard; /* the last value of the bell that it has seen */
    unsigned n;     /* of other nodes, when patience was begun */
    struct patience patience;
};

/* Lock held. Returns false: they are no pair, which they may become now, or it
 * is too long; nothing was sent. */
bool lines_send(ls_node *node, struct peer *peer, const char *name,
                size_t name_size, const void *data, size_t size);
/* Whether there is anybody to listen to. Lock not needed. */
bool lines_any(const ls_node *node);
/* Run the ops of channels for what comes, until the bell is rung, or was since
 * the last time. Lock not held.
 * Errors: LS_ETIMEDOUT, without a text. */
int lines_listen(ls_node *node, struct line_listener *listener,
                 int64_t deadline);
void lines_ring(ls_node *node, struct line_listener *listener);

#endif
