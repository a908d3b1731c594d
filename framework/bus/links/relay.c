/* What the hub of a star does for its leaves: it subscribes at each leaf, in
 * its own connection, to all inboxes, and to what the other leaves subscribed
 * to at it, presence last; and it publishes again what it gets. So a leaf sees
 * the others exactly as it would over connections of their own, only marked as
 * relayed.
 *
 * Windows hold hop by hop: a message for a leaf without room waits here, in
 * the window of the leaf that sent it, which thereby stops in its turn. */
#include "bus.h"

#include <string.h>

static size_t presence_topic(const ls_node *node, const struct link *link,
                             const struct peer *leaf, uint8_t *topic)
{
    const struct member *member = &leaf->member;
    struct wire_presence p = {.link = link->number,
                              .relayed = true,
                              .relay = node->options.id,
                              .id = member->id,
                              .incarnation = member->incarnation,
                              .config_hash = member->config_hash,
                              .host = member->host};
    memcpy(p.job, node->me.job, sizeof p.job);
    strcpy(p.role, member->role);
    strcpy(p.labels, member->labels);
    strcpy(p.endpoint, member->endpoint);
    strcpy(p.signature, member->signature);
    return wire_presence_write(topic, &p);
}

static void repeat_presence(const ls_node *node, struct link *link,
                            const struct peer *leaf, bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    (void)link_subscribe(link, topic, presence_topic(node, link, leaf, topic),
                         on);
}

/* All that a leaf has subscribed to, its presence last (or first when it is
 * taken back). */
static void repeat_all(ls_node *node, struct link *link,
                       const struct peer *leaf, bool on)
{
    if (!on)
        repeat_presence(node, link, leaf, false);
    const struct event_entry *entry = NULL;
    while ((entry = events_next(node, entry)) != NULL)
        if (events_names(entry, leaf))
            (void)link_listen(link, leaf->member.id, entry,
                              on ? LISTENING_BEGINS : LISTENING_ENDS);
    if (on)
        repeat_presence(node, link, leaf, true);
}

static bool is_other(const struct link *link, const struct peer *leaf)
{
    return link != leaf->link && !link->closing;
}

void relay_present(ls_node *node, struct peer *leaf, bool present)
{
    if (leaf->relayed == present)
        return;
    leaf->relayed = present;
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (is_other(link, leaf))
            repeat_all(node, link, leaf, present);
}

void relay_listen(ls_node *node, struct peer *leaf,
                  const struct event_entry *entry, enum listening how)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (is_other(link, leaf))
            (void)link_listen(link, leaf->member.id, entry, how);
}

void relay_dial(ls_node *node, struct link *link, const struct peer *peer)
{
    for (size_t i = 0; i < node->world.n; i++) {
        const struct peer *leaf = world_at(node, i);
        if (leaf != peer && leaf->relayed)
            repeat_all(node, link, leaf, true);
    }
}

/* ---- messages ---------------------------------------------------------- */

struct route {
    struct peer **targets;
    size_t n;
    struct peer *one; /* the target of an inbox */
};

/* What this hub emits itself finds room, too. */
static bool has_room(const ls_node *node, const struct peer *peer, size_t size,
                     bool may_drop)
{
    if (node->emits_waiting != 0 && !flow_room_more(peer, size))
        return false;
    return may_drop && !peer->hop->pace.slow ? flow_room(peer, size)
                                             : flow_room_now(peer, size);
}

/* Publish when every target has room. A message under delivery drop goes to all
 * or counts as dropped for those without. */
