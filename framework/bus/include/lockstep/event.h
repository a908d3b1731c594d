/* event.h - named events between the nodes of a world, and within one.
 *
 * Delivery is FIFO per sender, event and ls_delivery. Every message that a
 * sender could not deliver, and every gap that a receiver sees, is counted
 * (ls_node_stats(), ls_node_losses()). ls_delivery documents what each delivery
 * promises beyond that. Handlers run on the node's dispatch thread, one at a
 * time, in the order in which messages arrived and listeners were registered.
 * An error that a handler returns stops nothing; it is kept for
 * ls_node_take_error(). ls_task_run() takes it from there and fails with it.
 *
 * Names are 1 … 128 bytes of printable ASCII without '*', '?', '[', ']', '\\'
 * and ' ', which are reserved for patterns; any other name is LS_EINVAL.
 * Names that begin with "ls." are reserved for the framework. A node knows up
 * to 16,384 names, of which its peers may bring half, and forgets none that was
 * ever listened to or emitted: what changes without end, such as the number of
 * a request, goes into the data. One too many is LS_ELIMIT. Where a peer
 * listens to one too many, this node's emits of it miss that peer: counted as
 * refused, and named in the log.
 *
 * Functions that listen or wait also accept a glob (*, ?, [a-z], [!a]):
 * "arm.*", "*.done", or "*" for every event except the framework's. Only a
 * glob that begins with "ls." matches those. The network filters by the prefix
 * up to the first *, ? or [; this node drops what the rest does not match. So
 * "arm.*" costs only what it matches, "*.done" costs all traffic. For each
 * event, handlers registered by name run before those of globs. With delivery
 * LATEST, a new glob listener gets the current values of those events that no
 * listener here has named.
 * Thread: any, also inside handlers. */
#ifndef LOCKSTEP_EVENT_H
#define LOCKSTEP_EVENT_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Passed to a handler. Borrow: until it returns. */
struct ls_event {
    const char *name;
    uint32_t origin;      /* id of the node that emitted it */
    uint64_t incarnation; /* of that node */
    uint64_t sequence;    /* that node's emits of this event to all, counted
                           * from 1; RELIABLE and LATEST ones are counted apart
                           * from the rest. 0: sent to one node, or local */
    const void *data;     /* not aligned for any type: read it through the
                           * codec, or copy it */
    size_t size;          /* of data, in bytes */
    /* Of 64 KiB and more, from a node of this host, data may lie in memory of
     * that node's (`shared_bytes` in node.h), which could change it while it is
     * read. What is parsed, and comes from a node that is not trusted, is to be
     * copied first. */
};

typedef int ls_event_fn(void *self, const struct ls_event *event);

/* Listen until off(). A listener registered before ls_node_start() misses
 * nothing that a world member emits; a later one hears each peer from the
 * moment that peer knows of it. Error texts name the handler as written in the
 * call.
 * Errors: LS_EINVAL the name; LS_ELIMIT too many names; LS_ENOMEM;
 *         LS_ECLOSED. */
