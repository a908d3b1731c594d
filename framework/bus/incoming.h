/* incoming.h - events on their way in. Bus thread, no lock held. */
#ifndef LOCKSTEP_BUS_INCOMING_H
#define LOCKSTEP_BUS_INCOMING_H

#include "assembly.h"

/* An event on its way in. */
struct incoming {
    struct peer *direct; /* whose connection it came over */
    struct peer *origin;
    const struct wire_header *header;
    const uint8_t *data;
    size_t size;
    bool counted; /* in the window of `direct` already */
};

/* An event, or a part of one. Returns whether the message was kept. */
bool incoming_event(ls_node *node, struct incoming *in, struct message *message,
                    bool inbox, uint32_t to);
/* The events of a batch, in order. The last of them holds the frame: it is
 * handled, and released, after the others. */
bool incoming_batch(ls_node *node, const struct incoming *in,
                    struct message *message, bool inbox);
/* Not for this node, or nobody listens any more. */
void incoming_pass_over(ls_node *node, struct peer *direct, size_t size);

#endif
