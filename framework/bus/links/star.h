/* star.h - what the hub of a star does for its leaves, and what a leaf has of
 * it. */
#ifndef LOCKSTEP_BUS_STAR_H
#define LOCKSTEP_BUS_STAR_H

#include "links.h"
#include "message.h"

/* early.c: what a hub passes on of leaves that it has not shown here yet. Bus
 * thread; lock held but for the first. */
/* Keep one until then. Returns whether it was kept. */
bool early_keep(ls_node *node, struct peer *hub,
                const struct wire_header *header, struct message *message);
/* Of leaves that are ready now: hand them on. Lock not held. */
void early_hand_on(ls_node *node);
void early_drop(ls_node *node, struct peer *hub);
/* Those that wait in vain; returns when to look again. */
int64_t early_tick(ls_node *node, int64_t now);

/* relay.c: what the hub of a star does for its leaves. Lock held. */
/* Tell the others, unless they have been told. */
void relay_present(ls_node *node, struct peer *leaf, bool present);
void relay_listen(ls_node *node, struct peer *leaf,
                  const struct event_entry *entry, enum listening how);
/* Show all leaves over a new link, but the one that is dialled. */
void relay_dial(ls_node *node, struct link *link, const struct peer *peer);
/* Pass a message on, or keep it until there is room. Returns true when the
 * message was kept. */
bool relay_message(ls_node *node, struct peer *from, struct message *message,
                   const struct wire_header *header, uint32_t to, bool inbox);
void relay_flush(ls_node *node);
/* What waits of a leaf whose life has ended: the others have been told so, and
 * refuse it. */
void relay_drop(ls_node *node, struct peer *from);

#endif
