/* bus_sabotage.h - a bus that is wrong on purpose.
 *
 * A sweep over fault schedules proves something only if it would notice. So
 * the nodes of a job that is swept may have one line of the bus missing; each
 * of these must be found. Nothing else sets one. */
#ifndef LS_BUS_SABOTAGE_H
#define LS_BUS_SABOTAGE_H

#include "lockstep/event.h"

enum ls_bus_sabotage {
    LS_BUS_SABOTAGE_NONE,
    LS_BUS_SABOTAGE_FIRST_EVENT,  /* the first event of a life is dropped */
    LS_BUS_SABOTAGE_LATER_EVENTS, /* those after the 15th are */
    LS_BUS_SABOTAGE_NO_OLDEST,    /* the oldest that is not acknowledged is not
                                   * transmitted again */
    LS_BUS_SABOTAGE_UNTOLD,       /* a sender is not told what it lost */
    LS_BUS_SABOTAGE_EVENTS,       /* reliable events are not */
    LS_BUS_SABOTAGE_NO_EXCUSE, /* who stood still holds the others for silent */
    LS_BUS_SABOTAGE_LOST_CREDIT, /* what is lost on the way is never room again
                                  */
    LS_BUS_SABOTAGE_SHUT_OUT     /* who was lost is let in no more */
};

/* Before it starts. Thread: owner. */
LS_API void ls_bus_sabotage(ls_node *node, enum ls_bus_sabotage what);

#endif
