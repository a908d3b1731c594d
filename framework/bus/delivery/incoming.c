/* Events on their way in: to the dispatch thread, put together first when they
 * are long, or passed on by a hub. Each is handled once and in order, or it is
 * counted. */
#include "incoming.h"

/* What a delivery made its sender take back is missed all the same. */
#define WITHDRAWN (WIRE_FLAG_WITHDRAW | WIRE_FLAG_DROP)

/* What came and was not kept makes room at once. */
static void make_room(ls_node *node, struct peer *direct)
{
    transport_lock(node->transport);
    flow_release(node, direct, 0, 0);
    transport_unlock(node->transport);
}

/* It takes a long event back, and is not counted by either side. */
static bool is_withdrawal(const struct wire_header *header)
{
    return (header->flags & WIRE_FLAG_WITHDRAW) != 0;
}

/* It came, and is kept or not. */
static void note_got(ls_node *node, const struct incoming *in, bool keep)
{
    if (in->counted || is_withdrawal(in->header))
        return;
    if (in->near)
        flow_got_near(in->direct, in->size);
    flow_got(in->direct, 1, in->size, keep);
    if (!keep)
        make_room(node, in->direct);
}

/* A message that is handled here: to the dispatch thread, or put together
 * first. Returns whether the message was kept. */
static bool deliver(ls_node *node, const struct incoming *in,
                    struct event_entry *entry, struct message *message)
{
    const struct wire_header *header = in->header;
    struct message *whole = message;
    bool keep = !in->counted;
    if (header->kind == WIRE_KIND_CHUNK) {
        whole = assembly_add(node, in->origin, in->direct, entry, header,
                             in->data, in->size, &keep);
    } else {
        whole->held_messages = 1;
        whole->held_bytes = in->size;
        whole->event.data = in->data;
        whole->event.size = in->payload_size;
    }
    note_got(node, in, keep);
    if (header->kind == WIRE_KIND_CHUNK &&
        (whole != NULL || (header->flags & WITHDRAWN) == WIRE_FLAG_WITHDRAW))
        (void)events_sequence(node, entry, header, 1);
    if (whole == NULL)
        return false;
    whole->peer = in->counted ? NULL : in->direct;
    bus_event(node, whole, entry, header);
    return whole == message;
}

void incoming_pass_over(ls_node *node, struct peer *direct,
                        const struct wire_header *header, size_t size)
{
    const struct incoming in = {
        .direct = direct, .header = header, .size = size};
    struct event_entry *entry =
        events_heard(node, header->name, header->name_size);
    if (entry != NULL && header->kind == WIRE_KIND_EVENT &&
        !events_stream_sequence(node, entry, header))
        return; /* it comes back twice */
    note_got(node, &in, false);
}

/* Let a hub pass it on: in a copy, so that it can be handled here as well. */
static void pass_on(ls_node *node, struct peer *direct,
                    const struct message *message,
                    const struct wire_header *header, size_t size, uint32_t to,
                    bool inbox)
{
    struct message *copy = bus_take(node);
    if (copy == NULL)
        return;
    transport_copy(copy, message);
    transport_lock(node->transport);
    const bool waits = relay_message(node, direct, copy, header, to, inbox);
    if (!is_withdrawal(header))
        flow_got(direct, 1, size, waits);
    if (!waits)
        flow_release(node, direct, 0, 0);
    transport_unlock(node->transport);
    if (!waits)
        bus_drop(node, copy);
}

/* Passed on, and counted there: handled here in a copy that nobody's window
 * holds. */
static void deliver_too(ls_node *node, const struct incoming *in,
                        struct event_entry *entry,
                        const struct message *message)
{
    struct message *copy = bus_take(node);
    if (copy == NULL)
        return;
    transport_copy(copy, message);
    struct incoming again = *in;
    if (in->header->data != NULL)
        again.data = copy->head + (in->data - message->head);
    else
        again.data = copy->tail;
    again.counted = true;
    if (!deliver(node, &again, entry, copy))
        bus_drop(node, copy);
}

/* What comes twice, or too late, would break the order. It is not counted in
 * the window: its sender has sent it once, and counts it in a heartbeat. */
static bool is_repeated(ls_node *node, struct event_entry *entry,
                        const struct wire_header *header, uint64_t n)
{
    struct wire_header last = *header;
    last.sequence += n - 1;
    if (entry == NULL || events_is_new(node, entry, &last))
        return false;
    atomic_fetch_add_explicit(&node->figures.repeated, n, memory_order_relaxed);
    return true;
}

/* Whether an event, or a part of one, is to be handled here. What is not
 * listened to is noted all the same: it is not missed. */
static bool is_wanted(ls_node *node, struct event_entry *entry,
                      const struct incoming *in)
{
    const struct wire_header *header = in->header;
    const bool part = header->kind == WIRE_KIND_CHUNK;
    const bool wanted = events_here(node, entry) &&
                        event_access_admits(node, entry, &in->origin->member);
    if (!part || (!wanted && header->offset + in->size >= header->total))
        (void)events_sequence(node, entry, header, 1);
    return wanted;
}

/* More than it was granted: its receiver bounds what is queued here. */
static int over(const struct peer *direct)
{
    return ls_error(LS_ELIMIT, "node %u sent more than it was granted",
                    direct->member.id);
}

/* Of those that take an event back no more wait at a hub than may of events. */
#define WAITING_WINDOWS 4

