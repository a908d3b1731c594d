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
/* A receiver has nothing any more: of one event, of all. */
void latest_again(struct event_entry *entry, uint32_t id);
void latest_forget(ls_node *node, const struct peer *peer);
/* No value is kept any longer. */
void latest_close(ls_node *node);
/* No lock. Queue the current value for this node's own listeners; anew: also
 * when it has been handled here before. */
int latest_queue(ls_node *node, struct event_entry *entry, bool anew);
/* No lock; dispatch thread. Put the current value into a message that stands
 * for it. Returns whether the message is to be handled at all. */
bool latest_resolve(ls_node *node, struct message *message);

#endif
