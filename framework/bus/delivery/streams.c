/* Streams between nodes: what is pushed at one end is handled at the other,
 * each message once and in order, over as many connections as it takes.
 *
 * They run from end to end, also across a hub, in windows of their own: those
 * of flow.c count what one connection carries, and start again with it. */

#include "coverage.h"
#include "delivery.h"
#include "incoming.h"

#include <stdlib.h>
#include <string.h>

#define ACK_MESSAGES 64 /* an acknowledgement at the latest */
#define ACK_NS       (5 * LS_NS_PER_MS)
#define COPY_BYTES   4096 /* shorter payloads are copied into the frame */

/* ---- their life -------------------------------------------------------- */

/* Of a new life: but for what is held of what came. */
static void begin(struct peer_streams *streams)
{
    stream_sender_init(&streams->out);
    pace_init(&streams->pace);
    stream_receiver_init(&streams->in);
    streams->latest_waits = streams->used = streams->ack_due = false;
    streams->full = streams->parts_wait = false;
    streams->body_bytes = 0;
    streams->carried = 0;
    streams->ack_at = LS_FOREVER;
    streams->n_acks = streams->repeats = 0;
    streams->got_messages = streams->got_bytes = 0;
    streams->permitted_messages = streams->permitted_bytes = 0;
    streams->unsaid_messages = streams->unsaid_bytes = 0;
    streams->told_messages = streams->told_bytes = 0;
    atomic_store(&streams->room_made, false);
}

/* Those of a peer, made if need be; NULL: no memory. Lock held. */
static struct peer_streams *get(struct peer *peer)
{
    struct peer_streams *streams = streams_of(peer);
    if (streams != NULL || (streams = calloc(1, sizeof *streams)) == NULL)
        return streams;
    begin(streams);
    atomic_store_explicit(&peer->streams, streams, memory_order_release);
    return streams;
}

struct peer_streams *streams_of(const struct peer *peer)
{
    return atomic_load_explicit(&peer->streams, memory_order_acquire);
}

/* ---- sending ----------------------------------------------------------- */

/* In windows. */
static size_t weight_of(const struct parcel *parcel)
{
    return parcel->weight != 0 ? parcel->weight : parcel->size;
}

static void parcel_free(void *self, void *content)
{
    struct parcel *parcel = content;
    (void)self;
    if (parcel->body_bytes != NULL)
        *parcel->body_bytes -= weight_of(parcel);
    payload_drop(parcel->payload);
    free(parcel->name);
    free(parcel);
}

bool streams_room(const struct peer *peer, size_t bytes)
{
    const struct peer_streams *streams = streams_of(peer);
    return streams == NULL ? bytes <= STREAM_FIRST_BYTES
                           : stream_has_room(&streams->out, bytes, false);
}

bool streams_are_clear(const struct peer *peer)
{
    const struct peer_streams *streams = streams_of(peer);
    return streams == NULL || streams->carried < streams->out.base;
}

bool streams_room_control(struct peer *peer)
{
    struct peer_streams *streams = streams_of(peer);
    if (streams == NULL || stream_has_room(&streams->out, 0, true))
        return true;
    streams->full = true;
    return false;
}

bool streams_room_part(struct peer *peer, size_t bytes)
{
    struct peer_streams *streams = streams_of(peer);
    if (streams == NULL)
        return bytes <= STREAM_FIRST_BYTES;
    if (stream_has_room(&streams->out, bytes, false) &&
        (streams->body_bytes == 0 ||
         streams->body_bytes + bytes <= streams->out.room_bytes / 2))
        return true;
    streams->parts_wait = true;
    return false;
}

size_t streams_piece(const struct peer *peer)
{
    const struct peer_streams *streams = streams_of(peer);
    const struct pace first = {.bytes = PACE_FIRST_BYTES};
    return pace_piece(streams == NULL ? &first : &streams->pace,
                      WIRE_CHUNK_BYTES);
}

/* Through memory, if nothing is on its way over the connection, which it would
 * overtake. What is repeated is not: whoever does not read one may read the
 * other. */
static bool goes_near(const struct peer *peer, bool again)
{
    return !again && streams_are_clear(peer) && flow_is_clear(peer);
}

