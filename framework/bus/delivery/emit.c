/* Emitting: local listeners by the dispatch queue, remote ones by one publish
 * on the event's topic, or one by one when some have no room and the delivery
 * lets them miss it. */
#include "emit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "event_trace.h"

/* The clock is read by an emit that has to wait, and only then. */
static int64_t deadline_of(const struct emit *e)
{
    return ls_deadline(e->node->runtime,
                       e->in->timeout_ms != 0
                           ? e->in->timeout_ms
                           : e->node->options.emit_timeout_ms);
}

/* Who has no room misses it. */
static bool may_miss(const struct emit *e)
{
    return e->how->room == NULL;
}

/* ---- room -------------------------------------------------------------- */

/* Whoever waits lets the connection be done with what it has; one that does not
 * wait takes what its windows grant, unless it is known to take long. */
static bool has_room(const struct emit *e, const struct peer *peer, size_t size)
{
    /* What lies in a block does not hold up a connection. */
    if (e->by_block)
        return flow_room(peer, blocks_charge(peer, size));
    return e->wait || peer->hop->pace.slow ? flow_room_now(peer, size)
                                           : flow_room(peer, size);
}

static struct peer *without_room(const struct emit *e, size_t size)
{
    const struct targets *targets = &e->entry->targets;
    if (e->one != NULL)
        return has_room(e, e->one_direct, size) ? NULL : e->one_direct;
    for (size_t i = 0; i < targets->n; i++)
        if (!has_room(e, targets->at[i], size))
            return targets->at[i];
    return NULL;
}

struct peer *emit_without_room(struct emit *e, size_t size)
{
    if (e->one == NULL)
        events_targets(e->node, e->entry);
    return without_room(e, size);
}

static int no_room(const struct emit *e, const struct peer *peer, size_t size)
{
    const char *why = "it has not handled what this node sent it before";
    if (peer == NULL)
        return ls_error(LS_EAGAIN,
                        "event \"%s\": a long one of it is still under way",
                        e->entry->name);
    if (e->how->keeps && peer->member.away_at != 0)
        why = "its connection is broken, and has not come back yet";
    else if (!e->how->keeps && !e->by_block && flow_room(peer, size))
        why = "what this node sent it before has not arrived yet";
    return ls_error(LS_EAGAIN, "event \"%s\": node %u%s has no room for it: %s",
                    e->entry->name, peer->member.id, peer->member.as_role, why);
}

static int ended(const ls_node *node)
{
    const int status = atomic_load(&node->dispatch.interrupted);
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u is stopping", node->options.id);
    return status == LS_OK ? LS_OK
                           : ls_error(status, "the emit was interrupted");
}

/* One wait for room at a peer (NULL: for the turn of this emit).
 * since: when the emit began to wait; 0: it has not yet, and does now.
 * Errors: LS_EAGAIN it may not wait any longer; what ended it. */
static int wait_once(struct emit *e, struct peer *peer, size_t size,
                     int64_t *since)
{
    ls_node *node = e->node;
    const int status = ended(node);
    if (status != LS_OK)
        return status;
    if (*since == 0) {
        *since = ls_now(node->runtime);
        node->figures.stats.blocked++;
    }
    if (!e->wait || bus_is_current(node)) /* that would make room */
        return no_room(e, peer, size);
    if (e->due.at == 0)
        e->due = due_at(node, deadline_of(e));
    int64_t until = e->due.at;
    if (peer != NULL) {
        const int64_t now = ls_now(node->runtime);
        const int64_t look = losses_waiting(e->entry, peer, *since, now);
        until = look < until ? look : until;
    }
    node->emits_waiting++;
    const int woken =
        ls_cond_wait(&node->changed, transport_mutex(node->transport), until);
    node->emits_waiting--;
    return woken != LS_OK && due_has_passed(node, &e->due)
               ? no_room(e, peer, size)
               : LS_OK;
}

static void note_waited(struct emit *e, struct peer *peer, int64_t since)
{
    if (since == 0)
        return;
    const int64_t waited = ls_now(e->node->runtime) - since;
    if (e->waited_at == 0)
        e->waited_at = since;
    e->node->figures.stats.blocked_ns += waited;
    if (peer != NULL)
        peer->slow.waited_ns += waited;
}

