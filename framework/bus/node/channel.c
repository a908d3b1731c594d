/* Control messages between members. */
#include "bus.h"

#include <stdlib.h>
#include <string.h>

#include "thread_here.h"

struct ls_channel {
    ls_channel *next;
    ls_node *node;
    char name[LS_EVENT_MAX + 1];
    size_t name_size;
    const struct ls_channel_ops *ops;
    void *self;
    uint64_t number; /* from 1 */
    int64_t wake_at; /* under router */
    bool told;       /* of the members that were ready when it was opened */
    bool closed;
    bool closing; /* a thread in close waits, and frees it */
    unsigned running;
    struct line_listener listener;
};

const char *channels_open(ls_node *node)
{
    ls_mutex_lock(&node->router.lock);
    const ls_channel *channel = node->channels.first;
    while (channel != NULL && channel->closed)
        channel = channel->next;
    ls_mutex_unlock(&node->router.lock);
    return channel == NULL ? NULL : channel->name;
}

int ls_channel_open(ls_channel **out, ls_node *node, const char *name,
                    const struct ls_channel_ops *ops, void *self)
{
    *out = NULL;
    if (!wire_name_valid(name))
        return wire_name_refused(name, "a name of a channel");
    if (ops == NULL || ops->message == NULL)
        return ls_error(LS_EINVAL, "channel \"%s\": there is no op `message`",
                        name);
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u is stopping", node->options.id);
    ls_channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL)
        return ls_error(LS_ENOMEM, "no memory for a channel");
    channel->node = node;
    channel->name_size = strlen(name);
    memcpy(channel->name, name, channel->name_size + 1);
    channel->ops = ops;
    channel->self = self;
    channel->wake_at = LS_FOREVER;
    ls_mutex_lock(&node->router.lock);
    ls_channel **at = &node->channels.first;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    const bool taken = *at != NULL;
    if (!taken) {
        channel->number = ++node->channels.n;
        *at = channel;
    }
    ls_mutex_unlock(&node->router.lock);
    if (!taken && node->transport != NULL)
        node_wake(node);
    if (taken) {
        free(channel);
        return ls_error(LS_EEXIST, "node %u has a channel \"%s\"",
                        node->options.id, name);
    }
    *out = channel;
    return LS_OK;
}

static void unlink_channel(ls_node *node, const ls_channel *channel)
{
    ls_channel **at = &node->channels.first;
    while (*at != NULL && *at != channel)
        at = &(*at)->next;
    if (*at != NULL)
        *at = channel->next;
}

void ls_channel_close(ls_channel **channel_p)
{
    if (channel_p == NULL || *channel_p == NULL)
        return;
    ls_channel *channel = *channel_p;
    ls_node *node = channel->node;
    int status = node_check(node);
    if (status != LS_OK)
        return; /* the parent's */
    ls_mutex_lock(&node->router.lock);
    channel->closed = true;
    const bool in_op = bus_is_current(node) || channels_is_closer(node);
    channel->closing = !in_op;
    while (channel->running != 0 && !in_op && status == LS_OK)
        status =
            ls_cond_wait(&node->router.idle, &node->router.lock, LS_FOREVER);
    const bool running = channel->running != 0;
    if (!running)
        unlink_channel(node, channel);
    ls_mutex_unlock(&node->router.lock);
    if (!running)
        free(channel); /* else by end_op(), when its op has returned */
    *channel_p = NULL;
}

/* Router held, before and after. */
static void end_op(ls_node *node, ls_channel *channel)
{
    if (--channel->running == 0 && channel->closed && !channel->closing) {
        unlink_channel(node, channel);
        free(channel);
    } else if (channel->closed) {
        ls_cond_broadcast(&node->router.idle);
    }
}

/* A message for a channel that is not there; the router is held. */
static void tell_stray(ls_node *node, const struct wire_header *header,
                       const void *data, size_t size)
{
    char name[LS_EVENT_MAX + 1];
    memcpy(name, header->name, header->name_size);
    name[header->name_size] = '\0';
    ls_channel *channel = node->channels.first;
    while (channel != NULL) {
        ls_channel *next = channel->next;
        if (!channel->closed && channel->ops->stray != NULL) {
            channel->running++;
            ls_mutex_unlock(&node->router.lock);
            channel->ops->stray(channel->self, name, header->origin,
                                header->incarnation, data, size);
            ls_mutex_lock(&node->router.lock);
            next = channel->next;
            end_op(node, channel);
        }
        channel = next;
    }
}