/* again: it was before. */
static void publish(ls_node *node, const struct peer *peer,
                    const struct parcel *parcel, uint64_t number, bool tell,
                    bool again)
{
    struct peer_streams *streams = streams_of(peer);
    uint8_t head[WIRE_HEAD_MAX];
    /* Of nothing there need not be an address. */
    const char *data = payload_data(parcel->payload);
    if (parcel->offset != 0)
        data += parcel->offset;
    const bool copy = parcel->size <= COPY_BYTES;
    struct wire_header header = bus_header(node, WIRE_KIND_RELIABLE);
    header.sequence = parcel->sequence;
    header.flags = (uint8_t)(parcel->flags |
                             (parcel->how != NULL ? parcel->how->flags : 0) |
                             (tell ? WIRE_FLAG_TELL : 0));
    header.name = parcel->name != NULL ? parcel->name : parcel->entry->name;
    header.name_size = strlen(header.name);
    header.to_incarnation = peer->member.incarnation;
    header.number = number;
    header.of = parcel->of;
    header.total = (uint32_t)payload_size(parcel->payload);
    header.offset = (uint32_t)parcel->offset;
    header.data = copy ? head : NULL;
    header.size = parcel->size;
    size_t n = wire_topic_inbox(head, peer->member.id);
    n += wire_header_write(head + n, &header);
    batch_flush(node); /* what was emitted before this goes before it */
    if (copy && goes_near(peer, again) &&
        rings_send(node, peer, head, n, data, parcel->size))
        return;
    if (number > streams->carried)
        streams->carried = number;
    /* What the network does not take is transmitted again. */
    if (copy)
        (void)transport_publish(node->transport, head, n, data, parcel->size);
    else
        (void)transport_publish_owned(
            node->transport, head, n, (void *)(uintptr_t)data, parcel->size,
            payload_released, payload_share(parcel->payload));
}

static void transmit(ls_node *node, const struct peer *peer,
                     struct peer_streams *streams)
{
    struct stream_sender *out = &streams->out;
    struct pace *pace = &streams->pace;
    const struct stream_item *item;
    uint64_t number;
    bool again;
    if (!member_is_here(&peer->member))
        return;
    const int64_t now = ls_now(node->runtime);
    out->most = pace->bytes;
    while ((item = stream_next(out, now, &number, &again)) != NULL) {
        const struct parcel *parcel = item->content;
        const bool tell = pace_asks(pace, out->sent_bytes,
                                    out->sent_bytes - out->acked_bytes, now);
        if (!again || number != out->base ||
            !bus_omits(node, BUS_REPEATS_OLDEST, NULL))
            publish(node, peer, parcel, number, tell, again);
        node->figures.stats.sent++;
        node->figures.stats.sent_bytes += parcel->size;
        node->figures.stats.resent += again ? 1 : 0;
    }
}

int streams_push(ls_node *node, struct peer *peer, const struct parcel *parcel)
{
    struct peer_streams *streams = get(peer);
    struct parcel *copy = streams == NULL ? NULL : malloc(sizeof *copy);
    if (copy == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message to node %u",
                        peer->member.id);
    struct stream_sender *out = &streams->out;
    *copy = *parcel;
    if (parcel->of == WIRE_KIND_CHUNK && parcel->name != NULL)
        copy->body_bytes = &streams->body_bytes;
    const bool control = parcel->of == WIRE_KIND_CHANNEL ||
                         (parcel->flags & WIRE_FLAG_WITHDRAW) != 0;
    const int status = stream_push(out, copy, weight_of(parcel), control);
    if (status != LS_OK) {
        free(copy);
        return status;
    }
    payload_share(copy->payload);
    if (copy->body_bytes != NULL)
        *copy->body_bytes += weight_of(copy);
    transmit(node, peer, streams);
    node_wake_by(node, out->resend_at); /* it is transmitted again then */
    return LS_OK;
}

void streams_present(ls_node *node, struct peer *peer)
{
    struct peer_streams *streams = streams_of(peer);
    if (streams != NULL) {
        streams->ack_due = streams->used;
        pace_again(&streams->pace);
        ls_take(LS_TAKES_STREAM_REWOUND);
        stream_rewind(&streams->out);
        transmit(node, peer, streams);
    }
    delivery_joined(node, NULL, peer);
    ls_cond_broadcast(&node->changed); /* who waits for it */
}