int emit_check_one(const struct emit *e)
{
    if (e->one->member.incarnation == e->one_life &&
        !member_has_ended(&e->one->member))
        return LS_OK;
    return ls_error(LS_ENOENT, "event \"%s\": node %u is gone", e->entry->name,
                    e->one->member.id);
}

int emit_wait_room(struct emit *e, size_t size)
{
    int64_t since = 0;
    int status = LS_OK;
    struct peer *peer = NULL, *slow = NULL;
    for (;;) {
        if (e->one != NULL && !e->how->keeps &&
            (status = emit_check_one(e)) != LS_OK)
            break;
        peer = e->how->room == NULL ? NULL : e->how->room(e, size);
        const bool my_turn = !e->entry->emitting || e->under_way;
        if (my_turn && peer == NULL)
            break;
        slow = peer != NULL ? peer : slow;
        status = wait_once(e, peer, size, &since);
        if (status != LS_OK)
            break;
    }
    note_waited(e, slow, since);
    return status;
}

/* ---- publishing -------------------------------------------------------- */

/* Longer ones are copied once less over a connection; and to more nodes other
 * threads tell sooner than one that wakes them in turn: those of connections,
 * or of blocks the bus thread. */
#define NEAR_BYTES   4096
#define NEAR_TARGETS 4

/* What is sent of a payload: `data` of `size` bytes at `offset` of it. */
struct part {
    const void *data;
    size_t size, offset;
    void (*release)(void *data, void *hint); /* NULL: copied */
    void *hint;
};

/* Over whose connections it goes: to this one (or NULL: all). */
static struct targets hops_of(struct emit *e, struct peer **to)
{
    if (*to == NULL)
        return e->entry->targets;
    return (struct targets){.at = *to == e->one ? &e->one_direct : to, .n = 1};
}

static size_t write_head(const struct emit *e, const struct peer *to,
                         struct wire_header *header, uint8_t *head)
{
    size_t n;
    if (to != NULL) {
        n = wire_topic_inbox(head, to->member.id);
        header->name = e->entry->name;
        header->name_size = e->entry->topic_size - 2;
    } else {
        memcpy(head, e->entry->topic, e->entry->topic_size);
        n = e->entry->topic_size;
    }
    return n + wire_header_write(head + n, header);
}

/* Whether it may go to this one through memory, as far as its hop tells. One at
 * an address that does not leave this host is asked to share some. */
static bool may_go_near(ls_node *node, struct peer *peer)
{
    struct hop *hop = peer->hop;
    if (!hop->near && !transport_leaves_host(peer->member.endpoint))
        rings_want(node, peer);
    hop->near = true;
    return hop->arrived.messages != 0 && flow_is_clear(peer) &&
           streams_are_clear(peer);
}

static bool may_all_go_near(struct emit *e, const struct targets *all,
                            size_t size)
{
    bool may = size <= NEAR_BYTES && all->n <= NEAR_TARGETS &&
               e->node->options.topology != LS_TOPOLOGY_STAR;
    for (size_t i = 0; may && i < all->n; i++)
        may = may_go_near(e->node, all->at[i]);
    return may;
}

/* Whether all have read what went to them through memory. */
static bool have_read(const struct emit *e, const struct targets *all)
{
    bool have = true;
    for (size_t i = 0; have && i < all->n; i++)
        have = rings_are_read(e->node, all->at[i]);
    return have;
}

/* Through memory, to each by itself. Returns false: it is to go over
 * connections, to all: those that got it pass over what comes twice. */
static bool publish_near(struct emit *e, const struct targets *all,
                         const struct part *part, const struct wire_header *as)
{
    uint8_t head[WIRE_HEAD_MAX];
    struct wire_header header = *as;
    header.data = head; /* inside the frame */
    for (size_t i = 0; i < all->n; i++) {
        const size_t n = write_head(e, all->at[i], &header, head);
        if (!rings_send(e->node, all->at[i], head, n, part->data, part->size))
            return false;
    }
    if (part->release != NULL)
        part->release((void *)(uintptr_t)part->data, part->hint);
    return true;
}

static void carry(const struct targets *all, uint8_t flags)
{
    for (size_t i = 0; i < all->n; i++)
        flow_carry(all->at[i], (flags & WIRE_FLAG_WITHDRAW) == 0);
}

