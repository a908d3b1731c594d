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
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "told.h"

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
    /* One writer at a time: the bus thread, or whoever has the lock. */
    store(counter, load(counter) + value);
}

int flow_open(struct peer *peer)
{
    if (peer->hop != NULL)
        return LS_OK;
    struct hop *hop = calloc(1, sizeof *hop);
    if (hop == NULL)
        return ls_error(LS_ENOMEM, "no memory to connect to node %u",
                        peer->member.id);
    message_list_init(&hop->relay);
    message_list_init(&hop->early);
    pace_init(&hop->pace);
    peer->hop = hop;
    return LS_OK;
}

void flow_begin(struct peer *peer)
{
    struct hop *hop = peer->hop;
    if (hop == NULL)
        return;
    hop->sent = hop->limit = hop->arrived = hop->claimed = (struct account){0};
    hop->ahead = hop->seen = (struct account){0};
    hop->carried = 0;
    hop->near = false;
    pace_init(&hop->pace);
    hop->counts = false;
    store(&hop->got_messages, 0);
    store(&hop->got_bytes, 0);
    store(&hop->kept_messages,
          load(&hop->kept_messages) - load(&hop->released_messages));
    store(&hop->kept_bytes,
          load(&hop->kept_bytes) - load(&hop->released_bytes));
    store(&hop->granted_messages, 0);
    store(&hop->granted_bytes, 0);
    store(&hop->released_messages, 0);
    store(&hop->released_bytes, 0);
}

/* ---- sending ----------------------------------------------------------- */

bool flow_room(const struct peer *peer, size_t bytes)
{
    const struct hop *hop = peer->hop;
    return hop->sent.messages < hop->limit.messages &&
           hop->sent.messages - hop->arrived.messages < FLOW_UNDER_WAY_MAX &&
           hop->sent.bytes + bytes <= hop->limit.bytes;
}

bool flow_room_more(const struct peer *peer, size_t bytes)
{
    const struct hop *hop = peer->hop;
    return hop->sent.messages + 1 < hop->limit.messages &&
           hop->sent.bytes + bytes + WIRE_CHUNK_BYTES <= hop->limit.bytes;
}

bool flow_room_now(const struct peer *peer, size_t bytes)
{
    const struct hop *hop = peer->hop;
    return flow_room(peer, bytes) &&
           pace_has_room(&hop->pace, hop->sent.bytes - hop->arrived.bytes,
                         bytes);
}

bool flow_charge(const ls_node *node, struct peer *peer, size_t bytes)
{
    struct hop *hop = peer->hop;
    hop->sent.messages++;
    hop->sent.bytes += bytes;
    const uint64_t under_way = hop->sent.bytes - hop->arrived.bytes;
    const bool many =
        hop->sent.messages - hop->arrived.messages == FLOW_UNDER_WAY_MAX / 2;
    if (under_way < hop->pace.bytes / 2)
        return many;
    return pace_asks(&hop->pace, hop->sent.bytes, under_way,
                     ls_now(node->runtime)) ||
           many;
}

/* When something that is not counted has come shows with the next that is. */
void flow_carry(struct peer *peer, bool counted)
{
    peer->hop->carried = peer->hop->sent.messages + (counted ? 0 : 1);
}

bool flow_is_clear(const struct peer *peer)
{
    const struct hop *hop = peer->hop;
    return hop == NULL || hop->arrived.messages >= hop->carried;
}

size_t flow_piece(const struct peer *peer)
{
    return pace_piece(&peer->hop->pace, WIRE_CHUNK_BYTES);
}

/* ---- receiving --------------------------------------------------------- */

/* A sender may say that less was sent than has come, and that is then what
 * came: so what is held is looked at, too. */
static bool may_be_held(uint64_t more, uint64_t kept, uint64_t window,
                        const _Atomic uint64_t *released, uint64_t *seen)
{
    if (kept + more <= *seen + 2 * window)
        return true;
    *seen = load(released); /* of another thread: not for each message */
    return kept + more <= *seen + 2 * window;
}