void streams_acknowledged(ls_node *node, struct peer *peer,
                          const struct wire_header *header)
{
    struct peer_streams *streams = streams_of(peer);
    const struct stream_ack ack = {.sequence = header->sequence,
                                   .number = header->number,
                                   .also = header->also,
                                   .repeats = header->repeats,
                                   .room_messages = header->limit_messages,
                                   .room_bytes = header->limit_bytes};
    if (header->to_incarnation != node->me.incarnation) {
        ls_take(LS_TAKES_STREAM_ACK_OTHER_LIFE);
        return;
    }
    /* Not that of the loop, which is from before it waited for this. */
    const int64_t now = ls_now(node->runtime);
    if (streams == NULL ||
        !stream_acknowledge(&streams->out, &ack, now, parcel_free, NULL))
        return;
    pace_arrived(&streams->pace, streams->out.acked_bytes, now);
    transmit(node, peer, streams);
    if (streams->latest_waits)
        latest_offer(node, peer);
    if (streams->parts_wait ||
        (streams->full && streams->out.n_control <= STREAM_CONTROL_MAX / 2)) {
        streams->full = streams->parts_wait = false;
        bus_room_made(node);
    }
    ls_cond_broadcast(&node->changed);
}

/* ---- the end of a peer ------------------------------------------------- */

struct loss {
    ls_node *node;
    struct peer *peer;
    const char *event; /* the first; NULL: none that a user emitted */
    uint64_t n;
};

static void lose(void *self, void *content)
{
    struct loss *loss = self;
    const struct parcel *parcel = content;
    const bool whole =
        parcel->offset + parcel->size == payload_size(parcel->payload) &&
        (parcel->flags & WIRE_FLAG_WITHDRAW) == 0;
    if (whole && parcel->how != NULL && parcel->how->lost != NULL &&
        !bus_omits(loss->node, BUS_TELLS_LOSS, NULL)) {
        parcel->how->lost(loss->node, parcel->entry, loss->peer);
        if (!events_is_reserved(parcel->entry) && loss->n++ == 0)
            loss->event = parcel->entry->name;
    }
    parcel_free(NULL, content);
}

void streams_gone(ls_node *node, struct peer *peer)
{
    struct peer_streams *streams = streams_of(peer);
    struct loss loss = {.node = node, .peer = peer};
    if (streams != NULL)
        stream_sender_fini(&streams->out, lose, &loss);
    latest_forget(node, peer);
    if (loss.n != 0 && peer->member.state == LS_MEMBER_LOST)
        dispatch_lost(node, peer, loss.event, loss.n);
}

static void message_drop(void *self, void *content)
{
    bus_drop(self, content);
}

void streams_reset(ls_node *node, struct peer *peer)
{
    struct peer_streams *streams = streams_of(peer);
    struct loss loss = {.node = node, .peer = peer};
    latest_forget(node, peer);
    if (streams == NULL)
        return;
    stream_sender_fini(&streams->out, lose, &loss);
    stream_receiver_fini(&streams->in, message_drop, node);
    begin(streams);
}

void streams_free(ls_node *node, struct peer *peer)
{
    streams_reset(node, peer);
    free(streams_of(peer));
}

/* ---- receiving --------------------------------------------------------- */

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct account room_of(const ls_node *node,
                              const struct peer_streams *streams)
{
    return (struct account){
        less(node->options.window_messages,
             atomic_load(&streams->held_messages)),
        less(node->options.window_bytes, atomic_load(&streams->held_bytes))};
}

static void acknowledge(ls_node *node, const struct peer *peer,
                        struct peer_streams *streams)
{
    const struct account room = room_of(node, streams);
    struct wire_header header = bus_header(node, WIRE_KIND_ACK);
    header.sequence = ++streams->n_acks;
    header.to_incarnation = peer->member.incarnation;
    header.number = streams->in.next - 1;
    header.also = stream_also(&streams->in);
    header.repeats = streams->repeats;
    header.limit_messages = room.messages;
    header.limit_bytes = room.bytes;
    streams->ack_due = false;
    streams->ack_at = LS_FOREVER;
    streams->unsaid_messages = streams->unsaid_bytes = 0;
    streams->told_messages = room.messages;
    streams->told_bytes = room.bytes;
    /* What is held beyond the window was never granted: an acknowledgement of
     * it must not be room for as much again. */
    streams->permitted_messages =
        more(streams->permitted_messages,
             less(streams->got_messages + node->options.window_messages,
                  atomic_load(&streams->held_messages)));
    streams->permitted_bytes =
        more(streams->permitted_bytes,
             less(streams->got_bytes + node->options.window_bytes,
                  atomic_load(&streams->held_bytes)));
    atomic_store(&streams->room_made, false);
    bus_tell(node, peer, &header);
}

