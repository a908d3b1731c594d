/* Links of the simulated network: what they subscribe to, and what they read.
 */
#include <stdlib.h>
#include <string.h>

#include "network_parts.h"

#define READ_BUDGET 512 /* messages of one link before others are looked at */

static struct sim_link *link_of(transport_link *link)
{
    return (struct sim_link *)link;
}

static struct sim_transport *transport_of(const struct sim_link *link)
{
    return sim_of(link->base.transport);
}

/* ---- open and close ---------------------------------------------------- */

int sim_link_open(transport *t, transport_link **out, void *owner)
{
    struct sim_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return ls_error(LS_ENOMEM, "no memory for a link");
    link->base.transport = t;
    link->owner = owner;
    link->retry_ns = NETWORK_RETRY_NS;
    packet_list_init(&link->unread);
    *out = &link->base;
    return LS_OK;
}

int sim_link_connect(transport_link *base, const char *endpoint, bool known,
                     uint32_t id)
{
    struct sim_link *link = link_of(base);
    (void)known; /* who answers says so, and is believed in a simulation */
    (void)id;
    struct sim_transport *t = transport_of(link);
    struct place *place = network_place(t->host->network, t->host, endpoint);
    if (place == NULL)
        return ls_error(LS_ENOMEM, "no memory to connect to %s", endpoint);
    return connection_dial(link, place, 0);
}

static bool take_out(struct sim_link **list, struct sim_link *link,
                     struct sim_link ***last)
{
    while (*list != NULL && *list != link)
        list = &(*list)->next_ready;
    if (*list == NULL)
        return false;
    *list = link->next_ready;
    if (*list == NULL && last != NULL)
        *last = list;
    return true;
}

static void make_unready(struct sim_link *link)
{
    struct sim_transport *t = transport_of(link);
    if (!take_out(&t->ready, link, &t->last_ready))
        (void)take_out(&t->todo, link, NULL);
    link->ready = false;
}

/* What was said before still comes, and then that this end is gone. */
void sim_link_close(transport_link *base, bool linger)
{
    struct sim_link *link = link_of(base);
    (void)linger;
    ls_network *network = transport_of(link)->host->network;
    struct packet *packet;
    connection_link_closed(link);
    struct sim_transport *t = transport_of(link);
    if (link->ready)
        make_unready(link);
    if (t->reading == link)
        t->reading = NULL;
    while ((packet = packet_list_take(&link->unread)) != NULL)
        packet_lose(network, packet);
    for (uint32_t i = 0; i < link->n_subscriptions; i++)
        topic_put(network, link->subscriptions[i].topic);
    free(link->subscriptions);
    free(link);
}

/* ---- subscriptions ----------------------------------------------------- */