static int publish(struct emit *e, struct peer *to, const struct part *part,
                   uint8_t flags)
{
    ls_node *node = e->node;
    uint8_t head[WIRE_HEAD_MAX];
    const bool chunk =
        part->size != e->in->size && (flags & WIRE_FLAG_BLOCK) == 0;
    const struct targets all = hops_of(e, &to);
    const bool near = !chunk && may_all_go_near(e, &all, part->size) &&
                      !batch_is_recent(node);
    flags = (uint8_t)(flags | e->how->flags);
    node->figures.stats.sent++;
    node->figures.stats.sent_bytes += part->size;
    /* One that comes alone is there sooner through memory; of many that follow
     * each other more go in a frame. */
    if (to == NULL && part->release == NULL && !chunk &&
        !(near && have_read(e, &all)) &&
        batch_add(node, e->entry, flags, e->sequence, part->data, part->size)) {
        carry(&all, flags);
        return LS_OK;
    }
    struct wire_header header =
        bus_header(node, chunk ? WIRE_KIND_CHUNK : WIRE_KIND_EVENT);
    header.sequence = e->sequence;
    header.flags = flags;
    header.total = (uint32_t)e->in->size;
    header.offset = (uint32_t)part->offset;
    header.size = part->size;
    if (near && publish_near(e, &all, part, &header))
        return LS_OK;
    carry(&all, flags);
    header.data = part->release == NULL ? head : NULL;
    const size_t n = write_head(e, to, &header, head);
    batch_flush(node);
    if (part->release == NULL)
        return transport_publish(node->transport, head, n, part->data,
                                 part->size);
    return transport_publish_owned(node->transport, head, n,
                                   (void *)(uintptr_t)part->data, part->size,
                                   part->release, part->hint);
}

/* It gets no more of this one. Others may have begun to listen since the last
 * part. Without memory it is sent the next part, and passes that over. */
static void note_missing(struct emit *e, struct peer *peer)
{
    const struct part nothing = {.data = ""};
    struct peer **more =
        realloc(e->missing, (e->n_missing + 1) * sizeof(*more));
    if (more == NULL)
        return;
    e->missing = more;
    e->missing[e->n_missing++] = peer;
    (void)publish(e, peer, &nothing, WIRE_FLAG_WITHDRAW);
}

/* Policy drop: whether this one misses the event, of which it may have missed a
 * part already. It counts once. */
static bool misses(struct emit *e, struct peer *peer, size_t size)
{
    for (size_t i = 0; i < e->n_missing; i++)
        if (e->missing[i] == peer)
            return true;
    if (has_room(e, peer, size))
        return false;
    losses_dropped(e->node, e->entry, peer);
    if (e->under_way)
        note_missing(e, peer);
    return true;
}

/* Policy drop, and some have no room: the others get it by themselves. */
static int publish_to_some(struct emit *e, struct part *part)
{
    const struct targets *targets = &e->entry->targets;
    struct part copy = *part;
    copy.release = NULL;
    int status = LS_OK;
    for (size_t i = 0; i < targets->n; i++) {
        struct peer *peer = targets->at[i];
        if (misses(e, peer, part->size))
            continue;
        const bool asks = flow_charge(e->node, peer, part->size);
        status = publish(e, peer, &copy, 0);
        if (asks)
            flow_ask(e->node, peer);
    }
    if (part->release != NULL)
        part->release((void *)(uintptr_t)part->data, part->hint);
    return status;
}

/* Publish a part to all that listen. Lock held; there is room, or drop. */
static int publish_part(struct emit *e, struct part *part)
{
    int status;
    if (e->one != NULL) {
        if (may_miss(e) && misses(e, e->one_direct, part->size)) {
            if (part->release != NULL)
                part->release((void *)(uintptr_t)part->data, part->hint);
            return LS_OK;
        }
        const bool asks = flow_charge(e->node, e->one_direct, part->size);
        status = publish(e, e->one, part, 0);
        if (asks)
            flow_ask(e->node, e->one_direct);
        return status;
    }
    if (may_miss(e) &&
        (e->n_missing != 0 || without_room(e, part->size) != NULL))
        return publish_to_some(e, part);
    const struct targets *targets = &e->entry->targets;
    bool any = false;
    for (size_t i = 0; i < targets->n; i++) {
        struct peer *peer = targets->at[i];
        assert(peer != NULL);
        peer->hop->asks = flow_charge(e->node, peer, part->size);
        any = any || peer->hop->asks;
    }
    status = publish(e, NULL, part, 0);
    for (size_t i = 0; any && i < targets->n; i++)
        if (targets->at[i]->hop->asks)
            flow_ask(e->node, targets->at[i]);
    return status;
}