static void note_arrival(ls_node *node, struct peer_streams *streams,
                         size_t bytes, bool at_once)
{
    at_once = at_once || !streams->used;
    streams->used = true;
    streams->unsaid_messages++;
    streams->unsaid_bytes += bytes;
    if (at_once || streams->unsaid_messages >= ACK_MESSAGES ||
        streams->unsaid_messages >= node->options.window_messages / 4 ||
        streams->unsaid_bytes >= node->options.window_bytes / 4) {
        streams->ack_due = true;
        bus_look_after(node);
    } else if (streams->ack_at == LS_FOREVER) {
        streams->ack_at = node->loop.now + ACK_NS;
        bus_look_after(node);
    }
}

static bool is_block(const struct wire_header *header)
{
    return header->of != WIRE_KIND_CHANNEL &&
           (header->flags & WIRE_FLAG_BLOCK) != 0;
}

/* One that cannot be put together: this node is to blame, not the network. */
static void note_missed(ls_node *node, struct event_entry *entry,
                        uint32_t origin)
{
    transport_lock(node->transport);
    events_missed(node, entry, origin);
    transport_unlock(node->transport);
}

/* weight: in the window, of an event that is whole. */
static bool deliver_event(ls_node *node, struct peer *origin,
                          const struct wire_header *header, const uint8_t *data,
                          size_t size, size_t weight, struct message *message)
{
    struct peer_streams *streams = streams_of(origin);
    const bool last = header->offset + size == header->total;
    struct event_entry *entry =
        events_heard(node, header->name, header->name_size);
    if (entry == NULL || !events_here(node, entry) ||
        !event_access_admits(node, entry, &origin->member) ||
        (!events_is_reserved(entry) &&
         bus_omits(node, BUS_HEARS, &header->sequence)))
        return false;
    struct message *whole = message;
    if (header->of == WIRE_KIND_CHUNK) {
        bool keep = false;
        whole =
            assembly_add(node, origin, NULL, entry, header, data, size, &keep);
        if (whole == NULL && last && size != 0)
            note_missed(node, entry, header->origin);
    } else {
        whole->event.data = data;
        whole->event.size = size;
    }
    if (whole == NULL)
        return false;
    atomic_fetch_add_explicit(&node->figures.received, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&node->figures.received_bytes, whole->event.size,
                              memory_order_relaxed);
    if (!events_stream_sequence(node, entry, header)) {
        if (whole != message)
            message_give_back_one(node->pool, whole);
        return false; /* a latest value that it has seen */
    }
    whole->stream = true;
    whole->latest = (header->flags & WIRE_FLAG_LATEST) != 0;
    whole->peer = origin;
    whole->held_bytes = whole == message ? weight : whole->event.size;
    whole->held_messages = 1;
    atomic_fetch_add(&streams->held_messages, 1);
    atomic_fetch_add(&streams->held_bytes, whole->held_bytes);
    bus_event(node, whole, entry, header);
    return whole == message;
}

/* What a handle names; if it names nothing that can be had, it is counted. */
static int take_block(ls_node *node, const struct peer *origin,
                      const uint8_t *data, size_t size, size_t most,
                      struct block_loan *loan)
{
    const int status = blocks_take(node, origin, data, size, true, most, loan);
    if (status != LS_OK && incoming_no_block(node, origin, status) == LS_EPROTO)
        bus_refuse_member(node, &origin->member, LS_REFUSAL_FORM);
    return status;
}

/* A body that lies in a block of its sender's. */
static void deliver_body(ls_node *node, const struct peer *origin,
                         const struct wire_header *header, const uint8_t *data,
                         size_t size)
{
    struct block_loan loan = {.data = NULL};
    (void)!take_block(node, origin, data, size, SIZE_MAX, &loan);
    if (channels_block(node, header, &loan))
        return;
    (void)ls_error(LS_EPROTO, "a block where there can be none");
    bus_refuse_member(node, &origin->member, LS_REFUSAL_FORM);
}

