/* store_bus.h - a store whose bytes are kept by the nodes of the world: data by
 * the node that its name says, all else by one, as a rule the coordinator.
 *
 * What another node keeps is put, got and dropped by calls to it, and values
 * are their bodies: they travel without being copied. A put returns when the
 * bytes are kept. One whose keeper dies fails as LS_ELOST.
 *
 * A node holds values in memory, max_bytes of them at most; what comes beyond
 * is refused, and counted. What is put with `keep` is also written to a folder,
 * and is there again in the next life. Data is told of to one coordinator: when
 * that is lost, nobody will ask for it any more, and it goes.
 *
 * Life: open before ls_node_start(); close after ls_rpc_close(), best after
 * ls_node_stop().
 * Thread: as store.h says. */
#ifndef LOCKSTEP_STORE_BUS_H
#define LOCKSTEP_STORE_BUS_H

#include "lockstep/call.h"
#include "store.h"

struct store_bus_options {
    ls_node *node;        /* borrow */
    ls_rpc *calls;        /* borrow */
    uint32_t coordinator; /* id of the node that keeps what is no data */
    uint32_t channel;     /* that all serve; 0: it is not asked for */
    size_t max_bytes;     /* of all that this node keeps; 0: default 1 GiB */
    const char *keep;     /* a folder; NULL: `keep` means nothing. Copied */
};

/* out:    own; written on success only; give it to store_close().
 * Errors: those of store_home_open(). */
LS_MUST_USE int store_bus_open(struct store **out,
                               const struct store_bus_options *options);

/* What a node keeps. */
struct store_home_stats {
    size_t names;
    uint64_t bytes;     /* of all values */
    uint64_t refused;   /* puts: no room */
    uint64_t malformed; /* calls that break the format */
};

/* store: one of store_bus_open(). Any thread. */
void store_bus_stats(struct store *store, struct store_home_stats *out);

#endif
