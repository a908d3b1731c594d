/* The bus thread: reads everything that comes, keeps the world, and hands
 * events to the dispatch thread. It never runs user code, so nothing that a
 * handler does can starve presence or barriers. */
#include "incoming.h"

#include <stdio.h>
#include <string.h>

#include "text_cut.h"

struct wire_header bus_header(const ls_node *node, enum wire_kind kind)
{
    return (struct wire_header){.kind = kind,
                                .job = node->me.job_hash,
                                .origin = node->options.id,
                                .incarnation = node->me.incarnation};
}

int bus_send(ls_node *node, uint32_t to, struct wire_header *header,
             const void *data, size_t size)
{
    return bus_send_two(node, to, header, NULL, 0, data, size);
}

/* Topic and header of a message with a payload of so many bytes behind it. */
static size_t begin_message(uint8_t head[WIRE_HEAD_MAX], uint32_t to,
                            struct wire_header *header, size_t size)
{
    const size_t n = wire_topic_inbox(head, to);
    header->data = head; /* inside the frame */
    header->size = size;
    return n + wire_header_write(head + n, header);
}

/* Two members need one connection, if what is for the lower id goes up to it:
 * each message carries what TCP has to say of those that came the other way. */
static bool goes_up(const ls_node *node, const struct peer *peer)
{
    return peer->member.id < node->options.id && peer->member.via == NULL &&
           peer->link != NULL && bus_is_current(node) &&
           link_serves(node, peer->link);
}

int bus_send_alone(ls_node *node, const struct peer *peer,
                   struct wire_header *header, const void *data, size_t size)
{
    uint8_t head[WIRE_HEAD_MAX];
    const size_t n = begin_message(head, peer->member.id, header, size);
    if (n + size <= TRANSPORT_UP_MAX && goes_up(node, peer) &&
        transport_link_send(peer->link->transport, head, n, data, size) ==
            LS_OK)
        return LS_OK;
    return transport_publish(node->transport, head, n, data, size);
}

int bus_send_two(ls_node *node, uint32_t to, struct wire_header *header,
                 const void *first, size_t first_size, const void *data,
                 size_t size)
{
    uint8_t head[WIRE_HEAD_MAX + LS_CHANNEL_HEAD_MAX];
    const size_t n = begin_message(head, to, header, first_size + size);
    if (first_size != 0)
        memcpy(head + n, first, first_size);
    return transport_publish(node->transport, head, n + first_size, data, size);
}

void bus_tell(ls_node *node, const struct peer *peer,
              const struct wire_header *header)
{
    uint8_t head[WIRE_HEAD_MAX];
    size_t n = wire_topic_inbox(head, peer->member.id);
    n += wire_header_write(head + n, header);
    if (!rings_send(node, peer, head, n, NULL, 0))
        (void)transport_publish(node->transport, head, n, NULL, 0);
}

/* ---- what comes over a link -------------------------------------------- */

static void refuse_peer(ls_node *node, const struct member *member,
                        enum ls_refusal_kind kind)
{
    char who[32];
    snprintf(who, sizeof who, "node %u", member->id);
    refusals_note(&node->refusals, kind, who, 1, node->loop.now);
}

struct message *bus_take(ls_node *node)
{
    return message_take(node->pool, &node->loop.spare);
}

void bus_drop(ls_node *node, struct message *message)
{
    /* Into the spare ones of this thread: it is still warm. */
    transport_release(message);
    message_list_append(&node->loop.spare, message);
}

static void bus_refuse(ls_node *node, struct link *link,
                       enum ls_refusal_kind kind)
{
    transport_lock(node->transport);
    if (link->refusal[0] == '\0')
        text_cut(link->refusal, sizeof link->refusal, ls_error_text());
    if (link->peer != NULL)
        refuse_peer(node, &link->peer->member, kind);
    else
        refusals_note(&node->refusals, kind, link->endpoint, 1, node->loop.now);
    transport_unlock(node->transport);
}

void bus_refuse_member(ls_node *node, const struct member *member,
                       enum ls_refusal_kind kind)
{
    transport_lock(node->transport);
    refuse_peer(node, member, kind);
    transport_unlock(node->transport);
}