/* ---- payloads ---------------------------------------------------------- */

static struct part part_at(const struct emit *e, size_t offset, size_t most)
{
    struct part part = {
        .data = e->in->size == 0 ? "" : (const char *)e->in->data + offset,
        .size = e->in->size - offset,
        .offset = offset};
    if (part.size > most)
        part.size = most;
    if (e->payload != NULL) {
        part.release = payload_released;
        part.hint = payload_share(e->payload);
    }
    return part;
}

/* ---- remote ------------------------------------------------------------ */

void emit_number(struct emit *e)
{
    e->sequence =
        e->one != NULL ? 0 : ++e->entry->sequences[e->how - deliveries];
    emit_traced(e);
}

void emit_traced(struct emit *e)
{
    e->traced_at = event_trace_begins(e->node, e->entry, e->sequence);
}

void emit_under_way(struct emit *e, bool begins)
{
    e->entry->emitting = e->under_way = begins;
    if (!begins)
        ls_cond_broadcast(&e->node->changed);
}

/* One that does not wait is not cut up on a connection of which nothing is
 * known but that it is new. */
static size_t piece_of(struct emit *e)
{
    const struct targets one = {.at = &e->one_direct, .n = 1};
    const struct targets *all = e->one != NULL ? &one : &e->entry->targets;
    size_t piece = WIRE_CHUNK_BYTES;
    bool slow = false;
    if (e->one == NULL)
        events_targets(e->node, e->entry);
    for (size_t i = 0; i < all->n; i++) {
        const size_t of = flow_piece(all->at[i]);
        piece = of < piece ? of : piece;
        slow = slow || all->at[i]->hop->pace.slow;
    }
    return e->wait || slow ? piece : WIRE_CHUNK_BYTES;
}

/* In chunks, letting others emit between two of them. Lock held. */
static int emit_long(struct emit *e)
{
    ls_node *node = e->node;
    size_t at = 0;
    int status = LS_OK;
    emit_under_way(e, true);
    emit_number(e);
    while (at < e->in->size && status == LS_OK) {
        const size_t piece = piece_of(e);
        status = emit_wait_room(e, piece);
        if (status != LS_OK)
            break;
        struct part part = part_at(e, at, piece);
        at += part.size;
        status = publish_part(e, &part);
        transport_unlock(node->transport);
        transport_lock(node->transport);
    }
    if (status != LS_OK) {
        struct part nothing = {.data = ""};
        (void)publish(e, e->one, &nothing, WIRE_FLAG_WITHDRAW);
    }
    emit_under_way(e, false);
    free(e->missing);
    e->missing = NULL;
    return status;
}

/* Lock held. */
static int emit_in_frames(struct emit *e)
{
    const size_t piece = piece_of(e);
    const bool is_long = e->in->size > piece;
    int status = emit_wait_room(e, is_long ? piece : e->in->size);
    if (status == LS_EAGAIN && may_miss(e)) {
        /* A long one of the same event is under way: these miss this one. */
        for (size_t i = 0; i < e->entry->targets.n; i++)
            losses_dropped(e->node, e->entry, e->entry->targets.at[i]);
        emit_number(e);
        status = LS_OK;
    } else if (status == LS_OK && is_long &&
               (e->one != NULL || e->entry->targets.n != 0)) {
        status = emit_long(e);
    } else if (status == LS_OK) {
        struct part part = part_at(e, 0, e->in->size);
        emit_number(e);
        if (e->one != NULL || e->entry->targets.n != 0)
            status = publish_part(e, &part);
        else if (part.release != NULL)
            part.release(NULL, part.hint);
    }
    return status;
}

/* ---- remote, in shared memory ------------------------------------------ */

static struct targets targets_of(struct emit *e)
{
    if (e->one != NULL)
        return (struct targets){.at = e->how->keeps ? &e->one : &e->one_direct,
                                .n = 1};
    events_targets(e->node, e->entry);
    return e->how->keeps ? e->entry->receivers : e->entry->targets;
}