static bool pass_on(ls_node *node, const struct route *route,
                    const struct message *message,
                    const struct wire_header *header, size_t size)
{
    const bool may_drop = (header->flags & WIRE_FLAG_DROP) != 0;
    const bool counted = (header->flags & WIRE_FLAG_WITHDRAW) == 0;
    size_t without = 0;
    for (size_t i = 0; i < route->n && counted; i++)
        without += has_room(node, route->targets[i], size, may_drop) ? 0 : 1;
    if (without != 0) {
        if (may_drop)
            node->figures.stats.dropped += route->n;
        return may_drop;
    }
    for (size_t i = 0; i < route->n && counted; i++)
        route->targets[i]->hop->asks =
            flow_charge(node, route->targets[i], size);
    (void)transport_republish(node->transport, message);
    for (size_t i = 0; i < route->n && counted; i++)
        if (route->targets[i]->hop->asks)
            flow_ask(node, route->targets[i]);
    node->figures.stats.relayed++;
    return true;
}

static struct route find_route(ls_node *node, const struct wire_header *header,
                               uint32_t to, bool inbox)
{
    struct route route = {0};
    if (inbox) {
        struct peer *peer = world_find(node, to);
        if (peer != NULL && peer->hop != NULL && member_is_here(&peer->member))
            route.one = peer;
        route.n = route.one != NULL ? 1 : 0;
        return route;
    }
    struct event_entry *entry =
        events_heard(node, header->name, header->name_size);
    if (entry != NULL) {
        events_targets(node, entry);
        route.targets = entry->targets.at;
        route.n = entry->targets.n;
    }
    return route;
}

bool relay_message(ls_node *node, struct peer *from, struct message *message,
                   const struct wire_header *header, uint32_t to, bool inbox)
{
    if (header->kind != WIRE_KIND_EVENT && header->kind != WIRE_KIND_CHUNK) {
        (void)transport_republish(node->transport, message);
        return false;
    }
    struct route route = find_route(node, header, to, inbox);
    if (inbox)
        route.targets = &route.one;
    if (route.n == 0)
        return false;
    const size_t size = bus_payload_size(message, header);
    if (from->hop->relay.n == 0 && pass_on(node, &route, message, header, size))
        return false;
    if ((header->flags & WIRE_FLAG_WITHDRAW) == 0) {
        message->held_messages = 1;
        message->held_bytes = size;
    }
    message_list_append(&from->hop->relay, message);
    return true;
}

/* Out of the window of who sent it, whatever becomes of it. */
static struct message *take_first(ls_node *node, const struct peer *from)
{
    struct message *message = message_list_take(&from->hop->relay);
    if (message != NULL)
        flow_release(node, from, message->held_messages, message->held_bytes);
    return message;
}

/* Try the first waiting message of one sender; false: it still waits. */
static bool flush_one(ls_node *node, struct peer *from,
                      struct message_list *done)
{
    struct message *message = from->hop == NULL ? NULL : from->hop->relay.first;
    struct wire_header header;
    char topic_class;
    uint32_t to = 0;
    if (message == NULL ||
        wire_header_read(message->head, message->head_size, &topic_class, &to,
                         &header) != LS_OK)
        return false;
    const bool inbox = topic_class == WIRE_INBOX;
    struct route route = find_route(node, &header, to, inbox);
    if (inbox)
        route.targets = &route.one;
    if (!pass_on(node, &route, message, &header, message->held_bytes))
        return false;
    message_list_append(done, take_first(node, from));
    return true;
}

void relay_drop(ls_node *node, struct peer *from)
{
    struct message *message;
    while (from->hop != NULL && (message = take_first(node, from)) != NULL) {
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
        message_give_back_one(node->pool, message);
    }
}

/* One message of each in turn, or whoever comes first would take all room. */
void relay_flush(ls_node *node)
{
    struct message_list done;
    message_list_init(&done);
    size_t in_vain = 0;
    while (in_vain < node->world.n) {
        node->relay_turn = (node->relay_turn + 1) % node->world.n;
        struct peer *from = world_at(node, node->relay_turn);
        in_vain = flush_one(node, from, &done) ? 0 : in_vain + 1;
    }
    if (done.n != 0)
        message_give_back(node->pool, &done);
}
