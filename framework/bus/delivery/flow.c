/* Windows: each receiver tells each sender how far it may go, in messages and
 * in payload bytes counted over the life of both ends.
 *
 * The limit is what came in, less what is still held here, plus the window.
 * Counting from what came in, and settling that with the sender's own count at
 * every heartbeat (which travels behind the messages it speaks of), keeps both
 * sides right whatever was lost between them, and tells how much was.
 *
 * What is published on a topic comes to all that subscribed, also to those that
 * are not ready, or not again, in the sender's eyes; it counts only what it
 * sends to those that are. So a receiver begins to count, and to listen, with
 * the first credit over a connection, or a heartbeat that lists it as ready:
 * what came before was not for it.
 *
 * A sender that goes further than it was granted is cut off (bus.c): what it
 * sends is bounded by its receiver, not by its manners. And what it says of
 * itself is bounded by what it was granted, so that no count can be made to
 * wrap. */
#include <string.h>

#include "bus.h"

/* What may come beyond the grant: messages that a network doubles. */
#define SLACK_SHARE 2

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void store(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    store(counter, load(counter) + value); /* one writer: the bus thread */
}

void flow_begin(struct peer *peer, bool keep)
{
    const uint64_t messages = load(&peer->kept_messages);
    const uint64_t bytes = load(&peer->kept_bytes);
    peer->sent = peer->limit = peer->arrived = peer->claimed =
        (struct account){0};
    peer->counts = false;
    store(&peer->got_messages, 0);
    store(&peer->got_bytes, 0);
    /* Of another life: what is still held of it will be released. */
    store(&peer->kept_messages, keep ? messages - peer->released.messages : 0);
    store(&peer->kept_bytes, keep ? bytes - peer->released.bytes : 0);
    store(&peer->granted_messages, 0);
    store(&peer->granted_bytes, 0);
    peer->released = (struct account){0};
}

/* ---- sending ----------------------------------------------------------- */

bool flow_room(const struct peer *peer, size_t bytes)
{
    return peer->sent.messages < peer->limit.messages &&
           peer->sent.messages - peer->arrived.messages < FLOW_UNDER_WAY_MAX &&
           peer->sent.bytes + bytes <= peer->limit.bytes;
}

bool flow_room_now(const struct peer *peer, size_t bytes)
{
    return flow_room(peer, bytes) &&
           pace_has_room(&peer->pace, peer->sent.bytes - peer->arrived.bytes,
                         bytes);
}

bool flow_charge(const ls_node *node, struct peer *peer, size_t bytes)
{
    peer->sent.messages++;
    peer->sent.bytes += bytes;
    const uint64_t under_way = peer->sent.bytes - peer->arrived.bytes;
    const bool many =
        peer->sent.messages - peer->arrived.messages == FLOW_UNDER_WAY_MAX / 2;
    if (under_way < peer->pace.bytes / 2)
        return many;
    return pace_asks(&peer->pace, peer->sent.bytes, under_way,
                     ls_now(node->runtime)) ||
           many;
}

size_t flow_piece(const struct peer *peer)
{
    return pace_piece(&peer->pace, WIRE_CHUNK_BYTES);
}

/* ---- receiving --------------------------------------------------------- */