/* The router is held. */
static ls_channel *find_open(const ls_node *node, const char *name, size_t size)
{
    ls_channel *channel = node->channels.first;
    while (channel != NULL && (channel->name_size != size || channel->closed ||
                               memcmp(channel->name, name, size) != 0))
        channel = channel->next;
    return channel;
}

void channels_message(ls_node *node, const struct wire_header *header,
                      const void *data, size_t size)
{
    if (data == NULL || size > LS_CHANNEL_MESSAGE_MAX)
        return;
    if (header->name_size == sizeof BLOCKS_CHANNEL - 1 &&
        memcmp(header->name, BLOCKS_CHANNEL, header->name_size) == 0) {
        blocks_message(node, header, data, size);
        return;
    }
    ls_mutex_lock(&node->router.lock);
    ls_channel *channel = find_open(node, header->name, header->name_size);
    if (channel != NULL) {
        channel->running++;
        ls_mutex_unlock(&node->router.lock);
        channel->ops->message(channel->self, header->origin,
                              header->incarnation, data, size);
        ls_mutex_lock(&node->router.lock);
        end_op(node, channel);
    } else {
        tell_stray(node, header, data, size);
    }
    ls_mutex_unlock(&node->router.lock);
    if (channel == NULL)
        calls_stray(node, header, data, size);
}

void channels_near(ls_node *node, const struct channel_note *note)
{
    ls_mutex_lock(&node->router.lock);
    ls_channel *channel = find_open(node, note->name, note->name_size);
    if (channel != NULL) {
        channel->running++;
        ls_mutex_unlock(&node->router.lock);
        channel->ops->message(channel->self, note->from, note->incarnation,
                              note->data, note->size);
        ls_mutex_lock(&node->router.lock);
        end_op(node, channel);
    }
    ls_mutex_unlock(&node->router.lock);
}

/* Its frames stay until then, and its pool may be gone. */
static void release_message(void *data, void *hint)
{
    (void)data;
    message_free(hint);
}

/* Whether a chunk is of a body, and not of an event. */
static bool is_of_body(const struct wire_header *header)
{
    return header->of == WIRE_KIND_CHUNK && header->name_size >= 3 &&
           memcmp(header->name, "ls.", 3) == 0;
}

/* Returns whether there is a channel for it; NULL: only that. */
static bool tell_part(ls_node *node, const struct wire_header *header,
                      struct ls_channel_part *part)
{
    ls_mutex_lock(&node->router.lock);
    ls_channel *channel = find_open(node, header->name, header->name_size);
    const bool found = channel != NULL && channel->ops->part != NULL;
    if (found && part != NULL) {
        channel->running++;
        ls_mutex_unlock(&node->router.lock);
        channel->ops->part(channel->self, header->origin, header->incarnation,
                           part);
        ls_mutex_lock(&node->router.lock);
        end_op(node, channel);
    }
    ls_mutex_unlock(&node->router.lock);
    return found;
}

bool channels_part(ls_node *node, const struct wire_header *header,
                   const uint8_t *data, size_t size, struct message *message,
                   bool *kept)
{
    struct ls_channel_part part = {.body = header->sequence,
                                   .total = header->total,
                                   .offset = header->offset,
                                   .data = data,
                                   .size = size,
                                   .release = release_message,
                                   .hint = message};
    const bool found =
        is_of_body(header) && tell_part(node, header, size != 0 ? &part : NULL);
    *kept = part.taken;
    return found;
}

bool channels_block(ls_node *node, const struct wire_header *header,
                    const struct block_loan *loan)
{
    struct ls_channel_part part = {.body = header->sequence,
                                   .total = loan->size,
                                   .data = loan->data,
                                   .size = loan->size,
                                   .release = blocks_give_back,
                                   .hint = loan->hold};
    const bool is_body = is_of_body(header);
    if (is_body)
        (void)tell_part(node, header, &part);
    if (loan->hold != NULL && !part.taken)
        blocks_give_back(NULL, loan->hold);
    return is_body;
}

