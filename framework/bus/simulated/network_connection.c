/* Connections: how they are made, and how they end. */
#include <stdlib.h>
#include <string.h>

#include "network_parts.h"

const char *place_label(const struct place *place)
{
    return strncmp(place->endpoint, "tcp://", 6) == 0 ? place->endpoint + 6
                                                      : place->endpoint;
}

static void note(const struct connection *c, const char *what, const char *why)
{
    ls_simulation_note(c->network->simulation, "net: %s %s %s%s%s",
                       place_label(c->from), what, place_label(c->to),
                       why[0] != '\0' ? ": " : "", why);
}

/* ---- lives ------------------------------------------------------------- */

void connection_use(struct connection *connection)
{
    connection->users++;
}

void connection_let_go(struct connection *connection)
{
    if (--connection->users != 0)
        return;
    ls_network *network = connection->network;
    if (connection->before != NULL)
        connection->before->next = connection->next;
    else
        network->connections = connection->next;
    if (connection->next != NULL)
        connection->next->before = connection->before;
    free(connection->filters);
    free(connection);
}

static struct connection *create(struct sim_link *link, struct place *to)
{
    const struct sim_transport *t =
        (struct sim_transport *)link->base.transport;
    ls_network *network = t->host->network;
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->network = network;
    c->number = ++network->n_connections;
    c->users = 1; /* until it is buried */
    c->link = link;
    c->to = to;
    c->from = t->place;
    c->client = t->host;
    c->cut_since = -1;
    packet_list_init(&c->down.held);
    packet_list_init(&c->up.held);
    c->next = network->connections;
    if (c->next != NULL)
        c->next->before = c;
    network->connections = c;
    return c;
}

static void later(struct connection *c, int64_t wait_ns, void (*fn)(void *arg))
{
    connection_use(c);
    network_at(c->network, network_now(c->network) + wait_ns, fn, c);
}

static void bury(void *arg)
{
    struct connection *c = arg;
    c->users--; /* its own life; this call is the other */
    connection_let_go(c);
}

/* It goes a moment later: whoever is at work on it need not look whether it
 * still is. */
static void finish_if_gone(struct connection *c)
{
    if (c->finished || c->link != NULL || c->publisher != NULL)
        return;
    c->finished = true;
    packets_drop(c);
    later(c, 0, bury);
}

/* ---- making one -------------------------------------------------------- */

static bool cut(const struct connection *c)
{
    return network_is_cut(c->network, c->server, c->client) ||
           network_is_cut(c->network, c->client, c->server);
}

static int64_t delay(const struct connection *c, bool up)
{
    return network_delay(c->network,
                         up ? network_path(c->network, c->client, c->server)
                            : network_path(c->network, c->server, c->client));
}

static void attempt(void *arg);

static void refused(void *arg)
{
    struct connection *c = arg;
    if (c->link != NULL) {
        const int64_t wait = c->link->retry_ns;
        c->link->retry_ns =
            2 * wait < NETWORK_RETRY_MAX_NS ? 2 * wait : NETWORK_RETRY_MAX_NS;
        later(c, wait, attempt);
    }
    connection_let_go(c);
}

/* The subscriber knows that it is connected: it tells all that it wants. */
static void established(void *arg)
{
    struct connection *c = arg;
    if (c->link != NULL && !c->finished) {
        struct sim_link *link = c->link;
        c->open = true;
        link->retry_ns = NETWORK_RETRY_NS;
        c->network->stats.connects++;
        note(c, "connects to", "");
        for (uint32_t i = 0; i < link->n_subscriptions; i++)
            packet_send_control(c, true, PACKET_SUBSCRIBE,
                                link->subscriptions[i].topic);
    }
    connection_let_go(c);
}

