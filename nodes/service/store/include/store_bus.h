/* store_bus.h - a store whose bytes are kept by one node of the world: its
 * home, which has a store_home.h.
 *
 * Puts, gets and drops are calls to it, and values their bodies: they travel
 * without being copied. A put returns when the home has it. One whose home dies
 * fails as LS_ELOST, and works again when there is a new one.
 *
 * Life: open before the calls close; close when no call is under way, before
 * they do.
 * Thread: as store.h says. */
#ifndef LOCKSTEP_STORE_BUS_H
#define LOCKSTEP_STORE_BUS_H

#include "lockstep/call.h"
#include "store.h"

struct store_bus_options {
    ls_node *node;    /* borrow */
    ls_rpc *calls;    /* borrow */
    uint32_t home;    /* id of the node that keeps the bytes; may be this one */
    uint32_t channel; /* that it serves; 0: it is not asked for */
    size_t max_bytes; /* of one value; 0: what a body may have */
};

/* out:    own; written on success only; give it to store_close().
 * Errors: LS_ENOMEM. */
LS_MUST_USE int store_bus_open(struct store **out,
                               const struct store_bus_options *options);

#endif