static bool block_reaches(struct emit *e)
{
    const struct targets all = targets_of(e);
    return !may_miss(e) && blocks_reach(e->node, all.at, all.n, e->in->size);
}

static int push_handle(struct emit *e, struct peer *to, const uint8_t *handle)
{
    struct payload *payload;
    int status =
        payload_create(&payload, handle, BLOCK_HANDLE_BYTES, NULL, NULL);
    if (status != LS_OK)
        return status;
    const struct parcel parcel = {.payload = payload,
                                  .size = BLOCK_HANDLE_BYTES,
                                  .weight = blocks_charge(to, e->in->size),
                                  .of = WIRE_KIND_EVENT,
                                  .how = e->how,
                                  .flags = WIRE_FLAG_BLOCK,
                                  .sequence = e->sequence,
                                  .entry = e->entry};
    status = streams_push(e->node, to, &parcel);
    payload_drop(payload);
    return status;
}

static int publish_handle(struct emit *e, struct peer *to,
                          const struct block_draft *draft, uint64_t number)
{
    uint8_t handle[BLOCK_HANDLE_BYTES];
    const size_t size = e->in->size;
    blocks_handle(to, draft, number, size, handle);
    e->node->figures.stats.sent_bytes += size - sizeof handle;
    if (e->how->keeps)
        return push_handle(e, to, handle);
    const bool asks = flow_charge(e->node, to, blocks_charge(to, size));
    const struct part part = {.data = handle, .size = sizeof handle};
    const int status = publish(e, to, &part, WIRE_FLAG_BLOCK);
    if (asks)
        flow_ask(e->node, to);
    return status;
}

/* Whether who reads them is woken by the bus thread. A few that wait for it
 * are sooner woken by this one; not when more follows than they read. */
static bool rings_later_for(const struct emit *e, const struct targets *all)
{
    return all->n > NEAR_TARGETS || (all->n > 1 && !have_read(e, all));
}

int emit_block(struct emit *e, bool *done)
{
    struct block_draft draft;
    ls_node *node = e->node;
    *done = false;
    if (!block_reaches(e))
        return LS_OK;
    e->by_block = true;
    int status = emit_wait_room(e, e->in->size);
    bool there = status == LS_OK && block_reaches(e) &&
                 blocks_draft(node, BLOCK_FOR_EVENT,
                              e->in->release != NULL ? e->in->data : NULL,
                              e->in->size, &draft);
    if (there) {
        transport_unlock(node->transport);
        there = blocks_fill(node, &draft, e->in->data, e->in->size);
        transport_lock(node->transport);
        if (there)
            status = emit_wait_room(e, e->in->size);
        if (status != LS_OK || !there || !block_reaches(e)) {
            blocks_give_up(node, &draft);
            there = false;
        }
    }
    if (there) {
        const struct targets all = targets_of(e);
        const uint64_t number =
            blocks_lend(node, &draft, all.at, all.n, e->how->keeps);
        emit_number(e);
        rings_later(node, rings_later_for(e, &all));
        for (size_t i = 0; i < all.n; i++) {
            const int sent = publish_handle(e, all.at[i], &draft, number);
            status = status == LS_OK ? sent : status;
        }
        rings_later(node, false);
    }
    *done = there || status != LS_OK;
    e->by_block = false;
    return status;
}

int emit_published(struct emit *e)
{
    bool done;
    transport_lock(e->node->transport);
    int status = emit_block(e, &done);
    if (!done)
        status = emit_in_frames(e);
    transport_unlock(e->node->transport);
    return status;
}

/* Whom to_one means. Errors: LS_ENOENT. */
static int find_one(struct emit *e)
{
    ls_node *node = e->node;
    transport_lock(node->transport);
    struct peer *peer = world_find(node, e->in->to);
    struct peer *direct = peer == NULL ? NULL : peer_direct(peer);
    const bool there = direct != NULL && direct->hop != NULL &&
                       peer->member.state == LS_MEMBER_READY &&
                       (e->how->keeps || member_is_here(&peer->member));
    if (there && events_listens(node, e->entry, peer)) {
        e->one = peer;
        e->one_direct = direct;
        e->one_life = peer->member.incarnation;
    }
    transport_unlock(node->transport);
    if (e->one != NULL)
        return LS_OK;
    return ls_error(LS_ENOENT, "event \"%s\": node %u %s", e->entry->name,
                    e->in->to,
                    there ? "does not listen to it" : "is not present");
}

