/* channels.h - control messages between members. Bus thread but where said, no
 * lock held. */
#ifndef LOCKSTEP_BUS_CHANNELS_H
#define LOCKSTEP_BUS_CHANNELS_H

#include "lockstep/channel.h"

#include "lines.h"
#include "message.h"
#include "wire.h"

struct block_loan;
struct payload;

/* Under router. Of channel.c alone. */
struct channels {
    ls_channel *first;
    uint64_t n;                   /* that ever were */
    _Atomic(const void *) closer; /* ls_thread_here() of who runs ops `closed`;
                                   * without the lock */
};

/* Any thread: ls_due_at() and ls_due_has_passed(), with the transport's lock
 * held. */
struct ls_due due_at(const ls_node *node, int64_t deadline);
bool due_has_passed(const ls_node *node, struct ls_due *due);
/* With another lock held, which is let go of meanwhile: the transport's is
 * taken before it elsewhere. */
bool due_has_passed_without(const ls_node *node, struct ls_due *due,
                            ls_mutex *held);
/* The name of one that is open, or NULL. Any thread. */
const char *channels_open(ls_node *node);
void channels_message(ls_node *node, const struct wire_header *header,
                      const void *data, size_t size);
void channels_member(ls_node *node, const struct ls_member *member);
/* Bus thread: a chunk in a stream came, which is a part of a body when its name
 * is that of a channel. Returns whether it is; kept: whether the message was.
 */
bool channels_part(ls_node *node, const struct wire_header *header,
                   const uint8_t *data, size_t size, struct message *message,
                   bool *kept);
/* The same of a body that lies in a block; loan: moved. hold NULL: what names
 * it names nothing that can be read. Returns whether it is one of a channel. */
bool channels_block(ls_node *node, const struct wire_header *header,
                    const struct block_loan *loan);
/* Push the next part of a body into the stream to a member: all of it, or as
 * much as should go at a time; *at: how much has gone. The caller tells the
 * other side of the body itself. Never waits.
 * Errors: as ls_channel_send_reliable(); LS_EAGAIN no room: ops->room says when
 *         there is; LS_ELOST it lies in a block for a life of that member which
 *         has ended: it goes to nobody. */
int channels_send_part(ls_node *node, const char *name, uint32_t to,
                       struct payload *payload, size_t *at, uint64_t body);
/* A message that came through shared memory; its bytes are the caller's. */
struct channel_note {
    const char *name;
    size_t name_size;
    uint32_t from;
    uint64_t incarnation;
    const void *data;
    size_t size;
};
/* Run the op of its channel, if there is one. The thread that listens. */
void channels_near(ls_node *node, const struct channel_note *note);
/* Some have become near. */
void channels_near_made(ls_node *node);
void channels_renewed(ls_node *node, uint64_t incarnation);
void channels_room(ls_node *node);
/* ls_channel_send_reliable(), without a channel of this node's own. */
int channels_send_reliable(ls_node *node, const char *name, uint32_t to,
                           const void *data, size_t size);
/* Dispatch thread: a MESSAGE_CHANNEL. */
void channels_dispatched(ls_node *node, const struct message *message);
/* Tell every channel that the node stops. Any thread. */
void channels_closed(ls_node *node);
/* Whether the caller is in an op that is told so. Any thread. */
bool channels_is_closer(const ls_node *node);
/* Tell new channels who is there, and run the timers that are due; returns when
 * the next one is. */
int64_t channels_tick(ls_node *node, int64_t now);

#endif