bool flow_may(const ls_node *node, const struct peer *peer, uint64_t messages,
              uint64_t bytes)
{
    return load(&peer->got_messages) + messages <=
               load(&peer->granted_messages) +
                   node->options.window_messages / SLACK_SHARE &&
           load(&peer->got_bytes) + bytes <=
               load(&peer->granted_bytes) +
                   node->options.window_bytes / SLACK_SHARE;
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

static struct account limit_of(const ls_node *node, const struct peer *peer)
{
    return (struct account){
        load(&peer->got_messages) - load(&peer->kept_messages) +
            peer->released.messages + node->options.window_messages,
        load(&peer->got_bytes) - load(&peer->kept_bytes) +
            peer->released.bytes + node->options.window_bytes};
}

/* A grant is never taken back, also when it was made of what came twice. */
static void grant(struct peer *peer, struct account limit)
{
    if (limit.messages > load(&peer->granted_messages))
        store(&peer->granted_messages, limit.messages);
    if (limit.bytes > load(&peer->granted_bytes))
        store(&peer->granted_bytes, limit.bytes);
}

static void send_credit(ls_node *node, struct peer *peer, struct account limit,
                        uint8_t flags)
{
    if (!member_is_here(&peer->member))
        return; /* the first one tells it that from here on it counts */
    struct wire_header header = bus_header(node, WIRE_KIND_CREDIT);
    header.sequence = peer->member.incarnation;
    header.flags = flags;
    header.limit_messages = limit.messages;
    header.limit_bytes = limit.bytes;
    header.arrived_messages = load(&peer->got_messages);
    header.arrived_bytes = load(&peer->got_bytes);
    grant(peer, limit); /* first: it may be used before this returns */
    (void)bus_send(node, peer->member.id, &header, NULL, 0);
}

void flow_tell(ls_node *node, struct peer *peer)
{
    send_credit(node, peer, limit_of(node, peer), 0);
}

void flow_ask(ls_node *node, struct peer *peer)
{
    batch_flush(node);
    send_credit(node, peer, limit_of(node, peer), WIRE_FLAG_TELL);
}

void flow_release(ls_node *node, struct peer *peer, uint64_t messages,
                  uint64_t bytes)
{
    peer->released.messages += messages;
    peer->released.bytes += bytes;
    const struct account limit = limit_of(node, peer);
    if (limit.messages - load(&peer->granted_messages) >=
            node->options.window_messages / 4 ||
        limit.bytes - load(&peer->granted_bytes) >=
            node->options.window_bytes / 4)
        send_credit(node, peer, limit, 0);
}

/* ---- accounts ---------------------------------------------------------- */

void flow_account(ls_node *node, struct peer *peer, struct wire_member *out)
{
    const struct account limit = limit_of(node, peer);
    out->sent_messages = peer->sent.messages;
    out->sent_bytes = peer->sent.bytes;
    out->limit_messages = limit.messages;
    out->limit_bytes = limit.bytes;
    out->arrived_messages = load(&peer->got_messages);
    out->arrived_bytes = load(&peer->got_bytes);
    grant(peer, limit);
}

static int wrong(const struct peer *peer, const char *what)
{
    return ls_error(LS_EPROTO, "node %u counts %s", peer->member.id, what);
}

/* Grants may overtake each other: the larger counts. */
static void raise_limit(ls_node *node, struct peer *peer, uint64_t messages,
                        uint64_t bytes)
{
    if (messages > peer->limit.messages)
        peer->limit.messages = messages;
    if (bytes > peer->limit.bytes)
        peer->limit.bytes = bytes;
    if (node->hub)
        relay_flush(node);
    ls_cond_broadcast(&node->changed);
}

static void note_arrived(const ls_node *node, struct peer *peer,
                         uint64_t messages, uint64_t bytes)
{
    /* It may have counted a message twice that the network doubled. */
    messages = messages < peer->sent.messages ? messages : peer->sent.messages;
    bytes = bytes < peer->sent.bytes ? bytes : peer->sent.bytes;
    if (messages < peer->arrived.messages || bytes < peer->arrived.bytes)
        return; /* overtaken */
    peer->arrived = (struct account){messages, bytes};
    pace_arrived(&peer->pace, bytes, node->now);
}

/* The sender counts so much: what is missing was lost on the way. */
static int settle_sent(ls_node *node, struct peer *peer, uint64_t messages,
                       uint64_t bytes)
{
    const uint64_t got = load(&peer->got_messages);
    if (messages > load(&peer->granted_messages) ||
        bytes > load(&peer->granted_bytes))
        return wrong(peer, "more sent than it was granted");
    if (messages < peer->claimed.messages || bytes < peer->claimed.bytes)
        return wrong(peer, "less sent than before");
    peer->claimed = (struct account){messages, bytes};
    if (messages > got) {
        node->stats.lost += messages - got;
        ls_log_warn("bus: %llu messages from node %u were lost on the way",
                    (unsigned long long)(messages - got), peer->member.id);
    }
    store(&peer->got_messages, messages);
    store(&peer->got_bytes, bytes);
    return LS_OK;
}

int flow_settle(ls_node *node, struct peer *peer,
                const struct wire_member *says)
{
    const int status =
        settle_sent(node, peer, says->sent_messages, says->sent_bytes);
    if (status != LS_OK)
        return status;
    peer->counts = peer->counts || says->state == WIRE_MEMBER_READY;
    note_arrived(node, peer, says->arrived_messages, says->arrived_bytes);
    raise_limit(node, peer, says->limit_messages, says->limit_bytes);
    return LS_OK;
}

void flow_credit(ls_node *node, struct peer *peer,
                 const struct wire_header *header)
{
    peer->counts = true;
    note_arrived(node, peer, header->arrived_messages, header->arrived_bytes);
    raise_limit(node, peer, header->limit_messages, header->limit_bytes);
    if ((header->flags & WIRE_FLAG_TELL) != 0)
        flow_tell(node, peer);
}
