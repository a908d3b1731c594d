/* Addresses: which there are, and who is bound where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "network_parts.h"

#define FIRST_FREE_PORT 32768u
#define LAST_FREE_PORT  60999u
#define ADDRESS_MAX     (2 * LS_ENDPOINT_MAX)

struct network_host *network_named(ls_network *network, const char *name)
{
    struct network_host *found = NULL;
    for (struct network_host *h = network->hosts; h != NULL; h = h->next)
        if (strcmp(ls_host_name(h->host), name) == 0 &&
            (found == NULL || ls_host_is_dead(found->host)))
            found = h;
    return found;
}

static bool is_any(const char *name)
{
    return strcmp(name, "*") == 0 || strcmp(name, "0.0.0.0") == 0;
}

bool network_is_name(const char *host)
{
    return host[strspn(host, "0123456789.")] != '\0' &&
           strchr(host, ':') == NULL && !is_any(host) &&
           strcmp(host, "localhost") != 0;
}

/* The one spelling of an address: what any interface of a host has is at its
 * name. */
static void canonical(const struct network_host *host, const char *endpoint,
                      char *out)
{
    char name[LS_ENDPOINT_MAX + 1];
    const char *port = strrchr(endpoint, ':');
    if (!transport_tcp_host(endpoint, name, sizeof name))
        snprintf(out, ADDRESS_MAX, "%s", endpoint);
    else if (is_any(name))
        snprintf(out, ADDRESS_MAX, "tcp://%s%s", ls_host_name(host->host),
                 port);
    else if (strcmp(name, "localhost") == 0)
        snprintf(out, ADDRESS_MAX, "tcp://127.0.0.1%s", port);
    else
        snprintf(out, ADDRESS_MAX, "%s", endpoint);
}

struct place *network_place(ls_network *network,
                            const struct network_host *host,
                            const char *endpoint)
{
    char address[ADDRESS_MAX], name[LS_ENDPOINT_MAX + 1];
    canonical(host, endpoint, address);
    const size_t size = strlen(address);
    const uint64_t hash = XXH3_64bits(address, size);
    struct hashed *at = table_first(&network->places, hash);
    for (; at != NULL; at = at->next) {
        struct place *place = (struct place *)at;
        if (strcmp(place->endpoint, address) == 0)
            return place;
    }
    struct place *place = malloc(sizeof *place + size + 1);
    if (place == NULL)
        return NULL;
    *place = (struct place){.in.hash = hash};
    memcpy(place->endpoint, address, size + 1);
    if (transport_tcp_host(address, name, sizeof name))
        place->host = network_named(network, name);
    if (table_add(&network->places, &place->in) != LS_OK) {
        free(place);
        return NULL;
    }
    return place;
}

/* ---- binding ----------------------------------------------------------- */

/* Whether a host may bind at this name. */
static bool is_own(const struct network_host *host, const char *name)
{
    return !network_is_name(name) ||
           strcmp(name, ls_host_name(host->host)) == 0;
}

static int no_memory(const char *bind)
{
    return ls_error(LS_ENOMEM, "no memory to bind %s", bind);
}

/* Errors: LS_EADDRINUSE, without a text; LS_ENOMEM. */
static int bind_one(struct sim_transport *t, const char *address)
{
    struct place *place = network_place(t->host->network, t->host, address);
    if (place == NULL)
        return no_memory(address);
    if (place->bound != NULL)
        return LS_EADDRINUSE;
    t->place = place;
    if (!ls_host_is_dead(t->host->host)) {
        place->bound = t;
        place->host = t->host;
    }
    return LS_OK;
}

static int in_use(const char *bind)
{
    return ls_error(LS_EADDRINUSE,
                    "cannot bind %s: another program has this address; end "
                    "it, or choose another port",
                    bind);
}

static int bind_ports(struct sim_transport *t, const char *bind, unsigned first,
                      unsigned last, char *endpoint)
{
    int host = (int)(strrchr(bind, ':') - bind);
    if (host > LS_ENDPOINT_MAX - 16)
        host = LS_ENDPOINT_MAX - 16;
    for (unsigned port = first; port <= last; port++) {
        snprintf(endpoint, LS_ENDPOINT_MAX + 1, "%.*s:%u", host, bind, port);
        const int status = bind_one(t, endpoint);
        if (status != LS_EADDRINUSE)
            return status;
    }
    if (first == last)
        return in_use(bind);
    return ls_error(LS_EADDRINUSE,
                    "cannot bind %s: every port of the range is in use", bind);
}

/* Any port that is free, as the system gives them. */
static int bind_any_port(struct sim_transport *t, const char *bind,
                         char *endpoint)
{
    ls_network *network = t->host->network;
    if (network->next_port < FIRST_FREE_PORT ||
        network->next_port > LAST_FREE_PORT)
        network->next_port = FIRST_FREE_PORT;
    const unsigned first = network->next_port;
    int status = bind_ports(t, bind, first, LAST_FREE_PORT, endpoint);
    if (status == LS_EADDRINUSE)
        status = bind_ports(t, bind, FIRST_FREE_PORT, first, endpoint);
    if (status == LS_OK)
        network->next_port =
            (unsigned)strtoul(strrchr(endpoint, ':') + 1, NULL, 10) + 1;
    return status;
}

static int bind_tcp(struct sim_transport *t, const char *bind, char *endpoint)
{
    char name[LS_ENDPOINT_MAX + 1];
    unsigned first, last;
    (void)transport_tcp_host(bind, name, sizeof name);
    if (!is_own(t->host, name))
        return ls_error(LS_EINVAL, "cannot bind %s: no address of this host",
                        bind);
    if (!transport_ports(bind, &first, &last))
        return transport_no_ports(bind);
    return first == 0 ? bind_any_port(t, bind, endpoint)
                      : bind_ports(t, bind, first, last, endpoint);
}

int network_bind(struct sim_transport *t, const char *bind, char *endpoint)
{
    if (strlen(bind) > LS_ENDPOINT_MAX)
        return ls_error(LS_EINVAL,
                        "cannot bind %s: the address is longer than %d bytes",
                        bind, LS_ENDPOINT_MAX);
    if (strncmp(bind, "tcp://", 6) == 0)
        return bind_tcp(t, bind, endpoint);
    const int status = bind_one(t, bind);
    if (status == LS_EADDRINUSE)
        return in_use(bind);
    if (status == LS_OK)
        snprintf(endpoint, LS_ENDPOINT_MAX + 1, "%s", bind);
    return status;
}
