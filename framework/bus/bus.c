/* The bus thread: reads everything that comes, keeps the world, and hands
 * events to the dispatch thread. It never runs user code, so nothing that a
 * handler does can starve presence or barriers. */
#include "incoming.h"

#include <stdlib.h>
#include <string.h>

#define ANNOUNCE_NS      (LS_NS_PER_MS) /* heartbeats on change: not closer */
#define ANNOUNCE_PEER_NS (50 * LS_NS_PER_US)

struct wire_header bus_header(const ls_node *node, enum wire_kind kind)
{
    return (struct wire_header){.kind = kind,
                                .job = node->job_hash,
                                .origin = node->options.id,
                                .incarnation = node->incarnation};
}

int bus_send(ls_node *node, uint32_t to, struct wire_header *header,
             const void *data, size_t size)
{
    uint8_t head[WIRE_HEAD_MAX];
    size_t n = wire_topic_inbox(head, to);
    header->data = size != 0 ? data : head; /* inside the frame */
    header->size = size;
    n += wire_header_write(head + n, header);
    return transport_publish(node->transport, head, n, data, size);
}

/* ---- what comes over a link -------------------------------------------- */

void bus_drop(ls_node *node, struct message *message)
{
    /* Into the spare ones of this thread: it is still warm. */
    transport_release(message);
    message_list_append(&node->spare, message);
}

void bus_refuse(ls_node *node, struct link *link)
{
    transport_lock(node->transport);
    world_refuse(node, link);
    transport_unlock(node->transport);
}

bool bus_payload(const struct message *message,
                 const struct wire_header *header, const uint8_t **data,
                 size_t *size)
{
    if (message->n_frames != (header->data != NULL ? 1u : 2u))
        return false;
    *data = header->data != NULL ? header->data : message->tail;
    *size = header->data != NULL ? header->size : message->tail_size;
    return *size <= WIRE_CHUNK_BYTES;
}

static void control_message(ls_node *node, struct peer *origin,
                            const struct wire_header *header)
{
    int status;
    if (header->kind != WIRE_KIND_CREDIT && header->kind != WIRE_KIND_ACK)
        atomic_store(&node->chores, true);
    transport_lock(node->transport);
    switch (header->kind) {
    case WIRE_KIND_HEARTBEAT:
        status = heartbeat_read(node, origin, header);
        if (status == LS_EMISMATCH)
            world_mismatch(node, origin->link);
        else if (status != LS_OK)
            world_refuse(node, origin->link);
        else
            world_update(node, origin);
        break;
    case WIRE_KIND_CREDIT:
        if (header->sequence == node->incarnation)
            flow_raise(node, origin, header->limit_messages,
                       header->limit_bytes);
        break;
    case WIRE_KIND_ACK:
        streams_acknowledged(node, origin, header);
        break;
    case WIRE_KIND_FAREWELL:
        world_farewell(node, origin, header->reason);
        break;
    case WIRE_KIND_VERDICT:
        verdict_read(node, origin, header);
        break;
    default:
        break;
    }
    transport_unlock(node->transport);
}

static bool relayed_control(ls_node *node, struct peer *direct,
                            struct message *message,
                            const struct wire_header *header, bool inbox,
                            uint32_t to)
{
    const bool elsewhere = inbox && to != node->options.id;
    if (node->hub && (elsewhere || header->kind == WIRE_KIND_FAREWELL)) {
        transport_lock(node->transport);
        (void)relay_message(node, direct, message, header, to, inbox);
        transport_unlock(node->transport);
    }
    return elsewhere;
}

/* What a hub relays comes back to its sender too, in the hub's account. */
static void echo(ls_node *node, const struct link *link,
                 const struct message *message,
                 const struct wire_header *header)
{
    const uint8_t *data;
    size_t size;
    if (header->origin == node->options.id && link->peer != NULL &&
        header->incarnation == node->incarnation &&
        (header->kind == WIRE_KIND_EVENT || header->kind == WIRE_KIND_CHUNK) &&
        bus_payload(message, header, &data, &size))
        incoming_pass_over(node, link->peer, size);
}

