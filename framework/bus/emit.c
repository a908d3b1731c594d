/* Emitting: local listeners by the dispatch queue, remote ones by one publish
 * on the event's topic, or one by one when some have no room and the policy
 * lets them miss it. */
#include "bus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct emit {
    ls_node *node;
    const struct ls_emission *in;
    struct event_entry *entry;
    bool drop;
    bool wait;
    int64_t deadline; /* from deadline_of() alone; 0: not yet asked for */
    struct peer *one; /* to_one */
    struct peer *one_direct;
    uint64_t sequence;
    bool under_way;        /* it is this one that is emitting in chunks */
    struct shared *shared; /* the payload, when it is not copied */
};

/* The clock is read by an emit that has to wait, and only then. */
static int64_t deadline_of(struct emit *e)
{
    if (e->deadline == 0)
        e->deadline =
            ls_deadline(e->node->runtime,
                        e->in->wait_ms != 0 ? e->in->wait_ms
                                            : e->node->options.emit_timeout_ms);
    return e->deadline;
}

/* ---- room -------------------------------------------------------------- */

static struct peer *without_room(const struct emit *e, size_t size)
{
    if (e->one != NULL)
        return flow_room(e->one_direct, size) ? NULL : e->one_direct;
    for (size_t i = 0; i < e->entry->n_targets; i++)
        if (!flow_room(e->entry->targets[i], size))
            return e->entry->targets[i];
    return NULL;
}

static int no_room(struct emit *e, const struct peer *peer)
{
    return ls_error(LS_EAGAIN,
                    "event \"%s\": node %u (%s) has no room for it: it has "
                    "not handled %llu messages of this node yet",
                    e->entry->name, peer->id, peer->role,
                    (unsigned long long)e->node->options.window_messages);
}

static int ended(const ls_node *node)
{
    const int status = atomic_load(&node->dispatch.interrupted);
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u is stopping", node->options.id);
    return status == LS_OK ? LS_OK
                           : ls_error(status, "the emit was interrupted");
}

/* Wait until every target has room for `size` bytes, or they need not. Lock
 * held, and let go of meanwhile. */
static int wait_room(struct emit *e, size_t size)
{
    ls_node *node = e->node;
    int64_t since = 0;
    int status = LS_OK;
    for (;;) {
        if (e->one == NULL)
            events_targets(node, e->entry);
        const struct peer *peer = without_room(e, size);
        const bool my_turn = !e->entry->emitting || e->under_way;
        if (my_turn && (peer == NULL || e->drop))
            break;
        status = ended(node);
        if (status != LS_OK)
            break;
        if (since == 0) {
            since = ls_now(node->runtime);
            node->stats.blocked++;
        }
        if (!e->wait ||
            ls_cond_wait(&node->changed, transport_mutex(node->transport),
                         deadline_of(e)) != LS_OK) {
            status = peer != NULL ? no_room(e, peer)
                                  : ls_error(LS_EAGAIN,
                                             "event \"%s\": a long one of "
                                             "it is still under way",
                                             e->entry->name);
            break;
        }
    }
    if (since != 0)
        node->stats.blocked_ns += ls_now(node->runtime) - since;
    return status;
}

/* ---- publishing -------------------------------------------------------- */

/* What is sent of a payload: `data` of `size` bytes at `offset` of it. */
struct part {
    const void *data;
    size_t size, offset;
    void (*release)(void *data, void *hint); /* NULL: copied */
    void *hint;
};

