/* The network as an object: making it, joining it, its figures. */
#include "lockstep/network.h"

#include <stdlib.h>

#include "network_parts.h"
#include "runtime_network.h"

int64_t network_now(const ls_network *network)
{
    return ls_simulation_now(network->simulation);
}

void network_no_memory(ls_network *network)
{
    ls_simulation_violation(network->simulation,
                            "the network of the simulation is out of memory");
}

void network_at(ls_network *network, int64_t at, void (*fn)(void *arg),
                void *arg)
{
    if (ls_simulation_at(network->simulation, at, fn, arg) != LS_OK)
        network_no_memory(network);
}

/* ---- waking ------------------------------------------------------------ */

void network_to_wake(struct sim_transport *t)
{
    ls_network *network = t->host->network;
    if (t->to_wake)
        return;
    t->to_wake = true;
    t->next_to_wake = network->to_wake;
    network->to_wake = t;
}

void network_wake(ls_network *network)
{
    while (network->to_wake != NULL) {
        struct sim_transport *t = network->to_wake;
        network->to_wake = t->next_to_wake;
        t->to_wake = false;
        ls_cond_broadcast(&t->came);
    }
}

void network_forget(struct sim_transport *t)
{
    ls_network *network = t->host->network;
    struct sim_transport **at = &network->transports;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    at = &network->to_wake;
    while (*at != NULL && *at != t)
        at = &(*at)->next_to_wake;
    if (*at == t)
        *at = t->next_to_wake;
}

/* ---- life -------------------------------------------------------------- */

int ls_network_create(ls_network **out, ls_simulation *simulation,
                      const struct ls_network_path *path)
{
    *out = NULL;
    const struct ls_network_path local = {.delay_ns = NETWORK_DELAY_NS};
    if (path == NULL)
        path = &local;
    int status = network_check_path(path);
    if (status != LS_OK)
        return status;
    ls_network *network = calloc(1, sizeof *network);
    if (network == NULL)
        return ls_error(LS_ENOMEM, "no memory for a network");
    network->simulation = simulation;
    network->local = local;
    ls_rng_seed(&network->rng, ls_rng_next(ls_simulation_random(simulation)),
                0);
    status = ls_network_shape(network, NULL, NULL, path);
    if (status != LS_OK) {
        free(network);
        return status;
    }
    *out = network;
    return LS_OK;
}

static void free_place(struct hashed *what)
{
    free(what);
}

void ls_network_destroy(ls_network **network_p)
{
    if (network_p == NULL || *network_p == NULL)
        return;
    ls_network *network = *network_p;
    while (network->packets != NULL) {
        struct packet *packet = network->packets;
        network->packets = packet->next;
        packet_free(network, packet);
    }
    while (network->connections != NULL) {
        struct connection *c = network->connections;
        network->connections = c->next;
        free(c->filters);
        free(c);
    }
    while (network->probes != NULL) {
        struct network_probe *probe = network->probes;
        network->probes = probe->next;
        free(probe);
    }
    while (network->hosts != NULL) {
        struct network_host *host = network->hosts;
        network->hosts = host->next;
        ls_runtime_set_network(ls_host_runtime(host->host), NULL);
        free(host);
    }
    network_topics_free(network);
    table_clear(&network->places, free_place);
    network_rules_free(&network->paths);
    network_rules_free(&network->cuts);
    free(network);
    *network_p = NULL;
}

int ls_network_join(ls_network *network, ls_host *host)
{
    ls_runtime *runtime = ls_host_runtime(host);
    if (ls_runtime_network(runtime) != NULL)
        return ls_error(LS_EEXIST, "host \"%s\" has joined a network before",
                        ls_host_name(host));
    struct network_host *joined = calloc(1, sizeof *joined);
    if (joined == NULL)
        return ls_error(LS_ENOMEM, "no memory for a host");
    joined->network = network;
    joined->host = host;
    joined->next = network->hosts;
    network->hosts = joined;
    ls_runtime_set_network(runtime, joined);
    return LS_OK;
}

void ls_network_kill(ls_network *network, ls_host *host)
{
    struct network_host *dead = ls_runtime_network(ls_host_runtime(host));
    ls_simulation_note(network->simulation, "net: kill %s", ls_host_name(host));
    ls_host_kill(host);
    if (dead == NULL)
        return;
    for (struct sim_transport *t = network->transports; t != NULL; t = t->next)
        if (t->host == dead && t->place->bound == t)
            t->place->bound = NULL;
    for (struct connection *c = network->connections; c != NULL; c = c->next)
        connection_kill(c, dead);
    network_wake(network);
}

void ls_network_stats(const ls_network *network, struct ls_network_stats *out)
{
    *out = network->stats;
}