/* How many come before these bytes. */
static uint32_t place_of(const struct sim_link *link, const uint8_t *topic,
                         size_t size)
{
    uint32_t low = 0, high = link->n_subscriptions;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (topic_compare(link->subscriptions[middle].topic, topic, size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct sim_link *link, uint32_t at,
                  const uint8_t *topic, size_t size)
{
    return at < link->n_subscriptions &&
           topic_compare(link->subscriptions[at].topic, topic, size) == 0;
}

static bool insert(struct sim_link *link, uint32_t at, const uint8_t *bytes,
                   size_t size)
{
    if (link->n_subscriptions == link->capacity) {
        const uint32_t n = link->capacity + link->capacity / 2 + 4;
        struct subscription *grown =
            realloc(link->subscriptions, n * sizeof *grown);
        if (grown == NULL)
            return false;
        link->subscriptions = grown;
        link->capacity = n;
    }
    struct topic *topic =
        topic_get(transport_of(link)->host->network, bytes, size);
    if (topic == NULL)
        return false;
    struct subscription *place = &link->subscriptions[at];
    memmove(place + 1, place, (link->n_subscriptions - at) * sizeof *place);
    *place = (struct subscription){.topic = topic};
    link->n_subscriptions++;
    return true;
}

static void tell(struct sim_link *link, enum packet_kind kind,
                 struct topic *topic)
{
    if (link->connection != NULL && link->connection->open)
        packet_send_control(link->connection, true, kind, topic);
}

/* Each time is told, but only the last that is taken back: as libzmq does. */
int sim_link_subscribe(transport_link *base, const uint8_t *topic, size_t size,
                       bool subscribe)
{
    struct sim_link *link = link_of(base);
    if (size == 0 || size >= NETWORK_LENGTHS)
        return ls_error(LS_EINVAL, "a topic of %zu bytes", size);
    const uint32_t at = place_of(link, topic, size);
    const bool there = is_at(link, at, topic, size);
    if (subscribe) {
        if (!there && !insert(link, at, topic, size))
            return ls_error(LS_ENOMEM, "no memory for a subscription");
        link->subscriptions[at].n++;
        tell(link, PACKET_SUBSCRIBE, link->subscriptions[at].topic);
    } else if (there && --link->subscriptions[at].n == 0) {
        struct subscription *place = &link->subscriptions[at];
        struct topic *gone = place->topic;
        link->n_subscriptions--;
        memmove(place, place + 1, (link->n_subscriptions - at) * sizeof *place);
        tell(link, PACKET_UNSUBSCRIBE, gone);
        topic_put(transport_of(link)->host->network, gone);
    }
    return LS_OK;
}

/* ---- messages ---------------------------------------------------------- */

static void make_ready(struct sim_link *link)
{
    struct sim_transport *t = transport_of(link);
    if (link->ready)
        return;
    link->ready = true;
    link->next_ready = NULL;
    *t->last_ready = link;
    t->last_ready = &link->next_ready;
}

void sim_link_message(struct sim_link *link, struct packet *packet)
{
    packet_list_append(&link->unread, packet);
    make_ready(link);
    network_to_wake(transport_of(link));
}

static void put_buffer(struct message *message, struct buffer *buffer,
                       uint64_t connection)
{
    memcpy(message->frames[0].os.bytes, &buffer, sizeof(struct buffer *));
    memcpy(message->frames[1].os.bytes, &connection, sizeof connection);
    message->transport = &transport_sim_ops;
    message->n_frames = buffer->n_frames;
    message->head = buffer->bytes;
    message->head_size = buffer->split;
    message->tail =
        buffer->n_frames == 2 ? buffer->bytes + buffer->split : NULL;
    message->tail_size = buffer->size - buffer->split;
}

struct buffer *sim_message_buffer(const struct message *message)
{
    struct buffer *buffer;
    memcpy(&buffer, message->frames[0].os.bytes, sizeof(struct buffer *));
    return buffer;
}

static uint64_t connection_of(const struct message *message)
{
    uint64_t connection;
    memcpy(&connection, message->frames[1].os.bytes, sizeof connection);
    return connection;
}

int sim_link_send(transport_link *base, const void *head, size_t head_size,
                  const void *body, size_t body_size)
{
    const struct sim_link *link = link_of(base);
    if (link->connection == NULL || !link->connection->open)
        return LS_EAGAIN;
    struct buffer *buffer = buffer_create(head, head_size, body, body_size, 1);
    if (buffer == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message");
    const int status = packet_send_message(link->connection, true, buffer);
    buffer_put(buffer);
    return status;
}

void sim_link_trust(transport_link *base, const struct message *message)
{
    link_of(base)->trusted = connection_of(message);
}

void sim_message_copy(struct message *copy, const struct message *of)
{
    struct buffer *buffer = sim_message_buffer(of);
    buffer->users++;
    put_buffer(copy, buffer, connection_of(of));
}

void sim_message_release(struct message *message)
{
    buffer_put(sim_message_buffer(message));
    message->n_frames = 0;
}

/* Whoever is told of a message may close the link that it came over. */
static void read_link(struct sim_transport *t, struct sim_link *link,
                      const struct transport_events *events, void *self)
{
    ls_network *network = t->host->network;
    t->reading = link;
    for (unsigned i = 0; i < READ_BUDGET && link->unread.first != NULL; i++) {
        struct message *message = events->take(self);
        if (message == NULL)
            break;
        struct packet *packet = packet_list_take(&link->unread);
        put_buffer(message, packet->buffer, packet->number);
        message->trusted = packet->number == link->trusted;
        packet_read(network, packet);
        packet->buffer = NULL; /* the message has it */
        packet_free(network, packet);
        events->message(self, link->owner, message);
        if (t->reading == NULL)
            return;
    }
    if (link->unread.first != NULL)
        make_ready(link);
}

void sim_links_read(struct sim_transport *t,
                    const struct transport_events *events, void *self)
{
    t->todo = t->ready;
    t->ready = NULL;
    t->last_ready = &t->ready;
    while (t->todo != NULL) {
        struct sim_link *link = t->todo;
        t->todo = link->next_ready;
        link->ready = false;
        read_link(t, link, events, self);
    }
    t->reading = NULL;
}