static void accept_it(struct connection *c)
{
    struct sim_transport *publisher = c->to->bound;
    const struct sim_transport *dialler =
        (const struct sim_transport *)c->link->base.transport;
    c->publisher = publisher;
    c->proved = publisher->proves;
    c->id = dialler->id;
    c->server = publisher->host;
    c->down.cut = c->up.cut = false;
    c->cut_since = -1;
    c->next_out = publisher->outs;
    if (c->next_out != NULL)
        c->next_out->before_out = c;
    publisher->outs = c;
    const int64_t wait = delay(c, false);
    c->down.last_due = network_now(c->network) + wait;
    later(c, wait, established);
}

/* Who asks to be shown who connects refuses those that cannot. */
static bool is_let_in(const struct connection *c)
{
    const struct sim_transport *dialler =
        (const struct sim_transport *)c->link->base.transport;
    return !c->to->bound->proves || dialler->proves;
}

static void arrive(void *arg)
{
    struct connection *c = arg;
    if (c->link != NULL) {
        if (c->to->bound != NULL && !cut(c) && is_let_in(c))
            accept_it(c);
        else
            later(c, delay(c, false), refused);
    }
    connection_let_go(c);
}

static void attempt(void *arg)
{
    struct connection *c = arg;
    if (c->link != NULL) {
        c->server = c->to->host;
        if (cut(c))
            later(c, NETWORK_TIMEOUT_NS, refused);
        else
            later(c, delay(c, true), arrive);
    }
    connection_let_go(c);
}

int connection_dial(struct sim_link *link, struct place *to, int64_t wait_ns)
{
    struct connection *c = create(link, to);
    if (c == NULL)
        return ls_error(LS_ENOMEM, "no memory for a connection");
    link->connection = c;
    later(c, wait_ns, attempt);
    return LS_OK;
}

/* ---- ending one -------------------------------------------------------- */

static void link_end_gone(struct connection *c)
{
    if (c->open)
        c->network->stats.disconnects++;
    c->link->connection = NULL;
    c->link = NULL;
    finish_if_gone(c);
}

void connection_link_closed(struct sim_link *link)
{
    struct connection *c = link->connection;
    if (c == NULL)
        return;
    if (c->publisher != NULL) {
        note(c, "closes", "");
        packet_send_control(c, true, PACKET_CLOSE, NULL);
    }
    link_end_gone(c);
}

void connection_link_lost(struct connection *c)
{
    struct sim_link *link = c->link;
    if (link == NULL)
        return;
    if (c->open)
        note(c, "is disconnected from", "");
    struct place *to = c->to;
    const bool dead = ls_host_is_dead(c->client->host);
    const int64_t wait = link->retry_ns;
    link_end_gone(c);
    if (!dead && connection_dial(link, to, wait) != LS_OK)
        network_no_memory(c->network);
}

void connection_publisher_gone(struct connection *c)
{
    struct sim_transport *t = c->publisher;
    if (t == NULL)
        return;
    while (c->n_filters != 0) {
        struct topic *topic = c->filters[0]->topic;
        topic->users++;
        filter_remove(c, topic);
        sim_transport_notice(t, topic, false, c, false);
        topic_put(c->network, topic);
    }
    if (c->before_out != NULL)
        c->before_out->next_out = c->next_out;
    else
        t->outs = c->next_out;
    if (c->next_out != NULL)
        c->next_out->before_out = c->before_out;
    c->next_out = c->before_out = NULL;
    c->publisher = NULL;
    finish_if_gone(c);
}

void connection_break(struct connection *c, const char *why)
{
    if (c->finished || (c->publisher == NULL && !c->open))
        return; /* the latter is an attempt */
    note(c, "loses", why);
    connection_publisher_gone(c);
    connection_link_lost(c);
}

void connection_kill(struct connection *c, const struct network_host *host)
{
    if (c->client == host && c->link != NULL) {
        packets_drop(c);
        if (c->publisher != NULL)
            packet_send_control(c, true, PACKET_CLOSE, NULL);
        link_end_gone(c);
    }
    if (c->server == host && c->publisher != NULL) {
        packets_drop(c);
        if (c->link != NULL)
            packet_send_control(c, false, PACKET_CLOSE, NULL);
        connection_publisher_gone(c);
    }
}
