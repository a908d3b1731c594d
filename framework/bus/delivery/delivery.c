#include "delivery.h"

#define BY_BLOCK                                                               \
    {                                                                          \
        .emit = emit_both, .room = emit_without_room, .send = emit_published   \
    }

const struct delivery deliveries[N_POLICIES] = {
    [LS_POLICY_DEFAULT] = BY_BLOCK,
    [LS_POLICY_BLOCK] = BY_BLOCK,
    [LS_POLICY_DROP] = {.flags = WIRE_FLAG_DROP,
                        .emit = emit_both,
                        .send = emit_published},
    [LS_POLICY_RELIABLE] = {.keeps = true,
                            .emit = emit_both,
                            .room = emit_without_stream_room,
                            .send = emit_reliable,
                            .lost = losses_unacknowledged},
    [LS_POLICY_LATEST] = {.flags = WIRE_FLAG_LATEST,
                          .keeps = true,
                          .emit = emit_latest,
                          .joined = latest_joined},
};

enum ls_policy delivery_policy(const struct wire_header *header)
{
    if ((header->flags & WIRE_FLAG_LATEST) != 0)
        return LS_POLICY_LATEST;
    if (header->kind == WIRE_KIND_RELIABLE)
        return LS_POLICY_RELIABLE;
    return (header->flags & WIRE_FLAG_DROP) != 0 ? LS_POLICY_DROP
                                                 : LS_POLICY_BLOCK;
}

void delivery_joined(ls_node *node, const struct event_entry *entry,
                     struct peer *peer)
{
    for (size_t i = 0; i < N_POLICIES; i++)
        if (deliveries[i].joined != NULL)
            deliveries[i].joined(node, entry, peer);
}
