/* event.h - named events between the nodes of a world, and within one.
 *
 * Delivery: FIFO per sender, event and delivery; every message that a sender
 * could not deliver, and every gap that a receiver sees, is counted
 * (ls_node_stats(), ls_node_losses()). What each delivery promises beyond that
 * is told at ls_delivery. Handlers run on the node's dispatch thread, one
 * at a time, in the order in which messages came and listeners were registered;
 * an error that a handler returns stops nothing and is kept for
 * ls_node_take_error(); ls_task_run() takes it from there and fails with it.
 *
 * Names are 1 … 128 bytes of printable ASCII without '*', '?', '[', ']', '\\'
 * and ' ' (those mean something in patterns); any other name is LS_EINVAL.
 * Names that begin with "ls." are the framework's own.
 *
 * Whoever listens or waits may name a glob instead (*, ?, [a-z], [!a]):
 * "arm.*",
 * "*.done", or "*" for every event, but the framework's, which only what begins
 * with "ls." matches. The network brings all that begins as the glob does, up
 * to its first *, ? or [, and what it does not match is passed over here: so
 * "arm.*" costs what is handled, "*.done" everything. For one event, handlers
 * of its name run before those of globs. Delivered as latest, a glob gets the
 * current values of what nobody here listened to by name. Thread: any, also
 * from inside handlers. */
#ifndef LOCKSTEP_EVENT_H
#define LOCKSTEP_EVENT_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a handler is given. Borrow: until it returns. */
struct ls_event {
    const char *name;
    uint32_t origin;      /* id of the node that emitted it */
    uint64_t incarnation; /* of that node */
    uint64_t sequence;    /* counts that node's emits of this event to all, from
                           * 1, reliable and latest ones apart from the rest;
                           * 0: to one node, or within this one only */
    const void *data;     /* not aligned for any type: read it through the
                           * codec, or copy it */
    size_t size;          /* of data, in bytes */
};

typedef int ls_event_fn(void *self, const struct ls_event *event);

/* Listen until off(). A listener registered before ls_node_start() misses
 * nothing that a world member emits; later ones hear a peer from the moment
 * that peer knows of them. The handler's name, as written in the call, is what
 * errors name it by.
 * Errors: LS_EINVAL the name; LS_ENOMEM; LS_ECLOSED. */
