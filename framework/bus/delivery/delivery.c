#include "delivery.h"

#define BY_BLOCK                                                               \
    {                                                                          \
        .emit = emit_both, .room = emit_without_room, .send = emit_published   \
    }

const struct delivery deliveries[N_DELIVERIES] = {
    [LS_DELIVERY_DEFAULT] = BY_BLOCK,
    [LS_DELIVERY_BLOCK] = BY_BLOCK,
    [LS_DELIVERY_DROP] = {.flags = WIRE_FLAG_DROP,
                          .emit = emit_both,
                          .send = emit_published},
    [LS_DELIVERY_RELIABLE] = {.keeps = true,
                              .emit = emit_both,
                              .room = emit_without_stream_room,
                              .send = emit_reliable,
                              .lost = losses_unacknowledged},
    [LS_DELIVERY_LATEST] = {.flags = WIRE_FLAG_LATEST,
                            .keeps = true,
                            .emit = emit_latest,
                            .joined = latest_joined},
};

enum ls_delivery delivery_of(const struct wire_header *header)
{
    if ((header->flags & WIRE_FLAG_LATEST) != 0)
        return LS_DELIVERY_LATEST;
    if (header->kind == WIRE_KIND_RELIABLE)
        return LS_DELIVERY_RELIABLE;
    return (header->flags & WIRE_FLAG_DROP) != 0 ? LS_DELIVERY_DROP
                                                 : LS_DELIVERY_BLOCK;
}

void delivery_joined(ls_node *node, const struct event_entry *entry,
                     struct peer *peer)
{
    for (size_t i = 0; i < N_DELIVERIES; i++)
        if (deliveries[i].joined != NULL)
            deliveries[i].joined(node, entry, peer);
}