/* ---- local ------------------------------------------------------------- */

/* message: NULL: it is short and for this node alone, and goes there at once.
 */
static int put_here(struct emit *e, struct ls_due *due,
                    struct message **message)
{
    const struct ls_emission *in = e->in;
    return message != NULL
               ? dispatch_reserve(e->node, e->entry, in->size, due, message)
               : dispatch_emit(e->node, e->entry, in->data, in->size, due);
}

/* Without a look at the clock while there is room. */
static int emit_here(struct emit *e, struct message **message)
{
    const int status = put_here(e, NULL, message);
    if (status != LS_EAGAIN || !e->wait)
        return status;
    e->due = ls_due_at(e->node, deadline_of(e));
    return put_here(e, &e->due, message);
}

static int put_payload(struct emit *e, struct message *message)
{
    const size_t size = e->in->size;
    if (e->payload != NULL) {
        message->hint = payload_share(e->payload);
        message->owned = message->hint;
        message->release = payload_released;
        message->event.data = payload_data(e->payload);
        return LS_OK;
    }
    message->owned = malloc(size);
    if (message->owned == NULL)
        return ls_error(LS_ENOMEM, "no memory for an event of %zu bytes", size);
    memcpy(message->owned, e->in->data, size);
    message->event.data = message->owned;
    return LS_OK;
}

/* Room for it, and the message that is to take that. */
static int local_message(struct emit *e, struct message **out)
{
    int status = emit_here(e, out);
    if (status != LS_OK || e->in->size <= DISPATCH_SHORT)
        return status;
    status = put_payload(e, *out);
    if (status != LS_OK)
        dispatch_give_up(e->node, *out);
    return status;
}

/* Policy drop: those here have no room, and miss it; the others need not. */
static bool misses_here(struct emit *e, int status)
{
    if (status != LS_EAGAIN || !may_miss(e))
        return false;
    losses_dropped_here(e->node, e->entry);
    return true;
}

int emit_both(struct emit *e, bool local, bool remote)
{
    ls_node *node = e->node;
    struct message *message = NULL;
    local = local && events_here(node, e->entry);
    if (local && !remote && e->in->size <= DISPATCH_SHORT) {
        const int status = emit_here(e, NULL);
        return misses_here(e, status) ? LS_OK : status;
    }
    /* A large one may lie in a block, then it need not be kept. */
    int status = remote && e->in->size >= BLOCK_LEAST_BYTES
                     ? LS_OK
                     : emit_keep_payload(e);
    if (status == LS_OK && local) {
        status = local_message(e, &message);
        if (misses_here(e, status)) {
            status = LS_OK;
            local = false;
        }
    }
    if (status == LS_OK && remote) {
        status = e->how->send(e);
        if (status != LS_OK && local)
            dispatch_give_up(node, message);
    }
    if (status == LS_OK && local) {
        message->event.sequence = e->sequence;
        dispatch_fill(node, message, e->in->data);
    }
    return status;
}

/* ---- the calls --------------------------------------------------------- */

static int check_data(const ls_node *node, const struct ls_emission *in)
{
    if (in->size > node->options.max_payload_bytes)
        return ls_error(LS_ELIMIT,
                        "event \"%s\": %zu bytes are over max_payload_bytes "
                        "(%zu)",
                        in->event, in->size, node->options.max_payload_bytes);
    if (in->data == NULL && in->size != 0)
        return ls_error(LS_EINVAL, "event \"%s\": %zu bytes, and data is NULL",
                        in->event, in->size);
    return LS_OK;
}

/* entry: out: of its name, if that is known, and so is right. */
static int check(ls_node *node, const struct ls_emission *in,
                 struct event_entry **entry)
{
    *entry = in->event == NULL
                 ? NULL
                 : events_find(node, in->event, strlen(in->event));
    if ((*entry == NULL || (*entry)->is_prefix) && !wire_name_valid(in->event))
        return wire_name_refused(in->event, "an event name");
    if ((int)in->delivery < LS_DELIVERY_DEFAULT ||
        in->delivery >= N_DELIVERIES || (int)in->scope < LS_SCOPE_BOTH ||
        in->scope > LS_SCOPE_REMOTE)
        return ls_error(LS_EINVAL,
                        "event \"%s\": there is no delivery %d, or no scope %d",
                        in->event, (int)in->delivery, (int)in->scope);
    return check_data(node, in);
}