/* An event whose payload lies in a block of its sender's. */
static bool deliver_block(ls_node *node, struct peer *origin,
                          const struct wire_header *header, const uint8_t *data,
                          size_t size, struct message *message)
{
    struct block_loan loan;
    const int status = take_block(node, origin, data, size,
                                  node->options.max_payload_bytes, &loan);
    struct event_entry *const entry =
        events_heard(node, header->name, header->name_size);
    if (status != LS_OK || !blocks_attach(message, header, &loan)) {
        if (entry != NULL)
            note_missed(node, entry, header->origin);
        return false;
    }
    const bool kept = deliver_event(node, origin, header, loan.data, loan.size,
                                    loan.charge, message);
    if (!kept)
        message_release_owned(message);
    return kept;
}

static void deliver(ls_node *node, struct peer *origin,
                    const struct wire_header *header, struct message *message)
{
    const uint8_t *data;
    size_t size;
    bool kept = false;
    const bool right = bus_payload(message, header, &data, &size);
    if (right && header->of == WIRE_KIND_CHANNEL)
        channels_message(node, header, data, size);
    else if (right && is_block(header) && header->of == WIRE_KIND_CHUNK)
        deliver_body(node, origin, header, data, size);
    else if (right && is_block(header))
        kept = deliver_block(node, origin, header, data, size, message);
    else if (right && !channels_part(node, header, data, size, message, &kept))
        kept = deliver_event(node, origin, header, data, size, size, message);
    if (!kept)
        bus_drop(node, message);
}

static void deliver_kept(ls_node *node, struct peer *origin,
                         struct stream_receiver *in)
{
    struct message *message;
    while ((message = stream_take(in)) != NULL) {
        struct wire_header header;
        char topic_class;
        uint32_t to;
        if (wire_header_read(message->head, message->head_size, &topic_class,
                             &to, &header) == LS_OK)
            deliver(node, origin, &header, message);
        else
            bus_drop(node, message);
    }
}

/* Whether the sender keeps to the room that it was told of; before it was told
 * of any, to what everybody has. */
static bool is_granted(const struct peer_streams *streams,
                       const struct wire_header *header, size_t size)
{
    return header->of == WIRE_KIND_CHANNEL ||
           header->number < streams->in.next ||
           (streams->got_messages <
                streams->permitted_messages + STREAM_FIRST_MESSAGES &&
            streams->got_bytes + size <=
                streams->permitted_bytes + STREAM_FIRST_BYTES);
}

/* What a new life may send unasked: not on top of a window that the one before
 * has filled. */
static bool finds_room(const ls_node *node, const struct peer_streams *streams,
                       const struct wire_header *header)
{
    if (header->of == WIRE_KIND_CHANNEL ||
        streams->got_messages < streams->permitted_messages)
        return true;
    const struct account room = room_of(node, streams);
    return room.messages != 0 && room.bytes != 0;
}

static void count(struct peer_streams *streams,
                  const struct wire_header *header, size_t size)
{
    if (header->of == WIRE_KIND_CHANNEL)
        return;
    streams->got_messages++;
    streams->got_bytes += size;
}

/* Bus thread, which alone needs the lock only to make them. */
static struct peer_streams *get_unlocked(ls_node *node, struct peer *peer)
{
    struct peer_streams *streams = streams_of(peer);
    if (streams != NULL)
        return streams;
    transport_lock(node->transport);
    streams = get(peer);
    transport_unlock(node->transport);
    return streams;
}

