#include "bus_sabotage.h"

#include "bus.h"

#define LATER 15

static bool is_later_life(const ls_node *node, const struct wire_presence *p)
{
    const struct member *member = membership_find(&node->world, p->id);
    return member != NULL && member->state == LS_MEMBER_LOST &&
           member->incarnation != p->incarnation;
}

static bool leaves_out(const ls_node *node, enum bus_act act, const void *of)
{
    switch ((enum ls_bus_sabotage)node->filter.what) {
    case LS_BUS_SABOTAGE_FIRST_EVENT:
        return act == BUS_HEARS && *(const uint64_t *)of == 1;
    case LS_BUS_SABOTAGE_LATER_EVENTS:
        return act == BUS_HEARS && *(const uint64_t *)of > LATER;
    case LS_BUS_SABOTAGE_NO_OLDEST:
        return act == BUS_REPEATS_OLDEST;
    case LS_BUS_SABOTAGE_UNTOLD:
        return act == BUS_TELLS_LOSS;
    case LS_BUS_SABOTAGE_EVENTS:
        return act == BUS_KEEPS;
    case LS_BUS_SABOTAGE_NO_EXCUSE:
        return act == BUS_EXCUSES;
    case LS_BUS_SABOTAGE_LOST_CREDIT:
        return act == BUS_SETTLES;
    case LS_BUS_SABOTAGE_SHUT_OUT:
        return act == BUS_LETS_IN && is_later_life(node, of);
    case LS_BUS_SABOTAGE_NONE:
        break;
    }
    return false;
}

void ls_bus_sabotage(ls_node *node, enum ls_bus_sabotage what)
{
    node->filter.what = (int)what;
    node->filter.omits = what == LS_BUS_SABOTAGE_NONE ? NULL : leaves_out;
}