/* Tell all channels of something, each by its op, outside the lock. */
static void tell_all(ls_node *node,
                     void (*tell)(const ls_channel *channel, const void *news),
                     const void *news)
{
    ls_mutex_lock(&node->router.lock);
    ls_channel *channel = node->channels.first;
    while (channel != NULL) {
        ls_channel *next = channel->next;
        if (!channel->closed) {
            channel->running++;
            ls_mutex_unlock(&node->router.lock);
            tell(channel, news);
            ls_mutex_lock(&node->router.lock);
            next = channel->next;
            end_op(node, channel);
        }
        channel = next;
    }
    ls_mutex_unlock(&node->router.lock);
}

/* One that is new is told of all that are ready, soon. */
static void tell_member(const ls_channel *channel, const void *member)
{
    if (channel->told && channel->ops->member != NULL)
        channel->ops->member(channel->self, member);
}

void channels_member(ls_node *node, const struct ls_member *member)
{
    tell_all(node, tell_member, member);
}

static void tell_renewed(const ls_channel *channel, const void *incarnation)
{
    if (channel->ops->renewed != NULL)
        channel->ops->renewed(channel->self, *(const uint64_t *)incarnation);
}

void channels_renewed(ls_node *node, uint64_t incarnation)
{
    tell_all(node, tell_renewed, &incarnation);
}

static void tell_room(const ls_channel *channel, const void *nothing)
{
    (void)nothing;
    if (channel->ops->room != NULL)
        channel->ops->room(channel->self);
}

void channels_room(ls_node *node)
{
    tell_all(node, tell_room, NULL);
}

static void tell_near(const ls_channel *channel, const void *nothing)
{
    (void)nothing;
    if (channel->ops->near != NULL)
        channel->ops->near(channel->self);
}

void channels_near_made(ls_node *node)
{
    tell_all(node, tell_near, NULL);
}

static void tell_closed(const ls_channel *channel, const void *nothing)
{
    (void)nothing;
    if (channel->ops->closed != NULL)
        channel->ops->closed(channel->self);
}

void channels_closed(ls_node *node)
{
    atomic_store(&node->channels.closer, ls_thread_here());
    tell_all(node, tell_closed, NULL);
    atomic_store(&node->channels.closer, NULL);
}

bool channels_is_closer(const ls_node *node)
{
    return atomic_load(&node->channels.closer) == ls_thread_here();
}

void channels_dispatched(ls_node *node, const struct message *message)
{
    ls_mutex_lock(&node->router.lock);
    ls_channel *channel = node->channels.first;
    while (channel != NULL &&
           (channel->number != message->watch || channel->closed))
        channel = channel->next;
    if (channel != NULL) {
        channel->running++;
        ls_mutex_unlock(&node->router.lock);
        channel->ops->dispatched(channel->self, message->what);
        ls_mutex_lock(&node->router.lock);
        end_op(node, channel);
    }
    ls_mutex_unlock(&node->router.lock);
}

/* Tell one channel who is there; no lock held. */
static void tell_new(ls_node *node, ls_channel *channel)
{
    struct ls_member member;
    bool more = channel->ops->member != NULL;
    for (size_t i = 0; more; i++) {
        transport_lock(node->transport);
        more = i < node->world.n;
        const bool ready = more && node->world.at[i]->state == LS_MEMBER_READY;
        if (ready)
            world_member(node->world.at[i], &member);
        transport_unlock(node->transport);
        if (ready)
            channel->ops->member(channel->self, &member);
    }
}

static void tell_new_channels(ls_node *node)
{
    ls_channel *channel = node->channels.first;
    while (channel != NULL) {
        ls_channel *next = channel->next;
        if (!channel->told && !channel->closed) {
            channel->told = true;
            channel->running++;
            ls_mutex_unlock(&node->router.lock);
            tell_new(node, channel);
            ls_mutex_lock(&node->router.lock);
            next = channel->next;
            end_op(node, channel);
        }
        channel = next;
    }
}