int streams_message(ls_node *node, struct peer *origin,
                    const struct wire_header *header, struct message *message,
                    bool *kept)
{
    const size_t size = bus_payload_size(message, header);
    *kept = false;
    if (header->to_incarnation != node->me.incarnation) {
        ls_take(LS_TAKES_STREAM_OTHER_LIFE);
        return LS_OK; /* for an earlier life of this node */
    }
    if (message->n_frames != (header->data != NULL ? 1u : 2u) ||
        size > WIRE_CHUNK_BYTES || !wire_payload_fits(header, size))
        return ls_error(LS_EPROTO, "a message whose total, offset and payload "
                                   "do not agree");
    struct peer_streams *streams = get_unlocked(node, origin);
    if (streams == NULL)
        return LS_OK; /* it will come again */
    const size_t weight =
        is_block(header) ? blocks_weight(node, header->data, size) : size;
    if (!is_granted(streams, header, weight))
        return ls_error(LS_ELIMIT, "it sent more than it has room for here");
    if (!finds_room(node, streams, header))
        return LS_OK; /* it will come again */
    const bool was_whole = streams->in.n_held == 0;
    const enum stream_verdict verdict =
        stream_receive(&streams->in, header->number, message, weight,
                       node->options.window_bytes);
    if (verdict == STREAM_DELIVER || verdict == STREAM_HOLD)
        count(streams, header, weight);
    if (verdict == STREAM_DELIVER) {
        deliver(node, origin, header, message);
    } else if (verdict != STREAM_HOLD) {
        atomic_fetch_add(&node->figures.repeated, 1);
        streams->repeats += verdict == STREAM_REPEATED ? 1 : 0;
    }
    deliver_kept(node, origin, &streams->in);
    note_arrival(node, streams, weight,
                 (verdict == STREAM_HOLD && was_whole) ||
                     (header->flags & (WIRE_FLAG_LATEST | WIRE_FLAG_TELL)) !=
                         0);
    *kept = verdict == STREAM_DELIVER || verdict == STREAM_HOLD;
    return LS_OK;
}

void streams_release(ls_node *node, const struct peer *peer, uint64_t messages,
                     uint64_t bytes)
{
    struct peer_streams *streams = streams_of(peer);
    const struct ls_node_options *o = &node->options;
    atomic_fetch_sub(&streams->held_messages, messages);
    atomic_fetch_sub(&streams->held_bytes, bytes);
    const struct account room = room_of(node, streams);
    if (less(room.messages, streams->told_messages) < o->window_messages / 4 &&
        less(room.bytes, streams->told_bytes) < o->window_bytes / 4)
        return;
    if (!atomic_exchange(&streams->room_made, true))
        node_wake(node);
}

/* ---- time -------------------------------------------------------------- */

static int64_t tick(ls_node *node, const struct peer *peer, int64_t now)
{
    struct peer_streams *streams = streams_of(peer);
    int64_t next = LS_FOREVER;
    if (streams == NULL || !member_is_here(&peer->member))
        return next;
    if (streams->ack_due || streams->ack_at <= now ||
        atomic_load(&streams->room_made))
        acknowledge(node, peer, streams);
    next = streams->ack_at;
    const bool due = streams->out.resend_at <= now;
    if (streams->out.resend_at != LS_FOREVER) {
        const int64_t at = stream_tick(&streams->out, now);
        next = at < next ? at : next;
    }
    if (due)
        transmit(node, peer, streams);
    return next;
}

int64_t streams_tick(ls_node *node, int64_t now)
{
    int64_t next = LS_FOREVER;
    if (node->acknowledge_all)
        streams_acknowledge_all(node);
    for (size_t i = 0; i < node->world.n; i++) {
        const int64_t at = tick(node, world_at(node, i), now);
        next = at < next ? at : next;
    }
    return next;
}

void streams_acknowledge_all(ls_node *node)
{
    for (size_t i = 0; i < node->world.n; i++) {
        const struct peer *peer = world_at(node, i);
        struct peer_streams *streams = streams_of(peer);
        if (streams != NULL && streams->used && member_is_here(&peer->member))
            acknowledge(node, peer, streams);
    }
    if (!node->acknowledge_all)
        return;
    node->acknowledge_all = false;
    ls_cond_broadcast(&node->changed);
}

static bool drained(const ls_node *node)
{
    for (size_t i = 0; i < node->world.n; i++) {
        const struct peer_streams *streams = streams_of(world_at(node, i));
        if (streams != NULL &&
            (!stream_is_idle(&streams->out) ||
             (streams->latest_waits && member_is_here(node->world.at[i]))))
            return false;
    }
    return true;
}

void streams_drain(ls_node *node, int64_t deadline)
{
    ls_mutex *mutex = transport_mutex(node->transport);
    int status = LS_OK;
    while (!drained(node) && status == LS_OK)
        status = ls_cond_wait(&node->changed, mutex, deadline);
    node->acknowledge_all = true;
    node_wake(node);
    while (node->acknowledge_all && status == LS_OK)
        status = ls_cond_wait(&node->changed, mutex, deadline);
}

void streams_close(ls_node *node)
{
    latest_close(node);
    for (size_t i = 0; i < node->world.n; i++)
        streams_reset(node, world_at(node, i));
}
