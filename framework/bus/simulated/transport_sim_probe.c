/* Probes of the simulated network. */
#include <stdio.h>
#include <stdlib.h>

#include "network_parts.h"

static void forget(ls_network *network, struct network_probe *probe)
{
    struct network_probe **at = &network->probes;
    while (*at != probe)
        at = &(*at)->next;
    *at = probe->next;
    free(probe);
}

static bool is_cut(const struct network_probe *probe)
{
    const struct network_host *here = probe->transport->host;
    const struct network_host *there = probe->place->host;
    return network_is_cut(here->network, here, there) ||
           network_is_cut(here->network, there, here);
}

static void answered(struct network_probe *probe, enum transport_probed answer)
{
    probe->answer = answer;
    probe->answered = true;
    probe->transport->n_answers++;
    network_to_wake(probe->transport);
}

static void nobody_answers(void *arg)
{
    struct network_probe *probe = arg;
    ls_network *network = probe->network;
    if (probe->transport == NULL)
        forget(network, probe);
    else
        answered(probe, TRANSPORT_UNKNOWN);
    network_wake(network);
}

static void answer(void *arg)
{
    struct network_probe *probe = arg;
    ls_network *network = probe->network;
    if (probe->transport == NULL)
        forget(network, probe);
    else if (ls_host_is_dead(probe->transport->host->host))
        answered(probe, TRANSPORT_REFUSES);
    else if (is_cut(probe))
        answered(probe, TRANSPORT_UNKNOWN);
    else
        answered(probe, probe->place->bound != NULL ? TRANSPORT_LISTENS
                                                    : TRANSPORT_REFUSES);
    network_wake(network);
}

/* The host of an address, as far as it is known. */
static bool exists(ls_network *network, const struct network_probe *probe)
{
    char name[LS_ENDPOINT_MAX + 1];
    return probe->place->host != NULL ||
           !transport_tcp_host(probe->place->endpoint, name, sizeof name) ||
           !network_is_name(name) || network_named(network, name) != NULL;
}

int sim_probe(transport *base, const char *endpoint)
{
    struct sim_transport *t = sim_of(base);
    ls_network *network = t->host->network;
    struct place *place = network_place(network, t->host, endpoint);
    struct network_probe *probe =
        place == NULL ? NULL : calloc(1, sizeof *probe);
    if (probe == NULL)
        return ls_error(LS_ENOMEM, "no memory for a probe");
    probe->network = network;
    probe->transport = t;
    probe->place = place;
    snprintf(probe->endpoint, sizeof probe->endpoint, "%s", endpoint);
    probe->next = network->probes;
    network->probes = probe;
    int64_t wait = NETWORK_PROBE_NS;
    const bool dead = ls_host_is_dead(t->host->host);
    const bool heard = dead || (!is_cut(probe) && exists(network, probe));
    if (heard)
        wait =
            network_delay(network,
                          network_path(network, t->host, place->host)) +
            network_delay(network, network_path(network, place->host, t->host));
    network_at(network, network_now(network) + wait,
               heard ? answer : nobody_answers, probe);
    return LS_OK;
}

void sim_probes_tell(struct sim_transport *t,
                     const struct transport_events *events, void *self)
{
    ls_network *network = t->host->network;
    struct network_probe *probe = network->probes;
    while (t->n_answers != 0 && probe != NULL) {
        if (probe->transport != t || !probe->answered) {
            probe = probe->next;
            continue;
        }
        const struct network_probe told = *probe;
        forget(network, probe);
        t->n_answers--;
        events->probed(self, told.endpoint, told.answer);
        probe = network->probes; /* it may have asked again */
    }
}

void sim_probes_forget(struct sim_transport *t)
{
    ls_network *network = t->host->network;
    struct network_probe *next = NULL;
    for (struct network_probe *p = network->probes; p != NULL; p = next) {
        next = p->next;
        if (p->transport != t)
            continue;
        p->transport = NULL;
        if (p->answered)
            forget(network, p);
    }
}