static int publish(struct emit *e, const struct peer *to,
                   const struct part *part, uint8_t flags)
{
    ls_node *node = e->node;
    uint8_t head[WIRE_HEAD_MAX];
    const bool chunk = part->size != e->in->size;
    struct wire_header header =
        bus_header(node, chunk ? WIRE_KIND_CHUNK : WIRE_KIND_EVENT);
    header.sequence = e->sequence;
    header.flags = (uint8_t)(flags | (e->drop ? WIRE_FLAG_DROP : 0));
    header.total = (uint32_t)e->in->size;
    header.offset = (uint32_t)part->offset;
    size_t n;
    if (to != NULL) {
        n = wire_topic_inbox(head, to->id);
        header.name = e->entry->name;
        header.name_size = e->entry->topic_size - 2;
    } else {
        memcpy(head, e->entry->topic, e->entry->topic_size);
        n = e->entry->topic_size;
    }
    header.data = part->release == NULL ? head : NULL;
    header.size = part->size;
    n += wire_header_write(head + n, &header);
    node->stats.sent++;
    node->stats.sent_bytes += part->size;
    if (to == NULL && part->release == NULL && !chunk &&
        batch_add(node, e->entry, header.flags, e->sequence, part->data,
                  part->size))
        return LS_OK;
    batch_flush(node);
    if (part->release == NULL)
        return transport_publish(node->transport, head, n, part->data,
                                 part->size);
    return transport_publish_owned(node->transport, head, n,
                                   (void *)(uintptr_t)part->data, part->size,
                                   part->release, part->hint);
}

/* Policy drop, and some have no room: the others get it by themselves. */
static int publish_to_some(struct emit *e, struct part *part)
{
    ls_node *node = e->node;
    struct part copy = *part;
    copy.release = NULL;
    int status = LS_OK;
    for (size_t i = 0; i < e->entry->n_targets; i++) {
        struct peer *peer = e->entry->targets[i];
        if (!flow_room(peer, part->size)) {
            node->stats.dropped++;
            ls_log_debug("bus: node %u misses an event \"%s\"", peer->id,
                         e->entry->name);
            continue;
        }
        flow_charge(peer, part->size);
        status = publish(e, peer, &copy, 0);
    }
    if (part->release != NULL)
        part->release((void *)(uintptr_t)part->data, part->hint);
    return status;
}

/* Publish a part to all that listen. Lock held; there is room, or drop. */
static int publish_part(struct emit *e, struct part *part, uint8_t flags)
{
    if (e->one != NULL) {
        if (e->drop && !flow_room(e->one_direct, part->size)) {
            e->node->stats.dropped++;
            if (part->release != NULL)
                part->release((void *)(uintptr_t)part->data, part->hint);
            return LS_OK;
        }
        flow_charge(e->one_direct, part->size);
        return publish(e, e->one, part, flags);
    }
    if (e->drop && without_room(e, part->size) != NULL)
        return publish_to_some(e, part);
    for (size_t i = 0; i < e->entry->n_targets; i++)
        flow_charge(e->entry->targets[i], part->size);
    return publish(e, NULL, part, flags);
}

/* ---- payloads ---------------------------------------------------------- */

/* A payload that is not copied: frames and local messages point into it. */
struct shared {
    _Atomic size_t users;
    void *data;
    void (*release)(void *data, void *hint);
    void *hint;
};

static void shared_release(void *data, void *hint)
{
    struct shared *shared = hint;
    (void)data;
    transport_released();
    if (atomic_fetch_sub(&shared->users, 1) != 1)
        return;
    shared->release(shared->data, shared->hint);
    free(shared);
}

static int shared_create(struct emit *e)
{
    if (e->in->release == NULL)
        return LS_OK;
    e->shared = malloc(sizeof *e->shared);
    if (e->shared == NULL) {
        e->in->release((void *)(uintptr_t)e->in->data, e->in->hint);
        return ls_error(LS_ENOMEM, "no memory for an emit");
    }
    *e->shared = (struct shared){.data = (void *)(uintptr_t)e->in->data,
                                 .release = e->in->release,
                                 .hint = e->in->hint};
    atomic_init(&e->shared->users, 1);
    return LS_OK;
}

static struct part part_at(const struct emit *e, size_t offset)
{
    struct part part = {
        .data = e->in->size == 0 ? "" : (const char *)e->in->data + offset,
        .size = e->in->size - offset,
        .offset = offset};
    if (part.size > WIRE_CHUNK_BYTES)
        part.size = WIRE_CHUNK_BYTES;
    if (e->shared != NULL) {
        atomic_fetch_add(&e->shared->users, 1);
        part.release = shared_release;
        part.hint = e->shared;
    }
    return part;
}