int64_t channels_tick(ls_node *node, int64_t now)
{
    int64_t earliest = LS_FOREVER;
    ls_mutex_lock(&node->router.lock);
    tell_new_channels(node);
    ls_channel *channel = node->channels.first;
    while (channel != NULL) {
        ls_channel *next = channel->next;
        if (!channel->closed && channel->wake_at <= now) {
            channel->wake_at = LS_FOREVER;
            channel->running++;
            ls_mutex_unlock(&node->router.lock);
            channel->ops->timer(channel->self, now);
            ls_mutex_lock(&node->router.lock);
            next = channel->next;
            if (!channel->closed && channel->wake_at < earliest)
                earliest = channel->wake_at;
            end_op(node, channel);
        } else if (!channel->closed && channel->wake_at < earliest) {
            earliest = channel->wake_at;
        }
        channel = next;
    }
    ls_mutex_unlock(&node->router.lock);
    return earliest;
}

static int check_send(const ls_node *node, const char *name, size_t size)
{
    if (size > LS_CHANNEL_MESSAGE_MAX)
        return ls_error(LS_ELIMIT, "channel \"%s\": %zu bytes are over %d",
                        name, size, LS_CHANNEL_MESSAGE_MAX);
    if (node_is_stopping(node) || node->transport == NULL)
        return ls_error(LS_ECLOSED, "node %u is not on the network",
                        node->options.id);
    return node_check(node);
}

static int not_there(const char *name, uint32_t to)
{
    return ls_error(LS_ENOENT, "channel \"%s\": node %u is not present", name,
                    to);
}

static int send_to(ls_node *node, const char *name, uint32_t to,
                   const void *head, size_t head_size, const void *data,
                   size_t size)
{
    int status = check_send(node, name, head_size + size);
    if (status != LS_OK)
        return status;
    struct wire_header header = bus_header(node, WIRE_KIND_CHANNEL);
    header.name = name;
    header.name_size = strlen(name);
    transport_lock(node->transport);
    const struct peer *peer = world_find(node, to);
    const bool there = peer != NULL && member_is_here(&peer->member);
    if (there)
        status = bus_send_two(node, to, &header, head, head_size, data, size);
    transport_unlock(node->transport);
    return there ? status : not_there(name, to);
}

/* Over a hub, what a member says may be here before its presence is: then the
 * stream waits for that. */
static struct peer *find_receiver(ls_node *node, uint32_t to)
{
    struct peer *peer = world_find(node, to);
    if (peer == NULL || peer->member.barred || member_has_ended(&peer->member))
        return NULL;
    return peer;
}

static int push(ls_node *node, uint32_t to, struct payload *payload, char *name)
{
    const struct parcel parcel = {.payload = payload,
                                  .size = payload_size(payload),
                                  .of = WIRE_KIND_CHANNEL,
                                  .name = name};
    struct peer *peer = find_receiver(node, to);
    if (peer == NULL)
        return not_there(name, to);
    if (!streams_room_control(peer))
        return ls_error(LS_EAGAIN,
                        "channel \"%s\": node %u%s has not acknowledged "
                        "%d messages yet",
                        name, to, peer->member.as_role, STREAM_CONTROL_MAX);
    if (strcmp(name, BLOCKS_CHANNEL) != 0)
        rings_want(node, peer);
    return streams_push(node, peer, &parcel);
}

/* All of it, which lies in a block, by its handle. */
static int push_block(ls_node *node, struct peer *peer,
                      const struct parcel *parcel)
{
    uint8_t handle[BLOCK_HANDLE_BYTES];
    struct parcel by_block = *parcel;
    by_block.size = sizeof handle;
    by_block.flags = WIRE_FLAG_BLOCK;
    by_block.weight = blocks_charge(peer, payload_size(parcel->payload));
    if (!streams_room_part(peer, by_block.weight))
        return LS_EAGAIN;
    if (!blocks_lend_payload(node, parcel->payload, peer, handle))
        return LS_ELOST;
    int status =
        payload_create(&by_block.payload, handle, sizeof handle, NULL, NULL);
    if (status == LS_OK) {
        status = streams_push(node, peer, &by_block);
        payload_drop(by_block.payload);
    }
    if (status != LS_OK)
        blocks_recall_payload(node, parcel->payload);
    else
        node->figures.stats.sent_bytes +=
            payload_size(parcel->payload) - sizeof handle;
    return status;
}