/* What the network doubles may take a window more than was granted. */
bool flow_may(const ls_node *node, const struct peer *peer, uint64_t messages,
              uint64_t bytes)
{
    struct hop *hop = peer->hop;
    const uint64_t most = node->options.window_messages;
    const uint64_t most_bytes = node->options.window_bytes;
    return load(&hop->got_messages) + messages <=
               load(&hop->granted_messages) + most &&
           load(&hop->got_bytes) + bytes <=
               load(&hop->granted_bytes) + most_bytes &&
           may_be_held(messages, load(&hop->kept_messages), most,
                       &hop->released_messages, &hop->seen.messages) &&
           may_be_held(bytes, load(&hop->kept_bytes), most_bytes,
                       &hop->released_bytes, &hop->seen.bytes);
}

void flow_got(struct peer *peer, uint64_t messages, size_t bytes, bool keep)
{
    struct hop *hop = peer->hop;
    add(&hop->got_messages, messages);
    add(&hop->got_bytes, bytes);
    if (keep) {
        add(&hop->kept_messages, messages);
        add(&hop->kept_bytes, bytes);
    }
}

void flow_got_near(struct peer *peer, size_t bytes)
{
    peer->hop->ahead.messages++;
    peer->hop->ahead.bytes += bytes;
}

/* How far one may go: nowhere, if more is held than has room, as of one who
 * went too far and begins another life. */
static uint64_t limit(uint64_t got, uint64_t kept, uint64_t released,
                      uint64_t window)
{
    const uint64_t to = got - kept + released + window;
    return to <= INT64_MAX ? to : 0;
}

static struct account limit_of(const ls_node *node, const struct hop *hop)
{
    return (struct account){
        limit(load(&hop->got_messages), load(&hop->kept_messages),
              load(&hop->released_messages), node->options.window_messages),
        limit(load(&hop->got_bytes), load(&hop->kept_bytes),
              load(&hop->released_bytes), node->options.window_bytes)};
}

/* A grant is never taken back, also when it was made of what came twice. */
static void grant(struct hop *hop, struct account limit)
{
    if (limit.messages > load(&hop->granted_messages))
        store(&hop->granted_messages, limit.messages);
    if (limit.bytes > load(&hop->granted_bytes))
        store(&hop->granted_bytes, limit.bytes);
}

/* As a header; granted already: it may be used before it is sent. */
static struct wire_header
credit_of(const ls_node *node, const struct peer *peer, struct account limit)
{
    struct hop *hop = peer->hop;
    struct wire_header header = bus_header(node, WIRE_KIND_CREDIT);
    header.sequence = peer->member.incarnation;
    header.limit_messages = limit.messages;
    header.limit_bytes = limit.bytes;
    header.arrived_messages = load(&hop->got_messages);
    header.arrived_bytes = load(&hop->got_bytes);
    grant(hop, limit);
    return header;
}

static void send_credit(ls_node *node, const struct peer *peer, uint8_t flags)
{
    if (!member_is_here(&peer->member))
        return; /* the first one tells it that from here on it counts */
    struct wire_header header =
        credit_of(node, peer, limit_of(node, peer->hop));
    header.flags = flags;
    (void)bus_send(node, peer->member.id, &header, NULL, 0);
}

void flow_connected(ls_node *node, struct peer *peer)
{
    if (flow_open(peer) != LS_OK)
        return; /* it is told with the next heartbeat */
    pace_again(&peer->hop->pace);
    send_credit(node, peer, 0);
}

void flow_ask(ls_node *node, const struct peer *peer)
{
    batch_flush(node);
    send_credit(node, peer, WIRE_FLAG_TELL);
}

void flow_release(ls_node *node, const struct peer *peer, uint64_t messages,
                  uint64_t bytes)
{
    struct hop *hop = peer->hop;
    add(&hop->released_messages, messages);
    add(&hop->released_bytes, bytes);
    const struct account limit = limit_of(node, hop);
    /* Whoever emits short ones without a pause holds the lock most of the time,
     * and what comes through memory is not read without it. */
    if (limit.messages - load(&hop->granted_messages) >=
        node->options.window_messages / 4) {
        send_credit(node, peer, 0);
    } else if (limit.bytes - load(&hop->granted_bytes) >=
                   node->options.window_bytes / 4 &&
               member_is_here(&peer->member)) {
        const struct wire_header header = credit_of(node, peer, limit);
        bus_tell(node, peer, &header);
    }
}

/* ---- accounts ---------------------------------------------------------- */

