/* event_access.h - who may emit an event to this node. */
#ifndef LOCKSTEP_BUS_EVENT_ACCESS_H
#define LOCKSTEP_BUS_EVENT_ACCESS_H

#include <stdbool.h>

#include "lockstep/node.h"

struct event_entry;
struct member;

/* One that may; a list of them in an event's entry, which only grows. */
struct event_access;
void event_access_free(struct event_access *list);
/* Bus thread, lock not held: whether this member may; else it is counted. */
bool event_access_admits(ls_node *node, const struct event_entry *entry,
                         const struct member *origin);

#endif