#define ls_on(node, event, fn, self)                                           \
    ls_on_named((node), (event), (fn), (self), #fn)

/* The same for the next event alone: fn runs at most once. The node goes on
 * being sent the event until off(). */
#define ls_once(node, event, fn, self)                                         \
    ls_once_named((node), (event), (fn), (self), #fn)

/* What they stand for. name: of the handler; copied; or NULL. */
LS_MUST_USE LS_API int ls_on_named(ls_node *node, const char *event,
                                   ls_event_fn *fn, void *self,
                                   const char *name);
LS_MUST_USE LS_API int ls_once_named(ls_node *node, const char *event,
                                     ls_event_fn *fn, void *self,
                                     const char *name);

/* Remove one listener: the one with this fn and self, by the name or glob that
 * it was registered with.
 * Afterwards it is not running and never will be, unless off is called from
 * inside that very handler. Errors: LS_ENOENT. */
LS_MUST_USE LS_API int ls_off(ls_node *node, const char *event, ls_event_fn *fn,
                              void *self);

/* Remove every listener of the events that match a glob, and of those globs
 * that it matches as a text: "*" removes all.
 * Returns how many, >= 0. Same promise as ls_off(). */
LS_API int ls_off_all(ls_node *node, const char *pattern);

/* Let nobody emit this event to this node but whom you name, one with each
 * call: who: an id, "3"; or "role:learner", "label:fast", for all that call
 * themselves so. What others emit is dropped here, counted and named
 * (ls_node_refusals()). It is the identity of the connection that counts; a
 * hub is believed about its leaves. Set it before ls_node_start().
 * Errors: LS_EINVAL the name, or who; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_node_allow(ls_node *node, const char *event,
                                     const char *who);

enum ls_scope {
    LS_SCOPE_BOTH,  /* listeners here and everywhere */
    LS_SCOPE_LOCAL, /* only those of this node */
    LS_SCOPE_REMOTE /* only those of other nodes */
};

/* What becomes of an event for a listener at another node; within a node
 * nothing is ever lost. docs/guarantees.md has a test for each promise.
 *
 * BLOCK and DROP are at most once: what is under way on a connection when it
 * breaks, or emitted while it is being made again, is missed, and counted at
 * the receiver.
 *
 * RELIABLE is exactly once, in order, to every listener that is ready when it
 * is emitted, also to one whose connection is being made again just then. What
 * is not acknowledged comes again, over as many connections as it takes; an
 * emit returns when it is kept for that, and waits as BLOCK does while too much
 * is. Only when a listener leaves or is lost before it has acknowledged one
 * does it count as lost (`unacknowledged`; it may have been handled all the
 * same), but for the framework's own events to one that leaves. When it was
 * lost, and unless the event is one of the framework's, the sender is told too:
 * by an error LS_ELOST for ls_node_take_error() and what that ends, which names
 * node, first event and number. ls_node_stop() waits for acknowledgements,
 * linger_ms at most.
 *
 * LATEST is for a value of which the newest counts. Emitting never waits. Each
 * listener gets the values in order, and those alone that are the newest when
 * there is room for them; the last one always, over as many connections as it
 * takes. Who begins to listen gets the current one at once. The node keeps one
 * value per event, until it stops.
 *
 * One event should have one delivery: between two there is no order. */
enum ls_delivery {
    LS_DELIVERY_DEFAULT,  /* what ls_node_set_delivery() set; else
                           * BLOCK */
    LS_DELIVERY_BLOCK,    /* wait for room at the slowest listener */
    LS_DELIVERY_DROP,     /* a listener without room misses it: counted, for
                           * a long event too, once */
    LS_DELIVERY_RELIABLE, /* as BLOCK, and exactly once */
    LS_DELIVERY_LATEST    /* to all alone, from a node that is started */
};

/* One emit, in full. Zeroed fields have their usual meaning. */
struct ls_emission {
    const char *event;
    const void *data; /* copied, unless `release` is given */
    size_t size;
    enum ls_scope scope;
    enum ls_delivery delivery;
    bool to_one; /* only to node `to`, which may be this one */
    uint32_t to;
    int timeout_ms; /* block and reliable; 0: the node's emit_timeout_ms;
                     * LS_NO_WAIT */
    /* Zero copy: data is moved, and released on any thread once nobody needs
     * it; also when the emit fails. Worth it from some KiB on. */
    void (*release)(void *data, void *hint);
    void *hint;
};

/* Emit to all listeners, here and remote: returns once the message is queued
 * for each of them. Never delivers on the caller's stack.
 * Errors: LS_EINVAL the name; LS_ELIMIT over max_payload_bytes; LS_EAGAIN
 *         block, reliable: a listener had no room until the deadline: the
 *         text names it, and nothing was sent to anyone; LS_ECLOSED; what
 *         ls_node_interrupt() says; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_emit(ls_node *node, const char *event,
                               const void *data, size_t size);

/* The same with every choice.
 * Errors: also LS_ENOENT to_one: no such member, or it does not listen;
 *         LS_EINVAL, LS_ESTATE latest to one, from a node that is not
 *         started. */
LS_MUST_USE LS_API int ls_emit_with(ls_node *node,
                                    const struct ls_emission *emission);

/* Set how this node's emits of an event are delivered. Errors: LS_EINVAL. */
LS_MUST_USE LS_API int ls_node_set_delivery(ls_node *node, const char *event,
                                            enum ls_delivery delivery);

/* Wait for the next event of this name, `wait_ms` at most. What was emitted
 * before the call is not seen.
 * fn:     NULL, or runs on the dispatch thread with the event before the
 *         caller wakes; its error is what this returns.
 * Errors: LS_ETIMEDOUT; LS_ECLOSED the node stops; LS_ESTATE from inside a
 *         handler, which could only wait for itself; what
 *         ls_node_take_error() would say, which is thereby taken. */
LS_MUST_USE LS_API int ls_wait_for(ls_node *node, const char *event,
                                   int wait_ms, ls_event_fn *fn, void *self);

/* Wait for what was emitted since the waiter was made: made before the question
 * is asked, it cannot miss the answer, however fast that comes. It listens as
 * ls_on() does, and keeps a copy of each event until somebody waits for it. */
typedef struct ls_waiter ls_waiter;

/* out:      own; NULL after an error; give it to ls_waiter_destroy().
 * event:    a name or a glob. copied
 * capacity: so many are kept, at most 65536; 0: 16. Of what finds no room
 *           nothing is kept, and it is counted.
 * Errors:   those of ls_on(); LS_EINVAL capacity. */
LS_MUST_USE LS_API int ls_waiter_create(ls_waiter **out, ls_node *node,
                                        const char *event, size_t capacity);
/* Take the event that came first of those that are kept, or wait for one.
 * fn:     NULL, or runs here, on this thread; its status is returned.
 * Errors: those of ls_wait_for(); not while one is kept, but for LS_ESTATE. */
LS_MUST_USE LS_API int ls_waiter_wait(ls_waiter *waiter, int wait_ms,
                                      ls_event_fn *fn, void *self);
/* How many came that there was no room, or no memory, for. */
LS_API uint64_t ls_waiter_dropped(const ls_waiter *waiter);
/* Before the node; nobody may be waiting. NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE from a handler of the node: nothing was done. */
LS_API int ls_waiter_destroy(ls_waiter **waiter);

/* How many ready members, this node counted when it does, listen to an event;
 * up to `capacity` of their ids are written to ids, in order. */
LS_API size_t ls_node_listeners(ls_node *node, const char *event, uint32_t *ids,
                                size_t capacity);

/* Make every wait at this node, those under way and those to come, return
 * `status`; LS_OK: no more. For whoever ends a run. The waits are: for a world
 * in ls_node_start() and ls_node_join(); for events in ls_wait_for() and
 * ls_waiter_wait(); for room in an emit; ls_call_wait(), ls_call_ask() and
 * ls_rpc_connect(), whose call goes on or is cancelled as after a deadline;
 * ls_barrier_wait(), as after ls_barrier_abort(); and in the steps of its tasks
 * ls_step_sleep(), ls_mw_barrier() and ls_mw_exchange(). */
LS_API void ls_node_interrupt(ls_node *node, int status);

/* The same, a moment later, by a thread of the node, which must be open: the
 * one call of all headers that a signal handler may make (signal-safety(7)).
 * Where the program is free to choose, ls_signal_watch() is better: what it
 * calls may do anything, as ls_task_cancel(). */
LS_API void ls_node_interrupt_soon(ls_node *node, int status);

/* What ls_node_interrupt() said, with a text; LS_OK: nothing. For waits of a
 * program's own. */
LS_API int ls_node_interrupted(const ls_node *node);

/* Have fn called by each ls_node_interrupt(), on its thread: it wakes a wait,
 * which asks ls_node_interrupted(), and calls nothing of this header. One per
 * self; fn NULL takes it away, after which it does not run. Before the node is
 * destroyed. Errors: LS_ENOMEM. */
LS_API int ls_node_on_interrupt(ls_node *node, void (*fn)(void *self),
                                void *self);

struct ls_node_stats {
    uint64_t emitted; /* emits that succeeded */
    uint64_t sent;    /* messages handed to the network */
    uint64_t sent_bytes;
    uint64_t resent;   /* of them, reliable ones once more */
    uint64_t received; /* messages from others, for this node */
    uint64_t received_bytes;
    uint64_t handled;        /* handlers run */
    uint64_t relayed;        /* passed on by a hub */
    uint64_t dropped;        /* delivered as drop: listeners that missed one */
    uint64_t lost;           /* messages that a peer sent here and that never
                              * came, by the peers' own counts */
    uint64_t missed;         /* gaps in the sequence of an event: lost on the
                              * way, or dropped by its sender */
    uint64_t unacknowledged; /* reliable events that a listener may not have
                              * got when it left or was lost */
    uint64_t repeated;       /* messages that came twice, or too late to be in
                              * order: not handled */
    uint64_t reconnects;     /* broken connections of members that were made
                              * again in time */
    uint64_t rejoined;       /* times that this node was declared lost, and went
                              * on as a new member */
    uint64_t refused;        /* what came from outside and was not accepted:
                              * ls_node_refusals() */
    uint64_t early;          /* events of one to which this node was not ready
                              * yet, or not ready again: not for it; or that
                              * waited in it, a hub, when their leaf ended */
    uint64_t blocked;        /* emits that had to wait for room */
    int64_t blocked_ns;      /* for how long, in all */
    uint32_t slowest;   /* the node that emits found without room longest */
    int64_t slowest_ns; /* for how long, in all; 0: none was */
    size_t queued;      /* in the dispatch queue now */
    size_t queued_peak;
};
LS_API void ls_node_stats(ls_node *node, struct ls_node_stats *out);

/* Losses between two nodes of one event, as this node knows them: what it sent
 * (dropped, unacknowledged) and what it was sent (missed). What a sender drops
 * its receiver misses, so do not add the two up. Rows without losses are left
 * out. Returns how many rows there are; up to `capacity` are written. */
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
