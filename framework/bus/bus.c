/* The bus thread: reads everything that comes, keeps the world, and hands
 * events to the dispatch thread. It never runs user code, so nothing that a
 * handler does can starve presence or barriers. */
#include "bus.h"

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

static void drop(ls_node *node, struct message *message)
{
    struct message_list list;
    message_list_init(&list);
    message_list_append(&list, message);
    /* Into the spare ones of this thread: it is still warm. */
    transport_release(message);
    message_list_splice(&node->spare, &list);
}

static void refuse(ls_node *node, struct link *link)
{
    transport_lock(node->transport);
    world_refuse(node, link);
    transport_unlock(node->transport);
}

static bool payload(const struct message *message,
                    const struct wire_header *header, const uint8_t **data,
                    size_t *size)
{
    if (message->n_frames != (header->data != NULL ? 1u : 2u))
        return false;
    *data = header->data != NULL ? header->data : message->tail;
    *size = header->data != NULL ? header->size : message->tail_size;
    return *size <= WIRE_CHUNK_BYTES;
}

/* An event on its way in. */
struct incoming {
    struct peer *direct; /* whose connection it came over */
    struct peer *origin;
    const struct wire_header *header;
    const uint8_t *data;
    size_t size;
    bool counted; /* in the window of `direct` already */
};

static bool listened(const struct event_entry *entry)
{
    return atomic_load_explicit(&entry->n_listeners, memory_order_relaxed) != 0;
}

/* Also of what is not handled here, or was withdrawn: it is not missed. */
static void note_sequence(ls_node *node, struct event_entry *entry,
                          const struct wire_header *header)
{
    events_sequence(node, entry, header->origin, header->incarnation,
                    header->sequence);
}

/* What came and was not kept makes room at once. */
static void make_room(ls_node *node, struct peer *direct)
{
    transport_lock(node->transport);
    flow_release(node, direct, 0, 0);
    transport_unlock(node->transport);
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
        whole = assembly_add(node, in->origin, entry, header, in->data,
                             in->size, &keep);
    } else {
        whole->held_bytes = in->size;
        whole->event.data = in->data;
        whole->event.size = in->size;
    }
    if (!in->counted)
        flow_got(in->direct, in->size, keep);
    if (!in->counted && !keep)
        make_room(node, in->direct);
    if (whole != NULL || (header->flags & WIRE_FLAG_WITHDRAW) != 0)
        note_sequence(node, entry, header);
    if (whole == NULL)
        return false;
    whole->kind = MESSAGE_EVENT;
    whole->peer = in->counted ? NULL : in->direct;
    whole->peer_life = in->direct->incarnation;
    whole->entry = entry;
    whole->event.name = entry->name;
    whole->event.origin = header->origin;
    whole->event.incarnation = header->incarnation;
    whole->event.sequence = header->sequence;
    message_list_append(&node->arrived, whole);
    return whole == message;
}

/* Not for this node, or nobody listens any more. */
static void pass_over(ls_node *node, struct peer *direct, size_t size)
{
    flow_got(direct, size, false);
    make_room(node, direct);
}

/* Let a hub pass it on: in a copy, so that it can be handled here as well. */
static void pass_on(ls_node *node, struct peer *direct,
                    const struct message *message,
                    const struct wire_header *header, size_t size, uint32_t to,
                    bool inbox)
{
    struct message *copy = message_take(node->pool, &node->spare);
    if (copy == NULL)
        return;
    transport_copy(copy, message);
    transport_lock(node->transport);
    const bool waits = relay_message(node, direct, copy, header, to, inbox);
    flow_got(direct, size, waits);
    if (!waits)
        flow_release(node, direct, 0, 0);
    transport_unlock(node->transport);
    if (!waits)
        drop(node, copy);
}

/* Passed on, and counted there: handled here in a copy that nobody's window
 * holds. */
static void deliver_too(ls_node *node, const struct incoming *in,
                        struct event_entry *entry,
                        const struct message *message)
{
    struct message *copy = message_take(node->pool, &node->spare);
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
        drop(node, copy);
}