/* ---- remote ------------------------------------------------------------ */

static void begin_sequence(struct emit *e)
{
    e->sequence = e->one != NULL ? 0 : ++e->entry->sequence;
}

/* In chunks, letting others emit between two of them. Lock held. */
static int emit_long(struct emit *e)
{
    ls_node *node = e->node;
    int status = LS_OK;
    e->entry->emitting = e->under_way = true;
    begin_sequence(e);
    for (size_t at = 0; at < e->in->size && status == LS_OK;
         at += WIRE_CHUNK_BYTES) {
        status = wait_room(e, WIRE_CHUNK_BYTES);
        if (status != LS_OK)
            break;
        struct part part = part_at(e, at);
        status = publish_part(e, &part, 0);
        transport_unlock(node->transport);
        transport_lock(node->transport);
    }
    if (status != LS_OK) {
        struct part nothing = {.data = ""};
        (void)publish(e, e->one, &nothing, WIRE_FLAG_WITHDRAW);
    }
    e->entry->emitting = e->under_way = false;
    ls_cond_broadcast(&node->changed);
    return status;
}

static int emit_remote(struct emit *e)
{
    transport_lock(e->node->transport);
    const bool is_long = e->in->size > WIRE_CHUNK_BYTES;
    int status = wait_room(e, is_long ? WIRE_CHUNK_BYTES : e->in->size);
    if (status == LS_EAGAIN && e->drop) {
        /* A long one of the same event is under way: these miss this one. */
        e->node->stats.dropped += e->entry->n_targets;
        transport_unlock(e->node->transport);
        return LS_OK;
    }
    if (status == LS_OK && is_long && (e->one || e->entry->n_targets != 0)) {
        status = emit_long(e);
    } else if (status == LS_OK) {
        begin_sequence(e);
        struct part part = part_at(e, 0);
        if (e->one != NULL || e->entry->n_targets != 0)
            status = publish_part(e, &part, 0);
        else if (part.release != NULL)
            part.release(NULL, part.hint);
    }
    transport_unlock(e->node->transport);
    return status;
}

/* Whom to_one means. Errors: LS_ENOENT. */
static int find_one(struct emit *e)
{
    ls_node *node = e->node;
    transport_lock(node->transport);
    struct peer *peer = world_find(node, e->in->to);
    bool listens = false;
    for (size_t i = 0; peer != NULL && i < e->entry->n_remotes; i++)
        listens =
            listens || (e->entry->remotes[i].id == peer->id &&
                        e->entry->remotes[i].incarnation == peer->incarnation);
    if (listens && member_hears(peer)) {
        e->one = peer;
        e->one_direct = peer->via != NULL ? peer->via : peer;
    }
    transport_unlock(node->transport);
    if (e->one != NULL)
        return LS_OK;
    return ls_error(
        LS_ENOENT, "event \"%s\": node %u %s", e->entry->name, e->in->to,
        peer == NULL || !member_hears(peer) ? "is not present"
                                            : "does not listen to it");
}

/* ---- local ------------------------------------------------------------- */

static int local_message(struct emit *e, struct message **out)
{
    ls_node *node = e->node;
    struct message_list batch;
    message_list_init(&batch);
    struct message *message = message_take_one(node->pool);
    void *copy = NULL;
    const bool small = e->in->size <= sizeof message->small;
    if (message != NULL && e->shared == NULL && !small)
        copy = malloc(e->in->size);
    if (message == NULL || (e->shared == NULL && !small && copy == NULL)) {
        if (message != NULL) {
            message_list_append(&batch, message);
            message_give_back(node->pool, &batch);
        }
        return ls_error(LS_ENOMEM, "no memory for an event of %zu bytes",
                        e->in->size);
    }
    if (e->shared != NULL) {
        atomic_fetch_add(&e->shared->users, 1);
        message->owned = e->shared->data;
        message->release = shared_release;
        message->hint = e->shared;
        message->event.data = e->in->data;
    } else {
        message->owned = copy;
        message->event.data = small ? message->small : copy;
        if (e->in->size != 0)
            memcpy(small ? message->small : copy, e->in->data, e->in->size);
    }
    message->local = true;
    message->held_bytes = message->event.size = e->in->size;
    message->entry = e->entry;
    message->event.name = e->entry->name;
    message->event.origin = node->options.id;
    message->event.incarnation = node->incarnation;
    *out = message;
    return LS_OK;
}

