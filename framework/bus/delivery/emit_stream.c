/* Emitting through streams: deliveries reliable and latest. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

/* Whom a reliable emit goes to, as they were when it began: nobody is to get
 * the second half of a long one. */
struct receiver {
    struct peer *peer;
    uint64_t life;
    bool gone;
};

struct reliable {
    struct emit *e;
    struct receiver *to;
    size_t n;
    struct receiver one; /* for a single one nothing is allocated */
};

static bool is_gone(const struct receiver *to)
{
    assert(to->peer != NULL);
    return to->peer->member.incarnation != to->life ||
           member_has_ended(&to->peer->member);
}

static struct peer *without_room(void *self, size_t size)
{
    const struct reliable *r = self;
    const struct targets *all = &r->e->entry->receivers;
    if (r->to == NULL)
        events_targets(r->e->node, r->e->entry);
    for (size_t i = 0; r->to != NULL && i < r->n; i++)
        if (!is_gone(&r->to[i]) && !streams_room(r->to[i].peer, size))
            return r->to[i].peer;
    for (size_t i = 0; r->to == NULL && i < all->n; i++)
        if (!streams_room(all->at[i], size))
            return all->at[i];
    return NULL;
}

static void choose_one(struct reliable *r, struct peer *peer)
{
    r->one = (struct receiver){.peer = peer, .life = peer->member.incarnation};
    r->to = &r->one;
    r->n = 1;
}

static int choose_all(struct reliable *r, const struct targets *all)
{
    if (all->n == 1) {
        choose_one(r, all->at[0]);
        return LS_OK;
    }
    r->to = calloc(all->n + 1, sizeof *r->to);
    if (r->to == NULL)
        return ls_error(LS_ENOMEM, "no memory for an emit");
    for (; r->n < all->n; r->n++)
        r->to[r->n] = (struct receiver){
            .peer = all->at[r->n], .life = all->at[r->n]->member.incarnation};
    return LS_OK;
}

/* One part to each. Whoever was lost since the first has lost all of it. */
static int push_part(struct reliable *r, size_t at, size_t size, uint8_t flags)
{
    struct emit *e = r->e;
    const struct parcel parcel = {.payload = e->payload,
                                  .offset = at,
                                  .size = size,
                                  .of = size == e->in->size && flags == 0
                                            ? WIRE_KIND_EVENT
                                            : WIRE_KIND_CHUNK,
                                  .flags = flags,
                                  .sequence = e->sequence,
                                  .entry = e->entry};
    int status = LS_OK;
    for (size_t i = 0; i < r->n; i++) {
        struct receiver *to = &r->to[i];
        if (!to->gone && is_gone(to)) {
            to->gone = true;
            losses_unacknowledged(e->node, e->entry, to->peer);
        }
        if (!to->gone && status == LS_OK)
            status = streams_push(e->node, to->peer, &parcel);
    }
    return status;
}

static size_t piece_of(const struct reliable *r)
{
    size_t piece = WIRE_CHUNK_BYTES;
    for (size_t i = 0; i < r->n; i++) {
        const size_t of = streams_piece(r->to[i].peer);
        piece = !is_gone(&r->to[i]) && of < piece ? of : piece;
    }
    return piece;
}

/* In parts, letting others emit between two of them. */
static int push_long(struct reliable *r)
{
    struct emit *e = r->e;
    size_t at = 0;
    int status = LS_OK;
    e->entry->emitting = e->under_way = true;
    while (at < e->in->size && status == LS_OK) {
        const size_t left = e->in->size - at, piece = piece_of(r);
        const size_t size = left < piece ? left : piece;
        status = emit_wait_room(e, without_room, r, size);
        if (status == LS_OK)
            status = push_part(r, at, size, 0);
        at += size;
        transport_unlock(e->node->transport);
        transport_lock(e->node->transport);
    }
    if (status != LS_OK)
        (void)push_part(r, 0, 0, WIRE_FLAG_WITHDRAW);
    e->entry->emitting = e->under_way = false;
    ls_cond_broadcast(&e->node->changed);
    return status;
}

int emit_reliable(struct emit *e)
{
    struct reliable r = {.e = e};
    const size_t size = e->in->size;
    transport_lock(e->node->transport);
    if (e->one != NULL)
        choose_one(&r, e->one);
    int status = emit_wait_room(
        e, without_room, &r, size < WIRE_CHUNK_BYTES ? size : WIRE_CHUNK_BYTES);
    if (status == LS_OK && e->one == NULL)
        status = choose_all(&r, &e->entry->receivers);
    if (status == LS_OK && e->one != NULL && is_gone(&r.one))
        status = ls_error(LS_ENOENT, "event \"%s\": node %u is gone",
                          e->entry->name, e->one->member.id);
    if (status == LS_OK) {
        e->sequence =
            e->one != NULL ? 0 : ++e->entry->sequences[SEQUENCE_RELIABLE];
        status =
            size > piece_of(&r) ? push_long(&r) : push_part(&r, 0, size, 0);
    }
    transport_unlock(e->node->transport);
    if (r.to != &r.one)
        free(r.to);
    return status;
}

int emit_latest(struct emit *e, bool local)
{
    ls_node *node = e->node;
    transport_lock(node->transport);
    latest_set(node, e->entry, payload_share(e->payload));
    events_targets(node, e->entry);
    for (size_t i = 0; i < e->entry->receivers.n; i++)
        latest_offer(node, e->entry->receivers.at[i]);
    transport_unlock(node->transport);
    return local ? latest_queue(node, e->entry, false) : LS_OK;
}