size_t bus_payload_size(const struct message *message,
                        const struct wire_header *header)
{
    return header->data != NULL ? header->size : message->tail_size;
}

bool bus_payload(const struct message *message,
                 const struct wire_header *header, const uint8_t **data,
                 size_t *size)
{
    if (message->n_frames != (header->data != NULL ? 1u : 2u))
        return false;
    *data = header->data != NULL ? header->data : message->tail;
    *size = bus_payload_size(message, header);
    return *size <= WIRE_CHUNK_BYTES;
}

static void read_verdict(ls_node *node, const struct link *link,
                         const struct wire_header *header)
{
    char text[LS_ENDPOINT_MAX + 1] = "";
    const size_t n = header->data == NULL || header->size > LS_ENDPOINT_MAX
                         ? 0
                         : header->size;
    if (n != 0)
        memcpy(text, header->data, n);
    text[n] = '\0';
    const struct verdict verdict = {.reason = header->reason,
                                    .subject = header->subject,
                                    .members = header->members,
                                    .silence_ms = header->silence_ms,
                                    .text = text};
    struct member *from =
        link->same_id || link->peer == NULL ? NULL : &link->peer->member;
    if (from != NULL && verdict.reason == LS_ELOST &&
        verdict.subject == node->me.incarnation)
        link->peer->hop->counts =
            false; /* what it goes on to send is not for us */
    if (membership_verdict(&node->world, from, &verdict, link->attached,
                           node->loop.now) != LS_OK)
        refusals_note(&node->refusals, LS_REFUSAL_IDENTITY, link->endpoint, 1,
                      node->loop.now);
    ls_cond_broadcast(&node->changed);
}

static void read_heartbeat(ls_node *node, struct peer *origin,
                           const struct wire_header *header)
{
    const int status = heartbeat_read(node, origin, header);
    if (status == LS_EMISMATCH && origin->link != NULL)
        answer_mismatch(node, origin->link);
    else if (status != LS_OK)
        refuse_peer(node, &origin->member, LS_REFUSAL_FORM);
}