static int push_part(ls_node *node, uint32_t to, struct parcel *parcel)
{
    struct peer *peer = find_receiver(node, to);
    if (peer == NULL)
        return not_there(parcel->name, to);
    const size_t piece = streams_piece(peer);
    parcel->size = payload_size(parcel->payload) - parcel->offset;
    if (blocks_hold(parcel->payload))
        return push_block(node, peer, parcel);
    if (parcel->size > piece)
        parcel->size = piece;
    return streams_room_part(peer, parcel->size)
               ? streams_push(node, peer, parcel)
               : LS_EAGAIN;
}

static char *copy_name(const char *name)
{
    char *copy = malloc(strlen(name) + 1);
    if (copy != NULL)
        memcpy(copy, name, strlen(name) + 1);
    return copy;
}

int channels_send_part(ls_node *node, const char *name, uint32_t to,
                       struct payload *payload, size_t *at, uint64_t body)
{
    int status = check_send(node, name, 0);
    if (status != LS_OK)
        return status;
    struct parcel parcel = {.payload = payload,
                            .offset = *at,
                            .of = WIRE_KIND_CHUNK,
                            .sequence = body,
                            .name = copy_name(name)};
    if (parcel.name == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message");
    transport_lock(node->transport);
    status = push_part(node, to, &parcel);
    transport_unlock(node->transport);
    if (status == LS_OK)
        *at += parcel.size;
    else
        free(parcel.name);
    return status;
}

int channels_send_reliable(ls_node *node, const char *name, uint32_t to,
                           const void *data, size_t size)
{
    struct payload *payload = NULL;
    char *copy = NULL;
    int status = check_send(node, name, size);
    if (status == LS_OK)
        status = payload_create(&payload, data, size, NULL, NULL);
    if (status == LS_OK && (copy = copy_name(name)) == NULL)
        status = ls_error(LS_ENOMEM, "no memory for a message");
    if (status == LS_OK) {
        transport_lock(node->transport);
        status = push(node, to, payload, copy);
        transport_unlock(node->transport);
    }
    if (status != LS_OK)
        free(copy);
    payload_drop(payload);
    return status;
}

int ls_channel_send_reliable(ls_channel *channel, uint32_t to, const void *data,
                             size_t size)
{
    return channels_send_reliable(channel->node, channel->name, to, data, size);
}

int ls_channel_send(ls_channel *channel, uint32_t to, const void *data,
                    size_t size)
{
    return send_to(channel->node, channel->name, to, NULL, 0, data, size);
}

int ls_channel_send_near(ls_channel *channel, uint32_t to, const void *data,
                         size_t size)
{
    ls_node *node = channel->node;
    int status = check_send(node, channel->name, size);
    if (status != LS_OK)
        return status;
    transport_lock(node->transport);
    struct peer *peer = world_find(node, to);
    const bool there = peer != NULL && member_is_here(&peer->member);
    if (there && !lines_send(node, peer, channel->name, channel->name_size,
                             data, size)) {
        struct wire_header header = bus_header(node, WIRE_KIND_CHANNEL);
        header.name = channel->name;
        header.name_size = channel->name_size;
        status = bus_send_alone(node, peer, &header, data, size);
    }
    transport_unlock(node->transport);
    return there ? status : not_there(channel->name, to);
}

bool ls_channel_is_near(const ls_channel *channel)
{
    return lines_any(channel->node);
}

int ls_channel_listen(ls_channel *channel, int64_t deadline)
{
    const int status = node_check(channel->node);
    if (status != LS_OK || !lines_any(channel->node)) /* it may not be open */
        return status;
    return lines_listen(channel->node, &channel->listener, deadline);
}

void ls_channel_ring(ls_channel *channel)
{
    if (node_check(channel->node) != LS_OK)
        return; /* the parent's */
    lines_ring(channel->node, &channel->listener);
    turns_ring(channel->node);
}

int ls_channel_attend(ls_channel *channel, ls_cond *cond, ls_mutex *mutex,
                      bool (*is_over)(void *self), int64_t deadline)
{
    const int status = node_check(channel->node);
    if (status != LS_OK)
        return status;
    return turns_wait(channel->node, cond, mutex, is_over, channel->self,
                      deadline);
}

bool ls_channel_borrow(ls_channel *channel)
{
    return turns_borrow(channel->node);
}

void ls_channel_give_back(ls_channel *channel)
{
    turns_give_back(channel->node);
}

int ls_channel_send_two(ls_channel *channel, uint32_t to, const void *head,
                        size_t head_size, const void *data, size_t size)
{
    if (head_size > LS_CHANNEL_HEAD_MAX)
        return ls_error(LS_ELIMIT, "channel \"%s\": a head of %zu bytes",
                        channel->name, head_size);
    return send_to(channel->node, channel->name, to, head, head_size, data,
                   size);
}

int ls_channel_answer(ls_channel *channel, const char *name, uint32_t to,
                      const void *data, size_t size)
{
    if (!wire_name_valid(name))
        return wire_name_refused(name, "a name of a channel");
    return send_to(channel->node, name, to, NULL, 0, data, size);
}

void ls_channel_wake_at(ls_channel *channel, int64_t at)
{
    ls_node *node = channel->node;
    if (channel->ops->timer == NULL || node_check(node) != LS_OK)
        return;
    ls_mutex_lock(&node->router.lock);
    const bool sooner = at < channel->wake_at;
    channel->wake_at = at;
    ls_mutex_unlock(&node->router.lock);
    if (!sooner || node->transport == NULL)
        return;
    if (bus_is_current(node))
        bus_look_after(node);
    else
        node_wake_by(node, at);
}

static int64_t stood_ns(const ls_node *node)
{
    return membership_stood_ns(&node->world, ls_now(node->runtime));
}

int64_t ls_node_stood_ns(const ls_node *node)
{
    if (node == NULL || node->transport == NULL || node_check(node) != LS_OK)
        return 0;
    transport_lock(node->transport);
    const int64_t stood = stood_ns(node);
    transport_unlock(node->transport);
    return stood;
}

static bool is_moment(int64_t at)
{
    return at != LS_NOW && at != LS_FOREVER;
}

struct ls_due due_at(const ls_node *node, int64_t deadline)
{
    return (struct ls_due){
        .at = deadline, .stood_ns = is_moment(deadline) ? stood_ns(node) : 0};
}

struct ls_due ls_due_at(const ls_node *node, int64_t deadline)
{
    return (struct ls_due){
        .at = deadline,
        .stood_ns = is_moment(deadline) ? ls_node_stood_ns(node) : 0};
}

static void put_off(struct ls_due *due, int64_t stood)
{
    if (is_moment(due->at))
        due->at += stood - due->stood_ns;
    due->stood_ns = stood;
}

bool due_has_passed(const ls_node *node, struct ls_due *due)
{
    const int64_t now = ls_now(node->runtime);
    if (now < due->at)
        return false;
    put_off(due, membership_stood_ns(&node->world, now));
    return now >= due->at;
}

bool due_has_passed_without(const ls_node *node, struct ls_due *due,
                            ls_mutex *held)
{
    ls_mutex_unlock(held);
    const bool passed = ls_due_has_passed(node, due);
    ls_mutex_lock(held);
    return passed;
}

bool ls_due_has_passed(const ls_node *node, struct ls_due *due)
{
    const int64_t now =
        ls_now(node != NULL ? node->runtime : ls_runtime_current());
    if (now < due->at || due->at == LS_NOW)
        return due->at == LS_NOW;
    put_off(due, ls_node_stood_ns(node));
    return now >= due->at;
}

int ls_channel_dispatch(ls_channel *channel, int what)
{
    ls_node *node = channel->node;
    if (channel->ops->dispatched == NULL)
        return ls_error(LS_EINVAL,
                        "channel \"%s\": there is no op `dispatched`",
                        channel->name);
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    const bool on_bus = bus_is_current(node);
    struct message *message =
        on_bus ? bus_take(node) : message_take_one(node->pool);
    if (message == NULL)
        return ls_error(LS_ENOMEM, "no memory for a message");
    message->kind = MESSAGE_CHANNEL;
    message->watch = channel->number;
    message->what = what;
    if (on_bus)
        bus_hand_on(node, message);
    else
        return dispatch_offer(node, message);
    return LS_OK;
}
