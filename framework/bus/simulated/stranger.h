/* stranger.h - a host of a simulated network that speaks frames, and means no
 * good.
 *
 * It is not a node: it has a transport, and says what docs/wire-format.md has
 * words for, and what it has none for. What it does is drawn from a seed. It
 * has an id of its own, and is let in; with `proved` the network knows that id,
 * as it does where there is a secret or a key, so what it says in the name of
 * another can be told from what that one says. Without, whoever connects is
 * believed to be whom he names, and it does not name others there: nothing
 * could stop it (docs/security.md). Where it is dialled it speaks as others in
 * any case.
 *
 * It does not do what every member may: listen to a reliable event, say that it
 * is ready, and never acknowledge.
 * Thread: that of the simulation. */
#ifndef LOCKSTEP_BUS_STRANGER_H
#define LOCKSTEP_BUS_STRANGER_H

#include "lockstep/network.h"

/* It goes to no more. */
#define STRANGER_NODES_MAX 16

typedef struct ls_stranger ls_stranger;

struct ls_stranger_options {
    ls_host *host; /* borrow; it has joined a network, and has nothing else */
    uint64_t seed;
    uint32_t id; /* that no node has */
    bool proved;
    const char *job;     /* this and the next two: borrow */
    const char *event;   /* that its victims listen to */
    const char *channel; /* that they speak on */
    /* Where nodes are, n_nodes of them. It goes to the first, and maybe to
     * others. Copied. */
    const char *const *nodes;
    size_t n_nodes;
    int64_t length_ns; /* it goes after that; 0: when it is stopped */
};

/* It has come, and a thread of the host goes on with it.
 * out: own; stop and destroy it inside the run.
 * Errors: LS_ENOMEM; LS_EADDRINUSE. */
LS_MUST_USE LS_API int
ls_stranger_create(ls_stranger **out,
                   const struct ls_stranger_options *options);
/* Have it go, and wait until it has. */
LS_API void ls_stranger_destroy(ls_stranger **stranger);

/* How many things it has done so far. */
LS_API uint64_t ls_stranger_acts(const ls_stranger *stranger);

#endif
