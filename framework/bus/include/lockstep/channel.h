/* channel.h - control messages between members, for those who write protocols.
 *
 * A channel has a name; what is sent on it reaches the channel of that name at
 * another member, through relays if need be. Messages are small, outside the
 * windows of flow control, and handled on the bus thread, before and beside
 * any event. They may be lost when a connection breaks or when the other side
 * has not opened the channel: a protocol repeats what matters, or sends it by
 * ls_channel_send_reliable().
 * The barrier stands on this; user code wants event.h.
 * Thread: any; the ops run on the bus thread and must not block, but for those
 * that say otherwise. */
#ifndef LOCKSTEP_CHANNEL_H
#define LOCKSTEP_CHANNEL_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LS_CHANNEL_MESSAGE_MAX 262144 /* bytes */

typedef struct ls_channel ls_channel;

/* A part of a body, which the two sides know by a number; they come in order,
 * without gaps. data: borrow for the call, unless the op sets `taken`: then it
 * is released by release(data, hint), on any thread. */
struct ls_channel_part {
    uint64_t body;
    size_t total, offset;
    const void *data;
    size_t size; /* from 1 to total - offset */
    bool taken;
    void (*release)(void *data, void *hint);
    void *hint;
};

struct ls_channel_ops {
    /* A message came. data: borrow, for the call. */
    void (*message)(void *self, uint32_t from, uint64_t incarnation,
                    const void *data, size_t size);
    /* A part of a body came, which calls send. NULL: there are none. */
    void (*part)(void *self, uint32_t from, uint64_t incarnation,
                 struct ls_channel_part *part);
    /* A member became ready, left or was lost; also called for those that are
     * ready when the channel is opened. NULL: not interested. */
    void (*member)(void *self, const struct ls_member *member);
    /* This node was declared lost by another and goes on as a new incarnation
     * of itself. All members have been told as lost before; they become ready
     * again after. NULL: not interested. */
    void (*renewed)(void *self, uint64_t incarnation);
    /* A message came for a channel that this node has not: each channel with
     * this op is told. Answer with ls_channel_answer(). NULL: not interested.
     */
    void (*stray)(void *self, const char *name, uint32_t from,
                  uint64_t incarnation, const void *data, size_t size);
    /* The time of ls_channel_wake_at() has come. NULL: no timers. */
    void (*timer)(void *self, int64_t now);
    /* A member that ls_channel_send_reliable() had no room for, on any channel,
     * has room again. NULL: not interested. */
    void (*room)(void *self);
    /* What ls_channel_dispatch() asked for: runs on the dispatch thread, where
     * it may run code of users. NULL: not used. */
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

/* No op runs once this returns, unless it is called from one. Not from
 * `dispatched`. */
LS_API void ls_channel_close(ls_channel **channel);

/* Send to one member. Returns once it is queued.
 * Errors: LS_ENOENT no such member is present; LS_ELIMIT; LS_ECLOSED. */
LS_MUST_USE LS_API int ls_channel_send(ls_channel *channel, uint32_t to,
                                       const void *data, size_t size);

/* The same, and it arrives exactly once, in the order of the reliable messages
 * and events that this node sends to that member: over broken connections and
 * whatever the network loses, unless the member is lost, which ops->member
 * says. Never waits. A member that was only heard of yet gets it once it is
 * present.
 * Errors: also LS_EAGAIN the member has not acknowledged 1024 of them yet:
 *         ops->room says when; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_channel_send_reliable(ls_channel *channel,
                                                uint32_t to, const void *data,
                                                size_t size);

/* As ls_channel_send(), to the channel `name` of that member, another than this
 * one's. Errors: also LS_EINVAL for what is no name. */
LS_MUST_USE LS_API int ls_channel_answer(ls_channel *channel, const char *name,
                                         uint32_t to, const void *data,
                                         size_t size);

/* Have ops->timer called at `at` (ls_now() time), or not at all: LS_FOREVER.
 * One time is set per channel; the last call counts. */
LS_API void ls_channel_wake_at(ls_channel *channel, int64_t at);

/* Have ops->dispatched called once on the dispatch thread, with `what`; asked
 * for in an op, after the handlers of all events that came before this.
 * Errors: LS_ENOMEM; LS_ECLOSED the node has stopped. */
LS_MUST_USE LS_API int ls_channel_dispatch(ls_channel *channel, int what);

#ifdef __cplusplus
}
#endif

#endif
