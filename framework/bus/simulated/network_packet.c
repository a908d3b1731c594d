/* What is on its way: when it comes, and what may happen to it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "network_parts.h"
#include "wire.h"

#define CLOSE_BYTES    64 /* what control takes on the line */
#define OVERTAKEN_MORE (100 * LS_NS_PER_US)

/* ---- buffers ----------------------------------------------------------- */

struct buffer *buffer_create(const void *head, size_t head_size,
                             const void *body, size_t body_size,
                             unsigned n_frames)
{
    struct buffer *buffer = malloc(sizeof *buffer + head_size + body_size);
    if (buffer == NULL)
        return NULL;
    *buffer = (struct buffer){.users = 1,
                              .n_frames = n_frames,
                              .size = head_size + body_size,
                              .split = n_frames == 2 ? head_size
                                                     : head_size + body_size};
    memcpy(buffer->bytes, head, head_size);
    if (body_size != 0)
        memcpy(buffer->bytes + head_size, body, body_size);
    return buffer;
}

void buffer_put(struct buffer *buffer)
{
    if (--buffer->users == 0)
        free(buffer);
}

/* ---- lists ------------------------------------------------------------- */

void packet_list_init(struct packet_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

void packet_list_append(struct packet_list *list, struct packet *packet)
{
    packet->then = NULL;
    *list->last = packet;
    list->last = &packet->then;
}

struct packet *packet_list_take(struct packet_list *list)
{
    struct packet *packet = list->first;
    if (packet == NULL)
        return NULL;
    list->first = packet->then;
    if (list->first == NULL)
        list->last = &list->first;
    return packet;
}

static void under_way(ls_network *network, struct packet *packet)
{
    packet->next = network->packets;
    packet->before = NULL;
    if (packet->next != NULL)
        packet->next->before = packet;
    network->packets = packet;
}

static void not_under_way(ls_network *network, struct packet *packet)
{
    if (packet->before != NULL)
        packet->before->next = packet->next;
    else
        network->packets = packet->next;
    if (packet->next != NULL)
        packet->next->before = packet->before;
}

void packet_free(ls_network *network, struct packet *packet)
{
    if (packet->buffer != NULL)
        buffer_put(packet->buffer);
    if (packet->topic != NULL)
        topic_put(network, packet->topic);
    free(packet);
}

/* ---- the log ----------------------------------------------------------- */

static const char *kind_name(enum wire_kind kind)
{
    static const char *const names[] = {
        [0] = "?",
        [WIRE_KIND_EVENT] = "event",
        [WIRE_KIND_CHUNK] = "chunk",
        [WIRE_KIND_HEARTBEAT] = "heartbeat",
        [WIRE_KIND_CREDIT] = "credit",
        [WIRE_KIND_CHANNEL] = "channel",
        [WIRE_KIND_FAREWELL] = "farewell",
        [WIRE_KIND_BATCH] = "batch",
        [WIRE_KIND_VERDICT] = "verdict",
        [WIRE_KIND_RELIABLE] = "reliable",
        [WIRE_KIND_ACK] = "ack",
        [WIRE_KIND_PROOF] = "proof",
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static void note_message(const struct connection *c, bool up, const char *what,
                         const struct buffer *buffer)
{
    struct wire_header header;
    char topic_class;
    uint32_t to = 0;
    ls_simulation *simulation = c->network->simulation;
    const char *const from = place_label(up ? c->from : c->to);
    const char *const at = place_label(up ? c->to : c->from);
    if (wire_header_read(buffer->bytes, buffer->split, &topic_class, &to,
                         &header) != LS_OK) {
        ls_simulation_note(simulation, "net: %s -> %s %s %zu bytes", from, at,
                           what, buffer->size);
        return;
    }
    ls_simulation_note(
        simulation,
        "net: %s -> %s %s %s %.*s of %" PRIu32 " #%" PRIu64 " %zu bytes", from,
        at, what, kind_name(header.kind), (int)header.name_size,
        header.name != NULL ? header.name : "", header.origin, header.sequence,
        buffer->size);
}

/* ---- arriving ---------------------------------------------------------- */

static struct way *way_of(struct packet *packet)
{
    return packet->up ? &packet->connection->up : &packet->connection->down;
}

/* It is on the line no more. */
static void account_off(const struct packet *packet)
{
    struct connection *c = packet->connection;
    c->messages--;
    c->bytes -= packet->buffer->size;
}

static void stop_waiting(ls_network *network, const struct packet *packet)
{
    network->stats.waiting--;
    network->stats.waiting_bytes -= packet->buffer->size;
}

void packet_read(ls_network *network, const struct packet *packet)
{
    stop_waiting(network, packet);
    network->stats.delivered++;
}

void packet_lose(ls_network *network, struct packet *packet)
{
    stop_waiting(network, packet);
    network->stats.broken++;
    packet_free(network, packet);
}

static void deliver_message(struct packet *packet)
{
    struct connection *c = packet->connection;
    ls_network *network = c->network;
    struct way *way = way_of(packet);
    account_off(packet);
    if (packet->up ? c->publisher == NULL : c->link == NULL) {
        packet_lose(network, packet);
        return;
    }
    if (packet->sequence < way->seen && !packet->again)
        network->stats.reordered++;
    if (packet->sequence > way->seen)
        way->seen = packet->sequence;
    note_message(c, packet->up, packet->again ? "again" : "comes",
                 packet->buffer);
    if (packet->up)
        sim_transport_message(c->publisher, packet);
    else
        sim_link_message(c->link, packet);
}

static void deliver_subscription(struct packet *packet)
{
    struct connection *c = packet->connection;
    const bool on = packet->kind == PACKET_SUBSCRIBE;
    if (c->publisher != NULL) {
        if (on && filter_add(c, packet->topic) != LS_OK)
            network_no_memory(c->network);
        if (!on)
            filter_remove(c, packet->topic);
        sim_transport_notice(c->publisher, packet->topic, on, c, true);
    }
    packet_free(c->network, packet);
}

static void deliver(struct packet *packet)
{
    struct connection *c = packet->connection;
    const bool up = packet->up;
    not_under_way(c->network, packet);
    if (packet->kind == PACKET_MESSAGE) {
        deliver_message(packet);
    } else if (packet->kind != PACKET_CLOSE) {
        deliver_subscription(packet);
    } else {
        packet_free(c->network, packet);
        if (up)
            connection_publisher_gone(c);
        else
            connection_link_lost(c);
    }
    connection_let_go(c);
}

static void forget(struct packet *packet)
{
    struct connection *c = packet->connection;
    not_under_way(c->network, packet);
    packet_free(c->network, packet);
    connection_let_go(c);
}

static void arrive(void *arg)
{
    struct packet *packet = arg;
    struct way *way = way_of(packet);
    ls_network *network = packet->connection->network;
    if (packet->sequence <= way->dropped)
        forget(packet);
    else if (way->cut || way->held.first != NULL)
        packet_list_append(&way->held, packet);
    else
        deliver(packet);
    network_wake(network);
}

static void release_way(struct way *way)
{
    while (!way->cut && way->held.first != NULL) {
        struct packet *packet = packet_list_take(&way->held);
        if (packet->sequence <= way->dropped)
            forget(packet);
        else
            deliver(packet);
    }
}

void packets_release_held(struct connection *connection)
{
    release_way(&connection->down);
    release_way(&connection->up);
}

static void drop_way(struct way *way)
{
    struct packet *packet;
    way->dropped = way->sent;
    while ((packet = packet_list_take(&way->held)) != NULL)
        forget(packet);
}

void packets_drop(struct connection *connection)
{
    struct ls_network_stats *stats = &connection->network->stats;
    stats->broken += connection->messages;
    stats->waiting -= connection->messages;
    stats->waiting_bytes -= connection->bytes;
    connection->messages = connection->bytes = 0;
    drop_way(&connection->down);
    drop_way(&connection->up);
}

/* ---- sending ----------------------------------------------------------- */

static const struct ls_network_path *path_of(struct connection *c, bool up)
{
    struct way *way = up ? &c->up : &c->down;
    if (way->path == NULL || way->version != c->network->version) {
        way->path = up ? network_path(c->network, c->client, c->server)
                       : network_path(c->network, c->server, c->client);
        way->version = c->network->version;
    }
    return way->path;
}

/* When something that is sent now comes. overtaken: others may come first. */
static int64_t due(struct connection *c, bool up, size_t size, bool overtaken)
{
    ls_network *network = c->network;
    const struct ls_network_path *path = path_of(c, up);
    struct way *way = up ? &c->up : &c->down;
    int64_t at = network_now(network);
    if (path->bytes_per_s != 0) {
        if (way->free_at > at)
            at = way->free_at;
        at += (int64_t)((double)size * 1e9 / (double)path->bytes_per_s);
        way->free_at = at;
    }
    at += network_delay(network, path);
    if (overtaken) {
        const int64_t more =
            2 * (path->delay_ns + path->jitter_ns) + OVERTAKEN_MORE;
        if (at < way->last_due)
            at = way->last_due;
        return at + (int64_t)ls_rng_below(&network->rng, (uint64_t)more);
    }
    if (at < way->last_due)
        at = way->last_due;
    way->last_due = at;
    return at;
}

static struct packet *create(struct connection *c, bool up,
                             enum packet_kind kind)
{
    struct packet *packet = calloc(1, sizeof *packet);
    if (packet == NULL)
        return NULL;
    packet->connection = c;
    packet->number = c->number;
    packet->kind = kind;
    packet->up = up;
    connection_use(c);
    under_way(c->network, packet);
    return packet;
}

static bool happens(ls_network *network, double probability)
{
    return probability > 0 && ls_rng_double(&network->rng) < probability;
}

static int send_copy(struct connection *c, bool up, struct buffer *buffer,
                     uint64_t sequence, bool again, bool overtaken)
{
    ls_network *network = c->network;
    struct packet *packet = create(c, up, PACKET_MESSAGE);
    if (packet == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message");
    packet->buffer = buffer;
    packet->sequence = sequence;
    packet->again = again;
    buffer->users++;
    c->messages++;
    c->bytes += buffer->size;
    network->stats.waiting++;
    network->stats.waiting_bytes += buffer->size;
    network_at(network, due(c, up, buffer->size, overtaken), arrive, packet);
    return LS_OK;
}

int packet_send_message(struct connection *connection, bool up,
                        struct buffer *buffer)
{
    ls_network *network = connection->network;
    const struct ls_network_path *path = path_of(connection, up);
    const uint64_t sequence =
        up ? ++connection->up.sent : ++connection->down.sent;
    network->stats.sent++;
    if (happens(network, path->loss)) {
        network->stats.lost++;
        note_message(connection, up, "loses", buffer);
        return LS_OK;
    }
    const bool overtaken = happens(network, path->reorder);
    const bool twice = happens(network, path->duplicate);
    int status = send_copy(connection, up, buffer, sequence, false, overtaken);
    if (status == LS_OK && twice) {
        network->stats.duplicated++;
        status = send_copy(connection, up, buffer, sequence, true, false);
    }
    return status;
}

void packet_send_control(struct connection *connection, bool up,
                         enum packet_kind kind, struct topic *topic)
{
    ls_network *network = connection->network;
    struct packet *packet = create(connection, up, kind);
    if (packet == NULL) {
        network_no_memory(network);
        return;
    }
    packet->sequence = up ? ++connection->up.sent : ++connection->down.sent;
    packet->topic = topic;
    if (topic != NULL)
        topic->users++;
    const size_t size = topic != NULL ? topic->size : CLOSE_BYTES;
    network_at(network, due(connection, up, size, false), arrive, packet);
}
