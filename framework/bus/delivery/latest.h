/* latest.h - delivery latest: one value per event. The lock is held unless
 * said. */
#ifndef LOCKSTEP_BUS_LATEST_H
#define LOCKSTEP_BUS_LATEST_H

#include "payload.h"

#include "lockstep/event.h"

struct event_entry;
struct message;
struct peer;

/* Make it the current value; payload: moved. */
void latest_set(ls_node *node, struct event_entry *entry,
                struct payload *payload);
/* Push what a peer listens to and has not got. */
void latest_offer(ls_node *node, struct peer *peer);
/* The same for who joins; as delivery.h says. */
void latest_joined(ls_node *node, const struct event_entry *entry,
                   struct peer *peer);
/* A receiver has nothing any more: of one event, or of those that begin so; of
 * all. */
void latest_again(const ls_node *node, struct event_entry *of, uint32_t id);
void latest_forget(ls_node *node, const struct peer *peer);
/* No value is kept any longer. */
void latest_close(ls_node *node);
/* No lock. Queue the current value for this node's own listeners; anew: also
 * when it has been handled here before. */
int latest_queue(ls_node *node, struct event_entry *entry, bool anew);
/* No lock. The same for what nobody listened to here: others are told of the
 * values of those elsewhere, nobody is of this node's own. */
void latest_here(ls_node *node, struct event_entry *of);
/* No lock; dispatch thread. Put the current value into a message that stands
 * for it. Returns whether the message is to be handled at all. */
bool latest_resolve(ls_node *node, struct message *message);

#endif
