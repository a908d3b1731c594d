/* network.h - the simulated network between the hosts of a simulation.
 *
 * A node whose runtime is that of a host that joined a network uses it in place
 * of libzmq; nothing else about the node changes. What is simulated is what the
 * bus sees of libzmq over TCP: a connection of each subscriber to each
 * publisher, in order, which breaks and is made again by itself, at which
 * moment the subscriptions are told again; and, beyond what TCP would do,
 * messages that are lost, doubled and overtaken one by one, since the protocols
 * above promise to bear that.
 *
 * Cuts are of one direction between two hosts. While one lasts, what is sent
 * that way waits; a connection that has been cut in either direction for 3 s is
 * closed at both ends, and what was under way on it is lost. It is tried again
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
    int64_t delay_ns;     /* at least */
    int64_t jitter_ns;    /* added: uniform in 0 … jitter_ns */
    double loss;          /* 0 … 1: of messages, not of subscriptions */
    double duplicate;     /* 0 … 1: comes twice */
    double reorder;       /* 0 … 1: may be overtaken by later ones */
    uint64_t bytes_per_s; /* of each connection; 0: no limit */
};

/* path: what holds between all hosts at first; NULL: 50 µs and no faults.
 * simulation: borrow. out: own; destroy it after the nodes, before the
 * simulation, which does not run again. Errors: LS_EINVAL a probability or a
 * time is out of range; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_create(ls_network **out,
                                         ls_simulation *simulation,
                                         const struct ls_network_path *path);
LS_API void ls_network_destroy(ls_network **network);

/* Nodes on this host use the network from now on. A host is reached at any
 * tcp:// address that a node of it bound; names are those of the hosts, and
 * 127.0.0.1 is everywhere the same place. Errors: LS_EEXIST; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_join(ls_network *network, ls_host *host);

/* In all calls below a host that is NULL stands for every host. */

/* Change how messages travel that way, from the next one on.
 * Errors: LS_EINVAL; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_shape(ls_network *network,
                                        const ls_host *from, const ls_host *to,
                                        const struct ls_network_path *path);

/* Let nothing pass that way; and let it pass again. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_network_cut(ls_network *network, const ls_host *from,
                                      const ls_host *to);
LS_API void ls_network_heal(ls_network *network, const ls_host *from,
                            const ls_host *to);

/* Break every connection between the two, either way, as a reset does: what is
 * under way is lost, and they connect again after 10 ms or more. */
LS_API void ls_network_reset(ls_network *network, const ls_host *a,
                             const ls_host *b);

/* kill -9: ls_host_kill(), and all its connections and endpoints are gone. Its
 * peers learn that as fast as the way to them is; what was under way is lost.
 * host: one that joined. */
LS_API void ls_network_kill(ls_network *network, ls_host *host);

/* Of messages; sent + duplicated = delivered + lost + broken + waiting. */
struct ls_network_stats {
    uint64_t sent; /* copies handed to a connection */
    uint64_t delivered;
    uint64_t lost;       /* one by one */
    uint64_t broken;     /* with their connection */
    uint64_t duplicated; /* came twice */
    uint64_t reordered;  /* came after a later one */
    uint64_t connects, disconnects;
    uint64_t waiting, waiting_bytes; /* under way, or not yet read, now */
};
LS_API void ls_network_stats(const ls_network *network,
                             struct ls_network_stats *out);

#ifdef __cplusplus
}
#endif

#endif
