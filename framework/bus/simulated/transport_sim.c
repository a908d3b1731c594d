/* The network is simulated: a transport of it, as the bus sees it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network_parts.h"
#include "runtime_network.h"

/* ---- open and close ---------------------------------------------------- */

static struct notice *take_notice(struct sim_transport *t)
{
    struct notice *notice = t->notices;
    t->notices = notice->next;
    if (t->notices == NULL)
        t->last_notice = &t->notices;
    return notice;
}

static void drop_notices(struct sim_transport *t)
{
    while (t->notices != NULL) {
        struct notice *notice = take_notice(t);
        if (notice->packet != NULL)
            packet_lose(t->host->network, notice->packet);
        else
            topic_put(t->host->network, notice->topic);
        free(notice);
    }
}

/* What was published before still comes, and then that this end is gone. */
static void unbind_transport(transport *base)
{
    struct sim_transport *t = sim_of(base);
    transport_lock(base);
    t->closed = true;
    if (t->place != NULL && t->place->bound == t)
        t->place->bound = NULL;
    while (t->outs != NULL) {
        if (t->outs->link != NULL)
            packet_send_control(t->outs, false, PACKET_CLOSE, NULL);
        connection_publisher_gone(t->outs);
    }
    transport_unlock(base);
}

static void close_transport(transport *base)
{
    struct sim_transport *t = sim_of(base);
    unbind_transport(base);
    drop_notices(t);
    sim_probes_forget(t);
    network_forget(t);
    ls_cond_fini(&t->came);
    ls_mutex_fini(&t->lock);
    ls_mutex_fini(&base->lock);
    free(t);
}

static int open_locks(struct sim_transport *t, ls_runtime *runtime)
{
    int status = ls_mutex_init(&t->base.lock, runtime);
    if (status == LS_OK)
        status = ls_mutex_init(&t->lock, runtime);
    return status == LS_OK ? ls_cond_init(&t->came, runtime) : status;
}

static int open_transport(transport **out,
                          const struct transport_options *options,
                          char *endpoint)
{
    struct sim_transport *t = calloc(1, sizeof *t);
    if (t == NULL)
        return ls_error(LS_ENOMEM, "no memory for a transport");
    t->base.ops = &transport_sim_ops;
    t->base.runtime = options->runtime;
    t->host = ls_runtime_network(options->runtime);
    t->id = options->id;
    t->proves = options->security == NULL ||
                ls_security_mode(options->security) != LS_SECURITY_NONE;
    t->last_notice = &t->notices;
    t->last_ready = &t->ready;
    ls_network *network = t->host->network;
    t->number = ++network->n_transports;
    t->next = network->transports;
    network->transports = t;
    int status = open_locks(t, options->runtime);
    if (status == LS_OK)
        status = network_bind(t, options->bind, endpoint);
    if (status != LS_OK) {
        close_transport(&t->base);
        return status;
    }
    *out = &t->base;
    return LS_OK;
}

/* Nobody's password is a hash of it here. */
static void renew_transport(transport *base, uint64_t incarnation)
{
    (void)base;
    (void)incarnation;
}

/* ---- publishing -------------------------------------------------------- */

static int closed(void)
{
    return ls_error(LS_ECLOSED, "the endpoint is closed");
}

static int send_to_all(struct sim_transport *t, struct buffer *buffer)
{
    const uint64_t number = ++t->host->network->n_publishes;
    const struct filter *filter;
    size_t length = 0;
    while ((filter = filter_next(t, buffer->bytes, buffer->split, &length)) !=
           NULL)
        for (size_t i = 0; i < filter->n; i++) {
            struct connection *c = filter->connections[i];
            if (c->published == number)
                continue;
            c->published = number;
            const int status = packet_send_message(c, false, buffer);
            if (status != LS_OK)
                return status;
        }
    return LS_OK;
}