static bool event_message(ls_node *node, struct incoming *in,
                          struct message *message, bool inbox, uint32_t to)
{
    const struct wire_header *header = in->header;
    if (header->name_size == 0 ||
        !payload(message, header, &in->data, &in->size)) {
        (void)ls_error(LS_EPROTO, "an event without name or payload");
        refuse(node, in->direct->link);
        return false;
    }
    const bool mine = !inbox || to == node->options.id;
    const bool others = node->hub && (!inbox || to != node->options.id);
    struct event_entry *entry =
        mine ? events_find(node, header->name, header->name_size) : NULL;
    if (entry != NULL && !listened(entry)) {
        note_sequence(node, entry, header);
        entry = NULL;
    }
    if (others)
        pass_on(node, in->direct, message, header, in->size, to, inbox);
    else if (entry == NULL)
        pass_over(node, in->direct, in->size);
    if (entry == NULL)
        return false;
    atomic_fetch_add_explicit(&node->received, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&node->received_bytes, in->size,
                              memory_order_relaxed);
    if (!others)
        return deliver(node, in, entry, message);
    deliver_too(node, in, entry, message);
    return false;
}

/* The events of a batch, in order. The last of them holds the frame: it is
 * handled, and released, after the others. */
static bool batch_message(ls_node *node, const struct incoming *in,
                          struct message *message, bool inbox)
{
    const struct wire_header *header = in->header;
    if (inbox || node->hub || header->name_size == 0 ||
        message->n_frames != 1) {
        (void)ls_error(LS_EPROTO, "a batch where there can be none");
        refuse(node, in->direct->link);
        return false;
    }
    struct event_entry *entry =
        events_find(node, header->name, header->name_size);
    const bool listens = entry != NULL && listened(entry);
    const uint8_t *at = header->data;
    struct wire_header one = *header;
    struct incoming each_in = {
        .direct = in->direct, .origin = in->origin, .header = &one};
    bool kept = false;
    for (uint32_t i = 0; i < header->total; i++, one.sequence++) {
        wire_batch_next(&at, &each_in.data, &each_in.size);
        const bool last = i + 1 == header->total;
        struct message *each =
            last || !listens ? message : message_take(node->pool, &node->spare);
        if (!listens || each == NULL) {
            flow_got(in->direct, each_in.size, false);
            if (entry != NULL && !listens)
                note_sequence(node, entry, &one);
            continue;
        }
        atomic_fetch_add_explicit(&node->received, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&node->received_bytes, each_in.size,
                                  memory_order_relaxed);
        kept = deliver(node, &each_in, entry, each) && last;
    }
    if (!listens)
        make_room(node, in->direct);
    return kept;
}

static void control_message(ls_node *node, struct peer *origin,
                            const struct wire_header *header)
{
    int status;
    if (header->kind != WIRE_KIND_CREDIT)
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
        payload(message, header, &data, &size))
        pass_over(node, link->peer, size);
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
        refuse(node, link);
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
        return batch_message(node, &in, message, inbox);
    if (header.kind == WIRE_KIND_EVENT || header.kind == WIRE_KIND_CHUNK)
        return event_message(node, &in, message, inbox, to);
    if (relayed_control(node, link->peer, message, &header, inbox, to))
        return false;
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
        drop(node, message);
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

/* Tell what has changed in the world: channels at once, users in order with
 * the events that came before. */
static void tell_news(ls_node *node)
{
    for (;;) {
        transport_lock(node->transport);
        struct ls_member *members = node->news;
        const size_t n = node->n_news;
        node->news = NULL;
        node->n_news = 0;
        transport_unlock(node->transport);
        if (members == NULL)
            return;
        for (size_t i = 0; i < n; i++) {
            if (members[i].id == node->options.id) {
                channels_renewed(node, members[i].incarnation);
                continue;
            }
            channels_member(node, &members[i]);
            struct message *message = message_take(node->pool, &node->spare);
            struct ls_member *copy =
                message == NULL ? NULL : malloc(sizeof *copy);
            if (copy == NULL)
                continue;
            *copy = members[i];
            message->kind = MESSAGE_MEMBER;
            message->member = copy;
            message_list_append(&node->arrived, message);
        }
        free(members);
    }
}

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
    links_close_marked(node);
    const int64_t due = announce(node, now);
    transport_unlock(node->transport);
    links_sync_interests(node);
    const int64_t timer = channels_tick(node, now);
    tell_news(node);
    next = due < next ? due : next;
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
