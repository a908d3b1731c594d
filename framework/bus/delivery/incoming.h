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
    size_t size;         /* in windows */
    size_t payload_size; /* of data; as above, but for a block's */
    bool counted;        /* in the window of `direct` already */
    bool near;           /* it came through memory */
};

/* An event, or a part of one. kept: whether the message was.
 * Errors: LS_EPROTO it contradicts itself; LS_ELIMIT its sender was not granted
 *         so much. Then nothing is counted. */
int incoming_event(ls_node *node, struct incoming *in, struct message *message,
                   bool inbox, uint32_t to, bool *kept);
/* The events of a batch, which stay together until they have been handled, one
 * by one. Errors: as above. */
int incoming_batch(ls_node *node, const struct incoming *in,
                   struct message *message, bool inbox, bool *kept);
/* A block could not be taken, for this reason: refuse it. Returns what to go on
 * with: LS_OK, it is missed; or LS_EPROTO. */
int incoming_no_block(ls_node *node, const struct peer *from, int status);
/* Of this node itself: a hub has passed it on to all. */
void incoming_pass_over(ls_node *node, struct peer *direct,
                        const struct wire_header *header, size_t size);

#endif