static int publish_frames(struct sim_transport *t, const void *head,
                          size_t head_size, const void *body, size_t body_size,
                          unsigned n_frames)
{
    if (t->closed)
        return closed();
    struct buffer *buffer =
        buffer_create(head, head_size, body, body_size, n_frames);
    if (buffer == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message");
    const int status = send_to_all(t, buffer);
    buffer_put(buffer);
    return status;
}

static int publish(transport *base, const void *head, size_t head_size,
                   const void *body, size_t body_size)
{
    return publish_frames(sim_of(base), head, head_size, body, body_size, 1);
}

/* It is copied all the same: a call of the simulation may have to let go of it,
 * and whatever release() does must not wait there. */
static int publish_owned(transport *base, const void *head, size_t head_size,
                         void *body, size_t body_size,
                         void (*release)(void *data, void *hint), void *hint)
{
    const int status =
        publish_frames(sim_of(base), head, head_size, body, body_size, 2);
    release(body, hint);
    return status;
}

static int republish(transport *base, const struct message *message)
{
    struct sim_transport *t = sim_of(base);
    return t->closed ? closed() : send_to_all(t, sim_message_buffer(message));
}

/* ---- what comes -------------------------------------------------------- */

/* by: NULL: nobody says it. Returns NULL: there is no memory. */
static struct notice *add_notice(struct sim_transport *t,
                                 const struct connection *by)
{
    struct notice *notice = calloc(1, sizeof *notice);
    if (notice == NULL) {
        network_no_memory(t->host->network);
        return NULL;
    }
    if (by != NULL)
        notice->by = (struct speaker){.spoken = true,
                                      .proved = by->proved,
                                      .id = by->id,
                                      .connection = by->number};
    *t->last_notice = notice;
    t->last_notice = &notice->next;
    network_to_wake(t);
    return notice;
}

void sim_transport_notice(struct sim_transport *t, struct topic *topic,
                          bool subscribed, const struct connection *by,
                          bool spoken)
{
    struct notice *notice = add_notice(t, spoken ? by : NULL);
    if (notice == NULL)
        return;
    notice->topic = topic;
    topic->users++;
    notice->subscribed = subscribed;
}

void sim_transport_message(struct sim_transport *t, struct packet *packet)
{
    struct notice *notice = add_notice(t, packet->connection);
    if (notice != NULL)
        notice->packet = packet;
    else
        packet_lose(t->host->network, packet);
}

static void tell_message(struct sim_transport *t, const struct notice *notice,
                         const struct transport_events *events, void *self)
{
    ls_network *network = t->host->network;
    const struct buffer *buffer = notice->packet->buffer;
    packet_read(network, notice->packet);
    transport_said(events, self, buffer->bytes, buffer->size, &notice->by);
    packet_free(network, notice->packet);
}

static void read_notices(struct sim_transport *t,
                         const struct transport_events *events, void *self)
{
    transport_lock(&t->base);
    while (t->notices != NULL) {
        struct notice *notice = take_notice(t);
        if (notice->packet != NULL) {
            tell_message(t, notice, events, self);
        } else {
            events->subscription(self, notice->topic->bytes,
                                 notice->topic->size, notice->subscribed,
                                 &notice->by);
            topic_put(t->host->network, notice->topic);
        }
        free(notice);
    }
    transport_unlock(&t->base);
}

static bool anything(const struct sim_transport *t)
{
    return t->woken || t->notices != NULL || t->ready != NULL ||
           t->n_answers != 0;
}

static void await(struct sim_transport *t, bool lent, int64_t deadline)
{
    int status = LS_OK;
    ls_mutex_lock(&t->lock);
    while ((lent != t->lent || !anything(t)) && status == LS_OK)
        status = ls_cond_wait(&t->came, &t->lock, deadline);
    t->woken = false;
    ls_mutex_unlock(&t->lock);
}

static bool poll_transport(transport *base, int64_t deadline,
                           const struct transport_events *events, void *self)
{
    struct sim_transport *t = sim_of(base);
    const bool lent = t->lent; /* to the caller */
    if (!lent)
        t->stands_until = deadline;
    if (!transport_rests(events, self, true))
        deadline = LS_NOW;
    await(t, lent, deadline);
    if (!lent) /* where another has the turn: until it gives that back */
        t->stands_until = LS_FOREVER;
    while (!transport_rests(events, self, false))
        await(t, lent, LS_FOREVER);
    if (t->notices != NULL)
        read_notices(t, events, self);
    if (t->n_answers != 0)
        sim_probes_tell(t, events, self);
    sim_links_read(t, events, self);
    return t->ready != NULL;
}

/* ---- those that connected here ----------------------------------------- */

static struct connection *find_out(const struct sim_transport *t,
                                   uint64_t number)
{
    struct connection *c = t->outs;
    while (c != NULL && c->number != number)
        c = c->next_out;
    return c;
}

static void name(const transport *base, uint64_t number,
                 char out[TRANSPORT_NAME_MAX])
{
    const struct connection *c =
        find_out((const struct sim_transport *)base, number);
    snprintf(out, TRANSPORT_NAME_MAX, "%s",
             c != NULL ? place_label(c->from) : "");
}

/* Memory is not what is simulated. */
static void allow(transport *base, size_t bytes)
{
    (void)base;
    (void)bytes;
}

static int64_t look(transport *base, int64_t now,
                    bool (*exempt)(void *self, uint64_t connection),
                    void (*told)(void *self, const char *name), void *self)
{
    (void)base;
    (void)now;
    (void)exempt;
    (void)told;
    (void)self;
    return LS_FOREVER;
}

static void wake(transport *base)
{
    struct sim_transport *t = sim_of(base);
    t->woken = true;
    ls_cond_broadcast(&t->came);
}

static bool lend(transport *base, bool lent, int64_t next)
{
    struct sim_transport *t = sim_of(base);
    t->lent = lent;
    if (!lent && (anything(t) || next < t->stands_until))
        wake(base);
    return true;
}

static void rung(void *self)
{
    wake(self);
}

static int lend_bell(transport *base, ls_memory *memory)
{
    return ls_memory_set_bell(memory, -1, rung, base);
}

static bool explain(transport *base, const char *endpoint, bool known,
                    uint32_t id, char *text, size_t size)
{
    const struct sim_transport *t = sim_of(base);
    char name[LS_ENDPOINT_MAX + 1];
    (void)known;
    (void)id;
    if (transport_tcp_host(endpoint, name, sizeof name) &&
        network_is_name(name) && network_named(t->host->network, name) == NULL)
        snprintf(text, size, "the network has no host \"%s\"", name);
    return false;
}

const struct transport_ops transport_sim_ops = {
    .open = open_transport,
    .close = close_transport,
    .unbind = unbind_transport,
    .renew = renew_transport,
    .publish = publish,
    .publish_owned = publish_owned,
    .republish = republish,
    .link_open = sim_link_open,
    .link_connect = sim_link_connect,
    .link_subscribe = sim_link_subscribe,
    .link_send = sim_link_send,
    .link_trust = sim_link_trust,
    .link_close = sim_link_close,
    .name = name,
    .allow = allow,
    .look = look,
    .probe = sim_probe,
    .take_in = poll_transport,
    .wake = wake,
    .lend = lend,
    .lend_bell = lend_bell,
    .explain = explain,
    .copy = sim_message_copy,
    .release = sim_message_release,
};
