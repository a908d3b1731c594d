/* channel.h - control messages between members, for implementing protocols.
 *
 * A channel has a name; a message sent on it reaches the channel of that name
 * at another member, through relays if need be. Messages are small, exempt from
 * flow control, and handled on the bus thread, independently of events. They
 * may be lost when a connection breaks, or if the other side has not opened the
 * channel: a protocol must repeat what matters, or send it with
 * ls_channel_send_reliable(). The barrier uses this; applications use event.h.
 * Thread: any; the ops run on the bus thread, or on one that waits and does its
 * work meanwhile (ls_channel_attend()), one at a time, and must not block,
 * unless noted otherwise. */
#ifndef LOCKSTEP_CHANNEL_H
#define LOCKSTEP_CHANNEL_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LS_CHANNEL_MESSAGE_MAX 262144 /* bytes */

typedef struct ls_channel ls_channel;

/* A part of a body. Both sides identify the body by a number; its parts come in
 * order, without gaps. data: borrow for the call, unless the op sets `taken`:
 * the op's side then releases it with release(data, hint), on any thread. */
struct ls_channel_part {
    uint64_t body;
    size_t total, offset;
    const void *data;
    size_t size; /* from 1 to total - offset; 0: what came in its place names
                  * nothing that can be read (docs/wire-format.md#blocks) */
    bool taken;
    void (*release)(void *data, void *hint);
    void *hint;
};

struct ls_channel_ops {
    /* A message arrived. data: borrow, for the call. */
    void (*message)(void *self, uint32_t from, uint64_t incarnation,
                    const void *data, size_t size);
    /* A part of a call's body arrived. NULL: there are none. */
    void (*part)(void *self, uint32_t from, uint64_t incarnation,
                 struct ls_channel_part *part);
    /* A member became ready, left or was lost; also called for members that are
     * ready when the channel is opened. NULL: not interested. */
    void (*member)(void *self, const struct ls_member *member);
    /* Another node declared this node lost, and it continues as a new
     * incarnation. All members have been reported lost before this call; they
     * become ready again after it. NULL: not interested. */
    void (*renewed)(void *self, uint64_t incarnation);
    /* A message arrived for a channel that this node does not have: called on
     * each channel with this op. Answer with ls_channel_answer(). NULL: not
     * interested. */
    void (*stray)(void *self, const char *name, uint32_t from,
                  uint64_t incarnation, const void *data, size_t size);
    /* The time set by ls_channel_wake_at() has come. NULL: no timers. */
    void (*timer)(void *self, int64_t now);
    /* A member for which ls_channel_send_reliable() had no room, on any
     * channel, has room again. NULL: not interested. */
    void (*room)(void *self);
    /* Some members have become near: ls_channel_is_near() is true. NULL: not
     * interested. */
    void (*near)(void *self);
    /* Called by ls_channel_dispatch() on the dispatch thread, where it may run
     * user code. NULL: not used. */
    void (*dispatched)(void *self, int what);
    /* The node stops: nothing can be sent any more. Runs once, on the thread
     * that stops the node. NULL: not interested. */
    void (*closed)(void *self);
};

/* out:    own; NULL after an error; give it to ls_channel_close().
 * name:   copied; 1 … 128 bytes as an event's.
 * Errors: LS_EINVAL; LS_EEXIST the node has a channel of this name;
 *         LS_ENOMEM; LS_ECLOSED. */
LS_MUST_USE LS_API int ls_channel_open(ls_channel **out, ls_node *node,
                                       const char *name,
                                       const struct ls_channel_ops *ops,
                                       void *self);

/* No op runs after this returns, unless an op is the caller. Do not call it
 * from `dispatched`. */
LS_API void ls_channel_close(ls_channel **channel);

/* Send to one member. Returns once it is queued.
 * Errors: LS_ENOENT no such member is present; LS_ELIMIT; LS_ECLOSED. */
LS_MUST_USE LS_API int ls_channel_send(ls_channel *channel, uint32_t to,
                                       const void *data, size_t size);

/* The same in two pieces, which arrive as one: a head of at most
 * LS_CHANNEL_HEAD_MAX bytes, and data behind it. Saves a copy. */
#define LS_CHANNEL_HEAD_MAX 1280
LS_MUST_USE LS_API int ls_channel_send_two(ls_channel *channel, uint32_t to,
                                           const void *head, size_t head_size,
                                           const void *data, size_t size);