static void control_message(ls_node *node, const struct link *link,
                            struct peer *origin,
                            const struct wire_header *header)
{
    if (header->kind != WIRE_KIND_CREDIT && header->kind != WIRE_KIND_ACK)
        bus_look_after(node);
    transport_lock(node->transport);
    switch (header->kind) {
    case WIRE_KIND_HEARTBEAT:
        read_heartbeat(node, origin, header);
        break;
    case WIRE_KIND_CREDIT:
        if (header->sequence == node->me.incarnation)
            flow_credit(node, origin, header);
        break;
    case WIRE_KIND_ACK:
        streams_acknowledged(node, origin, header);
        break;
    case WIRE_KIND_FAREWELL:
        membership_farewell(&node->world, &origin->member, header->reason,
                            node->loop.now);
        break;
    case WIRE_KIND_VERDICT:
        read_verdict(node, link, header);
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
    if (node->me.hub && (elsewhere || header->kind == WIRE_KIND_FAREWELL)) {
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
        link->peer->hop->counts &&
        header->incarnation == node->me.incarnation &&
        (header->kind == WIRE_KIND_EVENT || header->kind == WIRE_KIND_CHUNK) &&
        bus_payload(message, header, &data, &size))
        incoming_pass_over(node, link->peer, header, size);
}

/* It goes on although it was not granted more: what it sends is not read any
 * longer, and it is told that it is not a member. At an address that the user
 * gave its next life may be met. Of a leaf behind a hub it is only not
 * accepted. */
static void cut_off(ls_node *node, struct link *link, struct peer *peer)
{
    transport_lock(node->transport);
    if (node->world.leaving) { /* the others do not count this node any more */
        transport_unlock(node->transport);
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
        return;
    }
    refuse_peer(node, &peer->member, LS_REFUSAL_WINDOW);
    if (peer->member.via == NULL) {
        membership_apply(&node->world, &peer->member,
                         member_is_lost(&peer->member, LS_EPROTO),
                         node->loop.now);
        if (link->peer == peer) /* else another is dialled there by now */
            link->closing = true;
        atomic_store(&node->join.dial_wanted, true);
    }
    bus_look_after(node);
    transport_unlock(node->transport);
}

/* What a leaf says to others through its hub. */
static bool is_passed_on(enum wire_kind kind)
{
    return kind == WIRE_KIND_EVENT || kind == WIRE_KIND_CHUNK ||
           kind == WIRE_KIND_RELIABLE || kind == WIRE_KIND_ACK ||
           kind == WIRE_KIND_CHANNEL || kind == WIRE_KIND_FAREWELL;
}

/* What a member says. Returns whether the message was kept. */
static bool from_member(ls_node *node, struct link *link, struct peer *origin,
                        const struct wire_header *header, bool inbox,
                        uint32_t to, struct message *message)
{
    struct incoming in = {
        .direct = link->peer, .origin = origin, .header = header};
    bool kept = false;
    int status = LS_OK;
    if (origin != link->peer && !is_passed_on(header->kind))
        status = ls_error(LS_EPROTO, "a hub has passed on what is not for "
                                     "others");
    else if (header->kind == WIRE_KIND_EVENT ||
             header->kind == WIRE_KIND_CHUNK ||
             header->kind == WIRE_KIND_BATCH) {
        if (!link->peer->hop->counts)
            atomic_fetch_add_explicit(&node->figures.early, 1,
                                      memory_order_relaxed);
        else if (header->kind == WIRE_KIND_BATCH)
            status = incoming_batch(node, &in, message, inbox, &kept);
        else
            status = incoming_event(node, &in, message, inbox, to, &kept);
    } else if (relayed_control(node, link->peer, message, header, inbox, to)) {
        return false;
    } else if (header->kind == WIRE_KIND_RELIABLE) {
        status = streams_message(node, origin, header, message, &kept);
    } else if (header->kind == WIRE_KIND_CHANNEL) {
        channels_message(node, header, header->data, header->size);
    } else {
        control_message(node, link, origin, header);
    }
    if (status == LS_ELIMIT)
        cut_off(node, link, origin);
    else if (status != LS_OK)
        bus_refuse_member(node, &origin->member, LS_REFUSAL_FORM);
    return kept;
}

/* What one says that is not a member yet, or not any more: only what makes it
 * one, or tells this node why it is none. */
static void from_other(ls_node *node, struct link *link, struct peer *origin,
                       const struct wire_header *header)
{
    const bool ended = member_has_ended(&origin->member);
    const bool lost = origin->member.state == LS_MEMBER_LOST;
    const bool direct = origin == link->peer;
    if ((direct && header->kind == WIRE_KIND_VERDICT) ||
        (direct && header->kind == WIRE_KIND_HEARTBEAT && (lost || !ended)) ||
        (header->kind == WIRE_KIND_FAREWELL && !ended)) {
        control_message(node, link, origin, header);
        if (header->kind == WIRE_KIND_VERDICT || !lost)
            return;
    }
    if (!ended) {
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
        return;
    }
    transport_lock(node->transport);
    (void)ls_error(LS_ENOENT, "this life of node %u has ended",
                   origin->member.id);
    if (lost)
        refuse_peer(node, &origin->member, LS_REFUSAL_STALE);
    membership_remind(&node->world, &origin->member, node->loop.now);
    transport_unlock(node->transport);
}

/* Whose it is, looked up only when it is not as it was last time. */
static struct peer *find_origin(ls_node *node, struct link *link,
                                const struct wire_header *header, bool *early)
{
    struct peer *origin = link->peer;
    *early = false;
    if (origin != NULL && origin->member.id == header->origin &&
        origin->member.incarnation == header->incarnation &&
        link->life == header->incarnation && header->job == node->me.job_hash &&
        !link->closing)
        return origin;
    transport_lock(node->transport);
    bus_look_after(node);
    origin = NULL;
    if (header->job != node->me.job_hash) {
        (void)ls_error(LS_EMISMATCH, "it belongs to another job");
        refusals_note(&node->refusals, LS_REFUSAL_WORLD, link->endpoint, 1,
                      node->loop.now);
    } else if (!link->closing) {
        origin = answer_origin(node, link, header, early);
    }
    transport_unlock(node->transport);
    return origin;
}

/* Over a connection that has proved whose it is. */
static bool trusted(ls_node *node, struct link *link, struct message *message,
                    const struct wire_header *header, bool inbox, uint32_t to)
{
    bool early;
    if (link->same_id) {
        transport_lock(node->transport);
        if (header->kind == WIRE_KIND_VERDICT)
            read_verdict(node, link, header);
        transport_unlock(node->transport);
        return false;
    }
    if (link->peer != NULL)
        rings_read_of(node, link->peer);
    struct peer *origin = find_origin(node, link, header, &early);
    if (link->peer != NULL && link->life == link->peer->member.incarnation)
        atomic_store_explicit(&link->peer->member.heard_at, node->loop.now,
                              memory_order_relaxed);
    if (early)
        return early_keep(node, link->peer, header, message);
    if (origin == NULL || link->peer == NULL) {
        echo(node, link, message, header);
        return false;
    }
    if (origin->member.state == LS_MEMBER_READY &&
        link->peer->member.state == LS_MEMBER_READY)
        return from_member(node, link, origin, header, inbox, to, message);
    from_other(node, link, origin, header);
    return false;
}

static void on_message(void *self, void *owner, struct message *message)
{
    ls_node *node = self;
    struct link *link = owner;
    struct wire_header header;
    char topic_class;
    uint32_t to = 0;
    bool kept = false;
    if (link == NULL) {
        bus_drop(node, message);
        return;
    }
    int status = wire_header_read(message->head, message->head_size,
                                  &topic_class, &to, &header);
    if (message->n_frames > 2)
        status = ls_error(LS_EPROTO, "a message of more than two frames");
    if (status != LS_OK) {
        bus_refuse(node, link, LS_REFUSAL_FORM);
    } else if (message->trusted && header.kind != WIRE_KIND_PROOF) {
        kept = trusted(node, link, message, &header, topic_class == WIRE_INBOX,
                       to);
    } else if (!message->trusted) {
        transport_lock(node->transport);
        answer_read(node, link, message, &header);
        transport_unlock(node->transport);
    }
    if (!kept)
        bus_drop(node, message);
}

/* What is counted, or says what is: from when the connection has said so. */
static int near_account(ls_node *node, struct peer *origin,
                        const struct wire_header *header,
                        struct message *message, bool *kept)
{
    struct incoming in = {
        .direct = origin, .origin = origin, .near = true, .header = header};
    if (!origin->hop->counts)
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
    else if (header->kind == WIRE_KIND_EVENT)
        return incoming_event(node, &in, message, true, node->options.id, kept);
    else
        control_message(node, origin->link, origin, header);
    return LS_OK;
}

/* What comes in a ring, from the member whose memory it is. */
static int near_message(ls_node *node, struct peer *origin,
                        struct message *message, bool *kept)
{
    struct wire_header header;
    char topic_class;
    uint32_t to = 0;
    const int status = wire_header_read(message->head, message->head_size,
                                        &topic_class, &to, &header);
    if (status != LS_OK)
        return status;
    if (topic_class != WIRE_INBOX || to != node->options.id ||
        header.job != node->me.job_hash || header.origin != origin->member.id ||
        header.incarnation != origin->member.incarnation)
        return ls_error(LS_EPROTO, "a frame of a ring that is for another, or "
                                   "of another");
    if (header.kind == WIRE_KIND_RELIABLE)
        return streams_message(node, origin, &header, message, kept);
    if (header.kind == WIRE_KIND_EVENT || header.kind == WIRE_KIND_CREDIT)
        return near_account(node, origin, &header, message, kept);
    if (header.kind != WIRE_KIND_ACK)
        return ls_error(LS_EPROTO, "a frame of a ring that can be in none");
    control_message(node, origin->link, origin, &header);
    return LS_OK;
}

void bus_near(ls_node *node, struct peer *origin, struct message *message)
{
    bool kept = false;
    int status = LS_OK;
    if (origin->member.state == LS_MEMBER_READY && origin->link != NULL)
        status = near_message(node, origin, message, &kept);
    else
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
    if (status == LS_ELIMIT)
        cut_off(node, origin->link, origin);
    else if (status != LS_OK)
        bus_refuse_member(node, &origin->member, LS_REFUSAL_FORM);
    if (!kept)
        bus_drop(node, message);
}

/* Whom it is of. early: that one is not present over the connection that it
 * came by, or is no member yet, or any more. Errors: LS_EMISMATCH; LS_EPROTO.
 */
static int check_speaker(const ls_node *node, const struct speaker *by,
                         const struct wire_header *header, bool *early)
{
    const struct peer *origin = world_find(node, header->origin);
    const bool shown =
        origin != NULL &&
        (by->own || member_shows_over(&origin->member, by->connection));
    *early = !shown || origin->member.state != LS_MEMBER_READY ||
             origin->member.incarnation != header->incarnation;
    if (header->job != node->me.job_hash)
        return ls_error(LS_EMISMATCH, "it belongs to another job");
    return membership_may_send_up(&node->world, by, header->origin, shown);
}

/* Up comes what one member says to this one alone, on a channel. */
static void on_said(void *self, const uint8_t *frame, size_t size,
                    const struct speaker *by)
{
    ls_node *node = self;
    struct wire_header header;
    char topic_class;
    uint32_t to = 0;
    int status = wire_header_read(frame, size, &topic_class, &to, &header);
    if (status == LS_OK &&
        (topic_class != WIRE_INBOX || to != node->options.id ||
         header.kind != WIRE_KIND_CHANNEL || header.data == NULL))
        status = ls_error(LS_EPROTO, "what is for others, or of a kind that "
                                     "is published, was sent up");
    if (status != LS_OK) {
        refuse_speaker(node, by, LS_REFUSAL_FORM);
        return;
    }
    bool early;
    status = check_speaker(node, by, &header, &early);
    if (status != LS_OK) {
        refuse_speaker(node, by,
                       status == LS_EPROTO ? LS_REFUSAL_IDENTITY
                                           : LS_REFUSAL_WORLD);
    } else if (early) {
        atomic_fetch_add_explicit(&node->figures.early, 1,
                                  memory_order_relaxed);
    } else {
        transport_unlock(node->transport);
        channels_message(node, &header, header.data, header.size);
        transport_lock(node->transport);
    }
}

static struct message *on_take(void *self)
{
    return bus_take(self);
}

static void on_probed(void *self, const char *endpoint,
                      enum transport_probed answer)
{
    ls_node *node = self;
    transport_lock(node->transport);
    bus_look_after(node);
    membership_probed(&node->world, endpoint, answer == TRANSPORT_REFUSES,
                      node->loop.now);
    transport_unlock(node->transport);
}

static void on_refused(void *self, const struct transport_refusal *refusal)
{
    ls_node *node = self;
    transport_lock(node->transport);
    (void)ls_error(LS_EPROTO, "%s", refusal->why);
    refusals_note(&node->refusals,
                  refusal->too_much ? LS_REFUSAL_WINDOW : LS_REFUSAL_STRANGER,
                  refusal->who, refusal->n, node->loop.now);
    transport_unlock(node->transport);
}

static void on_subscription(void *self, const uint8_t *topic, size_t size,
                            bool subscribed, const struct speaker *by)
{
    subscription_read(self, topic, size, subscribed, by);
}

/* Whether a connection is that of a member, whose windows bound what waits. */
static bool is_of_member(void *self, uint64_t connection)
{
    const ls_node *node = self;
    return membership_shows_over(&node->world, connection, true);
}

static void on_cut(void *self, const char *name)
{
    ls_node *node = self;
    (void)ls_error(LS_ELIMIT, "it does not read what it subscribed to, and was "
                              "cut off");
    refusals_note(&node->refusals, LS_REFUSAL_WINDOW, name, 1, node->loop.now);
}

/* What came meanwhile is heard now, however late this thread was woken. */
static bool on_rests(void *self, bool begins)
{
    ls_node *node = self;
    const bool rests = turns_rest(node, begins);
    if (!begins && rests) /* else the turn is lent, and the clock with it */
        node->loop.now = ls_now(node->runtime);
    return rests;
}

/* ---- the loop ---------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The world, the links and the streams. Lock held; returns when to look again.
 */
static int64_t look_after_world(ls_node *node, int64_t now)
{
    batch_flush(node);
    join_dial(node);
    if (bus_omits(node, BUS_EXCUSES, NULL))
        node->world.looked_at = 0;
    const int64_t stood_ns = node->world.stood_ns;
    int64_t next = doubts_tick(node, now);
    next = earlier(next, membership_tick(&node->world, now));
    if (node->world.stood_ns != stood_ns)
        links_excuse(node, node->world.stood_ns - stood_ns, now);
    rejoin(node);
    world_probe(node);
    events_sweep(node);
    next = earlier(next, streams_tick(node, now));
    next = earlier(next, links_tick(node, now));
    next = earlier(next, early_tick(node, now));
    links_close_marked(node);
    if (transport_is_crowded(node->transport))
        next = earlier(next, transport_look(node->transport, now, is_of_member,
                                            on_cut, node));
    next = earlier(next, blocks_tick(node, now));
    next = earlier(next, heartbeat_tick(node, now));
    return earlier(next, farewell_tick(node, now));
}

/* Heartbeats, the world, timers, what others asked for; returns when to look
 * again at the latest. */
static int64_t look_after(ls_node *node)
{
    const int64_t now = node->loop.now;
    transport_lock(node->transport);
    const int64_t next = look_after_world(node, now);
    atomic_store(&node->loop.looks_at, next); /* before the timers are read */
    const bool room = node->loop.room_made;
    node->loop.room_made = false;
    const bool near = node->loop.near_made;
    node->loop.near_made = false;
    transport_unlock(node->transport);
    early_hand_on(node);
    if (room)
        channels_room(node);
    if (near)
        channels_near_made(node);
    links_sync_interests(node);
    const int status = atomic_exchange(&node->loop.interrupt_soon, 1);
    if (status != 1)
        ls_node_interrupt(node, status);
    const int64_t timer = channels_tick(node, now);
    world_tell_news(node);
    return earlier(next, timer);
}

void bus_turn(ls_node *node, int64_t until)
{
    static const struct transport_events events = {.subscription =
                                                       on_subscription,
                                                   .said = on_said,
                                                   .message = on_message,
                                                   .take = on_take,
                                                   .probed = on_probed,
                                                   .refused = on_refused,
                                                   .rests = on_rests};
    (void)transport_poll(node->transport, earlier(until, node->loop.next),
                         &events, node);
    node->loop.now = ls_now(node->runtime);
    rings_ring(node);
    rings_read(node);
    /* Only when there is need: the task thread that a message has just woken
     * wants the same lock. */
    if (atomic_exchange(&node->loop.chores, false) ||
        node->loop.now >= node->loop.next ||
        transport_is_crowded(node->transport))
        node->loop.next = look_after(node);
    if (node->loop.arrived.n != 0)
        dispatch_add(node, &node->loop.arrived);
}

static void thread_main(void *self)
{
    ls_node *node = self;
    ls_log_set_node(node->options.id);
    node->loop.next = LS_NOW;
    node->loop.now = ls_now(node->runtime);
    while (!atomic_load(&node->loop.stopping))
        bus_turn(node, LS_FOREVER);
    transport_lock(node->transport);
    node->loop.ended = true;
    ls_cond_broadcast(&node->changed);
    transport_unlock(node->transport);
}

/* ---- its life ---------------------------------------------------------- */

void bus_init(struct loop *loop)
{
    atomic_store(&loop->interrupt_soon, 1);
    message_list_init(&loop->spare);
    message_list_init(&loop->arrived);
}

int bus_start(ls_node *node)
{
    return ls_thread_spawn(node->runtime, &node->loop.thread, "ls-bus",
                           thread_main, node);
}

void bus_stop(ls_node *node)
{
    int status = LS_OK;
    atomic_store(&node->loop.stopping, true);
    ls_node_interrupt(node, LS_ECLOSED);
    node_wake(node);
    transport_lock(node->transport);
    while (node->loop.thread != NULL && !node->loop.ended && status == LS_OK)
        status = ls_cond_wait(&node->changed, transport_mutex(node->transport),
                              LS_FOREVER);
    transport_unlock(node->transport);
}

void bus_join(ls_node *node)
{
    if (ls_thread_join(&node->loop.thread, LS_FOREVER) != LS_OK)
        ls_log_error("bus: the bus thread of node %u did not end",
                     node->options.id);
}

void bus_fini(struct loop *loop, message_pool *pool)
{
    message_give_back(pool, &loop->spare);
    message_give_back(pool, &loop->arrived);
}

void bus_room_made(ls_node *node)
{
    node->loop.room_made = true;
    bus_look_after(node);
}
