/* What a hub passes on of leaves that it has not shown here yet.
 *
 * The presence of a leaf and what it sends come over two connections, and
 * either may come first. A leaf that is not ready is not heard; so what comes
 * first is kept, in the window of the hub, until the leaf is, or as long as a
 * silence. What counts in no window may be of as many bytes as there are in
 * one.
 */
#include "incoming.h"

#define EARLY_MAX 4096 /* messages of one hub; what is reliable comes again */

static bool is_event(const struct wire_header *header)
{
    return header->kind == WIRE_KIND_EVENT || header->kind == WIRE_KIND_CHUNK;
}

static bool is_in_window(const struct wire_header *header)
{
    return is_event(header) && (header->flags & WIRE_FLAG_WITHDRAW) == 0;
}

/* An event only once those of the hub count here. */
static bool has_room(const ls_node *node, const struct peer *hub,
                     const struct wire_header *header, size_t size)
{
    const struct hop *hop = hub->hop;
    if (hop->early.n == EARLY_MAX || (is_event(header) && !hop->counts))
        return false;
    return is_in_window(header)
               ? flow_may(node, hub, 1, size)
               : hop->early_bytes + size <= node->options.window_bytes;
}

static bool waits(const struct peer *hub)
{
    return hub->hop != NULL && hub->hop->early.n != 0;
}

bool early_keep(ls_node *node, struct peer *hub,
                const struct wire_header *header, struct message *message)
{
    const size_t size = bus_payload_size(message, header);
    if (!has_room(node, hub, header, size) ||
        (!is_event(header) && header->kind != WIRE_KIND_RELIABLE &&
         header->kind != WIRE_KIND_CHANNEL)) {
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
        return false;
    }
    if (is_in_window(header))
        flow_got(hub, 1, size, true);
    else
        hub->hop->early_bytes += size;
    if (hub->hop->early.n == 0)
        hub->hop->early_at = node->loop.now;
    message_list_append(&hub->hop->early, message);
    bus_look_after(node);
    return true;
}

/* It counts no more as held for what it waited for. Lock held. */
static void let_go(ls_node *node, struct peer *hub,
                   const struct wire_header *header, size_t size)
{
    if (is_in_window(header))
        flow_release(node, hub, 1, size);
    else
        hub->hop->early_bytes -= size;
}

static bool read_again(const struct message *message,
                       struct wire_header *header, uint32_t *to, bool *inbox)
{
    char topic_class;
    const bool right = wire_header_read(message->head, message->head_size,
                                        &topic_class, to, header) == LS_OK;
    *inbox = right && topic_class == WIRE_INBOX;
    return right;
}

/* The leaf that a message is of, if it is ready now. Lock held. */
static struct peer *ready_origin(ls_node *node, const struct peer *hub,
                                 const struct wire_header *header)
{
    struct peer *origin = world_find(node, header->origin);
    return origin != NULL && origin->member.via == &hub->member &&
                   origin->member.incarnation == header->incarnation &&
                   origin->member.state == LS_MEMBER_READY
               ? origin
               : NULL;
}

static bool hand_on(ls_node *node, struct peer *hub, struct peer *origin,
                    const struct wire_header *header, uint32_t to, bool inbox,
                    struct message *message)
{
    struct incoming in = {
        .direct = hub, .origin = origin, .header = header, .counted = true};
    bool kept = false;
    if (is_event(header))
        (void)incoming_event(node, &in, message, inbox, to, &kept);
    else if (header->kind == WIRE_KIND_RELIABLE)
        (void)streams_message(node, origin, header, message, &kept);
    else
        channels_message(node, header, header->data, header->size);
    return kept;
}

static void hand_on_of(ls_node *node, struct peer *hub)
{
    struct message_list waiting;
    struct message *message;
    message_list_init(&waiting);
    message_list_splice(&waiting, &hub->hop->early);
    while ((message = message_list_take(&waiting)) != NULL) {
        struct wire_header header;
        uint32_t to = 0;
        bool inbox;
        if (!read_again(message, &header, &to, &inbox)) {
            bus_drop(node, message);
            continue;
        }
        transport_lock(node->transport);
        struct peer *origin = ready_origin(node, hub, &header);
        if (origin != NULL)
            let_go(node, hub, &header, bus_payload_size(message, &header));
        transport_unlock(node->transport);
        if (origin == NULL)
            message_list_append(&hub->hop->early, message);
        else if (!hand_on(node, hub, origin, &header, to, inbox, message))
            bus_drop(node, message);
    }
}

void early_hand_on(ls_node *node)
{
    for (size_t i = 0; i < node->world.n; i++)
        if (waits(world_at(node, i)))
            hand_on_of(node, world_at(node, i));
}

void early_drop(ls_node *node, struct peer *hub)
{
    struct message *message;
    while (waits(hub)) {
        message = message_list_take(&hub->hop->early);
        struct wire_header header;
        uint32_t to;
        bool inbox;
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
        if (read_again(message, &header, &to, &inbox))
            let_go(node, hub, &header, bus_payload_size(message, &header));
        bus_drop(node, message);
    }
}

int64_t early_tick(ls_node *node, int64_t now)
{
    const int64_t silence = node->options.silence_ms * LS_NS_PER_MS;
    int64_t next = LS_FOREVER;
    for (size_t i = 0; i < node->world.n; i++) {
        struct peer *hub = world_at(node, i);
        if (!waits(hub))
            continue;
        if (now - hub->hop->early_at >= silence)
            early_drop(node, hub);
        else if (hub->hop->early_at + silence < next)
            next = hub->hop->early_at + silence;
    }
    return next;
}
