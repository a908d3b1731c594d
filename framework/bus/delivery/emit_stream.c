/* Emitting through streams: deliveries reliable and latest. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

static bool is_gone(const struct receiver *to)
{
    assert(to->peer != NULL);
    return to->peer->member.incarnation != to->life ||
           member_has_ended(&to->peer->member);
}

static bool has_room(const struct emit *e, const struct peer *peer, size_t size)
{
    return streams_room(peer, e->by_block ? blocks_charge(peer, size) : size);
}

struct peer *emit_without_stream_room(struct emit *e, size_t size)
{
    const struct targets *all = &e->entry->receivers;
    if (e->to == NULL)
        events_targets(e->node, e->entry);
    for (size_t i = 0; e->to != NULL && i < e->n_to; i++)
        if (!is_gone(&e->to[i]) && !has_room(e, e->to[i].peer, size))
            return e->to[i].peer;
    for (size_t i = 0; e->to == NULL && i < all->n; i++)
        if (!has_room(e, all->at[i], size))
            return all->at[i];
    return NULL;
}

static void choose(struct emit *e, struct peer *const *peers, size_t n)
{
    for (; e->n_to < n; e->n_to++)
        e->to[e->n_to] = (struct receiver){
            .peer = peers[e->n_to], .life = peers[e->n_to]->member.incarnation};
}

static int choose_all(struct emit *e)
{
    const struct targets *all = &e->entry->receivers;
    e->to = all->n == 1 ? &e->one_to : calloc(all->n + 1, sizeof *e->to);
    if (e->to == NULL)
        return ls_error(LS_ENOMEM, "no memory for an emit");
    choose(e, all->at, all->n);
    return LS_OK;
}

/* One part to each. Whoever was lost since the first has lost all of it. */
static int push_part(struct emit *e, size_t at, size_t size, uint8_t flags)
{
    const struct parcel parcel = {.payload = e->payload,
                                  .offset = at,
                                  .size = size,
                                  .of = size == e->in->size && flags == 0
                                            ? WIRE_KIND_EVENT
                                            : WIRE_KIND_CHUNK,
                                  .how = e->how,
                                  .flags = flags,
                                  .sequence = e->sequence,
                                  .entry = e->entry};
    int status = LS_OK;
    for (size_t i = 0; i < e->n_to; i++) {
        struct receiver *to = &e->to[i];
        if (!to->gone && is_gone(to)) {
            to->gone = true;
            e->how->lost(e->node, e->entry, to->peer);
        }
        if (!to->gone && status == LS_OK)
            status = streams_push(e->node, to->peer, &parcel);
    }
    return status;
}

static size_t piece_of(const struct emit *e)
{
    size_t piece = WIRE_CHUNK_BYTES;
    for (size_t i = 0; i < e->n_to; i++) {
        const size_t of = streams_piece(e->to[i].peer);
        piece = !is_gone(&e->to[i]) && of < piece ? of : piece;
    }
    return piece;
}

/* In parts, letting others emit between two of them. */
static int push_long(struct emit *e)
{
    size_t at = 0;
    int status = LS_OK;
    emit_under_way(e, true);
    while (at < e->in->size && status == LS_OK) {
        const size_t left = e->in->size - at, piece = piece_of(e);
        const size_t size = left < piece ? left : piece;
        status = emit_wait_room(e, size);
        if (status == LS_OK)
            status = push_part(e, at, size, 0);
        at += size;
        transport_unlock(e->node->transport);
        transport_lock(e->node->transport);
    }
    if (status != LS_OK)
        (void)push_part(e, 0, 0, WIRE_FLAG_WITHDRAW);
    emit_under_way(e, false);
    return status;
}

/* Lock held. */
static int emit_parcels(struct emit *e)
{
    const size_t size = e->in->size;
    int status =
        emit_wait_room(e, size < WIRE_CHUNK_BYTES ? size : WIRE_CHUNK_BYTES);
    if (status == LS_OK && e->one == NULL)
        status = choose_all(e);
    if (status == LS_OK && e->one != NULL)
        status = emit_check_one(e);
    if (status == LS_OK) {
        emit_number(e);
        status = size > piece_of(e) ? push_long(e) : push_part(e, 0, size, 0);
    }
    return status;
}

int emit_reliable(struct emit *e)
{
    bool done;
    transport_lock(e->node->transport);
    if (e->one != NULL) {
        e->to = &e->one_to;
        choose(e, &e->one, 1);
    }
    int status = emit_block(e, &done);
    if (!done && e->payload == NULL) {
        transport_unlock(e->node->transport);
        status = emit_keep_payload(e);
        transport_lock(e->node->transport);
    }
    if (!done && status == LS_OK)
        status = emit_parcels(e);
    transport_unlock(e->node->transport);
    if (e->to != &e->one_to)
        free(e->to);
    return status;
}

int emit_latest(struct emit *e, bool local, bool remote)
{
    ls_node *node = e->node;
    if (e->in->scope == LS_SCOPE_LOCAL) {
        emit_by(e, LS_DELIVERY_BLOCK);
        return emit_both(e, local, remote);
    }
    if (e->in->to_one)
        return ls_error(LS_EINVAL,
                        "event \"%s\": delivery latest is for all listeners",
                        e->entry->name);
    if (!remote)
        return ls_error(LS_ESTATE,
                        "event \"%s\": delivery latest needs a node that is "
                        "started",
                        e->entry->name);
    const int status = emit_keep_payload(e);
    if (status != LS_OK)
        return status;
    transport_lock(node->transport);
    latest_set(node, e->entry, payload_share(e->payload));
    e->sequence = e->entry->sequences[LS_DELIVERY_LATEST];
    emit_traced(e);
    events_targets(node, e->entry);
    for (size_t i = 0; i < e->entry->receivers.n; i++)
        latest_offer(node, e->entry->receivers.at[i]);
    transport_unlock(node->transport);
    return local && events_here(node, e->entry)
               ? latest_queue(node, e->entry, false)
               : LS_OK;
}