/* Whether it may come, by what its sender was granted. */
static bool may_come(const ls_node *node, const struct incoming *in)
{
    if (in->counted)
        return true;
    return is_withdrawal(in->header)
               ? in->direct->hop->relay.n <
                     (size_t)WAITING_WINDOWS * node->options.window_messages
               : flow_may(node, in->direct, 1, in->size);
}

static void count_received(ls_node *node, uint64_t n, uint64_t bytes)
{
    atomic_fetch_add_explicit(&node->figures.received, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&node->figures.received_bytes, bytes,
                              memory_order_relaxed);
}

/* An event, or a part of one, whose payload is known. */
static int take_in(ls_node *node, const struct incoming *in,
                   struct message *message, bool inbox, uint32_t to, bool *kept)
{
    const struct wire_header *header = in->header;
    const bool mine = !inbox || to == node->options.id;
    const bool others = node->me.hub && (!inbox || to != node->options.id);
    struct event_entry *entry =
        mine ? events_heard(node, header->name, header->name_size) : NULL;
    if (is_repeated(node, entry, header, 1))
        return LS_OK;
    if (!may_come(node, in))
        return over(in->direct);
    if (entry != NULL && !is_wanted(node, entry, in))
        entry = NULL;
    if (others)
        pass_on(node, in->direct, message, header, in->size, to, inbox);
    else if (entry == NULL)
        note_got(node, in, false);
    if (entry == NULL)
        return LS_OK;
    count_received(node, 1, in->payload_size);
    if (others)
        deliver_too(node, in, entry, message);
    else
        *kept = deliver(node, in, entry, message);
    return LS_OK;
}

int incoming_no_block(ls_node *node, const struct peer *from, int status)
{
    if (status == LS_EPROTO)
        return status;
    bus_refuse_member(node, &from->member,
                      status == LS_ENOENT ? LS_REFUSAL_STALE
                                          : LS_REFUSAL_WINDOW);
    return LS_OK; /* it is missed */
}

/* An event whose payload lies in a block of its sender's. */
static int take_block(ls_node *node, struct incoming *in,
                      struct message *message, bool inbox, uint32_t to,
                      bool *kept)
{
    const struct wire_header *header = in->header;
    struct block_loan loan;
    if (header->kind != WIRE_KIND_EVENT || !inbox || to != node->options.id ||
        in->origin != in->direct || in->counted)
        return ls_error(LS_EPROTO, "a block where there can be none");
    if (is_repeated(node, events_heard(node, header->name, header->name_size),
                    header, 1))
        return LS_OK;
    int status = blocks_take(node, in->origin, in->data, in->size, false,
                             node->options.max_payload_bytes, &loan);
    if (status != LS_OK)
        return incoming_no_block(node, in->origin, status);
    if (!blocks_attach(message, header, &loan))
        return LS_OK; /* it is missed */
    in->data = loan.data;
    in->payload_size = loan.size;
    in->size = loan.charge;
    status = take_in(node, in, message, inbox, to, kept);
    if (!*kept)
        message_release_owned(message);
    return status;
}

int incoming_event(ls_node *node, struct incoming *in, struct message *message,
                   bool inbox, uint32_t to, bool *kept)
{
    const struct wire_header *header = in->header;
    *kept = false;
    if (header->name_size == 0 ||
        !bus_payload(message, header, &in->data, &in->size) ||
        !wire_payload_fits(header, in->size))
        return ls_error(LS_EPROTO, "an event whose name, total, offset and "
                                   "payload do not agree");
    in->payload_size = in->size;
    return (header->flags & WIRE_FLAG_BLOCK) != 0
               ? take_block(node, in, message, inbox, to, kept)
               : take_in(node, in, message, inbox, to, kept);
}

/* Whether a batch is to be handled here. Each event of it is refused by itself.
 */
static bool is_batch_wanted(ls_node *node, struct event_entry *entry,
                            const struct incoming *in)
{
    if (entry == NULL)
        return false;
    (void)events_sequence(node, entry, in->header, in->header->total);
    for (uint32_t i = 0; i < in->header->total && events_here(node, entry); i++)
        if (event_access_admits(node, entry, &in->origin->member))
            return true;
    return false;
}

int incoming_batch(ls_node *node, const struct incoming *in,
                   struct message *message, bool inbox, bool *kept)
{
    const struct wire_header *header = in->header;
    const uint32_t n = header->total;
    *kept = false;
    if (inbox || node->me.hub || header->name_size == 0 ||
        message->n_frames != 1)
        return ls_error(LS_EPROTO, "a batch where there can be none");
    struct event_entry *entry =
        events_heard(node, header->name, header->name_size);
    if (is_repeated(node, entry, header, n))
        return LS_OK;
    if (!flow_may(node, in->direct, n, header->size))
        return over(in->direct);
    const size_t bytes = header->size - (size_t)n * WIRE_BATCH_LEAD;
    *kept = is_batch_wanted(node, entry, in);
    flow_got(in->direct, n, bytes, *kept);
    if (!*kept) {
        make_room(node, in->direct);
        return LS_OK;
    }
    count_received(node, n, bytes);
    message->peer = in->direct;
    message->held_bytes = bytes;
    message->held_messages = n;
    message->more = n - 1;
    message->next_at = header->data;
    bus_next_payload(message);
    bus_event(node, message, entry, header);
    return LS_OK;
}
