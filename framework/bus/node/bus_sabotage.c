#include "bus_sabotage.h"

#include "bus.h"

#define LATER 15

void ls_bus_sabotage(ls_node *node, enum ls_bus_sabotage what)
{
    node->sabotage = (int)what;
}

bool bus_sabotage_drops(const ls_node *node, const struct event_entry *entry,
                        uint64_t sequence)
{
    if (events_is_reserved(entry))
        return false;
    return (node->sabotage == LS_BUS_SABOTAGE_FIRST_EVENT && sequence == 1) ||
           (node->sabotage == LS_BUS_SABOTAGE_LATER_EVENTS && sequence > LATER);
}

bool bus_sabotage_shuts_out(const ls_node *node,
                            const struct wire_presence *presence)
{
    const struct member *member =
        node->sabotage == LS_BUS_SABOTAGE_SHUT_OUT
            ? membership_find(&node->world, presence->id)
            : NULL;
    return member != NULL && member->state == LS_MEMBER_LOST &&
           member->incarnation != presence->incarnation;
}

enum ls_delivery bus_sabotage_delivery(const ls_node *node,
                                       enum ls_delivery delivery)
{
    return node->sabotage == LS_BUS_SABOTAGE_EVENTS &&
                   delivery == LS_DELIVERY_RELIABLE
               ? LS_DELIVERY_BLOCK
               : delivery;
}
