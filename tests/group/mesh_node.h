/* mesh_node.h - a node of a simulated mesh, on a host of its own. */
#ifndef MESH_NODE_H
#define MESH_NODE_H

#include <stdio.h>

#include "lockstep/node.h"
#include "lockstep/simulation.h"

/* Node `id` of n, counted from 0, all of which attach to the first. */
static inline int mesh_node_create(ls_node **out, ls_host *host, uint32_t id,
                                   uint32_t n, int start_timeout_ms)
{
    static const char *const first = "tcp://127.0.0.1:21500";
    struct ls_node_options options;
    char bind[32];
    ls_node_options_init(&options);
    (void)snprintf(bind, sizeof bind, "tcp://127.0.0.1:%u", 21500 + id);
    options.id = id;
    options.bind = bind;
    options.attach = &first;
    options.n_attach = 1;
    options.world_size = n;
    options.start_timeout_ms = start_timeout_ms;
    options.runtime = ls_host_runtime(host);
    return ls_node_create(out, &options);
}

#endif