/* Returns whether the message was kept. */
static bool on_link(ls_node *node, struct link *link, struct message *message)
{
    struct wire_header header;
    char topic_class;
    uint32_t to = 0;
    if (message->n_frames > 2 ||
        wire_header_read(message->head, message->head_size, &topic_class, &to,
                         &header) != LS_OK) {
        bus_refuse(node, link);
        return false;
    }
    struct peer *origin = link->peer;
    if (origin == NULL || origin->id != header.origin ||
        origin->incarnation != header.incarnation || member_has_ended(origin) ||
        origin->barred || header.job != node->job_hash || link->closing) {
        transport_lock(node->transport);
        origin = link->closing ? NULL : world_accept(node, link, &header);
        atomic_store(&node->chores, true);
        transport_unlock(node->transport);
    }
    if (origin == NULL) {
        echo(node, link, message, &header);
        return false;
    }
    const bool inbox = topic_class == WIRE_INBOX;
    atomic_store_explicit(&link->peer->heard_at, node->now,
                          memory_order_relaxed);
    struct incoming in = {
        .direct = link->peer, .origin = origin, .header = &header};
    if (header.kind == WIRE_KIND_BATCH)
        return incoming_batch(node, &in, message, inbox);
    if (header.kind == WIRE_KIND_EVENT || header.kind == WIRE_KIND_CHUNK)
        return incoming_event(node, &in, message, inbox, to);
    if (relayed_control(node, link->peer, message, &header, inbox, to))
        return false;
    if (header.kind == WIRE_KIND_RELIABLE)
        return streams_message(node, origin, &header, message);
    if (header.kind == WIRE_KIND_CHANNEL)
        channels_message(node, &header, header.data, header.size);
    else
        control_message(node, origin, &header);
    return false;
}

static void on_message(void *self, void *owner, struct message *message)
{
    ls_node *node = self;
    if (owner == NULL || !on_link(node, owner, message))
        bus_drop(node, message);
}

static struct message *on_take(void *self)
{
    ls_node *node = self;
    return message_take(node->pool, &node->spare);
}

static void on_probed(void *self, const char *endpoint,
                      enum transport_probed answer)
{
    ls_node *node = self;
    transport_lock(node->transport);
    world_probed(node, endpoint, answer);
    transport_unlock(node->transport);
}

static void on_subscription(void *self, const uint8_t *topic, size_t size,
                            bool subscribed)
{
    ls_node *node = self;
    atomic_store(&node->chores, true);
    if (topic[0] == WIRE_PRESENCE)
        world_presence(node, topic, size, subscribed);
    else if (topic[0] == WIRE_LISTEN)
        world_listen(node, topic, size, subscribed);
    else if (topic[0] != WIRE_CONTROL && topic[0] != WIRE_EVENT &&
             topic[0] != WIRE_INBOX) {
        (void)ls_error(LS_EPROTO, "a subscription of an unknown class");
        world_refuse(node, NULL);
    }
}

/* ---- the loop ---------------------------------------------------------- */

/* Heartbeats are due by the clock, and soon after a change; returns when. */
static int64_t announce(ls_node *node, int64_t now)
{
    int64_t due = node->heartbeat_at;
    if (node->announce) {
        const int64_t soon = node->announced_at + ANNOUNCE_NS +
                             (int64_t)node->n_peers * ANNOUNCE_PEER_NS;
        due = soon < due ? soon : due;
    }
    if (due <= now) {
        heartbeat_send(node, now);
        due = node->heartbeat_at;
    }
    if (!node->leaving)
        return due;
    if (node->farewell_at <= now)
        farewell_send(node, now);
    return node->farewell_at < due ? node->farewell_at : due;
}

/* Links belong to this thread: whoever joins only asks for them. */
static void dial_attached(ls_node *node)
{
    if (!atomic_exchange(&node->dial_wanted, false))
        return;
    for (size_t i = 0; node->attach[i] != NULL; i++)
        if (link_dial(node, node->attach[i], true, NULL) != LS_OK)
            world_fail(node, LS_EINVAL, ls_error_text());
}

/* Heartbeats, the world, timers, what others asked for; returns when to look
 * again at the latest. */
static int64_t look_after(ls_node *node)
{
    const int64_t now = node->now;
    transport_lock(node->transport);
    batch_flush(node);
    dial_attached(node);
    int64_t next = world_tick(node, now);
    rejoin(node);
    world_probe(node);
    events_sweep(node);
    const int64_t resend = streams_tick(node, now);
    links_close_marked(node);
    const int64_t due = announce(node, now);
    const bool room = node->room_made;
    node->room_made = false;
    transport_unlock(node->transport);
    if (room)
        channels_room(node);
    links_sync_interests(node);
    const int64_t timer = channels_tick(node, now);
    world_tell_news(node);
    next = due < next ? due : next;
    next = resend < next ? resend : next;
    return timer < next ? timer : next;
}

void bus_thread_main(void *self)
{
    static const struct transport_events events = {.subscription =
                                                       on_subscription,
                                                   .message = on_message,
                                                   .take = on_take,
                                                   .probed = on_probed};
    ls_node *node = self;
    ls_log_set_node(node->options.id);
    int64_t next = LS_NOW;
    node->now = ls_now(node->runtime);
    while (!atomic_load(&node->stopping)) {
        (void)transport_poll(node->transport, next, &events, node);
        node->now = ls_now(node->runtime);
        /* Only when there is need: the task thread that a message has just
         * woken wants the same lock. */
        if (atomic_exchange(&node->chores, false) || node->now >= next)
            next = look_after(node);
        if (node->arrived.n != 0)
            dispatch_add(node, &node->arrived);
    }
    transport_lock(node->transport);
    node->bus_ended = true;
    ls_cond_broadcast(&node->changed);
    transport_unlock(node->transport);
}
