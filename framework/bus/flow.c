/* Windows: each receiver tells each sender how far it may go, in messages and
 * in payload bytes counted over the life of the connection.
 *
 * The limit is what came in, less what is still held here, plus the window.
 * Counting from what came in, and settling that with the sender's own count at
 * every heartbeat (which travels behind the messages it speaks of), keeps both
 * sides right whatever was lost between them, and tells how much was. */
#include "bus.h"

#include <string.h>

bool flow_room(const struct peer *peer, size_t bytes)
{
    if (peer->limit.messages == 0 ||
        peer->sent.messages >= peer->limit.messages)
        return false;
    return peer->sent.bytes + bytes <= peer->limit.bytes;
}

void flow_charge(struct peer *peer, size_t bytes)
{
    peer->sent.messages++;
    peer->sent.bytes += bytes;
}

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    /* One writer: the bus thread. */
    atomic_store_explicit(
        counter, atomic_load_explicit(counter, memory_order_relaxed) + value,
        memory_order_relaxed);
}

void flow_got(struct peer *peer, size_t bytes, bool keep)
{
    add(&peer->got_messages, 1);
    add(&peer->got_bytes, bytes);
    if (keep) {
        add(&peer->kept_messages, 1);
        add(&peer->kept_bytes, bytes);
    }
}

struct account flow_limit(const ls_node *node, const struct peer *peer)
{
    struct account limit;
    limit.messages =
        atomic_load_explicit(&peer->got_messages, memory_order_relaxed) -
        atomic_load_explicit(&peer->kept_messages, memory_order_relaxed) +
        peer->released.messages + node->options.window_messages;
    limit.bytes =
        atomic_load_explicit(&peer->got_bytes, memory_order_relaxed) -
        atomic_load_explicit(&peer->kept_bytes, memory_order_relaxed) +
        peer->released.bytes + node->options.window_bytes;
    return limit;
}

void flow_release(ls_node *node, struct peer *peer, uint64_t messages,
                  uint64_t bytes)
{
    peer->released.messages += messages;
    peer->released.bytes += bytes;
    const struct account limit = flow_limit(node, peer);
    if (limit.messages - peer->granted.messages <
            node->options.window_messages / 4 &&
        limit.bytes - peer->granted.bytes < node->options.window_bytes / 4)
        return;
    struct wire_header header = bus_header(node, WIRE_KIND_CREDIT);
    header.sequence = peer->incarnation;
    header.limit_messages = limit.messages;
    header.limit_bytes = limit.bytes;
    if (bus_send(node, peer->id, &header, NULL, 0) == LS_OK)
        peer->granted = limit;
}

void flow_settle(ls_node *node, struct peer *peer, uint64_t messages,
                 uint64_t bytes)
{
    const uint64_t got =
        atomic_load_explicit(&peer->got_messages, memory_order_relaxed);
    if (messages > got) {
        node->stats.lost += messages - got;
        ls_log_warn("bus: %llu messages from node %u were lost on the way",
                    (unsigned long long)(messages - got), peer->id);
    }
    atomic_store_explicit(&peer->got_messages, messages, memory_order_relaxed);
    atomic_store_explicit(&peer->got_bytes, bytes, memory_order_relaxed);
}

void flow_raise(ls_node *node, struct peer *peer, uint64_t messages,
                uint64_t bytes)
{
    /* A grant may overtake an older one in a heartbeat: the larger counts. */
    if (messages > peer->limit.messages)
        peer->limit.messages = messages;
    if (bytes > peer->limit.bytes)
        peer->limit.bytes = bytes;
    if (node->hub)
        relay_flush(node);
    ls_cond_broadcast(&node->changed);
}