/* As ls_channel_send(), for who is in ls_channel_listen() there: through shared
 * memory, if both nodes are on one host (docs/shared-memory.md#lines), after
 * which whoever does not listen gets it when it next does, unless eight others
 * follow before that; else over a connection, which may be the one that is
 * least work (docs/wire-format.md#what-goes-up). A protocol repeats what
 * matters, by ls_channel_send(). No order with messages that are sent
 * otherwise. Errors: as ls_channel_send(). */
LS_MUST_USE LS_API int ls_channel_send_near(ls_channel *channel, uint32_t to,
                                            const void *data, size_t size);
/* Whether any member may send to this node so. */
LS_API bool ls_channel_is_near(const ls_channel *channel);
/* Run ops->message here for what members send so, on any channel of this node,
 * until ls_channel_ring(), or at once if that was called since the last time,
 * or nobody is near (any more). One thread at a time for each channel.
 * deadline: of ls_now(). Errors: LS_ETIMEDOUT, without a text. */
LS_MUST_USE LS_API int ls_channel_listen(ls_channel *channel, int64_t deadline);
/* As ls_cond_wait(), but until is_over(), which is asked with the mutex held,
 * and gets the channel's self; and what comes for the node is read here, and
 * ops run here, so that nothing has to wake this thread, unless another one
 * reads. Whoever changes what is_over() looks at signals `cond`, and rings.
 * deadline: of ls_now(). Errors: LS_ETIMEDOUT, without a text. */
LS_MUST_USE LS_API int ls_channel_attend(ls_channel *channel, ls_cond *cond,
                                         ls_mutex *mutex,
                                         bool (*is_over)(void *self),
                                         int64_t deadline);
/* For who sends, and then calls ls_channel_attend(): take the bus thread's work
 * over before, so that what is sent does not wake it. Nothing is read until
 * ls_channel_attend(), so do not wait for anything else, and end it with
 * ls_channel_give_back() on the same thread. Returns false: the bus thread is
 * at work, or too little is left of this thread's stack; nothing is to be
 * ended. */
LS_MUST_USE LS_API bool ls_channel_borrow(ls_channel *channel);
LS_API void ls_channel_give_back(ls_channel *channel);
/* End ls_channel_listen(), or the next one; have ls_channel_attend() ask. */
LS_API void ls_channel_ring(ls_channel *channel);

/* As ls_channel_send(), but it arrives exactly once, in order with the other
 * reliable messages and events that this node sends to that member, over broken
 * connections and whatever the network loses, unless the member is lost, which
 * ops->member reports. Never waits. A member that is not present yet gets it
 * once it is.
 * Errors: also LS_EAGAIN the member has 1024 of them unacknowledged: ops->room
 *         tells when there is room; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_channel_send_reliable(ls_channel *channel,
                                                uint32_t to, const void *data,
                                                size_t size);

/* As ls_channel_send(), but to the channel `name` of that member, which is not
 * this one's. Errors: also LS_EINVAL the name is invalid. */
LS_MUST_USE LS_API int ls_channel_answer(ls_channel *channel, const char *name,
                                         uint32_t to, const void *data,
                                         size_t size);

/* Have ops->timer called at `at` (ls_now() time), or never: LS_FOREVER. A
 * channel has one timer; the last call counts. Without that op it does
 * nothing. */
LS_API void ls_channel_wake_at(ls_channel *channel, int64_t at);

/* How long this node has stood still in all, each time for more than four
 * heartbeats: its process was stopped, as by SIGSTOP, and heard nobody. Here
 * and below, node: NULL: there is none, and 0. */
LS_API int64_t ls_node_stood_ns(const ls_node *node);
/* A moment until which a node waits for others. It comes later by as long as
 * the node itself stands still meanwhile. */
struct ls_due {
    int64_t at;       /* of ls_now() */
    int64_t stood_ns; /* of ls_node_stood_ns(), when that was so */
};
LS_API struct ls_due ls_due_at(const ls_node *node, int64_t deadline);
/* Whether it has passed. If not, `at` may be later than before. */
LS_API bool ls_due_has_passed(const ls_node *node, struct ls_due *due);

/* Have ops->dispatched called once on the dispatch thread, with `what`. If
 * requested in an op, it runs after the handlers of all earlier events.
 * Errors: LS_EINVAL there is no such op; LS_ENOMEM; LS_ECLOSED the node has
 *         stopped. */
LS_MUST_USE LS_API int ls_channel_dispatch(ls_channel *channel, int what);

#ifdef __cplusplus
}
#endif

#endif