static int local_room(struct emit *e)
{
    int status = dispatch_reserve(e->node, e->in->size, false, LS_NOW);
    if (status == LS_EAGAIN && e->wait)
        status = dispatch_reserve(e->node, e->in->size, true, deadline_of(e));
    return status;
}

static int emit_both(struct emit *e, bool local, bool remote)
{
    ls_node *node = e->node;
    struct message *message = NULL;
    int status = LS_OK;
    local = local && atomic_load(&e->entry->n_listeners) != 0;
    if (local)
        status = local_message(e, &message);
    if (status == LS_OK && local)
        status = local_room(e);
    if (status == LS_OK && remote) {
        status = emit_remote(e);
        if (status != LS_OK && local)
            dispatch_give_up(node, e->in->size);
    }
    if (status == LS_OK && local) {
        message->event.sequence = e->sequence;
        dispatch_fill(node, message);
    } else if (message != NULL) {
        struct message_list list;
        message_list_init(&list);
        message_list_append(&list, message);
        message_give_back(node->pool, &list);
    }
    return status;
}

/* ---- the calls --------------------------------------------------------- */

static int check(ls_node *node, const struct ls_emission *in)
{
    if (!wire_name_valid(in->event))
        return ls_error(LS_EINVAL,
                        "\"%s\" is no event name: 1 to %d printable "
                        "characters without space * ? [ ] \\",
                        in->event == NULL ? "" : in->event, LS_EVENT_MAX);
    if (in->size > node->options.max_payload_bytes)
        return ls_error(LS_ELIMIT,
                        "event \"%s\": %zu bytes are over max_payload_bytes "
                        "(%zu)",
                        in->event, in->size, node->options.max_payload_bytes);
    if (in->data == NULL && in->size != 0)
        return ls_error(LS_EINVAL, "event \"%s\": no data", in->event);
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u is stopping", node->options.id);
    return LS_OK;
}

int ls_emit_with(ls_node *node, const struct ls_emission *in)
{
    struct emit e = {.node = node, .in = in};
    int status = shared_create(&e);
    if (status == LS_OK)
        status = check(node, in);
    if (status == LS_OK)
        status = events_get(node, in->event, strlen(in->event), true, &e.entry);
    bool local = in->scope != LS_SCOPE_REMOTE;
    bool remote = in->scope != LS_SCOPE_LOCAL && node->phase != NODE_CREATED;
    if (in->to_one) {
        local = in->to == node->options.id;
        remote = !local;
        if (status == LS_OK && remote)
            status = node->phase == NODE_CREATED
                         ? ls_error(LS_ENOENT, "the node is not started")
                         : find_one(&e);
    }
    if (status == LS_OK) {
        const enum ls_policy policy =
            in->policy != LS_POLICY_DEFAULT ? in->policy : e.entry->policy;
        e.drop = policy == LS_POLICY_DROP;
        e.wait = !e.drop && in->wait_ms >= 0;
        status = emit_both(&e, local, remote);
    }
    if (status == LS_OK)
        atomic_fetch_add_explicit(&node->emitted, 1, memory_order_relaxed);
    if (e.shared != NULL)
        shared_release(NULL, e.shared);
    return status;
}

int ls_emit(ls_node *node, const char *event, const void *data, size_t size)
{
    return ls_emit_with(node, &(struct ls_emission){
                                  .event = event, .data = data, .size = size});
}