static int check_open(const ls_node *node)
{
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u is stopping", node->options.id);
    return node_check(node);
}

int emit_keep_payload(struct emit *e)
{
    const struct ls_emission *in = e->in;
    if (e->payload != NULL || !e->how->keeps)
        return LS_OK;
    return payload_create(&e->payload, in->data, in->size, NULL, NULL);
}

void emit_by(struct emit *e, enum ls_delivery delivery)
{
    e->how = &deliveries[delivery];
    e->wait = !may_miss(e) && e->in->timeout_ms >= 0;
}

/* As the emit says, or else the event. */
static enum ls_delivery delivery_wanted(const struct emit *e)
{
    return e->in->delivery == LS_DELIVERY_DEFAULT && e->entry != NULL
               ? e->entry->delivery
               : e->in->delivery;
}

static void choose(struct emit *e)
{
    enum ls_delivery delivery = delivery_wanted(e);
    if (delivery == LS_DELIVERY_DEFAULT ||
        (delivery == LS_DELIVERY_RELIABLE &&
         bus_omits(e->node, BUS_KEEPS, NULL)))
        delivery = LS_DELIVERY_BLOCK;
    emit_by(e, delivery);
}

/* Show it to the gate, which may have it say something else. */
static int pass_gate(const struct emit *e, struct ls_emission *in)
{
    const struct ls_event_gate *gate = e->node->options.gate;
    const void *data = in->data;
    size_t size = in->size;
    if (gate == NULL || delivery_wanted(e) == LS_DELIVERY_LATEST)
        return LS_OK;
    const int status = gate->emits(gate->self, in, &data, &size);
    if (status != LS_OK || data == in->data)
        return status;
    if (in->release != NULL)
        in->release((void *)(uintptr_t)in->data, in->hint);
    in->release = NULL;
    in->data = data;
    in->size = size;
    return check_data(e->node, in);
}

int ls_emit_with(ls_node *node, const struct ls_emission *given)
{
    struct ls_emission passed = *given;
    const struct ls_emission *const in = &passed;
    struct emit e = {.node = node, .in = in};
    int right = check(node, in, &e.entry);
    if (right == LS_OK)
        right = pass_gate(&e, &passed);
    int status = in->release == NULL
                     ? LS_OK
                     : payload_create(&e.payload, in->data, in->size,
                                      in->release, in->hint);
    if (status == LS_OK)
        status = right;
    if (status == LS_OK)
        status = check_open(node);
    if (status == LS_OK && e.entry == NULL)
        status = events_get(node, in->event, strlen(in->event), true, &e.entry);
    if (status == LS_OK)
        choose(&e);
    bool local = in->scope != LS_SCOPE_REMOTE;
    bool remote = in->scope != LS_SCOPE_LOCAL && node->phase != NODE_CREATED;
    if (in->to_one) {
        local = in->to == node->options.id;
        remote = !local;
        if (status == LS_OK && local && !events_here(node, e.entry))
            status = ls_error(LS_ENOENT,
                              "event \"%s\": node %u (this one) does not "
                              "listen to it",
                              in->event, in->to);
        if (status == LS_OK && remote)
            status = node->phase == NODE_CREATED
                         ? ls_error(LS_ENOENT,
                                    "event \"%s\": node %u is not started, so "
                                    "it knows no node %u",
                                    in->event, node->options.id, in->to)
                         : find_one(&e);
    }
    if (status == LS_OK)
        status = e.how->emit(&e, local, remote);
    if (status == LS_OK)
        atomic_fetch_add_explicit(&node->figures.emitted, 1,
                                  memory_order_relaxed);
    if (e.traced_at != 0)
        event_trace_emitted(node, e.entry, e.sequence,
                            e.waited_at != 0 ? e.waited_at : e.traced_at, e.one,
                            in->size);
    payload_drop(e.payload);
    return status;
}

int ls_emit(ls_node *node, const char *event, const void *data, size_t size)
{
    return ls_emit_with(node, &(struct ls_emission){
                                  .event = event, .data = data, .size = size});
}
