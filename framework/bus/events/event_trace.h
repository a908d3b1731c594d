/* event_trace.h - events in the recording of a node (lockstep/trace.h): which
 * of them are kept, and as what. */
#ifndef LOCKSTEP_BUS_EVENT_TRACE_H
#define LOCKSTEP_BUS_EVENT_TRACE_H

#include "bus.h"

/* The rest of the two below, of what passes the gate; 0 passes any. */
int64_t event_trace_emit(ls_node *node, struct event_entry *entry,
                         uint64_t sequence);
int64_t event_trace_call(ls_node *node, struct event_entry *entry,
                         const struct ls_event *event);

/* An emit gets this sequence, or 0, and is about to be published: when that is,
 * or 0, if it is not recorded. Lock held. */
static inline int64_t
event_trace_begins(ls_node *node, struct event_entry *entry, uint64_t sequence)
{
    return node->options.trace != NULL &&
                   trace_gate_keeps(&entry->emits, sequence)
               ? event_trace_emit(node, entry, sequence)
               : 0;
}
/* The emit that began then has returned. to: NULL: everybody. */
void event_trace_emitted(ls_node *node, struct event_entry *entry,
                         uint64_t sequence, int64_t begin,
                         const struct peer *to, size_t size);

/* A handler's call begins and ends. Dispatch thread. Returns when, or 0, if it
 * is not recorded. */
static inline int64_t event_trace_handler(ls_node *node,
                                          struct event_entry *entry,
                                          const struct ls_event *event)
{
    return node->options.trace != NULL &&
                   trace_gate_keeps(&entry->handled, event->sequence)
               ? event_trace_call(node, entry, event)
               : 0;
}
void event_trace_handled(ls_node *node, struct event_entry *entry,
                         const struct ls_event *event, int64_t begin);

#endif
