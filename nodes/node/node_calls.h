/* node_calls.h - the calls that every node of a job serves to anyone:
 *
 *   ping   {} → {pong: its id}
 *   stats  {} → the figures of its router and of its calls, by their names
 *
 * For `lockstep call`, and for whoever wants to know how a node does. */
#ifndef LOCKSTEP_NODE_CALLS_H
#define LOCKSTEP_NODE_CALLS_H

#include "lockstep/call.h"

/* What a served node keeps for them. */
struct node_calls {
    ls_node *node; /* borrow */
    ls_rpc *calls; /* own */
};

/* Open the calls of a node and serve those two; before it listens.
 * channel: of the others that it serves.
 * out:     close it before the node is destroyed; it must stay where it is.
 * Errors:  those of ls_rpc_open(). */
LS_MUST_USE int node_calls_open(struct node_calls *out, ls_node *node,
                                uint32_t channel);
void node_calls_close(struct node_calls *calls);

#endif