#define ls_on(node, event, fn, self)                                           \
    ls_on_named((node), (event), (fn), (self), #fn)

/* The same for the next event only: fn runs at most once. Peers keep sending
 * the event to this node until off(). */
#define ls_once(node, event, fn, self)                                         \
    ls_once_named((node), (event), (fn), (self), #fn)

/* The functions behind the macros. name: of the handler; copied; may be NULL.
 */
LS_MUST_USE LS_API int ls_on_named(ls_node *node, const char *event,
                                   ls_event_fn *fn, void *self,
                                   const char *name);
LS_MUST_USE LS_API int ls_once_named(ls_node *node, const char *event,
                                     ls_event_fn *fn, void *self,
                                     const char *name);

/* Remove one listener, identified by fn, self, and the name or glob that it was
 * registered with. When this returns the handler is not running and will not
 * run again, unless off is called from inside that very handler.
 * Errors: LS_ENOENT. */
LS_MUST_USE LS_API int ls_off(ls_node *node, const char *event, ls_event_fn *fn,
                              void *self);

/* Remove every listener whose event matches a glob, and every glob listener
 * whose pattern, taken as text, matches it: "*" removes all but those of the
 * framework's events, which a task has; NULL none.
 * Returns the number removed, >= 0. Makes the same promise as ls_off(). */
LS_API int ls_off_all(ls_node *node, const char *pattern);

/* Restrict who may emit this event to this node. Each call adds one sender.
 * who:    an id, "3"; or "role:learner", "label:fast": all nodes with that role
 *         or label. Emits of other nodes are dropped here, counted and named
 *         (ls_node_refusals()). The identity of the connection decides; a hub
 *         is trusted to identify its leaves. Call before ls_node_start().
 * Errors: LS_EINVAL the name, or who; LS_ELIMIT too many names; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_node_allow(ls_node *node, const char *event,
                                     const char *who);

enum ls_scope {
    LS_SCOPE_BOTH,  /* listeners on this node and on all others */
    LS_SCOPE_LOCAL, /* only those of this node */
    LS_SCOPE_REMOTE /* only those of other nodes */
};

/* How an event reaches listeners; within a node nothing is lost but what DROP
 * finds no room for. docs/guarantees.md has a test for each promise.
 *
 * BLOCK and DROP deliver at most once. Messages that are in transit when a
 * connection breaks, or emitted before it is restored, are missed, and counted
 * at the receiver.
 *
 * RELIABLE delivers exactly once, in order, to every listener that is ready
 * when the event is emitted, even if its connection is being restored at the
 * time. Unacknowledged events are resent over as many connections as it takes.
 * An emit returns once the event is stored for resending, and waits as BLOCK
 * does while too much is stored. An event counts as lost (`unacknowledged`;
 * it may have been handled) only when a listener leaves or is lost before
 * acknowledging it; the framework's own events to a listener that leaves are
 * not counted. If the listener was lost, and the event is not one of the
 * framework's, the sender is told too: ls_node_take_error() and whatever fails
 * with it report LS_ELOST, with the node, the first event and the number lost.
 * ls_node_stop() waits for acknowledgements, at most linger_ms.
 *
 * LATEST is for values of which only the newest matters. Emitting never waits,
 * but to this node alone (LS_SCOPE_LOCAL), where it is BLOCK. Each listener
 * gets values in order, but only those that are the newest when there is room
 * for them; it always gets the last one, over as many connections as it takes.
 * The first listener of a node gets the current value at once, and so does the
 * first one after ls_off() has left none, that one perhaps twice; others get
 * the next value. ls_once() and ls_wait_for() leave their node listening. The
 * node keeps one value per event until it stops.
 *
 * Use one delivery per event: there is no order between two. */
enum ls_delivery {
    LS_DELIVERY_DEFAULT,  /* as set by ls_node_set_delivery(), else
                           * BLOCK */
    LS_DELIVERY_BLOCK,    /* wait for room at the slowest listener */
    LS_DELIVERY_DROP,     /* a listener without room misses the event; counted
                           * once, however long the event is */
    LS_DELIVERY_RELIABLE, /* as BLOCK, and exactly once */
    LS_DELIVERY_LATEST    /* only to all, and only from a started node */
};

/* All parameters of one emit. Zeroed fields mean the defaults. */
struct ls_emission {
    const char *event;
    const void *data; /* copied, unless `release` is given */
    size_t size;
    enum ls_scope scope;
    enum ls_delivery delivery;
    bool to_one; /* only to node `to`, which may be this one */
    uint32_t to;
    int timeout_ms; /* BLOCK and RELIABLE; 0: the node's emit_timeout_ms;
                     * LS_NO_WAIT */
    /* Zero copy: data is moved, and released on any thread when no longer
     * needed, even if the emit fails. Worthwhile from a few KiB on. To nodes of
     * this host it is copied once, from 64 KiB on, unless it lies in memory of
     * ls_payload_alloc() (payload.h). */
    void (*release)(void *data, void *hint);
    void *hint;
};

/* Emit to all listeners, local and remote. Returns once the message is queued
 * for each of them; never runs a handler on the caller's stack.
 * Errors: LS_EINVAL the name; LS_ELIMIT over max_payload_bytes, or too many
 *         names; LS_EAGAIN BLOCK, RELIABLE: a listener had no room by the
 *         deadline, or, in an op of a channel, and for those of this node in a
 *         handler, at once: the text names it, and nothing was sent to anyone;
 * LS_ECLOSED; the status given to ls_node_interrupt(); LS_ENOMEM. */
LS_MUST_USE LS_API int ls_emit(ls_node *node, const char *event,
                               const void *data, size_t size);

/* The same with all parameters.
 * Errors: also LS_ENOENT to_one: no such member, or it does not listen, or it
 *         left or was lost while this waited for room; LS_EINVAL LATEST to one,
 *         or no such delivery or scope; LS_ESTATE LATEST from a node that is
 *         not started. */
LS_MUST_USE LS_API int ls_emit_with(ls_node *node,
                                    const struct ls_emission *emission);

/* Set the default delivery of an event for this node's emits.
 * Errors: LS_EINVAL; LS_ELIMIT too many names; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_node_set_delivery(ls_node *node, const char *event,
                                            enum ls_delivery delivery);

/* Wait at most `wait_ms` for the next event of this name. Events that this node
 * has emitted or received before the call are not seen, but a current value
 * (LATEST).
 * fn:     NULL, or runs on the dispatch thread with the event before the
 *         caller wakes; its error is returned here.
 * Errors: LS_ETIMEDOUT; LS_ECLOSED the node stops; LS_ESTATE called inside a
 *         handler or an op of a channel, where it would deadlock; a pending
 *         error of ls_node_take_error(), which this takes: of several waits,
 *         one. */
LS_MUST_USE LS_API int ls_wait_for(ls_node *node, const char *event,
                                   int wait_ms, ls_event_fn *fn, void *self);

/* Waits for events that this node has emitted or received since the waiter was
 * created. Create it before sending a request and it cannot miss the reply,
 * however fast that comes. It listens as ls_on() does, and keeps a copy of each
 * event until taken. */
typedef struct ls_waiter ls_waiter;

/* out:      own; NULL after an error; give it to ls_waiter_destroy().
 * event:    a name or a glob. copied
 * capacity: the number of events kept, at most 65536; 0: 16. Events beyond it
 *           are discarded and counted.
 * Errors:   those of ls_on(); LS_EINVAL capacity. */
LS_MUST_USE LS_API int ls_waiter_create(ls_waiter **out, ls_node *node,
                                        const char *event, size_t capacity);
/* Take the oldest event kept, or wait for one.
 * fn:     NULL, or runs here, on this thread; its status is returned.
 * Errors: those of ls_wait_for(); if an event is kept, only LS_ESTATE. */
LS_MUST_USE LS_API int ls_waiter_wait(ls_waiter *waiter, int wait_ms,
                                      ls_event_fn *fn, void *self);
/* The number of events discarded for lack of room or memory. */
LS_API uint64_t ls_waiter_dropped(const ls_waiter *waiter);
/* Call it before destroying the node, when no thread waits. NULL and a pointer
 * to NULL are fine.
 * Errors: LS_ESTATE called in a handler of the node: nothing was done. */
LS_API int ls_waiter_destroy(ls_waiter **waiter);

/* The number of ready members that listen to an event, including this node if
 * it does. Up to `capacity` of their ids are written to ids, in order. */
LS_API size_t ls_node_listeners(ls_node *node, const char *event, uint32_t *ids,
                                size_t capacity);

/* Make every wait at this node, current and future, return `status`; LS_OK ends
 * this. For programs that end a run. The waits are: for a world in
 * ls_node_start() and ls_node_join(); for events in ls_wait_for() and
 * ls_waiter_wait(); for room in an emit; ls_call_wait(), ls_call_ask() and
 * ls_rpc_connect(), whose call continues or is cancelled as after a deadline;
 * ls_barrier_wait(), as after ls_barrier_abort(); ls_room_create(), and the
 * operations of a room; and in the steps of its tasks ls_step_sleep(),
 * ls_mw_barrier() and ls_mw_exchange(). A node that has no memory to note what
 * another listens to, and so would keep events from it, interrupts itself, with
 * LS_ENOMEM. */
LS_API void ls_node_interrupt(ls_node *node, int status);

/* The same, a moment later, on a thread of the node, which must be open. This
 * is the only function of all headers that a signal handler may call
 * (signal-safety(7)). Prefer ls_signal_watch() where you can: its callback may
 * call anything, such as ls_task_cancel(). */
LS_API void ls_node_interrupt_soon(ls_node *node, int status);

/* The status given to ls_node_interrupt(), with a text; LS_OK: none. For waits
 * of the program's own. */
LS_API int ls_node_interrupted(const ls_node *node);

/* Have each ls_node_interrupt() call fn, on its thread. fn wakes a wait, which
 * then asks ls_node_interrupted(); fn must not call anything of this header.
 * One fn per self; fn NULL removes it, and on return it no longer runs. Remove
 * it before the node is destroyed. Errors: LS_ENOMEM. */
LS_API int ls_node_on_interrupt(ls_node *node, void (*fn)(void *self),
                                void *self);

struct ls_node_stats {
    uint64_t emitted; /* emits that succeeded */
    uint64_t sent;    /* messages handed to the network */
    uint64_t sent_bytes;
    uint64_t resent;   /* of them, reliable ones sent again */
    uint64_t received; /* messages from others, for this node */
    uint64_t received_bytes;
    uint64_t handled;        /* handlers run */
    uint64_t relayed;        /* passed on by a hub */
    uint64_t dropped;        /* DROP: listeners that missed an event */
    uint64_t lost;           /* messages that peers sent here and that never
                              * arrived, by the peers' own counts */
    uint64_t missed;         /* gaps in the sequence of an event: lost in
                              * transit, or dropped by its sender */
    uint64_t unacknowledged; /* RELIABLE: events that a listener may not have
                              * got when it left or was lost */
    uint64_t repeated;       /* messages that came twice, or too late to be in
                              * order: not handled */
    uint64_t reconnects;     /* broken connections of members that were restored
                              * in time */
    uint64_t rejoined;       /* times that this node was declared lost and
                              * rejoined as a new member */
    uint64_t refused;        /* input from outside that was rejected:
                              * ls_node_refusals() */
    uint64_t early;          /* events discarded because this node was not ready
                              * to their sender yet, or not ready again; or that
                              * waited in this hub when their leaf ended */
    uint64_t blocks;         /* emits whose payload, and calls and answers whose
                              * body went through memory that nodes of this host
                              * share */
    uint64_t blocks_full;    /* that would have, but found no room there: they
                              * went over the connections */
    uint64_t blocks_held;    /* payloads of ls_payload_alloc() that lie there
                              * now, and were not freed (payload.h) */
    uint64_t near;      /* messages that went through that memory, in place of
                         * a connection: of events, calls and barriers */
    uint64_t near_lost; /* of other nodes' barriers, that were not read in time:
                         * who sent them repeats what matters */
    uint64_t blocked;   /* emits that had to wait for room */
    int64_t blocked_ns; /* how long they waited, in total */
    uint32_t slowest;   /* the node that made emits wait longest */
    int64_t slowest_ns; /* how long, in total; 0: no emit waited */
    size_t queued;      /* in the dispatch queue now */
    size_t queued_peak;
};
LS_API void ls_node_stats(ls_node *node, struct ls_node_stats *out);

/* Losses of one event between two nodes, as this node knows them: what it
 * sent (dropped, unacknowledged) and what was sent to it (missed). The
 * receiver misses what its sender drops, so do not add the two. Rows
 * without losses are omitted. Returns the number of rows; writes at most
 * `capacity`. */
struct ls_node_loss {
    uint32_t sender, receiver;
    char event[LS_EVENT_MAX + 1];
    uint64_t dropped;
    uint64_t missed;
    uint64_t unacknowledged;
};
LS_API size_t ls_node_losses(ls_node *node, struct ls_node_loss *out,
                             size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