void flow_account(ls_node *node, struct peer *peer, struct wire_member *out)
{
    if (flow_open(peer) != LS_OK)
        return; /* it is granted nothing yet */
    struct hop *hop = peer->hop;
    const struct account limit = limit_of(node, hop);
    out->sent_messages = hop->sent.messages;
    out->sent_bytes = hop->sent.bytes;
    out->limit_messages = limit.messages;
    out->limit_bytes = limit.bytes;
    out->arrived_messages = load(&hop->got_messages);
    out->arrived_bytes = load(&hop->got_bytes);
    grant(hop, limit);
}

static int wrong(const struct peer *peer, const char *what)
{
    return ls_error(LS_EPROTO, "node %u counts %s", peer->member.id, what);
}

/* Grants may overtake each other: the larger counts. */
static void raise_limit(ls_node *node, struct hop *hop, uint64_t messages,
                        uint64_t bytes)
{
    if (messages > hop->limit.messages)
        hop->limit.messages = messages;
    if (bytes > hop->limit.bytes)
        hop->limit.bytes = bytes;
    if (node->me.hub)
        relay_flush(node);
    ls_cond_broadcast(&node->changed);
}

static void note_arrived(const ls_node *node, struct hop *hop,
                         uint64_t messages, uint64_t bytes)
{
    /* It may have counted a message twice that the network doubled. */
    messages = messages < hop->sent.messages ? messages : hop->sent.messages;
    bytes = bytes < hop->sent.bytes ? bytes : hop->sent.bytes;
    if (messages < hop->arrived.messages || bytes < hop->arrived.bytes)
        return; /* overtaken */
    hop->arrived = (struct account){messages, bytes};
    pace_arrived(&hop->pace, bytes, node->loop.now);
}

/* What has come, when its sender has said of it what it `claims`, and then has
 * sent at most so much through memory, which is `ahead` of what it says.
 * Returns how much of it there may be on. */
static uint64_t settle(_Atomic uint64_t *got, uint64_t claims, uint64_t ahead)
{
    const uint64_t most = claims + ahead;
    const uint64_t has = load(got) < claims ? claims : load(got);
    store(got, has < most ? has : most);
    return load(got) - claims;
}

static void log_lost(struct hop *hop, uint32_t id, uint64_t n)
{
    const uint64_t times = ++hop->n_losses;
    if (is_told(times))
        ls_log_warn("bus: %llu messages from node %u were lost on the way; so "
                    "far such happened %llu times",
                    (unsigned long long)n, id, (unsigned long long)times);
}

/* The sender counts so much: what is missing was lost on the way. */
static int settle_sent(ls_node *node, const struct peer *peer,
                       uint64_t messages, uint64_t bytes)
{
    struct hop *hop = peer->hop;
    const uint64_t got = load(&hop->got_messages);
    if (messages > load(&hop->granted_messages) ||
        bytes > load(&hop->granted_bytes))
        return wrong(peer, "more sent than it was granted");
    if (messages < hop->claimed.messages || bytes < hop->claimed.bytes)
        return wrong(peer, "less sent than before");
    hop->claimed = (struct account){messages, bytes};
    if (bus_omits(node, BUS_SETTLES, NULL))
        return LS_OK;
    if (messages > got) {
        node->figures.stats.lost += messages - got;
        log_lost(hop, peer->member.id, messages - got);
    }
    hop->ahead.messages =
        settle(&hop->got_messages, messages, hop->ahead.messages);
    hop->ahead.bytes = settle(&hop->got_bytes, bytes, hop->ahead.bytes);
    return LS_OK;
}

int flow_settle(ls_node *node, const struct peer *peer,
                const struct wire_member *says)
{
    struct hop *hop = peer->hop;
    const int status =
        settle_sent(node, peer, says->sent_messages, says->sent_bytes);
    if (status != LS_OK)
        return status;
    hop->counts = hop->counts || says->state == WIRE_MEMBER_READY;
    note_arrived(node, hop, says->arrived_messages, says->arrived_bytes);
    raise_limit(node, hop, says->limit_messages, says->limit_bytes);
    return LS_OK;
}

void flow_credit(ls_node *node, const struct peer *peer,
                 const struct wire_header *header)
{
    struct hop *hop = peer->hop;
    hop->counts = true;
    note_arrived(node, hop, header->arrived_messages, header->arrived_bytes);
    raise_limit(node, hop, header->limit_messages, header->limit_bytes);
    if ((header->flags & WIRE_FLAG_TELL) != 0)
        send_credit(node, peer, 0);
}
