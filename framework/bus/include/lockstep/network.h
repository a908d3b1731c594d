/* network.h - the simulated network between the hosts of a simulation.
 *
 * A node on the runtime of a host that has joined a network uses it in place of
 * libzmq; nothing else about the node changes. It simulates what the bus sees
 * of libzmq over TCP: an ordered connection from each subscriber to each
 * publisher, which breaks, reconnects by itself, and then resends the
 * subscriptions. Beyond what TCP does, it can also lose, duplicate and reorder
 * single messages, since the protocols above promise to tolerate that.
 *
 * A cut blocks one direction between two hosts. While it lasts, messages that
 * way wait; a connection that has been cut in either direction for 3 s is
 * closed at both ends, and messages in transit on it are lost. It is retried
 * until the cut is healed.
 * Thread: that of the simulation.
 * Source: docs/runtime.md. */
#ifndef LOCKSTEP_NETWORK_H
#define LOCKSTEP_NETWORK_H

#include "lockstep/simulation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_network ls_network;

/* How messages travel in one direction between two hosts. Within a host it is
 * always 50 µs without faults. */
struct ls_network_path {
    int64_t delay_ns;     /* minimum */
    int64_t jitter_ns;    /* added: uniform in 0 … jitter_ns */
    double loss;          /* 0 … 1: of messages, not of subscriptions */
    double duplicate;     /* 0 … 1: arrives twice */
    double reorder;       /* 0 … 1: may be overtaken by later ones */
    uint64_t bytes_per_s; /* of each connection; 0: no limit */
};

/* path: the initial path between all hosts; NULL: 50 µs and no faults.
 * simulation: borrow.
 * out:    own; destroy it after the nodes and before the simulation, which
 *         cannot be run again.
 * Errors: LS_EINVAL a probability or a time is out of range; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_create(ls_network **out,
                                         ls_simulation *simulation,
                                         const struct ls_network_path *path);
LS_API void ls_network_destroy(ls_network **network);

/* From now on, nodes on this host use the network. A host is reachable at any
 * tcp:// address that one of its nodes has bound; host names are those of the
 * hosts, and 127.0.0.1 is the same place everywhere.
 * Errors: LS_EEXIST; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_join(ls_network *network, ls_host *host);

/* In all calls below, NULL as a host means every host. */

/* Change the path in this direction, from the next message on.
 * Errors: LS_EINVAL; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_shape(ls_network *network,
                                        const ls_host *from, const ls_host *to,
                                        const struct ls_network_path *path);

/* Block this direction; unblock it. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_cut(ls_network *network, const ls_host *from,
                                      const ls_host *to);
LS_API void ls_network_heal(ls_network *network, const ls_host *from,
                            const ls_host *to);

/* Break every connection between the two, in both directions, as a reset does:
 * messages in transit are lost, and they reconnect after 10 ms or more. */
LS_API void ls_network_reset(ls_network *network, const ls_host *a,
                             const ls_host *b);

/* kill -9: ls_host_kill(), and all its connections and endpoints are gone. Its
 * peers learn of it as fast as their path to it allows; messages in transit are
 * lost. host: one that has joined. */
LS_API void ls_network_kill(ls_network *network, ls_host *host);

/* Counts messages; sent + duplicated = delivered + lost + broken + waiting. */
struct ls_network_stats {
    uint64_t sent; /* copies handed to a connection */
    uint64_t delivered;
    uint64_t lost;       /* individually */
    uint64_t broken;     /* with their connection */
    uint64_t duplicated; /* arrived twice */
    uint64_t reordered;  /* arrived after a later one */
    uint64_t connects, disconnects;
    uint64_t waiting, waiting_bytes; /* in transit, or not yet read, now */
    double worst_loss;               /* of any path that there has been */
};
LS_API void ls_network_stats(const ls_network *network,
                             struct ls_network_stats *out);

#ifdef __cplusplus
}
#endif

#endif
